//! The sweep: what it ends, what it removes, what it leaves alone, and what is left afterwards.

use std::path::Path;
use std::time::Duration;

use mediakeep::config::units::Span;
use mediakeep_storage::index::AssetQuery;
use serde_json::Value;

use crate::harness::Host;
use crate::harness::bytes::{noise, png};
use crate::retention::{DAY, keep, later};

#[tokio::test]
async fn ending_an_asset_takes_its_bytes_at_once_however_many_others_wait_for_the_sweep() {
    let host = Host::with(|settings| settings.retention.tombstone_bytes = Span::seconds(1)).await;
    let owner = host.owner("acme");
    for seed in 0..300 {
        owner.upload_loose(noise(64, seed)).await;
    }
    host.advance(DAY);
    while host.app().index.due(host.now(), 1).await.expect("looks").pop().is_some() {
        settle(&host).await;
    }
    host.advance(DAY);
    let last = owner.upload_loose(noise(64, 999)).await;

    assert_eq!(owner.delete(&format!("/v1/assets/{}", last.id)).await.status(), 204);

    assert_eq!(host.stored_blobs().await, 300, "the others wait, this one does not");
    host.sweep().await;
    assert_eq!(host.stored_blobs().await, 0);
    assert!(host.verify().await.is_clean());
}

/// What a sweep does before it comes to the bytes.
async fn settle(host: &Host) {
    let terms = host.app().terms(&mediakeep_storage::TenantId::parse("acme").expect("a tenant"));
    for look in host.app().index.due(host.now(), 1000).await.expect("looks") {
        while !host.app().index.settle(&look, 256, &terms, "test", host.now()).await.expect("a settlement").done {}
    }
}

#[tokio::test]
async fn bytes_that_two_runs_share_live_as_long_as_the_longer_and_each_url_as_long_as_its_own_run() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = png(9, 9);
    let first = owner.upload_to("run-a", bytes.clone()).await;
    keep(&owner, "run-a", &later(&host, 30 * DAY)).await;
    host.advance(29 * DAY);
    let second = owner.upload_to("run-b", bytes.clone()).await;
    keep(&owner, "run-b", &later(&host, 30 * DAY)).await;
    assert_eq!(host.stored_blobs().await, 1);

    host.advance(2 * DAY);
    host.sweep().await;
    host.advance(2 * DAY);
    host.sweep().await;

    assert_eq!(host.stranger().get(&first.url).await.status(), 410);
    let answer = host.stranger().get(&second.url).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.bytes().await.expect("a body"), bytes);
    host.advance(30 * DAY);
    host.sweep().await;
    host.advance(DAY);
    host.sweep().await;
    assert_eq!(host.stored_blobs().await, 0);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn sending_the_bytes_again_before_they_go_takes_them_up_again() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = noise(5_000, 7);
    let first = owner.upload_loose(bytes.clone()).await;
    host.advance(DAY);
    assert_eq!(host.sweep().await.expired, 1);
    assert_eq!(host.stored_blobs().await, 1, "a tombstone's bytes stay a while");
    let blob = blobs(&host).await;

    host.advance(DAY / 2);
    let second = owner.upload_loose(bytes.clone()).await;
    host.advance(DAY / 2);
    host.sweep().await;

    assert_eq!(blobs(&host).await, blob, "the same blob");
    assert_eq!(host.stranger().get(&second.url).await.bytes().await.expect("a body"), bytes);
    assert_eq!(host.stranger().get(&first.url).await.status(), 410, "the tombstone stays one");
    assert!(host.verify().await.is_clean());
}

async fn blobs(host: &Host) -> Vec<String> {
    use futures_util::TryStreamExt;
    host.app().blobs.blobs().map_ok(|blob| blob.blob.to_string()).try_collect().await.expect("a list")
}

#[tokio::test]
async fn a_tombstone_loses_its_bytes_first_and_then_itself() {
    let host = Host::with(|settings| settings.retention.tombstone_record = Span::hours(10 * 24)).await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let loose = owner.upload_loose(png(4, 4)).await;
    keep(&owner, "run-1", &later(&host, 2 * DAY)).await;

    host.advance(2 * DAY);
    assert_eq!(host.sweep().await.expired, 2);
    host.advance(DAY - Duration::from_millis(1));
    host.sweep().await;
    assert_eq!(host.stored_blobs().await, 2);
    host.advance(Duration::from_millis(1));
    assert_eq!(host.sweep().await.removed_blobs, 2);
    assert_eq!(host.stored_blobs().await, 0);
    assert_eq!(host.stranger().get(&asset.url).await.status(), 410);

    host.advance(9 * DAY - Duration::from_millis(1));
    host.sweep().await;
    assert_eq!(host.stranger().get(&asset.url).await.status(), 410);
    host.advance(Duration::from_millis(1));
    assert_eq!(host.sweep().await.dropped, 2);
    for asset in [&asset, &loose] {
        assert_eq!(host.stranger().get(&asset.url).await.status(), 404);
        assert_eq!(owner.get(&format!("/v1/assets/{}", asset.id)).await.status(), 404);
    }
    let run: Value = owner.get("/v1/runs/run-1").await.json().await.expect("JSON");
    assert_eq!(run["assets"], 0);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn ten_thousand_assets_follow_one_put() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let first = owner.upload(noise(40, 0)).await;
    // Each asset for itself would take minutes here: all but the first and the last are put straight into the index.
    crowd(&host, "run-1", 9_998).await;
    let last = owner.upload(noise(40, 1)).await;

    keep(&owner, "run-1", &later(&host, 40 * DAY)).await;
    for asset in [&first, &last] {
        assert_eq!(owner.show(asset).await["retainUntil"], later(&host, 40 * DAY));
    }
    host.advance(40 * DAY - Duration::from_millis(1));
    let report = host.sweep().await;
    assert_eq!((report.expired, report.kept), (0, 0), "nothing is even looked at");
    keep(&owner, "run-1", &later(&host, 40 * DAY)).await;
    host.advance(40 * DAY);
    // The service sweeps too, a minute after its start: whose sweep ends which is all one.
    host.sweep().await;
    assert_eq!(ended(&host, "run-1").await, 10_000);
    assert_eq!(host.stranger().get(&last.url).await.status(), 410);
}

/// How many assets of the run have expired.
async fn ended(host: &Host, run: &str) -> usize {
    let tenant = mediakeep_storage::TenantId::parse("acme").expect("a tenant");
    let terms = host.app().terms(&tenant);
    let (run, state) = (mediakeep_storage::RunId::parse(run).ok(), Some("expired".to_owned()));
    let query = AssetQuery { run, state, limit: usize::MAX, ..AssetQuery::default() };
    host.app().index.page(&tenant, &query, &terms).await.expect("a page").len()
}

/// So many publications of a crowd are under way at a time: what more at once do is the storage's own story.
const AT_ONCE: usize = 100;

/// Puts copies of the run's one asset into the index, all of them holding its blob.
pub(crate) async fn crowd(host: &Host, run: &str, count: usize) {
    use mediakeep_storage::audit::{AuditEvent, AuditKind};
    use mediakeep_storage::index::NewAsset;
    use mediakeep_storage::record::UploadIntent;
    use mediakeep_storage::{AssetId, BlobKey, RunId, TenantId};
    let (app, now) = (host.app(), host.now());
    let tenant = TenantId::parse("acme").expect("a tenant");
    let terms = app.terms(&tenant);
    let query = AssetQuery { run: RunId::parse(run).ok(), limit: 1, ..AssetQuery::default() };
    let page = app.index.page(&tenant, &query, &terms).await.expect("a page");
    let model = page.into_iter().next().expect("one asset").record;
    let publish = async |_| {
        let blob = BlobKey::generate();
        app.index.begin_upload(&tenant, UploadIntent { blob, alive_at: now, asset: None }).await.expect("an upload");
        let record = mediakeep_storage::AssetRecord { id: AssetId::generate(now), blob, ..model.clone() };
        let audit = AuditEvent::new(AuditKind::Ingest, "test", now);
        let asset = NewAsset { record, settled: None, recorded: None, discard_at: now, audit };
        app.index.publish(&tenant, asset, &terms, now).await.expect("an asset");
    };
    for step in 0..count.div_ceil(AT_ONCE) {
        futures_util::future::join_all((step * AT_ONCE..count.min((step + 1) * AT_ONCE)).map(publish)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_sweep_takes_what_is_being_sent_again() {
    let host = Host::with(|settings| {
        settings.retention.tombstone_bytes = Span::seconds(0);
        settings.retention.orphan_grace = Span::hours(1);
    })
    .await;
    let owner = host.owner("acme");
    let began = std::time::Instant::now();
    let sending = async |n: usize| {
        let mut sent = Vec::new();
        let mut round = 0;
        while began.elapsed() < Duration::from_secs(3) {
            // Four kinds of bytes between them, sent again and again, and ended again and again.
            let seed = ((n + round) % 4) as u64;
            let asset = owner.upload_loose(noise(2_000, seed)).await;
            match round % 3 {
                0 => sent.push((seed, asset)),
                _ => assert_eq!(owner.delete(&format!("/v1/assets/{}", asset.id)).await.status(), 204),
            }
            round += 1;
        }
        sent
    };
    let sweeping = async || {
        while began.elapsed() < Duration::from_secs(3) {
            host.sweep().await;
            tokio::task::yield_now().await;
        }
    };
    let ((), (), sent) = tokio::join!(sweeping(), sweeping(), futures_util::future::join_all((0..6).map(sending)));

    for (seed, asset) in sent.iter().flatten() {
        let answer = host.stranger().get(&asset.url).await;
        assert_eq!(answer.status(), 200, "{}", asset.id);
        assert_eq!(answer.bytes().await.expect("a body"), noise(2_000, *seed));
    }
    host.sweep().await;
    assert!(host.verify().await.is_clean());
    assert_eq!(host.staged_files(), 0);
    assert_eq!(host.stored_blobs().await, 4);
}

#[tokio::test]
async fn two_sweeps_at_once_end_each_asset_and_remove_each_blob_once() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for seed in 0..40 {
        owner.upload_loose(noise(100, seed)).await;
    }
    host.advance(DAY);
    let (one, two) = tokio::join!(host.sweep(), host.sweep());
    assert_eq!(one.expired + two.expired, 40);
    host.advance(DAY);
    let (one, two) = tokio::join!(host.sweep(), host.sweep());

    assert_eq!(one.failed_blobs + two.failed_blobs, 0);
    assert_eq!(one.removed_blobs + two.removed_blobs, 40, "none by both");
    assert_eq!(host.stored_blobs().await, 0);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn nothing_is_left_of_runs_that_came_and_went() {
    let host = Host::with(|settings| settings.retention.tombstone_record = Span::hours(24)).await;
    let owner = host.owner("acme");
    let near_start = owner.upload_to("stays", noise(64, 1)).await;
    keep(&owner, "stays", &later(&host, 4000 * DAY)).await;
    let before = entries(&host.folder().join("blobs"));
    for round in 0..5 {
        let runs = (0..20).map(|n| format!("run-{round}-{n}"));
        for run in runs {
            owner.upload_to(&run, noise(64, 100 + round)).await;
            owner.upload_to(&run, run.as_bytes()).await;
            keep(&owner, &run, &later(&host, DAY)).await;
        }
        host.advance(DAY);
        host.sweep().await;
    }
    for _ in 0..3 {
        host.advance(2 * DAY);
        host.sweep().await;
    }
    let after = entries(&host.folder().join("blobs"));

    assert_eq!(host.stranger().get(&near_start.url).await.status(), 200);
    assert_eq!(host.stored_blobs().await, 1);
    // A blob's folder is one of 256, whichever blobs come and go; the registry remembers a run's end, so that none is promised anew.
    let (folders, runs) = (256, 2 * 100);
    assert!(after <= before + folders + runs, "{before} files and folders became {after}");
    assert!(host.verify().await.is_clean());
}

/// How many files and folders there are below this one.
fn entries(folder: &Path) -> usize {
    let children = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    children.map(|path| 1 + if path.is_dir() { entries(&path) } else { 0 }).sum()
}
