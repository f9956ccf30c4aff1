//! The audit log, for an auditor of the tenant.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use mediakeep_storage::audit::{AuditKind, AuditRow};
use mediakeep_storage::{AssetId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::body::answer;
use super::extract::{self, AuditRead, Caller, parts};
use super::meta;
use super::paging::{List, limit};
use crate::assets::{AssetError, library};
use crate::audit::log;
use crate::audit::signed::{self, Signature};
use crate::error::ApiError;

/// A page of the log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    events: Vec<Event>,
    /// Where the next page begins; `null`: there is no more now. A page of a filtered log may be empty and still have a next one.
    next_cursor: Option<String>,
}

/// A row of the log, with its place in the chain.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AuditEvent)]
pub struct Event {
    /// Its place, from 1.
    seq: u64,
    /// When it happened.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// `ingest`, `amend`, `mint`, `revoke`, `read`, `denied`, `refer`, `artifact`, `hold`, `lift`, `floor`, `expire`, `erase`, `key` or
    /// `check`.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    kind: AuditKind,
    /// By whom: a key's id, an issuer and subject, or a part of the service.
    principal: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    asset_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url_id: Option<String>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<Value>,
    /// The hash of the row before it.
    previous: String,
    /// SHA-256 of the tenant, a line feed, and the RFC 8785 JSON of the row without this member.
    hash: String,
}

/// Where the tenant's chain stands, to be kept elsewhere: it tells later whether rows were cut off.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignedCheckpoint {
    /// Whose chain.
    tenant: String,
    /// Its last row; 0 if there is none.
    seq: u64,
    /// That row's hash; of no row, 64 zeros.
    hash: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Over the RFC 8785 JSON of the rest.
    signature: Signature,
}

/// What happened to the tenant's assets, oldest first.
#[utoipa::path(get, operation_id = "list_audit_events", path = "/v1/audit/events", tag = "audit",
    params(("since" = Option<u64>, Query), ("type" = Option<String>, Query), ("assetId" = Option<String>, Query), ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = EventPage)), security(("bearer" = ["audit:read"])))]
pub async fn events(caller: Caller<AuditRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let (app, tenant) = (parts(&request), &caller.principal.tenant);
    let found = extract::query(&request, &["since", "type", "assetId", "limit", "cursor"])?;
    let [since, kind, asset, raw_limit, raw_cursor] = <[_; 5]>::try_from(found).unwrap_or_default();
    let list = List::new(tenant, "audit");
    let since = since.map(|raw| raw.parse::<u64>()).transpose();
    let since = since.map_err(|_| ApiError::validation("since: the number of a row"))?;
    let kind = kind.map(|raw| kind_named(&raw)).transpose()?;
    let after = list.after(raw_cursor.as_deref(), |seq| seq.parse::<u64>().ok())?;
    let limit = limit(raw_limit.as_deref(), library::DEFAULT_PAGE, library::MAX_PAGE)?;
    let asset = match asset.map(|raw| AssetId::parse(&raw)) {
        // Nothing ever happens to what is no asset.
        Some(Err(_)) => return Ok(answer(StatusCode::OK, &EventPage { events: Vec::new(), next_cursor: None })),
        asset => asset.and_then(Result::ok),
    };
    let query = log::Query { since: after.max(since).unwrap_or(0), kind, asset, limit };
    let page = log::page(&app, tenant, &query).await?;
    let next_cursor = page.next.map(|seq| list.cursor(&seq.to_string()));
    Ok(answer(StatusCode::OK, &EventPage { events: page.rows.into_iter().map(Event::from).collect(), next_cursor }))
}

/// Where the tenant's chain stands, signed.
#[utoipa::path(get, operation_id = "show_audit_checkpoint", path = "/v1/audit/checkpoint", tag = "audit",
    responses((status = 200, body = SignedCheckpoint)), security(("bearer" = ["audit:read"])))]
pub async fn checkpoint(caller: Caller<AuditRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    extract::query(&request, &[])?;
    let app = parts(&request);
    let checkpoint = log::checkpoint(&app, &caller.principal.tenant).await?;
    let signed = signed::signed(&app.live().ring, &checkpoint);
    Ok(answer(StatusCode::OK, &signed.map_err(|error| AssetError::Internal(error.to_string()))?))
}

/// The public keys of manifests, checkpoints and isolation reports, as a JWK Set.
#[utoipa::path(get, operation_id = "audit_keys", path = "/.well-known/mediakeep-audit-keys", tag = "audit",
    responses((status = 200, description = "A JWK Set (RFC 7517) of Ed25519 keys (RFC 8037)", body = Object, content_type = "application/json"), (status = 304, description = "Unchanged")), security(()))]
pub async fn keys(request: HttpRequest) -> HttpResponse {
    meta::cacheable(&request, "application/json", &signed::jwks(&parts(&request).live().ring))
}

/// The type of that name.
fn kind_named(raw: &str) -> Result<AuditKind, ApiError> {
    AuditKind::deserialize(json!(raw)).map_err(|_| ApiError::validation("type: none of the log's types"))
}

impl From<AuditRow> for Event {
    fn from(row: AuditRow) -> Self {
        let AuditRow { seq, event, previous, hash } = row;
        Self {
            seq,
            at: event.at,
            kind: event.kind,
            principal: event.principal,
            asset_id: event.asset_id.map(|id| id.to_string()),
            run_id: event.run_id.map(|id| id.to_string()),
            url_id: event.url_id,
            details: event.details,
            previous: previous.to_string(),
            hash: hash.to_string(),
        }
    }
}
