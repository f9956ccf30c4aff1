//! How much, and how many at a time.

use std::time::Duration;

use data_encoding::BASE64;
use mediakeep::config::units::Size;
use mediakeep_storage::TenantId;
use serde_json::json;

use crate::harness::bytes::noise;
use crate::harness::form::{self, Form};
use crate::harness::raw::{self, Wire};
use crate::harness::{Caller, Host, asset, refusal};

const LIMIT: usize = 100_000;

async fn small() -> Host {
    Host::with(|settings| settings.limits.max_upload_bytes = Size(LIMIT as u64)).await
}

/// The bytes in every kind of body, with and without a length said before.
async fn send_in_every_kind(owner: &Caller<'_>, bytes: &[u8]) -> Vec<reqwest::Response> {
    let inline = json!({"base64": BASE64.encode(bytes)}).to_string().into_bytes();
    let mut answers = Vec::new();
    for (mime_type, body) in [
        ("application/octet-stream", bytes.to_vec()),
        (form::TYPE, Form::new().file(bytes).end()),
        ("application/json", inline),
    ] {
        for chunked in [false, true] {
            let pieces = body.chunks(8_192).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>();
            let body = match chunked {
                true => reqwest::Body::wrap_stream(futures_util::stream::iter(pieces)),
                false => body.clone().into(),
            };
            answers.push(owner.raw("", mime_type, body).await);
        }
    }
    answers
}

#[tokio::test]
async fn one_byte_over_the_limit_is_too_many_in_every_kind_of_body() {
    let host = small().await;
    for answer in send_in_every_kind(&host.owner("acme"), &noise(LIMIT + 1, 1)).await {
        assert_eq!(answer.status(), 413);
        let body = refusal(answer).await;
        assert_eq!(body["error"], "payload_too_large");
        assert_eq!(body["details"], json!({"limit": LIMIT}));
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn the_limit_itself_is_allowed() {
    let host = small().await;
    for answer in send_in_every_kind(&host.owner("acme"), &noise(LIMIT, 1)).await {
        assert_eq!(asset(answer).await.answer["asset"]["bytes"], LIMIT);
    }
}

#[tokio::test]
async fn a_limit_that_was_raised_holds() {
    let host = Host::with(|settings| settings.limits.max_upload_bytes = Size::mib(54)).await;
    let owner = host.owner("acme");
    for mime_type in ["application/octet-stream", form::TYPE] {
        let body = |bytes: Vec<u8>| if mime_type == form::TYPE { Form::new().file(&bytes).end() } else { bytes };

        let fits = owner.raw("", mime_type, body(vec![7; 53 << 20])).await;
        let too_large = owner.raw("", mime_type, body(vec![7; (54 << 20) + 1])).await;

        assert_eq!(asset(fits).await.answer["asset"]["bytes"], 53 << 20);
        assert_eq!(refusal(too_large).await["details"]["limit"], 54 << 20);
    }
}

#[tokio::test]
async fn the_refusal_arrives_although_the_client_is_still_sending() {
    let host = small().await;
    let more = b"Transfer-Encoding: chunked\r\n".as_slice();
    let head = raw::head("acme", "application/octet-stream", std::str::from_utf8(more).expect("ASCII"));
    let mut wire = Wire::open(host.address()).await;
    wire.send(&head).await;
    for piece in noise(4 << 20, 2).chunks(64 << 10) {
        wire.send(&raw::chunk(piece)).await;
    }
    // There is no last chunk: the answer does not wait for it.
    let heard = wire.hear(Duration::from_secs(3)).await;

    assert_eq!(heard.status(), 413, "{}", heard.0);
    assert!(heard.0.to_lowercase().contains("\r\nconnection: close\r\n"), "{}", heard.0);
    assert!(heard.body().contains(&format!("\"limit\":{LIMIT}")), "{}", heard.0);
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn an_ordinary_client_hears_why_its_huge_body_is_refused() {
    let host = small().await;
    let owner = host.owner("acme");
    for mime_type in ["application/octet-stream", form::TYPE, "application/json"] {
        let pieces = std::iter::repeat_n(vec![b' '; 1 << 20], 40).map(Ok::<_, std::io::Error>);
        let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
        let answer = owner.raw("", mime_type, body).await;
        assert!(matches!(answer.status().as_u16(), 400 | 413), "{mime_type}: {}", answer.status());
        refusal(answer).await;
    }
    let known = owner.raw("", "application/octet-stream", vec![7; 40 << 20]).await;
    assert_eq!(known.status(), 413);
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_refused_body_that_is_read_away_leaves_the_connection_usable() {
    let host = small().await;
    let large = noise(1 << 20, 3);
    let request = |close: &str| {
        let head = raw::head("acme", "application/octet-stream", &format!("Content-Length: {}\r\n", large.len()));
        String::from_utf8(head).expect("ASCII").replace("Connection: close", close).into_bytes()
    };
    let (first, second) = (request("X-First: 1"), request("Connection: close"));

    let heard = raw::send(host.address(), &[&first, &large, &second, &large], Duration::from_secs(5)).await;

    assert_eq!(heard.0.matches("HTTP/1.1 413 ").count(), 2, "{}", heard.0);
}

#[tokio::test]
async fn json_has_a_limit_of_its_own() {
    let host = Host::with(|settings| settings.limits.max_json_bytes = Size(10_000)).await;
    let owner = host.owner("acme");
    let inline = |length: usize| {
        // Half of it is bytes, which have to be whole groups, and the rest makes up the length.
        let body = json!({"base64": "A".repeat(length / 8 * 4), "alt": ""}).to_string();
        format!("{body}{}", " ".repeat(length - body.len())).into_bytes()
    };
    let chunked =
        |body: Vec<u8>| reqwest::Body::wrap_stream(futures_util::stream::iter([Ok::<_, std::io::Error>(body)]));

    assert_eq!(owner.raw("", "application/json", inline(10_000)).await.status(), 201);
    for body in [inline(10_001).into(), chunked(inline(10_001))] {
        let answer = owner.raw("", "application/json", body).await;
        assert_eq!(answer.status(), 413);
        assert_eq!(refusal(answer).await["details"]["limit"], 10_000);
    }
    assert_eq!(owner.raw("", "application/octet-stream", noise(20_000, 1)).await.status(), 201);
}

#[tokio::test]
async fn a_tenant_has_only_so_many_uploads_at_a_time() {
    let host = Host::with(|settings| settings.limits.uploads_per_tenant = 2).await;
    let head = raw::head("acme", "text/plain", "Content-Length: 10\r\n");
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut wire = Wire::open(host.address()).await;
        wire.send(&head).await;
        wire.send(b"half ").await;
        open.push(wire);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;

    let third = host.owner("acme").raw("", "text/plain", "bytes").await;
    let other = host.owner("globex").raw("", "text/plain", "bytes").await;

    assert_eq!(third.status(), 429);
    assert!(third.headers()["retry-after"].to_str().expect("ASCII").parse::<u32>().expect("seconds") > 0);
    let body = refusal(third).await;
    assert_eq!((&body["error"], &body["details"]["reason"]), (&json!("rate_limited"), &json!("rate")));
    assert_eq!(other.status(), 201);
    for mut wire in open {
        wire.send(b"whole").await;
        assert_eq!(wire.hear(Duration::from_secs(3)).await.status(), 201);
    }
    assert_eq!(host.owner("acme").raw("", "text/plain", "bytes").await.status(), 201);
}

#[tokio::test]
async fn whoever_goes_away_takes_no_place() {
    let host = Host::with(|settings| settings.limits.uploads_per_tenant = 1).await;
    let head = raw::head("acme", "text/plain", "Content-Length: 10\r\n");
    for _ in 0..10 {
        let mut wire = Wire::open(host.address()).await;
        wire.send(&head).await;
        wire.send(b"half ").await;
        host.upload_begins().await;
        drop(wire);
        assert!(host.becomes_bare().await);
        // The place is given back a moment after the bytes.
        let slots = host.app().upload_slots(&TenantId::parse("acme").expect("a tenant"));
        drop(slots.acquire().await.expect("places are never closed"));
    }
    assert_eq!(host.owner("acme").raw("", "text/plain", "bytes").await.status(), 201);
}

/// The head of an upload that says it is so long.
fn announcing(bytes: u64) -> Vec<u8> {
    raw::head("acme", "application/octet-stream", &format!("Content-Length: {bytes}\r\n"))
}

#[tokio::test]
async fn what_would_not_leave_enough_free_is_refused_before_a_byte_is_taken() {
    let disk = rustix::fs::statvfs(std::env::temp_dir()).expect("a disk");
    let free = disk.f_bavail * disk.f_frsize;
    let host = Host::with(|settings| {
        settings.limits.max_upload_bytes = Size(u64::MAX);
        settings.store.min_free = Size(free / 2);
    })
    .await;
    let patience = Duration::from_secs(3);

    let alone = raw::send(host.address(), &[&announcing(free / 10 * 6)], patience).await;
    assert_eq!(alone.status(), 507, "{}", alone.0);
    assert!(alone.body().contains("insufficient_storage"), "{}", alone.0);

    for _ in 0..2 {
        let mut first = Wire::open(host.address()).await;
        first.send(&announcing(free / 10 * 3)).await;
        host.upload_begins().await;
        let second = raw::send(host.address(), &[&announcing(free / 10 * 3)], patience).await;
        assert_eq!(second.status(), 507, "what one was promised no other gets: {}", second.0);
        drop(first);
        assert!(host.becomes_bare().await);
        // The room is given back a moment after the bytes.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_body_without_a_length_is_refused_when_the_room_goes_and_leaves_nothing() {
    let host = Host::start().await;
    let head = raw::head("acme", "application/octet-stream", "Transfer-Encoding: chunked\r\n");
    let mut wire = Wire::open(host.address()).await;
    wire.send(&head).await;
    host.upload_begins().await;
    let _all = host.app().room.promise(u64::MAX / 2, Some(u64::MAX), 0).expect("a promise");

    for piece in noise(9 << 20, 4).chunks(64 << 10) {
        wire.send(&raw::chunk(piece)).await;
    }
    let heard = wire.hear(Duration::from_secs(3)).await;

    assert_eq!(heard.status(), 507, "{}", heard.0);
    assert!(host.is_bare().await);
}
