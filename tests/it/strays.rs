//! Sealed bytes that no row names: those of nobody go, those that a recovery record names are waited for.

use std::time::{Duration, SystemTime};

use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::record::AssetRecord;
use mediakeep_storage::{AssetId, BlobKey, TenantId};

use crate::harness::bytes::noise;
use crate::harness::index::Kind;
use crate::harness::{Asset, Host, process};
use crate::retention::DAY;

const HOUR: Duration = Duration::from_secs(3_600);

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).expect("a tenant")
}

/// Bytes that were sealed so long ago under a key, and of which the index hears nothing.
async fn lay(host: &Host, owner: &str, blob: BlobKey, bytes: &[u8], ago: Duration) {
    let mut staging = host.app().blobs.stage(&tenant(owner), blob);
    staging.write(bytes.to_vec().into()).await.expect("room");
    staging.seal().await.expect("a sealed blob");
    let files = process::files(&host.folder().join("blobs/t").join(tenant(owner).prefix()).join("b"));
    let name = blob.to_string();
    let file = files.iter().find(|file| file.file_name().is_some_and(|found| *found == *name)).expect("a file of it");
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(host.now().as_second().unsigned_abs()) - ago;
    let file = std::fs::File::options().write(true).open(file).expect("a file");
    file.set_modified(at).expect("a time");
}

async fn stray(host: &Host, owner: &str, ago: Duration) -> BlobKey {
    let blob = BlobKey::generate();
    lay(host, owner, blob, &noise(500, 7), ago).await;
    blob
}

async fn is_there(host: &Host, owner: &str, blob: BlobKey) -> bool {
    host.app().blobs.size(&tenant(owner), blob).await.expect("a store").is_some()
}

async fn row(host: &Host, asset: &Asset) -> AssetRecord {
    let id = AssetId::parse(&asset.id).expect("an id");
    host.app().index.find(&tenant("acme"), id).await.expect("an index").expect("a row")
}

/// Sweeps until what is announced now has had its grace.
async fn sweep_through_the_grace(host: &Host) {
    host.sweep().await;
    host.advance(2 * HOUR);
    host.sweep().await;
}

/// Writes the recovery record of an asset like this one, of which the index knows nothing, whose bytes lie there.
async fn put_record_of_another(host: &Host, like: &Asset, blob: BlobKey) -> AssetId {
    let record = AssetRecord { id: AssetId::generate(host.now()), blob, ..row(host, like).await };
    let json = serde_json::to_vec(&record).expect("JSON");
    host.app().blobs.put_record(&tenant("acme"), RecordOf::Asset(record.id), 1, json).await.expect("a record");
    record.id
}

#[tokio::test]
async fn old_bytes_of_which_nobody_knows_go_and_young_ones_wait_until_they_are_old() {
    let host = Host::start().await;
    let kept = host.owner("acme").upload(noise(500, 1)).await;
    let (old, young) = (stray(&host, "acme", 25 * HOUR).await, stray(&host, "acme", 20 * HOUR).await);
    assert_eq!(host.verify().await.pending.len(), 2);

    assert_eq!(host.sweep().await.strays, 1);
    assert!(is_there(&host, "acme", old).await, "not before the grace for orphans");
    host.advance(2 * HOUR);
    assert_eq!(host.sweep().await.removed_blobs, 1);
    assert_eq!((is_there(&host, "acme", old).await, is_there(&host, "acme", young).await), (false, true));

    // A day after the last look the young ones are old.
    host.advance(22 * HOUR);
    sweep_through_the_grace(&host).await;
    assert!(!is_there(&host, "acme", young).await);
    assert_eq!(host.stranger().get(&kept.url).await.status(), 200);
    let found = host.verify().await;
    assert!(found.is_clean() && found.pending.is_empty(), "{found:?}");
}

#[tokio::test]
async fn bytes_that_come_again_after_their_removal_go_again() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = noise(500, 1);
    let (deleted, erased) = (owner.upload_loose(bytes.clone()).await, owner.upload(noise(500, 2)).await);
    let blobs = [row(&host, &deleted).await.blob, row(&host, &erased).await.blob];
    assert_eq!(owner.delete(&format!("/v1/assets/{}", deleted.id)).await.status(), 204);
    assert_eq!(owner.delete(&format!("/v1/assets/{}?erase=true", erased.id)).await.status(), 200);
    assert_eq!(host.stored_blobs().await, 0);

    // A put that the store carries out behind the removal.
    for blob in blobs {
        lay(&host, "acme", blob, &bytes, 25 * HOUR).await;
    }
    sweep_through_the_grace(&host).await;

    assert_eq!(host.stored_blobs().await, 0);
    assert_eq!(host.stranger().get(&deleted.url).await.status(), 410, "the tombstone stays");
}

#[tokio::test]
async fn bytes_that_a_recovery_record_names_stay_until_an_index_is_made_anew_that_knows_them() {
    let host = Host::with(|settings| settings.server.admin_listen = "127.0.0.1:0".into()).await;
    let known = host.owner("acme").upload(noise(500, 7)).await;
    let (named, nobodys) = (stray(&host, "acme", 3 * DAY).await, stray(&host, "acme", 3 * DAY).await);
    let unknown = put_record_of_another(&host, &known, named).await;
    assert_eq!(host.owner("acme").get(&format!("/v1/assets/{unknown}")).await.status(), 404);

    sweep_through_the_grace(&host).await;
    host.advance(2 * DAY);
    sweep_through_the_grace(&host).await;

    assert_eq!((is_there(&host, "acme", named).await, is_there(&host, "acme", nobodys).await), (true, false));
    assert_eq!(host.verify().await.recorded, [(tenant("acme"), named)]);
    let metrics = reqwest::get(host.admin_url("/metrics")).await.expect("an answer").text().await.expect("text");
    assert!(metrics.contains("mediakeep_blobs_without_row 1\n"), "{metrics}");
    let (host, report) = host.rebuilt(Kind::of_this_process()).await;
    assert_eq!((report.assets, report.orphans), (2, 0));
    let content = host.owner("acme").get(&format!("/v1/assets/{unknown}/content")).await;
    assert_eq!(content.bytes().await.expect("the bytes")[..], noise(500, 7)[..]);
}

#[tokio::test]
async fn where_a_record_does_not_read_or_misses_its_bytes_no_stray_of_its_tenant_goes() {
    let host = Host::start().await;
    let known = host.owner("acme").upload(noise(500, 1)).await;
    let mut strays = Vec::new();
    for owner in ["acme", "globex", "Acme"] {
        strays.push((owner, stray(&host, owner, 3 * DAY).await));
    }
    let unreadable = host.app().blobs.put_record(&tenant("globex"), RecordOf::Epoch, 1, b"{".to_vec()).await;
    unreadable.expect("a record");
    // Its bytes may be the stray ones under another key.
    put_record_of_another(&host, &known, BlobKey::generate()).await;

    sweep_through_the_grace(&host).await;

    for (owner, blob) in strays {
        assert_eq!(is_there(&host, owner, blob).await, owner != "Acme", "{owner}");
    }
    assert_eq!(host.verify().await.recorded, []);
}
