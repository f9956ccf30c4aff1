//! What a host merges into its own discovery document.

use mediakeep::access::Scope;
use mediakeep::config::units::Size;
use serde_json::{Map, Value, json};

use super::{holds_against, schema};
use crate::harness::Host;
use crate::harness::told::Told;

async fn fragment(host: &Host) -> Value {
    let told = Told::of(host.owner("acme").get("/v1/openwop/host-fragment").await).await;
    assert_eq!((told.status, told.header("cache-control")), (200, "no-store"));
    told.json()
}

/// Adds lists to lists and members to members, as a host does.
fn merge(document: &mut Value, fragment: &Value) {
    match (document, fragment) {
        (Value::Array(own), Value::Array(more)) => {
            own.extend(more.iter().filter(|one| !own.contains(one)).cloned().collect::<Vec<_>>())
        }
        (Value::Object(own), Value::Object(more)) => {
            for (name, value) in more {
                merge(own.entry(name).or_insert(Value::Null), value);
            }
        }
        (own, more) => *own = more.clone(),
    }
}

/// A host that runs agents, before it has heard of this service.
fn host_document() -> Value {
    let universal = ["clarification.request", "schema.request", "schema.response", "error"];
    let versions: Map<String, Value> = universal.iter().map(|kind| ((*kind).to_owned(), json!(1))).collect();
    json!({
        "protocolVersion": "1.1.0",
        "supportedEnvelopes": universal,
        "schemaVersions": versions,
        "limits": {"clarificationRounds": 3, "schemaRounds": 2, "envelopesPerTurn": 8},
        "aiProviders": {"supported": ["example"], "input": {"modalities": ["text", "image"]}},
        "modelCapabilities": {"supported": true, "advertised": ["reasoning"]},
    })
}

#[tokio::test]
async fn a_host_that_merges_the_fragment_has_a_valid_document() {
    for seams in [false, true] {
        let host = Host::with(|settings| {
            settings.limits.max_inline_media_bytes = Size(1_000);
            settings.conformance.seams = seams;
        })
        .await;
        let mut document = host_document();
        holds_against("capabilities", &document);

        merge(&mut document, &fragment(&host).await);

        holds_against("capabilities", &document);
        for kind in ["media.image", "media.audio", "media.file", "error"] {
            assert!(document["supportedEnvelopes"].as_array().expect("a list").contains(&json!(kind)), "{kind}");
            assert_eq!(document["schemaVersions"][kind], 1, "{kind}");
        }
        assert_eq!(document["aiProviders"]["maxInlineMediaBytes"], 1_000);
        assert_eq!(document["aiProviders"]["supported"], json!(["example"]));
        assert_eq!(document["modelCapabilities"], host_document()["modelCapabilities"], "none is added");
        assert_eq!(document["blobStorage"]["supported"], if seams { json!(true) } else { Value::Null });
    }
}

#[tokio::test]
async fn a_cap_of_zero_is_told_as_zero() {
    let host = Host::with(|settings| settings.limits.max_inline_media_bytes = Size(0)).await;
    assert_eq!(fragment(&host).await["aiProviders"], json!({"maxInlineMediaBytes": 0}));
}

#[tokio::test]
async fn any_valid_credential_may_ask_and_nobody_else() {
    let host = Host::start().await;
    for scope in Scope::ALL {
        assert_eq!(host.with_scope("acme", scope).get("/v1/openwop/host-fragment").await.status(), 200, "{scope:?}");
    }
    for caller in [host.stranger(), host.bearer("mk_acme-all_wrong")] {
        let told = Told::of(caller.get("/v1/openwop/host-fragment").await).await;
        assert_eq!((told.status, told.refusal()), (401, "unauthenticated".into()));
    }
    let told = Told::of(host.owner("acme").get("/v1/openwop/host-fragment?tenant=globex").await).await;
    assert_eq!((told.status, told.refusal()), (403, "forbidden".into()));
}

#[tokio::test]
async fn the_services_own_document_is_valid_and_claims_no_models() {
    for seams in [false, true] {
        let host = Host::with(|settings| settings.conformance.seams = seams).await;
        let document = Told::of(host.stranger().get("/.well-known/openwop").await).await.json();
        holds_against("capabilities", &document);
        for text in [document.to_string(), fragment(&host).await.to_string()] {
            for claim in ["modelCapabilities", "vision-input", "audio-input", "structured-output", "modalities"] {
                assert!(!text.contains(claim), "{claim}");
            }
        }
    }
}

#[test]
fn the_schema_of_capabilities_refuses_what_a_host_may_not_say() {
    let schema = schema("capabilities");
    for (pointer, value) in [
        ("/supportedEnvelopes", json!(["media.image"])),
        ("/schemaVersions", json!({"media.image": "1.0"})),
        ("/aiProviders", json!({"maxInlineMediaBytes": -1})),
        ("/aiProviders", json!({"imageGeneration": true})),
        ("/modelCapabilities", json!({"supported": true, "advertised": ["Vision"]})),
        ("/limits", json!({})),
    ] {
        let mut document = host_document();
        *document.pointer_mut(pointer).expect(pointer) = value;
        assert!(!schema.is_valid(&document), "{document}");
    }
}
