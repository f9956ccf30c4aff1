//! The seams of the public suite: off by default, behind a credential when on, and nothing but a way into the ordinary store.

use mediakeep::access::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Host;
use crate::harness::bytes::png;
use crate::harness::told::Told;

/// A picture whose chunks fall apart, such as the public suite sends: signature and IHDR are right, the IDAT's length and checksum are not,
/// and there is no end.
fn malformed_png() -> Vec<u8> {
    let mut bytes = png(1, 1);
    bytes.truncate(33);
    bytes.extend([0, 0, 0, 11]);
    bytes.extend(b"IDAT");
    bytes.extend([
        0x78, 0xda, 0x63, 0x60, 0, 0, 0, 2, 0, 1, 0xe5, 0x27, 0xde, 0xfc, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae,
        0x42,
    ]);
    bytes.extend([0; 5]);
    bytes
}

pub async fn host() -> Host {
    Host::with(|settings| {
        settings.conformance.seams = true;
        settings.conformance.tenant = "acme".into();
    })
    .await
}

fn base64(bytes: &[u8]) -> String {
    data_encoding::BASE64.encode(bytes)
}

/// Every seam with a request that would be good.
fn requests() -> Vec<(Method, &'static str, Option<Value>)> {
    let put = json!({"contentBase64": "aGVsbG8=", "contentType": "text/plain"});
    let surface = json!({"tenantId": "tenant-a", "surface": "blob", "op": "get", "args": {"key": "__probe__"}});
    let gate = json!({
        "module": {"requiredModelCapabilities": []}, "activeProvider": "a", "activeModel": "b",
        "substitutionSupported": false, "supportedProviders": [],
    });
    let call = json!({"messages": [{"role": "user", "content": "hello"}]});
    vec![
        (Method::POST, "/v1/host/sample/media/put", Some(put)),
        (Method::POST, "/v1/host/sample/test/surface", Some(surface)),
        (Method::POST, "/v1/host/sample/ai/call", Some(call)),
        (Method::POST, "/v1/host/sample/test/evaluate-model-capability-gate", Some(gate)),
        (Method::POST, "/v1/host/sample/http/safe-fetch", Some(json!({"url": "http://127.0.0.1/"}))),
        (Method::GET, "/v1/host/sample/assets/probe-never-minted-token", None),
        (Method::GET, "/v1/host/sample/blob/probe-never-minted-token", None),
        (Method::GET, "/v1/host/sample/test/mock-ai/program", None),
        (Method::GET, "/v1/host/sample/governance/approval-gate", None),
        (Method::GET, "/v1/host/sample/packs/install-gate", None),
        (Method::GET, "/v1/host/sample/subrun/attest", None),
        (Method::GET, "/v1/host/sample", None),
    ]
}

async fn send(caller: &crate::harness::Caller<'_>, (method, path, body): &(Method, &str, Option<Value>)) -> Told {
    let request = caller.request(method.clone(), path);
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    Told::of(request.send().await.expect("an answer")).await
}

#[tokio::test]
async fn seams_that_are_off_are_routes_that_do_not_exist() {
    let host = Host::with(|settings| settings.conformance.tenant = "acme".into()).await;
    for request in requests() {
        for caller in [host.owner("acme"), host.owner("globex"), host.stranger(), host.bearer("mk_garbage")] {
            let told = send(&caller, &request).await;
            let nothing = send(&caller, &(request.0.clone(), "/v1/host/nothing", request.2.clone())).await;
            assert_eq!(told, nothing, "{request:?}");
            assert_eq!((told.status, told.refusal()), (404, "not_found".into()), "{request:?}");
        }
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn seams_that_are_on_are_for_one_tenant_alone() {
    let host = host().await;
    for request in requests() {
        let nobody = send(&host.stranger(), &request).await;
        assert_eq!((nobody.status, nobody.refusal()), (401, "unauthenticated".into()), "{request:?}");
        let garbage = send(&host.bearer("mk_garbage"), &request).await;
        assert_eq!(garbage.status, 401, "{request:?}");
        for foreigner in ["globex", "Acme"] {
            let foreign = send(&host.owner(foreigner), &request).await;
            let nothing =
                send(&host.owner(foreigner), &(request.0.clone(), "/v1/host/nothing", request.2.clone())).await;
            assert_eq!(foreign, nothing, "{request:?}");
        }
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_seam_that_is_not_there_is_not_found_with_a_credential() {
    let host = host().await;
    for request in requests().split_off(5) {
        let told = send(&host.owner("acme"), &request).await;
        assert_eq!((told.status, told.refusal()), (404, "not_found".into()), "{request:?}");
    }
    for request in requests().into_iter().take(5) {
        let told = send(&host.owner("acme"), &request).await;
        assert!((200..300).contains(&told.status), "{request:?} {}", told.json());
        let other = send(&host.owner("acme"), &(Method::GET, request.1, None)).await;
        assert_eq!(other.status, 404, "{request:?}");
    }
}

#[tokio::test]
async fn media_put_by_a_seam_is_served_by_url() {
    let host = host().await;
    let owner = host.owner("acme");
    for bytes in [png(2, 2), malformed_png()] {
        let body = json!({"contentBase64": base64(&bytes), "contentType": "image/png", "ttlSeconds": 60});
        let told = Told::of(owner.post("/v1/host/sample/media/put", &body).await).await;
        assert_eq!(told.status, 201, "{}", told.json());
        let answer = told.json();
        let url = answer["url"].as_str().expect("a URL");
        assert!(url.starts_with(&host.url("/v1/host/sample/assets/")), "{url}");
        assert_eq!(answer["bytes"], bytes.len());
        assert!(answer["expiresAt"].is_string());

        let got = Told::of(owner.get(url).await).await;
        assert_eq!((got.status, &got.body[..], got.header("content-type")), (200, &bytes[..], "image/png"));
        assert_eq!(owner.head(url).await.status(), 200);
        assert_eq!(host.stranger().get(url).await.status(), 401);
        assert_eq!(host.owner("globex").get(url).await.status(), 404);
    }
}

#[tokio::test]
async fn what_a_seam_stores_is_an_asset_like_any_other() {
    let host = host().await;
    let owner = host.owner("acme");
    let body = json!({"contentBase64": "aGVsbG8=", "contentType": "text/plain", "name": "a.txt"});
    let url = Told::of(owner.post("/v1/host/sample/media/put", &body).await).await.json()["url"].clone();
    let list = Told::of(owner.get("/v1/assets").await).await.json();
    let asset = &list["assets"][0];
    assert_eq!(
        (&asset["name"], &asset["mimeType"], &asset["contentTrust"]),
        (&json!("a.txt"), &json!("text/plain"), &json!("untrusted"))
    );
    assert_eq!(Told::of(host.owner("globex").get("/v1/assets").await).await.json()["assets"], json!([]));

    let path = format!("/v1/assets/{}", asset["assetId"].as_str().expect("an id"));
    assert_eq!(owner.delete(&path).await.status(), 204);
    let told = Told::of(owner.get(url.as_str().expect("a URL")).await).await;
    assert_eq!((told.status, told.refusal()), (410, "not_found: asset_expired".into()));
}

#[tokio::test]
async fn a_seam_asks_for_the_scope_of_the_ordinary_route() {
    let host = host().await;
    let surface = |op: &str| json!({"surface": "blob", "op": op, "args": {"key": "k", "contentBase64": "aGk=", "expiresInSeconds": 5}});
    host.owner("acme").post("/v1/host/sample/test/surface", &surface("put")).await;
    for (path, body, needed) in [
        ("/v1/host/sample/media/put", json!({"contentBase64": "aGk="}), Scope::AssetsWrite),
        ("/v1/host/sample/test/surface", surface("put"), Scope::AssetsWrite),
        ("/v1/host/sample/test/surface", surface("get"), Scope::AssetsRead),
        ("/v1/host/sample/test/surface", surface("list"), Scope::AssetsRead),
        ("/v1/host/sample/test/surface", surface("delete"), Scope::AssetsWrite),
    ] {
        for scope in Scope::ALL {
            let told = Told::of(host.with_scope("acme", scope).post(path, &body).await).await;
            let expected = if scope == needed { 200..=201 } else { 403..=403 };
            assert!(expected.contains(&told.status), "{path} {body} {scope:?}: {}", told.json());
        }
    }
    for scope in Scope::ALL {
        // It reads, and it hands out a capability: one scope is not enough.
        let told = host.with_scope("acme", scope).post("/v1/host/sample/test/surface", &surface("presign")).await;
        assert_eq!(told.status(), 403, "{scope:?}");
    }
}

#[tokio::test]
async fn a_body_that_names_another_tenant_is_refused_by_every_seam_but_the_surface() {
    let host = host().await;
    for (method, path, body) in requests().into_iter().take(5) {
        let mut body = body.expect("a body");
        body["tenantId"] = json!("globex");
        let told = send(&host.owner("acme"), &(method, path, Some(body))).await;
        let expected = if path.ends_with("/surface") { 200 } else { 403 };
        assert_eq!(told.status, expected, "{path}");
    }
}

#[tokio::test]
async fn base64_that_is_none_says_where_and_stores_nothing() {
    let host = host().await;
    let body = json!({"contentBase64": "aGVs bG8=", "contentType": "text/plain"});
    let told = Told::of(host.owner("acme").post("/v1/host/sample/media/put", &body).await).await;
    assert_eq!((told.status, told.refusal()), (400, "validation_error: invalid_base64".into()));
    assert_eq!(told.json()["details"]["offset"], 4);
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn the_gate_lets_text_through_and_what_is_advertised() {
    let host = host().await;
    let text = json!({"type": "text", "text": "What is it?"});
    let image = json!({"type": "image", "mimeType": "image/png", "dataBase64": "iVBORw0KGgo="});
    let audio = json!({"type": "audio", "mimeType": "audio/mp3", "dataBase64": "AAAA"});
    let file = json!({"type": "file", "mimeType": "application/pdf", "dataBase64": "JVBERi0="});
    let ask = async |part: &Value, modalities: &[&str]| {
        let body = json!({"messages": [{"role": "user", "content": [text, part]}], "modalities": modalities});
        Told::of(host.owner("acme").post("/v1/host/sample/ai/call", &body).await).await
    };
    for (part, modality, needs) in [
        (&image, "image", json!(["vision-input"])),
        (&audio, "audio", json!(["audio-input"])),
        (&file, "document", json!([])),
    ] {
        let refused = ask(part, &["text"]).await;
        assert_eq!((refused.status, refused.refusal()), (400, "unsupported_modality".into()));
        let details =
            json!({"path": "/messages/0/content/1", "modality": modality, "requiredModelCapabilities": needs});
        assert_eq!(refused.json()["details"], details);
        let passed = ask(part, &[modality]).await;
        assert_eq!((passed.status, &passed.json()["requiredModelCapabilities"]), (200, &needs));
    }
    assert_eq!(ask(&text, &[]).await.status, 200);
}

#[tokio::test]
async fn the_decision_on_a_nodes_model_is_the_suites() {
    let host = host().await;
    let ask = async |required: Value, fallback: Value, active: &str, swaps: bool, supported: Value| {
        let body = json!({
            "module": {"requiredModelCapabilities": required, "fallbackModel": fallback}, "nodeId": "writer",
            "activeProvider": active, "activeModel": "m", "substitutionSupported": swaps, "supportedProviders": supported,
        });
        let path = "/v1/host/sample/test/evaluate-model-capability-gate";
        Told::of(host.owner("acme").post(path, &body).await).await.json()
    };
    let (needs, opus) =
        (json!(["structured-output", "long-context"]), json!({"provider": "anthropic", "model": "large"}));
    let all = json!(["anthropic", "openai", "unknown-vendor", "other-vendor"]);

    let met = ask(needs.clone(), Value::Null, "anthropic", true, all.clone()).await;
    assert_eq!(met, json!({"outcome": {"route": "dispatch"}, "event": null}));

    let swapped = ask(needs.clone(), opus.clone(), "unknown-vendor", true, all.clone()).await;
    assert_eq!(
        (&swapped["outcome"]["route"], &swapped["event"]["type"]),
        (&json!("substitute"), &json!("model.capability.substituted"))
    );
    super::holds_against("model-capability-substituted", &swapped["event"]["payload"]);
    assert_eq!(swapped["event"]["payload"]["nodeId"], "writer");

    for (fallback, swaps, supported, attempted) in [
        (Value::Null, true, all.clone(), false),
        (opus.clone(), false, all.clone(), false),
        (opus, true, json!(["unknown-vendor"]), true),
        (json!({"provider": "other-vendor", "model": "m"}), true, all, true),
    ] {
        let refused = ask(needs.clone(), fallback, "unknown-vendor", swaps, supported).await;
        assert_eq!(
            (&refused["outcome"]["route"], &refused["outcome"]["fallbackAttempted"]),
            (&json!("refuse"), &json!(attempted))
        );
        super::holds_against("model-capability-insufficient", &refused["event"]["payload"]);
        assert_eq!(refused["event"]["payload"]["fallbackAttempted"], attempted);
    }
}
