//! Content parts of messages, made ready for a log.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use mediakeep_storage::RunId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::body::{answer, json_up_to};
use super::extract::{AssetsWrite, Caller, deny, parts};
use crate::content::{self, ContentError, Wish};
use crate::error::ApiError;
use crate::remote::RemoteError;

/// Messages to be normalized.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NormalizeRequest {
    /// The run that bytes are stored for, and that references every asset which the answer names; at most 1000 that are there already.
    run_id: String,
    /// Messages; the `content` of each is a string or a list of parts.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Value>,
    /// Which types of parts are allowed beside `text`; absent: none.
    #[serde(default)]
    modalities: Option<Vec<String>>,
    /// The longest part, in bytes as decoded.
    #[serde(default)]
    #[schema(minimum = 1)]
    max_bytes_per_part: Option<u64>,
    /// Whether `url` parts are fetched.
    #[serde(default)]
    fetch: Option<bool>,
}

/// The messages, normalized.
#[derive(Debug, Serialize, ToSchema)]
pub struct NormalizeAnswer {
    /// In the protocol's own names; bytes are stored, and named by `mediaRef`.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Value>,
}

/// Checks content parts and stores their bytes.
#[utoipa::path(post, operation_id = "normalize_content", path = "/v1/content-parts/normalize", tag = "content parts", request_body = NormalizeRequest,
    responses((status = 200, body = NormalizeAnswer), (status = 400, body = super::openapi::ErrorBody, description = "`unsupported_modality`, or `validation_error`; of a URL with `details.reason` `fetch_disabled`, `fetch_refused` or `fetch_failed`"), (status = 404, body = super::openapi::ErrorBody, description = "Unknown or foreign assets, at the paths in `details.unknown`"), (status = 409, body = super::openapi::ErrorBody, description = "`run_erased`: the run was erased"), (status = 429, body = super::openapi::ErrorBody)), security(("bearer" = ["assets:write"])))]
pub async fn normalize(
    caller: Caller<AssetsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let app = parts(&request);
    let most = usize::try_from(app.settings.limits.max_json_bytes.0).unwrap_or(usize::MAX);
    let asked: NormalizeRequest = json_up_to(&request, payload, &caller.principal, most).await?;
    let run =
        RunId::parse(&asked.run_id).map_err(|_| ApiError::validation("runId: 1 to 128 of A-Z a-z 0-9 . _ : ~ -"))?;
    if asked.max_bytes_per_part == Some(0) {
        return Err(ApiError::validation("maxBytesPerPart: at least 1"));
    }
    let wish = Wish {
        run,
        messages: asked.messages,
        modalities: asked.modalities.unwrap_or_default(),
        most: asked.max_bytes_per_part,
        fetch: asked.fetch.unwrap_or(false),
    };
    let normalized = Box::pin(content::normalize(&app, &caller.principal, wish)).await;
    if let Err(ContentError::Remote { error: RemoteError::Refused(_), .. }) = &normalized {
        deny(&request, |denials| denials.credential(&caller.principal, "fetch_refused"));
    }
    Ok(answer(StatusCode::OK, &NormalizeAnswer { messages: normalized.map_err(refusal)? }))
}

fn refusal(error: ContentError) -> ApiError {
    let said = error.to_string();
    match error {
        ContentError::Modality { modality, path } => {
            let refused =
                ApiError::new(StatusCode::BAD_REQUEST, "unsupported_modality", "a part's type is not allowed");
            refused.with("modality", super::extract::printable(&modality)).with("path", path)
        }
        ContentError::Invalid { .. } => ApiError::validation(said),
        ContentError::Base64 { path, offset } => {
            ApiError::validation(said).reason("invalid_base64").with("offset", offset).with("path", path)
        }
        ContentError::Unknown { paths } => ApiError::not_found().with("unknown", paths),
        ContentError::Remote { error, path } => not_fetched(error).with("path", path),
        ContentError::Asset(error) => error.into(),
    }
}

/// What a caller hears of a fetch that was not.
pub(in crate::http) fn not_fetched(error: RemoteError) -> ApiError {
    let reason = match error {
        RemoteError::Disabled => "fetch_disabled",
        RemoteError::Refused(_) => "fetch_refused",
        RemoteError::Failed(_) => "fetch_failed",
    };
    ApiError::validation(format!("url: {error}")).reason(reason)
}
