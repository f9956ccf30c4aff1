//! Links that are taken back, and links that open so many times.

use std::time::Duration;

use futures_util::future::join_all;
use mediakeep::access::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::index::Kind;
use crate::harness::told::Told;
use crate::harness::{Asset, Caller, Host};

/// A delivery URL as it was answered.
async fn minted(owner: &Caller<'_>, asset: &Asset, wish: Value) -> Value {
    let mut body = wish;
    body["class"] = json!("delivery");
    let told = Told::of(owner.post(&format!("/v1/assets/{}/urls", asset.id), &body).await).await;
    assert_eq!(told.status, 201, "{told:?}");
    told.json()
}

fn text<'a>(answer: &'a Value, member: &str) -> &'a str {
    answer[member].as_str().expect(member)
}

async fn revoke(owner: &Caller<'_>, what: Value) -> Value {
    let told = Told::of(owner.post("/v1/urls/revoke", &what).await).await;
    assert_eq!(told.status, 200, "{told:?}");
    told.json()
}

async fn status(host: &Host, url: &str) -> u16 {
    host.stranger().get(url).await.status().as_u16()
}

async fn durable(owner: &Caller<'_>, asset: &Asset) -> Value {
    let told = Told::of(owner.post(&format!("/v1/assets/{}/urls", asset.id), &json!({"class": "durable"})).await).await;
    assert_eq!(told.status, 201, "{told:?}");
    told.json()
}

/// Asks for the bytes in one of the ways in which one may.
async fn ask(host: &Host, url: &str, method: Method, headers: &[(&str, &str)]) -> Told {
    let mut request = host.stranger().request(method, url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Told::of(request.send().await.expect("an answer")).await
}

#[tokio::test]
async fn a_link_that_was_taken_back_is_gone_whatever_is_asked_of_it() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(8, 8)).await;
    let (taken, kept) = (minted(&owner, &asset, json!({})).await, minted(&owner, &asset, json!({})).await);
    let (url, url_id) = (text(&taken, "url"), text(&taken, "urlId"));
    let tag = ask(&host, url, Method::GET, &[]).await.header("etag").to_owned();
    let unknown = ask(&host, "/a/nothing", Method::GET, &[]).await;

    let answer = revoke(&owner, json!({"urlId": url_id})).await;
    assert_eq!(answer, json!({"revoked": 1, "assets": [asset.id], "runs": ["run-1"], "truncated": false}));

    for headers in
        [&[][..], &[("if-none-match", tag.as_str())], &[("range", "bytes=0-3")], &[("if-match", "\"other\"")]]
    {
        assert_eq!(ask(&host, url, Method::GET, headers).await, unknown, "{headers:?}");
    }
    assert_eq!(ask(&host, url, Method::HEAD, &[]).await.status, 404);
    for open in [text(&kept, "url"), &asset.url] {
        assert_eq!(status(&host, open).await, 200);
    }
    assert_eq!(revoke(&owner, json!({"urlId": url_id})).await["revoked"], 0, "once");
    let host = host.restart().await;
    assert_eq!(status(&host, url).await, 404);
}

#[tokio::test]
async fn a_label_takes_back_what_was_made_with_it() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (one, two) = (owner.upload(png(8, 8)).await, owner.upload_to("run-2", png(9, 9)).await);
    let batch = json!({"class": "delivery", "assets": [one.id, two.id, one.id], "label": "press"});
    let told = Told::of(owner.post("/v1/urls/mint", &batch).await).await.json();
    let press: Vec<&str> = told["urls"].as_array().expect("URLs").iter().map(|url| text(url, "url")).collect();
    let other = minted(&owner, &one, json!({"label": "pres"})).await;
    revoke(&owner, json!({"urlId": told["urls"][2]["urlId"]})).await;
    let mut ids = [&one.id, &two.id];
    ids.sort();
    let right = json!({"revoked": 2, "assets": ids, "runs": ["run-1", "run-2"], "truncated": false});

    assert_eq!(revoke(&owner, json!({"label": "press", "dryRun": true})).await, right);
    assert_eq!(status(&host, press[0]).await, 200, "it was only counted");
    assert_eq!(revoke(&owner, json!({"label": "press"})).await, right);

    for url in &press {
        assert_eq!(status(&host, url).await, 404);
    }
    assert_eq!(status(&host, text(&other, "url")).await, 200);
    assert_eq!(revoke(&owner, json!({"label": "press"})).await["revoked"], 0);
    let log = Told::of(owner.get("/v1/audit/events?type=revoke").await).await;
    assert_eq!(log.status, 200);
}

#[tokio::test]
async fn an_asset_that_is_revoked_has_a_new_string_and_no_older_one_opens() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (asset, other) = (owner.upload(png(8, 8)).await, owner.upload(png(9, 9)).await);
    owner.post("/v1/runs/quoting/references", &json!({"assets": [asset.id]})).await;
    let delivery = minted(&owner, &asset, json!({})).await;
    let (before, selector) = (durable(&owner, &asset).await, json!({"assetId": asset.id}));
    let right = json!({"revoked": 1, "assets": [asset.id], "runs": ["quoting", "run-1"], "truncated": false});

    assert_eq!(revoke(&owner, json!({"assetId": asset.id, "dryRun": true})).await, right);
    assert_eq!(status(&host, &asset.url).await, 200);
    assert_eq!(revoke(&owner, selector).await, right);

    for dead in [&asset.url, text(&delivery, "url"), text(&before, "url")] {
        assert_eq!(status(&host, dead).await, 404);
    }
    let after = durable(&owner, &asset).await;
    assert_ne!(after["url"], before["url"]);
    assert_eq!(status(&host, text(&after, "url")).await, 200);
    assert_eq!(status(&host, &other.url).await, 200);

    assert_eq!(revoke(&owner, json!({"urlId": before["urlId"]})).await["revoked"], 0, "it is dead already");
    assert_eq!(status(&host, text(&after, "url")).await, 200);
    assert_eq!(revoke(&owner, json!({"urlId": after["urlId"]})).await["revoked"], 1);
    assert_eq!(status(&host, text(&after, "url")).await, 404);
    let referred = owner.post("/v1/runs/later/references", &json!({"assets": [asset.url]})).await;
    assert_eq!(referred.status(), 200, "a revoked URL still names its asset to its tenant");
}

#[tokio::test]
async fn a_run_takes_its_links_back_and_says_which_other_runs_quote_them() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let mut assets = Vec::new();
    for n in 0..3 {
        assets.push(owner.upload_to("leaked", noise(300, n)).await);
    }
    let other = owner.upload_to("other", noise(300, 9)).await;
    owner.post("/v1/runs/other/references", &json!({"assets": [assets[0].id]})).await;

    for dry in [true, false] {
        let told = revoke(&owner, json!({"runId": "leaked", "dryRun": dry})).await;
        assert_eq!(
            (&told["revoked"], &told["runs"], &told["truncated"]),
            (&json!(3), &json!(["other"]), &json!(false))
        );
        assert_eq!(told["assets"].as_array().map(Vec::len), Some(3));
        for asset in &assets {
            assert_eq!(status(&host, &asset.url).await, if dry { 200 } else { 404 });
        }
    }
    assert_eq!(status(&host, &other.url).await, 200);
}

#[tokio::test]
async fn all_is_all_of_one_tenant_and_what_is_made_afterwards_opens() {
    let host = Host::start().await;
    let (owner, stranger) = (host.owner("acme"), host.owner("globex"));
    let (one, two) = (owner.upload(png(8, 8)).await, owner.upload_loose(png(9, 9)).await);
    let foreign = stranger.upload(png(8, 8)).await;
    let delivery = minted(&owner, &one, json!({})).await;

    assert_eq!(revoke(&owner, json!({"all": true, "dryRun": true})).await["revoked"], 2);
    assert_eq!(status(&host, &one.url).await, 200);
    let told = revoke(&owner, json!({"all": true})).await;
    assert_eq!((&told["revoked"], &told["runs"]), (&json!(2), &json!(["run-1"])));

    for dead in [&one.url, &two.url, text(&delivery, "url")] {
        assert_eq!(status(&host, dead).await, 404);
    }
    assert_eq!(status(&host, &foreign.url).await, 200);
    let made = [owner.upload(png(7, 7)).await.url, owner.share(&one, 900).await];
    for url in made.iter().map(String::as_str).chain([text(&durable(&owner, &two).await, "url")]) {
        assert_eq!(status(&host, url).await, 200);
    }
    let again = durable(&owner, &two).await;
    let host = host.restart().await;
    assert_eq!(durable(&host.owner("acme"), &two).await, again, "the same string, whenever it is asked for");
}

#[tokio::test]
async fn what_is_unknown_or_anothers_is_nothing_to_revoke() {
    let host = Host::start().await;
    let (owner, stranger) = (host.owner("acme"), host.owner("globex"));
    let asset = owner.upload(png(8, 8)).await;
    let delivery = minted(&owner, &asset, json!({"label": "press"})).await;
    let nothing = json!({"revoked": 0, "assets": [], "runs": [], "truncated": false});

    for what in [
        json!({"urlId": delivery["urlId"]}),
        json!({"urlId": durable(&owner, &asset).await["urlId"]}),
        json!({"urlId": "nobody's"}),
        json!({"label": "press"}),
        json!({"assetId": asset.id}),
        json!({"assetId": "nobody's"}),
        json!({"runId": "run-1"}),
        json!({"runId": "no run's name"}),
        json!({"all": true}),
    ] {
        assert_eq!(revoke(&stranger, what.clone()).await, nothing, "{what}");
    }
    for url in [&asset.url, text(&delivery, "url")] {
        assert_eq!(status(&host, url).await, 200);
    }
}

#[tokio::test]
async fn a_revocation_names_one_thing_and_needs_what_it_reaches() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(png(8, 8)).await;
    let owner = host.owner("acme");
    for bad in [
        json!({}),
        json!({"dryRun": true}),
        json!({"all": false}),
        json!({"urlId": "a", "label": "b"}),
        json!({"assetId": asset.id, "all": true}),
        json!({"urlId": 7}),
        json!({"url": asset.url}),
    ] {
        let told = Told::of(owner.post("/v1/urls/revoke", &bad).await).await;
        assert_eq!((told.status, told.refusal()), (400, "validation_error".into()), "{bad}");
    }
    let narrow = host.with_scope("acme", Scope::AssetsMint);
    for what in [json!({"urlId": "url_1"}), json!({"label": "press"})] {
        assert_eq!(narrow.post("/v1/urls/revoke", &what).await.status(), 200, "{what}");
    }
    let durable = durable(&owner, &asset).await;
    for what in [
        json!({"urlId": durable["urlId"]}),
        json!({"assetId": asset.id}),
        json!({"runId": "run-1"}),
        json!({"all": true}),
    ] {
        let told = Told::of(narrow.post("/v1/urls/revoke", &what).await).await;
        assert_eq!((told.status, told.refusal()), (403, "forbidden".into()), "{what}");
        assert_eq!(told.json()["details"], json!({"scopeRequired": "runs:write"}));
    }
    assert_eq!(status(&host, &asset.url).await, 200);
}

#[tokio::test]
async fn a_counted_link_opens_so_many_times_however_many_ask() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(noise(100_000, 1)).await;
    let link = minted(&owner, &asset, json!({"maxUses": 5})).await;
    let url = text(&link, "url");

    let asked = join_all((0..16).map(|_| ask(&host, url, Method::GET, &[]))).await;

    let opened: Vec<&Told> = asked.iter().filter(|told| told.status == 200).collect();
    assert_eq!(opened.len(), 5);
    assert!(opened.iter().all(|told| told.header("cache-control") == "no-store" && told.body.len() == 100_000));
    let refused: Vec<&Told> = asked.iter().filter(|told| told.status != 200).collect();
    assert!(refused.iter().all(|told| told.status == 410 && told.refusal() == "not_found: url_used"), "{refused:?}");
    for method in [Method::GET, Method::HEAD] {
        assert_eq!(ask(&host, url, method, &[]).await.status, 410);
    }
    let host = host.restart().await;
    assert_eq!(status(&host, url).await, 410);
    host.advance(Duration::from_secs(900));
    assert_eq!(Told::of(host.stranger().get(url).await).await.refusal(), "not_found: url_expired");
}

#[tokio::test]
async fn only_bytes_take_a_use() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(8, 8)).await;
    let link = minted(&owner, &asset, json!({"maxUses": 2})).await;
    let url = text(&link, "url");
    let tag = ask(&host, &asset.url, Method::HEAD, &[]).await.header("etag").to_owned();

    for _ in 0..3 {
        assert_eq!(ask(&host, url, Method::HEAD, &[]).await.status, 200);
        assert_eq!(ask(&host, url, Method::OPTIONS, &[]).await.status, 204);
        assert_eq!(ask(&host, url, Method::GET, &[("if-none-match", &tag)]).await.status, 304);
        assert_eq!(ask(&host, url, Method::GET, &[("if-match", "\"other\"")]).await.status, 412);
        assert_eq!(ask(&host, url, Method::GET, &[("range", "bytes=999999-")]).await.status, 416);
    }
    for _ in 0..2 {
        assert_eq!(ask(&host, url, Method::GET, &[("range", "bytes=0-3")]).await.status, 206);
    }
    assert_eq!(ask(&host, url, Method::GET, &[("range", "bytes=4-7")]).await.status, 410);
}

#[tokio::test]
async fn labels_and_uses_are_delivery_urls_own() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(8, 8)).await;
    let path = format!("/v1/assets/{}/urls", asset.id);
    for (bad, named) in [
        (json!({"class": "durable", "label": "press"}), "label"),
        (json!({"class": "durable", "maxUses": 1}), "maxUses"),
        (json!({"class": "delivery", "maxUses": 0}), "maxUses"),
        (json!({"class": "delivery", "maxUses": -1}), "maxUses"),
        (json!({"class": "delivery", "maxUses": 1.5}), "maxUses"),
        (json!({"class": "delivery", "label": ""}), "label"),
        (json!({"class": "delivery", "label": "a\nb"}), "label"),
        (json!({"class": "delivery", "label": "x".repeat(257)}), "label"),
    ] {
        let told = Told::of(owner.post(&path, &bad).await).await;
        assert_eq!((told.status, told.refusal()), (400, "validation_error".into()), "{bad}");
        assert!(told.json()["message"].as_str().expect("a message").contains(named), "{bad}: {told:?}");
    }
    minted(&owner, &asset, json!({"label": "é".repeat(256), "maxUses": 1})).await;
}

#[tokio::test]
async fn an_auditor_is_told_what_a_link_of_its_tenant_is_worth() {
    let host = Host::start().await;
    let (owner, auditor) = (host.owner("acme"), host.with_scope("acme", Scope::AuditRead));
    let asset = owner.upload(png(8, 8)).await;
    let (plain, used) = (minted(&owner, &asset, json!({})).await, minted(&owner, &asset, json!({"maxUses": 1})).await);
    let look = async |caller: &Caller<'_>, url: &str| {
        Told::of(caller.post("/v1/urls/introspect", &json!({"url": url})).await).await.json()
    };
    let stands = durable(&owner, &asset).await;
    assert_eq!(
        look(&auditor, &asset.url).await,
        json!({"active": true, "assetId": asset.id, "class": "durable", "expiresAt": null, "urlId": stands["urlId"]})
    );
    let told = look(&auditor, text(&plain, "url")).await;
    assert_eq!(
        (&told["active"], &told["class"], &told["expiresAt"]),
        (&json!(true), &json!("delivery"), &plain["expiresAt"])
    );
    assert_eq!(status(&host, text(&used, "url")).await, 200);
    assert_eq!(look(&auditor, text(&used, "url")).await["reason"], "url_used");

    for nothing in ["", "nonsense", "http://elsewhere/a/b", &format!("{}x", asset.url)] {
        assert_eq!(look(&auditor, nothing).await, json!({"active": false}), "{nothing}");
    }
    assert_eq!(look(&host.owner("globex"), &asset.url).await, json!({"active": false}));
    assert_eq!(
        host.with_scope("acme", Scope::AssetsMint).post("/v1/urls/introspect", &json!({"url": ""})).await.status(),
        403
    );

    revoke(&owner, json!({"urlId": plain["urlId"]})).await;
    assert_eq!(look(&auditor, text(&plain, "url")).await["reason"], "revoked");
    let brief = owner.share(&asset, 1).await;
    host.advance(Duration::from_secs(1));
    assert_eq!(look(&auditor, &brief).await["reason"], "url_expired");
    assert_eq!(owner.delete(&format!("/v1/assets/{}?erase=true", asset.id)).await.status(), 200);
    assert_eq!(look(&auditor, &asset.url).await["reason"], "asset_erased");
}

#[tokio::test]
async fn an_index_made_anew_opens_nothing_that_was_taken_back() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (all, one) = (owner.upload(png(8, 8)).await, owner.upload(png(9, 9)).await);
    revoke(&owner, json!({"all": true})).await;
    let before = durable(&owner, &one).await;
    revoke(&owner, json!({"assetId": one.id})).await;
    let (taken, kept) = (minted(&owner, &all, json!({})).await, minted(&owner, &all, json!({})).await);
    revoke(&owner, json!({"urlId": taken["urlId"]})).await;
    let counted = minted(&owner, &all, json!({"maxUses": 9})).await;
    let stands = [durable(&owner, &all).await, durable(&owner, &one).await];

    let (host, report) = host.rebuilt(Kind::of_this_process()).await;

    assert!(report.is_whole(), "{report:?}");
    let owner = host.owner("acme");
    assert_eq!([durable(&owner, &all).await, durable(&owner, &one).await], stands);
    for url in [text(&stands[0], "url"), text(&stands[1], "url"), text(&kept, "url")] {
        assert_eq!(status(&host, url).await, 200);
    }
    for dead in [&all.url, &one.url, text(&before, "url"), text(&taken, "url")] {
        assert_eq!(status(&host, dead).await, 404);
    }
    assert_eq!(status(&host, text(&counted, "url")).await, 410, "nobody knows how often it was used");
}

#[tokio::test]
async fn records_of_revocations_go_once_the_links_have_ended() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.put("/v1/runs/run-1", &json!({})).await;
    let asset = owner.upload(png(8, 8)).await;
    let take_back = async || {
        let link = minted(&owner, &asset, json!({})).await;
        revoke(&owner, json!({"urlId": link["urlId"]})).await;
        host.recovery_records()
    };
    let before = take_back().await;
    assert_eq!(take_back().await, before + 1);
    host.advance(Duration::from_secs(3 * 24 * 3600));
    assert_eq!(take_back().await, before, "the old two are gone, and this one is there");
}
