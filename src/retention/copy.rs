//! A store copied to another: bytes with their digests compared, records beside them, and away from the copy what is gone.
//!
//! It may be begun as often as one likes, also while the service runs: what is there already is not copied again. The last time is after the
//! service has stopped; then the copy is the store, and `store.url` may name it. Nothing in the store that is copied changes.

use std::collections::HashMap;

use futures_util::TryStreamExt;
use mediakeep_storage::blob::Copied;
use mediakeep_storage::{BlobKey, BlobStore, Digest, StorageError, TenantId};

/// What a copy did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Blobs that were copied, and their bytes.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blobs that were there already.
    pub already: u64,
    /// Records that were copied.
    pub records: u64,
    /// Objects that went from the copy because the store has them no more.
    pub removed: u64,
    /// Blobs whose bytes are not those of their record: they are not in the copy.
    pub wrong: Vec<(TenantId, BlobKey)>,
}

/// So many records are read at a time.
const STEP: usize = 256;

/// Copies what is not there yet; `told` hears of each blob.
pub async fn copy(from: &BlobStore, to: &BlobStore, mut told: impl FnMut(&Report)) -> Result<Report, StorageError> {
    let mut report = Report::default();
    to.forget_halves().await?;
    for tenant in from.tenants().await? {
        let digests = digests(from, &tenant).await?;
        let mut blobs = from.blobs_of(&tenant);
        while let Some(stored) = blobs.try_next().await? {
            match from.copy_blob(to, &stored).await? {
                Copied::Already => report.already += 1,
                Copied::Gone => (),
                Copied::Now(sealed) if digests.get(&stored.blob).is_some_and(|digest| *digest != sealed.sha256) => {
                    to.remove(&tenant, stored.blob).await?;
                    report.wrong.push((tenant.clone(), stored.blob));
                }
                Copied::Now(sealed) => {
                    report.blobs += 1;
                    report.bytes += sealed.bytes;
                }
            }
            told(&report);
        }
        report.records += from.copy_records(to, &tenant).await?;
    }
    report.removed = to.remove_what_is_not_in(from).await?;
    Ok(report)
}

/// What the tenant's records say of its blobs. A blob without a record is copied as it is: nothing says what it should be.
async fn digests(from: &BlobStore, tenant: &TenantId) -> Result<HashMap<BlobKey, Digest>, StorageError> {
    let kept = from.kept(tenant).await?;
    let (mut digests, mut after) = (HashMap::new(), String::new());
    loop {
        let page = from.kept_assets(&kept, &after, STEP).await?;
        let Some((last, _)) = page.last() else {
            return Ok(digests);
        };
        after.clone_from(last);
        let live = page.into_iter().filter_map(|(_, record)| record.record).filter(|record| record.is_live());
        digests.extend(live.map(|record| (record.blob, record.sha256)));
    }
}
