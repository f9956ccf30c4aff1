//! The legs of the public suite that drive artifacts: the same routes and bodies, the same statuses.

use serde_json::{Value, json};

use super::{A2A, put, read};
use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{Host, refusal};
use crate::openwop::holds_against;

/// `artifact-auth`
#[tokio::test]
async fn an_artifact_is_not_read_without_a_credential() {
    let host = Host::start().await;
    let path = "/v1/runs/openwop-conformance-noauth-run/artifacts/openwop-conformance-noauth-artifact";

    let told = Told::of(host.stranger().get(path).await).await;

    assert_eq!((told.status, told.refusal(), told.header("location")), (401, "unauthenticated".into(), ""));
}

/// `route-coverage`, its artifact leg
#[tokio::test]
async fn an_unknown_artifact_is_a_refusal_of_the_one_shape() {
    let host = Host::start().await;
    let path = "/v1/runs/openwop-conformance-unknown-run/artifacts/openwop-conformance-unknown-artifact";
    let foreign = "/v1/runs/run-1/artifacts/report";
    assert_eq!(put(&host.owner("globex"), foreign, &json!({"parts": [{"text": "x"}]})).await.status, 201);

    let unknown = host.owner("acme").get(path).await;

    assert_eq!(unknown.status(), 404);
    assert_eq!(refusal(unknown).await["error"], "not_found");
    let (foreign, unknown) =
        (read(&host.owner("acme"), foreign, A2A).await, read(&host.owner("acme"), path, A2A).await);
    assert_eq!(foreign, unknown);
}

/// `v2-artifact-a2a-shape`: shape, id and url legs
#[tokio::test]
async fn an_artifact_that_was_emitted_is_a2as_and_opens_to_its_tenant_alone() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_to("run-8f3c", png(4, 4)).await;
    let artifact = json!({
        "artifactTypeId": "vendor.example.report", "schemaVersion": 1,
        "parts": [{"data": {"title": "Q2"}}, {"assetId": asset.id}, {"raw": "aGVsbG8=", "mediaType": "text/plain"}],
    });
    let path = "/v1/runs/run-8f3c/artifacts/run-8f3c:node-1";
    assert_eq!(put(&owner, path, &artifact).await.status, 201);

    let told = read(&owner, path, "application/a2a+json, application/json;q=0.5").await;

    assert_eq!((told.status, told.header("content-type")), (200, A2A));
    holds_against("a2a-artifact", &told.json());
    assert_eq!(told.json()["artifactId"], "run-8f3c:node-1");
    let parts = told.json()["parts"].clone();
    let urls: Vec<&str> = parts.as_array().expect("parts").iter().filter_map(|part| part["url"].as_str()).collect();
    assert_eq!(urls.len(), 2);
    for url in urls {
        for (who, status) in [(owner.clone(), 200), (host.owner("globex"), 404), (host.stranger(), 401)] {
            assert_eq!(who.get(url).await.status(), status, "{url}");
        }
    }
    assert!(!told.json().to_string().contains("/a/"), "no capability");
}

/// `a2a-parts-schemas`: what must not be a part, by the schemas that our answers are held against
#[test]
fn the_schemas_refuse_what_the_protocol_refuses() {
    let part = |value: Value| crate::openwop::schema("a2a-part").is_valid(&value);
    for good in
        [json!({"text": ""}), json!({"data": null}), json!({"raw": "AA=="}), json!({"url": "https://a.example/b"})]
    {
        assert!(part(good.clone()), "{good}");
    }
    for bad in [
        json!({}),
        json!({"text": "a", "data": 1}),
        json!({"kind": "text", "text": "a"}),
        json!({"url": "no url"}),
        json!({"text": "a", "mediaType": "x"}),
        json!({"text": 1}),
    ] {
        assert!(!part(bad.clone()), "{bad}");
    }
    let artifact = |value: Value| crate::openwop::schema("a2a-artifact").is_valid(&value);
    assert!(artifact(json!({"artifactId": "a", "parts": [{"text": "a"}], "extensions": ["https://a.example/x"]})));
    for bad in [
        json!({"artifactId": "a", "parts": []}),
        json!({"artifactId": "", "parts": [{"text": "a"}]}),
        json!({"parts": [{"text": "a"}]}),
        json!({"artifactId": "a", "parts": [{"text": "a"}], "more": 1}),
        json!({"artifactId": "a", "parts": [{"text": "a"}], "metadata": {"openwop": {"artifactTypeId": "Report"}}}),
        json!({"artifactId": "a", "parts": [{"text": "a"}], "metadata": {"openwop": {"schemaVersion": -1}}}),
    ] {
        assert!(!artifact(bad.clone()), "{bad}");
    }
}

/// `v2-conversation-turn-parts`: what a host makes a turn's `parts` of
#[tokio::test]
async fn the_parts_of_a_turn_are_made_of_words_and_of_assets() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(4, 4)).await;
    let part = Told::of(owner.get(&format!("/v1/assets/{}/as/a2a-part", asset.id)).await).await.json();

    holds_against("conversation-turn-parts", &json!([{"text": "Look at this"}, part]));
    assert!(!crate::openwop::schema("conversation-turn-parts").is_valid(&json!([])), "there is at least one");
}
