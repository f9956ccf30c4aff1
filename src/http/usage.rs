//! What a tenant uses, and what it may.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::answer;
use super::extract::{self, AssetsRead, Caller, parts};
use crate::assets::library;
use crate::error::ApiError;

/// What the tenant uses now.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Usage)]
pub struct UsageJson {
    /// Bytes of its live assets. Each counts its own, also where equal bytes lie in the store once.
    bytes: u64,
    /// How many live assets it has.
    assets: u64,
    /// Bytes that are reserved for uploads in progress: they count against the quota too, and each upload as an asset.
    reserved_bytes: u64,
    quota: QuotaJson,
}

/// How much the tenant may have; beyond it uploads are refused with 429 and `details.reason` `quota`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Quota)]
pub struct QuotaJson {
    /// So many bytes; `null`: any.
    bytes: Option<u64>,
    /// So many assets; `null`: any.
    assets: Option<u64>,
}

/// What the tenant's assets come to, and its quota.
#[utoipa::path(get, operation_id = "show_usage", path = "/v1/usage", tag = "assets",
    responses((status = 200, body = UsageJson), (status = "4XX", body = super::openapi::ErrorBody)), security(("bearer" = ["assets:read"])))]
pub async fn show(caller: Caller<AssetsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    extract::query(&request, &[])?;
    let (usage, quota) = library::usage(&parts(&request), &caller.principal.tenant).await?;
    let body = UsageJson {
        bytes: usage.bytes,
        assets: usage.assets,
        reserved_bytes: usage.reserved_bytes,
        quota: QuotaJson { bytes: quota.bytes, assets: quota.assets },
    };
    Ok(answer(StatusCode::OK, &body))
}
