//! Whether a model will do, and whether a schema says its variants so that every model understands them.

use mediakeep::access::Scope;
use serde_json::{Value, json};

use super::holds_against;
use crate::harness::Host;
use crate::harness::told::Told;

const EVALUATE: &str = "/v1/model-capabilities/evaluate";
const LINT: &str = "/v1/schemas/lint";

fn asked(active: &[&str], fallback: Value) -> Value {
    let mut body = json!({
        "nodeId": "draw", "required": ["vision-input", "reasoning"], "substitutionSupported": true,
        "active": {"provider": "first", "model": "first-1", "capabilities": active},
    });
    body["fallback"] = fallback;
    body
}

fn fallback(able: &[&str], authenticated: bool) -> Value {
    json!({"provider": "second", "model": "second-1", "capabilities": able, "authenticated": authenticated})
}

async fn decide(host: &Host, body: &Value) -> Value {
    let told = Told::of(host.owner("acme").post(EVALUATE, body).await).await;
    assert_eq!(told.status, 200, "{}", told.json());
    told.json()
}

#[tokio::test]
async fn a_model_that_can_is_dispatched_without_a_word() {
    let host = Host::start().await;
    let told = decide(&host, &asked(&["reasoning", "vision-input"], Value::Null)).await;
    assert_eq!(told, json!({"decision": "dispatch"}));
    let mut nothing = asked(&[], Value::Null);
    nothing["required"] = json!([]);
    assert_eq!(decide(&host, &nothing).await, json!({"decision": "dispatch"}));
}

#[tokio::test]
async fn a_fallback_that_can_do_all_of_it_takes_over_and_the_log_is_told() {
    let host = Host::start().await;
    let mut body = asked(&["reasoning"], fallback(&["reasoning", "vision-input"], true));
    let told = decide(&host, &body).await;
    assert_eq!(
        (&told["decision"], &told["event"]["type"]),
        (&json!("substitute"), &json!("model.capability.substituted"))
    );
    let payload = &told["event"]["payload"];
    holds_against("model-capability-substituted", payload);
    assert_eq!(
        (&payload["fallbackModel"], &payload["missingCapabilities"]),
        (&json!("second-1"), &json!(["vision-input"]))
    );

    body["redact"] = json!(true);
    let redacted = decide(&host, &body).await;
    let payload = &redacted["event"]["payload"];
    holds_against("model-capability-substituted", payload);
    assert_eq!((&payload["fallbackProvider"], &payload["fallbackModel"]), (&json!("[REDACTED]"), &json!("[REDACTED]")));
    assert_eq!((&payload["originalProvider"], &payload["originalModel"]), (&json!("first"), &json!("first-1")));
    assert!(!redacted.to_string().contains("second"));
}

#[tokio::test]
async fn a_node_that_no_model_is_for_is_refused_and_the_log_is_told() {
    let host = Host::start().await;
    let mut unwilling = asked(&[], fallback(&["reasoning", "vision-input"], true));
    unwilling["substitutionSupported"] = json!(false);
    for (body, attempted) in [
        (asked(&["reasoning"], Value::Null), false),
        (unwilling, false),
        (asked(&["reasoning"], fallback(&["reasoning", "vision-input"], false)), true),
        (asked(&["reasoning"], fallback(&["vision-input"], true)), true),
    ] {
        let told = decide(&host, &body).await;
        assert_eq!((&told["decision"], &told["error"]["error"]), (&json!("refuse"), &json!("capability_not_provided")));
        assert_eq!(told["event"]["type"], "model.capability.insufficient");
        holds_against("model-capability-insufficient", &told["event"]["payload"]);
        assert_eq!(told["event"]["payload"]["fallbackAttempted"], attempted, "{body}");
        assert_eq!(told["event"]["payload"]["provider"], "first");
    }
}

#[tokio::test]
async fn what_the_messages_hold_is_required_too() {
    let host = Host::start().await;
    let (image, sound) =
        (json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(64)}), json!({"type": "audio"}));
    let messages = |parts: Value| json!([{"role": "assistant", "content": null}, {"role": "user", "content": parts}]);
    for (required, parts, missing) in [
        (json!([]), json!([{"type": "text", "text": "a"}, {"type": "file"}]), json!(null)),
        (json!([]), json!("words"), json!(null)),
        (json!([]), json!([image, image]), json!(["vision-input"])),
        (json!(["reasoning"]), json!([image, sound]), json!(["reasoning", "audio-input", "vision-input"])),
        (json!(["vision-input", "a"]), json!([sound, image]), json!(["vision-input", "a", "audio-input"])),
    ] {
        let mut body = asked(&[], Value::Null);
        body["required"] = required;
        body["messages"] = messages(parts);
        let told = decide(&host, &body).await;
        assert_eq!(told["event"]["payload"]["missingCapabilities"], missing);
    }
    // The fallback is held against what they require as well.
    let mut body = asked(&[], fallback(&["vision-input"], true));
    body["required"] = json!([]);
    body["messages"] = messages(json!([image]));
    assert_eq!(decide(&host, &body).await["decision"], "substitute");
    body["messages"] = messages(json!([image, sound]));
    assert_eq!(decide(&host, &body).await["decision"], "refuse");
}

#[tokio::test]
async fn messages_that_are_none_are_refused() {
    let host = Host::start().await;
    for (messages, code) in [
        (json!({}), "validation_error"),
        (json!(["words"]), "validation_error"),
        (json!([{"content": 7}]), "validation_error"),
        (json!([{"content": [{}]}]), "validation_error"),
        (json!([{"content": [{"type": "video"}]}]), "unsupported_modality"),
    ] {
        let mut body = asked(&[], Value::Null);
        body["messages"] = messages;
        let told = Told::of(host.owner("acme").post(EVALUATE, &body).await).await;
        assert_eq!((told.status, told.refusal()), (400, code.into()), "{}", body["messages"]);
    }
}

#[tokio::test]
async fn what_is_no_question_is_refused_with_its_member() {
    let host = Host::start().await;
    let many: Vec<String> = (0..33).map(|n| format!("a{n}")).collect();
    for (pointer, value, member) in [
        ("/nodeId", json!(""), "nodeId"),
        ("/required", json!(["Vision"]), "required"),
        ("/required", json!(["a", "a"]), "required"),
        ("/required", json!(many), "required"),
        ("/active/provider", json!("First"), "active.provider"),
        ("/active/model", json!(""), "active.model"),
        ("/active/capabilities", json!(["a_b"]), "active.capabilities"),
        ("/active/colour", json!(1), "unknown member colour"),
        ("/fallback/model", json!("x".repeat(129)), "fallback.model"),
        ("/substitutionSupported", json!("yes"), "substitutionSupported"),
    ] {
        let mut body = asked(&[], fallback(&[], true));
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        body.pointer_mut(parent).expect(parent)[name] = value;
        let told = Told::of(host.owner("acme").post(EVALUATE, &body).await).await;
        assert_eq!((told.status, told.refusal()), (400, "validation_error".into()), "{pointer}");
        assert!(told.json()["message"].as_str().expect("text").starts_with(member), "{}", told.json());
    }
}

#[tokio::test]
async fn both_answer_any_valid_credential_and_nobody_else() {
    let host = Host::start().await;
    for (path, body) in [(EVALUATE, asked(&[], Value::Null)), (LINT, json!({}))] {
        for scope in Scope::ALL {
            assert_eq!(host.with_scope("acme", scope).post(path, &body).await.status(), 200, "{path} {scope:?}");
        }
        assert_eq!(host.stranger().post(path, &body).await.status(), 401, "{path}");
    }
}

#[tokio::test]
async fn a_schema_hears_where_some_models_would_misread_it() {
    let host = Host::start().await;
    let word = |word: &str| json!({"properties": {"kind": {"type": "string", "enum": [word]}}, "required": ["kind"]});
    let schema = json!({
        "type": "object",
        "properties": {
            "good": {"anyOf": [word("a"), word("b")]},
            "tenant": {"oneOf": [{"type": "string"}]},
            "steps": {"items": {"anyOf": [word("a"), {"type": "object", "required": ["url"]}]}},
        },
    });
    let told = Told::of(host.owner("acme").post(LINT, &schema).await).await;
    assert_eq!(told.status, 200);
    let told = told.json();
    let findings = told["findings"].as_array().expect("a list");
    let found: Vec<_> = findings.iter().map(|one| (one["path"].as_str(), one["code"].as_str())).collect();
    assert_eq!(
        found,
        [
            (Some("/properties/steps/items/anyOf/1"), Some("discriminator_missing")),
            (Some("/properties/tenant/oneOf"), Some("one_of")),
        ]
    );
    assert!(findings.iter().all(|one| one["message"].is_string()));
}

#[tokio::test]
async fn the_schemas_that_we_serve_have_no_findings() {
    let host = Host::start().await;
    for kind in ["media.image", "media.audio", "media.file"] {
        let schema =
            Told::of(host.stranger().get(&format!("/schemas/envelopes/{kind}.schema.json")).await).await.json();
        let told = Told::of(host.owner("acme").post(LINT, &schema).await).await;
        assert_eq!((told.status, told.json()), (200, json!({"findings": []})), "{kind}");
    }
}
