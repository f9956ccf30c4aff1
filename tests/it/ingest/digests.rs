//! Digests that a sender gives along: of the body as sent, and of the asset's bytes.

use data_encoding::{BASE64, HEXLOWER, HEXUPPER};
use ring::digest;
use serde_json::json;

use crate::harness::{Host, asset, refusal};

const BYTES: &[u8] = b"some bytes";

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, bytes).as_ref().to_vec()
}

#[tokio::test]
async fn content_digest_is_held_against_the_body() {
    let host = Host::start().await;
    let (right, other) = (BASE64.encode(&sha256(BYTES)), BASE64.encode(&sha256(b"others")));
    for (header, status, reason) in [
        (format!("sha-256=:{right}:"), 201, ""),
        (format!("sha-512=:AAAA:, sha-256=:{right}:"), 201, ""),
        (format!("sha-256=:{right}:;note=1"), 201, ""),
        (format!("sha-256=:{other}:, sha-256=:{right}:"), 201, ""),
        ("md5=:AAAA:".to_owned(), 201, ""),
        (format!("sha-256=:{other}:"), 400, "digest_mismatch"),
        (format!("sha-256=:{right}:, sha-256=:{other}:"), 400, "digest_mismatch"),
        (format!("sha-256={right}"), 400, ""),
        ("sha-256=:AAAA:".to_owned(), 400, ""),
        ("sha-256=:?:".to_owned(), 400, ""),
        ("sha-256".to_owned(), 400, ""),
        (format!("SHA-256=:{other}:"), 400, "digest_mismatch"),
    ] {
        let request = host.owner("acme").ingest().header("content-type", "text/plain");
        let answer = request.header("content-digest", &header).body(BYTES).send().await.expect("an answer");
        assert_eq!(answer.status(), status, "{header}");
        if status == 400 {
            let body = refusal(answer).await;
            assert_eq!(body["error"], "validation_error", "{header}");
            assert_eq!(body["details"]["reason"].as_str().unwrap_or(""), reason, "{header}");
        }
    }
    assert_eq!(host.stored_blobs().await, 1);
    assert_eq!(host.staged_files(), 0);
}

#[tokio::test]
async fn content_digest_of_inline_json_is_that_of_the_json() {
    let host = Host::start().await;
    let body = json!({"base64": BASE64.encode(BYTES)}).to_string();
    let send = |of: &[u8]| {
        let header = format!("sha-256=:{}:", BASE64.encode(&sha256(of)));
        let request = host.owner("acme").ingest().header("content-type", "application/json");
        request.header("content-digest", header).body(body.clone()).send()
    };

    let wrong = send(BYTES).await.expect("an answer");
    assert_eq!(wrong.status(), 400);
    assert_eq!(refusal(wrong).await["details"]["reason"], "digest_mismatch");
    assert!(host.is_bare().await);
    asset(send(body.as_bytes()).await.expect("an answer")).await;
}

#[tokio::test]
async fn the_member_sha256_is_held_against_the_assets_bytes() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let body = |hex: &str| json!({"base64": BASE64.encode(BYTES), "sha256": hex});

    for (hex, reason) in [
        (HEXLOWER.encode(&sha256(b"others")), Some("digest_mismatch")),
        ("abc".to_owned(), None),
        (String::new(), None),
        (BASE64.encode(&sha256(BYTES)), None),
    ] {
        let answer = owner.inline(&body(&hex)).await;
        assert_eq!(answer.status(), 400, "{hex}");
        assert_eq!(refusal(answer).await["details"]["reason"].as_str(), reason, "{hex}");
    }
    let raw = owner.raw(&format!("?sha256={}", HEXLOWER.encode(&sha256(b"others"))), "text/plain", BYTES).await;
    assert_eq!(refusal(raw).await["details"]["reason"], "digest_mismatch");
    assert!(host.is_bare().await);

    for hex in [HEXLOWER.encode(&sha256(BYTES)), HEXUPPER.encode(&sha256(BYTES))] {
        let asset = asset(owner.inline(&body(&hex)).await).await;
        assert_eq!(asset.answer["asset"]["sha256"], hex.to_lowercase());
    }
}
