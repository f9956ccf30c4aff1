//! How uploads end: given up, expired, refused; and what they have reserved until then.

use std::time::Duration;

use mediakeep::config::units::{Size, Span};
use reqwest::Method;
use serde_json::json;

use super::{append, assets, begun, create, look, offset, pair, request, told};
use crate::harness::bytes::{noise, png};
use crate::harness::{Caller, Host};

/// Bytes and assets that are used, and bytes that are reserved.
async fn used(caller: &Caller<'_>) -> (u64, u64, u64) {
    let usage: serde_json::Value = caller.get("/v1/usage").await.json().await.expect("JSON");
    let number = |name: &str| usage[name].as_u64().expect("a number");
    (number("bytes"), number("assets"), number("reservedBytes"))
}

#[tokio::test]
async fn an_upload_that_is_given_up_leaves_nothing() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let url = begun(&owner, 100, &[]).await;
    append(&owner, &url, 0, &noise(30, 1)).await;
    append(&owner, &url, 30, &noise(30, 2)).await;

    assert_eq!(told(request(&owner, Method::DELETE, &url)).await.status, 204);

    assert_eq!(look(&owner, &url).await.status, 404);
    assert_eq!(append(&owner, &url, 60, &noise(40, 1)).await.status, 404);
    assert_eq!(told(request(&owner, Method::DELETE, &url)).await.status, 404);
    assert_eq!(used(&owner).await, (0, 0, 0));
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn giving_up_what_is_finished_leaves_its_asset() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let url = begun(&owner, 100, &[]).await;
    append(&owner, &url, 0, &noise(100, 1)).await;

    assert_eq!(told(request(&owner, Method::DELETE, &url)).await.status, 204);

    assert_eq!((look(&owner, &url).await.status, assets(&owner).await), (404, 1));
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn an_upload_expires_after_its_last_byte_and_leaves_nothing() {
    let host = Host::with(|settings| settings.uploads.expire = Span::hours(2)).await;
    let owner = host.owner("acme");
    let url = begun(&owner, 100, &[]).await;
    host.advance(Duration::from_secs(7_199));
    let sent = append(&owner, &url, 0, &noise(30, 1)).await;
    assert_eq!(sent.status, 204);
    host.advance(Duration::from_secs(7_199));
    host.sweep().await;
    assert_eq!((offset(&owner, &url).await, used(&owner).await), (30, (0, 0, 100)));

    host.advance(Duration::from_secs(1));
    assert_eq!(look(&owner, &url).await.status, 404, "also before a sweep has come by");
    assert_eq!(host.sweep().await.expired_uploads, 1);

    assert_eq!((look(&owner, &url).await.status, used(&owner).await), (404, (0, 0, 0)));
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn no_sweep_takes_an_open_upload_before_the_grace() {
    let host = Host::with(|settings| {
        settings.uploads.expire = Span::seconds(1);
        settings.retention.orphan_grace = Span::hours(1);
    })
    .await;
    let owner = host.owner("acme");
    let url = begun(&owner, 100, &[]).await;
    append(&owner, &url, 0, &noise(30, 1)).await;

    host.advance(Duration::from_secs(3_599));
    assert_eq!((host.sweep().await.expired_uploads, host.stored_blobs().await), (0, 1));
    host.advance(Duration::from_secs(1));
    assert_eq!(host.sweep().await.expired_uploads, 1);
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_part_outlives_the_grace_of_uploads_that_fell_silent() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = noise(100, 1);
    let url = begun(&owner, 100, &[]).await;
    append(&owner, &url, 0, &bytes[..30]).await;

    host.advance(Duration::from_secs(20 * 3_600));
    host.sweep().await;

    let last = append(&owner, &url, 30, &bytes[30..]).await;
    assert_eq!(super::bytes_of(&owner, &last).await, bytes);
    host.advance(Duration::from_secs(23 * 3_600));
    host.sweep().await;
    assert_eq!(look(&owner, &url).await.header("mediakeep-asset-id"), last.header("mediakeep-asset-id"));
    host.advance(Duration::from_secs(2 * 3_600));
    host.sweep().await;
    assert_eq!(look(&owner, &url).await.status, 404, "what is finished is named as long as it would have been open");
}

#[tokio::test]
async fn what_is_announced_is_reserved_until_it_is_used() {
    let host = Host::with(|settings| settings.limits.tenant_bytes = Size(100)).await;
    let owner = host.owner("acme");
    let url = begun(&owner, 60, &[]).await;
    assert_eq!(used(&owner).await, (0, 0, 60));
    let refused = create(&owner, &[("upload-length", "41")]).await;
    assert_eq!((refused.status, refused.refusal()), (429, "rate_limited: quota".into()));

    let last = append(&owner, &url, 0, &noise(60, 1)).await;

    assert_eq!(last.status, 204, "what is reserved is not asked for twice: {last:?}");
    assert_eq!(used(&owner).await, (60, 1, 0));
    let deferred = create(&owner, &[("upload-defer-length", "1")]).await;
    let deferred = deferred.header("location");
    assert_eq!(append(&owner, deferred, 0, &noise(40, 1)).await.status, 204);
    assert_eq!(append(&owner, deferred, 40, &noise(1, 1)).await.status, 429);
    assert_eq!(told(request(&owner, Method::DELETE, deferred)).await.status, 204);
    assert_eq!(used(&owner).await, (60, 1, 0));
}

#[tokio::test]
async fn what_can_never_be_an_asset_ends_with_its_refusal() {
    let host = Host::with(|settings| settings.ingest.refuse_types = vec!["image/*".into()]).await;
    let owner = host.owner("acme");
    let picture = png(5, 5);
    let wrong = pair("sha256", &"0".repeat(64));
    for (metadata, status, code) in
        [("", 415, "unsupported_media_type"), (&wrong, 400, "validation_error: digest_mismatch")]
    {
        let url = begun(&owner, picture.len(), &[("upload-metadata", metadata)]).await;
        let refused = append(&owner, &url, 0, &picture).await;
        assert_eq!((refused.status, refused.refusal()), (status, code.to_owned()));
        assert_eq!((look(&owner, &url).await.status, used(&owner).await), (404, (0, 0, 0)));
        assert!(host.is_bare().await);
    }
}

#[tokio::test]
async fn a_run_that_is_erased_meanwhile_takes_nothing() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.put("/v1/runs/run-1", &json!({})).await;
    let url = begun(&owner, 10, &[("upload-metadata", &pair("runId", "run-1"))]).await;
    assert_eq!(owner.post("/v1/runs/run-1/erase", &json!({})).await.status(), 200);

    let refused = append(&owner, &url, 0, &noise(10, 1)).await;

    assert_eq!((refused.status, refused.refusal()), (409, "run_erased".into()));
    assert_eq!((look(&owner, &url).await.status, host.stored_blobs().await), (404, 0));
}
