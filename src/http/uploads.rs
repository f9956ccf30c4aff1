//! Uploads in parts: tus 1.0.0 with creation, creation-with-upload, creation-defer-length, checksum, termination, expiration and
//! concatenation.
//!
//! What is looked at in which order: who is calling, the protocol's version (412), what the headers say (400, 415), whether there is such
//! an upload (404), whether somebody else writes it (423), whether it goes on there (409). A request without `Tus-Resumable` speaks no
//! version: only OPTIONS may. Foreign, unknown and expired uploads are one 404.

use std::sync::Arc;

use actix_web::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};
use mediakeep_storage::UploadId;
use mediakeep_storage::resumable::{Purpose, Resumable};

use self::headers::{must_be_octets, number, right_version, wish};
use self::receive::{Sent, append_to, join};
use super::body::{is_absent, uncoded};
use super::conditional::http_date;
use super::extract::{AssetsWrite, Caller, parts, upload_id};
use crate::access::Principal;
use crate::app::App;
use crate::assets::AssetError;
use crate::assets::resumable::{self, Held, Refusal, Said, Unheard};
use crate::error::ApiError;

mod checksum;
mod concat;
mod headers;
mod receive;

/// The version of the protocol.
const VERSION: &str = "1.0.0";

/// What of it there is beside its core.
const EXTENSIONS: &str =
    "creation,creation-with-upload,creation-defer-length,checksum,termination,expiration,concatenation";

/// The bytes of an upload.
const OCTETS: &str = "application/offset+octet-stream";

/// Names the asset that was made of an upload.
const ASSET: &str = "mediakeep-asset-id";

/// Says which version every answer of these routes speaks.
pub fn say_version(route: &str, headers: &mut HeaderMap) {
    if route.starts_with("/v1/uploads") {
        headers.insert(HeaderName::from_static("tus-resumable"), HeaderValue::from_static(VERSION));
    }
}

/// What of tus there is.
#[utoipa::path(
    options,
    path = "/v1/uploads",
    operation_id = "upload_options",
    tag = "uploads",
    responses((status = 204, description = "`Tus-Version`, `Tus-Extension`, `Tus-Max-Size` and `Tus-Checksum-Algorithm` say it.")),
    security(("bearer" = ["assets:write"]))
)]
pub async fn options(_: Caller<AssetsWrite>, request: HttpRequest) -> HttpResponse {
    let most = parts(&request).settings.limits.max_upload_bytes.0;
    HttpResponse::NoContent()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header(("tus-version", VERSION))
        .insert_header(("tus-extension", EXTENSIONS))
        .insert_header(("tus-max-size", most.to_string()))
        .insert_header(("tus-checksum-algorithm", checksum::ALGORITHMS))
        .finish()
}

/// Begins an upload in parts; bytes may come along.
#[utoipa::path(
    post,
    path = "/v1/uploads",
    operation_id = "create_upload",
    tag = "uploads",
    params(
        ("Tus-Resumable" = String, Header), ("Upload-Length" = Option<String>, Header),
        ("Upload-Defer-Length" = Option<String>, Header), ("Upload-Metadata" = Option<String>, Header),
        ("Upload-Concat" = Option<String>, Header), ("Upload-Checksum" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    request_body(content((Vec<u8> = "application/offset+octet-stream"))),
    responses(
        (status = 201, description = "`Location` is the upload's URL, `Upload-Expires` when it ends by itself; `Upload-Offset` how many bytes it has, and `Mediakeep-Asset-Id` what was made of it, if bytes came along or it is joined of others."),
        (status = "4XX", body = super::openapi::ErrorBody),
    ),
    security(("bearer" = ["assets:write"]))
)]
pub async fn create(
    caller: Caller<AssetsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    right_version(&request)?;
    uncoded(&request)?;
    let app = parts(&request);
    let with_bytes = !is_absent(&request);
    if with_bytes {
        must_be_octets(&request)?;
    }
    let sent = with_bytes.then(|| Sent::of(&request, payload)).transpose()?;
    let wish = wish(&app, request.headers())?;
    if with_bytes && matches!(wish.purpose, Purpose::Joined(_)) {
        return Err(AssetError::from(Refusal::Joined).into());
    }
    let mut upload = resumable::create(&app, &caller.principal, wish).await?;
    let joined = !upload.pieces().is_empty();
    let id = upload.id;
    // Until it is told where its upload is, its sender can only begin another.
    let unheard = Unheard::of(&app, &caller.principal.tenant, id);
    let made = match sent {
        Some(sent) => append_to(&app, &caller.principal, id, Some(0), sent).await.map(Some),
        None if joined => joined_now(&app, &caller.principal, id).await.map(Some),
        None => Ok(None),
    };
    match made {
        Ok(made) => upload = made.unwrap_or(upload),
        Err(refusal) => {
            unheard.end().await;
            return Err(refusal);
        }
    }
    unheard.is_heard();
    let mut response = HttpResponse::Created();
    response.insert_header((header::LOCATION, format!("{}/v1/uploads/{id}", app.base_url)));
    if with_bytes || joined {
        response.insert_header(("upload-offset", upload.offset.to_string()));
    }
    tell(&mut response, &upload);
    Ok(response.finish())
}

async fn joined_now(app: &Arc<App>, principal: &Principal, id: UploadId) -> Result<Resumable, ApiError> {
    let held = Held::take(app, &principal.tenant, id).await?;
    join(app, principal, held).await
}

/// How far an upload is.
#[utoipa::path(
    head,
    path = "/v1/uploads/{uploadId}",
    operation_id = "upload",
    tag = "uploads",
    params(("uploadId" = String, Path), ("Tus-Resumable" = String, Header)),
    responses((status = 200, description = "`Upload-Offset`, `Upload-Length` or `Upload-Defer-Length`, `Upload-Metadata`, `Upload-Concat`, `Upload-Expires`, and `Mediakeep-Asset-Id` once it is finished.")),
    security(("bearer" = ["assets:write"]))
)]
pub async fn show(caller: Caller<AssetsWrite>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    right_version(&request)?;
    look(&caller.principal, &request).await
}

async fn look(principal: &Principal, request: &HttpRequest) -> Result<HttpResponse, ApiError> {
    let (app, id) = (parts(request), upload_id(request)?);
    let mut upload = resumable::find(&app, &principal.tenant, id).await?.ok_or(AssetError::NotFound)?;
    // All of its bytes are there, and whoever brought the last of them was cut off before they were an asset.
    if upload.is_complete() && upload.purpose != Purpose::Piece {
        let held = Held::take(&app, &principal.tenant, id).await?;
        upload = join(&app, principal, held).await?;
    }
    let mut response = HttpResponse::Ok();
    response.insert_header(("upload-offset", upload.offset.to_string()));
    match upload.length {
        Some(length) => response.insert_header(("upload-length", length.to_string())),
        None => response.insert_header(("upload-defer-length", "1")),
    };
    let said = Said::of(&upload.said);
    for (name, value) in [("upload-metadata", said.metadata), ("upload-concat", said.concat)] {
        if let Some(value) = value {
            response.insert_header((name, value));
        }
    }
    tell(&mut response, &upload);
    Ok(response.finish())
}

/// Brings the next bytes; the last of them make the asset.
#[utoipa::path(
    patch,
    path = "/v1/uploads/{uploadId}",
    operation_id = "append_to_upload",
    tag = "uploads",
    params(
        ("uploadId" = String, Path), ("Tus-Resumable" = String, Header), ("Upload-Offset" = String, Header),
        ("Upload-Length" = Option<String>, Header), ("Upload-Checksum" = Option<String>, Header),
    ),
    request_body(content((Vec<u8> = "application/offset+octet-stream"))),
    responses(
        (status = 204, description = "`Upload-Offset` is where the next bytes begin, `Mediakeep-Asset-Id` what was made of the upload if it is finished."),
        (status = 409, description = "The upload does not go on there: `offset_mismatch`, with `details.offset`. Or the run was erased: `run_erased`.", body = super::openapi::ErrorBody),
        (status = 423, description = "Another request writes it: `upload_locked`.", body = super::openapi::ErrorBody),
        (status = 460, description = "The bytes have another digest, and none were taken: `checksum_mismatch`.", body = super::openapi::ErrorBody),
        (status = "4XX", body = super::openapi::ErrorBody),
    ),
    security(("bearer" = ["assets:write"]))
)]
pub async fn append(
    caller: Caller<AssetsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    right_version(&request)?;
    patch(&caller.principal, &request, payload).await
}

async fn patch(principal: &Principal, request: &HttpRequest, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    must_be_octets(request)?;
    uncoded(request)?;
    let offset = number(request.headers(), "upload-offset")?;
    let offset = offset.ok_or_else(|| ApiError::validation("Upload-Offset: is needed"))?;
    let sent = Sent::of(request, payload)?;
    let upload = append_to(&parts(request), principal, upload_id(request)?, Some(offset), sent).await?;
    let mut response = HttpResponse::NoContent();
    response.insert_header(("upload-offset", upload.offset.to_string()));
    tell(&mut response, &upload);
    Ok(response.finish())
}

/// Gives an upload up; what was made of a finished one stays.
#[utoipa::path(
    delete,
    path = "/v1/uploads/{uploadId}",
    operation_id = "end_upload",
    tag = "uploads",
    params(("uploadId" = String, Path), ("Tus-Resumable" = String, Header)),
    responses(
        (status = 204, description = "It is gone."),
        (status = 423, description = "Another request writes it: `upload_locked`.", body = super::openapi::ErrorBody),
    ),
    security(("bearer" = ["assets:write"]))
)]
pub async fn end(caller: Caller<AssetsWrite>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    right_version(&request)?;
    terminate(&caller.principal, &request).await
}

async fn terminate(principal: &Principal, request: &HttpRequest) -> Result<HttpResponse, ApiError> {
    let held = Held::take(&parts(request), &principal.tenant, upload_id(request)?).await?;
    held.end().await?;
    Ok(HttpResponse::NoContent().insert_header((header::CACHE_CONTROL, "no-store")).finish())
}

/// PATCH, DELETE or HEAD, for clients that cannot say so.
#[utoipa::path(
    post,
    path = "/v1/uploads/{uploadId}",
    operation_id = "override_upload_method",
    tag = "uploads",
    params(
        ("uploadId" = String, Path), ("X-HTTP-Method-Override" = String, Header), ("Tus-Resumable" = String, Header),
        ("Upload-Offset" = Option<String>, Header), ("Upload-Length" = Option<String>, Header), ("Upload-Checksum" = Option<String>, Header),
    ),
    request_body(content((Vec<u8> = "application/offset+octet-stream"))),
    responses(
        (status = 204, description = "What PATCH or DELETE answers."),
        (status = 200, description = "What HEAD answers."),
        (status = 405, description = "The header names no such method.", body = super::openapi::ErrorBody),
        (status = 409, description = "What PATCH answers.", body = super::openapi::ErrorBody),
        (status = 423, description = "Another request writes it: `upload_locked`.", body = super::openapi::ErrorBody),
    ),
    security(("bearer" = ["assets:write"]))
)]
pub async fn overridden(
    caller: Caller<AssetsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    right_version(&request)?;
    let meant = request.headers().get("x-http-method-override").map(HeaderValue::as_bytes).map(Method::from_bytes);
    match meant {
        None => Err(ApiError::validation("X-HTTP-Method-Override: is needed")),
        Some(Ok(Method::PATCH)) => patch(&caller.principal, &request, payload).await,
        Some(Ok(Method::DELETE)) => terminate(&caller.principal, &request).await,
        Some(Ok(Method::HEAD)) => look(&caller.principal, &request).await,
        _ => {
            let message = "X-HTTP-Method-Override: PATCH, DELETE or HEAD";
            let refusal = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
            Err(refusal.header("allow", "PATCH, DELETE, HEAD, POST".to_owned()))
        }
    }
}

/// What every answer of an upload says.
fn tell(response: &mut HttpResponseBuilder, upload: &Resumable) {
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    response.insert_header(("upload-expires", http_date(upload.expires_at)));
    if let Some(asset) = upload.asset() {
        response.insert_header((ASSET, asset.to_string()));
    }
}
