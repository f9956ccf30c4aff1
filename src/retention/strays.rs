//! Sealed bytes of which the index has no row.
//!
//! They come of a store that does late what it was asked for, when the removal has been done already, and of an index that was taken from an
//! older backup. The first are nobody's; the second are everything to somebody, and the recovery records beside them say so. So what is no
//! younger than a day and has no row is looked for in its tenant's records. What none of them names is announced as an upload that has just fallen
//! silent, and goes as every such upload does, by the same transition. What one names stays, and is counted: `index rebuild` would
//! bring it back. Where a record does not read, or the bytes of a live one are missing, any of the tenant's strays may be what it names: all stay.
//!
//! It costs a list of what the store has and one of what the index has, and 16 bytes of memory for each blob of one tenant; the records of a tenant
//! are read only if it has strays.

use std::collections::HashSet;

use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use jiff::SignedDuration;
use mediakeep_storage::blob::{Kept, Reading};
use mediakeep_storage::record::{AssetRecord, AssetState};
use mediakeep_storage::retention::after;
use mediakeep_storage::{BlobKey, StorageError, TenantId, Timestamp};
use tracing::{info, warn};

use super::{leftovers, rebuild};
use crate::app::App;

/// What is younger may be on its way into the index, whatever the clocks of store and service say. And so often it is looked.
const A_DAY: SignedDuration = SignedDuration::from_hours(24);

/// So many rows or records are read at a time.
const PAGE: usize = 1_000;

/// So many artifacts are: each may have a megabyte.
const FEW: usize = 16;

/// What was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// Nobody's: they go with a sweep, after the grace for orphans.
    pub announced: u64,
    /// Named by a recovery record, or perhaps by one that does not read: they stay.
    pub staying: u64,
}

/// Looks for strays, unless this process has begun to within a day, and announces those that are nobody's.
pub async fn announce(app: &App, now: Timestamp) -> Result<Found, StorageError> {
    let mut found = Found::default();
    if !app.strays_sought.begins(A_DAY, now) {
        return Ok(found);
    }
    let before = after(now, -A_DAY.max(app.settings.retention.orphan_grace.0));
    for tenant in app.blobs.tenants().await? {
        let strays = of_tenant(app, &tenant, before).await?;
        if app.is_stopping() {
            return Ok(found);
        }
        let Sorted { nobodys, named, doubtful } = sort(app, &tenant, strays).await?;
        for blob in nobodys {
            rebuild::announce_orphan(app, &tenant, blob).await?;
            info!(tenant.id = %tenant, blob.key = %blob, "bytes of which nobody knows go after the grace for orphans");
            found.announced += 1;
        }
        found.staying += (named.len() + doubtful.len()) as u64;
        if !named.is_empty() {
            warn!(tenant.id = %tenant, blobs = named.len(), "the store has bytes and records of assets that the index does not know: `index rebuild` would bring them back");
        }
        if !doubtful.is_empty() {
            warn!(tenant.id = %tenant, blobs = doubtful.len(), "bytes without a row stay, since a recovery record does not read or misses its bytes");
        }
    }
    app.metrics.blobs_without_row(found.staying);
    Ok(found)
}

/// The tenant's sealed blobs from before that time of which the index has no row.
async fn of_tenant(app: &App, tenant: &TenantId, before: Timestamp) -> Result<Vec<BlobKey>, StorageError> {
    let known = rows_of(app, tenant).await?;
    let (mut strays, mut stored) = (Vec::new(), app.blobs.blobs_of(tenant));
    while let Some(found) = stored.try_next().await? {
        if app.is_stopping() {
            return Ok(strays);
        }
        // A row may have come since they were read.
        if found.modified < before
            && !known.contains(&found.blob)
            && !leftovers::has_row(&*app.index, tenant, found.blob).await?
        {
            strays.push(found.blob);
        }
    }
    Ok(strays)
}

/// The keys of all blobs of the tenant that the index knows.
async fn rows_of(app: &App, tenant: &TenantId) -> Result<HashSet<BlobKey>, StorageError> {
    let mut known = HashSet::new();
    let mut after = BlobKey::from_bytes([0; 16]);
    loop {
        let rows = app.index.blobs(Some((tenant.clone(), after)), PAGE).await?;
        let read = rows.len();
        let own = rows.into_iter().take_while(|row| row.tenant == *tenant).map(|row| row.blob);
        let before = known.len();
        for blob in own {
            after = blob;
            known.insert(blob);
        }
        if read < PAGE || known.len() < before + read || app.is_stopping() {
            return Ok(known);
        }
    }
}

/// A tenant's strays by what its records say of them.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// No record names them.
    pub(super) nobodys: Vec<BlobKey>,
    /// A record does.
    pub(super) named: Vec<BlobKey>,
    /// Not all that the records say is known.
    pub(super) doubtful: Vec<BlobKey>,
}

/// Sorts what has no row. Of none, no record is read.
pub(super) async fn sort(app: &App, tenant: &TenantId, strays: Vec<BlobKey>) -> Result<Sorted, StorageError> {
    let mut sorted = Sorted::default();
    if strays.is_empty() {
        return Ok(sorted);
    }
    let kept = app.blobs.kept(tenant).await?;
    let unnamed: HashSet<BlobKey> = strays.iter().copied().collect();
    let (named, whole) = named(app, tenant, &kept, &unnamed).await?;
    let whole = whole && others_read(app, &kept).await?;
    for blob in strays {
        match (named.contains(&blob), whole) {
            (true, _) => sorted.named.push(blob),
            (false, true) => sorted.nobodys.push(blob),
            (false, false) => sorted.doubtful.push(blob),
        }
    }
    Ok(sorted)
}

/// Which of the strays are named by records of assets, and whether each of these records reads and has its bytes.
async fn named(
    app: &App,
    tenant: &TenantId,
    kept: &Kept,
    strays: &HashSet<BlobKey>,
) -> Result<(HashSet<BlobKey>, bool), StorageError> {
    let (mut named, mut whole, mut after) = (HashSet::new(), true, String::new());
    loop {
        let page = app.blobs.kept_assets(kept, &after, PAGE).await?;
        let Some((last, _)) = page.last() else {
            return Ok((named, whole));
        };
        after.clone_from(last);
        if app.is_stopping() {
            return Ok((named, false));
        }
        let mut present = Vec::new();
        for (_, Reading { record, unreadable }) in page {
            whole &= unreadable.is_none();
            let Some(record) = record.filter(|record| !matches!(record.state, AssetState::Erased { .. })) else {
                continue;
            };
            if strays.contains(&record.blob) {
                if !is_over(app, tenant, &record).await? {
                    named.insert(record.blob);
                }
            } else if record.is_live() {
                present.push(record.blob);
            }
        }
        for some in present.chunks(app.blobs.side_by_side()) {
            let sizes = try_join_all(some.iter().map(|blob| app.blobs.size(tenant, *blob))).await?;
            whole &= sizes.iter().all(Option::is_some);
        }
    }
}

/// Whether the index knows that the asset has ended, and so that its bytes were removed: they have come back by themselves.
async fn is_over(app: &App, tenant: &TenantId, record: &AssetRecord) -> Result<bool, StorageError> {
    Ok(app.index.find(tenant, record.id).await?.is_some_and(|row| !row.is_live()))
}

/// Whether each record of anything else reads, and no other file lies among them.
async fn others_read(app: &App, kept: &Kept) -> Result<bool, StorageError> {
    let blobs = &app.blobs;
    let whole = kept.strangers().next().is_none()
        && all_read(&blobs.kept_runs(kept).await?)
        && all_read(&blobs.kept_references(kept).await?)
        && all_read(&blobs.kept_holds(kept).await?)
        && all_read(&blobs.kept_epochs(kept).await?)
        && all_read(&blobs.kept_revoked(kept).await?);
    if !whole {
        return Ok(false);
    }
    let mut after = String::new();
    loop {
        let page = blobs.kept_artifacts(kept, &after, FEW).await?;
        let Some((last, _)) = page.last() else {
            return Ok(true);
        };
        after.clone_from(last);
        if page.iter().any(|(_, reading)| reading.unreadable.is_some()) {
            return Ok(false);
        }
    }
}

fn all_read<T>(readings: &[Reading<T>]) -> bool {
    readings.iter().all(|reading| reading.unreadable.is_none())
}
