//! How often somebody may call.

use std::time::Duration;

use mediakeep::access::Scope;
use reqwest::Method;

use crate::harness::Host;
use crate::harness::bytes::png;
use crate::harness::told::Told;

#[tokio::test]
async fn a_credential_has_its_requests_a_second_and_no_other_pays_for_them() {
    let host = Host::with(|settings| settings.limits.requests_per_second = 3).await;
    let reader = host.with_scope("acme", Scope::AssetsRead);
    for _ in 0..3 {
        assert_eq!(reader.get("/v1/assets").await.status(), 200);
    }

    let told = Told::of(reader.get("/v1/assets").await).await;
    assert_eq!((told.status, told.refusal(), told.header("retry-after")), (429, "rate_limited: rate".into(), "1"));
    assert_eq!(host.owner("acme").get("/v1/assets").await.status(), 200, "another credential of the tenant");
    assert_eq!(host.owner("globex").get("/v1/assets").await.status(), 200);
    assert_eq!(host.stranger().get("/healthz").await.status(), 200);
    host.advance(Duration::from_secs(1));
    assert_eq!(reader.get("/v1/assets").await.status(), 200);
}

#[tokio::test]
async fn the_rate_is_looked_at_behind_the_credential_and_before_the_scope() {
    let host = Host::with(|settings| settings.limits.requests_per_second = 2).await;
    let reader = host.with_scope("acme", Scope::AssetsRead);
    let missing = "/v1/assets/ast_00000000000000000000000000";
    for _ in 0..9 {
        assert_eq!(host.bearer("mk_acme-assets-read_wrong").get(missing).await.status(), 401);
    }
    assert_eq!(reader.delete(missing).await.status(), 403);
    assert_eq!(reader.get(missing).await.status(), 404);
    assert_eq!(reader.delete(missing).await.status(), 429, "before 403");
    assert_eq!(reader.get(missing).await.status(), 429, "before 404");
}

#[tokio::test]
async fn a_client_has_its_capability_requests_a_second_by_its_own_address() {
    let host = Host::with(|settings| settings.limits.client_requests_per_second = 2).await;
    let asset = host.owner("acme").upload(png(2, 2)).await;
    let from = async |claimed: &str| {
        let request = host.stranger().request(Method::GET, &asset.url).header("x-forwarded-for", claimed);
        Told::of(request.send().await.expect("an answer")).await
    };

    assert_eq!((from("192.0.2.1").await.status, from("192.0.2.2").await.status), (200, 200));
    let told = from("192.0.2.3").await;
    assert_eq!((told.status, told.refusal()), (429, "rate_limited: rate".into()), "nobody is believed");
    assert_eq!((told.header("retry-after"), told.header("access-control-allow-origin")), ("1", "*"));
    assert_eq!(host.stranger().get("/a/nothing").await.status(), 429, "whatever the token is");
    assert_eq!(host.owner("acme").get(&format!("/v1/assets/{}/content", asset.id)).await.status(), 200);
}

#[tokio::test]
async fn a_trusted_proxy_says_whose_request_it_is() {
    let host = Host::with(|settings| {
        settings.limits.client_requests_per_second = 1;
        settings.server.trusted_proxies = vec!["127.0.0.1".into(), "10.0.0.1".into()];
    })
    .await;
    let asset = host.owner("acme").upload(png(2, 2)).await;
    let from = async |forwarded: &str| {
        let request = host.stranger().request(Method::GET, &asset.url).header("x-forwarded-for", forwarded);
        request.send().await.expect("an answer").status().as_u16()
    };

    assert_eq!(from("192.0.2.1").await, 200);
    assert_eq!(from("192.0.2.2").await, 200);
    assert_eq!(from("192.0.2.2").await, 429);
    assert_eq!(from("192.0.2.9, 192.0.2.2").await, 429, "what a client says of itself stands further left");
    assert_eq!(from("192.0.2.2, 10.0.0.1").await, 429, "behind two proxies");
    assert_eq!(from("192.0.2.3, 10.0.0.1").await, 200);
}
