//! What a caller hears when something is refused: one closed JSON object, and the table from our errors to it.
//!
//! A body never holds a credential, a capability, a storage address or another tenant's id. What went wrong inside is for the log.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header;
use actix_web::{HttpResponse, ResponseError};
use mediakeep_storage::{HoldId, StorageError, Timestamp};
use serde_json::{Map, Value, json};
use tracing::error;

use crate::access::rate::TooMany;
use crate::access::{AuthError, Scope};
use crate::assets::AssetError;
use crate::assets::resumable::Refusal;

/// A refusal, ready to be sent.
#[derive(Debug, Clone)]
pub struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Map<String, Value>,
    retry_after: Option<u32>,
    headers: Vec<(&'static str, String)>,
}

/// How long a caller is asked to wait when a store is down or busy, in seconds.
const RETRY_AFTER: u32 = 2;

/// The same when a quota is used up: room comes when an asset ends or an upload stops, and a sweep looks for the former every minute.
const QUOTA_RETRY_AFTER: u32 = 60;

impl ApiError {
    /// A refusal with this status and code.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: Map::new(), retry_after: None, headers: Vec::new() }
    }

    /// 400: the request is not what it should be. The message names the member and never repeats its value.
    pub fn validation(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "validation_error", message)
    }

    /// 401: who is calling is not known.
    pub fn unauthenticated() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", "a valid credential is needed")
    }

    /// 403: the credential lacks a scope.
    pub fn scope(scope: Scope) -> Self {
        let message = format!("the credential lacks the scope {}", scope.name());
        Self::new(StatusCode::FORBIDDEN, "forbidden", message).with("scopeRequired", scope.name())
    }

    /// 403: the request names another tenant than the credential's.
    pub fn other_tenant() -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "the tenant comes from the credential alone")
    }

    /// 404: no such thing, or none for this caller; nobody can tell which.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "no such resource")
    }

    /// 413: more than `limit` bytes.
    pub fn too_large(limit: u64) -> Self {
        let message = format!("the limit is {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message).with("limit", limit)
    }

    /// 503: there is no room now for what would have to be held.
    pub fn busy() -> Self {
        let message = "too much is held in memory now; try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", message).retry_after(RETRY_AFTER)
    }

    /// 503: so much is being worked on that nothing more is begun.
    pub fn overloaded() -> Self {
        let message = "as much is being worked on as this process can; try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", message).retry_after(RETRY_AFTER)
    }

    /// The same with a member of `details`.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The same with `details.reason`.
    pub fn reason(self, reason: &str) -> Self {
        self.with("reason", reason)
    }

    /// The same with `Retry-After`.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The same with a header.
    pub fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The body.
    pub fn body(&self) -> Value {
        let mut body = json!({"error": self.code, "message": self.message});
        if !self.details.is_empty() {
            body["details"] = Value::Object(self.details.clone());
        }
        body
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.status.as_u16(), self.code, self.message)
    }
}

impl std::error::Error for ApiError {}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status);
        response.insert_header((header::CACHE_CONTROL, "no-store"));
        if let Some(seconds) = self.retry_after {
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        for (name, value) in &self.headers {
            response.insert_header((*name, value.as_str()));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        response.json(self.body())
    }
}

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Full { store } => {
                error!(store, "no space left for the {store}: writes are refused");
                Self::new(
                    StatusCode::INSUFFICIENT_STORAGE,
                    "insufficient_storage",
                    "there is no space left to store this",
                )
            }
            StorageError::Unavailable { store, reason } => {
                error!(store, reason, "the {store} is not available");
                let message = format!("the {store} is not available now");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", message).retry_after(RETRY_AFTER)
            }
            other => internal(&other),
        }
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        let refused = |code, message| Self::new(StatusCode::UNAUTHORIZED, code, message);
        match error {
            AuthError::Missing | AuthError::Invalid | AuthError::TokenExpired => Self::unauthenticated(),
            AuthError::KeyExpired => refused("key_expired", "this API key has expired"),
            AuthError::KeyRevoked => refused("key_revoked", "this API key was revoked"),
            AuthError::TenantSuspended => {
                Self::new(StatusCode::FORBIDDEN, "forbidden", "the tenant is suspended").reason("tenant_suspended")
            }
        }
    }
}

impl From<TooMany> for ApiError {
    fn from(too_many: TooMany) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too many requests")
            .reason("rate")
            .retry_after(too_many.retry_after)
    }
}

impl From<AssetError> for ApiError {
    fn from(error: AssetError) -> Self {
        let conflict = |code, message: &str| Self::new(StatusCode::CONFLICT, code, message);
        match error {
            AssetError::NotFound => Self::not_found(),
            AssetError::Unknown { positions } => Self::not_found().with("unknown", positions),
            AssetError::Empty => Self::validation("there are no bytes").reason("empty"),
            AssetError::TooLarge { limit } => Self::too_large(limit),
            AssetError::DigestMismatch { what } => {
                Self::validation(format!("{what} is not that of the bytes")).reason("digest_mismatch")
            }
            AssetError::Invalid(message) => Self::validation(message),
            AssetError::Refused { declared, detected } => {
                let message = format!("{detected} is not taken here");
                Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
                    .with("declared", declared)
                    .with("detected", detected)
            }
            AssetError::Overloaded => Self::overloaded(),
            AssetError::Busy => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "too many uploads of this tenant at a time")
                    .reason("rate")
                    .retry_after(RETRY_AFTER)
            }
            AssetError::OverQuota => {
                let message = "the tenant's quota leaves no room for this";
                Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message)
                    .reason("quota")
                    .retry_after(QUOTA_RETRY_AFTER)
            }
            AssetError::IdempotencyInFlight => {
                conflict("idempotency_in_flight", "a request with this key is still running").retry_after(RETRY_AFTER)
            }
            AssetError::IdempotencyMismatch => {
                conflict("idempotency_key_mismatch", "this key was used for another request")
            }
            AssetError::Stale => {
                Self::new(StatusCode::PRECONDITION_FAILED, "version_conflict", "it has changed since it was read")
            }
            AssetError::Protected { retain_until, because } => {
                conflict("retention_active", "something still needs this asset")
                    .with("retainUntil", time_or_null(retain_until))
                    .with("because", because)
            }
            AssetError::RunFloor { current } => {
                conflict("retention_floor", "the log is promised for longer").with("current", time_or_null(current))
            }
            AssetError::ForkOf { current } => {
                conflict("fork_of", "the run is a fork of another one").with("current", current.as_str())
            }
            AssetError::RunErased => conflict("run_erased", "the run was erased and takes nothing more"),
            AssetError::Held { holds } => {
                let holds: Vec<&str> = holds.iter().map(HoldId::as_str).collect();
                conflict("hold_active", "a hold keeps this").with("holds", holds)
            }
            AssetError::Gone(gone) => {
                let mut refusal = Self::new(StatusCode::GONE, "not_found", "this is over")
                    .reason(gone.reason())
                    .with("at", gone.at.to_string());
                if let Some(bytes) = gone.bytes() {
                    refusal = refusal
                        .with("sha256", bytes.sha256.to_string())
                        .with("bytes", bytes.bytes)
                        .with("mimeType", bytes.mime_type.clone());
                }
                refusal
            }
            AssetError::UrlExpired => {
                Self::new(StatusCode::GONE, "not_found", "this URL has expired").reason("url_expired")
            }
            AssetError::UrlUsed => {
                Self::new(StatusCode::GONE, "not_found", "this URL has been used").reason("url_used")
            }
            AssetError::Resumable(refusal) => refusal.into(),
            AssetError::Storage(error) => error.into(),
            AssetError::Internal(reason) => internal(&reason),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Locked => Self::new(StatusCode::LOCKED, "upload_locked", "another request writes this upload")
                .retry_after(RETRY_AFTER),
            Refusal::Offset { offset } => {
                Self::new(StatusCode::CONFLICT, "offset_mismatch", "the upload does not go on there")
                    .with("offset", offset)
            }
            Refusal::Checksum => {
                let status = StatusCode::from_u16(460).unwrap_or(StatusCode::BAD_REQUEST);
                Self::new(status, "checksum_mismatch", "Upload-Checksum is not that of the bytes: none were taken")
            }
            Refusal::Length => Self::validation("Upload-Length: the upload cannot have that length"),
            Refusal::Joined => {
                Self::new(StatusCode::FORBIDDEN, "forbidden", "an upload that is joined of others takes no bytes")
            }
            Refusal::NotAPiece { positions } => {
                Self::validation("Upload-Concat: not a partial upload").with("positions", positions)
            }
            Refusal::Unfinished { positions } => Self::validation("Upload-Concat: a partial upload is not finished")
                .reason("upload_unfinished")
                .with("positions", positions),
        }
    }
}

fn time_or_null(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| Value::from(at.to_string()))
}

/// 500: the log has the reason, the caller does not.
fn internal(reason: &dyn fmt::Display) -> ApiError {
    error!(reason = %reason, "internal error: {reason}");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "something went wrong here")
}
