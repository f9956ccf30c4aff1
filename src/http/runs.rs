//! The registry of runs.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use mediakeep_storage::RunId;
use mediakeep_storage::index::RunQuery;
use mediakeep_storage::record::RunStatus;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::assets::present;
use super::begun::begun;
use super::body::{answer, json, word_or_null};
use super::extract::{self, AssetsRead, Caller, RunsWrite, parts, run_id};
use super::paging::{List, limit};
use crate::assets::library;
use crate::error::ApiError;
use crate::projection::run::RunJson;
use crate::retention::runs::{self, RunWish};

/// The most assets of one request.
const MAX_REFERENCES: usize = 1_000;

/// What a host says of a run; only what is named changes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = RunChange)]
pub struct Change {
    /// When the run's log ends; `null` is without end, on purpose.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, format = DateTime)]
    log_retain_until: Option<Option<String>>,
    /// Or so many seconds after the run closes.
    #[serde(default)]
    log_retention_seconds: Option<i64>,
    /// `open` or `closed`.
    #[serde(default, deserialize_with = "word_or_null")]
    #[schema(value_type = Option<String>)]
    status: Option<RunStatus>,
    /// The run that it is a fork of: the run's log quotes all that its parent's log quotes at this moment.
    #[serde(default)]
    fork_of: Option<String>,
    /// The host's workflow.
    #[serde(default)]
    workflow_id: Option<String>,
}

/// Assets that a run's log quotes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct References {
    /// Each by its id, its `mediaRef`, or one of its URLs; at most 1000.
    #[schema(min_items = 1, max_items = 1000)]
    assets: Vec<String>,
}

/// A page of runs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunPage {
    runs: Vec<RunJson>,
    /// Where the next page begins; `null` on the last.
    next_cursor: Option<String>,
}

/// Registers a run, or changes what is named.
#[utoipa::path(put, operation_id = "put_run", path = "/v1/runs/{runId}", tag = "runs", params(("runId" = String, Path)), request_body = Change,
    responses((status = 200, body = RunJson), (status = 404, body = super::openapi::ErrorBody, description = "The run that it is to be a fork of is unknown or foreign; nothing was made"), (status = 409, body = super::openapi::ErrorBody, description = "`retention_floor`: the log is promised for longer, until `details.current`; `fork_of`: it is a fork of `details.current`; `run_erased`: it, or the run that it is to be a fork of, was erased")), security(("bearer" = ["runs:write"])))]
pub async fn put(
    caller: Caller<RunsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let (app, run) = (parts(&request), run_id(&request)?);
    let change: Change = json(&request, payload, &caller.principal).await?;
    let wish = RunWish {
        log_retain_until: change.log_retain_until,
        log_retention_seconds: change.log_retention_seconds,
        status: change.status,
        fork_of: change.fork_of,
        workflow_id: change.workflow_id,
    };
    let view = begun(async move { runs::put(&app, &caller.principal, &run, wish).await }).await?;
    Ok(answer(StatusCode::OK, &RunJson::of(&view)))
}

/// A run.
#[utoipa::path(get, operation_id = "show_run", path = "/v1/runs/{runId}", tag = "runs", params(("runId" = String, Path)),
    responses((status = 200, body = RunJson)), security(("bearer" = ["assets:read"])))]
pub async fn show(caller: Caller<AssetsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let view = runs::show(&parts(&request), &caller.principal.tenant, &run_id(&request)?).await?;
    Ok(answer(StatusCode::OK, &RunJson::of(&view)))
}

/// The tenant's runs.
#[utoipa::path(get, operation_id = "list_runs", path = "/v1/runs", tag = "runs",
    params(("status" = Option<String>, Query), ("limit" = Option<usize>, Query), ("cursor" = Option<String>, Query)),
    responses((status = 200, body = RunPage)), security(("bearer" = ["assets:read"])))]
pub async fn list(caller: Caller<AssetsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let found = extract::query(&request, &["status", "limit", "cursor"])?;
    let [status, raw_limit, raw_cursor] = <[_; 3]>::try_from(found).unwrap_or_default();
    let status = match status.as_deref() {
        None => None,
        Some("open") => Some(RunStatus::Open),
        Some("closed") => Some(RunStatus::Closed),
        Some(_) => return Err(ApiError::validation("status: open or closed")),
    };
    let list = List::new(&caller.principal.tenant, "runs");
    let query = RunQuery {
        status,
        after: list.after(raw_cursor.as_deref(), |last| RunId::parse(last).ok())?,
        limit: limit(raw_limit.as_deref(), library::DEFAULT_PAGE, library::MAX_PAGE)?,
    };
    let (views, more) = runs::page(&parts(&request), &caller.principal.tenant, query).await?;
    let last = views.last().map(|view| list.cursor(view.record.id.as_str()));
    let page = RunPage { runs: views.iter().map(RunJson::of).collect(), next_cursor: last.filter(|_| more) };
    Ok(answer(StatusCode::OK, &page))
}

/// Makes a run's log quote assets: all of them, or none.
#[utoipa::path(post, operation_id = "refer", path = "/v1/runs/{runId}/references", tag = "runs", params(("runId" = String, Path)), request_body = References,
    responses((status = 200, body = RunJson), (status = 404, body = super::openapi::ErrorBody, description = "Unknown or foreign assets at the positions in `details.unknown`; none was added"), (status = 409, body = super::openapi::ErrorBody, description = "`run_erased`: the run was erased")), security(("bearer" = ["runs:write"])))]
pub async fn refer(
    caller: Caller<RunsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let (app, run) = (parts(&request), run_id(&request)?);
    let references: References = json(&request, payload, &caller.principal).await?;
    if references.assets.is_empty() || references.assets.len() > MAX_REFERENCES {
        return Err(ApiError::validation(format!("assets: 1 to {MAX_REFERENCES}")));
    }
    let referring = async move { runs::refer(&app, &caller.principal, &run, &references.assets).await };
    let view = begun(referring).await?;
    Ok(answer(StatusCode::OK, &RunJson::of(&view)))
}
