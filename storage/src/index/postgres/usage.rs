//! What a tenant uses, and what is reserved for its uploads.
//!
//! One row per tenant that every publication adds to would make all of a tenant's publications conflict: under `SERIALIZABLE`, of all
//! that meet only one commits, and the others begin again. So a publication and an end leave a row of their own, `mk_used`, which
//! nobody else writes, and the use is the sum in `mk_usage` and of these rows since. Sweeps, and whoever decides by a quota, fold them
//! into the sum. A reservation is a row too, and goes in the transition that ends its upload: a publication turns it into a row of
//! `mk_used`, so that the sum of both does not grow.
//!
//! What decides by a quota is the reservation alone. It needs nothing of serializability: it locks the tenant's row in `mk_usage`, so
//! that of those that reserve for one tenant each begins when the one before it is committed, and only then reads, in one statement of
//! `READ COMMITTED`, what is used and reserved at that moment. Whatever else is committed until it commits itself ends uploads and
//! assets, or makes an asset of what is reserved, and leaves no more than there was. So not one byte too many is given, by whatever
//! replica; and the price, uploads of one tenant that begin one after the other, is paid only by tenants with a quota.

use super::PostgresIndex;
use super::blobs;
use super::failed::Worked;
use super::rows::{AssetRow, counted as unsigned, limited, number, up};
use super::sql;
use super::tx::{Tx, read, transact};
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, TenantId};
use crate::quota::{Counted, Quota, Reserved, Usage};
use crate::record::UploadIntent;

/// So many rows are folded into their tenants' sums at a time.
const FOLD: usize = 1_000;

/// So many assets are read at a time for a count.
const PAGE: usize = 10_000;

/// Bytes, assets, reserved bytes, reservations, and one reservation.
type UsageColumns = (i64, i64, i64, i64, Option<i64>);

fn usage_of((bytes, assets, reserved_bytes, reserved_assets, own): UsageColumns) -> (Usage, Option<u64>) {
    let usage = Usage {
        bytes: unsigned(bytes),
        assets: unsigned(assets),
        reserved_bytes: unsigned(reserved_bytes),
        reserved_assets: unsigned(reserved_assets),
    };
    (usage, own.map(unsigned))
}

/// Announces the upload with a reservation.
pub(super) async fn begin(
    tx: &mut Tx,
    owner: &TenantId,
    intent: &UploadIntent,
    bytes: u64,
    quota: Quota,
) -> Worked<Reserved> {
    if !allowed(tx, owner, intent.blob, bytes, quota).await? {
        return Ok(match blobs::is_announced(tx, owner, intent.blob).await? {
            Some(false) => Reserved::UploadLost,
            _ => Reserved::OverQuota,
        });
    }
    let asset = intent.asset.map(AssetId::to_bytes);
    let query = sql::RESERVED_NEW.run().bind(owner.as_str()).bind(intent.blob.to_bytes()).bind(up(intent.alive_at));
    let query = query.bind(asset.as_ref().map(|id| id.as_slice())).bind(number(bytes));
    if query.execute(tx.on()).await?.rows_affected() == 1 {
        return Ok(Reserved::Done);
    }
    let reserved = put(tx, owner, intent.blob, bytes).await?;
    if reserved == Reserved::Done {
        blobs::begin(tx, owner, intent).await?;
    }
    Ok(reserved)
}

/// Has an announced upload's reservation grow.
pub(super) async fn reserve(
    tx: &mut Tx,
    owner: &TenantId,
    blob: BlobKey,
    bytes: u64,
    quota: Quota,
) -> Worked<Reserved> {
    if allowed(tx, owner, blob, bytes, quota).await? {
        return put(tx, owner, blob, bytes).await;
    }
    Ok(match blobs::is_announced(tx, owner, blob).await? {
        Some(true) => Reserved::OverQuota,
        _ => Reserved::UploadLost,
    })
}

async fn put(tx: &mut Tx, owner: &TenantId, blob: BlobKey, bytes: u64) -> Worked<Reserved> {
    if blobs::is_announced(tx, owner, blob).await? != Some(true) {
        return Ok(Reserved::UploadLost);
    }
    let query = sql::RESERVED_PUT.run().bind(owner.as_str()).bind(blob.to_bytes()).bind(number(bytes));
    query.execute(tx.on()).await?;
    Ok(Reserved::Done)
}

/// Whether the quota allows it; if there is one, nobody else is told so for this tenant until the transition is over.
pub(super) async fn allowed(tx: &mut Tx, owner: &TenantId, blob: BlobKey, bytes: u64, quota: Quota) -> Worked<bool> {
    if !quota.is_bounded() {
        return Ok(true);
    }
    sql::USED_FOLD.run().bind(owner.as_str()).execute(tx.on()).await?;
    // A statement of its own: the one that waited for the lock sees what there was before it waited.
    let (usage, before) = read_usage(tx, owner, blob).await?;
    Ok(quota.allows(&usage, before, bytes))
}

async fn read_usage(tx: &mut Tx, owner: &TenantId, blob: BlobKey) -> Worked<(Usage, Option<u64>)> {
    let query = sql::USAGE.rows().bind(owner.as_str()).bind(blob.to_bytes());
    Ok(usage_of(query.fetch_one(tx.on()).await?))
}

/// Assets that are about to end count no more, those of them that did.
pub(super) async fn discharge(tx: &mut Tx, owner: &TenantId, ending: &[AssetRow]) -> Worked<()> {
    let live = ending.iter().filter(|asset| asset.record.is_live());
    let bytes: u64 = live.clone().fold(0, |sum, asset| sum.saturating_add(asset.record.bytes));
    let assets = live.count();
    if assets > 0 {
        let query = sql::USED_NEW.run().bind(owner.as_str()).bind(-number(bytes)).bind(-limited(assets));
        query.execute(tx.on()).await?;
    }
    Ok(())
}

/// What the tenant uses.
pub(super) async fn usage(index: &PostgresIndex, owner: &TenantId) -> Result<Usage, StorageError> {
    let row: UsageColumns = read!(index, on => async {
        Ok(sql::USAGE.rows().bind(owner.as_str()).bind(Vec::<u8>::new()).fetch_one(on).await?)
    })?;
    Ok(usage_of(row).0)
}

/// The same, and what a count comes to, page by page of one snapshot.
pub(super) async fn counted(tx: &mut Tx, owner: &TenantId) -> Worked<Counted> {
    let query = sql::USAGE.rows().bind(owner.as_str()).bind(Vec::<u8>::new());
    let (kept, _) = usage_of(query.fetch_one(tx.on()).await?);
    let mut counted = Usage { bytes: 0, assets: 0, ..kept };
    let mut after = Vec::<u8>::new();
    loop {
        let query = sql::USAGE_WALK.rows().bind(owner.as_str()).bind(after).bind(limited(PAGE));
        let page: Vec<(Vec<u8>, Option<i64>)> = query.fetch_all(tx.on()).await?;
        for bytes in page.iter().filter_map(|(_, bytes)| *bytes) {
            counted.bytes = counted.bytes.saturating_add(unsigned(bytes));
            counted.assets += 1;
        }
        match page.into_iter().next_back() {
            Some((last, _)) => after = last,
            None => return Ok(Counted { kept, counted }),
        }
    }
}

/// Folds what publications and ends have left into their tenants' sums.
pub(super) async fn fold_all(index: &PostgresIndex) -> Result<(), StorageError> {
    loop {
        let folded: Result<usize, StorageError> = transact!(index, sql::BEGIN_BY_LOCK, tx => fold(&mut tx));
        if folded? < FOLD {
            return Ok(());
        }
    }
}

/// Those that another call folds are left to it.
async fn fold(tx: &mut Tx) -> Worked<usize> {
    let oldest: Vec<(i64,)> = sql::USED_OLDEST.rows().bind(limited(FOLD)).fetch_all(tx.on()).await?;
    let numbers: Vec<i64> = oldest.into_iter().map(|(number,)| number).collect();
    if !numbers.is_empty() {
        sql::USED_FOLD_SOME.run().bind(&numbers).execute(tx.on()).await?;
    }
    Ok(numbers.len())
}
