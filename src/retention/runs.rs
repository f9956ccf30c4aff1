//! The registry: what a host says of its runs, and which assets their logs quote.

use std::borrow::Cow;

use futures_util::TryFutureExt;
use futures_util::future::try_join;
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::index::{AssetQuery, Referred, RunQuery, Updated};
use mediakeep_storage::record::{Owed, ReferenceRecord, RunRecord, RunView};
use mediakeep_storage::retention::{RunConflict, RunUpdate, after};
use mediakeep_storage::{AssetId, AuditEvent, RunId, TenantId, Timestamp, fault};
use serde_json::json;
use tracing::warn;

use crate::access::Principal;
use crate::app::App;
use crate::assets::library::MAX_PAGE;
use crate::assets::urls::asset_named;
use crate::assets::{AssetError, members};

/// What a host says, not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunWish {
    /// `logRetainUntil`; `Some(None)` is a `null`.
    pub log_retain_until: Option<Option<String>>,
    /// `logRetentionSeconds`.
    pub log_retention_seconds: Option<i64>,
    /// `status`.
    pub status: Option<mediakeep_storage::record::RunStatus>,
    /// `forkOf`.
    pub fork_of: Option<String>,
    /// `workflowId`.
    pub workflow_id: Option<String>,
}

/// Registers the run, or changes what the wish names.
pub async fn put(app: &App, caller: &Principal, run: &RunId, wish: RunWish) -> Result<RunView, AssetError> {
    let (tenant, now) = (&caller.tenant, app.now());
    let update = checked(app, run, wish, now)?;
    let audit = AuditEvent::new(AuditKind::Floor, &*caller.id, now).run(run).details(json!({
        "logRetainUntil": update.log_retain_until,
        "logRetentionSeconds": update.log_retention_seconds,
        "status": update.status,
        "forkOf": update.fork_of,
    }));
    let updated = app.index.update_run(tenant, &update, &app.terms(tenant), audit, now).await?;
    let Updated { view, inherited } = updated.map_err(|conflict| refused(&conflict))?;
    app.rows.floors_changed(tenant);
    fault::point("run.changed");
    // What a fork took up stands in the store before that it is a fork. A request that is repeated may be so because this had failed.
    let quoted = match inherited.is_empty() && update.fork_of.is_some() {
        true => quoted(app, tenant, run).await?,
        false => inherited,
    };
    if !quoted.is_empty() {
        let references = ReferenceRecord::new(run, &quoted, now);
        app.blobs.put_references(tenant, &references).await?;
        app.paid.note(tenant, &Owed::References(references));
        fault::point("run.quoted");
    }
    put_recovery_record(app, tenant, &view.record).await?;
    Ok(view)
}

/// Everything that the run references.
async fn quoted(app: &App, tenant: &TenantId, run: &RunId) -> Result<Vec<AssetId>, AssetError> {
    let mut query = AssetQuery { run: Some(run.clone()), limit: MAX_PAGE, ..AssetQuery::default() };
    let mut quoted = Vec::new();
    loop {
        let page = app.index.page(tenant, &query, &app.terms(tenant)).await?;
        let Some(last) = page.last() else {
            return Ok(quoted);
        };
        query.after = Some(last.record.id);
        quoted.extend(page.iter().map(|view| view.record.id));
    }
}

fn refused(conflict: &RunConflict) -> AssetError {
    match conflict {
        RunConflict::Floor { current } => AssetError::RunFloor { current: *current },
        RunConflict::ForkOf { current } => AssetError::ForkOf { current: current.clone() },
        RunConflict::Cycle => AssetError::Invalid("forkOf: a run is no fork of itself".to_owned()),
        RunConflict::UnknownParent => AssetError::NotFound,
        RunConflict::Erased => AssetError::RunErased,
    }
}

/// The run.
pub async fn show(app: &App, tenant: &TenantId, run: &RunId) -> Result<RunView, AssetError> {
    app.index.run(tenant, run).await?.ok_or(AssetError::NotFound)
}

/// A page of runs, and whether there is more behind it.
pub async fn page(app: &App, tenant: &TenantId, query: RunQuery) -> Result<(Vec<RunView>, bool), AssetError> {
    let limit = query.limit.clamp(1, MAX_PAGE);
    let mut views = app.index.runs(tenant, &RunQuery { limit: limit + 1, ..query }).await?;
    let more = views.len() > limit;
    views.truncate(limit);
    Ok((views, more))
}

/// Makes the run's log quote the assets, named by id, `mediaRef` or URL: all of them, or none.
pub async fn refer(app: &App, caller: &Principal, run: &RunId, names: &[String]) -> Result<RunView, AssetError> {
    let (tenant, now) = (&caller.tenant, app.now());
    let named: Vec<Option<AssetId>> = names.iter().map(|name| asset_named(app, tenant, name)).collect();
    let ids: Vec<AssetId> = named.iter().flatten().copied().collect();
    if ids.len() < named.len() {
        return Err(AssetError::Unknown { positions: unknown_positions(app, tenant, &named).await? });
    }
    let audit = AuditEvent::new(AuditKind::Refer, &*caller.id, now).run(run).details(json!({"assets": ids}));
    let record = match app.index.refer(tenant, run, &ids, &app.terms(tenant), audit, now).await? {
        Referred::Unknown(positions) => return Err(AssetError::Unknown { positions }),
        Referred::RunErased => return Err(AssetError::RunErased),
        Referred::All(record) => record,
    };
    ids.iter().for_each(|id| app.rows.changed(*id));
    fault::point("references.taken");
    let references = ReferenceRecord::new(run, &ids, now);
    try_join(
        put_recovery_record(app, tenant, &record),
        app.blobs.put_references(tenant, &references).map_err(AssetError::from),
    )
    .await?;
    app.paid.note(tenant, &Owed::References(references));
    show(app, tenant, run).await
}

/// Takes away what the store says of the references of a run that has none left.
pub async fn forget_references(app: &App, tenant: &TenantId, run: &RunId) -> Result<(), AssetError> {
    if references_any(app, tenant, run).await? {
        return Ok(());
    }
    let listed = app.blobs.list_references(tenant, run).await?;
    // A record is written after the index knows of what it says: so none that was listed says what is so now.
    if !references_any(app, tenant, run).await? {
        app.blobs.remove_references(listed).await?;
    }
    Ok(())
}

async fn references_any(app: &App, tenant: &TenantId, run: &RunId) -> Result<bool, AssetError> {
    let one = AssetQuery { run: Some(run.clone()), limit: 1, ..AssetQuery::default() };
    Ok(!app.index.page(tenant, &one, &app.terms(tenant)).await?.is_empty())
}

/// The run quotes that asset no more. What cannot be taken away of that stays owed until the next sweep.
pub async fn unquoted(app: &App, tenant: &TenantId, run: &RunId, asset: AssetId) {
    match forget_references(app, tenant, run).await {
        Ok(()) => app.paid.note(tenant, &Owed::Unquoted { run: run.clone(), id: asset }),
        Err(error) => {
            warn!(run.id = %run, error = %error, "what the store says of a run's references stays until the next sweep");
        }
    }
}

/// Where the unknown ones stand, when some are not even names: foreign and absent ones alike.
async fn unknown_positions(app: &App, tenant: &TenantId, named: &[Option<AssetId>]) -> Result<Vec<usize>, AssetError> {
    let mut positions = Vec::new();
    for (position, id) in named.iter().enumerate() {
        let known = match id {
            Some(id) => app.index.find(tenant, *id).await?.is_some(),
            None => false,
        };
        if !known {
            positions.push(position);
        }
    }
    Ok(positions)
}

fn checked(app: &App, run: &RunId, wish: RunWish, now: Timestamp) -> Result<RunUpdate, AssetError> {
    let longest = longest(app, now);
    if wish.log_retain_until.is_some() && wish.log_retention_seconds.is_some() {
        let both = "logRetainUntil and logRetentionSeconds: one of them, not both";
        return Err(AssetError::Invalid(both.to_owned()));
    }
    let until = match wish.log_retain_until {
        None => None,
        Some(None) if longest.is_some() => {
            return Err(AssetError::Invalid("logRetainUntil: this service keeps nothing without end".to_owned()));
        }
        Some(None) => Some(None),
        Some(Some(at)) => Some(Some(members::future("logRetainUntil", &at, now, longest)?)),
    };
    if let Some(seconds) = wish.log_retention_seconds {
        let ends = now.checked_add(jiff::SignedDuration::from_secs(seconds)).ok();
        if seconds < 1 || ends.is_none() || longest.is_some_and(|longest| ends.is_some_and(|at| at > longest)) {
            let wrong = "logRetentionSeconds: at least 1, and no longer than this service keeps anything";
            return Err(AssetError::Invalid(wrong.to_owned()));
        }
    }
    Ok(RunUpdate {
        id: run.clone(),
        log_retain_until: until,
        log_retention_seconds: wish.log_retention_seconds,
        status: wish.status,
        fork_of: wish.fork_of.map(|id| RunId::parse(&id).map_err(|_| not_a_run("forkOf"))).transpose()?,
        workflow_id: wish.workflow_id.map(|id| members::outer_id("workflowId", id)).transpose()?,
    })
}

fn not_a_run(member: &str) -> AssetError {
    AssetError::Invalid(format!("{member}: not a run id"))
}

/// The latest end that anybody may ask for.
pub fn longest(app: &App, now: Timestamp) -> Option<Timestamp> {
    let most = app.settings.retention.max;
    (most.as_secs() > 0).then(|| after(now, most.0))
}

/// Writes the run's row beside the bytes if a publication has just made it. Later ones keep it for longer, and the assets' own records
/// say when they came: a record for each would cost every upload two more syncs and say nothing new.
pub async fn put_record_if_new(app: &App, tenant: &TenantId, run: &RunId) -> Result<(), AssetError> {
    match app.index.find_run(tenant, run).await? {
        Some(record) if !record.registered && record.revision == 1 => put_recovery_record(app, tenant, &record).await,
        _ => Ok(()),
    }
}

/// Writes the run's row beside the bytes: after its transition, whose outcome it holds, and before anybody is told. Until the records
/// before it are gone it stays owed.
///
/// A later word of the host's may have been written before ours, which would then lie beside it: so the row is looked at once more. A
/// run that nobody has registered changes with every upload, and of that no record says anything that the assets' own do not.
pub async fn put_recovery_record(app: &App, tenant: &TenantId, record: &RunRecord) -> Result<(), AssetError> {
    let mut newest = Cow::Borrowed(record);
    loop {
        replace_record(app, tenant, &newest).await?;
        match app.index.find_run(tenant, &record.id).await? {
            Some(now) if now.revision > newest.revision && (now.registered || now.erased_at.is_some()) => {
                newest = Cow::Owned(now);
            }
            _ => break,
        }
    }
    app.paid.note(tenant, &Owed::run(record));
    Ok(())
}

/// Writes the record, and takes those before it away. Of an erased run they go first: whatever a crash leaves, nothing says that it is
/// open.
async fn replace_record(app: &App, tenant: &TenantId, record: &RunRecord) -> Result<(), AssetError> {
    let of = RecordOf::Run(&record.id);
    let json = serde_json::to_vec(record).map_err(|error| AssetError::Internal(error.to_string()))?;
    if record.erased_at.is_some() {
        app.blobs.remove_records(tenant, of, Some(record.revision)).await?;
    }
    app.blobs.put_record(tenant, of, record.revision, json).await?;
    Ok(app.blobs.remove_records(tenant, of, Some(record.revision)).await?)
}
