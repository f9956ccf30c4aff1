//! Whether a model can do what a node needs, and whether a schema says its variants as every model understands them.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::assets::members::outer_id;
use crate::error::ApiError;
use crate::http::body::{answer, json};
use crate::http::extract::Anyone;
use crate::openwop::modality::{self, Unfit};
use crate::openwop::model_capability::{
    Dispatch, Fallback, MAX_REQUIRED, Model, Route, Verdict, evaluate as decide, is_identifier, is_provider,
};
use crate::openwop::schema_lint::{self, Finding};

/// A node that is about to be dispatched.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CapabilityRequest {
    /// Which node.
    #[schema(min_length = 1, max_length = 128)]
    node_id: String,
    /// Identifiers of what it needs, each once.
    #[schema(max_items = 32)]
    required: Vec<String>,
    /// Messages that it will send, as they are normalized: a picture in them requires `vision-input` besides, a sound `audio-input`.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    messages: Option<Vec<Value>>,
    /// The model that it would be given.
    active: ActiveModel,
    /// The one that it declares instead.
    #[serde(default)]
    fallback: Option<FallbackModel>,
    /// Whether the host swaps models at all.
    substitution_supported: bool,
    /// Whether the event is not to name the fallback.
    #[serde(default)]
    redact: bool,
}

/// A model, and what it can do.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActiveModel {
    provider: String,
    model: String,
    /// Identifiers.
    capabilities: Vec<String>,
}

/// A declared fallback.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FallbackModel {
    provider: String,
    model: String,
    /// Identifiers.
    capabilities: Vec<String>,
    /// Whether the host has a credential for the provider.
    authenticated: bool,
}

/// What becomes of the node.
#[derive(Debug, Serialize, ToSchema)]
pub struct CapabilityAnswer {
    /// `dispatch`, `substitute` or `refuse`.
    #[schema(value_type = String)]
    decision: Route,
    /// What the run's log has to say: `model.capability.substituted` or `model.capability.insufficient`, with its closed payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    event: Option<Value>,
    /// Why the node fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    error: Option<Value>,
}

/// What a linter found.
#[derive(Debug, Serialize, ToSchema)]
pub struct LintAnswer {
    findings: Vec<Finding>,
}

/// Decides what a host does with a node whose model may lack what it needs.
#[utoipa::path(post, operation_id = "evaluate_model_capabilities", path = "/v1/model-capabilities/evaluate", tag = "openwop", request_body = CapabilityRequest, responses((status = 200, body = CapabilityAnswer), (status = 400, body = crate::http::openapi::ErrorBody, description = "`unsupported_modality`: a part of `messages` is of no type that there is; or `validation_error`")), security(("bearer" = [])))]
pub async fn evaluate(caller: Anyone, request: HttpRequest, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    let asked: CapabilityRequest = json(&request, payload, &caller.principal).await?;
    let verdict = decide(&asked.checked()?);
    let error = (verdict.route == Route::Refuse).then(|| refusal(&verdict));
    Ok(answer(StatusCode::OK, &CapabilityAnswer { decision: verdict.route, event: event(&verdict), error }))
}

/// Finds what some model providers refuse, drop or misread in a payload's JSON Schema, which is the body.
#[utoipa::path(post, operation_id = "lint_schema", path = "/v1/schemas/lint", tag = "openwop", request_body = Object, responses((status = 200, body = LintAnswer)), security(("bearer" = [])))]
pub async fn lint(caller: Anyone, request: HttpRequest, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    let schema: Map<String, Value> = json(&request, payload, &caller.principal).await?;
    let findings = schema_lint::lint(&Value::Object(schema));
    let findings = findings.ok_or_else(|| ApiError::validation("its references make the schema too large to judge"))?;
    Ok(answer(StatusCode::OK, &LintAnswer { findings }))
}

/// The event as the log has it.
pub fn event(verdict: &Verdict) -> Option<Value> {
    verdict.event.as_ref().map(|(name, payload)| json!({"type": name, "payload": payload}))
}

/// What is said of messages that cannot be looked at.
pub fn unfit(unfit: Unfit) -> ApiError {
    match unfit {
        Unfit::Malformed { at, expected } => ApiError::validation(format!("messages{at}: expected {expected}")),
        Unfit::Unsupported(part) => {
            let needs = modality::requirements(&part.modality.into_iter().collect());
            let message = "a part of this kind is not supported here";
            ApiError::new(StatusCode::BAD_REQUEST, "unsupported_modality", message)
                .with("path", format!("/messages{}", part.at))
                .with("modality", part.modality)
                .with("requiredModelCapabilities", needs)
        }
    }
}

fn refusal(verdict: &Verdict) -> Value {
    json!({
        "error": "capability_not_provided",
        "message": "the model cannot do what the node needs, and there is no other that may take its place",
        "details": {"missingCapabilities": verdict.missing},
    })
}

impl CapabilityRequest {
    fn checked(self) -> Result<Dispatch, ApiError> {
        if self.required.len() > MAX_REQUIRED {
            return Err(ApiError::validation(format!("required: at most {MAX_REQUIRED}")));
        }
        let twice = self.required.iter().enumerate().any(|(place, one)| self.required[..place].contains(one));
        if twice {
            return Err(ApiError::validation("required: each identifier once"));
        }
        identifiers("required", &self.required)?;
        let fallback = self.fallback.map(|it| {
            let model = model("fallback", it.provider, it.model, it.capabilities)?;
            Ok::<_, ApiError>(Fallback { model, authenticated: it.authenticated })
        });
        Ok(Dispatch {
            node_id: outer_id("nodeId", self.node_id)?,
            required: with_implied(self.required, self.messages.as_deref().unwrap_or_default())?,
            active: model("active", self.active.provider, self.active.model, self.active.capabilities)?,
            fallback: fallback.transpose()?,
            substitution_supported: self.substitution_supported,
            redact: self.redact,
        })
    }
}

/// What is required, and behind it what the messages require that is not among it.
fn with_implied(mut required: Vec<String>, messages: &[Value]) -> Result<Vec<String>, ApiError> {
    let met = modality::of_messages(messages).map_err(unfit)?;
    for implied in modality::requirements(&met) {
        if !required.iter().any(|one| one == implied) {
            required.push(implied.to_owned());
        }
    }
    Ok(required)
}

fn model(member: &str, provider: String, model: String, capabilities: Vec<String>) -> Result<Model, ApiError> {
    if !is_provider(&provider) {
        return Err(ApiError::validation(format!("{member}.provider: a word of a-z 0-9 - of at most 128 characters")));
    }
    identifiers(&format!("{member}.capabilities"), &capabilities)?;
    let model = outer_id(&format!("{member}.model"), model)?;
    Ok(Model { provider, model, capabilities })
}

fn identifiers(member: &str, names: &[String]) -> Result<(), ApiError> {
    match names.iter().all(|name| is_identifier(name)) {
        true => Ok(()),
        false => Err(ApiError::validation(format!("{member}: words of a-z 0-9 - of at most 128 characters"))),
    }
}
