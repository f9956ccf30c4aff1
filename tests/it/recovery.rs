//! The store alone tells what there is: beside the bytes stands a record of every asset, run and reference, as it was last told.

use std::time::Duration;

use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::record::{AssetRecord, RunRecord, UploadIntent};
use mediakeep_storage::{AssetId, BlobKey, RunId, TenantId};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::harness::bytes::noise;
use crate::harness::{Asset, Host};

const DAY: Duration = Duration::from_secs(86_400);

fn acme() -> TenantId {
    TenantId::parse("acme").expect("a tenant")
}

fn id(asset: &Asset) -> AssetId {
    AssetId::parse(&asset.id).expect("an id")
}

async fn newest<T: DeserializeOwned>(host: &Host, of: RecordOf<'_>) -> T {
    let record = host.app().blobs.newest_record(&acme(), of).await.expect("a store").expect("a record");
    serde_json::from_slice(&record).expect("a row")
}

/// The asset's row, which the store has too, and once.
async fn row(host: &Host, asset: &Asset) -> AssetRecord {
    let row = host.app().index.find(&acme(), id(asset)).await.expect("an index").expect("a row");
    assert_eq!(newest::<AssetRecord>(host, RecordOf::Asset(id(asset))).await, row);
    row
}

#[tokio::test]
async fn what_a_run_quotes_is_in_the_store() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (one, other) = (owner.upload(noise(40, 1)).await, owner.upload(noise(40, 2)).await);
    let fork = RunId::parse("fork").expect("a run");
    for names in [json!([one.id]), json!([other.id, one.id]), json!([one.id, other.id])] {
        assert_eq!(owner.post("/v1/runs/fork/references", &json!({"assets": names})).await.status(), 200);
    }
    let unknown = json!({"assets": [one.id, AssetId::generate(host.now())]});
    assert_eq!(owner.post("/v1/runs/fork/references", &unknown).await.status(), 404);

    let mut quoted = host.app().blobs.references(&acme(), &fork).await.expect("the records");
    quoted.sort_by_key(|record| record.assets.len());
    let assets: Vec<_> = quoted.iter().map(|record| record.assets.clone()).collect();
    let mut both = vec![id(&one), id(&other)];
    both.sort();
    assert_eq!(assets, [vec![id(&one)], both]);
    assert!(quoted.iter().all(|record| record.run == fork && record.at == host.now()));
}

#[tokio::test]
async fn a_run_that_nobody_registered_is_in_the_store_and_its_assets_say_how_long() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let run = RunId::parse("run-1").expect("a run");
    let row = async || host.app().index.find_run(&acme(), &run).await.expect("an index").expect("a row");
    owner.upload(noise(40, 0)).await;
    let first = row().await;
    assert_eq!(newest::<RunRecord>(&host, RecordOf::Run(&run)).await, first);

    host.advance(DAY);
    let last = owner.upload(noise(40, 1)).await;

    assert_eq!(newest::<RunRecord>(&host, RecordOf::Run(&run)).await, first, "one record, however many assets");
    let asset = newest::<AssetRecord>(&host, RecordOf::Asset(id(&last))).await;
    assert_eq!((asset.run, asset.created_at), (Some(run.clone()), host.now()));
    let terms = host.app().terms(&acme());
    assert_eq!(row().await.end, RunRecord::referenced(run.clone(), asset.created_at, &terms).end);
}

#[tokio::test]
async fn the_end_of_an_asset_is_in_the_store() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let [deleted, swept, asked_for] = [1, 2, 3].map(|seed| owner.upload_loose(noise(40, seed)));
    let (deleted, swept, asked_for) = (deleted.await, swept.await, asked_for.await);

    assert_eq!(owner.delete(&format!("/v1/assets/{}", deleted.id)).await.status(), 204);
    host.advance(2 * DAY);
    assert_eq!(host.stranger().get(&asked_for.url).await.status(), 410);
    assert_eq!(host.sweep().await.expired, 1);

    for asset in [&deleted, &swept, &asked_for] {
        assert!(!row(&host, asset).await.is_live());
    }
    assert_eq!(host.recovery_records(), 3, "older records are gone");
}

#[tokio::test]
async fn an_upload_that_came_to_nothing_leaves_no_record() {
    let host = Host::start().await;
    let now = host.now();
    let kept = host.owner("acme").upload_loose(noise(40, 1)).await;
    // What a crash between the record and the publication leaves; and an asset that was made has a record to keep.
    for asset in [AssetId::generate(now), id(&kept)] {
        let intent = UploadIntent { blob: BlobKey::generate(), alive_at: now, asset: Some(asset) };
        host.app().index.begin_upload(&acme(), intent).await.expect("an announcement");
        let json = serde_json::to_vec(&row(&host, &kept).await).expect("JSON");
        host.app().blobs.put_record(&acme(), RecordOf::Asset(asset), 1, json).await.expect("a record");
    }
    assert_eq!(host.recovery_records(), 2);
    let host = host.restart().await;
    host.advance(DAY - Duration::from_secs(1));

    assert_eq!(host.sweep().await.removed_blobs, 2);
    assert_eq!(host.recovery_records(), 1);
    row(&host, &kept).await;
}
