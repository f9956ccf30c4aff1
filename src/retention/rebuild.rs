//! An index made anew from the store alone.
//!
//! Beside the bytes lies a record of everything that a URL's life depends on: assets with the key, time and generation of their URLs,
//! revocations, runs, forks, references, artifacts, holds, ends and erasures. What is not there is said ([`UNKNOWN`]).
//!
//! A record that does not read is named; an older one of the same thing counts in its place, if a crash has left one ([`Reading`] says why
//! that brings nothing back that was told as ended), and else the thing is left out. A live asset whose blob is not there takes another of
//! its tenant with the same bytes, which are read to be sure; one of which there are no bytes at all is named and left out. Everything else
//! comes back as it was.

use std::collections::HashSet;

use futures_util::TryStreamExt;
use mediakeep_storage::blob::{Kept, Reading, Stored, Unreadable};
use mediakeep_storage::index::{AssetQuery, Restored};
use mediakeep_storage::record::{AssetRecord, ReferenceRecord, UploadIntent};
use mediakeep_storage::{AssetId, BlobKey, RunId, StorageError, TenantId};

use self::lost::Lost;
use crate::app::App;

mod lost;

/// What a store cannot tell.
pub const UNKNOWN: [&str; 3] = [
    "the audit log: its chains begin anew",
    "idempotency keys: a request that is repeated makes a new asset",
    "delivery URLs by name: no label finds those made before, and those with a number of uses open nothing",
];

/// So many records are written at a time.
const STEP: usize = 256;

/// So many artifacts are: each may have a megabyte.
const FEW: usize = 16;

/// What a rebuild did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Tenants.
    pub tenants: u64,
    /// Runs.
    pub runs: u64,
    /// Assets, in every state.
    pub assets: u64,
    /// Records of what runs reference.
    pub references: u64,
    /// Artifacts.
    pub artifacts: u64,
    /// Holds.
    pub holds: u64,
    /// Bytes that no asset holds: they go with a sweep, after the grace for orphans.
    pub orphans: u64,
    /// Bytes that no asset holds, of tenants of whom something could not be read or was not whole: an asset's, perhaps. They stay.
    pub doubtful: u64,
    /// Records that do not read, each with the older one that counts in its place, if there is one.
    pub unreadable: Vec<Unreadable>,
    /// Live assets whose bytes are not in the store, or not all of them.
    pub without_bytes: Vec<(TenantId, AssetId)>,
    /// Live assets whose own blob is not in the store, and which have another with the same bytes now.
    pub moved: Vec<(TenantId, AssetId)>,
}

impl Report {
    fn faults(&self) -> usize {
        self.unreadable.len() + self.without_bytes.len()
    }

    /// Whether every record was read, and every live asset has its bytes.
    pub fn is_whole(&self) -> bool {
        self.faults() == 0
    }
}

/// Fills the empty index of these parts from their store.
pub async fn rebuild(app: &App) -> Result<Report, StorageError> {
    let mut report = Report::default();
    let (mut held, mut doubted) = (HashSet::new(), HashSet::new());
    for tenant in app.blobs.tenants().await? {
        let kept = app.blobs.kept(&tenant).await?;
        report.tenants += 1;
        let before = report.faults();
        report.unreadable.extend(kept.strangers());
        let forks = runs(app, &tenant, &kept, &mut report).await?;
        assets(app, &tenant, &kept, &mut report, &mut held).await?;
        references(app, &tenant, &kept, forks, &mut report).await?;
        artifacts(app, &tenant, &kept, &mut report).await?;
        holds(app, &tenant, &kept, &mut report).await?;
        revocations(app, &tenant, &kept, &mut report).await?;
        if report.faults() > before {
            doubted.insert(tenant);
        }
    }
    announce_orphans(app, &held, &doubted, &mut report).await?;
    Ok(report)
}

/// Says which of the runs are forks, and of what.
async fn runs(
    app: &App,
    tenant: &TenantId,
    kept: &Kept,
    report: &mut Report,
) -> Result<Vec<(RunId, RunId)>, StorageError> {
    let runs = readable(app.blobs.kept_runs(kept).await?, report);
    report.runs += runs.len() as u64;
    let forks = runs.iter().filter_map(|run| Some((run.id.clone(), run.fork_of.clone()?))).collect();
    write(app, tenant, runs.into_iter().map(Restored::Run).collect()).await?;
    Ok(forks)
}

async fn assets(
    app: &App,
    tenant: &TenantId,
    kept: &Kept,
    report: &mut Report,
    held: &mut HashSet<(TenantId, BlobKey)>,
) -> Result<(), StorageError> {
    let (mut after, mut lost) = (String::new(), Lost::default());
    loop {
        let page = app.blobs.kept_assets(kept, &after, STEP).await?;
        let Some((last, _)) = page.last() else {
            break;
        };
        after.clone_from(last);
        let mut restored = Vec::with_capacity(page.len());
        for record in readable(page.into_iter().map(|(_, record)| record).collect(), report) {
            let has_bytes = has_bytes(app, tenant, &record).await?;
            if has_bytes {
                held.insert((tenant.clone(), record.blob));
                lost.there(&record);
            } else if record.is_live() {
                lost.miss(record);
                continue;
            }
            restored.push(Restored::Asset { record: Box::new(record), has_bytes });
        }
        report.assets += restored.len() as u64;
        write(app, tenant, restored).await?;
    }
    let found = lost.find(app, tenant, held, report).await?;
    report.assets += found.len() as u64;
    write(app, tenant, found).await
}

async fn has_bytes(app: &App, tenant: &TenantId, record: &AssetRecord) -> Result<bool, StorageError> {
    Ok(app.blobs.size(tenant, record.blob).await? == Some(record.bytes))
}

async fn references(
    app: &App,
    tenant: &TenantId,
    kept: &Kept,
    mut forks: Vec<(RunId, RunId)>,
    report: &mut Report,
) -> Result<(), StorageError> {
    let references = readable(app.blobs.kept_references(kept).await?, report);
    report.references += references.len() as u64;
    let quoting: HashSet<&RunId> = references.iter().map(|record| &record.run).collect();
    forks.retain(|(child, _)| !quoting.contains(child));
    write(app, tenant, references.into_iter().map(Restored::References).collect()).await?;
    while !forks.is_empty() {
        // A fork of a fork comes after it.
        let children: HashSet<RunId> = forks.iter().map(|(child, _)| child.clone()).collect();
        let (later, now): (Vec<_>, Vec<_>) = forks.into_iter().partition(|(_, parent)| children.contains(parent));
        if now.is_empty() {
            return Err(StorageError::Corrupt { store: "store", reason: "runs are forks of each other".to_owned() });
        }
        for (child, parent) in now {
            inherit(app, tenant, child, parent).await?;
        }
        forks = later;
    }
    Ok(())
}

/// A fork of which nothing says what it took up: a crash came between the two records. It takes up what its parent has now, which is all
/// that it can have taken up then, or more.
async fn inherit(app: &App, tenant: &TenantId, child: RunId, parent: RunId) -> Result<(), StorageError> {
    let terms = app.terms(tenant);
    let mut query = AssetQuery { run: Some(parent), limit: STEP, ..AssetQuery::default() };
    loop {
        let page = app.index.page(tenant, &query, &terms).await?;
        let assets: Vec<AssetId> = page.iter().map(|view| view.record.id).collect();
        let Some(last) = assets.last() else {
            return Ok(());
        };
        query.after = Some(*last);
        let quoted = ReferenceRecord { run: child.clone(), assets, at: app.now() };
        write(app, tenant, vec![Restored::References(quoted)]).await?;
    }
}

async fn artifacts(app: &App, tenant: &TenantId, kept: &Kept, report: &mut Report) -> Result<(), StorageError> {
    let mut after = String::new();
    loop {
        let page = app.blobs.kept_artifacts(kept, &after, FEW).await?;
        let Some((last, _)) = page.last() else {
            return Ok(());
        };
        after.clone_from(last);
        let artifacts = readable(page.into_iter().map(|(_, artifact)| artifact).collect(), report);
        report.artifacts += artifacts.len() as u64;
        write(app, tenant, artifacts.into_iter().map(|artifact| Restored::Artifact(Box::new(artifact))).collect())
            .await?;
    }
}

async fn holds(app: &App, tenant: &TenantId, kept: &Kept, report: &mut Report) -> Result<(), StorageError> {
    let holds = readable(app.blobs.kept_holds(kept).await?, report);
    report.holds += holds.len() as u64;
    write(app, tenant, holds.into_iter().map(|(on, hold)| Restored::Hold { on, hold }).collect()).await
}

async fn revocations(app: &App, tenant: &TenantId, kept: &Kept, report: &mut Report) -> Result<(), StorageError> {
    let epochs = readable(app.blobs.kept_epochs(kept).await?, report);
    write(app, tenant, epochs.into_iter().map(Restored::Epoch).collect()).await?;
    let revoked = readable(app.blobs.kept_revoked(kept).await?, report);
    let urls = revoked.into_iter().flat_map(|record| record.urls);
    let revoked = urls.map(|(url_id, keep_until)| Restored::Revoked { url_id, keep_until });
    write(app, tenant, revoked.collect()).await
}

/// Announces bytes that no asset holds as uploads that have just fallen silent, so that the sweep takes them in its own time. Where a
/// record did not read, whose the bytes are is not known, and nothing is announced.
async fn announce_orphans(
    app: &App,
    held: &HashSet<(TenantId, BlobKey)>,
    doubted: &HashSet<TenantId>,
    report: &mut Report,
) -> Result<(), StorageError> {
    let mut stored = app.blobs.blobs();
    while let Some(Stored { tenant, blob, .. }) = stored.try_next().await? {
        if held.contains(&(tenant.clone(), blob)) {
            continue;
        }
        if doubted.contains(&tenant) {
            report.doubtful += 1;
        } else {
            report.orphans += 1;
            announce_orphan(app, &tenant, blob).await?;
        }
    }
    Ok(())
}

/// Announces a blob of which the index knows nothing as an upload that has just fallen silent; of one that has a row by now, nothing changes.
pub(super) async fn announce_orphan(app: &App, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
    app.index.begin_upload(tenant, UploadIntent { blob, alive_at: app.now(), asset: None }).await
}

/// What they say; what does not read is named in the report.
fn readable<T>(readings: Vec<Reading<T>>, report: &mut Report) -> Vec<T> {
    let mut good = Vec::with_capacity(readings.len());
    for Reading { record, unreadable } in readings {
        good.extend(record);
        report.unreadable.extend(unreadable);
    }
    good
}

async fn write(app: &App, tenant: &TenantId, what: Vec<Restored>) -> Result<(), StorageError> {
    let (terms, now) = (app.terms(tenant), app.now());
    let mut rest = what.into_iter().peekable();
    while rest.peek().is_some() {
        app.index.restore(tenant, rest.by_ref().take(STEP).collect(), &terms, now).await?;
    }
    Ok(())
}
