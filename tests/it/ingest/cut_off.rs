//! Bodies that end too soon: nothing is left, and the next attempt works.

use std::time::{Duration, Instant};

use data_encoding::BASE64;
use serde_json::json;

use crate::harness::bytes::noise;
use crate::harness::form::{self, Form};
use crate::harness::raw::{self, Heard, Wire};
use crate::harness::{Host, asset};

/// A kind of body: its type and the whole of it, and the bytes in it.
fn kinds() -> Vec<(&'static str, Vec<u8>)> {
    let bytes = noise(300_000, 7);
    vec![
        ("application/octet-stream", bytes.clone()),
        (form::TYPE, Form::new().file(&bytes).end()),
        ("application/json", json!({"base64": BASE64.encode(&bytes)}).to_string().into_bytes()),
    ]
}

#[tokio::test]
async fn a_body_that_is_shorter_than_announced_leaves_nothing() {
    for (mime_type, body) in kinds() {
        let host = Host::start().await;
        let more = format!("Content-Length: {}\r\nIdempotency-Key: k\r\n", body.len());
        let head = raw::head("acme", mime_type, &more);

        let mut wire = Wire::open(host.address()).await;
        wire.send(&head).await;
        wire.send(&body[..body.len() * 2 / 3]).await;
        host.upload_begins().await;
        drop(wire);

        assert!(host.becomes_bare().await, "{mime_type}");
        retry(&host, mime_type, body).await;
    }
}

#[tokio::test]
async fn a_chunked_body_without_its_last_chunk_leaves_nothing() {
    for (mime_type, body) in kinds() {
        let host = Host::start().await;
        let head = raw::head("acme", mime_type, "Transfer-Encoding: chunked\r\nIdempotency-Key: k\r\n");
        // Everything has come but the word that this is everything.
        let mut wire = Wire::open(host.address()).await;
        wire.send(&head).await;
        for piece in body.chunks(50_000) {
            wire.send(&raw::chunk(piece)).await;
        }
        host.upload_begins().await;
        drop(wire);

        assert!(host.becomes_bare().await, "{mime_type}");
        retry(&host, mime_type, body).await;
    }
}

#[tokio::test]
async fn a_client_that_says_it_has_ended_hears_that_it_ended_too_soon() {
    for (mime_type, body) in kinds() {
        let host = Host::start().await;
        let (head, body) = (raw::head("acme", mime_type, &format!("Content-Length: {}\r\n", body.len())), &body[..9]);
        let mut wire = Wire::open(host.address()).await;
        wire.send(&head).await;
        wire.send(body).await;
        wire.end().await;

        let Heard(heard) = wire.hear(Duration::from_secs(3)).await;

        // An answer is a courtesy here, but if there is one it is a refusal.
        assert!(heard.is_empty() || heard.starts_with("HTTP/1.1 400 "), "{heard}");
        assert!(host.becomes_bare().await, "{mime_type}");
    }
}

#[tokio::test]
async fn a_wrong_chunk_is_no_end() {
    let host = Host::start().await;
    for chunk in ["zz\r\n", "-1\r\n", "fffffffffffffffffff\r\n", "5\r\nbytesXX\r\n0\r\n\r\n"] {
        let head = raw::head("acme", "text/plain", "Transfer-Encoding: chunked\r\n");
        let first = raw::chunk(b"bytes");

        let heard = raw::send(host.address(), &[&head, &first, chunk.as_bytes()], Duration::from_secs(3)).await;

        assert!(heard.status() == 400 || heard.0.is_empty(), "{chunk:?}: {}", heard.0);
        assert!(host.becomes_bare().await, "{chunk:?}");
    }
}

/// The whole body with the key of the one that was cut off: its claim has to be gone once its traces are.
async fn retry(host: &Host, mime_type: &str, body: Vec<u8>) {
    let began = Instant::now();
    loop {
        let request = host.owner("acme").ingest().header("content-type", mime_type).header("idempotency-key", "k");
        let answer = request.body(body.clone()).send().await.expect("an answer");
        if answer.status() == 409 && began.elapsed() < Duration::from_secs(1) {
            continue;
        }
        assert!(!answer.headers().contains_key("openwop-idempotent-replay"));
        let asset = asset(answer).await;
        let found = host.stranger().get(&asset.url).await.bytes().await.expect("a body");
        assert_eq!(found, noise(300_000, 7));
        return;
    }
}

#[tokio::test]
async fn a_client_that_has_said_all_may_end_and_still_hears() {
    let host = Host::start().await;
    for (mime_type, body) in kinds() {
        let mut wire = Wire::open(host.address()).await;
        wire.send(&raw::head("acme", mime_type, &format!("Content-Length: {}\r\n", body.len()))).await;
        wire.send(&body).await;
        wire.end().await;

        let heard = wire.hear(Duration::from_secs(3)).await;

        assert_eq!(heard.status(), 201, "{mime_type}: {}", heard.0);
    }
}

#[tokio::test]
async fn a_client_that_asks_first_sends_nothing_in_vain() {
    let host = Host::start().await;
    let ask = "Content-Length: 5\r\nExpect: 100-continue\r\n";

    let mut wire = Wire::open(host.address()).await;
    wire.send(&raw::head("acme", "text/plain", ask)).await;
    host.upload_begins().await;
    wire.send(b"bytes").await;
    let Heard(welcome) = wire.hear(Duration::from_secs(3)).await;
    let wrong = raw::head("acme", "text/plain", &format!("{ask}X-Tenant-Id: globex\r\n"));
    let refused = raw::send(host.address(), &[&wrong], Duration::from_secs(3)).await;

    assert!(welcome.starts_with("HTTP/1.1 100 ") && welcome.contains("HTTP/1.1 201 "), "{welcome}");
    assert!(refused.0.contains("HTTP/1.1 403 "), "{}", refused.0);
}
