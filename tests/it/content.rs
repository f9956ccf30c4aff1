//! Content parts, made ready for a log.

use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{Caller, Host};

const PATH: &str = "/v1/content-parts/normalize";

async fn normalize(caller: &Caller<'_>, parts: &Value, more: &Value) -> Told {
    let mut body = json!({"runId": "run-1", "messages": [{"role": "user", "content": parts}], "modalities": ["image", "document"]});
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    Told::of(caller.post(PATH, &body).await).await
}

fn part(told: &Told, index: usize) -> Value {
    assert_eq!(told.status, 200, "{}", String::from_utf8_lossy(&told.body));
    told.json()["messages"][0]["content"][index].clone()
}

#[tokio::test]
async fn bytes_are_stored_and_named_and_the_rest_passes_in_the_protocols_words() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let picture = png(3, 3);
    let code = BASE64.encode(&picture);
    let parts = json!([
        {"type": "text", "text": "look"},
        {"type": "image", "mimeType": "image/png", "data": code, "detail": "high"},
        {"type": "file", "mimeType": "image/png", "dataBase64": code},
        {"type": "image", "mimeType": "image/png", "url": "https://elsewhere.test/x.png"},
    ]);

    let told = normalize(&owner, &parts, &json!({})).await;

    assert_eq!(part(&told, 0), parts[0]);
    assert_eq!(part(&told, 3), parts[3]);
    for (index, kind) in [(1, "image"), (2, "document")] {
        let part = part(&told, index);
        let id = part["mediaRef"].as_str().and_then(|name| name.strip_prefix("blob:")).expect("a mediaRef").to_owned();
        let bytes = Told::of(owner.get(&format!("/v1/assets/{id}/content")).await).await.body;
        assert_eq!(bytes, picture);
        assert_eq!((&part["type"], part.get("data"), part.get("dataBase64")), (&json!(kind), None, None));
    }
    assert_eq!(part(&told, 1)["detail"], "high");
    let run = Told::of(owner.get("/v1/runs/run-1").await).await.json();
    assert_eq!(run["assets"], 2);
    let again = normalize(&owner, &told.json()["messages"][0]["content"], &json!({})).await;
    assert_eq!(again.json(), told.json());
}

#[tokio::test]
async fn a_modality_that_is_not_allowed_comes_before_anything_else() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let wrong = json!([{"type": "image", "mimeType": "image/png"}, {"type": "audio", "data": "!"}]);
    let told = normalize(&owner, &wrong, &json!({})).await;
    assert_eq!((told.status, told.refusal()), (400, "unsupported_modality".into()));
    assert_eq!(told.json()["details"], json!({"modality": "audio", "path": "/messages/0/content/1"}));
    let text_only = json!({"runId": "r", "messages": [{"content": [{"type": "image"}]}]});
    assert_eq!(Told::of(owner.post(PATH, &text_only).await).await.refusal(), "unsupported_modality");
    let file = json!([{"type": "file", "mimeType": "a/b", "data": "aGVsbG8="}]);
    assert_eq!(normalize(&owner, &file, &json!({"modalities": ["file"]})).await.status, 200);
}

#[tokio::test]
async fn a_part_has_exactly_one_source_and_a_type() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let good = json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="});
    for wrong in [
        json!({"type": "image", "mimeType": "image/png"}),
        json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8=", "url": "https://x.test"}),
        json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8=", "dataBase64": "aGVsbG8="}),
        json!({"type": "image", "data": "aGVsbG8="}),
        json!({"type": "image", "mimeType": "image/png", "data": "no base64"}),
        json!({"type": "image", "mimeType": "image/png", "data": ""}),
        json!({"type": "text"}),
        json!("text"),
    ] {
        let told = normalize(&owner, &json!([good, wrong]), &json!({})).await;
        assert_eq!((told.status, &told.json()["error"]), (400, &json!("validation_error")), "{wrong}");
    }
    assert!(host.is_bare().await, "nothing is stored before all were looked at");
}

#[tokio::test]
async fn a_part_that_is_too_large_is_refused_whatever_its_source() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(30, 30)).await;
    for part in [
        json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}),
        json!({"type": "image", "mimeType": "image/png", "mediaRef": format!("blob:{}", asset.id)}),
    ] {
        let told = normalize(&owner, &json!([part]), &json!({"maxBytesPerPart": 4})).await;
        assert_eq!((told.status, &told.json()["details"]["limit"]), (413, &json!(4)));
    }
    let fits = json!([{"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}]);
    assert_eq!(normalize(&owner, &fits, &json!({"maxBytesPerPart": 5})).await.status, 200);
}

#[tokio::test]
async fn a_media_ref_is_resolved_inside_the_tenant() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let own = owner.upload(png(3, 3)).await;
    let foreign = host.owner("globex").upload(png(3, 3)).await;
    let named = |id: &str| json!({"type": "image", "mimeType": "image/png", "mediaRef": format!("blob:{id}")});

    assert_eq!(normalize(&owner, &json!([named(&own.id)]), &json!({})).await.status, 200);
    let refused = async |id: &str| normalize(&owner, &json!([named(&own.id), named(id)]), &json!({})).await;
    let told = refused(&foreign.id).await;
    assert_eq!((told.status, &told.json()["details"]["unknown"]), (404, &json!(["/messages/0/content/1"])));
    assert_eq!(told, refused("ast_01arz3ndektsv4rrffq69g5fav").await);
}

#[tokio::test]
async fn what_the_answer_names_lives_as_long_as_the_log_that_it_is_for() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (own, other) = (owner.upload(png(3, 3)).await, owner.upload(png(4, 4)).await);
    owner.put("/v1/runs/run-1", &json!({"status": "closed", "logRetentionSeconds": 60})).await;
    let image = |name: &str, value: &str| json!({"type": "image", "mimeType": "image/png", name: value});
    let parts = json!([
        image("mediaRef", &format!("blob:{}", own.id)),
        image("mediaRef", &format!("blob:{}", own.id)),
        image("url", &other.url),
    ]);

    let told = normalize(&owner, &parts, &json!({"runId": "run-2", "fetch": true})).await;

    assert_eq!(part(&told, 2)["mediaRef"], json!(format!("blob:{}", other.id)));
    assert_eq!(Told::of(owner.get("/v1/runs/run-2").await).await.json()["assets"], 2);
    host.advance(Duration::from_secs(61));
    host.sweep().await;
    for asset in [&own, &other] {
        assert_eq!(owner.get(&format!("/v1/assets/{}/content", asset.id)).await.status(), 200);
        assert_eq!(owner.show(asset).await["references"][0], "run-2");
    }
}

#[tokio::test]
async fn what_is_refused_is_not_referenced() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let own = owner.upload(png(3, 3)).await;
    let named = |id: &str| json!({"type": "image", "mimeType": "image/png", "mediaRef": format!("blob:{id}")});
    let run = json!({"runId": "run-2"});

    let unknown = json!([named(&own.id), named("ast_01arz3ndektsv4rrffq69g5fav")]);
    assert_eq!(normalize(&owner, &unknown, &run).await.status, 404);
    assert_eq!(owner.get("/v1/runs/run-2").await.status(), 404);

    // A URL that is left alone is somebody's words, even when it is one of ours.
    let alone = json!([{"type": "image", "mimeType": "image/png", "url": own.url}]);
    assert_eq!(part(&normalize(&owner, &alone, &run).await, 0), alone[0]);
    assert_eq!(owner.show(&own).await["referenceCount"], 1);

    owner.put("/v1/runs/run-2", &json!({})).await;
    assert_eq!(owner.post("/v1/runs/run-2/erase", &json!({})).await.status(), 200);
    let told = normalize(&owner, &json!([named(&own.id)]), &run).await;
    assert_eq!((told.status, told.refusal()), (409, "run_erased".into()));
    assert_eq!(owner.show(&own).await["referenceCount"], 1);
}

#[tokio::test]
async fn a_trust_that_is_claimed_is_not_believed() {
    let host = Host::start().await;
    let parts = json!([{"type": "image", "mimeType": "image/png", "data": "aGVsbG8=", "contentTrust": "trusted"}]);
    let told = normalize(&host.owner("acme"), &parts, &json!({})).await;
    assert_eq!(part(&told, 0)["contentTrust"], "untrusted");
}
