//! The media manifest of a run's debug bundle.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use mediakeep_storage::AssetId;
use mediakeep_storage::index::AssetQuery;

use super::body::answer;
use super::extract::{self, AssetsRead, Caller, parts, run_id};
use super::paging::{List, limit};
use crate::assets::{AssetError, library, urls};
use crate::audit::signed::signed;
use crate::error::ApiError;
use crate::projection::manifest::{Counts, Manifest};
use crate::retention::runs;

/// References to every asset that the run's log quotes, by bound URL, signed; never bytes.
#[utoipa::path(get, operation_id = "show_manifest", path = "/v1/runs/{runId}/debug-bundle/manifest", tag = "debug bundles",
    params(("runId" = String, Path), ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = super::openapi::SignedManifest)), security(("bearer" = ["assets:read"])))]
pub async fn show(caller: Caller<AssetsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let (app, run, tenant) = (parts(&request), run_id(&request)?, &caller.principal.tenant);
    let found = extract::query(&request, &["limit", "cursor"])?;
    let [raw_limit, raw_cursor] = <[_; 2]>::try_from(found).unwrap_or_default();
    let list = List::new(tenant, format!("manifest/{run}"));
    let query = AssetQuery {
        run: Some(run.clone()),
        after: list.after(raw_cursor.as_deref(), |last| AssetId::parse(last).ok())?,
        limit: limit(raw_limit.as_deref(), library::MAX_PAGE, library::MAX_PAGE)?,
        ..AssetQuery::default()
    };
    let of_run = runs::show(&app, tenant, &run).await?;
    let counts = Counts { assets: of_run.assets, bytes: of_run.bytes };
    let (views, more) = library::page(&app, tenant, query).await?;
    let next = views.last().map(|view| list.cursor(&view.record.id.to_string())).filter(|_| more);
    let manifest = Manifest::new(&run, counts, &views, next, |view| urls::bound_url(&app, view.record.id), app.now());
    let signed = signed(&app.live().ring, &manifest).map_err(|error| AssetError::Internal(error.to_string()))?;
    Ok(answer(StatusCode::OK, &signed))
}
