//! A fork's log quotes what its parent's log quoted when the fork was made.

use mediakeep::access::Scope;
use mediakeep_storage::{RunId, TenantId};
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::{Caller, Host, refusal};
use crate::retention::{DAY, keep, later};

async fn fork(owner: &Caller<'_>, child: &str, parent: &str) -> Value {
    let answer = owner.put(&format!("/v1/runs/{child}"), &json!({"forkOf": parent})).await;
    assert_eq!(answer.status(), 200);
    answer.json().await.expect("JSON")
}

#[tokio::test]
async fn media_of_a_forked_run_outlives_it_by_the_same_urls() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    keep(&owner, "parent", &later(&host, DAY)).await;
    let mut early = Vec::new();
    for seed in 0..5 {
        early.push(owner.upload_to("parent", noise(300, seed)).await);
    }

    let child = fork(&owner, "child", "parent").await;
    let late = owner.upload_to("parent", noise(300, 9)).await;

    assert_eq!((&child["forkOf"], &child["assets"], &child["bytes"]), (&json!("parent"), &json!(5), &json!(1_500)));
    host.advance(DAY);
    assert_eq!(host.sweep().await.expired, 1);
    for asset in &early {
        assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
        assert_eq!(owner.show(asset).await["references"], json!(["child", "parent"]));
    }
    assert_eq!(host.stranger().get(&late.url).await.status(), 410);
    let manifest = owner.get("/v1/runs/child/debug-bundle/manifest").await;
    let manifest: Value = manifest.json().await.expect("JSON");
    assert_eq!(manifest["counts"]["assets"], 5);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn what_a_fork_took_up_outlives_the_erasure_of_its_parent() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let early = owner.upload_to("parent", noise(300, 1)).await;
    fork(&owner, "child", "parent").await;
    let late = owner.upload_to("parent", noise(300, 2)).await;

    assert_eq!(owner.post("/v1/runs/parent/erase", &json!({})).await.status(), 200);

    host.advance(DAY);
    host.sweep().await;
    let answer = host.stranger().get(&early.url).await;
    assert_eq!(answer.bytes().await.expect("a body"), noise(300, 1));
    assert_eq!(host.stranger().get(&late.url).await.status(), 410);
    assert_eq!(host.stored_blobs().await, 1);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn a_fork_takes_up_tombstones_too() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let dead = owner.upload_loose(png(2, 2)).await;
    assert_eq!(owner.delete(&format!("/v1/assets/{}", dead.id)).await.status(), 204);
    let quoted = owner.post("/v1/runs/parent/references", &json!({"assets": [dead.id]})).await;
    assert_eq!(quoted.status(), 200);

    let child = fork(&owner, "child", "parent").await;

    assert_eq!((&child["assets"], &child["bytes"]), (&json!(1), &json!(0)));
    assert_eq!(owner.show(&dead).await["state"], "expired");
}

#[tokio::test]
async fn what_a_fork_took_up_is_in_the_store() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_to("parent", png(2, 2)).await;

    fork(&owner, "child", "parent").await;
    fork(&owner, "child", "parent").await;

    let (tenant, run) = (TenantId::parse("acme").expect("a tenant"), RunId::parse("child").expect("a run"));
    let quoted = host.app().blobs.references(&tenant, &run).await.expect("the records");
    let quoted: Vec<_> = quoted.iter().flat_map(|record| &record.assets).map(ToString::to_string).collect();
    assert_eq!(quoted, [asset.id]);
}

#[tokio::test]
async fn a_fork_that_may_not_be_makes_nothing() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    keep(&host.owner("globex"), "foreign", &later(&host, DAY)).await;
    for run in ["a", "other"] {
        assert_eq!(owner.put(&format!("/v1/runs/{run}"), &json!({})).await.status(), 200);
    }
    fork(&owner, "b", "a").await;
    fork(&owner, "c", "b").await;

    for (child, parent, status, code) in [
        ("new", "nobody", 404, "not_found"),
        ("new", "foreign", 404, "not_found"),
        ("new", "new", 400, "validation_error"),
        ("new", "a/b", 400, "validation_error"),
        ("a", "c", 400, "validation_error"),
        ("b", "other", 409, "fork_of"),
    ] {
        let refused = owner.put(&format!("/v1/runs/{child}"), &json!({"forkOf": parent})).await;
        assert_eq!(refused.status(), status, "{child} of {parent}");
        assert_eq!(refusal(refused).await["error"], code, "{child} of {parent}");
    }
    assert_eq!(owner.get("/v1/runs/new").await.status(), 404);
    let reader = host.with_scope("acme", Scope::AssetsRead);
    assert_eq!(reader.put("/v1/runs/c", &json!({"forkOf": "b"})).await.status(), 403);
}
