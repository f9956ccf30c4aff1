//! Making URLs, and how long each lives.

use std::time::Duration;

use mediakeep_keys::Ring;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{Asset, Caller, Host, asset};

const BASE: &str = "https://media.example.com";

#[tokio::test]
async fn the_url_of_a_log_is_one_string_for_ever() {
    let host = Host::with(|settings| settings.server.public_base_url = BASE.into()).await;
    let asset = host.owner("acme").upload(png(8, 8)).await;
    let url = asset.url.clone();
    assert!(url.starts_with("https://media.example.com/a/"), "{url}");
    let again = async |host: &Host| durable(&host.owner("acme"), &asset).await;

    assert_eq!(again(&host).await, url);
    host.advance(Duration::from_secs(3600));
    assert_eq!(again(&host).await, url);
    let host = host.restart().await;
    assert_eq!(again(&host).await, url);
    host.change_ring(|ring, now| ring.rotate(now, 0).expect("a key"));
    assert_eq!(again(&host).await, url);
    let host = host.restart().await;
    assert_eq!(again(&host).await, url);
    assert_eq!(host.stranger().get(path_of(&url)).await.status(), 200);
}

#[tokio::test]
async fn a_new_key_signs_new_urls_and_a_retired_one_opens_nothing() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (first, before) = (host.signing_kid(), owner.upload(png(8, 8)).await);
    let delivered_before = owner.share(&before, 900).await;

    host.change_ring(|ring, now| ring.rotate(now, 60).expect("a key"));
    assert_eq!(host.signing_kid(), first, "the new key only verifies yet");
    host.advance(Duration::from_secs(60));
    assert_ne!(host.signing_kid(), first);
    let after = owner.upload(png(9, 9)).await;
    let delivered_after = owner.share(&before, 900).await;
    for url in [&before.url, &after.url, &delivered_before, &delivered_after] {
        assert_eq!(host.stranger().get(url).await.status(), 200);
    }

    host.change_ring(|ring, now| ring.retire(&first, now).expect("it no longer signs"));
    let unknown = Told::of(host.stranger().get("/a/nothing").await).await;
    for url in [&before.url, &delivered_before] {
        assert_eq!(Told::of(host.stranger().get(url).await).await, unknown);
    }
    for url in [&after.url, &delivered_after] {
        assert_eq!(host.stranger().get(url).await.status(), 200);
    }
}

#[tokio::test]
async fn a_new_generation_is_a_new_string_and_the_old_one_is_dead() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(8, 8)).await;
    let delivery = owner.share(&asset, 900).await;
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);

    host.raise_generation("acme", &asset).await;

    let url = durable(&owner, &asset).await;
    assert_ne!(url, asset.url);
    assert_eq!(host.stranger().get(&url).await.status(), 200);
    for dead in [&asset.url, &delivery] {
        assert_eq!(host.stranger().get(dead).await.status(), 404);
    }
}

#[tokio::test]
async fn a_delivery_url_lives_for_its_seconds_to_the_second() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(8, 8)).await;
    owner.put("/v1/runs/run-1", &json!({})).await;
    const WEEK: u64 = 7 * 24 * 3600;

    for seconds in [1, 2, 900, WEEK] {
        let told = mint(&owner, &asset, &json!({"class": "delivery", "expiresInSeconds": seconds})).await;
        let url = told.json()["url"].as_str().expect("a URL").to_owned();
        host.advance(Duration::from_millis(seconds * 1_000 - 1));
        assert_eq!(host.stranger().get(&url).await.status(), 200, "{seconds}");
        host.advance(Duration::from_millis(1));
        let told = Told::of(host.stranger().get(&url).await).await;
        assert_eq!((told.status, told.refusal()), (410, "not_found: url_expired".into()), "{seconds}");
    }

    // The life begins at the whole second: half a second is lost, never won.
    host.advance(Duration::from_millis(500));
    let url = owner.share(&asset, 1).await;
    host.advance(Duration::from_millis(499));
    assert_eq!(host.stranger().get(&url).await.status(), 200);
    host.advance(Duration::from_millis(1));
    assert_eq!(host.stranger().get(&url).await.status(), 410);
}

#[tokio::test]
async fn a_wish_that_cannot_be_granted_is_refused_by_name() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(8, 8)).await;

    for (wish, named) in [
        (json!({"class": "delivery", "expiresInSeconds": 0}), "expiresInSeconds"),
        (json!({"class": "delivery", "expiresInSeconds": -1}), "expiresInSeconds"),
        (json!({"class": "delivery", "expiresInSeconds": 604_801}), "expiresInSeconds"),
        (json!({"class": "delivery", "expiresInSeconds": i64::MAX}), "expiresInSeconds"),
        (json!({"class": "delivery", "expiresInSeconds": 1e300}), "expiresInSeconds"),
        (json!({"class": "delivery", "expiresInSeconds": 1.5}), "expiresInSeconds"),
        (json!({"class": "delivery", "expiresInSeconds": "900"}), "expiresInSeconds"),
        (json!({"class": "delivery", "disposition": "sandbox"}), "disposition"),
        (json!({"class": "durable", "expiresInSeconds": 900}), "expiresInSeconds"),
        (json!({"class": "durable", "disposition": "inline"}), "disposition"),
        (json!({"class": "eternal"}), "class"),
        (json!({"class": {"delivery": null}}), "class"),
        (json!({"class": "delivery", "disposition": {"inline": null}}), "disposition"),
        (json!({}), "class"),
        (json!({"class": "delivery", "expiresIn": 900}), "expiresIn"),
        (json!(["delivery"]), "object"),
    ] {
        let told = mint(&owner, &asset, &wish).await;
        assert_eq!((told.status, told.refusal()), (400, "validation_error".into()), "{wish}");
        assert!(told.json()["message"].as_str().expect("a message").contains(named), "{wish}: {}", told.json());
    }
}

#[tokio::test]
async fn an_answer_says_what_was_made_and_nobody_keeps_it() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(8, 8)).await;
    owner.put("/v1/runs/run-1", &json!({})).await;

    let told = mint(&owner, &asset, &json!({"class": "durable"})).await;
    assert_eq!((told.status, told.header("cache-control")), (201, "no-store"));
    let expected = json!({"url": asset.url, "class": "durable", "expiresAt": null, "urlId": format!("{}.1", asset.id)});
    assert_eq!(told.json(), expected);

    let told = mint(&owner, &asset, &json!({"class": "delivery"})).await;
    assert_eq!((told.status, told.header("cache-control")), (201, "no-store"));
    assert_eq!(told.json()["expiresAt"], "2027-01-15T08:15:00Z");
    assert_eq!(told.json()["class"], "delivery");
    let other = mint(&owner, &asset, &json!({"class": "delivery"})).await;
    assert_ne!(told.json()["urlId"], other.json()["urlId"], "each is revoked by itself");
}

#[tokio::test]
async fn no_url_outlives_its_asset() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let request = owner.request(Method::POST, "/v1/assets").query(&[("retainUntil", "2027-01-17T08:00:00Z")]);
    let asset = asset(request.body(png(8, 8)).send().await.expect("an answer")).await;
    let wish = json!({"class": "delivery", "expiresInSeconds": 604_800});

    let told = mint(&owner, &asset, &wish).await;
    assert_eq!(told.json()["expiresAt"], "2027-01-17T08:00:00Z");
    host.advance(Duration::from_secs(48 * 3600));
    let told = Told::of(host.stranger().get(told.json()["url"].as_str().expect("a URL")).await).await;
    assert_eq!(told.refusal(), "not_found: url_expired");
    // Nobody has swept yet.
    for wish in [wish, json!({"class": "durable"})] {
        let told = mint(&owner, &asset, &wish).await;
        assert_eq!((told.status, told.refusal()), (410, "not_found: asset_expired".into()));
    }
}

#[tokio::test]
async fn several_are_made_in_order_or_none() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (one, two) = (owner.upload(png(8, 8)).await, owner.upload(png(9, 9)).await);
    let foreign = host.owner("globex").upload(png(8, 8)).await;
    let batch = async |assets: Value| {
        Told::of(owner.post("/v1/urls/mint", &json!({"class": "durable", "assets": assets})).await).await
    };

    let told = batch(json!([two.id, one.id, two.id])).await;
    assert_eq!((told.status, told.header("cache-control")), (201, "no-store"));
    let urls: Vec<Value> =
        told.json()["urls"].as_array().expect("a list").iter().map(|made| made["url"].clone()).collect();
    assert_eq!(urls, [json!(two.url), json!(one.url), json!(two.url)]);

    for unknown in [foreign.id.as_str(), "ast_00000000000000000000000000", "../x", ""] {
        let told = batch(json!([one.id, unknown, two.id, unknown])).await;
        assert_eq!((told.status, told.refusal()), (404, "not_found".into()));
        assert_eq!(told.json()["details"], json!({"unknown": [1, 3]}), "{unknown}");
    }
    for (assets, status) in [(vec![&one.id; 500], 201), (vec![&one.id; 501], 400), (vec![], 400)] {
        assert_eq!(batch(json!(assets)).await.status, status);
    }
}

#[tokio::test]
async fn the_dead_get_no_url() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (live, dead) = (owner.upload_loose(png(8, 8)).await, owner.upload_loose(png(9, 9)).await);
    assert_eq!(owner.delete(&format!("/v1/assets/{}", dead.id)).await.status(), 204);

    let told = mint(&owner, &dead, &json!({"class": "durable"})).await;
    assert_eq!((told.status, told.refusal()), (410, "not_found: asset_expired".into()));
    let batch = json!({"class": "delivery", "assets": [live.id, dead.id]});
    assert_eq!(owner.post("/v1/urls/mint", &batch).await.status(), 410);
}

impl Host {
    /// Changes the ring in its file and has the service read it again.
    fn change_ring(&self, change: impl FnOnce(&Ring, i64) -> Ring) {
        let path = self.folder().join("keys/ring.json");
        let ring = Ring::load(&path).expect("a ring");
        change(&ring, self.now().as_second()).save(&path).expect("a place for it");
        self.reload(|_| {});
    }

    fn signing_kid(&self) -> String {
        self.app().live().ring.signing_kid(self.now().as_second()).to_owned()
    }
}

async fn mint(owner: &Caller<'_>, asset: &Asset, wish: &Value) -> Told {
    Told::of(owner.post(&format!("/v1/assets/{}/urls", asset.id), wish).await).await
}

async fn durable(owner: &Caller<'_>, asset: &Asset) -> String {
    mint(owner, asset, &json!({"class": "durable"})).await.json()["url"].as_str().expect("a URL").to_owned()
}

fn path_of(url: &str) -> &str {
    url.strip_prefix(BASE).expect("one of ours")
}
