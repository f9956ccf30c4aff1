//! What the URLs of a bundle lead to.

use mediakeep::access::Scope;
use serde_json::json;

use super::host;
use crate::harness::bytes::png;
use crate::harness::told::Told;

const RESOLVE: &str = "/v1/debug-bundles/resolve";

#[tokio::test]
async fn each_url_leads_to_its_asset_or_to_nothing_in_order() {
    let host = host().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let erased = owner.upload(png(4, 4)).await;
    let foreign = host.owner("globex").upload(png(3, 3)).await;
    owner.delete(&format!("/v1/assets/{}?erase=true", erased.id)).await;
    let bound = host.url(&format!("/v1/assets/{}/content", asset.id));

    let urls = [&asset.url, &bound, &foreign.url, "https://x.test/", &erased.url, &format!("blob:{}", asset.id)];
    let told = Told::of(owner.post(RESOLVE, &json!({"urls": urls})).await).await;

    assert_eq!((told.status, told.header("cache-control")), (200, "no-store"));
    let shown = owner.show(&asset).await;
    let live = json!({"state": "live", "assetId": asset.id, "sha256": shown["sha256"], "bytes": shown["bytes"],
        "mimeType": "image/png", "url": bound});
    let gone = json!({"state": "erased", "assetId": erased.id, "bytes": erased.answer["asset"]["bytes"], "mimeType": "image/png"});
    let unknown = json!({"state": "unknown"});
    assert_eq!(told.json()["results"], json!([live, live, unknown, unknown, gone, live]));
}

#[tokio::test]
async fn a_url_that_opens_by_itself_needs_the_right_to_mint() {
    let host = host().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let asked = json!({"urls": [asset.url], "mint": true});

    let refused = Told::of(host.with_scope("acme", Scope::AssetsRead).post(RESOLVE, &asked).await).await;
    assert_eq!((refused.status, &refused.json()["details"]["scopeRequired"]), (403, &json!("assets:mint")));

    let told = Told::of(owner.post(RESOLVE, &asked).await).await.json();
    let url = told["results"][0]["url"].as_str().expect("a URL");
    assert_eq!(host.stranger().get(url).await.status(), 200);
    host.advance(std::time::Duration::from_secs(901));
    assert_eq!(host.stranger().get(url).await.status(), 410);
}

#[tokio::test]
async fn none_and_too_many_urls_are_refused() {
    let host = host().await;
    let owner = host.owner("acme");
    for urls in [vec![], vec!["x"; 1_001]] {
        let told = Told::of(owner.post(RESOLVE, &json!({"urls": urls})).await).await;
        assert_eq!((told.status, told.refusal()), (400, "validation_error".into()));
    }
}
