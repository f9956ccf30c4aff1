//! What anybody may ask: what the service is, whether it is well, and the schemas of what it makes.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse};
use data_encoding::HEXLOWER;
use ring::digest;
use serde_json::{Value, json};

use super::body::answer;
use super::conditional::{self, Conditions, EntityTag, Outcome, Validators};
use super::extract::parts;
use crate::app::gate::Lane;
use crate::error::ApiError;
use crate::openwop::{discovery, schemas};

/// The discovery document.
#[utoipa::path(get, path = "/.well-known/openwop", tag = "discovery", responses((status = 200, description = "What this service is", body = Object, content_type = "application/json"), (status = 304, description = "Unchanged")), security(()))]
pub async fn discovery(request: HttpRequest) -> HttpResponse {
    cacheable(&request, "application/json", &discovery::document(&parts(&request).settings))
}

/// The JSON Schema of an envelope's payload.
#[utoipa::path(get, path = "/schemas/envelopes/{kind}.schema.json", tag = "discovery", params(("kind" = String, Path, description = "media.image, media.audio or media.file")),
    responses((status = 200, description = "A JSON Schema", body = Object, content_type = "application/schema+json"), (status = 304, description = "Unchanged"), (status = 404, body = super::openapi::ErrorBody, description = "No such schema")), security(()))]
pub async fn schema(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let kind = request.match_info().query("kind");
    let schema = schemas::payload_schema(kind, &parts(&request).base_url).ok_or_else(ApiError::not_found)?;
    Ok(cacheable(&request, "application/schema+json", &schema))
}

/// Whether the process answers.
#[utoipa::path(get, path = "/healthz", tag = "operating", responses((status = 200, description = "It does")), security(()))]
pub async fn healthz() -> HttpResponse {
    answer(StatusCode::OK, &json!({"status": "ok"}))
}

/// Whether index and store answer.
#[utoipa::path(get, path = "/readyz", tag = "operating", responses((status = 200, description = "They do"), (status = 503, body = super::openapi::ErrorBody, description = "`details.reason` says which does not: `index` or `store`")), security(()))]
pub async fn readyz(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    match parts(&request).ready().await {
        Ok(()) => Ok(answer(StatusCode::OK, &json!({"status": "ready"}))),
        Err(store) => {
            let said = format!("the {store} does not answer");
            let down = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", said);
            Err(down.reason(store).retry_after(2))
        }
    }
}

/// The counters; on the operator's own address alone.
pub async fn metrics(request: HttpRequest) -> HttpResponse {
    let app = parts(&request);
    app.metrics.index_retried(app.index_retries());
    app.metrics.aborts_unconfirmed(app.blobs.unconfirmed_aborts());
    for (name, lane) in [("upload", Lane::Upload), ("body", Lane::Body), ("read", Lane::Read)] {
        app.metrics.under_way(name, app.gate.taken(lane));
    }
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
        .body(app.metrics.text())
}

/// A document that everybody may keep for five minutes.
pub fn cacheable(request: &HttpRequest, content_type: &str, document: &Value) -> HttpResponse {
    let text = document.to_string();
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    let tag = format!("\"{}\"", HEXLOWER.encode(&hash.as_ref()[..16]));
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CACHE_CONTROL, "public, max-age=300")).insert_header((header::ETAG, tag.as_str()));
    let conditions = Conditions {
        if_none_match: request.headers().get_all(header::IF_NONE_MATCH).map(header::HeaderValue::as_bytes).collect(),
        ..Conditions::default()
    };
    let etag = EntityTag::parse(tag.as_bytes());
    let same = etag.is_some_and(|etag| {
        let resource = Validators { etag, last_modified: None };
        conditional::evaluate(&conditions, &resource, conditional::Method::Retrieve) == Outcome::NotModified
    });
    if same {
        return response.status(StatusCode::NOT_MODIFIED).finish();
    }
    response.insert_header((header::CONTENT_TYPE, content_type)).body(text)
}
