//! Checking.

use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use mediakeep::access::Scope;
use serde_json::{Value, json};

use super::{CHECK, OUTPUTS, bundle, findings, host};
use crate::harness::bytes::png;
use crate::harness::refusal;

fn found(code: &str, path: &str) -> Vec<(String, String)> {
    vec![(code.to_owned(), format!("{OUTPUTS}{path}"))]
}

#[tokio::test]
async fn a_bundle_without_media_has_no_findings() {
    let host = host().await;
    let owner = host.owner("acme");
    assert_eq!(findings(&owner, &bundle(&json!({"text": "hello", "data": "aGVsbG8=", "n": 1}))).await, []);
    assert_eq!(findings(&owner, &json!({})).await, []);
    assert_eq!(findings(&owner, &json!({"bundle": {"events": []}, "scrub": {}})).await, []);
}

#[tokio::test]
async fn media_that_are_inlined_are_found_at_their_member() {
    let host = host().await;
    let owner = host.owner("acme");
    for (outputs, path) in [
        (json!({"a/b": {"base64": "aGVsbG8=", "mimeType": "text/plain"}}), "/a~1b/base64"),
        (json!([1, {"mediaType": "text/plain", "raw": "aGVsbG8="}]), "/1/raw"),
        (json!({"x": "data:text/plain;base64,aGVsbG8="}), "/x"),
        (json!(["see data:text/plain;base64,aGVsbG8= there"]), "/0"),
    ] {
        assert_eq!(findings(&owner, &bundle(&outputs)).await, found("inline_media", path), "{outputs}");
    }
}

#[tokio::test]
async fn urls_that_open_by_themselves_or_are_anothers_are_found() {
    let host = host().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let foreign = host.owner("globex").upload(png(3, 3)).await;
    assert_eq!(findings(&owner, &bundle(&json!({"u": asset.url}))).await, found("capability_url", "/u"));
    assert_eq!(findings(&owner, &bundle(&json!({"u": foreign.url}))).await, found("foreign_url", "/u"));
    // It says so itself, so nobody learns whether it was ever made.
    let claims = BASE64URL_NOPAD.encode(br#"{"aud":"media","tid":"globex"}"#);
    let invented = host.url(&format!("/a/e30.{claims}.AAAA"));
    assert_eq!(findings(&owner, &bundle(&json!({"u": invented}))).await, found("foreign_url", "/u"));
}

#[tokio::test]
async fn media_have_one_source() {
    let host = host().await;
    let owner = host.owner("acme");
    let missing = [
        (json!({"type": "media.image", "payload": {"bytes": 1}}), ""),
        (json!({"type": "media.image", "payload": {"bytes": 1, "mimeType": "image/png"}}), "/payload"),
        (json!({"type": "image", "mimeType": "image/png"}), ""),
    ];
    for (outputs, path) in missing {
        assert_eq!(findings(&owner, &bundle(&outputs)).await, found("source_missing", path), "{outputs}");
    }
    let both = json!({"bytes": 5, "mimeType": "text/plain", "url": "https://x.test/y", "base64": "aGVsbG8="});
    let codes: Vec<String> = findings(&owner, &bundle(&both)).await.into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["inline_media", "source_ambiguous"]);
}

#[tokio::test]
async fn foreign_and_absent_assets_are_unknown_alike() {
    let host = host().await;
    let owner = host.owner("acme");
    let foreign = host.owner("globex").upload(png(3, 3)).await.id;
    let absent = "ast_01arz3ndektsv4rrffq69g5fav";
    for id in [foreign.as_str(), absent, "ast_nothing"] {
        for outputs in [
            json!({"u": host.url(&format!("/v1/assets/{id}/content"))}),
            json!({"u": {"mediaRef": format!("blob:{id}")}}),
            json!({"u": {"assetId": id}}),
        ] {
            let found = findings(&owner, &bundle(&outputs)).await;
            assert_eq!(found.len(), 1, "{outputs}: {found:?}");
            assert_eq!(found[0].0, "unknown_asset");
        }
    }
}

#[tokio::test]
async fn what_a_bundle_says_of_an_asset_is_compared() {
    let host = host().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let shown = owner.show(&asset).await;
    let url = host.url(&format!("/v1/assets/{}/content", asset.id));
    let says = |sha256: &Value, bytes: &Value| bundle(&json!({"sha256": sha256, "url": url, "bytes": bytes}));
    let wrong = json!("0".repeat(64));

    assert_eq!(findings(&owner, &says(&shown["sha256"], &shown["bytes"])).await, []);
    assert_eq!(findings(&owner, &says(&wrong, &shown["bytes"])).await, found("digest_mismatch", "/url"));
    assert_eq!(findings(&owner, &says(&shown["sha256"], &json!(1))).await, found("size_mismatch", "/url"));
}

#[tokio::test]
async fn assets_that_are_over_are_found_unless_the_bundle_says_so() {
    let host = host().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    owner.put("/v1/runs/run-1", &json!({"status": "closed", "logRetentionSeconds": 60})).await;
    host.advance(Duration::from_secs(61));
    host.sweep().await;
    let url = host.url(&format!("/v1/assets/{}/content", asset.id));

    assert_eq!(findings(&owner, &bundle(&json!({"url": url}))).await, found("expired", "/url"));
    assert_eq!(findings(&owner, &bundle(&json!({"url": url, "state": "expired"}))).await, []);
}

#[tokio::test]
async fn what_cannot_be_read_is_malformed() {
    let host = host().await;
    let owner = host.owner("acme");
    for (outputs, path) in [
        (json!({"base64": "no base64!", "mimeType": "image/png"}), "/base64"),
        (json!({"base64": "no base64!", "bytes": 7}), "/base64"),
        (json!({"u": "data:image/png;base64,AAAAA"}), "/u"),
        (json!({"u": host.url("/a/e30.e30.AAAA")}), "/u"),
    ] {
        assert_eq!(findings(&owner, &bundle(&outputs)).await, found("malformed", path), "{outputs}");
    }
    let passed = json!({"redactionApplied": true, "redactionMode": "passthrough"});
    assert_eq!(findings(&owner, &passed).await, [("malformed".into(), "/redactionMode".into())]);
}

#[tokio::test]
async fn a_check_stores_nothing_and_needs_the_right_to_read() {
    let host = host().await;
    let media = bundle(&json!({"base64": "aGVsbG8=", "mimeType": "text/plain"}));
    host.with_scope("acme", Scope::AssetsRead).post(CHECK, &media).await;
    assert!(host.is_bare().await);
    let body = refusal(host.with_scope("acme", Scope::AssetsWrite).post(CHECK, &media).await).await;
    assert_eq!(body["details"]["scopeRequired"], "assets:read");
}
