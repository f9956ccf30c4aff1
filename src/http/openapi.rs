//! The OpenAPI document, made from the handlers' own annotations.

use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoParams, Modify, OpenApi, ToSchema};

mod shared;

use super::openwop::{formats, host, model, projections};
use super::{
    artifacts, assets, audit, bundles, content, isolation, manifest, meta, retention, revocation, runs, serve, upload,
    uploads, urls, usage,
};
use crate::audit::isolation::Report;
use crate::audit::signed::Signature;
use crate::projection;

/// Every refusal.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody {
    /// A code for programs.
    error: String,
    /// A sentence for people.
    message: String,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<Map<String, Value>>,
}

/// An inline ingest. The bytes may also stand under `contentBase64`, `data` or `dataBase64`, or be a `data:` URL.
#[derive(Debug, Serialize, ToSchema)]
pub struct InlineBody {
    /// The bytes.
    base64: Option<String>,
    /// Instead of bytes: where they are fetched from, if the operator allows it.
    url: Option<String>,
    #[serde(flatten)]
    members: IngestMembers,
}

/// The same as a form: `file` holds the bytes, and each member is a part of text.
#[derive(Debug, Serialize, ToSchema)]
pub struct MultipartBody {
    /// The bytes.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    #[serde(flatten)]
    members: IngestMembers,
}

/// What a host says of the bytes. A raw upload has the same in its query.
#[derive(Debug, Serialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct IngestMembers {
    /// What they are said to be.
    mime_type: Option<String>,
    /// A file name of at most 255 bytes.
    name: Option<String>,
    /// Alternative text of at most 1024 characters.
    alt: Option<String>,
    /// A caption of at most 256 characters.
    title: Option<String>,
    /// The node that emitted them.
    node_id: Option<String>,
    /// The envelope that will carry them.
    envelope_id: Option<String>,
    /// That envelope's correlation.
    correlation_id: Option<String>,
    /// `ai-generation`, `user` or `system`.
    source: Option<String>,
    /// The digest that the bytes must have, in hex.
    sha256: Option<String>,
    /// Until when to keep them, whatever becomes of the run.
    #[schema(format = DateTime)]
    retain_until: Option<String>,
    /// `auto`: the envelope carries small bytes itself; `url`: never.
    delivery: Option<String>,
}

/// A manifest with its signature.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignedManifest {
    /// The page.
    #[serde(flatten)]
    manifest: projection::manifest::Manifest,
    /// Over the RFC 8785 JSON of the rest.
    signature: Signature,
}

/// What an isolation check found, with its signature.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignedReport {
    /// What was found.
    #[serde(flatten)]
    report: Report,
    /// Over the RFC 8785 JSON of the rest.
    signature: Signature,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "mediakeep", description = "Keeps a run log's media: typed, tenant-scoped, and alive exactly as long as the log that quotes it.\n\nWhatever answers GET answers HEAD. Every refusal is the same closed object, also for unknown routes (404) and methods (405). A route's security names the scope that it needs; a credential without it hears 403, whatever exists.", license(name = "Apache-2.0", identifier = "Apache-2.0")),
    paths(
        upload::ingest_into_run, upload::ingest,
        uploads::create, uploads::options, uploads::show, uploads::append, uploads::end, uploads::overridden,
        assets::list, assets::show, assets::amend, assets::delete, assets::list_of_run,
        serve::bound, serve::capability, serve::preflight,
        urls::mint, urls::mint_batch, revocation::revoke, revocation::introspect,
        runs::list, runs::put, runs::show, runs::refer,
        retention::show, retention::preview, retention::hold_asset, retention::lift_asset,
        retention::hold_run, retention::lift_run, retention::erase_run, artifacts::put, artifacts::show,
        manifest::show, usage::show, bundles::scrub, bundles::check, bundles::resolve, content::normalize,
        projections::show, host::fragment, formats::list, formats::show, model::evaluate, model::lint,
        audit::events, audit::checkpoint, audit::keys, isolation::check,
        meta::discovery, meta::schema, show, meta::healthz, meta::readyz,
    ),
    modifiers(&Bearer)
)]
struct Document;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key, or a JWT of a configured issuer. Scopes are named at each route."))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// The document.
pub fn document() -> Value {
    let mut document = serde_json::to_value(Document::openapi()).unwrap_or(Value::Null);
    shared::complete(&mut document);
    document
}

/// This document.
#[utoipa::path(get, operation_id = "openapi", path = "/v1/openapi.json", tag = "discovery", responses((status = 200, description = "OpenAPI 3.1")), security(()))]
pub async fn show(request: HttpRequest) -> HttpResponse {
    meta::cacheable(&request, "application/json", &document())
}
