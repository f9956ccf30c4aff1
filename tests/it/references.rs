//! What a run's log quotes: assets by any of their names, all of them or none.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::{Caller, Host, refusal};

async fn refer(owner: &Caller<'_>, run: &str, names: &[&str]) -> reqwest::Response {
    owner.post(&format!("/v1/runs/{run}/references"), &json!({"assets": names})).await
}

async fn quoted(owner: &Caller<'_>, run: &str) -> Vec<String> {
    let list: Value = owner.get(&format!("/v1/runs/{run}/assets")).await.json().await.expect("JSON");
    let assets = list["assets"].as_array().expect("a list").iter();
    assets.map(|asset| asset["assetId"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn an_asset_is_referenced_by_any_of_its_names() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let media_ref = asset.answer["mediaRef"].as_str().expect("a mediaRef");
    let (delivery, bound) = (owner.share(&asset, 60).await, host.url(&format!("/v1/assets/{}/content", asset.id)));
    let (named, queried) = (format!("{}/chart.png", asset.url), format!("{}?download=1#page", asset.url));
    let elsewhere = asset.url.replace(&host.url(""), "https://media.example.com/kept");
    for (n, name) in
        [&asset.id, media_ref, &asset.url, &delivery, &bound, &named, &queried, &elsewhere].into_iter().enumerate()
    {
        let run = format!("fork-{n}");
        let answer = refer(&owner, &run, &[name]).await;
        assert_eq!(answer.status(), 200, "{n}");
        let answer: Value = answer.json().await.expect("JSON");
        assert_eq!((&answer["runId"], &answer["assets"]), (&json!(run), &json!(1)), "{n}");
        assert_eq!(quoted(&owner, &run).await, [asset.id.as_str()], "{n}");
    }
    let shown = owner.show(&asset).await;
    assert_eq!(shown["referenceCount"], 9);
    assert_eq!(shown["references"][0], "fork-7", "the newest comes first");
}

#[tokio::test]
async fn a_url_past_its_time_still_names_its_asset() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let delivery = owner.share(&asset, 60).await;
    host.advance(Duration::from_secs(61));
    assert_eq!(host.stranger().get(&delivery).await.status(), 410);
    assert_eq!(refer(&owner, "run-2", &[&delivery]).await.status(), 200);
}

#[tokio::test]
async fn unknown_and_foreign_names_are_told_by_their_places_and_nothing_is_added() {
    let host = Host::start().await;
    let (owner, stranger) = (host.owner("acme"), host.owner("globex"));
    let (own, foreign) = (owner.upload(png(3, 3)).await, stranger.upload(png(4, 4)).await);
    let foreign_bound = host.url(&format!("/v1/assets/{}/content", foreign.id));
    let unknown = "ast_0000000000000000000000000z";
    let broken = format!("{}x", own.url);
    let other_host = format!("https://media.example.com/v1/assets/{}/content", own.id);

    let refused = refer(
        &owner,
        "run-2",
        &[&own.id, unknown, &foreign.id, &own.url, &foreign.url, "nonsense", &foreign_bound, &broken, "", &other_host],
    )
    .await;

    assert_eq!(refused.status(), 404);
    let refused = refusal(refused).await;
    assert_eq!(
        (&refused["error"], &refused["details"]["unknown"]),
        (&json!("not_found"), &json!([1, 2, 4, 5, 6, 7, 8, 9]))
    );
    assert_eq!(owner.get("/v1/runs/run-2").await.status(), 404);
    assert_eq!(owner.show(&own).await["referenceCount"], 1);

    let (absent, foreign) = (refer(&owner, "run-2", &[unknown]).await, refer(&owner, "run-2", &[&foreign.id]).await);
    assert_eq!(refusal(absent).await, refusal(foreign).await);
}

#[tokio::test]
async fn the_dead_are_referenced_as_tombstones_and_stay_dead() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let dead = owner.upload_loose(png(3, 3)).await;
    host.advance(Duration::from_millis(1));
    let live = owner.upload(png(4, 4)).await;
    assert_eq!(owner.delete(&format!("/v1/assets/{}", dead.id)).await.status(), 204);

    let answer = refer(&owner, "run-2", &[&dead.id, &live.id, &dead.url]).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(quoted(&owner, "run-2").await, [dead.id.as_str(), live.id.as_str()]);
    let shown = owner.show(&dead).await;
    assert_eq!((&shown["state"], &shown["references"]), (&json!("expired"), &json!(["run-2"])));
    assert_eq!(host.stranger().get(&dead.url).await.status(), 410);
    let run: Value = owner.get("/v1/runs/run-2").await.json().await.expect("JSON");
    assert_eq!((&run["assets"], &run["bytes"]), (&json!(2), &live.answer["asset"]["bytes"]));
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn a_list_that_is_none_is_a_400() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let many = vec![asset.id.as_str(); 1001];
    for body in [
        json!({}),
        json!({"assets": []}),
        json!({"assets": many}),
        json!({"assets": asset.id}),
        json!({"assets": [1]}),
        json!({"assets": [asset.id], "runId": "run-2"}),
    ] {
        let answer = owner.post("/v1/runs/run-2/references", &body).await;
        assert_eq!(answer.status(), 400);
        assert_eq!(refusal(answer).await["error"], "validation_error");
    }
    assert_eq!(refer(&owner, "run-2", &many[1..]).await.status(), 200);
    assert_eq!(owner.show(&asset).await["referenceCount"], 2, "the same one named a thousand times is one reference");
}

#[tokio::test]
async fn a_reference_keeps_what_would_have_gone_with_its_first_run() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_to("parent", png(3, 3)).await;
    let days = |n: u64| (host.now() + Duration::from_secs(n * 86_400)).to_string();
    assert_eq!(owner.put("/v1/runs/parent", &json!({"logRetainUntil": days(2)})).await.status(), 200);
    assert_eq!(owner.put("/v1/runs/child", &json!({"logRetainUntil": days(8)})).await.status(), 200);
    assert_eq!(refer(&owner, "child", &[&asset.url]).await.status(), 200);

    host.advance(Duration::from_secs(8 * 86_400 - 1));
    host.sweep().await;
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200, "the recorded string did not change");
    host.advance(Duration::from_secs(1));
    host.sweep().await;
    assert_eq!(host.stranger().get(&asset.url).await.status(), 410);
    assert!(host.verify().await.is_clean());
}
