//! Erasure: of an asset whatever its floor, and of a run with everything that it alone kept.
//!
//! The transition puts the bytes out of reach; their removal and the records beside them follow before anybody is told. Should the
//! process die in between, the next sweep removes them.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures_util::future::try_join_all;
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::index::{AssetQuery, Erasure, Look, LookAt, RunErasure};
use mediakeep_storage::record::{AssetState, Doomed, RunRecord};
use mediakeep_storage::{AssetId, AssetRecord, AssetView, AuditEvent, RunId, StorageError, TenantId, Timestamp, fault};
use serde_json::{Value, json};

use super::{floors, runs, sweep};
use crate::access::Principal;
use crate::app::App;
use crate::assets::AssetError;
use crate::assets::library::{MAX_PAGE, write_record};

/// What an erasure came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erased {
    /// Since when.
    pub at: Timestamp,
    /// Whether the bytes are gone.
    pub bytes_removed: bool,
    /// Which other assets had the same.
    pub same_bytes: Vec<AssetId>,
}

/// Erases the asset, and if `copies` every other one with the same bytes.
pub async fn asset(app: &App, caller: &Principal, asset: AssetId, copies: bool) -> Result<Erased, AssetError> {
    if copies {
        nothing_holds_a_copy(app, &caller.tenant, asset).await?;
    }
    let record = one(app, caller, asset).await?;
    let mut erased = Erased::of(&record).ok_or(AssetError::NotFound)?;
    if !copies {
        return Ok(erased);
    }
    let mut seen = BTreeSet::from([asset]);
    let mut waiting = erased.same_bytes.clone();
    while let Some(copy) = waiting.pop() {
        if !seen.insert(copy) {
            continue;
        }
        let gone = match one(app, caller, copy).await {
            // Its tombstone has had its time since it was named.
            Err(AssetError::NotFound) => continue,
            gone => gone?,
        };
        if let Some(more) = Erased::of(&gone) {
            erased.bytes_removed |= more.bytes_removed && gone.blob == record.blob;
            waiting.extend(more.same_bytes);
        }
    }
    Ok(erased)
}

impl Erased {
    fn of(record: &AssetRecord) -> Option<Self> {
        match &record.state {
            AssetState::Erased { at, same_bytes, bytes_removed } => {
                Some(Self { at: *at, bytes_removed: *bytes_removed, same_bytes: same_bytes.clone() })
            }
            _ => None,
        }
    }
}

/// Refuses before anything is erased if a hold is on any of the copies; one that is placed meanwhile is met later.
async fn nothing_holds_a_copy(app: &App, tenant: &TenantId, asset: AssetId) -> Result<(), AssetError> {
    let mut after = None;
    loop {
        let page = app.index.same_bytes(tenant, asset, after, MAX_PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = Some(*last);
        for id in page {
            let view = app.index.view(tenant, id, &app.terms(tenant)).await?;
            if let Some(view) = view.filter(|view| !view.holds.is_empty()) {
                return Err(AssetError::Held { holds: view.holds });
            }
        }
    }
}

async fn one(app: &App, caller: &Principal, asset: AssetId) -> Result<AssetRecord, AssetError> {
    let (tenant, now) = (&caller.tenant, app.now());
    let audit = AuditEvent::new(AuditKind::Erase, &*caller.id, now).asset(asset);
    match app.index.erase(tenant, asset, &app.terms(tenant), audit, now).await? {
        Erasure::Unknown => Err(AssetError::NotFound),
        Erasure::Held(holds) => Err(AssetError::Held { holds }),
        Erasure::Done(record) => {
            fault::point("erase.marked");
            after_erasure(app, &record).await?;
            Ok(*record)
        }
    }
}

/// What follows an erasure: the bytes go, and so does whatever the records beside them say. Done again, it goes on where it failed.
async fn after_erasure(app: &App, record: &AssetRecord) -> Result<(), AssetError> {
    app.rows.changed(record.id);
    let blob = Doomed { tenant: record.tenant.clone(), blob: record.blob, asset: None };
    if !sweep::remove_at_once(app, &blob).await? {
        let reason = format!("the blob {} of an erased asset could not be removed", record.blob);
        return Err(StorageError::Unavailable { store: "store", reason }.into());
    }
    fault::point("erase.removed");
    write_record(app, record).await
}

/// What the erasure of a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct RunErased {
    /// How many assets went with it.
    pub erased: u64,
    /// Which did not, and because of what; at most [`NAMED`].
    pub kept: Vec<(AssetId, Value)>,
    /// Whether more were kept than are named.
    pub truncated: bool,
    /// Since when.
    pub at: Timestamp,
}

/// So many of the assets that outlive a run are named.
pub const NAMED: usize = 1_000;

/// So many erased assets are seen to at a time: each waits for the disk, and side by side they share the wait.
const SIDE_BY_SIDE: usize = 32;

/// Closes the run for good, and erases what it alone kept: first the one, then the other by some hundred assets a transition. Whatever cuts
/// it short, the same request goes on with it, and else a sweep does.
pub async fn run(app: &App, caller: &Principal, run: &RunId) -> Result<RunErased, AssetError> {
    let (tenant, now) = (&caller.tenant, app.now());
    let audit = AuditEvent::new(AuditKind::Erase, &*caller.id, now).run(run);
    let record = match app.index.erase_run(tenant, run, audit, now).await? {
        RunErasure::Unknown => return Err(AssetError::NotFound),
        RunErasure::Held(holds) => return Err(AssetError::Held { holds }),
        RunErasure::Done(record) => record,
    };
    fault::point("erase_run.marked");
    app.rows.floors_changed(tenant);
    runs::put_recovery_record(app, tenant, &record).await?;
    let at = record.erased_at.unwrap_or(now);
    let look = Look { tenant: tenant.clone(), at: LookAt::Run(run.clone()), due: at };
    for _ in 0..TRIES {
        sweep::settle(app, &look, &caller.id, now.max(at)).await?;
        fault::point("erase_run.settled");
        if let Some(told) = told(app, tenant, &record, at).await? {
            return Ok(told);
        }
        // Another process is at this run: it is left to finish.
        tokio::time::sleep(TRY_AGAIN).await;
    }
    let reason = format!("the run {run} is being erased elsewhere");
    Err(StorageError::Unavailable { store: "index", reason }.into())
}

/// So often a run is looked at that another process is erasing, and so long apart: some seconds in all.
const TRIES: usize = 100;

/// See [`TRIES`].
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// What became of the run's assets; `None`: one is still there that nothing keeps. Bytes that a sweep beside this request has not removed
/// yet are removed here.
async fn told(app: &App, tenant: &TenantId, run: &RunRecord, at: Timestamp) -> Result<Option<RunErased>, AssetError> {
    let mut told = RunErased { erased: 0, kept: Vec::new(), truncated: false, at };
    let mut runs = Runs::default();
    let mut query = AssetQuery { run: Some(run.id.clone()), limit: MAX_PAGE, ..AssetQuery::default() };
    loop {
        let page = app.index.page(tenant, &query, &app.terms(tenant)).await?;
        let Some(last) = page.last() else {
            return Ok(Some(told));
        };
        query.after = Some(last.record.id);
        let mut erased = Vec::new();
        for view in page {
            match view.record.state {
                AssetState::Erased { at: erased_at, .. } if erased_at >= at => erased.push(view.record),
                AssetState::Erased { .. } => {}
                AssetState::Live | AssetState::Expired { .. } => {
                    let because = runs.keep(app, tenant, &view).await?;
                    match (because.is_empty(), view.record.is_live()) {
                        (true, true) => return Ok(None),
                        (true, false) => {}
                        (false, _) if told.kept.len() < NAMED => told.kept.push((view.record.id, because.into())),
                        (false, _) => told.truncated = true,
                    }
                }
            }
        }
        told.erased += erased.len() as u64;
        for some in erased.chunks(SIDE_BY_SIDE) {
            try_join_all(some.iter().map(|record| after_erasure(app, record))).await?;
        }
    }
}

/// The runs that were asked for, each once: when it ends as an answer says it, or `None` if it was erased.
#[derive(Debug, Default)]
struct Runs(HashMap<RunId, Option<Value>>);

impl Runs {
    /// The holds on an asset, and the runs that were not erased, as an answer says them.
    async fn keep(&mut self, app: &App, tenant: &TenantId, view: &AssetView) -> Result<Vec<Value>, AssetError> {
        let mut because: Vec<Value> = view.holds.iter().map(|hold| json!({"hold": hold, "until": null})).collect();
        for id in &view.references {
            if !self.0.contains_key(id) {
                let run = app.index.find_run(tenant, id).await?.filter(|run| run.erased_at.is_none());
                let told = run.map(|run| json!({"run": run.id, "until": run.end.until().instant()}));
                self.0.insert(id.clone(), told);
            }
            because.extend(self.0.get(id).cloned().flatten());
        }
        if because.is_empty() && view.reference_count > view.references.len() as u64 {
            // The newest of its runs were all erased, and there are more.
            let (rest, _) = floors::because(app, tenant, view.record.id, app.now()).await?;
            because.extend(rest.as_array().into_iter().flatten().cloned());
        }
        Ok(because)
    }
}
