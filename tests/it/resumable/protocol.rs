//! What the protocol asks of a server, header by header.

use data_encoding::BASE64;
use mediakeep::config::units::Size;
use reqwest::Method;
use ring::digest;
use serde_json::{Value, json};

use super::{OCTETS, append, assets, begun, bytes_of, create, look, offset, pair, patch, request, told};
use crate::harness::Host;
use crate::harness::bytes::{noise, png};
use crate::harness::told::Told;

#[tokio::test]
async fn what_is_uploaded_in_parts_is_an_asset_like_any_other() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = png(40, 30);
    let metadata = [pair("runId", "run-1"), pair("filename", "chart.png"), pair("alt", "a chart"), pair("x", "y")];
    let url = begun(&owner, bytes.len(), &[("upload-metadata", &metadata.join(","))]).await;
    assert!(url.starts_with(&host.url("/v1/uploads/")), "{url}");

    let first = append(&owner, &url, 0, &bytes[..10]).await;
    assert_eq!((first.status, first.header("upload-offset"), first.header("mediakeep-asset-id")), (204, "10", ""));
    let last = append(&owner, &url, 10, &bytes[10..]).await;

    assert_eq!(last.status, 204, "{last:?}");
    assert_eq!(bytes_of(&owner, &last).await, bytes);
    let id = last.header("mediakeep-asset-id");
    let asset: Value = owner.get(&format!("/v1/assets/{id}")).await.json().await.expect("JSON");
    assert_eq!(
        (&asset["name"], &asset["alt"], &asset["runId"]),
        (&json!("chart.png"), &json!("a chart"), &json!("run-1"))
    );
    assert_eq!((&asset["mimeType"], &asset["facts"]["width"]), (&json!("image/png"), &json!(40)));
    let seen = look(&owner, &url).await;
    assert_eq!((seen.status, seen.header("mediakeep-asset-id")), (200, id));
    let again = append(&owner, &url, bytes.len(), &[]).await;
    assert_eq!((again.status, again.header("mediakeep-asset-id")), (204, id), "asked again, the same answer");
    assert_eq!((assets(&owner).await, host.stored_blobs().await), (1, 1), "its parts are gone");
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn a_server_says_what_of_the_protocol_it_speaks() {
    let host = Host::with(|settings| settings.limits.max_upload_bytes = Size(1_000)).await;
    let owner = host.owner("acme");
    let answer = told(owner.request(Method::OPTIONS, "/v1/uploads")).await;
    assert_eq!((answer.status, answer.header("tus-version"), answer.header("tus-max-size")), (204, "1.0.0", "1000"));
    let extensions =
        "creation,creation-with-upload,creation-defer-length,checksum,termination,expiration,concatenation";
    assert_eq!(answer.header("tus-extension"), extensions);
    assert!(answer.header("tus-checksum-algorithm").split(',').any(|algorithm| algorithm == "sha1"));

    let other =
        owner.request(Method::POST, "/v1/uploads").header("tus-resumable", "0.2.2").header("upload-length", "5");
    let refused = told(other).await;
    assert_eq!((refused.status, refused.refusal()), (412, "version_conflict".into()));
    assert_eq!((refused.header("tus-version"), refused.header("tus-resumable")), ("1.0.0", "1.0.0"));
    let url = begun(&owner, 5, &[]).await;
    for (method, path) in
        [(Method::POST, "/v1/uploads"), (Method::HEAD, &url), (Method::PATCH, &url), (Method::DELETE, &url)]
    {
        let silent = owner.request(method, path).header("upload-length", "5").header("upload-offset", "0");
        let refused = told(silent.header("content-type", OCTETS).body("12345")).await;
        assert_eq!((refused.status, refused.header("tus-version")), (412, "1.0.0"), "{refused:?}");
    }
    assert_eq!(offset(&owner, &url).await, 0, "nothing was taken");
    assert_eq!(told(request(&owner, Method::DELETE, &url)).await.status, 204);
    let refused = create(&owner, &[("upload-length", "1001")]).await;
    assert_eq!((refused.status, &refused.json()["details"]), (413, &json!({"limit": 1_000})));
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_look_says_all_that_is_needed_to_go_on() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let metadata = pair("name", "x.bin");
    let url = begun(&owner, 100, &[("upload-metadata", &metadata)]).await;
    append(&owner, &url, 0, &noise(30, 1)).await;

    let seen = look(&owner, &url).await;

    assert_eq!((seen.status, seen.header("upload-offset"), seen.header("upload-length")), (200, "30", "100"));
    assert_eq!((seen.header("upload-metadata"), seen.header("cache-control")), (metadata.as_str(), "no-store"));
    assert_eq!(seen.header("upload-defer-length"), "");
    assert!(seen.header("upload-expires").ends_with(" GMT"), "{seen:?}");
    let foreign = [look(&host.owner("globex"), &url).await, look(&owner, "/v1/uploads/x").await];
    assert!(foreign.iter().all(|answer| answer.status == 404) && foreign[0] == foreign[1]);
    assert_eq!(append(&host.owner("globex"), &url, 30, &noise(70, 2)).await.status, 404);
    assert_eq!(told(request(&host.owner("globex"), Method::DELETE, &url)).await.status, 404);
    assert_eq!(offset(&owner, &url).await, 30);
}

#[tokio::test]
async fn bytes_go_where_the_upload_ends_and_nowhere_else() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let url = begun(&owner, 100, &[]).await;
    append(&owner, &url, 0, &noise(30, 1)).await;

    for wrong in [0, 29, 31, 100] {
        let refused = append(&owner, &url, wrong, &noise(10, 1)).await;
        assert_eq!((refused.status, refused.refusal()), (409, "offset_mismatch".into()));
        assert_eq!(refused.json()["details"], json!({"offset": 30}));
    }
    let typed = request(&owner, Method::PATCH, &url).header("upload-offset", "30").header("content-type", "image/png");
    assert_eq!(told(typed.body("x")).await.status, 415);
    let nowhere = request(&owner, Method::PATCH, &url).header("content-type", OCTETS).body("x");
    assert_eq!(told(nowhere).await.status, 400);
    assert_eq!(append(&owner, &url, 30, &noise(71, 1)).await.status, 413, "longer than was said");
    assert_eq!(offset(&owner, &url).await, 30, "nothing of all that was taken");
}

#[tokio::test]
async fn what_cannot_be_an_upload_is_refused_before_its_bytes() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bad = pair("retainUntil", "yesterday");
    for headers in [
        &[][..],
        &[("upload-length", "-1")],
        &[("upload-length", "5"), ("upload-defer-length", "1")],
        &[("upload-defer-length", "2")],
        &[("upload-length", "0")],
        &[("upload-length", "5"), ("upload-metadata", "name !!!")],
        &[("upload-length", "5"), ("upload-metadata", &bad)],
        &[("upload-length", "5"), ("upload-concat", "whole")],
        &[("upload-concat", "final;")],
    ] {
        let refused = create(&owner, headers).await;
        assert_eq!(refused.status, 400, "{headers:?} {refused:?}");
        assert!(refused.refusal().starts_with("validation_error"), "{refused:?}");
        assert_eq!(refused.header("tus-resumable"), "1.0.0");
    }
    owner.upload_to("gone", noise(5, 1)).await;
    assert_eq!(owner.post("/v1/runs/gone/erase", &json!({})).await.status(), 200);
    let run = pair("runId", "gone");
    let refused = create(&owner, &[("upload-length", "5"), ("upload-metadata", &run)]).await;
    assert_eq!((refused.status, refused.refusal()), (409, "run_erased".into()));
}

#[tokio::test]
async fn bytes_may_come_along_with_the_beginning() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = noise(1_000, 1);
    let begin = |length: &str, body: &[u8]| {
        let asked = request(&owner, Method::POST, "/v1/uploads").header("upload-length", length);
        told(asked.header("content-type", OCTETS).body(body.to_vec()))
    };

    let whole = begin("1000", &bytes).await;
    assert_eq!((whole.status, whole.header("upload-offset")), (201, "1000"));
    assert_eq!(bytes_of(&owner, &whole).await, bytes);
    let half = begin("1000", &bytes[..500]).await;
    assert_eq!((half.status, half.header("upload-offset"), half.header("mediakeep-asset-id")), (201, "500", ""));
    let last = append(&owner, half.header("location"), 500, &bytes[500..]).await;
    assert_eq!(bytes_of(&owner, &last).await, bytes);
    assert_eq!(begin("999", &bytes).await.status, 413);
}

#[tokio::test]
async fn the_length_may_be_said_later() {
    let host = Host::with(|settings| settings.limits.max_upload_bytes = Size(1_000)).await;
    let owner = host.owner("acme");
    let bytes = noise(1_000, 1);
    let begun = create(&owner, &[("upload-defer-length", "1")]).await;
    let url = begun.header("location");
    append(&owner, url, 0, &bytes[..400]).await;
    assert_eq!(look(&owner, url).await.header("upload-defer-length"), "1");
    let with_length =
        |length: &str, body: &[u8]| told(patch(&owner, url, 400).header("upload-length", length).body(body.to_vec()));

    assert_eq!(with_length("1001", b"").await.status, 413);
    assert_eq!(with_length("399", b"").await.status, 400);
    assert_eq!(append(&owner, url, 400, &noise(601, 1)).await.status, 413, "no upload is longer than any may be");
    assert_eq!(with_length("1000", b"").await.status, 204);
    assert_eq!(with_length("999", b"").await.status, 400, "it is said once");
    let seen = look(&owner, url).await;
    assert_eq!((seen.header("upload-length"), seen.header("upload-defer-length")), ("1000", ""));
    let last = append(&owner, url, 400, &bytes[400..]).await;
    assert_eq!(bytes_of(&owner, &last).await, bytes);
}

#[tokio::test]
async fn bytes_with_another_checksum_are_not_taken() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = noise(1_000, 1);
    let url = begun(&owner, 1_000, &[]).await;
    let sum =
        |algorithm, name: &str, of: &[u8]| format!("{name} {}", BASE64.encode(digest::digest(algorithm, of).as_ref()));
    let send = |checksum: String, at: usize, body: &[u8]| {
        told(patch(&owner, &url, at).header("upload-checksum", checksum).body(body.to_vec()))
    };

    let wrong = send(sum(&digest::SHA256, "sha256", b"other"), 0, &bytes[..500]).await;
    assert_eq!((wrong.status, wrong.refusal()), (460, "checksum_mismatch".into()));
    assert_eq!(offset(&owner, &url).await, 0);
    for unknown in ["md5 AAAA", "sha1", "sha1 !!", "sha256 AAAA"] {
        assert_eq!(send(unknown.to_owned(), 0, &bytes[..500]).await.status, 400, "{unknown}");
    }
    let sha1 = sum(&digest::SHA1_FOR_LEGACY_USE_ONLY, "sha1", &bytes[..500]);
    assert_eq!(send(sha1, 0, &bytes[..500]).await.header("upload-offset"), "500");
    let last = send(sum(&digest::SHA512, "sha512", &bytes[500..]), 500, &bytes[500..]).await;
    assert_eq!(bytes_of(&owner, &last).await, bytes);
}

#[tokio::test]
async fn who_cannot_say_patch_says_it_in_a_header() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let url = begun(&owner, 10, &[]).await;
    let meant = |method: &str| request(&owner, Method::POST, &url).header("x-http-method-override", method);

    let sent = told(meant("PATCH").header("content-type", OCTETS).header("upload-offset", "0").body("12345")).await;
    assert_eq!((sent.status, sent.header("upload-offset")), (204, "5"));
    assert_eq!(told(meant("HEAD")).await.header("upload-offset"), "5");
    assert_eq!(told(meant("BREW")).await.status, 405);
    assert_eq!(told(meant("DELETE")).await.status, 204);
    assert_eq!(look(&owner, &url).await.status, 404);
}

#[tokio::test]
async fn two_uploads_with_one_idempotency_key_make_one_asset() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = noise(1_000, 1);
    let mut made: Vec<Told> = Vec::new();
    for _ in 0..2 {
        let url = begun(&owner, 1_000, &[("idempotency-key", "k-1")]).await;
        made.push(append(&owner, &url, 0, &bytes).await);
    }
    assert_eq!(made[0].header("mediakeep-asset-id"), made[1].header("mediakeep-asset-id"));
    assert_eq!((assets(&owner).await, host.stored_blobs().await), (1, 1));
    let url = begun(&owner, 10, &[("idempotency-key", "k-1")]).await;
    let refused = append(&owner, &url, 0, &noise(10, 2)).await;
    assert_eq!((refused.status, refused.refusal()), (409, "idempotency_key_mismatch".into()));
}
