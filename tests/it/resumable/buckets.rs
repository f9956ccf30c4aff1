//! Uploads in parts whose bytes lie in a bucket: of one that is slow, that refuses, and that does not abort what it was told to.

use std::time::Duration;

use futures_util::future::join_all;
use mediakeep_storage::BlobKey;
use mediakeep_storage::TenantId;
use mediakeep_storage::record::UploadIntent;
use mediakeep_storage::testing::{Misdeed, What};
use reqwest::Method;

use super::{append, begun, bytes_of, create, look, offset, request, told};
use crate::harness::Host;
use crate::harness::bytes::noise;
use crate::harness::store::is_a_bucket_for;
use crate::harness::told::Told;

/// More than two parts of the bucket's.
const LARGE: usize = 20 << 20;

/// Until the end of the story.
const ALWAYS: usize = 1_000_000;

fn misbehave(host: &Host, method: &'static str, names: &'static str, what: What) {
    host.bucket().misbehave(Misdeed { method, names, times: ALWAYS, what });
}

/// A number among the metrics.
async fn metric(host: &Host, name: &str) -> u64 {
    let text = reqwest::get(host.admin_url("/metrics")).await.expect("an answer").text().await.expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).expect("a metric of that name");
    line.parse().expect("a number")
}

async fn with_metrics() -> Host {
    Host::with(|settings| settings.server.admin_listen = "127.0.0.1:0".into()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_refuses_three_of_ten_and_is_slow_costs_no_byte() {
    if !is_a_bucket_for("resumable::buckets::a_bucket_that_refuses_three_of_ten_and_is_slow_costs_no_byte") {
        return;
    }
    let host = with_metrics().await;
    let owner = host.owner("acme");
    misbehave(&host, "PUT", "partNumber=2", What::Late(Duration::from_millis(300)));
    for method in ["PUT", "POST", "GET", "HEAD", "DELETE"] {
        misbehave(&host, method, "/blobs", What::RefuseSome { status: 503, of_a_hundred: 30 });
    }

    let large = async |seed| {
        let bytes = noise(LARGE, seed);
        let url = begun(&owner, LARGE, &[]).await;
        let first = append(&owner, &url, 0, &bytes[..LARGE / 2]).await;
        assert_eq!(first.status, 204, "{first:?}");
        let last = append(&owner, &url, LARGE / 2, &bytes[LARGE / 2..]).await;
        assert_eq!(last.status, 204, "{last:?}");
        assert!(bytes_of(&owner, &last).await == bytes);
    };
    let small = async |seed| {
        let asset = owner.upload(noise(1_000, seed)).await;
        assert_eq!(owner.get(&asset.url).await.bytes().await.expect("the bytes")[..], noise(1_000, seed)[..]);
    };
    join_all([large(1), large(2)]).await;
    join_all((10..20).map(small)).await;

    host.bucket().behave();
    host.sweep().await;
    assert!(host.verify().await.is_clean());
    assert_eq!((host.stored_blobs().await, host.parts_in_bucket(), host.staged_files()), (12, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_the_bucket_refuses_is_a_503_and_none_of_it_is_kept() {
    if !is_a_bucket_for("resumable::buckets::a_part_that_the_bucket_refuses_is_a_503_and_none_of_it_is_kept") {
        return;
    }
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = noise(5 << 20, 1).repeat(8);
    let url = begun(&owner, bytes.len(), &[]).await;
    misbehave(&host, "PUT", "partNumber=3", What::Refuse(403));

    let refused = append(&owner, &url, 0, &bytes).await;
    assert_eq!((refused.status, refused.header("retry-after").is_empty()), (503, false), "{refused:?}");
    host.bucket().behave();
    let kept = offset(&owner, &url).await;
    assert_eq!((kept, host.stored_blobs().await, host.parts_in_bucket()), (0, 0, 0));

    let last = patiently(&host, &url, kept, &bytes).await;
    assert!(bytes_of(&owner, &last).await == bytes);
    assert!(host.verify().await.is_clean());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_that_the_bucket_refuses_is_counted_and_tried_again_until_it_is_done() {
    if !is_a_bucket_for(
        "resumable::buckets::an_abort_that_the_bucket_refuses_is_counted_and_tried_again_until_it_is_done",
    ) {
        return;
    }
    let host = with_metrics().await;
    let owner = host.owner("acme");
    let url = begun(&owner, 2 * LARGE, &[]).await;
    misbehave(&host, "PUT", "partNumber=3", What::Refuse(403));
    misbehave(&host, "DELETE", "uploadId=", What::Refuse(403));
    assert_eq!(append(&owner, &url, 0, &noise(2 * LARGE, 1)).await.status, 503);
    assert!(host.parts_in_bucket() > 0);
    let unconfirmed = metric(&host, "mediakeep_store_aborts_unconfirmed_total").await;
    assert!(unconfirmed > 0);

    // The sweep comes upon it once it has shown no life for longer than the grace.
    host.advance(Duration::from_secs(2 * 3_600));
    assert_eq!(host.sweep().await.failed_blobs, 1);
    assert!(metric(&host, "mediakeep_store_aborts_unconfirmed_total").await > unconfirmed);
    assert_eq!(
        metric(&host, "mediakeep_uploads_left_over").await,
        1,
        "the host's clock is a day ahead of the bucket's"
    );
    assert!(host.parts_in_bucket() > 0);

    host.bucket().behave();
    assert_eq!(host.sweep().await.failed_blobs, 0);
    assert_eq!(metric(&host, "mediakeep_uploads_left_over").await, 0);
    assert_eq!((host.parts_in_bucket(), host.staged_files()), (0, 0));
    assert_eq!(told(request(&owner, Method::DELETE, &url)).await.status, 204);
    assert!(host.is_bare().await, "its quota is free again, and nothing is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_nobody_goes_on_with_leaves_nothing_in_the_bucket() {
    if !is_a_bucket_for("resumable::buckets::an_upload_that_nobody_goes_on_with_leaves_nothing_in_the_bucket") {
        return;
    }
    let host = Host::start().await;
    let owner = host.owner("acme");
    let url = begun(&owner, 2 * LARGE, &[]).await;
    assert_eq!(append(&owner, &url, 0, &noise(LARGE, 1)).await.status, 204);
    assert_eq!(host.stored_blobs().await, 1);

    host.advance(Duration::from_secs(24 * 3_600));
    assert_eq!(host.sweep().await.expired_uploads, 1);

    assert_eq!(look(&owner, &url).await.status, 404);
    assert!(host.is_bare().await);
    assert_eq!(host.parts_in_bucket(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_that_could_not_be_read_are_there_to_be_joined_again_and_nothing_else_is() {
    if !is_a_bucket_for(
        "resumable::buckets::pieces_that_could_not_be_read_are_there_to_be_joined_again_and_nothing_else_is",
    ) {
        return;
    }
    let host = Host::start().await;
    let owner = host.owner("acme");
    let piece = begun(&owner, 1_000, &[("upload-concat", "partial")]).await;
    append(&owner, &piece, 0, &noise(1_000, 1)).await;
    let concat = format!("final;{piece}");
    misbehave(&host, "GET", "/b/", What::Refuse(403));

    assert_eq!(create(&owner, &[("upload-concat", &concat)]).await.status, 503);

    let tenant = TenantId::parse("acme").expect("a tenant");
    let used = host.app().index.usage(&tenant).await.expect("an index");
    assert_eq!((used.reserved_assets, used.reserved_bytes), (1, 1_000), "the piece alone");
    host.bucket().behave();
    let made = create(&owner, &[("upload-concat", &concat)]).await;
    assert_eq!(made.status, 201);
    assert_eq!(bytes_of(&owner, &made).await, noise(1_000, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_index_has_forgotten_is_taken_back_and_what_goes_on_is_not() {
    if !is_a_bucket_for("resumable::buckets::what_the_index_has_forgotten_is_taken_back_and_what_goes_on_is_not") {
        return;
    }
    let host = with_metrics().await;
    let (app, tenant) = (host.app(), TenantId::parse("acme").expect("a tenant"));
    let mut going_on = Vec::new();
    for announced in [false, true] {
        let blob = BlobKey::generate();
        if announced {
            let intent = UploadIntent { blob, alive_at: host.now(), asset: None };
            app.index.begin_upload(&tenant, intent).await.expect("an index");
        }
        let mut staging = app.blobs.stage(&tenant, blob);
        staging.write(noise(LARGE, 1).into()).await.expect("room");
        going_on.push(staging);
    }
    let lost = going_on.remove(0);
    drop(lost);
    assert_eq!(host.staged_files(), 2);

    host.sweep().await;

    assert_eq!(host.staged_files(), 1, "the host's clock is a day ahead of the bucket's");
    assert_eq!(metric(&host, "mediakeep_uploads_left_over").await, 1);
    let sealed = going_on.remove(0).seal().await.expect("it goes on");
    assert_eq!((sealed.bytes, host.parts_in_bucket()), (LARGE as u64, 0));
}

/// Appends as soon as the one before has given its lease back.
async fn patiently(host: &Host, url: &str, at: usize, bytes: &[u8]) -> Told {
    loop {
        let answer = append(&host.owner("acme"), url, at, bytes).await;
        if answer.status != 423 {
            assert_eq!(answer.status, 204, "{answer:?}");
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
