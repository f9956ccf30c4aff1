//! Bodies that carry media: inline JSON, multipart, raw bytes. All are read as they come and held by nobody.
//!
//! | request `Content-Type` | body |
//! | --- | --- |
//! | `application/json` | one object; a string of it is the bytes, in base64 |
//! | `multipart/form-data` | one part `file`, the members as text parts |
//! | anything else | the bytes themselves; the members stand in the query |

use std::sync::Arc;

use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use data_encoding::BASE64;
use mediakeep_storage::RunId;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::body::uncoded;
use super::extract::{self, AssetsWrite, Caller};
use crate::access::Principal;
use crate::app::App;
use crate::assets::ingest::{Ingest, Ingested, Start};
use crate::assets::members::{Members, RawMembers};
use crate::assets::{fetch, urls};
pub use crate::base64;
use crate::error::ApiError;
use crate::projection::asset::AssetJson;
use crate::projection::envelope::{self, Carried};

mod elsewhere;
pub mod inline;
mod json;
mod multipart;
mod raw;
pub(super) mod stream;

/// Says that an answer is that of an earlier request with the same idempotency key.
const REPLAY: &str = "openwop-Idempotent-Replay";

/// What an ingest answers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngestAnswer {
    asset: AssetJson,
    /// The durable capability URL: what goes into the run's log.
    url: String,
    /// `blob:` and the asset's id.
    media_ref: String,
    /// The AI envelope, ready for the run's log.
    #[schema(value_type = Object)]
    envelope: Value,
}

/// Stores an asset that a run emitted.
#[utoipa::path(
    post,
    path = "/v1/runs/{runId}/assets",
    tag = "ingest",
    params(super::openapi::IngestMembers, ("runId" = String, Path), ("Idempotency-Key" = Option<String>, Header), ("Content-Digest" = Option<String>, Header)),
    request_body(content((super::openapi::InlineBody = "application/json"), (super::openapi::MultipartBody = "multipart/form-data"), (Vec<u8> = "application/octet-stream"))),
    responses((status = 201, body = IngestAnswer), (status = "4XX", body = super::openapi::ErrorBody)),
    security(("bearer" = ["assets:write"]))
)]
pub async fn ingest_into_run(
    caller: Caller<AssetsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let run = extract::run_id(&request)?;
    take(caller.principal, Some(run), &request, payload).await
}

/// Stores an asset that no run references yet.
#[utoipa::path(
    post,
    path = "/v1/assets",
    tag = "ingest",
    params(super::openapi::IngestMembers, ("Idempotency-Key" = Option<String>, Header), ("Content-Digest" = Option<String>, Header)),
    request_body(content((super::openapi::InlineBody = "application/json"), (super::openapi::MultipartBody = "multipart/form-data"), (Vec<u8> = "application/octet-stream"))),
    responses((status = 201, body = IngestAnswer), (status = "4XX", body = super::openapi::ErrorBody)),
    security(("bearer" = ["assets:write"]))
)]
pub async fn ingest(
    caller: Caller<AssetsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    take(caller.principal, None, &request, payload).await
}

/// What all kinds of body need to know.
struct Incoming<'a> {
    app: Arc<App>,
    request: &'a HttpRequest,
    start: Start,
    content_type: String,
}

async fn take(
    principal: Principal,
    run: Option<RunId>,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let app = extract::parts(request);
    uncoded(request)?;
    let idempotency_key = idempotency_key(request.headers())?;
    let incoming = Incoming {
        start: Start { principal, run, idempotency_key, announced: None, at_most: length(request), from: None },
        content_type: content_type(request.headers())?,
        app: app.clone(),
        request,
    };
    let body = stream::Body::new(payload, request.headers())?;
    let essence = incoming.content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let ingested = match essence.as_str() {
        "application/json" => json::take(incoming, body).await?,
        "multipart/form-data" => multipart::take(incoming, body).await?,
        _ => raw::take(incoming, body).await?,
    };
    answer(&app, ingested).await
}

impl Incoming<'_> {
    /// Begins, lets `read` bring the bytes and the members, and makes the asset of them.
    ///
    /// When that fails, everything is taken back before the caller hears of it, so that a retry with the same idempotency key
    /// does not meet the claim of the request that it repeats.
    async fn store(
        &self,
        read: impl AsyncFnOnce(&mut Ingest) -> Result<Members, ApiError>,
    ) -> Result<Ingested, ApiError> {
        let mut ingest = Ingest::begin(&self.app, self.start.clone()).await?;
        match read(&mut ingest).await {
            Ok(members) => Ok(ingest.finish(members).await?),
            Err(refusal) => {
                ingest.abandon().await;
                Err(refusal)
            }
        }
    }

    /// Looks at the members, for the moment in which they are all there.
    fn check(raw: RawMembers) -> Result<Members, ApiError> {
        Ok(raw.check()?)
    }
}

/// How long the body says it is.
pub(super) fn length(request: &HttpRequest) -> Option<u64> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn answer(app: &Arc<App>, ingested: Ingested) -> Result<HttpResponse, ApiError> {
    let record = &ingested.view.record;
    let url = urls::durable_url(app, &ingested.view)?;
    let inline =
        ingested.inline_allowed && record.is_live() && envelope::may_inline(record, app.inline_cap(&record.tenant));
    let envelope = if inline {
        let bytes = fetch::whole(app, record).await?;
        envelope::envelope(record, Carried::Base64(&BASE64.encode(&bytes)))
    } else {
        envelope::envelope(record, Carried::Url(&url))
    };
    let body =
        IngestAnswer { asset: AssetJson::of(&ingested.view), media_ref: format!("blob:{}", record.id), url, envelope };
    let mut response = HttpResponse::build(StatusCode::CREATED);
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    response.insert_header((header::LOCATION, format!("{}/v1/assets/{}", app.base_url, record.id)));
    if ingested.replayed {
        response.insert_header((REPLAY, "true"));
    }
    Ok(response.json(body))
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let wrong = || ApiError::validation("Idempotency-Key: one, of 1 to 128 of A-Z a-z 0-9 . _ ~ -");
    let mut keys = headers.get_all("idempotency-key");
    let (Some(key), None) = (keys.next(), keys.next()) else {
        return if headers.contains_key("idempotency-key") { Err(wrong()) } else { Ok(None) };
    };
    let key = key.to_str().map_err(|_| wrong())?;
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._~-".contains(&b);
    if !(1..=128).contains(&key.len()) || !key.bytes().all(allowed) {
        return Err(wrong());
    }
    Ok(Some(key.to_owned()))
}

fn content_type(headers: &HeaderMap) -> Result<String, ApiError> {
    match headers.get(CONTENT_TYPE) {
        None => Ok(String::new()),
        Some(value) => {
            value.to_str().map(str::to_owned).map_err(|_| ApiError::validation("Content-Type: not a media type"))
        }
    }
}
