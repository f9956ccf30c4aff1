//! Live assets whose blob is not in the store, and where else the same bytes lie.
//!
//! A record names the blob that its asset was about to share; a crash, or a file that was lost, may leave the same bytes in another blob
//! alone. What has the digest by its record, or the size and no record at all, is read: only bytes that have the digest are given.

use std::collections::{BTreeSet, HashSet};

use futures_util::TryStreamExt;
use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::index::Restored;
use mediakeep_storage::record::AssetRecord;
use mediakeep_storage::{BlobKey, Digest, StorageError, TenantId};

use super::Report;
use crate::app::App;
use crate::retention::verify;

/// What one tenant has lost, and what it has.
#[derive(Debug, Default)]
pub(super) struct Lost {
    records: Vec<AssetRecord>,
    /// Blobs that are there, by the digest that a record says: about 50 bytes of memory for each asset.
    there: BTreeSet<(Digest, BlobKey)>,
}

impl Lost {
    /// The record's bytes are there.
    pub(super) fn there(&mut self, record: &AssetRecord) {
        if record.sha256 != Digest::ERASED {
            self.there.insert((record.sha256, record.blob));
        }
    }

    /// The record's bytes are not there.
    pub(super) fn miss(&mut self, record: AssetRecord) {
        self.records.push(record);
    }

    /// Gives each what has the same bytes, and its record says so from then on; those that there is nothing for are named.
    pub(super) async fn find(
        mut self,
        app: &App,
        tenant: &TenantId,
        held: &mut HashSet<(TenantId, BlobKey)>,
        report: &mut Report,
    ) -> Result<Vec<Restored>, StorageError> {
        let mut found = Vec::new();
        if self.records.is_empty() {
            return Ok(found);
        }
        let unnamed = unnamed(app, tenant, held).await?;
        for record in std::mem::take(&mut self.records) {
            // Whatever the record says: it lies in this tenant's folder.
            let record = AssetRecord { tenant: tenant.clone(), ..record };
            let Some(blob) = self.same(app, &record, &unnamed).await? else {
                report.without_bytes.push((tenant.clone(), record.id));
                continue;
            };
            let record = AssetRecord { blob, ..record };
            let json = serde_json::to_vec(&record).expect("a row can be written");
            app.blobs.put_record(tenant, RecordOf::Asset(record.id), record.revision, json).await?;
            held.insert((tenant.clone(), blob));
            self.there(&record);
            report.moved.push((tenant.clone(), record.id));
            found.push(Restored::Asset { record: Box::new(record), has_bytes: true });
        }
        Ok(found)
    }

    /// A blob that has the record's bytes, every one of them looked at.
    async fn same(
        &self,
        app: &App,
        record: &AssetRecord,
        unnamed: &[(BlobKey, u64)],
    ) -> Result<Option<BlobKey>, StorageError> {
        let (first, last) = (BlobKey::from_bytes([0; 16]), BlobKey::from_bytes([u8::MAX; 16]));
        let said = self.there.range((record.sha256, first)..=(record.sha256, last)).map(|(_, blob)| *blob);
        let unnamed = unnamed.iter().filter(|(_, bytes)| *bytes == record.bytes).map(|(blob, _)| *blob);
        for blob in said.chain(unnamed) {
            if app.blobs.size(&record.tenant, blob).await? != Some(record.bytes) {
                continue;
            }
            let tried = AssetRecord { blob, ..record.clone() };
            // One that cannot be read is none that could be given.
            if verify::digest(app, &tried).await.is_ok_and(|found| found == Some(record.sha256)) {
                return Ok(Some(blob));
            }
        }
        Ok(None)
    }
}

/// The tenant's blobs that no record names, with their sizes.
async fn unnamed(
    app: &App,
    tenant: &TenantId,
    held: &HashSet<(TenantId, BlobKey)>,
) -> Result<Vec<(BlobKey, u64)>, StorageError> {
    let (mut found, mut stored) = (Vec::new(), app.blobs.blobs());
    while let Some(one) = stored.try_next().await? {
        if one.tenant == *tenant && !held.contains(&(one.tenant, one.blob)) {
            found.push((one.blob, one.bytes));
        }
    }
    Ok(found)
}
