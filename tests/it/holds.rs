//! Holds: an auditor keeps an asset or a run, and nothing ends it.

use std::time::Duration;

use mediakeep::access::Scope;
use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::record::HoldOn;
use mediakeep_storage::{AssetId, HoldId, TenantId};
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::{Asset, Caller, Host, refusal};
use crate::retention::{DAY, keep, later};

async fn hold(owner: &Caller<'_>, on: &str, id: &str) -> Value {
    let answer = owner.put(&format!("/v1/{on}/holds/{id}"), &json!({"reason": "an audit"})).await;
    assert_eq!(answer.status(), 200);
    answer.json().await.expect("JSON")
}

async fn lift(owner: &Caller<'_>, on: &str, id: &str) -> u16 {
    owner.delete(&format!("/v1/{on}/holds/{id}")).await.status().as_u16()
}

fn path(asset: &Asset) -> String {
    format!("assets/{}", asset.id)
}

#[tokio::test]
async fn a_held_asset_outlives_its_floor_until_the_last_hold_is_lifted() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_loose(png(2, 2)).await;
    let placed = hold(&owner, &path(&asset), "one").await;
    assert_eq!(placed, json!({"holdId": "one", "reason": "an audit", "at": host.now()}));
    hold(&owner, &path(&asset), "two").await;

    let shown = owner.show(&asset).await;
    assert_eq!(shown["holds"], json!(["one", "two"]));
    assert_eq!((&shown["retainUntil"], &shown["retentionSource"]), (&Value::Null, &json!("hold")));
    host.advance(5_000 * DAY);
    assert_eq!(host.sweep().await.expired, 0);
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
    assert_eq!(lift(&owner, &path(&asset), "one").await, 204);
    assert_eq!(lift(&owner, &path(&asset), "one").await, 404);
    assert_eq!(host.sweep().await.expired, 0);
    assert_eq!(lift(&owner, &path(&asset), "two").await, 204);

    assert_eq!(host.stranger().get(&asset.url).await.status(), 410);
    assert_eq!(owner.show(&asset).await["holds"], json!([]));
}

#[tokio::test]
async fn a_held_run_keeps_what_it_quotes_and_will_quote() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    keep(&owner, "run-1", &later(&host, DAY)).await;
    let early = owner.upload(noise(100, 1)).await;
    hold(&owner, "runs/run-1", "audit").await;
    let late = owner.upload(noise(100, 2)).await;

    host.advance(9 * DAY);
    assert_eq!(host.sweep().await.expired, 0);
    for asset in [&early, &late] {
        assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
        assert_eq!(owner.show(asset).await["holds"], json!(["audit"]));
    }
    assert_eq!(lift(&owner, "runs/run-1", "audit").await, 204);
    assert_eq!(host.sweep().await.expired, 2);
}

#[tokio::test]
async fn what_is_held_is_neither_deleted_nor_erased() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let loose = owner.upload_loose(noise(100, 1)).await;
    let of_run = owner.upload(noise(100, 2)).await;
    hold(&owner, &path(&loose), "one").await;
    hold(&owner, "runs/run-1", "two").await;

    for (asset, held) in [(&loose, "one"), (&of_run, "two")] {
        for query in ["", "?erase=true", "?erase=true&copies=true"] {
            let refused = owner.delete(&format!("/v1/{}{query}", path(asset))).await;
            assert_eq!(refused.status(), 409, "{query}");
            let refused = refusal(refused).await;
            assert_eq!((&refused["error"], &refused["details"]["holds"]), (&json!("hold_active"), &json!([held])));
        }
    }
    let refused = owner.post("/v1/runs/run-1/erase", &json!({})).await;
    assert_eq!(refused.status(), 409);
    assert_eq!(refusal(refused).await["error"], "hold_active");
    assert_eq!(host.stranger().get(&of_run.url).await.status(), 200);
}

#[tokio::test]
async fn a_hold_keeps_the_bytes_of_a_dead_asset_for_auditors_and_serves_them_to_nobody() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_loose(png(3, 3)).await;
    let link = owner.share(&asset, 3_600).await;
    host.advance(DAY);
    assert_eq!(host.sweep().await.expired, 1);

    hold(&owner, &path(&asset), "audit").await;
    host.advance(300 * DAY);
    host.sweep().await;

    assert_eq!(host.stored_blobs().await, 1);
    assert_eq!(owner.show(&asset).await["state"], "expired");
    for url in [asset.url.clone(), link, format!("/v1/assets/{}/content", asset.id)] {
        assert_eq!(owner.get(&url).await.status(), 410, "{url}");
    }
    assert_eq!(lift(&owner, &path(&asset), "audit").await, 204);
    host.advance(DAY + Duration::from_secs(60));
    host.sweep().await;
    assert_eq!(host.stored_blobs().await, 0);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn a_hold_is_in_the_store_as_long_as_it_is_there() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_loose(png(2, 2)).await;
    let tenant = TenantId::parse("acme").expect("a tenant");
    let on = HoldOn::Asset(AssetId::parse(&asset.id).expect("an id"));
    let id = HoldId::parse("audit").expect("a hold");
    let recorded = async || {
        let record = host.app().blobs.newest_record(&tenant, RecordOf::Hold(&on, &id)).await.expect("a store");
        record.map(|json| serde_json::from_slice::<Value>(&json).expect("JSON")["reason"].clone())
    };

    hold(&owner, &path(&asset), "audit").await;
    assert_eq!(recorded().await, Some(json!("an audit")));
    host.advance(Duration::from_secs(1));
    let again = owner.put(&format!("/v1/{}/holds/audit", path(&asset)), &json!({"reason": "another"})).await;
    let again: Value = again.json().await.expect("JSON");
    assert_eq!(recorded().await, Some(json!("another")));
    assert_ne!(again["at"], json!(host.now()), "its time stays");
    lift(&owner, &path(&asset), "audit").await;
    assert_eq!(recorded().await, None);
}

#[tokio::test]
async fn holds_are_placed_on_what_is_there_by_those_who_may() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    let reason = json!({"reason": "an audit"});
    let stranger = host.owner("globex");
    let unknown = "assets/ast_01mcc5rm00eezafjx11t703fet";

    for on in [path(&asset).as_str(), "runs/run-1"] {
        assert_eq!(stranger.put(&format!("/v1/{on}/holds/a"), &reason).await.status(), 404);
        assert_eq!(lift(&stranger, on, "a").await, 404);
        let reader = host.with_scope("acme", Scope::AssetsWrite);
        assert_eq!(reader.put(&format!("/v1/{on}/holds/a"), &reason).await.status(), 403);
        assert_eq!(owner.put(&format!("/v1/{on}/holds/a%20b"), &reason).await.status(), 400);
        assert_eq!(owner.put(&format!("/v1/{on}/holds/a"), &json!({"reason": "x".repeat(257)})).await.status(), 400);
        assert_eq!(owner.put(&format!("/v1/{on}/holds/a"), &json!({})).await.status(), 400);
    }
    assert_eq!(owner.put(&format!("/v1/{unknown}/holds/a"), &reason).await.status(), 404);
    assert_eq!(owner.put("/v1/runs/nobody/holds/a", &reason).await.status(), 404);
    assert_eq!(owner.show(&asset).await["holds"], json!([]));
    assert_eq!(host.recovery_records(), 2, "the asset's and the run's: a refused hold leaves none");
}

#[tokio::test]
async fn names_as_long_as_they_may_be_hold_a_run_also_in_an_index_that_is_made_anew() {
    let host = Host::start().await;
    let (run, id) = ("r".repeat(128), "h".repeat(128));
    let asset = {
        let owner = host.owner("acme");
        keep(&owner, &run, &later(&host, DAY)).await;
        let request = owner.request(reqwest::Method::POST, &format!("/v1/runs/{run}/assets"));
        let request = request.header("content-type", "application/octet-stream").body(png(2, 2));
        let asset = crate::harness::asset(request.send().await.expect("an answer")).await;
        hold(&owner, &format!("runs/{run}"), &id).await;
        asset
    };

    let (host, report) = host.rebuilt(crate::harness::index::Kind::of_this_process()).await;

    assert_eq!((report.holds, report.unreadable.len()), (1, 0), "{report:?}");
    host.advance(5_000 * DAY);
    host.sweep().await;
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
    assert_eq!(lift(&host.owner("acme"), &format!("runs/{run}"), &id).await, 204);
}
