//! Metadata: one asset, lists of them, changes of their words, and their end.

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use data_encoding::HEXLOWER;
use mediakeep_storage::index::{Amendment, AssetQuery};
use mediakeep_storage::{AssetId, AssetView, RunId, Timestamp};
use ring::digest;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::begun::begun;
use super::body::{answer, json};
use super::conditional::{self, Conditions, EntityTag, Outcome, Validators};
use super::extract::{self, AssetsRead, AssetsWrite, Caller, asset_id, parts, run_id};
use super::paging::{List, limit};
use super::serve;
use crate::access::{Principal, Scope};
use crate::assets::{AssetError, library, members};
use crate::error::ApiError;
use crate::projection::asset::AssetJson;
use crate::retention::erase;

/// A page of assets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssetPage {
    assets: Vec<AssetJson>,
    /// Where the next page begins; `null` on the last.
    next_cursor: Option<String>,
}

/// Words to change: what is named changes, `null` clears.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AssetChange)]
pub struct Change {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    name: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    alt: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    title: Option<Option<String>>,
}

/// One asset, whatever its state.
#[utoipa::path(get, operation_id = "show_asset", path = "/v1/assets/{assetId}", tag = "assets", params(("assetId" = String, Path)),
    responses((status = 200, body = AssetJson), (status = 304, description = "Unchanged"), (status = 404, body = super::openapi::ErrorBody, description = "No such asset of this tenant"), (status = 412, body = super::openapi::ErrorBody, description = "`version_conflict`: it has changed since it was read")), security(("bearer" = ["assets:read"])))]
pub async fn show(caller: Caller<AssetsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let app = parts(&request);
    let view = library::show(&app, &caller.principal.tenant, asset_id(&request)?).await?;
    let resource = Validators { etag: tag(&view), last_modified: None };
    match conditional::evaluate(&serve::conditions(&request), &resource, conditional::Method::Retrieve) {
        Outcome::Proceed => Ok(tagged(&view)),
        Outcome::NotModified => Ok(HttpResponse::NotModified()
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .insert_header((header::ETAG, resource.etag.to_string()))
            .finish()),
        Outcome::PreconditionFailed => Err(AssetError::Stale.into()),
    }
}

/// The tenant's assets, oldest first.
#[utoipa::path(get, operation_id = "list_assets", path = "/v1/assets", tag = "assets",
    params(("kind" = Option<String>, Query), ("mimeType" = Option<String>, Query), ("runId" = Option<String>, Query), ("state" = Option<String>, Query), ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = AssetPage)), security(("bearer" = ["assets:read"])))]
pub async fn list(caller: Caller<AssetsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    list_for(&caller.principal, &request, None).await
}

/// The assets that a run references, oldest first.
#[utoipa::path(get, operation_id = "list_assets_of_run", path = "/v1/runs/{runId}/assets", tag = "assets",
    params(("runId" = String, Path), ("kind" = Option<String>, Query), ("mimeType" = Option<String>, Query), ("state" = Option<String>, Query), ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = AssetPage), (status = 404, body = super::openapi::ErrorBody, description = "No such run of this tenant")), security(("bearer" = ["assets:read"])))]
pub async fn list_of_run(caller: Caller<AssetsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let run = run_id(&request)?;
    // A run that nobody knows is a 404, not an empty list.
    crate::retention::runs::show(&parts(&request), &caller.principal.tenant, &run).await?;
    list_for(&caller.principal, &request, Some(run)).await
}

/// Changes an asset's words.
#[utoipa::path(patch, operation_id = "amend_asset", path = "/v1/assets/{assetId}", tag = "assets", params(("assetId" = String, Path), ("If-Match" = Option<String>, Header)),
    request_body = Change, responses((status = 200, body = AssetJson), (status = 410, body = super::openapi::ErrorBody, description = "The asset is over"), (status = 412, body = super::openapi::ErrorBody, description = "`version_conflict`: it has changed since it was read")), security(("bearer" = ["assets:write"])))]
pub async fn amend(
    caller: Caller<AssetsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let app = parts(&request);
    let change: Change = json(&request, payload, &caller.principal).await?;
    // Not before: what is no id is answered like an id that nobody has, whatever is wrong with the body.
    let asset = asset_id(&request)?;
    let change = Amendment {
        name: change.name.map(|name| cleaned_name(name.as_deref())).transpose()?,
        alt: change.alt.map(|alt| alt.map(members::alt).transpose()).transpose()?,
        title: change.title.map(|title| title.map(members::title).transpose()).transpose()?,
        expected: expected_revision(&request, &caller.principal, asset).await?,
    };
    let amending = async move { library::amend(&app, &caller.principal, asset, change).await };
    Ok(tagged(&begun(amending).await?))
}

/// What an erasure came to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Erasure)]
pub struct Erased {
    asset_id: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Whether the bytes are gone: not while another asset has them, or a hold keeps them for a dead one.
    bytes_removed: bool,
    /// Which other assets had the same bytes; at most 100. With `copies` they were erased too.
    same_bytes: Vec<String>,
}

/// Ends an asset that nothing protects, or erases one whatever protects it.
#[utoipa::path(delete, operation_id = "delete_asset", path = "/v1/assets/{assetId}", tag = "assets", params(("assetId" = String, Path), ("erase" = Option<bool>, Query), ("copies" = Option<bool>, Query)),
    responses((status = 200, body = Erased, description = "With `erase=true`: it is erased"), (status = 204, description = "It has ended"), (status = 409, body = super::openapi::ErrorBody, description = "`retention_active`: something still needs it, until `details.retainUntil`, because of `details.because`; `hold_active`: the holds in `details.holds` keep it")), security(("bearer" = ["assets:write"]), ("bearer" = ["assets:erase"])))]
pub async fn delete(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    // Which scope it needs depends on what it asks for, and whether that is well asked is looked at behind the scope.
    let wants_erasure = request.query_string().split('&').any(|pair| pair == "erase=true");
    let scope = if wants_erasure { Scope::AssetsErase } else { Scope::AssetsWrite };
    let caller = extract::authorized(&request, scope)?;
    let found = extract::query(&request, &["erase", "copies"])?;
    let [erase, copies] = <[_; 2]>::try_from(found).unwrap_or_default();
    let (erase, copies) = (extract::flag("erase", erase.as_deref())?, extract::flag("copies", copies.as_deref())?);
    let (app, asset) = (parts(&request), asset_id(&request)?);
    if erase != wants_erasure {
        return Err(ApiError::validation("erase: true or false, as it stands"));
    }
    if !erase {
        if copies {
            return Err(ApiError::validation("copies: only with erase=true"));
        }
        begun(async move { library::delete(&app, &caller, asset).await }).await?;
        return Ok(HttpResponse::NoContent().finish());
    }
    let erased = begun(async move { erase::asset(&app, &caller, asset, copies).await }).await?;
    let told = Erased {
        asset_id: asset.to_string(),
        at: erased.at,
        bytes_removed: erased.bytes_removed,
        same_bytes: erased.same_bytes.iter().map(ToString::to_string).collect(),
    };
    Ok(answer(StatusCode::OK, &told))
}

async fn list_for(caller: &Principal, request: &HttpRequest, run: Option<RunId>) -> Result<HttpResponse, ApiError> {
    let known: &[&'static str] = match run {
        None => &["kind", "mimeType", "state", "limit", "cursor", "runId"],
        Some(_) => &["kind", "mimeType", "state", "limit", "cursor"],
    };
    let mut found = extract::query(request, known)?;
    found.resize(6, None);
    let [kind, mime_type, state, raw_limit, raw_cursor, run_named] = <[_; 6]>::try_from(found).unwrap_or_default();
    if state.as_deref().is_some_and(|state| !matches!(state, "live" | "expired" | "erased")) {
        return Err(ApiError::validation("state: live, expired or erased"));
    }
    let run = match (run, run_named) {
        (None, Some(named)) => Some(RunId::parse(&named).map_err(|_| ApiError::validation("runId: not a run id"))?),
        (run, _) => run,
    };
    let list = List::new(&caller.tenant, format!("assets/{}", run.as_ref().map_or("", RunId::as_str)));
    let query = AssetQuery {
        kind,
        mime_type,
        state,
        after: list.after(raw_cursor.as_deref(), |last| AssetId::parse(last).ok())?,
        limit: limit(raw_limit.as_deref(), library::DEFAULT_PAGE, library::MAX_PAGE)?,
        run,
    };
    let (views, more) = library::page(&parts(request), &caller.tenant, query).await?;
    let last = views.last().map(|view| list.cursor(&view.record.id.to_string()));
    let page = AssetPage { assets: views.iter().map(AssetJson::of).collect(), next_cursor: last.filter(|_| more) };
    Ok(answer(StatusCode::OK, &page))
}

/// The asset with its tag.
fn tagged(view: &AssetView) -> HttpResponse {
    let mut response = answer(StatusCode::OK, &AssetJson::of(view));
    if let Ok(tag) = header::HeaderValue::from_str(&tag(view).to_string()) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// The tag of all that an answer says: its references and its time change without a new revision of its row.
fn tag(view: &AssetView) -> EntityTag {
    let said = serde_json::to_vec(&AssetJson::of(view)).unwrap_or_default();
    let hash = digest::digest(&digest::SHA256, &said);
    let tag = format!("{}-{}", view.record.revision, HEXLOWER.encode(&hash.as_ref()[..16]));
    EntityTag::strong(&tag).expect("digits and a dash are visible ASCII")
}

/// The revision that a change is for, if `If-Match` names the one that there is; the change itself looks again.
async fn expected_revision(request: &HttpRequest, caller: &Principal, asset: AssetId) -> Result<Option<u64>, ApiError> {
    let if_match: Vec<_> = request.headers().get_all(header::IF_MATCH).map(header::HeaderValue::as_bytes).collect();
    if if_match.is_empty() || if_match == [b"*"] {
        return Ok(None);
    }
    let view = library::show(&parts(request), &caller.tenant, asset).await?;
    if !view.record.is_live() {
        // That it is over is worth more than which revision it had.
        return Ok(None);
    }
    let conditions = Conditions { if_match, ..Conditions::default() };
    let resource = Validators { etag: tag(&view), last_modified: None };
    match conditional::evaluate(&conditions, &resource, conditional::Method::Change) {
        Outcome::Proceed => Ok(Some(view.record.revision)),
        Outcome::NotModified | Outcome::PreconditionFailed => Err(AssetError::Stale.into()),
    }
}

fn cleaned_name(name: Option<&str>) -> Result<Option<String>, ApiError> {
    match name {
        None => Ok(None),
        Some(name) => Ok(members::file_name("name", name)?),
    }
}

/// A member that is there, whatever it holds: `null` is not the same as nothing.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
