//! What was begun in the store and came to nothing, and of which the index knows nothing any more.
//!
//! An upload is announced in the index before its first byte, and whoever takes it back, or dooms it, takes away what it has left. But an
//! index that was made anew knows of no announcement, a copy that was cut off had none, and a store may do what it says it did not. So
//! the store is asked too: what has lain there for a day, neither sealed nor taken back, and has no row, is nobody's.

use futures_util::TryStreamExt;
use jiff::SignedDuration;
use mediakeep_storage::index::BlobRow;
use mediakeep_storage::retention::after;
use mediakeep_storage::{AssetIndex, BlobKey, StorageError, TenantId, Timestamp};
use tracing::{info, warn};

use crate::app::App;

/// What is younger may be an upload that goes on, whatever the clocks of store and service say.
const A_DAY: SignedDuration = SignedDuration::from_hours(24);

/// Takes back what is nobody's; says how much of what is older than a day is there all the same.
pub async fn take_back(app: &App, now: Timestamp) -> Result<u64, StorageError> {
    let before = after(now, -A_DAY.max(app.settings.retention.orphan_grace.0));
    let mut left = 0;
    let mut unsealed = app.blobs.unsealed();
    while let Some(found) = unsealed.try_next().await? {
        if app.is_stopping() {
            break;
        }
        if found.since >= before {
            continue;
        }
        if has_row(&*app.index, &found.tenant, found.blob).await? {
            left += 1;
            continue;
        }
        match app.blobs.abort_unsealed(&found.tenant, found.blob).await {
            Ok(()) => info!(blob.key = %found.blob, "took back what an upload had left of which nobody knew any more"),
            Err(error) => {
                left += 1;
                warn!(blob.key = %found.blob, error = %error, "what an upload has left could not be taken back; the next sweep tries again");
            }
        }
    }
    Ok(left)
}

/// Whether the index knows of the blob, announced, held or doomed.
pub(super) async fn has_row(index: &dyn AssetIndex, tenant: &TenantId, blob: BlobKey) -> Result<bool, StorageError> {
    // Of the one key that has none before it nothing is known, and so nothing is taken.
    Ok(blob.to_bytes() == [0; 16] || row(index, tenant, blob).await?.is_some())
}

/// What the index knows of the blob now.
pub(super) async fn row(
    index: &dyn AssetIndex,
    tenant: &TenantId,
    blob: BlobKey,
) -> Result<Option<BlobRow>, StorageError> {
    // Rows come in the order of keys, so it is the first behind the key before it.
    let Some(before) = u128::from_be_bytes(blob.to_bytes()).checked_sub(1) else {
        return Ok(None);
    };
    let before = (tenant.clone(), BlobKey::from_bytes(before.to_be_bytes()));
    let next = index.blobs(Some(before), 1).await?.pop();
    Ok(next.filter(|row| row.tenant == *tenant && row.blob == blob))
}
