//! Connections that break, and processes that die.

use std::time::Duration;

use mediakeep_storage::testing::FAULT_VARIABLE;
use reqwest::Method;
use serde_json::{Value, json};

use super::{OCTETS, append, assets, begun, bytes_of, look, offset};
use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server};
use crate::harness::raw::Wire;
use crate::harness::{Caller, Host, credential};

/// The head of a PATCH by acme's owner.
pub(super) fn head(url: &str, at: usize, length: usize, more: &str) -> Vec<u8> {
    let path = url.split_once("/v1/").map(|(_, path)| format!("/v1/{path}")).expect("a URL of ours");
    let credential = credential("acme", "all");
    let head = format!(
        "PATCH {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {credential}\r\nTus-Resumable: 1.0.0\r\n\
         Content-Type: {OCTETS}\r\nUpload-Offset: {at}\r\nContent-Length: {length}\r\n{more}\r\n"
    );
    head.into_bytes()
}

/// Where the upload goes on, once whoever wrote it has noticed that its client has gone.
pub(super) async fn settled(owner: &Caller<'_>, url: &str, expected: usize) -> usize {
    for _ in 0..500 {
        if offset(owner, url).await == expected {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    offset(owner, url).await
}

/// Appends, as often as somebody else still writes.
async fn patiently(owner: &Caller<'_>, url: &str, at: usize, bytes: &[u8]) -> crate::harness::told::Told {
    loop {
        let answer = append(owner, url, at, bytes).await;
        if answer.status != 423 {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_came_before_a_connection_broke_is_kept() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = noise(300_000, 1);
    let url = begun(&owner, bytes.len(), &[]).await;
    let mut wire = Wire::open(host.address()).await;
    wire.send(&head(&url, 0, bytes.len(), "")).await;
    wire.send(&bytes[..100_000]).await;
    drop(wire);

    assert_eq!(settled(&owner, &url, 100_000).await, 100_000);
    let last = patiently(&owner, &url, 100_000, &bytes[100_000..]).await;

    assert_eq!(last.status, 204, "{last:?}");
    assert!(bytes_of(&owner, &last).await == bytes);
    assert_eq!((host.stored_blobs().await, host.staged_files()), (1, 0));
}

#[tokio::test]
async fn what_came_with_a_checksum_before_a_connection_broke_is_not() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let url = begun(&owner, 10_000, &[]).await;
    let mut wire = Wire::open(host.address()).await;
    wire.send(&head(&url, 0, 10_000, "Upload-Checksum: sha1 AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n")).await;
    wire.send(&noise(5_000, 1)).await;
    host.upload_begins().await;
    drop(wire);

    for _ in 0..500 {
        if host.stored_blobs().await == 0 && host.staged_files() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let last = patiently(&owner, &url, 0, &noise(10_000, 1)).await;
    assert_eq!((last.status, last.header("upload-offset")), (204, "10000"), "{last:?}");
}

#[tokio::test]
async fn of_two_that_write_one_place_one_wins() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = noise(200_000, 1);
    let url = begun(&owner, bytes.len(), &[]).await;
    let mut wire = Wire::open(host.address()).await;
    wire.send(&head(&url, 0, bytes.len(), "Connection: close\r\n")).await;
    wire.send(&bytes[..50_000]).await;
    host.upload_begins().await;

    let second = append(&owner, &url, 0, &noise(200_000, 2)).await;
    assert_eq!((second.status, second.refusal()), (423, "upload_locked".into()));
    assert_eq!(super::told(super::request(&owner, Method::DELETE, &url)).await.status, 423);
    wire.send(&bytes[50_000..]).await;
    assert_eq!(wire.hear(Duration::from_secs(20)).await.status(), 204);

    assert!(bytes_of(&owner, &look(&owner, &url).await).await == bytes);
    let late = append(&owner, &url, 0, &noise(200_000, 2)).await;
    assert_eq!((late.status, late.refusal()), (409, "offset_mismatch".into()));
    assert_eq!(assets(&owner).await, 1);
}

#[tokio::test]
async fn many_that_write_at_once_make_what_one_of_them_sent() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let url = begun(&owner, 50_000, &[]).await;
    let sent = (0..6).map(async |n| append(&owner, &url, 0, &noise(50_000, n)).await.status);
    let statuses = futures_util::future::join_all(sent).await;

    let won: Vec<u64> = (0..6_u64).zip(&statuses).filter(|(_, status)| **status == 204).map(|(n, _)| n).collect();
    assert_eq!(won.len(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [204, 409, 423].contains(status)), "{statuses:?}");
    assert!(bytes_of(&owner, &look(&owner, &url).await).await == noise(50_000, won[0]));
}

#[tokio::test]
async fn a_writer_that_died_keeps_others_out_for_a_minute() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let url = begun(&owner, 100, &[]).await;
    let id = url.rsplit('/').next().expect("an id").parse().expect("an id");
    let tenant = mediakeep_storage::TenantId::parse("acme").expect("a tenant");
    let until = host.now().checked_add(jiff::SignedDuration::from_secs(60)).expect("a time");
    let dead = mediakeep_storage::resumable::Lease { holder: [7; 16], until };
    host.app().index.lease_resumable(&tenant, id, dead, host.now()).await.expect("a lease");

    assert_eq!(append(&owner, &url, 0, &noise(100, 1)).await.status, 423);
    host.advance(Duration::from_secs(60));
    assert_eq!(append(&owner, &url, 0, &noise(100, 1)).await.status, 204);
}

/// An upload of 200,000 bytes at a process that dies at that point of its last PATCH; what it is like at the next one.
async fn dies_at(point: &str) -> (Value, usize) {
    let place = Place::with("[retention]\norphan_grace = \"0s\"");
    let bytes = noise(200_000, 1);
    let mut command = place.command(&["serve"]);
    command.env(FAULT_VARIABLE, point);
    let mut server = place.start(command).await;
    let begin = server.request(Method::POST, "/v1/uploads").header("tus-resumable", "1.0.0");
    let begun = begin.header("upload-length", "200000").send().await.expect("an answer");
    let path = begun.headers()["location"].to_str().expect("text").trim_start_matches(&server.url("")).to_owned();
    let patch = |server: &Server, at: usize, bytes: &[u8]| {
        let patch = server.request(Method::PATCH, &path).header("content-type", OCTETS).header("upload-offset", at);
        patch.header("tus-resumable", "1.0.0").body(bytes.to_vec()).send()
    };
    patch(&server, 0, &bytes).await.expect_err("it dies");
    server.ended().await;

    let server = place.serve().await;
    let look = async || {
        loop {
            let seen = server.request(Method::HEAD, &path).header("tus-resumable", "1.0.0");
            let seen = seen.send().await.expect("an answer");
            // The dead one's lease has a minute to lapse.
            if seen.status() != 423 {
                return seen;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let mut seen = look().await;
    let kept = seen.headers()["upload-offset"].to_str().expect("text").parse().expect("a number");
    if kept < bytes.len() {
        loop {
            let answer = patch(&server, kept, &bytes[kept..]).await.expect("an answer");
            if answer.status() != 423 {
                assert_eq!(answer.status(), 204);
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        seen = look().await;
    }
    let id = seen.headers()["mediakeep-asset-id"].to_str().expect("text").to_owned();
    let content = server.request(Method::GET, &format!("/v1/assets/{id}/content")).send().await.expect("an answer");
    assert!(content.bytes().await.expect("bytes") == bytes, "{point}");
    let page: Value =
        server.request(Method::GET, "/v1/assets").send().await.expect("an answer").json().await.expect("JSON");
    assert!(server.stop().await.success());
    place.index().uploads_fall_silent().await;
    place.must_run(&["sweep"]);
    place.must_run(&["verify", "--deep"]);
    assert_eq!(place.blobs().len(), 1, "{point}: {:?}", place.blobs());
    (json!(page["assets"].as_array().expect("a list").len()), kept)
}

#[tokio::test]
async fn a_process_that_dies_before_a_part_is_noted_has_it_sent_again() {
    assert_eq!(dies_at("resumable.sealed").await, (json!(1), 0));
}

#[tokio::test]
async fn a_process_that_dies_before_the_end_has_it_made_by_the_next_who_looks() {
    assert_eq!(dies_at("resumable.appended").await, (json!(1), 200_000));
}

#[tokio::test]
async fn a_process_that_dies_in_the_middle_of_the_end_makes_one_asset() {
    assert_eq!(dies_at("publish.recorded").await, (json!(1), 200_000));
}

#[tokio::test]
async fn a_process_that_dies_after_the_end_has_made_one_asset() {
    assert_eq!(dies_at("publish.stored").await, (json!(1), 200_000));
}
