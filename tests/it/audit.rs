//! What the audit log holds: every change with its place in the chain, and reads as far as they are asked for.

use mediakeep::audit::{self, Due};
use mediakeep::config::settings::AuditReads;
use mediakeep_storage::audit::{AuditKind, AuditRow};
use mediakeep_storage::{AssetId, TenantId};
use serde_json::{Value, json};

use crate::harness::Host;
use crate::harness::bytes::png;
use crate::harness::process::{Place, eventually};

async fn rows(host: &Host) -> Vec<AuditRow> {
    rows_of(host, "acme").await
}

async fn rows_of(host: &Host, tenant: &str) -> Vec<AuditRow> {
    let (index, tenant) = (&host.app().index, TenantId::parse(tenant).expect("a tenant"));
    while index.seal_audit(1_000).await.expect("sealed") > 0 {}
    index.audit_rows(&tenant, 0, 1_000).await.expect("rows")
}

fn reads(rows: &[AuditRow]) -> Vec<&AuditRow> {
    rows.iter().filter(|row| row.event.kind == AuditKind::Read).collect()
}

#[tokio::test]
async fn every_change_stands_in_the_chain() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    owner.share(&asset, 60).await;
    owner.patch(&format!("/v1/assets/{}", asset.id), &json!({"alt": "a square"})).await;
    owner.put("/v1/runs/run-1", &json!({"logRetentionSeconds": 60, "status": "closed"})).await;
    host.advance(std::time::Duration::from_secs(61));
    host.sweep().await;

    let rows = rows(&host).await;

    let kinds: Vec<AuditKind> = rows.iter().map(|row| row.event.kind).collect();
    use AuditKind::{Amend, Expire, Floor, Ingest, Mint};
    assert_eq!(kinds, [Ingest, Mint, Amend, Floor, Expire]);
    let acme = TenantId::parse("acme").expect("a tenant");
    assert!(rows.iter().all(|row| row.holds(&acme)));
    assert_eq!(rows[0].previous, AuditRow::GENESIS);
    assert!(rows.windows(2).all(|pair| pair[1].previous == pair[0].hash && pair[1].seq == pair[0].seq + 1));
    let text = serde_json::to_string(&rows).expect("JSON");
    assert!(!text.contains("eyJ"), "no row holds a token");
}

#[tokio::test]
async fn a_full_log_has_each_read_before_its_bytes_are_there() {
    let host = Host::with(|settings| settings.audit.reads = AuditReads::Full).await;
    let asset = host.owner("acme").upload(png(2, 2)).await;

    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
    assert_eq!(host.owner("acme").get(&format!("/v1/assets/{}/content", asset.id)).await.status(), 200);
    assert_eq!(host.stranger().head(&asset.url).await.status(), 200);

    let rows = rows(&host).await;
    let reads = reads(&rows);
    let seen: Vec<(&str, Option<&str>)> =
        reads.iter().map(|row| (row.event.principal.as_str(), row.event.url_id.as_deref())).collect();
    let durable = format!("{}.1", asset.id);
    assert_eq!(seen, [("capability", Some(durable.as_str())), ("acme-all", None)], "HEAD sends no bytes");
}

#[tokio::test]
async fn a_sampled_log_says_how_many_reads_it_left_out() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(png(2, 2)).await;
    audit::flush(host.app(), Due::Now).await.expect("written");
    let before = reads(&rows(&host).await).len();

    for _ in 0..30 {
        assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
    }
    audit::flush(host.app(), Due::Now).await.expect("written");

    let rows = rows(&host).await;
    let reads = reads(&rows);
    let left_out: u64 =
        reads.iter().filter_map(|row| row.event.details.as_ref()?.get("notLogged").and_then(Value::as_u64)).sum();
    let told = reads.iter().filter(|row| row.event.details.is_none()).count();
    assert!(told > before && told < 30, "{told}");
    assert_eq!(told as u64 + left_out, 30);
}

#[tokio::test]
async fn a_busy_tenant_leaves_the_others_their_sample() {
    let host = Host::start().await;
    let (busy, quiet) = (host.owner("acme").upload(png(2, 2)).await, host.owner("globex").upload(png(2, 2)).await);
    for _ in 0..60 {
        assert_eq!(host.stranger().get(&busy.url).await.status(), 200);
    }

    assert_eq!(host.stranger().get(&quiet.url).await.status(), 200);
    audit::flush(host.app(), Due::Now).await.expect("written");

    let rows = rows_of(&host, "globex").await;
    let told: Vec<_> = reads(&rows).into_iter().map(|row| (&*row.event.principal, row.event.asset_id)).collect();
    assert_eq!(told, [("capability", AssetId::parse(&quiet.id).ok())]);
}

#[tokio::test]
async fn keys_that_come_and_go_stand_in_the_chain() {
    let place = Place::new();
    let text = std::fs::read_to_string(place.file("mediakeep.toml")).expect("a file");
    place.write("mediakeep.toml", text.replace("[[access", "activate_after = \"0s\"\n[[access"));
    let server = place.serve().await;
    server.upload(png(2, 2)).await;
    server.upload(png(3, 3)).await;
    let old = kids(&place).remove(0);
    place.must_run(&["keys", "rotate"]);
    let new = kids(&place).into_iter().find(|kid| *kid != old).expect("a new key");
    server.signal(rustix::process::Signal::HUP);
    eventually(async || place.log().contains("were read again")).await;
    assert!(server.stop().await.success());
    place.must_run(&["keys", "retire", &old, "--force"]);

    let index = place.index().open().await;
    while index.seal_audit(1_000).await.expect("sealed") > 0 {}
    let rows = index.audit_rows(&TenantId::parse("acme").expect("a tenant"), 0, 1_000).await.expect("rows");

    let of_ring = rows.iter().filter(|row| row.event.kind == AuditKind::Key && row.event.asset_id.is_none());
    let told: Vec<&Value> = of_ring.filter_map(|row| row.event.details.as_ref()).collect();
    assert_eq!(told, [&json!({"added": [new], "removed": []}), &json!({"added": [], "removed": [old]})]);
}

#[tokio::test]
async fn a_rotation_while_nothing_runs_stands_in_every_chain() {
    let idle = "[[access.api_keys]]\nid = \"idle\"\ntenant = \"idle\"\nsecret_sha256 = ";
    let place = Place::with(&format!("{idle}\"{}\"\nscopes = [\"assets:read\"]", "0".repeat(64)));
    let server = place.serve().await;
    server.upload(png(2, 2)).await;
    let running = place.must_run(&["keys", "rotate"]);
    assert_eq!(running.stderr, "", "a service that runs tells of it itself");
    assert!(server.stop().await.success());
    let before = kids(&place);

    let ran = place.must_run(&["keys", "rotate"]);

    assert_eq!(ran.stderr, "");
    let new: Vec<_> = kids(&place).into_iter().filter(|kid| !before.contains(kid)).collect();
    let index = place.index().open().await;
    while index.seal_audit(1_000).await.expect("sealed") > 0 {}
    for tenant in ["acme", "idle"] {
        let rows = index.audit_rows(&TenantId::parse(tenant).expect("a tenant"), 0, 1_000).await.expect("rows");
        let last = rows.into_iter().rfind(|row| row.event.kind == AuditKind::Key).expect("a row");
        assert_eq!(last.event.details, Some(json!({"added": new, "removed": []})), "{tenant}");
    }
}

/// The ring's keys.
fn kids(place: &Place) -> Vec<String> {
    let listed = place.must_run(&["keys", "list"]).stdout;
    listed.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_log_without_reads_has_none() {
    let host = Host::with(|settings| settings.audit.reads = AuditReads::Off).await;
    let asset = host.owner("acme").upload(png(2, 2)).await;

    host.stranger().get(&asset.url).await;
    audit::flush(host.app(), Due::Now).await.expect("written");

    assert!(reads(&rows(&host).await).is_empty());
}
