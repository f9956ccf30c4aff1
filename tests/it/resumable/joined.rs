//! Uploads that are joined of others.

use reqwest::Method;
use serde_json::json;

use super::{append, assets, begun, bytes_of, create, look, pair, request, told};
use crate::harness::bytes::noise;
use crate::harness::{Caller, Host};

async fn piece(caller: &Caller<'_>, bytes: &[u8]) -> String {
    let url = begun(caller, bytes.len(), &[("upload-concat", "partial")]).await;
    let sent = append(caller, &url, 0, bytes).await;
    assert_eq!((sent.status, sent.header("mediakeep-asset-id")), (204, ""), "no asset is made of a piece");
    url
}

#[tokio::test]
async fn pieces_become_one_asset_in_the_order_in_which_they_are_named() {
    let host = Host::with(|settings| settings.limits.tenant_bytes = mediakeep::config::units::Size(3_000)).await;
    let owner = host.owner("acme");
    let parts = [noise(1_000, 1), noise(500, 2), noise(1_500, 3)];
    let mut urls = Vec::new();
    for part in [&parts[2], &parts[0], &parts[1]] {
        urls.push(piece(&owner, part).await);
    }
    let seen = look(&owner, &urls[0]).await;
    assert_eq!((seen.header("upload-concat"), seen.header("upload-offset")), ("partial", "1500"));
    let path = urls[2].trim_start_matches(&host.url("")).to_owned();
    let concat = format!("final;{} {path} {}", urls[1], urls[0]);

    let made = create(&owner, &[("upload-concat", &concat), ("upload-metadata", &pair("runId", "run-1"))]).await;

    assert_eq!(made.status, 201, "{made:?}");
    assert!(bytes_of(&owner, &made).await == parts.concat());
    let seen = look(&owner, made.header("location")).await;
    assert_eq!((seen.header("upload-concat"), seen.header("upload-length")), (concat.as_str(), "3000"));
    assert_eq!(seen.header("mediakeep-asset-id"), made.header("mediakeep-asset-id"));
    assert_eq!((assets(&owner).await, host.stored_blobs().await), (1, 1), "the pieces are gone");
    assert_eq!(look(&owner, &urls[0]).await.status, 404);
    let usage: serde_json::Value = owner.get("/v1/usage").await.json().await.expect("JSON");
    assert_eq!((&usage["bytes"], &usage["reservedBytes"]), (&json!(3_000), &json!(0)));
}

#[tokio::test]
async fn only_whole_pieces_of_ones_own_are_joined() {
    let host = Host::start().await;
    let (owner, other) = (host.owner("acme"), host.owner("globex"));
    let whole = piece(&owner, &noise(10, 1)).await;
    let foreign = piece(&other, &noise(10, 1)).await;
    let unfinished = begun(&owner, 10, &[("upload-concat", "partial")]).await;
    let no_piece = begun(&owner, 10, &[]).await;
    let unknown = host.url("/v1/uploads/00000000000000000000000000000000");
    let join = async |urls: &[&str]| {
        let concat = format!("final;{}", urls.join(" "));
        create(&owner, &[("upload-concat", &concat)]).await
    };

    let refused = join(&[&whole, &foreign]).await;
    assert_eq!((refused.status, &refused.json()["details"]), (404, &json!({"unknown": [1]})));
    assert_eq!(refused, join(&[&whole, &unknown]).await, "foreign and unknown are one answer");
    let refused = join(&[&unfinished, &whole]).await;
    assert_eq!((refused.status, refused.refusal()), (400, "validation_error: upload_unfinished".into()));
    assert_eq!(join(&[&whole, &no_piece]).await.status, 400);
    assert_eq!(join(&[&whole, &whole]).await.status, 400);
    let with_length = create(&owner, &[("upload-concat", &format!("final;{whole}")), ("upload-length", "10")]).await;
    assert_eq!(with_length.status, 400);
    let concat = format!("final;{whole}");
    let with_bytes = request(&owner, Method::POST, "/v1/uploads").header("upload-concat", &concat);
    let with_bytes = told(with_bytes.header("content-type", super::OCTETS).body("more")).await;
    assert_eq!((with_bytes.status, with_bytes.refusal()), (403, "forbidden".into()));
    assert_eq!((look(&owner, &whole).await.status, assets(&owner).await), (200, 0), "nothing happened");

    let made = join(&[&whole]).await;
    let patched = append(&owner, made.header("location"), 10, &[]).await;
    assert_eq!((patched.status, patched.refusal()), (403, "forbidden".into()), "it takes no bytes of its own");
    assert_eq!(told(request(&owner, Method::DELETE, made.header("location"))).await.status, 204);
    assert_eq!(assets(&owner).await, 1);
}
