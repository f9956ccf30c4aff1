//! Equal bytes: kept once for a tenant, twice for two, and nobody can tell.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use crate::harness::bytes::{noise, png};
use crate::harness::{Host, asset};

#[tokio::test]
async fn equal_bytes_of_a_tenant_are_kept_once() {
    let host = Host::start().await;
    let owner = host.owner("acme");

    let one = owner.upload_to("run-1", png(5, 5)).await;
    let two = owner.upload_to("run-2", png(5, 5)).await;
    let three = owner.upload_loose(png(5, 5)).await;

    assert_eq!(host.stored_blobs().await, 1);
    assert_eq!(host.staged_files(), 0);
    let mut ids = vec![&one.id, &two.id, &three.id];
    ids.dedup();
    assert_eq!(ids.len(), 3, "each is an asset of its own");
    assert_ne!(one.url, two.url);
    for asset in [&one, &two, &three] {
        assert_eq!(host.stranger().get(&asset.url).await.bytes().await.expect("a body"), png(5, 5));
    }
}

#[tokio::test]
async fn equal_bytes_that_come_at_once_are_kept_once() {
    let host = Host::start().await;
    let owner = host.owner("acme");

    let made = join_all((0..20).map(|_| owner.upload(noise(50_000, 4)))).await;

    assert_eq!(host.stored_blobs().await, 1);
    assert_eq!(host.staged_files(), 0);
    for asset in made {
        assert_eq!(host.stranger().get(&asset.url).await.bytes().await.expect("a body"), noise(50_000, 4));
    }
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn two_tenants_share_nothing_and_neither_answer_tells() {
    let host = Host::start().await;
    let told = |answer: &Value| {
        let mut told = answer.clone();
        let mut path = vec![&mut told];
        while let Some(value) = path.pop() {
            if let Value::Object(members) = value {
                for name in ["assetId", "url", "mediaRef", "envelopeId", "correlationId"] {
                    members.remove(name);
                }
                path.extend(members.values_mut());
            }
        }
        told
    };
    let first = host.owner("acme").raw("", "image/png", png(5, 5)).await;
    let headers = |answer: &reqwest::Response| {
        let names = answer.headers().keys().map(|name| name.as_str().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let first_headers = headers(&first);
    let first = asset(first).await;

    let other = host.owner("globex").raw("", "image/png", png(5, 5)).await;
    let other_headers = headers(&other);
    let other = asset(other).await;
    let again = host.owner("acme").upload(png(6, 6)).await;

    assert_eq!(host.stored_blobs().await, 3);
    assert_eq!(first_headers, other_headers);
    assert_eq!(told(&first.answer), told(&other.answer));
    assert_ne!(first.id, other.id);
    assert_ne!(again.id, other.id);
    let tag = |url: String| async move { host_tag(&url).await };
    assert_ne!(tag(first.url).await, tag(other.url).await, "equal bytes have other tags in another tenant");
}

async fn host_tag(url: &str) -> String {
    let answer = reqwest::Client::builder().no_proxy().build().expect("a client").get(url).send().await;
    answer.expect("an answer").headers()["etag"].to_str().expect("ASCII").to_owned()
}

#[tokio::test]
async fn shared_bytes_stay_while_anybody_holds_them() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let loose = owner.upload_loose(png(5, 5)).await;
    let kept = owner.upload_to("run-1", png(5, 5)).await;

    assert_eq!(owner.delete(&format!("/v1/assets/{}", loose.id)).await.status(), 204);
    host.advance(Duration::from_secs(2 * 24 * 3600));
    host.sweep().await;

    assert_eq!(host.stranger().get(&loose.url).await.status(), 410);
    assert_eq!(host.stranger().get(&kept.url).await.bytes().await.expect("a body"), png(5, 5));
    assert!(host.verify().await.is_clean());
}
