//! What a handler asks for in its signature: who is calling with which scope, and names in paths and queries.

use std::future::{Ready, ready};
use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::web::{self, QueryConfig};
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use mediakeep_storage::{ArtifactId, AssetId, HoldId, RunId, UploadId};

use crate::access::{AuthError, Principal, Refused, Scope, client};
use crate::app::App;
use crate::audit::Denials;
use crate::error::ApiError;

/// The service's parts.
pub type Parts = web::Data<App>;

/// A caller that has the scope `S`.
#[derive(Debug)]
pub struct Caller<S> {
    /// Who it is.
    pub principal: Principal,
    scope: PhantomData<S>,
}

/// A scope as a type.
pub trait Needs: 'static {
    /// Which.
    const SCOPE: Scope;
}

macro_rules! scopes {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl Needs for $name {
            const SCOPE: Scope = Scope::$name;
        }
    )*};
}

scopes!(
    /// `assets:write`
    AssetsWrite,
    /// `assets:read`
    AssetsRead,
    /// `assets:mint`
    AssetsMint,
    /// `artifacts:read`
    ArtifactsRead,
    /// `runs:write`
    RunsWrite,
    /// `holds:write`
    HoldsWrite,
    /// `assets:erase`
    AssetsErase,
    /// `audit:read`
    AuditRead
);

impl<S: Needs> FromRequest for Caller<S> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(authorized(request, S::SCOPE).map(|principal| Self { principal, scope: PhantomData }))
    }
}

/// A caller with any valid credential, whatever it allows.
#[derive(Debug)]
pub struct Anyone {
    /// Who it is.
    pub principal: Principal,
}

impl FromRequest for Anyone {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(admitted(request).map(|principal| Self { principal }))
    }
}

/// A request that this process makes of itself, as this principal or as nobody. It stands among what is known of a request beside its
/// bytes, where nothing from the network comes: neither its rate nor its refusals are anybody's.
#[derive(Debug, Clone)]
pub struct Probe(pub Option<Principal>);

/// The caller of a request whose scope depends on what it asks for.
pub fn authorized(request: &HttpRequest, scope: Scope) -> Result<Principal, ApiError> {
    let principal = admitted(request)?;
    allowed(request, &principal, scope)?;
    Ok(principal)
}

/// The caller of a request that needs no scope but a valid credential, not too often, and no other tenant's name.
pub fn admitted(request: &HttpRequest) -> Result<Principal, ApiError> {
    let principal = authenticated(request).map_err(|refused| {
        if let Some(holder) = &refused.holder {
            deny(request, |denials| denials.credential(holder, refused.error.label()));
        }
        ApiError::from(refused.error)
    })?;
    if !is_probe(request) {
        parts(request).rates.credential(&principal)?;
    }
    names_no_other_tenant(request, &principal)?;
    Ok(principal)
}

/// Whether an authorized caller has this scope too.
pub fn allowed(request: &HttpRequest, principal: &Principal, scope: Scope) -> Result<(), ApiError> {
    if !principal.scopes.has(scope) {
        deny(request, |denials| denials.credential(principal, "scope_missing"));
        return Err(ApiError::scope(scope));
    }
    Ok(())
}

/// Whether this process asks itself.
pub fn is_probe(request: &HttpRequest) -> bool {
    request.extensions().contains::<Probe>()
}

/// Notes a refusal for the audit log.
pub fn deny(request: &HttpRequest, note: impl FnOnce(&Denials) -> bool) {
    let app = parts(request);
    if !is_probe(request) && !note(&app.denials) {
        app.metrics.denial_not_logged();
    }
}

/// Notes that a valid credential asked for an asset that its tenant does not have.
pub fn asked_in_vain(request: &HttpRequest) {
    let Some(asset) = request.match_info().get("assetId").and_then(|id| AssetId::parse(id).ok()) else {
        return;
    };
    if let Ok(caller) = authenticated(request) {
        deny(request, |denials| denials.asset(&caller, asset));
    }
}

/// The client's address: of a proxy that is trusted, the one that it speaks for.
pub fn client_address(request: &HttpRequest) -> Option<IpAddr> {
    let lines = request.headers().get_all("x-forwarded-for").filter_map(|line| line.to_str().ok());
    let lines: Vec<&str> = lines.collect();
    let peer = request.peer_addr()?.ip();
    Some(client::address(peer, lines.into_iter(), &parts(request).trusted_proxies))
}

/// Whose credential the request carries.
pub fn authenticated(request: &HttpRequest) -> Result<Principal, Refused> {
    if let Some(Probe(principal)) = request.extensions().get::<Probe>() {
        return principal.clone().ok_or_else(|| AuthError::Missing.into());
    }
    let mut headers = request.headers().get_all(AUTHORIZATION);
    let header = match (headers.next(), headers.next()) {
        (None, _) => return Err(AuthError::Missing.into()),
        (Some(_), Some(_)) => return Err(AuthError::Invalid.into()),
        (Some(one), None) => one.to_str().map_err(|_| AuthError::Invalid)?,
    };
    let app = parts(request);
    app.live().access.authenticate(Some(header), app.now())
}

/// The tenant comes from the credential alone: naming it again is idle, naming another is refused.
fn names_no_other_tenant(request: &HttpRequest, principal: &Principal) -> Result<(), ApiError> {
    let own = principal.tenant.as_str();
    let other_header = request.headers().get_all("x-tenant-id").any(|named| named.as_bytes() != own.as_bytes());
    let query = url::form_urlencoded::parse(request.query_string().as_bytes());
    let other_query = query.into_iter().any(|(name, named)| matches!(&*name, "tenant" | "tenantId") && named != own);
    if other_header || other_query {
        return Err(other_tenant(request, principal));
    }
    Ok(())
}

/// The refusal of a request that names another tenant than its caller's, be it in a header, the query or the body. It is noted.
pub fn other_tenant(request: &HttpRequest, principal: &Principal) -> ApiError {
    deny(request, |denials| denials.credential(principal, "other_tenant_named"));
    ApiError::other_tenant()
}

/// The service's parts, of a request that is being served by it.
pub fn parts(request: &HttpRequest) -> Arc<App> {
    let parts: &Parts = request.app_data().expect("server.rs puts the parts beside every route");
    parts.clone().into_inner()
}

/// The asset in the path. What is no asset id at all is as unknown as an id that nobody has.
pub fn asset_id(request: &HttpRequest) -> Result<AssetId, ApiError> {
    AssetId::parse(request.match_info().query("assetId")).map_err(|_| ApiError::not_found())
}

/// The upload in the path. What is no upload's id at all is as unknown as an id that nobody has.
pub fn upload_id(request: &HttpRequest) -> Result<UploadId, ApiError> {
    UploadId::parse(request.match_info().query("uploadId")).map_err(|_| ApiError::not_found())
}

/// The run in the path.
pub fn run_id(request: &HttpRequest) -> Result<RunId, ApiError> {
    RunId::parse(request.match_info().query("runId"))
        .map_err(|_| ApiError::validation("runId: 1 to 128 of A-Z a-z 0-9 . _ : ~ -, not . or .."))
}

/// The hold in the path.
pub fn hold_id(request: &HttpRequest) -> Result<HoldId, ApiError> {
    HoldId::parse(request.match_info().query("holdId"))
        .map_err(|_| ApiError::validation("holdId: 1 to 128 of A-Z a-z 0-9 . _ : ~ -, not . or .."))
}

/// The artifact in the path.
pub fn artifact_id(request: &HttpRequest) -> Result<ArtifactId, ApiError> {
    ArtifactId::parse(request.match_info().query("artifactId"))
        .map_err(|_| ApiError::validation("artifactId: 1 to 257 of A-Z a-z 0-9 . _ : ~ -, not . or .."))
}

/// A parameter that is `true`, `false` or not there.
pub fn flag(name: &str, raw: Option<&str>) -> Result<bool, ApiError> {
    match raw {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(ApiError::validation(format!("{name}: true or false"))),
    }
}

/// Queries that do not read are a 400 of ours.
pub fn query_config() -> QueryConfig {
    QueryConfig::default().error_handler(|_, _| ApiError::validation("the query does not read").into())
}

/// The parameters of a query: known names, each at most once; `tenant` and `tenantId` were looked at before.
pub fn query(request: &HttpRequest, known: &[&'static str]) -> Result<Vec<Option<String>>, ApiError> {
    let mut found = vec![None; known.len()];
    for pair in request.query_string().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(name) = decoded(name) else {
            return Err(ApiError::validation(format!("unknown parameter {}", printable(name))));
        };
        if matches!(&*name, "tenant" | "tenantId") {
            continue;
        }
        let Some(place) = known.iter().position(|known| *known == name) else {
            return Err(ApiError::validation(format!("unknown parameter {}", printable(&name))));
        };
        let value = decoded(value).ok_or_else(|| ApiError::validation(format!("{name}: not UTF-8")))?;
        if found[place].replace(value).is_some() {
            return Err(ApiError::validation(format!("{name}: given twice")));
        }
    }
    Ok(found)
}

/// A name or value of a query as it was meant; none if that is no text: it would become another than was sent.
fn decoded(raw: &str) -> Option<String> {
    let spaced = raw.replace('+', " ");
    percent_encoding::percent_decode_str(&spaced).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// A name from outside, short and plain enough to be said back.
pub fn printable(name: &str) -> String {
    name.chars().take(64).map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '?' }).collect()
}
