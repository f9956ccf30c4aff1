//! Bytes on their way out, on both routes: conditions, ranges and the headers that keep a browser from doing more than showing them.
//!
//! Access is decided before any condition is looked at: a URL that is revoked never answers 304.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use mediakeep_keys::{Class, Disposition};
use mediakeep_storage::AssetId;

use super::conditional::{self, Outcome};
use super::range::{self, Plan};
use super::{extract, redirect};
use crate::access::{Principal, Scope};
use crate::app::App;
use crate::artifacts;
use crate::assets::cache::CachedRow;
use crate::assets::capability::Capability;
use crate::assets::fetch;
use crate::audit;
use crate::error::ApiError;

mod asked;
mod body;

pub(super) use asked::{conditions, validators, wanted_range};
use body::{Headless, begin, body, several};

/// The longest that a browser may keep the bytes of a durable URL without asking again, in seconds.
const MAX_AGE: i64 = 300;

/// The bytes of the asset that a capability names. The token is the credential.
#[utoipa::path(
    get,
    operation_id = "capability",
    path = "/a/{capability}",
    tag = "delivery",
    params(
        ("capability" = String, Path),
        ("Range" = Option<String>, Header),
        ("If-Range" = Option<String>, Header),
        ("If-None-Match" = Option<String>, Header),
        ("If-Modified-Since" = Option<String>, Header),
        ("If-Match" = Option<String>, Header),
        ("If-Unmodified-Since" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The bytes"),
        (status = 206, description = "Ranges of them: one as it is, several as `multipart/byteranges`"),
        (status = 302, description = "With `delivery.redirect`: passive media are at the store, for a minute at most", headers(("Location" = String))),
        (status = 304, description = "Unchanged"),
        (status = 404, body = super::openapi::ErrorBody, description = "One answer for whatever opens nothing: malformed, forged, unknown, foreign, revoked"),
        (status = 410, body = super::openapi::ErrorBody, description = "Authentic, but over: `details.reason` is `url_expired`, `url_used`, `asset_expired` or `asset_erased`"),
        (status = 412, body = super::openapi::ErrorBody, description = "`version_conflict`: other bytes than the client takes them for"),
        (status = 416, body = super::openapi::ErrorBody, description = "`details.reason` is `range_not_satisfiable`; `Content-Range` has the length", headers(("Content-Range" = String))),
    ),
    security(())
)]
pub async fn capability(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let caller = extract::authenticated(&request).ok();
    let app = extract::parts(&request);
    let opened = open(&app, &request, token(&request), caller.as_ref()).await?;
    let grant = Grant::of(&app, &opened, caller.as_ref());
    if let Some(elsewhere) = redirect::to_store(&app, &request, &grant).await? {
        return Ok(elsewhere);
    }
    respond(&app, &request, grant).await
}

/// The bytes that a capability opens, for whoever shows it; from here, always.
pub(super) async fn by_token(
    request: &HttpRequest,
    token: &str,
    caller: Option<&Principal>,
) -> Result<HttpResponse, ApiError> {
    let app = extract::parts(request);
    let opened = open(&app, request, token, caller).await?;
    respond(&app, request, Grant::of(&app, &opened, caller)).await
}

async fn open(
    app: &App,
    request: &HttpRequest,
    token: &str,
    caller: Option<&Principal>,
) -> Result<fetch::Opened, ApiError> {
    fetch::open_capability(app, token, caller).await.map_err(|closed| {
        if let Some((token, reason)) = closed.denied {
            extract::deny(request, |denials| denials.capability(&token, caller, reason));
        }
        closed.error.into()
    })
}

/// The bytes of an asset, for a credential of its tenant. With `artifacts:read` alone, of an asset that an artifact names; any other is
/// as if it were not there.
#[utoipa::path(
    get,
    operation_id = "content",
    path = "/v1/assets/{assetId}/content",
    tag = "delivery",
    params(
        ("assetId" = String, Path),
        ("Range" = Option<String>, Header),
        ("If-Range" = Option<String>, Header),
        ("If-None-Match" = Option<String>, Header),
        ("If-Modified-Since" = Option<String>, Header),
        ("If-Match" = Option<String>, Header),
        ("If-Unmodified-Since" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The bytes"),
        (status = 206, description = "Ranges of them: one as it is, several as `multipart/byteranges`"),
        (status = 304, description = "Unchanged"),
        (status = 410, body = super::openapi::ErrorBody, description = "It is over: `details.reason` is `asset_expired` or `asset_erased`"),
        (status = 412, body = super::openapi::ErrorBody, description = "`version_conflict`: other bytes than the client takes them for"),
        (status = 416, body = super::openapi::ErrorBody, description = "`details.reason` is `range_not_satisfiable`; `Content-Range` has the length", headers(("Content-Range" = String))),
    ),
    security(("bearer" = ["assets:read"]), ("bearer" = ["artifacts:read"]))
)]
pub async fn bound(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let caller = extract::admitted(&request)?;
    if caller.scopes.has(Scope::AssetsRead) || !caller.scopes.has(Scope::ArtifactsRead) {
        extract::allowed(&request, &caller, Scope::AssetsRead)?;
        return of_asset(&request, &caller, extract::asset_id(&request)?).await;
    }
    let asset = extract::asset_id(&request)?;
    artifacts::must_name(&extract::parts(&request), &caller.tenant, asset).await?;
    of_asset(&request, &caller, asset).await
}

/// The bytes of an asset of the caller's tenant.
pub(super) async fn of_asset(
    request: &HttpRequest,
    caller: &Principal,
    asset: AssetId,
) -> Result<HttpResponse, ApiError> {
    let app = extract::parts(request);
    let row = fetch::open_bound(&app, &caller.tenant, asset).await?;
    let reader = audit::Reader { caller: Some(caller), claims: None };
    let cache_control = HeaderValue::from_static("no-store");
    respond(&app, request, Grant { row: &row, capability: None, reader, cache_control, wish: None }).await
}

/// What a browser asks before it asks: answered without a look at the token.
#[utoipa::path(
    options,
    operation_id = "preflight",
    path = "/a/{capability}",
    tag = "delivery",
    params(("capability" = String, Path)),
    responses(
        (status = 204, description = "What a page of any origin may send", headers(("Access-Control-Allow-Methods" = String), ("Access-Control-Allow-Headers" = String), ("Access-Control-Max-Age" = String))),
    ),
    security(())
)]
pub async fn preflight() -> HttpResponse {
    HttpResponse::NoContent()
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, "Range, If-Range, If-None-Match, If-Modified-Since"))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, "86400"))
        .finish()
}

/// Lets a page of any origin read whatever the capability route answers, refusals too: the token is all there is to know.
pub async fn for_every_page(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let mut response = next.call(request).await?;
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            "Accept-Ranges, Content-Range, Content-Length, Content-Disposition, ETag, Repr-Digest",
        ),
        (CROSS_ORIGIN_RESOURCE_POLICY, "cross-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// The first segment behind the route's prefix; what follows it is a name for people.
fn token(request: &HttpRequest) -> &str {
    request.match_info().unprocessed().split('/').nth(1).unwrap_or_default()
}

/// What a request that may have the bytes is given, and how.
pub(super) struct Grant<'a> {
    pub(super) row: &'a CachedRow,
    /// What opened it, if it was no credential.
    pub(super) capability: Option<&'a Capability>,
    pub(super) reader: audit::Reader<'a>,
    pub(super) cache_control: HeaderValue,
    pub(super) wish: Option<Disposition>,
}

impl<'a> Grant<'a> {
    /// What a capability gives.
    fn of(app: &App, opened: &'a fetch::Opened, caller: Option<&'a Principal>) -> Self {
        let (row, capability) = (&*opened.row, &*opened.capability);
        let (cache_control, wish) = match &capability.claims.class {
            Class::Durable => (durable_caching(app, row), None),
            Class::Delivery { disposition, counted: true, .. } => (HeaderValue::from_static("no-store"), *disposition),
            Class::Delivery { disposition, .. } => {
                (HeaderValue::from_static("private, max-age=0, must-revalidate"), *disposition)
            }
        };
        let reader = audit::Reader { caller, claims: Some(&capability.claims) };
        Self { row, capability: Some(capability), reader, cache_control, wish }
    }
}

async fn respond(app: &App, request: &HttpRequest, grant: Grant<'_>) -> Result<HttpResponse, ApiError> {
    let (record, delivery) = (&grant.row.view.record, &grant.row.delivery);
    let validators = validators(grant.row)?;
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::ETAG, text(&delivery.etag)))
        .insert_header((header::LAST_MODIFIED, text(&delivery.last_modified)))
        .insert_header((header::CACHE_CONTROL, grant.cache_control))
        .insert_header((header::ACCEPT_RANGES, HeaderValue::from_static("bytes")))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
        .insert_header((header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
        .insert_header((header::CONTENT_SECURITY_POLICY, text(&delivery.security_policy)));
    match conditional::evaluate(&conditions(request), &validators, conditional::Method::Retrieve) {
        Outcome::Proceed => {}
        Outcome::NotModified => return Ok(response.status(StatusCode::NOT_MODIFIED).finish()),
        Outcome::PreconditionFailed => {
            return Err(ApiError::new(StatusCode::PRECONDITION_FAILED, "version_conflict", "the asset is another one"));
        }
    }
    let disposition = match grant.wish {
        Some(Disposition::Attachment) => &delivery.attachment,
        // "inline" is a wish that only passive media are granted, and they have it already.
        Some(Disposition::Inline) | None => &delivery.disposition,
    };
    response
        .insert_header((header::CONTENT_DISPOSITION, text(disposition)))
        .insert_header((REPR_DIGEST, text(&delivery.repr_digest)));
    let len = record.bytes;
    if request.method() == Method::HEAD {
        response.insert_header((header::CONTENT_TYPE, text(&delivery.content_type)));
        return Ok(response.body(Headless(len)));
    }
    let plan = range::plan(wanted_range(request, &validators), len);
    if plan == Plan::Unsatisfiable {
        return Err(unsatisfiable(len));
    }
    let blob = fetch::open_bytes(app, record).await?;
    // Before a use is taken: bytes that are not there cost none.
    let begun = fetch::there(app, record, begin(&blob, &plan).await).await?;
    if let Some(capability) = grant.capability {
        fetch::take_use(app, capability).await?;
    }
    audit::read(app, record, grant.reader).await?;
    match plan {
        Plan::Whole => {
            app.metrics.sent(len);
            response.insert_header((header::CONTENT_TYPE, text(&delivery.content_type)));
            Ok(body(&mut response, begun, len))
        }
        Plan::Single(range) => {
            let length = range.end - range.start;
            app.metrics.sent(length);
            response
                .status(StatusCode::PARTIAL_CONTENT)
                .insert_header((header::CONTENT_TYPE, text(&delivery.content_type)))
                .insert_header((header::CONTENT_RANGE, range::content_range(&range, len)));
            Ok(body(&mut response, begun, length))
        }
        Plan::Multiple(ranges) => {
            app.metrics.sent(ranges.iter().map(|range| range.end - range.start).sum());
            response.status(StatusCode::PARTIAL_CONTENT);
            Ok(several(&mut response, &blob, &ranges, begun, &delivery.content_type))
        }
        Plan::Unsatisfiable => Err(unsatisfiable(len)),
    }
}

fn unsatisfiable(len: u64) -> ApiError {
    ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, "validation_error", "no byte of that range is there")
        .reason("range_not_satisfiable")
        .header("content-range", range::unsatisfied(len))
}

/// A browser may keep the bytes of a durable URL for a while, but never past the asset's own time.
fn durable_caching(app: &App, row: &CachedRow) -> HeaderValue {
    let seconds = fetch::remaining_life(&row.view, app.now()).map_or(MAX_AGE, |life| life.min(MAX_AGE));
    HeaderValue::from_str(&format!("private, max-age={seconds}"))
        .unwrap_or_else(|_| HeaderValue::from_static("private, max-age=0"))
}

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

pub(super) fn text(value: &Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(value.clone()).unwrap_or_else(|_| HeaderValue::from_static(""))
}
