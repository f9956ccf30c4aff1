//! Artifacts (RFC 0205): what is put is what is read, in its host's members and in A2A's.

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::holds_against;
use crate::harness::bytes::{noise, png};
use crate::harness::told::Told;
use crate::harness::{Asset, Caller, Host};

mod access;
mod conformance;
mod ends;
mod refusals;

pub const REPORT: &str = "/v1/runs/run-1/artifacts/report";
pub const A2A: &str = "application/a2a+json";

pub async fn put(caller: &Caller<'_>, path: &str, artifact: &Value) -> Told {
    Told::of(caller.put(path, artifact).await).await
}

/// Reads an artifact with that `Accept`, or with none.
pub async fn read(caller: &Caller<'_>, path: &str, accept: &str) -> Told {
    let request = caller.request(reqwest::Method::GET, path);
    let request = if accept.is_empty() { request } else { request.header("accept", accept) };
    Told::of(request.send().await.expect("an answer")).await
}

/// The artifact as A2A has it, which is what the protocol says that it is.
pub async fn as_a2a(caller: &Caller<'_>, path: &str) -> Value {
    let told = read(caller, path, A2A).await;
    assert_eq!((told.status, told.header("content-type")), (200, A2A), "{told:?}");
    assert_eq!((told.header("vary"), told.header("cache-control")), ("Accept", "no-store"));
    holds_against("a2a-artifact", &told.json());
    let parts = &told.json()["parts"];
    holds_against("conversation-turn-parts", parts);
    parts.as_array().expect("parts").iter().for_each(|part| holds_against("a2a-part", part));
    told.json()
}

pub fn bound(host: &Host, id: &str) -> String {
    host.url(&format!("/v1/assets/{id}/content"))
}

/// The ids of a run's assets.
async fn assets_of(caller: &Caller<'_>, run: &str) -> Vec<String> {
    let listed = Told::of(caller.get(&format!("/v1/runs/{run}/assets")).await).await.json();
    let assets = listed["assets"].as_array().expect("assets");
    assets.iter().map(|asset| asset["assetId"].as_str().expect("an id").to_owned()).collect()
}

async fn words(caller: &Caller<'_>, name: &str) -> Asset {
    let body = json!({"base64": BASE64.encode(b"words"), "name": name, "mimeType": "text/plain"});
    crate::harness::asset(caller.inline(&body).await).await
}

#[tokio::test]
async fn an_artifact_reads_back_as_it_was_put() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let chart = owner.upload_loose(png(3, 3)).await;
    let data = json!({"title": "Q2", "sections": [1, 2.5, null], "tenant": "anything", "unknown": {"deep": {}}});
    let artifact = json!({
        "name": "Quarterly report", "description": "With its chart",
        "artifactTypeId": "vendor.example.report", "schemaVersion": 1,
        "parts": [{"text": ""}, {"data": data}, {"data": null}, {"assetId": chart.id, "filename": "signups.png"}],
    });

    let told = put(&owner, REPORT, &artifact).await;

    assert_eq!((told.status, told.header("content-type")), (201, "application/json"));
    let mut right = artifact.clone();
    right["artifactId"] = json!("report");
    assert_eq!(told.json(), right);
    let plain = read(&owner, REPORT, "").await;
    assert_eq!((plain.status, plain.header("content-type"), plain.header("vary")), (200, "application/json", "Accept"));
    assert_eq!(plain.json(), right);
    let url = bound(&host, &chart.id);
    let a2a = json!({
        "artifactId": "report", "name": "Quarterly report", "description": "With its chart",
        "parts": [
            {"text": ""}, {"data": data, "mediaType": "application/json"}, {"data": null, "mediaType": "application/json"},
            {"url": url, "mediaType": "image/png", "filename": "signups.png"},
        ],
        "metadata": {"openwop": {"artifactTypeId": "vendor.example.report", "schemaVersion": 1}},
    });
    assert_eq!(as_a2a(&owner, REPORT).await, a2a);
    assert_eq!(owner.show(&chart).await["references"], json!(["run-1"]), "naming it is referencing it");
    let head = owner.head(REPORT).await;
    assert_eq!((head.status().as_u16(), head.headers()["vary"].to_str().expect("a word")), (200, "Accept"));
}

#[tokio::test]
async fn what_nobody_said_is_not_there() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = words(&owner, "own.txt").await;
    let artifact = json!({"name": null, "parts": [{"assetId": asset.id}]});

    assert_eq!(put(&owner, REPORT, &artifact).await.status, 201);

    let parts = json!([{"assetId": asset.id}]);
    assert_eq!(read(&owner, REPORT, "").await.json(), json!({"artifactId": "report", "parts": parts}));
    let parts = json!([{"url": bound(&host, &asset.id), "mediaType": "text/plain", "filename": "own.txt"}]);
    assert_eq!(as_a2a(&owner, REPORT).await, json!({"artifactId": "report", "parts": parts}), "its asset's own name");
}

#[tokio::test]
async fn bytes_that_a_part_brings_along_become_an_asset() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let raw = BASE64.encode(&png(4, 4));
    let part = json!({"raw": raw, "mediaType": "application/octet-stream", "filename": "a/chart.png"});

    let told = put(&owner, REPORT, &json!({"parts": [part]})).await;

    assert_eq!(told.status, 201, "{told:?}");
    let id = told.json()["parts"][0]["assetId"].as_str().expect("an asset").to_owned();
    assert_eq!(told.json()["parts"], json!([{"assetId": id, "filename": "achart.png"}]), "a name holds no path");
    let content = Told::of(owner.get(&bound(&host, &id)).await).await;
    assert_eq!((content.status, content.header("content-type"), &content.body[..]), (200, "image/png", &png(4, 4)[..]));
    let part = json!({"url": bound(&host, &id), "mediaType": "image/png", "filename": "achart.png"});
    assert_eq!(as_a2a(&owner, REPORT).await["parts"], json!([part]), "the type is what they are");
    assert_eq!(assets_of(&owner, "run-1").await, [id]);
}

#[tokio::test]
async fn equal_bytes_of_a_run_stay_one_asset() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let there = owner.upload(noise(400, 1)).await;
    let part = |bytes: &[u8], name: &str| json!({"raw": BASE64.encode(bytes), "mediaType": "a/b", "filename": name});
    let artifact = json!({"parts": [part(&noise(400, 1), "x"), part(&noise(500, 2), "y"), part(&noise(500, 2), "z")]});

    let first = put(&owner, REPORT, &artifact).await;
    let again = put(&owner, REPORT, &artifact).await;
    let other = put(&owner, "/v1/runs/run-1/artifacts/other", &artifact).await;

    assert_eq!((first.status, again.status, other.status), (201, 200, 201), "{first:?}");
    assert_eq!(again.json(), first.json());
    let parts = first.json()["parts"].clone();
    assert_eq!(parts[0]["assetId"], json!(there.id));
    assert_eq!((&parts[1]["assetId"], &parts[2]["filename"]), (&parts[2]["assetId"], &json!("z")));
    assert_eq!(assets_of(&owner, "run-1").await.len(), 2);
    // Another run's are its own.
    let elsewhere = put(&owner, "/v1/runs/run-2/artifacts/report", &artifact).await;
    assert_ne!(elsewhere.json()["parts"][0]["assetId"], parts[0]["assetId"]);
}

#[tokio::test]
async fn equal_bytes_that_come_at_once_under_different_names_are_one_asset() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let puts = (0..6).map(async |n| {
        let part = json!({"raw": BASE64.encode(&noise(400, 1)), "mediaType": "a/b", "filename": format!("{n}.bin")});
        put(&owner, &format!("/v1/runs/run-1/artifacts/a-{n}"), &json!({"parts": [part]})).await.status
    });

    let statuses = futures_util::future::join_all(puts).await;

    assert!(statuses.iter().all(|status| *status == 201), "{statuses:?}");
    assert_eq!(assets_of(&owner, "run-1").await.len(), 1);
}

#[tokio::test]
async fn a_later_put_replaces_the_whole() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (one, two) = (owner.upload_loose(png(1, 1)).await, owner.upload_loose(png(2, 2)).await);
    let first = json!({"name": "One", "schemaVersion": 3, "parts": [{"assetId": one.id}]});
    assert_eq!(put(&owner, REPORT, &first).await.status, 201);

    let told = put(&owner, REPORT, &json!({"parts": [{"assetId": two.id}]})).await;

    assert_eq!((told.status, told.json()), (200, json!({"artifactId": "report", "parts": [{"assetId": two.id}]})));
    assert_eq!(read(&owner, REPORT, "").await.json(), told.json());
    assert_eq!(owner.show(&one).await["references"], json!(["run-1"]), "what a log may have quoted stays referenced");
}

#[tokio::test]
async fn a_name_may_be_anything_that_a_path_holds() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for name in ["a".repeat(257), "run_1:node-2~x.y".to_owned(), "...".to_owned()] {
        let path = format!("/v1/runs/run-1/artifacts/{name}");
        assert_eq!(put(&owner, &path, &json!({"parts": [{"text": name}]})).await.status, 201, "{name}");
        assert_eq!(as_a2a(&owner, &path).await["artifactId"], json!(name), "the path's own segment");
    }
}

#[tokio::test]
async fn what_was_put_stands_in_the_log() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_loose(png(1, 1)).await;
    put(&owner, REPORT, &json!({"name": "a secret", "parts": [{"assetId": asset.id}, {"text": "a secret"}]})).await;

    while host.app().index.seal_audit(100).await.expect("sealed") > 0 {}
    let rows = Told::of(owner.get("/v1/audit/events?type=artifact").await).await.json();

    let (events, row) = (rows["events"].as_array().expect("rows"), &rows["events"][0]);
    assert_eq!((events.len(), &row["runId"], &row["principal"]), (1, &json!("run-1"), &json!("acme-all")));
    assert_eq!(row["details"], json!({"artifactId": "report", "assets": [asset.id]}));
    assert!(!rows.to_string().contains("a secret"));
}
