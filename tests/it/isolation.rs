//! The check that an auditor signs off: nobody gets in but the tenant.

use mediakeep::audit::isolation::Lease;
use mediakeep::audit::signed;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{Caller, Host};

const PATH: &str = "/v1/audit/isolation-checks";

async fn check(caller: &Caller<'_>, wish: Value) -> Value {
    let told = Told::of(caller.post(PATH, &wish).await).await;
    assert_eq!(told.status, 200, "{}", String::from_utf8_lossy(&told.body));
    told.json()
}

#[cfg(not(feature = "leaky"))]
#[tokio::test]
async fn every_way_in_is_tried_and_none_leaks() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for size in 1..=3 {
        owner.upload(png(size, 1)).await;
    }
    owner.upload_loose(png(9, 9)).await;
    host.owner("globex").upload(png(8, 8)).await;
    let before = Told::of(owner.get("/v1/assets").await).await;

    let report = check(&owner, json!({})).await;

    assert_eq!((&report["checked"], &report["leaks"]), (&json!(4), &json!([])), "{report}");
    let attempts = report["attempts"].as_u64().expect("a number");
    assert!(attempts >= 4 * 50, "{attempts} attempts");
    assert_eq!(report["checkedAt"], json!(host.now().to_string()));
    let mut document = report.clone();
    let keys = [host.app().live().ring.audit_public_key().clone()];
    assert_eq!(signed::proven(&mut document, &keys), Ok(host.app().live().ring.audit_kid()));
    assert_eq!(Told::of(owner.get("/v1/assets").await).await, before, "nothing has changed");

    while host.app().index.seal_audit(1_000).await.expect("sealed") > 0 {}
    let rows = Told::of(owner.get("/v1/audit/events?type=check").await).await.json();
    let details = &rows["events"][0]["details"];
    assert_eq!(details, &json!({"checked": 4, "attempts": attempts, "leaks": 0}));
    let denied = Told::of(owner.get("/v1/audit/events?type=denied").await).await.json();
    assert_eq!(denied["events"], json!([]), "nobody was refused but the check itself");
}

/// What a check finds out by asking these, their owner hears: else the way in would tell nobody apart.
#[tokio::test]
async fn a_part_that_names_an_asset_tells_its_owner_from_everybody_else() {
    let host = Host::start().await;
    let (owner, other) = (host.owner("acme"), host.owner("globex"));
    let asset = owner.upload(png(2, 2)).await;
    let part = json!({"type": "image", "mimeType": "image/png", "mediaRef": format!("blob:{}", asset.id)});
    let messages = json!([{"role": "user", "content": [part]}]);
    let normalize = json!({"runId": "probe", "modalities": ["image"], "messages": messages});
    let bundle = json!({"run": {"runId": "probe"}, "parts": [part]});

    for (path, body) in [("/v1/content-parts/normalize", normalize), ("/v1/debug-bundles/check", bundle)] {
        let (own, foreign) =
            (Told::of(owner.post(path, &body).await).await, Told::of(other.post(path, &body).await).await);
        assert_eq!(own.status, 200, "{path} {own:?}");
        assert_ne!(own, foreign, "{path}");
    }
}

#[cfg(feature = "leaky")]
#[tokio::test]
async fn a_build_that_opens_old_links_is_found_out() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;

    let report = check(&owner, json!({})).await;

    let leak = |method| json!({"assetId": asset.id, "route": format!("{method} /a/{{capability}}"), "as": "forged:older_generation"});
    assert_eq!(report["leaks"], json!([leak("GET"), leak("HEAD")]));
    let mut document = report.clone();
    let keys = [host.app().live().ring.audit_public_key().clone()];
    assert!(signed::proven(&mut document, &keys).is_ok());
}

#[tokio::test]
async fn a_sample_is_as_large_as_asked_for() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    assert_eq!(check(&owner, json!({"sample": 5})).await["checked"], 0);
    for size in 1..=4 {
        owner.upload(png(size, 1)).await;
        host.advance(std::time::Duration::from_millis(3));
    }
    for (sample, checked) in [(1, 1), (3, 3), (4, 4), (1_000, 4)] {
        assert_eq!(check(&owner, json!({"sample": sample})).await["checked"], checked);
    }
    for wrong in [json!({"sample": 0}), json!({"sample": 1_001}), json!({"sample": -1}), json!({"more": 1})] {
        let told = Told::of(owner.post(PATH, &wrong).await).await;
        assert_eq!((told.status, told.refusal()), (400, "validation_error".into()), "{wrong}");
    }
}

#[tokio::test]
async fn one_check_of_a_tenant_runs_at_a_time() {
    let host = Host::start().await;
    let acme = mediakeep_storage::TenantId::parse("acme").expect("a tenant");
    let turn = host.app().checks.begin(&acme).expect("none runs");

    let told = Told::of(host.owner("acme").post(PATH, &json!({})).await).await;
    assert_eq!((told.status, told.refusal()), (409, "check_running".into()));
    assert_eq!(check(&host.owner("globex"), json!({})).await["checked"], 0);
    drop(turn);
    assert_eq!(check(&host.owner("acme"), json!({})).await["checked"], 0);

    // Another process at it, on the same index.
    let lease = Lease::take(host.app(), &acme).await.expect("an index").expect("none runs");
    let told = Told::of(host.owner("acme").post(PATH, &json!({})).await).await;
    assert_eq!((told.status, told.refusal()), (409, "check_running".into()));
    assert_eq!(check(&host.owner("globex"), json!({})).await["checked"], 0);
    lease.end().await;
    assert_eq!(check(&host.owner("acme"), json!({})).await["checked"], 0);
}

#[tokio::test]
async fn a_check_without_a_body_tries_as_many_as_one_that_says_nothing() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.upload(png(2, 2)).await;
    let answer = owner.request(reqwest::Method::POST, PATH).send().await.expect("an answer");
    let told = Told::of(answer).await;
    assert_eq!((told.status, &told.json()["checked"]), (200, &json!(1)));
}

#[cfg(not(feature = "leaky"))]
#[tokio::test]
async fn bytes_that_do_not_lie_under_their_tenants_prefix_are_a_leak() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    owner.upload(png(3, 3)).await;
    let acme = mediakeep_storage::TenantId::parse("acme").expect("a tenant");
    let id = mediakeep_storage::AssetId::parse(&asset.id).expect("an id");
    let record = host.app().index.find(&acme, id).await.expect("an index").expect("an asset");
    host.app().blobs.remove(&acme, record.blob).await.expect("a store");

    let report = check(&owner, json!({})).await;

    assert_eq!(report["leaks"], json!([{"assetId": asset.id, "route": "store", "as": "bytes"}]));
}
