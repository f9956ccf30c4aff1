//! What a tenant uses, after whatever may happen to a process or an index.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use mediakeep::config::units::Span;
use mediakeep_storage::record::UploadIntent;
use mediakeep_storage::{BlobKey, TenantId};
use reqwest::Method;
use serde_json::Value;

use crate::harness::Host;
use crate::harness::bytes::noise;
use crate::harness::index::Kind;
use crate::harness::process::{Place, Server, eventually};
use crate::quotas::{of_bytes, over_quota, send, used};

#[tokio::test]
async fn an_index_made_anew_knows_what_is_used() {
    let host = of_bytes(1_000).await;
    let owner = host.owner("acme");
    let ended = owner.upload_loose(noise(300, 1)).await;
    owner.upload(noise(400, 2)).await;
    assert_eq!(owner.delete(&format!("/v1/assets/{}", ended.id)).await.status(), 204);
    owner.upload(noise(400, 2)).await;
    let before = used(&owner).await;

    let (host, _) = host.rebuilt(Kind::of_this_process()).await;

    let owner = host.owner("acme");
    assert_eq!(before, (800, 2, 0));
    assert_eq!(used(&owner).await, before);
    over_quota(send(&owner, noise(201, 3)).await).await;
    assert_eq!(send(&owner, noise(200, 3)).await.status(), 201);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn what_a_killed_process_had_reserved_is_given_back_with_its_uploads() {
    let place = Place::with(
        "[limits]\ntenant_bytes = \"100 KiB\"\n[retention]\norphan_grace = \"0s\"\nsweep_interval = \"1s\"",
    );
    let server = place.serve().await;
    let half = endless(noise(60_000, 1));
    let request = server.request(Method::POST, "/v1/assets").header("content-type", "text/plain").body(half);
    let sending = tokio::spawn(request.send());
    let usage = async |server: &Server| {
        let answer = server.request(Method::GET, "/v1/usage").send().await.expect("an answer");
        answer.json::<Value>().await.expect("JSON")
    };
    eventually(async || usage(&server).await["reservedBytes"].as_u64() > Some(0)).await;
    server.kill().await;
    sending.abort();
    place.index().uploads_fall_silent().await;

    let server = place.serve().await;
    eventually(async || usage(&server).await["reservedBytes"] == 0).await;
    server.upload(noise(100 << 10, 2)).await;
    assert_eq!(usage(&server).await["bytes"], 100 << 10);
    assert!(server.stop().await.success());
    place.must_run(&["verify"]);
}

/// These bytes, and no end.
fn endless(bytes: Vec<u8>) -> reqwest::Body {
    reqwest::Body::wrap_stream(stream::iter([Ok::<_, std::io::Error>(bytes)]).chain(stream::pending()))
}

#[tokio::test]
async fn verify_names_a_sum_that_is_not_what_the_rows_come_to() {
    let place = Place::new();
    let server = place.serve().await;
    server.upload(noise(100, 1)).await;
    assert!(server.stop().await.success());
    place.must_run(&["verify"]);

    place.index().put_usage("acme", 70, 2).await;

    let found = place.run(&["verify"]);
    assert_eq!(found.code, 1, "{found:?}");
    let says = "acme: its use is kept as 70 bytes of 2 assets, and its rows come to 100 bytes of 1";
    assert!(found.stdout.contains(says), "{found:?}");
}

#[tokio::test]
async fn a_crashed_upload_counts_no_longer_than_its_grace() {
    let host = Host::with(|settings| {
        settings.limits.tenant_assets = 1;
        settings.retention.orphan_grace = Span::hours(1);
    })
    .await;
    let tenant = TenantId::parse("acme").expect("a tenant");
    let (blob, alive_at) = (BlobKey::generate(), host.now());
    let intent = UploadIntent { blob, alive_at, asset: None };
    let quota = host.app().quota(&tenant);
    host.app().index.begin_reserved(&tenant, intent, 10, quota).await.expect("a reservation");
    let owner = host.owner("acme");
    over_quota(send(&owner, noise(10, 1)).await).await;

    host.advance(Duration::from_secs(3_601));
    host.sweep().await;

    assert_eq!(used(&owner).await, (0, 0, 0));
    assert_eq!(send(&owner, noise(10, 1)).await.status(), 201);
}
