//! What a scrub, and whatever else holds a body, may take of the machine.

use std::time::Duration;

use data_encoding::BASE64;
use mediakeep::config::units::Size;
use serde_json::json;

use super::{CHECK, SCRUB, bundle, scrubbed, send};
use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server, files};
use crate::harness::raw::{Heard, Wire};
use crate::harness::{Host, credential};

const PATIENCE: Duration = Duration::from_secs(20);

const NORMALIZE: &str = "/v1/content-parts/normalize";

/// The head of a request with a body of so many bytes.
fn head(path: &str, credential: &str, length: usize) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {credential}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
    .into_bytes()
}

/// Sends the head and all of the body but its last byte.
async fn begin(host: &Host, path: &str, body: &str) -> Wire {
    let mut wire = Wire::open(host.address()).await;
    wire.send(&head(path, &credential("acme", "all"), body.len())).await;
    wire.send(&body.as_bytes()[..body.len() - 1]).await;
    wire
}

/// Sends the last byte, which is that of an object.
async fn end(mut wire: Wire) -> Heard {
    wire.send(b"}").await;
    wire.hear(PATIENCE).await
}

/// Waits until a scrub has a place.
async fn begun(host: &Host) {
    let slots = host.app().upload_slots(&"acme".parse().expect("a tenant"));
    for _ in 0..1_000 {
        if slots.available_permits() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    unreachable!("a scrub whose body comes has a place within five seconds");
}

#[tokio::test]
async fn a_scrub_has_one_of_the_tenants_places_from_its_first_byte_to_its_last() {
    let host = Host::with(|settings| settings.limits.uploads_per_tenant = 1).await;
    let (owner, other) = (host.owner("acme"), host.owner("globex"));
    let media = bundle(
        &json!([{"base64": "aGVsbG8=", "mimeType": "text/plain"}, {"base64": "aGV5", "mimeType": "text/plain"}]),
    );
    let running = begin(&host, SCRUB, &media.to_string()).await;
    begun(&host).await;

    let second = send(&owner, SCRUB, &media.to_string()).await;

    assert_eq!((second.status, second.refusal()), (429, "rate_limited: rate".into()));
    assert!(!second.header("retry-after").is_empty());
    assert_eq!(owner.raw("", "text/plain", "hello").await.status(), 429, "the place is one of the tenant's uploads");
    assert_eq!(scrubbed(&other, &media).await["scrub"]["stored"], 2, "another tenant has places of its own");
    assert_eq!(send(&owner, CHECK, &media.to_string()).await.status, 200, "a check takes none");
    let told = end(running).await;
    assert!(told.status() == 200 && told.body().contains("\"stored\":2"), "{}", told.0);
    assert_eq!(scrubbed(&owner, &media).await["scrub"]["stored"], 0, "the place is free again");
}

#[tokio::test]
async fn a_scrub_whose_sender_goes_away_leaves_nothing_and_gives_its_place_back() {
    let host = Host::with(|settings| settings.limits.uploads_per_tenant = 1).await;
    let media = bundle(&json!({"base64": BASE64.encode(&noise(300_000, 1)), "mimeType": "text/plain"}));
    let running = begin(&host, SCRUB, &media.to_string()).await;
    begun(&host).await;

    drop(running);

    for _ in 0..1_000 {
        if host.app().upload_slots(&"acme".parse().expect("a tenant")).available_permits() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(host.becomes_bare().await);
    assert_eq!(scrubbed(&host.owner("acme"), &media).await["scrub"]["stored"], 1);
}

#[tokio::test]
async fn a_scrub_for_which_there_is_no_room_is_refused_and_leaves_nothing() {
    let host = Host::with(|settings| settings.store.min_free = Size(u64::MAX / 2)).await;
    let told =
        send(&host.owner("acme"), SCRUB, &bundle(&json!({"base64": "aGVsbG8=", "mimeType": "text/plain"})).to_string())
            .await;
    assert_eq!((told.status, told.refusal()), (507, "insufficient_storage".into()));
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_scrub_that_a_crash_ends_leaves_no_file_behind() {
    let place = Place::new();
    let server = place.serve().await;
    server.upload(noise(1_000, 1)).await;
    let mut before = files(&place.file("blobs"));
    let body = format!("{{\"run\":{{\"runId\":\"r\"}},\"m\":{{\"base64\":\"{}\"}}", BASE64.encode(&noise(6 << 20, 2)));
    let mut wire = Wire::open(([127, 0, 0, 1], place.port()).into()).await;
    wire.send(&head(SCRUB, &Server::key(), body.len() + 1)).await;
    wire.send(body.as_bytes()).await;

    let mut during = files(&place.file("blobs"));
    server.kill().await;

    let mut after = files(&place.file("blobs"));
    for list in [&mut before, &mut during, &mut after] {
        list.sort();
    }
    assert_eq!(during, before, "the bundle lies in a file without a name");
    assert_eq!(after, before);
}

#[tokio::test]
async fn bodies_that_are_held_whole_have_a_bound_together() {
    let host = Host::with(|settings| settings.limits.max_json_bytes = Size(3 << 20)).await;
    let owner = host.owner("acme");
    let long = json!({"messages": [{"content": "x".repeat(2_900_000)}], "runId": "r"}).to_string();
    let short = json!({"messages": [{"content": "x".repeat(900_000)}], "runId": "r"}).to_string();
    // Two of the longest, and what of a third is as short as any JSON may be.
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(begin(&host, NORMALIZE, &long).await);
    }
    for _ in 0..1_000 {
        if host.app().held.left() < 1 << 20 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let told = send(&owner, NORMALIZE, &long).await;

    assert_eq!((told.status, told.refusal()), (503, "service_unavailable".into()));
    assert!(!told.header("retry-after").is_empty());
    assert_eq!(send(&owner, NORMALIZE, &short).await.status, 200, "what is short is always taken");
    for wire in held {
        let told = end(wire).await;
        assert_eq!(told.status(), 200, "{}", told.0);
    }
    assert_eq!(send(&owner, NORMALIZE, &long).await.status, 200, "there is room again");
}
