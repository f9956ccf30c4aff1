//! `ai/call`, of which only the gate is here, and the decision on a node's model. No model is behind either.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Seam;
use crate::error::ApiError;
use crate::http::body::{answer, typed};
use crate::http::openwop::model::{event, unfit};
use crate::openwop::modality;
use crate::openwop::model_capability::{self, Dispatch, Fallback, Model, Route, Verdict};

/// Messages to a model.
#[derive(Debug, Deserialize)]
struct AiCall {
    messages: Vec<Value>,
    /// What the suite's host advertises; this service advertises nothing, so text alone passes.
    #[serde(default)]
    modalities: Vec<String>,
}

/// Says whether the messages would be let through, and what they ask of a model.
pub(super) async fn call(seam: &Seam, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    let call: AiCall = typed(Value::Object(seam.body(payload).await?))?;
    if call.messages.is_empty() {
        return Err(ApiError::validation("messages: at least one"));
    }
    let allowed: Vec<&str> = call.modalities.iter().map(String::as_str).collect();
    let met = modality::gate(&call.messages, &allowed).map_err(unfit)?;
    let needs = modality::requirements(&met);
    let told = json!({"accepted": true, "modalities": met, "requiredModelCapabilities": needs});
    Ok(answer(StatusCode::OK, &told))
}

/// A node and its model, as the suite asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GateCall {
    module: NodeModule,
    active_provider: String,
    active_model: String,
    substitution_supported: bool,
    /// Those that the host has a credential for.
    #[serde(default)]
    supported_providers: Vec<String>,
    #[serde(default)]
    node_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeModule {
    #[serde(default)]
    required_model_capabilities: Vec<String>,
    #[serde(default)]
    fallback_model: Option<ModelName>,
}

#[derive(Debug, Deserialize)]
struct ModelName {
    provider: String,
    model: String,
}

/// What every model of a provider that the suite knows by name is taken to be able to do.
const KNOWN_PROVIDERS: [&str; 3] = ["anthropic", "gemini", "openai"];
const KNOWN: [&str; 5] = ["structured-output", "discriminator-enum", "long-context", "reasoning", "function-calling"];

/// Decides by the same function as the ordinary route.
pub(super) async fn evaluate(seam: &Seam, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    let call: GateCall = typed(Value::Object(seam.body(payload).await?))?;
    let fallback = call.module.fallback_model.map(|named| Fallback {
        authenticated: call.supported_providers.contains(&named.provider),
        model: model(named.provider, named.model),
    });
    let dispatch = Dispatch {
        node_id: call.node_id.unwrap_or_else(|| "node".to_owned()),
        required: call.module.required_model_capabilities,
        active: model(call.active_provider, call.active_model),
        fallback,
        substitution_supported: call.substitution_supported,
        redact: false,
    };
    let verdict = model_capability::evaluate(&dispatch);
    let told = json!({"outcome": outcome(&dispatch, &verdict), "event": event(&verdict)});
    Ok(answer(StatusCode::OK, &told))
}

fn model(provider: String, model: String) -> Model {
    let known: &[&str] = if KNOWN_PROVIDERS.contains(&provider.as_str()) { &KNOWN } else { &[] };
    Model { provider, model, capabilities: known.iter().map(|name| (*name).to_owned()).collect() }
}

fn outcome(dispatch: &Dispatch, verdict: &Verdict) -> Value {
    let mut outcome = json!({"route": verdict.route});
    if verdict.route != Route::Dispatch {
        outcome["missingCapabilities"] = json!(verdict.missing);
    }
    match (verdict.route, &dispatch.fallback) {
        (Route::Refuse, _) => outcome["fallbackAttempted"] = json!(verdict.fallback_attempted),
        (Route::Substitute, Some(fallback)) => {
            outcome["originalProvider"] = json!(dispatch.active.provider);
            outcome["originalModel"] = json!(dispatch.active.model);
            outcome["fallbackProvider"] = json!(fallback.model.provider);
            outcome["fallbackModel"] = json!(fallback.model.model);
        }
        _ => {}
    }
    outcome
}
