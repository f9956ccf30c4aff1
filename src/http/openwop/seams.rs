//! The seams of the public conformance suite, below `/v1/host/sample/`.
//!
//! They are not there unless `conformance.seams` says so, and then only for credentials of `conformance.tenant`: anybody else hears the 404 of
//! a route that does not exist, and who has no credential the 401 of one that does. What they store is stored as everything else is; each asks
//! for the scope that the ordinary route asks for. They are no part of the contract, so the OpenAPI document does not have them.
//!
//! Bodies may hold members that nobody knows. What a seam reads into memory is bounded by `limits.max_json_bytes`.

use std::sync::Arc;

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::access::{Principal, Scope};
use crate::app::App;
use crate::assets::members::RawMembers;
use crate::assets::urls;
use crate::error::ApiError;
use crate::http::body::{answer, open_object, typed};
use crate::http::extract::{self, allowed, parts};
use crate::http::serve;
use crate::http::upload::base64::Decoder;
use crate::openwop::seams::{self as objects, NoObject};

mod blob;
mod fetch;
mod model;

/// A request to a seam, of somebody who may use it.
struct Seam {
    app: Arc<App>,
    request: HttpRequest,
    caller: Principal,
}

/// Answers whatever is asked below the prefix.
pub async fn answer_seam(request: HttpRequest, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    let app = parts(&request);
    if !app.settings.conformance.seams {
        return Err(ApiError::not_found());
    }
    let caller = extract::admitted(&request)?;
    if caller.tenant.as_str() != app.settings.conformance.tenant {
        return Err(ApiError::not_found());
    }
    let path = request.match_info().unprocessed().to_owned();
    let seam = Seam { app, request, caller };
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let reads = matches!(*seam.request.method(), Method::GET | Method::HEAD);
    let posts = seam.request.method() == Method::POST;
    match segments.as_slice() {
        ["media", "put"] if posts => seam.put_media(payload).await,
        ["assets", token] if reads => seam.asset(token).await,
        ["test", "surface"] if posts => blob::surface(&seam, payload).await,
        ["blob", token] if reads => seam.blob(token).await,
        ["ai", "call"] if posts => model::call(&seam, payload).await,
        ["http", "safe-fetch"] if posts => fetch::fetch(&seam, payload).await,
        ["test", "evaluate-model-capability-gate"] if posts => model::evaluate(&seam, payload).await,
        _ => Err(ApiError::not_found()),
    }
}

/// Media to be stored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PutMedia {
    content_base64: String,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

impl Seam {
    async fn put_media(&self, payload: web::Payload) -> Result<HttpResponse, ApiError> {
        self.needs(Scope::AssetsWrite)?;
        let body: PutMedia = typed(Value::Object(self.body(payload).await?))?;
        let bytes = decoded("contentBase64", &body.content_base64)?;
        let members = RawMembers { mime_type: body.content_type, name: body.name, ..RawMembers::default() };
        let view = objects::store(&self.app, &self.caller, bytes, members.check()?).await?;
        let url = urls::durable_url(&self.app, &view)?;
        let url = self.url("assets", url.rsplit('/').next().unwrap_or_default());
        let told = json!({"url": url, "bytes": view.record.bytes, "expiresAt": view.floor.until.instant()});
        Ok(answer(StatusCode::CREATED, &told))
    }

    /// What a capability opens, as on its own route; but here it takes a credential as well.
    async fn asset(&self, token: &str) -> Result<HttpResponse, ApiError> {
        self.needs(Scope::AssetsRead)?;
        serve::by_token(&self.request, token, Some(&self.caller)).await
    }

    /// The object that a presigned link leads to.
    async fn blob(&self, token: &str) -> Result<HttpResponse, ApiError> {
        self.needs(Scope::AssetsRead)?;
        match objects::open(&self.app, &self.caller.tenant, token).await {
            Ok(asset) => serve::of_asset(&self.request, &self.caller, asset).await,
            Err(NoObject::Expired) => {
                let message = "the link is past its time";
                Err(ApiError::new(StatusCode::FORBIDDEN, "blob_presign_expired", message))
            }
            Err(NoObject::Unknown) => Err(ApiError::not_found()),
            Err(NoObject::Failed(error)) => Err(error.into()),
        }
    }

    fn needs(&self, scope: Scope) -> Result<(), ApiError> {
        allowed(&self.request, &self.caller, scope)
    }

    /// The body of a seam that takes no tenant: one that names another is refused.
    async fn body(&self, payload: web::Payload) -> Result<Map<String, Value>, ApiError> {
        let body = self.open_body(payload).await?;
        let own = self.caller.tenant.as_str();
        let names_other = |name| body.get(name).is_some_and(|named| !named.is_null() && named.as_str() != Some(own));
        match names_other("tenant") || names_other("tenantId") {
            true => Err(ApiError::other_tenant()),
            false => Ok(body),
        }
    }

    async fn open_body(&self, payload: web::Payload) -> Result<Map<String, Value>, ApiError> {
        let most = usize::try_from(self.app.settings.limits.max_json_bytes.0).unwrap_or(usize::MAX);
        open_object(&self.request, payload, most).await
    }

    fn url(&self, noun: &str, token: &str) -> String {
        format!("{}/v1/host/sample/{noun}/{token}", self.app.base_url)
    }
}

/// The bytes of a base64 string.
fn decoded(member: &str, text: &str) -> Result<Bytes, ApiError> {
    let (mut decoder, mut bytes) = (Decoder::new(), BytesMut::new());
    let done = decoder.push(text.as_bytes(), &mut bytes).and_then(|()| decoder.finish(&mut bytes));
    done.map_err(|bad| {
        ApiError::validation(format!("{member}: character {} does not belong there", bad.offset))
            .reason("invalid_base64")
            .with("offset", bad.offset)
    })?;
    Ok(bytes.freeze())
}
