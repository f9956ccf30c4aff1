//! Taking URLs back, and asking what one is worth.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use mediakeep_storage::{AssetId, RunId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::begun::begun;
use super::body::{answer, json};
use super::extract::{AssetsMint, AuditRead, Caller, allowed, parts};
use crate::access::Scope;
use crate::assets::revocation::{self, Revoked, Selector};
use crate::error::ApiError;

/// What is to be revoked: exactly one of `urlId`, `label`, `assetId`, `runId` and `all`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevokeRequest {
    /// One URL. That of a durable one (`<assetId>.<generation>`) means all URLs of its asset.
    #[serde(default)]
    url_id: Option<String>,
    /// The delivery URLs that were made with this label.
    #[serde(default)]
    label: Option<String>,
    /// Every URL of this asset.
    #[serde(default)]
    asset_id: Option<String>,
    /// Every URL of every asset that this run references.
    #[serde(default)]
    run_id: Option<String>,
    /// `true`: every URL of the tenant.
    #[serde(default)]
    all: Option<bool>,
    /// Only counts.
    #[serde(default)]
    dry_run: Option<bool>,
}

/// What was revoked, or would be.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevokeAnswer {
    /// By `urlId` and `label`: the delivery URLs that opened until now. Else the assets whose generation was raised.
    revoked: u64,
    /// The assets, at most 1,000.
    #[schema(value_type = Vec<String>)]
    assets: Vec<AssetId>,
    /// Other runs whose logs quote them, at most 1,000.
    #[schema(value_type = Vec<String>)]
    runs: Vec<RunId>,
    /// Whether there are more of either.
    truncated: bool,
}

/// A URL to be looked at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IntrospectRequest {
    /// Whatever address it was recorded under.
    url: String,
}

/// What the URL is worth. Of one that is not the caller's own only `active` is said.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntrospectAnswer {
    active: bool,
    asset_id: Option<String>,
    class: Option<super::urls::UrlClass>,
    /// `null`: as long as the asset.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    url_id: Option<String>,
    /// Why it opens nothing: `revoked`, `not_yet_valid`, `url_expired`, `url_used`, `asset_expired` or `asset_erased`.
    reason: Option<String>,
}

/// Takes URLs back: they open nothing from the next request on.
#[utoipa::path(post, operation_id = "revoke_urls", path = "/v1/urls/revoke", tag = "urls", request_body = RevokeRequest,
    responses((status = 200, body = RevokeAnswer), (status = 403, body = super::openapi::ErrorBody, description = "By `assetId`, `runId`, `all` or the `urlId` of a durable URL `runs:write` is needed too")), security(("bearer" = ["assets:mint"])))]
pub async fn revoke(
    caller: Caller<AssetsMint>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let app = parts(&request);
    let asked: RevokeRequest = json(&request, payload, &caller.principal).await?;
    let dry = asked.dry_run.unwrap_or(false);
    let selector = selector(asked)?;
    if selector.is_wide() {
        allowed(&request, &caller.principal, Scope::RunsWrite)?;
    }
    let revoking = async move { revocation::revoke(&app, &caller.principal, &selector, dry).await };
    let revoked = begun(revoking).await?;
    Ok(answer(StatusCode::OK, &RevokeAnswer::from(revoked)))
}

fn selector(asked: RevokeRequest) -> Result<Selector, ApiError> {
    let all = match asked.all {
        Some(false) => return Err(ApiError::validation("all: true, or not there")),
        all => all.map(|_| Selector::All),
    };
    let given = [
        asked.url_id.map(Selector::of_url_id),
        asked.label.map(Selector::Label),
        asked.asset_id.map(|id| Selector::Asset(AssetId::parse(&id).ok())),
        asked.run_id.map(|id| Selector::Run(RunId::parse(&id).ok())),
        all,
    ];
    let mut given = given.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(ApiError::validation("exactly one of urlId, label, assetId, runId and all")),
    }
}

impl From<Revoked> for RevokeAnswer {
    fn from(revoked: Revoked) -> Self {
        Self {
            revoked: revoked.count,
            assets: revoked.assets.into_iter().collect(),
            runs: revoked.runs.into_iter().collect(),
            truncated: revoked.truncated,
        }
    }
}

/// Says what a capability URL is worth now.
#[utoipa::path(post, operation_id = "introspect_url", path = "/v1/urls/introspect", tag = "urls", request_body = IntrospectRequest,
    responses((status = 200, body = IntrospectAnswer)), security(("bearer" = ["audit:read"])))]
pub async fn introspect(
    caller: Caller<AuditRead>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let caller = caller.principal;
    let app = parts(&request);
    let asked: IntrospectRequest = json(&request, payload, &caller).await?;
    Ok(answer(StatusCode::OK, &revocation::introspect(&app, &caller, &asked.url).await?))
}
