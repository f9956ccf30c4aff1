//! Debug bundles: scrubbing them, checking them, and what their URLs lead to.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::body::{answer, json, must_be_json, uncoded};
use super::extract::{AssetsRead, AssetsWrite, Caller, allowed, parts};
use super::upload::{length, stream};
use crate::access::Scope;
use crate::bundles::found::Finding;
use crate::bundles::resolve::{MAX_URLS, Resolved, resolve as resolve_urls};
use crate::bundles::{BundleError, Reading, check as checked, scrub as scrubbed};
use crate::error::ApiError;

/// The bundle as it travels, and what was done.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScrubAnswer {
    /// The bundle, unchanged but for its media, its capability URLs and the manifest in `x-host-mediakeep-mediaAssets`.
    #[schema(value_type = Object)]
    bundle: Value,
    scrub: ScrubReport,
}

/// What a scrub did.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScrubReport {
    /// Assets that were made.
    stored: u64,
    /// Places that carry a bound URL now.
    rewritten: u64,
    /// What it could not mend; at most 1000.
    findings: Vec<BundleFinding>,
}

/// What is wrong with a bundle.
#[derive(Debug, Serialize, ToSchema)]
pub struct BundleFinding {
    /// A JSON pointer into the bundle.
    path: String,
    /// `inline_media`, `capability_url`, `source_missing`, `source_ambiguous`, `unknown_asset`, `foreign_url`, `expired`,
    /// `digest_mismatch`, `size_mismatch` or `malformed`.
    code: &'static str,
    /// A sentence for people.
    message: &'static str,
}

/// What a check found.
#[derive(Debug, Serialize, ToSchema)]
pub struct CheckAnswer {
    /// Whether nothing is wrong.
    ok: bool,
    /// At most 1000.
    findings: Vec<BundleFinding>,
}

/// URLs to be resolved.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveRequest {
    /// Capability URLs, bound URLs, `mediaRef`s or asset ids; at most 1000.
    #[schema(min_items = 1, max_items = 1000)]
    urls: Vec<String>,
    /// Whether `url` is to be a delivery URL of 900 seconds. Needs `assets:mint` too.
    #[serde(default)]
    mint: Option<bool>,
}

/// What they lead to, in order.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResolveAnswer {
    results: Vec<ResolvedUrl>,
}

/// What one URL leads to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedUrl {
    /// `live`, `expired`, `erased` or `unknown`: foreign and absent are one.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    asset_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    /// Of a living asset.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// Stores a bundle's media for its run, and gives the bundle back with bound URLs in their places.
#[utoipa::path(post, operation_id = "scrub_bundle", path = "/v1/debug-bundles/scrub", tag = "debug bundles",
    request_body(content = Object, description = "The bundle; `run.runId` names its run"),
    responses((status = 200, body = ScrubAnswer), (status = 409, body = super::openapi::ErrorBody, description = "`run_erased`: the run was erased"), (status = 429, body = super::openapi::ErrorBody)), security(("bearer" = ["assets:write"])))]
pub async fn scrub(
    caller: Caller<AssetsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let app = parts(&request);
    readable(&request)?;
    let mut bundle = Reading::to_scrub(&app, &caller.principal, length(&request)).await.map_err(refusal)?;
    read(&request, payload, &mut bundle).await?;
    let scrubbed = Box::pin(scrubbed::scrub(&app, &caller.principal, bundle)).await.map_err(refusal)?;
    let pieces = futures_util::stream::try_unfold(scrubbed, async |mut scrubbed| {
        let piece = scrubbed.next().await?;
        Ok::<_, std::io::Error>(piece.map(|piece| (piece, scrubbed)))
    });
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, "no-store")).content_type("application/json");
    Ok(response.streaming(pieces))
}

/// Looks a bundle over: what in it should not travel, and which of its assets are not what it says.
#[utoipa::path(post, operation_id = "check_bundle", path = "/v1/debug-bundles/check", tag = "debug bundles",
    request_body(content = Object, description = "The bundle"),
    responses((status = 200, body = CheckAnswer)), security(("bearer" = ["assets:read"])))]
pub async fn check(
    caller: Caller<AssetsRead>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let app = parts(&request);
    readable(&request)?;
    let mut bundle = Reading::to_check(&app, &caller.principal);
    read(&request, payload, &mut bundle).await?;
    let findings = checked::check(&app, &caller.principal, bundle).await.map_err(refusal)?;
    let findings: Vec<_> = findings.into_iter().map(BundleFinding::from).collect();
    Ok(answer(StatusCode::OK, &CheckAnswer { ok: findings.is_empty(), findings }))
}

/// Says what the URLs of a bundle lead to.
#[utoipa::path(post, operation_id = "resolve_urls", path = "/v1/debug-bundles/resolve", tag = "debug bundles", request_body = ResolveRequest,
    responses((status = 200, body = ResolveAnswer)), security(("bearer" = ["assets:read"])))]
pub async fn resolve(
    caller: Caller<AssetsRead>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let app = parts(&request);
    let asked: ResolveRequest = json(&request, payload, &caller.principal).await?;
    let mint = asked.mint.unwrap_or(false);
    if mint {
        allowed(&request, &caller.principal, Scope::AssetsMint)?;
    }
    if asked.urls.is_empty() || asked.urls.len() > MAX_URLS {
        return Err(ApiError::validation(format!("urls: 1 to {MAX_URLS}")));
    }
    let resolved = resolve_urls(&app, &caller.principal, &asked.urls, mint).await?;
    let results = resolved.into_iter().map(ResolvedUrl::from).collect();
    Ok(answer(StatusCode::OK, &ResolveAnswer { results }))
}

/// Refuses what its head shows to be no bundle that is taken.
fn readable(request: &HttpRequest) -> Result<(), ApiError> {
    must_be_json(request)?;
    uncoded(request)?;
    let most = parts(request).settings.limits.max_json_bytes.0;
    match length(request).is_some_and(|length| length > most) {
        true => Err(ApiError::too_large(most)),
        false => Ok(()),
    }
}

async fn read(request: &HttpRequest, payload: web::Payload, bundle: &mut Reading<'_>) -> Result<(), ApiError> {
    let mut body = stream::Body::new(payload, request.headers())?;
    while let Some(chunk) = body.next().await? {
        bundle.push(&chunk).await.map_err(refusal)?;
    }
    Ok(())
}

fn refusal(error: BundleError) -> ApiError {
    match error {
        BundleError::ForeignTenant => ApiError::other_tenant(),
        BundleError::Asset(error) => error.into(),
        BundleError::Syntax { offset, .. } => ApiError::validation(error.to_string()).with("offset", offset),
        BundleError::TooMany { limit, .. } => ApiError::validation(error.to_string()).with("limit", limit),
        BundleError::NoRun => ApiError::validation(error.to_string()),
    }
}

impl From<Finding> for BundleFinding {
    fn from(Finding { path, code, message }: Finding) -> Self {
        Self { path, code, message }
    }
}

impl From<Resolved> for ResolvedUrl {
    fn from(resolved: Resolved) -> Self {
        match resolved {
            Resolved::Unknown => {
                Self { state: "unknown", asset_id: None, sha256: None, bytes: None, mime_type: None, url: None }
            }
            Resolved::Asset { view, url } => {
                let asset = crate::projection::asset::AssetJson::of(&view);
                Self {
                    state: asset.state,
                    asset_id: Some(asset.asset_id),
                    sha256: asset.sha256,
                    bytes: Some(asset.bytes),
                    mime_type: Some(asset.mime_type),
                    url,
                }
            }
        }
    }
}
