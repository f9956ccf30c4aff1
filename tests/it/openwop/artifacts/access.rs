//! Who may read artifacts, and what else that opens.

use mediakeep::access::Scope;
use serde_json::{Value, json};

use super::{A2A, REPORT, as_a2a, bound, put, read};
use crate::harness::bytes::{noise, png};
use crate::harness::told::Told;
use crate::harness::{Caller, Host};

async fn content(caller: &Caller<'_>, id: &str) -> Told {
    Told::of(caller.get(&format!("/v1/assets/{id}/content")).await).await
}

#[tokio::test]
async fn a_reader_of_artifacts_opens_what_they_name_and_nothing_else() {
    let host = Host::start().await;
    let (owner, reader) = (host.owner("acme"), host.with_scope("acme", Scope::ArtifactsRead));
    let (named, other) = (owner.upload(png(3, 3)).await, owner.upload(noise(300, 1)).await);
    let foreign = host.owner("globex").upload(png(5, 5)).await;
    assert_eq!(put(&owner, REPORT, &json!({"parts": [{"assetId": named.id}]})).await.status, 201);

    let url = as_a2a(&reader, REPORT).await["parts"][0]["url"].as_str().expect("a URL").to_owned();
    assert_eq!(url, bound(&host, &named.id));
    let opened = Told::of(reader.get(&url).await).await;
    assert_eq!((opened.status, &opened.body[..], opened.header("cache-control")), (200, &png(3, 3)[..], "no-store"));
    let range = reader.request(reqwest::Method::GET, &url).header("range", "bytes=0-3").send().await;
    assert_eq!(range.expect("an answer").status(), 206);
    let nothing = content(&reader, "ast_01jhp3v5x0f7rb6k2m8q4t9wze").await;
    assert_eq!((nothing.status, nothing.refusal()), (404, "not_found".into()));
    for id in [&*other.id, &*foreign.id, "report"] {
        assert_eq!(content(&reader, id).await, nothing, "{id}");
    }
    // Its metadata are another scope's.
    assert_eq!(reader.get(&format!("/v1/assets/{}", named.id)).await.status(), 403);
    assert_eq!(reader.put(REPORT, &json!({"parts": [{"text": "x"}]})).await.status(), 403);
}

#[tokio::test]
async fn what_an_artifact_no_longer_names_it_no_longer_opens() {
    let host = Host::start().await;
    let (owner, reader) = (host.owner("acme"), host.with_scope("acme", Scope::ArtifactsRead));
    let asset = owner.upload(png(3, 3)).await;
    let naming = json!({"parts": [{"assetId": asset.id}]});
    put(&owner, REPORT, &naming).await;
    put(&owner, "/v1/runs/run-2/artifacts/b", &naming).await;
    assert_eq!(content(&reader, &asset.id).await.status, 200);

    put(&owner, REPORT, &json!({"parts": [{"text": "words"}]})).await;
    assert_eq!(content(&reader, &asset.id).await.status, 200, "another artifact names it");
    assert_eq!(owner.post("/v1/runs/run-2/erase", &json!({})).await.status(), 200);

    assert_eq!(content(&reader, &asset.id).await.status, 404);
    assert_eq!(content(&owner, &asset.id).await.status, 200);
}

#[tokio::test]
async fn who_may_read_assets_need_not_read_artifacts() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let reader = host.with_scope("acme", Scope::AssetsRead);

    assert_eq!(content(&reader, &asset.id).await.status, 200);
    let told = read(&reader, REPORT, A2A).await;
    assert_eq!(told.status, 403);
    assert_eq!(told.json()["details"], json!({"scopeRequired": "artifacts:read"}), "whether it is there or not");
}

#[tokio::test]
async fn the_media_type_is_the_one_that_is_preferred() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    put(&owner, REPORT, &json!({"parts": [{"text": "words"}]})).await;
    for (accept, content_type) in [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/json, application/a2a+json", "application/json"),
        ("application/a2a+json;q=0, */*", "application/json"),
        ("text/html", "application/json"),
        ("application/a2a+json", A2A),
        ("application/a2a+json, application/json;q=0.5", A2A),
        ("application/*;q=0.2, application/a2a+json;q=0.3", A2A),
        ("application/json;q=0, */*;q=0.1", A2A),
    ] {
        let told = read(&owner, REPORT, accept).await;
        assert_eq!(
            (told.status, told.header("content-type"), told.header("vary")),
            (200, content_type, "Accept"),
            "{accept}"
        );
    }
}

#[tokio::test]
async fn the_check_of_tenants_tries_artifacts_and_what_they_name() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_loose(png(3, 3)).await;
    let check = async || {
        let told = Told::of(owner.post("/v1/audit/isolation-checks", &json!({})).await).await;
        assert_eq!((told.status, &told.json()["leaks"]), (200, &json!([])));
        told.json()["attempts"].as_u64().expect("a number")
    };
    let before = check().await;

    put(&owner, REPORT, &json!({"parts": [{"assetId": asset.id}]})).await;

    let after = check().await;
    assert!(after >= before + 4, "it has a run now, and an artifact: {before}, then {after}");
    let none: Vec<Value> = vec![];
    let foreign = Told::of(host.owner("globex").get("/v1/runs").await).await.json();
    assert_eq!(foreign["runs"], json!(none));
}
