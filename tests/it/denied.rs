//! Who was refused: rows of the log about those who are who they say.

use std::time::Duration;

use mediakeep::access::{Scope, hash_secret};
use mediakeep::audit::{self, Due};
use mediakeep_storage::TenantId;
use mediakeep_storage::audit::{AuditKind, AuditRow};
use serde_json::json;

use crate::harness::Host;
use crate::harness::bytes::png;

/// The tenant's rows about refusals.
pub async fn denied(host: &Host, tenant: &str) -> Vec<AuditRow> {
    // Twice: an owner is looked for in the first round, and told in one of them.
    for _ in 0..2 {
        audit::flush(host.app(), Due::Now).await.expect("written");
    }
    let (index, tenant) = (&host.app().index, TenantId::parse(tenant).expect("a tenant"));
    while index.seal_audit(1_000).await.expect("sealed") > 0 {}
    let rows = index.audit_rows(&tenant, 0, 1_000).await.expect("rows");
    rows.into_iter().filter(|row| row.event.kind == AuditKind::Denied).collect()
}

/// How many refusals the rows tell of, for that reason.
pub fn count(rows: &[AuditRow], reason: &str) -> u64 {
    rows.iter().filter_map(|row| row.event.details.as_ref()?["reasons"][reason].as_u64()).sum()
}

#[tokio::test]
async fn refusals_of_a_credential_are_counted_in_one_row_a_minute() {
    let host = Host::start().await;
    let reader = host.with_scope("acme", Scope::AssetsRead);
    let refuse = async |times| {
        for _ in 0..times {
            assert_eq!(reader.post("/v1/assets", &json!({"base64": "aGk="})).await.status(), 403);
        }
    };

    refuse(5).await;
    denied(&host, "acme").await;
    refuse(4).await;
    assert_eq!(denied(&host, "acme").await.len(), 1, "the rest waits for its minute");
    host.advance(Duration::from_secs(60));

    let rows = denied(&host, "acme").await;
    assert_eq!((rows.len(), count(&rows, "scope_missing")), (2, 9));
    assert!(rows.iter().all(|row| row.event.principal == "acme-assets-read"), "{rows:?}");
    assert_eq!(denied(&host, "globex").await, []);
}

#[tokio::test]
async fn a_link_that_is_over_stands_in_its_owners_log_by_its_url_id() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    let brief = owner.share(&asset, 1).await;
    host.advance(Duration::from_secs(1));
    assert_eq!(host.stranger().get(&brief).await.status(), 410);
    host.raise_generation("acme", &asset).await;
    assert_eq!(host.stranger().get(&asset.url).await.status(), 404);
    assert_eq!(owner.get(&asset.url).await.status(), 404);

    let rows = denied(&host, "acme").await;

    let durable = format!("{}.1", asset.id);
    let told = |principal: &str, url: &str, reason: &str| {
        rows.iter().any(|row| {
            let event = &row.event;
            let is_link = event.url_id.as_deref().is_some_and(|id| id.starts_with(url));
            event.principal == principal
                && is_link
                && event.asset_id.is_some_and(|id| id.to_string() == asset.id)
                && count(std::slice::from_ref(row), reason) == 1
        })
    };
    assert!(told("capability", "url_", "url_expired"), "{rows:?}");
    assert!(told("capability", &durable, "revoked"), "{rows:?}");
    assert!(told("acme-all", &durable, "revoked"), "{rows:?}");
    assert_eq!(rows.len(), 3);
}

#[tokio::test]
async fn who_asks_for_anothers_asset_stands_in_both_logs_and_by_name_in_one() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(png(2, 2)).await;
    let other = host.owner("globex");
    assert_eq!(other.get(&asset.url).await.status(), 404);
    assert_eq!(other.get(&format!("/v1/assets/{}", asset.id)).await.status(), 404);
    assert_eq!(other.get(&format!("/v1/assets/{}/content", asset.id)).await.status(), 404);
    assert_eq!(other.get("/v1/assets/ast_01jhp3v5x0f7rb6k2m8q4t9wze").await.status(), 404);
    denied(&host, "globex").await;
    host.advance(Duration::from_secs(60));

    let (theirs, owners) = (denied(&host, "globex").await, denied(&host, "acme").await);

    assert_eq!(count(&theirs, "not_found"), 4);
    assert!(theirs.iter().all(|row| row.event.principal == "globex-all"), "{theirs:?}");
    let text = serde_json::to_string(&theirs).expect("JSON");
    assert!(!text.contains(&asset.id) && !text.contains("acme"), "{text}");
    assert_eq!((count(&owners, "foreign"), count(&owners, "not_found") > 0), (1, true), "{owners:?}");
    assert!(owners.iter().all(|row| row.event.principal == "foreign"), "{owners:?}");
    assert!(owners.iter().any(|row| row.event.asset_id.is_some_and(|id| id.to_string() == asset.id)), "{owners:?}");
    assert!(!serde_json::to_string(&owners).expect("JSON").contains("globex"));
}

#[tokio::test]
async fn whoever_names_another_tenant_stands_in_its_own_log_wherever_it_was_named() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    let meta = format!("/v1/assets/{}", asset.id);
    let text = crate::harness::form::Form::new().text("tenant", "globex");
    let refused = [
        owner.get(&format!("{meta}?tenant=globex")).await,
        owner.request(reqwest::Method::GET, &meta).header("x-tenant-id", "globex").send().await.expect("an answer"),
        owner.post(&format!("{meta}/urls"), &json!({"class": "durable", "tenantId": "globex"})).await,
        owner.inline(&json!({"base64": "aGk=", "tenant": "globex"})).await,
        owner.form(text).await,
    ];
    assert!(refused.iter().all(|answer| answer.status() == 403), "{refused:?}");

    let rows = denied(&host, "acme").await;

    assert_eq!((count(&rows, "other_tenant_named"), rows.len()), (5, 1), "{rows:?}");
    assert_eq!(rows[0].event.principal, "acme-all");
    assert_eq!(denied(&host, "globex").await, []);
}

#[tokio::test]
async fn a_key_that_is_over_leaves_a_row_and_what_is_forged_leaves_none() {
    let host = Host::with(|settings| {
        let mut key = settings.access.api_keys[0].clone();
        (key.id, key.secret_sha256, key.revoked) = ("old".into(), hash_secret("of-old"), true);
        settings.access.api_keys.push(key);
    })
    .await;
    let asset = host.owner("acme").upload(png(2, 2)).await;
    for forged in ["mk_old_wrong", "mk_nobody_of-old", "a.b.c"] {
        assert_eq!(host.bearer(forged).get("/v1/assets").await.status(), 401);
    }
    for forged in [format!("{}x", asset.url), asset.url.replace("/a/", "/a/x")] {
        assert_eq!(host.stranger().get(&forged).await.status(), 404);
    }
    assert_eq!(denied(&host, "acme").await, []);

    assert_eq!(host.bearer("mk_old_of-old").get("/v1/assets").await.status(), 401);

    let rows = denied(&host, "acme").await;
    assert_eq!((rows.len(), count(&rows, "key_revoked"), &*rows[0].event.principal), (1, 1, "old"));
}
