//! Writers that were given up by the others, and come back.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use super::broken::head;
use super::{OCTETS, append, assets, begun, bytes_of, look, request, told};
use crate::harness::bytes::noise;
use crate::harness::process::eventually;
use crate::harness::raw::Wire;
use crate::harness::{Caller, Host, credential};

/// Longer than a lease lives that nobody renews.
const LAPSED: Duration = Duration::from_secs(61);

/// A writer in the middle of its PATCH whose lease has lapsed meanwhile: its process stood still.
async fn asleep(host: &Host, url: &str, bytes: &[u8]) -> Wire {
    let mut wire = Wire::open(host.address()).await;
    wire.send(&head(url, 0, bytes.len(), "Connection: close\r\n")).await;
    wire.send(&bytes[..bytes.len() / 2]).await;
    host.upload_begins().await;
    host.advance(LAPSED);
    wire
}

async fn reserved(caller: &Caller<'_>) -> u64 {
    let usage: Value = caller.get("/v1/usage").await.json().await.expect("JSON");
    usage["reservedBytes"].as_u64().expect("a number")
}

#[tokio::test]
async fn a_writer_that_has_lost_its_lease_appends_nothing_more() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (first, second) = (noise(200_000, 1), noise(200_000, 2));
    let url = begun(&owner, first.len(), &[]).await;
    let mut wire = asleep(&host, &url, &first).await;

    let last = append(&owner, &url, 0, &second).await;
    assert_eq!(last.status, 204, "{last:?}");
    wire.send(&first[100_000..]).await;

    assert_eq!(wire.hear(Duration::from_secs(20)).await.status(), 423);
    assert!(bytes_of(&owner, &look(&owner, &url).await).await == second);
    assert_eq!((assets(&owner).await, host.stored_blobs().await, host.staged_files()), (1, 1, 0));
}

#[tokio::test]
async fn what_is_given_up_behind_the_back_of_a_writer_stays_given_up() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = noise(200_000, 1);
    let url = begun(&owner, bytes.len(), &[]).await;
    let mut wire = asleep(&host, &url, &bytes).await;

    assert_eq!(told(request(&owner, Method::DELETE, &url)).await.status, 204);
    wire.send(&bytes[100_000..]).await;

    assert_eq!(wire.hear(Duration::from_secs(20)).await.status(), 423);
    assert_eq!((look(&owner, &url).await.status, assets(&owner).await, reserved(&owner).await), (404, 0, 0));
    assert!(host.becomes_bare().await);
}

#[tokio::test]
async fn an_upload_whose_writer_died_is_ended_by_the_sweep_and_gives_its_quota_back() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let url = begun(&owner, 100, &[]).await;
    append(&owner, &url, 0, &noise(30, 1)).await;
    let id = url.rsplit('/').next().expect("an id").parse().expect("an id");
    let tenant = mediakeep_storage::TenantId::parse("acme").expect("a tenant");
    host.advance(Duration::from_secs(24 * 3_600 - 30));
    let until = host.now().checked_add(jiff::SignedDuration::from_secs(60)).expect("a time");
    let dead = mediakeep_storage::resumable::Lease { holder: [7; 16], until };
    host.app().index.lease_resumable(&tenant, id, dead, host.now()).await.expect("a lease");

    host.advance(Duration::from_secs(59));
    assert_eq!((host.sweep().await.expired_uploads, reserved(&owner).await), (0, 100), "its lease still lives");
    host.advance(Duration::from_secs(1));
    assert_eq!((host.sweep().await.expired_uploads, reserved(&owner).await), (1, 0));
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn bytes_of_an_upload_of_whose_name_nobody_has_heard_are_not_kept() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let mut wire = Wire::open(host.address()).await;
    let head = format!(
        "POST /v1/uploads HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nTus-Resumable: 1.0.0\r\n\
         Content-Type: {OCTETS}\r\nUpload-Length: 300000\r\nContent-Length: 300000\r\n\r\n",
        credential("acme", "all")
    );
    wire.send(head.as_bytes()).await;
    wire.send(&noise(100_000, 1)).await;
    host.upload_begins().await;
    assert_eq!(reserved(&owner).await, 300_000);
    drop(wire);

    eventually(async || reserved(&owner).await == 0).await;
    assert!(host.becomes_bare().await);
}
