//! Making capability URLs.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use mediakeep_keys::Disposition;
use mediakeep_storage::{AssetId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::{answer, json, word, word_or_null};
use super::extract::{AssetsMint, Caller, asset_id, parts};
use crate::assets::members;
use crate::assets::urls::{self, DEFAULT_LIFE, MAX_BATCH, Minted, Wish};
use crate::error::ApiError;

/// Which URL is wanted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MintRequest {
    /// `durable` or `delivery`.
    #[serde(deserialize_with = "word")]
    class: UrlClass,
    /// How long a delivery URL lives; 900 if nobody says.
    #[serde(default)]
    #[schema(minimum = 1, default = 900)]
    expires_in_seconds: Option<i64>,
    /// How a browser is asked to show it.
    #[serde(default, deserialize_with = "word_or_null")]
    disposition: Option<UrlDisposition>,
    /// By what delivery URLs are revoked together: 1 to 256 characters.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 256)]
    label: Option<String>,
    /// How often the bytes of a delivery URL may be fetched.
    #[serde(default)]
    #[schema(minimum = 1)]
    max_uses: Option<i64>,
}

/// The same for several assets.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MintBatchRequest {
    /// At most 500.
    #[schema(min_items = 1, max_items = 500)]
    assets: Vec<String>,
    /// `durable` or `delivery`.
    #[serde(deserialize_with = "word")]
    class: UrlClass,
    /// How long a delivery URL lives; 900 if nobody says.
    #[serde(default)]
    #[schema(minimum = 1, default = 900)]
    expires_in_seconds: Option<i64>,
    /// How a browser is asked to show it.
    #[serde(default, deserialize_with = "word_or_null")]
    disposition: Option<UrlDisposition>,
    /// By what delivery URLs are revoked together: 1 to 256 characters.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 256)]
    label: Option<String>,
    /// How often the bytes of a delivery URL may be fetched.
    #[serde(default)]
    #[schema(minimum = 1)]
    max_uses: Option<i64>,
}

/// The two kinds of URL.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum UrlClass {
    /// Lives as long as the log that quotes it.
    Durable,
    /// Lives for a stated time.
    Delivery,
}

/// How a browser is asked to show the bytes.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum UrlDisposition {
    /// In place, if they are passive.
    Inline,
    /// As a download.
    Attachment,
}

/// A URL that was made.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UrlAnswer {
    url: String,
    class: UrlClass,
    /// `null`: as long as the asset.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// By what it is revoked.
    url_id: String,
}

/// Several of them, in the order asked for.
#[derive(Debug, Serialize, ToSchema)]
pub struct UrlBatchAnswer {
    urls: Vec<UrlAnswer>,
}

/// Makes a capability URL of an asset.
#[utoipa::path(post, operation_id = "mint_url", path = "/v1/assets/{assetId}/urls", tag = "urls", params(("assetId" = String, Path)), request_body = MintRequest,
    responses((status = 201, body = UrlAnswer), (status = 410, body = super::openapi::ErrorBody, description = "The asset is over")), security(("bearer" = ["assets:mint"])))]
pub async fn mint(
    caller: Caller<AssetsMint>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let (app, asset) = (parts(&request), asset_id(&request).ok());
    let asked: MintRequest = json(&request, payload, &caller.principal).await?;
    let wish = wish(asked.class, asked.expires_in_seconds, asked.disposition, asked.label, asked.max_uses)?;
    let minted = urls::mint(&app, &caller.principal, &[asset], wish).await.map_err(alone)?;
    let first = minted.into_iter().next().ok_or_else(ApiError::not_found)?;
    Ok(answer(StatusCode::CREATED, &UrlAnswer::from(first)))
}

/// Makes capability URLs of several assets: all of them, or none.
#[utoipa::path(post, operation_id = "mint_urls", path = "/v1/urls/mint", tag = "urls", request_body = MintBatchRequest,
    responses((status = 201, body = UrlBatchAnswer), (status = 404, body = super::openapi::ErrorBody, description = "Unknown or foreign assets at the positions in `details.unknown`; none was made"), (status = 410, body = super::openapi::ErrorBody, description = "One of the assets is over; none was made")), security(("bearer" = ["assets:mint"])))]
pub async fn mint_batch(
    caller: Caller<AssetsMint>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let app = parts(&request);
    let asked: MintBatchRequest = json(&request, payload, &caller.principal).await?;
    if asked.assets.is_empty() || asked.assets.len() > MAX_BATCH {
        return Err(ApiError::validation(format!("assets: 1 to {MAX_BATCH}")));
    }
    let wish = wish(asked.class, asked.expires_in_seconds, asked.disposition, asked.label, asked.max_uses)?;
    let assets: Vec<Option<AssetId>> = asked.assets.iter().map(|name| AssetId::parse(name).ok()).collect();
    let minted = urls::mint(&app, &caller.principal, &assets, wish).await?;
    let urls = minted.into_iter().map(UrlAnswer::from).collect();
    Ok(answer(StatusCode::CREATED, &UrlBatchAnswer { urls }))
}

fn wish(
    class: UrlClass,
    seconds: Option<i64>,
    disposition: Option<UrlDisposition>,
    label: Option<String>,
    max_uses: Option<i64>,
) -> Result<Wish, ApiError> {
    match class {
        UrlClass::Durable if seconds.is_some() => {
            Err(ApiError::validation("expiresInSeconds: a durable URL lives as long as its asset"))
        }
        UrlClass::Durable if disposition.is_some() => {
            Err(ApiError::validation("disposition: a durable URL has none of its own"))
        }
        UrlClass::Durable if label.is_some() => {
            Err(ApiError::validation("label: a durable URL is revoked with its asset"))
        }
        UrlClass::Durable if max_uses.is_some() => {
            Err(ApiError::validation("maxUses: the uses of a durable URL are not counted"))
        }
        UrlClass::Durable => Ok(Wish::Durable),
        UrlClass::Delivery => Ok(Wish::Delivery {
            seconds: seconds.unwrap_or(DEFAULT_LIFE),
            disposition: disposition.map(|disposition| match disposition {
                UrlDisposition::Inline => Disposition::Inline,
                UrlDisposition::Attachment => Disposition::Attachment,
            }),
            label: label.map(members::label).transpose()?,
            max_uses: max_uses.map(uses).transpose()?,
        }),
    }
}

fn uses(n: i64) -> Result<u64, ApiError> {
    u64::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| ApiError::validation("maxUses: 1 or more"))
}

/// Of one asset in the path there is no position to name.
fn alone(error: crate::assets::AssetError) -> ApiError {
    match error {
        crate::assets::AssetError::Unknown { .. } => ApiError::not_found(),
        other => other.into(),
    }
}

impl From<Minted> for UrlAnswer {
    fn from(minted: Minted) -> Self {
        Self {
            url: minted.url,
            class: if minted.durable { UrlClass::Durable } else { UrlClass::Delivery },
            expires_at: minted.expires_at,
            url_id: minted.url_id,
        }
    }
}
