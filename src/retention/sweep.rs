//! The sweep: ends what nothing keeps, removes the bytes that nobody holds, drops tombstones that had their time.
//!
//! It costs what is due, not what exists, and may stop at any point: whatever it has begun stands in the index, and the next one goes
//! on with it. It never asks how old a thing is, only whether anything still needs it.

use std::time::{Duration, Instant};

use futures_util::future::{join_all, try_join_all};
use jiff::SignedDuration;
use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::index::{Look, LookAt, RemovalTurn};
use mediakeep_storage::record::{AssetRecord, AssetState, Doomed};
use mediakeep_storage::retention::after;
use mediakeep_storage::{StorageError, Timestamp, fault};
use serde::Serialize;
use tracing::{info, warn};

use super::{artifacts, late, leftovers, owed, runs, strays};
use crate::app::App;
use crate::assets::library::{forget, put_end_record};
use crate::assets::resumable;

/// How many looks, assets or blobs are taken at a time: small enough that a request waits behind one step for a moment only.
const STEP: usize = 256;

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Assets that ended.
    pub expired: u64,
    /// Their bytes.
    pub expired_bytes: u64,
    /// Assets that were erased with their runs.
    pub erased: u64,
    /// Assets that were looked at and stay.
    pub kept: u64,
    /// Blobs whose bytes are gone.
    pub removed_blobs: u64,
    /// Blobs whose bytes could not be removed; the next sweep tries again.
    pub failed_blobs: u64,
    /// Uploads in parts that nobody went on with in time.
    pub expired_uploads: u64,
    /// Tombstones that had their time.
    pub dropped: u64,
    /// Old claims, answers and revocations.
    pub tidied: u64,
    /// Sealed bytes of which nobody knew: they go after the grace for orphans.
    pub strays: u64,
}

/// One sweep, from what is due first to what is due now.
pub async fn sweep(app: &App) -> Result<Report, StorageError> {
    let now = app.now();
    let mut report = Report::default();
    // What cannot be settled keeps nothing else waiting: it is told of when all the rest is done.
    let owed = owed::drain(app).await;
    let settled = settle_due(app, now, &mut report).await;
    let settled = match late::catch_up(app).await {
        Ok(ended) => {
            ended.iter().for_each(|record| report.note(record));
            settled
        }
        Err(error) => settled.and(Err(error)),
    };
    let settled = settled.and(owed.map(drop)).and(owed::note_paid(app).await);
    report.expired_uploads = resumable::sweep(app, now).await?;
    remove_all_doomed(app, &mut report).await?;
    while !app.is_stopping() {
        let tidied = app.index.tidy(STEP, now).await?;
        report.tidied += tidied as u64;
        if tidied < STEP {
            break;
        }
    }
    match leftovers::take_back(app, now).await {
        Ok(left) => app.metrics.left_over(left),
        Err(error) => warn!(error = %error, "what uploads have left was not looked for: {error}"),
    }
    match strays::announce(app, now).await {
        Ok(found) => report.strays = found.announced,
        Err(error) => warn!(error = %error, "bytes without a row were not looked for: {error}"),
    }
    app.metrics.swept();
    app.metrics.expired(report.expired);
    app.metrics.blobs_removed(report.removed_blobs, report.failed_blobs);
    if report != (Report { kept: report.kept, ..Report::default() }) {
        info!(
            expired = report.expired,
            expired_bytes = report.expired_bytes,
            erased = report.erased,
            removed_blobs = report.removed_blobs,
            failed_blobs = report.failed_blobs,
            expired_uploads = report.expired_uploads,
            dropped = report.dropped,
            "swept: {} assets ended, {} blobs removed",
            report.expired,
            report.removed_blobs
        );
    }
    settled.map(|()| report)
}

async fn settle_due(app: &App, now: Timestamp, report: &mut Report) -> Result<(), StorageError> {
    let mut outcome = Ok(());
    loop {
        let due = app.index.due(now, STEP).await?;
        let mut settled = 0;
        for some in due.chunks(app.blobs.side_by_side()) {
            if app.is_stopping() {
                return outcome;
            }
            for part in join_all(some.iter().map(|look| settle(app, look, "sweep", now))).await {
                match part {
                    Ok(part) => {
                        settled += 1;
                        report.add(part);
                    }
                    Err(error) => {
                        warn!(error = %error, "something that is due could not be looked at; the next sweep tries again: {error}");
                        outcome = Err(error);
                    }
                }
            }
        }
        // Nothing is left, or nothing but what fails.
        if settled == 0 {
            return outcome;
        }
    }
}

impl Report {
    /// Counts an asset that has ended.
    fn note(&mut self, record: &AssetRecord) {
        match record.state {
            AssetState::Erased { .. } => self.erased += 1,
            _ => {
                self.expired += 1;
                self.expired_bytes += record.bytes;
            }
        }
    }

    fn add(&mut self, part: Self) {
        self.expired += part.expired;
        self.expired_bytes += part.expired_bytes;
        self.erased += part.erased;
        self.kept += part.kept;
        self.dropped += part.dropped;
    }
}

/// Settles one look to its end, for `principal`.
pub async fn settle(app: &App, look: &Look, principal: &str, now: Timestamp) -> Result<Report, StorageError> {
    let terms = app.terms(&look.tenant);
    let mut report = Report::default();
    loop {
        let settled = app.index.settle(look, STEP, &terms, principal, now).await?;
        fault::point(if settled.dropped.is_empty() { "sweep.ended" } else { "sweep.dropped" });
        for record in &settled.expired {
            app.rows.changed(record.id);
            report.expired += 1;
            report.expired_bytes += record.bytes;
        }
        for record in &settled.erased {
            app.rows.changed(record.id);
            report.erased += 1;
        }
        let ended: Vec<_> = settled.expired.iter().chain(&settled.erased).collect();
        for some in ended.chunks(app.blobs.side_by_side()) {
            join_all(some.iter().map(|record| put_end_record(app, record))).await;
        }
        for asset in &settled.dropped {
            app.rows.changed(*asset);
            forget(app, &look.tenant, *asset).await;
        }
        for (run, id) in &settled.unquoted {
            runs::unquoted(app, &look.tenant, run, *id).await;
        }
        if let LookAt::Run(run) = &look.at {
            for (id, number) in &settled.artifacts {
                artifacts::forget(app, &look.tenant, run, id, *number).await;
            }
        }
        report.kept += settled.kept as u64;
        report.dropped += settled.dropped.len() as u64;
        // What a stop leaves of a large run is due as before.
        if settled.done || app.is_stopping() {
            return Ok(report);
        }
    }
}

/// Removes the bytes of whatever is doomed, and of nothing that another sweep is removing.
async fn remove_all_doomed(app: &App, report: &mut Report) -> Result<(), StorageError> {
    let Some(_turn) = turn(app).await? else {
        info!("another sweep removes bytes; what it leaves is for the next");
        return Ok(());
    };
    while !app.is_stopping() {
        let (removed, failed) = remove_doomed(app).await?;
        report.removed_blobs += removed;
        report.failed_blobs = failed;
        if removed == 0 {
            break;
        }
    }
    Ok(())
}

/// So long a sweep waits for the turn of another to end: mostly that removes what this one would.
const TURN: Duration = Duration::from_secs(60);

/// So often it looks whether it has ended.
const TURN_LOOK: Duration = Duration::from_millis(50);

async fn turn(app: &App) -> Result<Option<RemovalTurn>, StorageError> {
    let began = Instant::now();
    loop {
        let turn = app.index.removal_turn().await?;
        if turn.is_some() || app.is_stopping() || began.elapsed() >= TURN {
            return Ok(turn);
        }
        tokio::time::sleep(TURN_LOOK).await;
    }
}

/// Takes a step of the blobs whose time has come out of reach and removes their bytes. Returns how many went and how many could not.
async fn remove_doomed(app: &App) -> Result<(u64, u64), StorageError> {
    let doomed = take_doomed(app).await?;
    if !doomed.is_empty() {
        fault::point("sweep.doomed");
    }
    let (mut removed, mut failed) = (0, 0);
    for some in doomed.chunks(app.blobs.side_by_side()) {
        for gone in try_join_all(some.iter().map(|doomed| remove(app, doomed))).await? {
            match gone {
                true => removed += 1,
                false => failed += 1,
            }
        }
    }
    Ok((removed, failed))
}

/// Removes the bytes of this one blob, if its time has come; `false`: the store would not.
pub async fn remove_at_once(app: &App, wanted: &Doomed) -> Result<bool, StorageError> {
    if app.index.doom_one(&wanted.tenant, wanted.blob, app.now()).await? {
        return remove(app, wanted).await;
    }
    Ok(true)
}

async fn take_doomed(app: &App) -> Result<Vec<Doomed>, StorageError> {
    let now = app.now();
    app.index.doom(silent_since(app, now), STEP, now).await
}

/// An upload that is still alive says so three times within this time.
const SIGNS_OF_LIFE: SignedDuration = SignedDuration::from_secs(60);

/// An upload that has shown no life since then is nobody's any more.
fn silent_since(app: &App, now: Timestamp) -> Timestamp {
    let alone_since = (!app.shares_index()).then_some(app.started_at);
    nobodys_since(app.settings.retention.orphan_grace.0, alone_since, now)
}

/// However short the grace: what another process has begun may go on, and shows life in its time. Of an index that no other process has,
/// whatever was silent since this one began is nobody's, and only its own go on.
fn nobodys_since(grace: SignedDuration, alone_since: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let patient = after(now, -grace.max(SIGNS_OF_LIFE));
    alone_since.map_or(patient, |since| after(now, -grace).min(since).max(patient))
}

/// Says whether the bytes are gone, and what an upload that came to nothing has left beside them.
async fn remove(app: &App, doomed: &Doomed) -> Result<bool, StorageError> {
    match remove_from_store(app, doomed).await {
        Ok(()) => {
            fault::point("sweep.removed");
            app.index.forget(doomed).await?;
            Ok(true)
        }
        Err(error) => {
            warn!(blob.key = %doomed.blob, error = %error, "a blob could not be removed; the next sweep tries again");
            Ok(false)
        }
    }
}

async fn remove_from_store(app: &App, doomed: &Doomed) -> Result<(), StorageError> {
    let tenant = &doomed.tenant;
    // An asset that never was; one that has a row was made of other bytes than these, and keeps its records.
    if let Some(asset) = doomed.asset
        && app.index.find(tenant, asset).await?.is_none()
    {
        app.blobs.remove_records(tenant, RecordOf::Asset(asset), None).await?;
    }
    app.blobs.remove(tenant, doomed.blob).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_of_another_process_is_nobodys_only_once_its_signs_of_life_have_stopped() {
        let at = |second| Timestamp::from_second(second).expect("a time in range");
        for (grace, alone_since, right) in [
            // Others have the index too: three signs of life are waited for, whenever this process began.
            (0, None, 940),
            (20, None, 940),
            (60, None, 940),
            (3_600, None, -2_600),
            // Nobody else has it: what was silent before this process began is nobody's.
            (0, Some(990), 990),
            (20, Some(990), 980),
            (0, Some(100), 940),
            (3_600, Some(990), -2_600),
        ] {
            let found = nobodys_since(SignedDuration::from_secs(grace), alone_since.map(at), at(1_000));
            assert_eq!(found, at(right), "grace {grace}, alone since {alone_since:?}");
        }
    }
}
