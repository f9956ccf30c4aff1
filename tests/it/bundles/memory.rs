//! A large bundle goes through the real server without being held by it.

use data_encoding::BASE64;
use memchr::memmem;
use reqwest::Method;

use super::{CHECK, SCRUB};
use crate::harness::bytes::noise;
use crate::harness::process::Place;

/// More than the server has for everything that a bundle needs, and far less than one.
const ROOM: u64 = 40 << 20;

#[tokio::test]
async fn a_bundle_of_64_mib_is_scrubbed_in_bounded_memory() {
    let place = Place::new();
    let server = place.serve().await;
    server.upload(noise(1 << 20, 1)).await;
    let before = server.peak_memory();
    // Its type stands behind the one large string; the rest is many small objects, a large text and a large name.
    let large = BASE64.encode(&noise(30 << 20, 2));
    let text = "some words and ".repeat(1 << 20);
    let small = "{\"n\":1,\"t\":\"x\"},".repeat(500_000);
    let run = "\"run\":{\"runId\":\"run-1\"}";
    let bundle = format!(
        "{{\"m\":{{\"base64\":\"{large}\",\"mimeType\":\"image/png\"}},\"t\":\"{text}\",\"s\":[{small}0],{run}}}"
    );
    assert!(bundle.len() > 62 << 20, "{}", bundle.len());

    for path in [SCRUB, CHECK] {
        let request = server.request(Method::POST, path).header("content-type", "application/json");
        let answer = request.body(bundle.clone()).send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{path}");
        let body = answer.bytes().await.expect("all of it");
        assert!(path == CHECK || body.len() < bundle.len() - large.len() + 10_000);
        assert!(path == CHECK || memmem::find(&body, text.as_bytes()).is_some());
    }

    let grown = server.peak_memory().saturating_sub(before);
    assert!(grown < ROOM, "{grown} bytes more than before");
}
