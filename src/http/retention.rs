//! Why an asset is kept, what a sweep would take, holds, and the erasure of a run.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use mediakeep_storage::record::HoldOn;
use mediakeep_storage::{AssetId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::begun::begun;
use super::body::{answer, json};
use super::extract::{self, AssetsErase, AssetsRead, Caller, HoldsWrite, asset_id, hold_id, parts, run_id};
use super::paging::{List, limit};
use crate::access::Principal;
use crate::assets::{library, members};
use crate::error::ApiError;
use crate::projection::asset::AssetJson;
use crate::retention::{erase, floors, holds};

/// Why an asset is kept.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// Until when, grace included; `null` is without end.
    #[schema(value_type = Option<String>, format = DateTime)]
    retain_until: Option<Timestamp>,
    /// What still protects it, each with its own end: `{"hold"}`, `{"run"}`, `{"ask"}`, and `{"grace"}` in seconds, which is added to the
    /// latest of them; at most 1000.
    #[schema(value_type = Vec<Object>)]
    because: Value,
    /// Whether there is more than is named.
    truncated: bool,
}

/// What a sweep would take.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RetentionPreview)]
pub struct PreviewPage {
    assets: Vec<AssetJson>,
    /// How many assets it is in all.
    count: u64,
    /// How many bytes they have.
    bytes: u64,
    /// Where the next page begins; `null` on the last.
    next_cursor: Option<String>,
}

/// Why something is held.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HoldReason)]
pub struct Reason {
    /// In words, at most 256 characters.
    reason: String,
}

/// A hold.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Hold)]
pub struct HoldJson {
    hold_id: String,
    reason: String,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
}

/// What the erasure of a run came to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunErasure)]
pub struct RunErased {
    /// How many assets went with it.
    erased: u64,
    /// Which did not; at most 1000.
    kept: Vec<Kept>,
    /// Only if it is so: more were kept than are named.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
}

/// An asset that outlives the run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = KeptAsset)]
pub struct Kept {
    asset_id: String,
    /// The holds and the other runs.
    #[schema(value_type = Vec<Object>)]
    because: Value,
}

/// Until when an asset is kept, and because of what.
#[utoipa::path(get, operation_id = "show_retention", path = "/v1/assets/{assetId}/retention", tag = "retention", params(("assetId" = String, Path)),
    responses((status = 200, body = Retention)), security(("bearer" = ["assets:read"])))]
pub async fn show(caller: Caller<AssetsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    extract::query(&request, &[])?;
    let shown = floors::show(&parts(&request), &caller.principal.tenant, asset_id(&request)?).await?;
    let (view, because, truncated) = shown;
    let retention = Retention { retain_until: view.floor.until.instant(), because, truncated };
    Ok(answer(StatusCode::OK, &retention))
}

/// What a sweep at that time would take, as things stand.
#[utoipa::path(get, operation_id = "preview_retention", path = "/v1/retention/preview", tag = "retention",
    params(("at" = Option<String>, Query), ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = PreviewPage)), security(("bearer" = ["assets:read"])))]
pub async fn preview(caller: Caller<AssetsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let (app, tenant) = (parts(&request), &caller.principal.tenant);
    let found = extract::query(&request, &["at", "limit", "cursor"])?;
    let [at, raw_limit, raw_cursor] = <[_; 3]>::try_from(found).unwrap_or_default();
    let list = List::new(tenant, format!("preview/{}", at.as_deref().unwrap_or_default()));
    let at = at.map(|at| members::instant("at", &at)).transpose()?.unwrap_or_else(|| app.now());
    let after = list.after(raw_cursor.as_deref(), |last| AssetId::parse(last).ok())?;
    let limit = limit(raw_limit.as_deref(), library::DEFAULT_PAGE, library::MAX_PAGE)?;
    let (preview, more) = floors::preview(&app, tenant, at, after, limit).await?;
    let last = preview.assets.last().map(|view| list.cursor(&view.record.id.to_string()));
    let page = PreviewPage {
        assets: preview.assets.iter().map(AssetJson::of).collect(),
        count: preview.count,
        bytes: preview.bytes,
        next_cursor: last.filter(|_| more),
    };
    Ok(answer(StatusCode::OK, &page))
}

/// Keeps an asset until the hold is lifted. One that is there gets the new reason.
#[utoipa::path(put, operation_id = "hold_asset", path = "/v1/assets/{assetId}/holds/{holdId}", tag = "retention", params(("assetId" = String, Path), ("holdId" = String, Path)), request_body = Reason,
    responses((status = 200, body = HoldJson), (status = 410, body = super::openapi::ErrorBody, description = "The asset was erased")), security(("bearer" = ["holds:write"])))]
pub async fn hold_asset(
    caller: Caller<HoldsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let on = HoldOn::Asset(asset_id(&request)?);
    place(&caller.principal, &request, payload, &on).await
}

/// Keeps everything that a run references, now or later, until the hold is lifted.
#[utoipa::path(put, operation_id = "hold_run", path = "/v1/runs/{runId}/holds/{holdId}", tag = "retention", params(("runId" = String, Path), ("holdId" = String, Path)), request_body = Reason,
    responses((status = 200, body = HoldJson), (status = 409, body = super::openapi::ErrorBody, description = "`run_erased`: the run was erased")), security(("bearer" = ["holds:write"])))]
pub async fn hold_run(
    caller: Caller<HoldsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let on = HoldOn::Run(run_id(&request)?);
    place(&caller.principal, &request, payload, &on).await
}

async fn place(
    caller: &Principal,
    request: &HttpRequest,
    payload: web::Payload,
    on: &HoldOn,
) -> Result<HttpResponse, ApiError> {
    let id = hold_id(request)?;
    let Reason { reason } = json(request, payload, caller).await?;
    let (app, caller, on) = (parts(request), caller.clone(), on.clone());
    let hold = begun(async move { holds::place(&app, &caller, &on, id, reason).await }).await?;
    let hold = HoldJson { hold_id: hold.id.to_string(), reason: hold.reason, at: hold.placed_at };
    Ok(answer(StatusCode::OK, &hold))
}

/// Lifts a hold on an asset.
#[utoipa::path(delete, operation_id = "lift_asset_hold", path = "/v1/assets/{assetId}/holds/{holdId}", tag = "retention", params(("assetId" = String, Path), ("holdId" = String, Path)),
    responses((status = 204, description = "It is lifted")), security(("bearer" = ["holds:write"])))]
pub async fn lift_asset(caller: Caller<HoldsWrite>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    lift(&caller.principal, &request, &HoldOn::Asset(asset_id(&request)?)).await
}

/// Lifts a hold on a run.
#[utoipa::path(delete, operation_id = "lift_run_hold", path = "/v1/runs/{runId}/holds/{holdId}", tag = "retention", params(("runId" = String, Path), ("holdId" = String, Path)),
    responses((status = 204, description = "It is lifted")), security(("bearer" = ["holds:write"])))]
pub async fn lift_run(caller: Caller<HoldsWrite>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    lift(&caller.principal, &request, &HoldOn::Run(run_id(&request)?)).await
}

async fn lift(caller: &Principal, request: &HttpRequest, on: &HoldOn) -> Result<HttpResponse, ApiError> {
    extract::query(request, &[])?;
    let (app, caller, on, id) = (parts(request), caller.clone(), on.clone(), hold_id(request)?);
    begun(async move { holds::lift(&app, &caller, &on, &id).await }).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Closes a run for good, and erases every asset that no other run references and no hold keeps.
#[utoipa::path(post, operation_id = "erase_run", path = "/v1/runs/{runId}/erase", tag = "retention", params(("runId" = String, Path)),
    responses((status = 200, body = RunErased), (status = 409, body = super::openapi::ErrorBody, description = "`hold_active`: the holds in `details.holds` are on it")), security(("bearer" = ["assets:erase"])))]
pub async fn erase_run(caller: Caller<AssetsErase>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    extract::query(&request, &[])?;
    let (app, run) = (parts(&request), run_id(&request)?);
    let erased = begun(async move { erase::run(&app, &caller.principal, &run).await }).await?;
    let kept = erased.kept.into_iter().map(|(id, because)| Kept { asset_id: id.to_string(), because });
    let told = RunErased { erased: erased.erased, kept: kept.collect(), truncated: erased.truncated, at: erased.at };
    Ok(answer(StatusCode::OK, &told))
}
