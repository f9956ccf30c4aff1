//! How artifacts end, and what becomes of them when what they name does.

use mediakeep::access::Scope;
use serde_json::json;

use super::{REPORT, as_a2a, bound, put, read};
use crate::harness::bytes::{noise, png};
use crate::harness::index::Kind;
use crate::harness::process::files;
use crate::harness::{Host, refusal};
use crate::retention::{DAY, keep, later};

#[tokio::test]
async fn an_artifact_lives_as_long_as_its_run() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    keep(&owner, "run-1", &later(&host, 10 * DAY)).await;
    let part = json!({"raw": "aGVsbG8=", "mediaType": "text/plain"});
    assert_eq!(put(&owner, REPORT, &json!({"parts": [{"text": "words"}, part]})).await.status, 201);
    keep(&owner, "run-1", &later(&host, 20 * DAY)).await;

    host.advance(19 * DAY);
    host.sweep().await;
    assert_eq!(read(&owner, REPORT, "").await.status, 200);
    host.advance(DAY);
    assert_eq!(host.sweep().await.expired, 1);

    assert_eq!(read(&owner, REPORT, "").await.status, 404);
    for file in files(&host.folder().join("blobs")) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(!text.contains("words"), "{}", file.display());
    }
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn an_artifact_alone_keeps_its_run_for_the_default_term() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    assert_eq!(put(&owner, REPORT, &json!({"parts": [{"text": "words"}]})).await.status, 201);

    host.advance(29 * DAY);
    host.sweep().await;
    assert_eq!(read(&owner, REPORT, "").await.status, 200);
    host.advance(DAY);
    host.sweep().await;
    assert_eq!(read(&owner, REPORT, "").await.status, 404);
    assert_eq!(owner.get("/v1/runs/run-1").await.status(), 200, "the run's row stays");
}

#[tokio::test]
async fn an_erased_run_takes_its_artifacts_with_it() {
    let host = Host::start().await;
    let (owner, reader) = (host.owner("acme"), host.with_scope("acme", Scope::ArtifactsRead));
    let shared = owner.upload_to("run-2", noise(300, 1)).await;
    let artifact = json!({"name": "mine", "parts": [{"text": "secret words"}, {"assetId": shared.id}]});
    assert_eq!(put(&owner, REPORT, &artifact).await.status, 201);

    let erased = owner.post("/v1/runs/run-1/erase", &json!({})).await;

    assert_eq!(erased.status(), 200);
    assert_eq!(read(&owner, REPORT, "").await.status, 404);
    assert_eq!(reader.get(&bound(&host, &shared.id)).await.status(), 404, "no artifact names it now");
    assert_eq!(owner.get(&bound(&host, &shared.id)).await.status(), 200, "another run references it");
    for artifact in [artifact, json!({"parts": [{"raw": "aGVsbG8=", "mediaType": "text/plain"}]})] {
        let refused = owner.put(REPORT, &artifact).await;
        assert_eq!((refused.status().as_u16(), refusal(refused).await["error"].clone()), (409, json!("run_erased")));
    }
    assert_eq!(host.stored_blobs().await, 1, "and nothing was stored for it");
    for file in files(&host.folder().join("blobs")) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(!text.contains("secret words"), "{}", file.display());
    }
    let (host, report) = host.rebuilt(Kind::of_this_process()).await;
    assert_eq!((report.is_whole(), report.artifacts), (true, 0), "{report:?}");
    assert_eq!(read(&host.owner("acme"), REPORT, "").await.status, 404, "erased ones stay erased");
}

#[tokio::test]
async fn a_part_whose_asset_is_over_stays_and_its_url_says_so() {
    let host = Host::start().await;
    let (owner, reader) = (host.owner("acme"), host.with_scope("acme", Scope::ArtifactsRead));
    keep(&owner, "run-1", &later(&host, 90 * DAY)).await;
    let erased = owner.upload_loose(png(3, 3)).await;
    let dead = owner.upload_loose(noise(300, 1)).await;
    host.advance(DAY);
    host.sweep().await;
    assert_eq!(owner.show(&dead).await["state"], "expired");
    let alive = owner.upload_loose(noise(300, 2)).await;
    let parts = [&erased, &dead, &alive].map(|asset| json!({"assetId": asset.id, "filename": "a.bin"}));

    let told = put(&owner, REPORT, &json!({"parts": parts})).await;

    assert_eq!(told.status, 201, "the dead are named as tombstones");
    assert_eq!(owner.show(&dead).await["state"], "expired", "and not revived");
    assert_eq!(owner.delete(&format!("/v1/assets/{}?erase=true", erased.id)).await.status(), 200);
    let a2a = as_a2a(&owner, REPORT).await;
    let right = json!({"url": bound(&host, &erased.id), "mediaType": "image/png", "filename": "a.bin"});
    assert_eq!((a2a["parts"].as_array().map(Vec::len), &a2a["parts"][0]), (Some(3), &right));
    for (asset, status) in [(&erased, 410), (&dead, 410), (&alive, 200)] {
        assert_eq!(reader.get(&bound(&host, &asset.id)).await.status(), status);
    }
}

#[tokio::test]
async fn a_fork_has_no_artifacts_of_its_parent() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    assert_eq!(put(&owner, REPORT, &json!({"parts": [{"text": "words"}]})).await.status, 201);
    assert_eq!(owner.put("/v1/runs/child", &json!({"forkOf": "run-1"})).await.status(), 200);

    assert_eq!(owner.get("/v1/runs/child/artifacts/report").await.status(), 404);
}

#[tokio::test]
async fn artifacts_come_back_from_the_store_alone() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (one, two) = (owner.upload(png(3, 3)).await, owner.upload(png(4, 4)).await);
    let other = "/v1/runs/run-2/artifacts/other";
    put(&owner, REPORT, &json!({"parts": [{"assetId": one.id}, {"text": "first"}]})).await;
    put(&owner, REPORT, &json!({"name": "Last", "parts": [{"assetId": two.id}, {"data": {"a": [null]}}]})).await;
    put(&owner, other, &json!({"parts": [{"raw": "aGVsbG8=", "mediaType": "text/plain"}]})).await;
    put(&host.owner("globex"), REPORT, &json!({"parts": [{"text": "theirs"}]})).await;
    let before = [as_a2a(&owner, REPORT).await, as_a2a(&owner, other).await, read(&owner, REPORT, "").await.json()];

    let (host, report) = host.rebuilt(Kind::of_this_process()).await;

    assert_eq!((report.is_whole(), report.artifacts), (true, 3), "{report:?}");
    let (owner, reader) = (host.owner("acme"), host.with_scope("acme", Scope::ArtifactsRead));
    let after = [as_a2a(&owner, REPORT).await, as_a2a(&owner, other).await, read(&owner, REPORT, "").await.json()];
    assert_eq!(after, before);
    assert_eq!(reader.get(&bound(&host, &two.id)).await.status(), 200);
    assert_eq!(reader.get(&bound(&host, &one.id)).await.status(), 404, "named by what was put before");
    assert_eq!(put(&owner, REPORT, &json!({"parts": [{"text": "x"}]})).await.status, 200, "it replaces");
    host.advance(31 * DAY);
    host.sweep().await;
    assert_eq!(read(&owner, REPORT, "").await.status, 404);
}
