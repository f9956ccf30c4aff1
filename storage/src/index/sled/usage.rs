//! What a tenant uses: a sum of its live assets, and what is reserved for its uploads.
//!
//! The sum is kept by the transitions that make and end assets; there is one writer, so it costs a row in a group that is written
//! anyway. A tenant of whom no sum is kept, because an earlier version wrote its rows, is counted the first time.
//!
//! A reservation is a row of its own beside the announcement, and goes with it. They are added up when somebody asks: there are as
//! many as uploads in progress.

use serde::{Deserialize, Serialize};

use super::blobs;
use super::draft::{Draft, Rows};
use super::keys::{Key, Space};
use super::rows::{AssetRow, BlobEntry};
use crate::error::StorageError;
use crate::ids::{BlobKey, TenantId};
use crate::index::codec::{corrupt, decode};
use crate::quota::{Counted, Quota, Reserved, Usage};
use crate::record::{AssetRecord, UploadIntent};

/// What a tenant's live assets come to.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Sum {
    bytes: u64,
    assets: u64,
}

/// Announces the upload with a reservation.
pub(super) fn begin(
    draft: &mut Draft,
    tenant: &TenantId,
    intent: &UploadIntent,
    bytes: u64,
    quota: Quota,
) -> Result<Reserved, StorageError> {
    let there = draft.rows().blob(tenant, intent.blob)?;
    if there.as_ref().is_some_and(|entry| !entry.is_announced()) {
        return Ok(Reserved::UploadLost);
    }
    let reserved = put(draft, tenant, intent.blob, bytes, quota)?;
    if reserved == Reserved::Done {
        blobs::begin(draft, tenant, intent)?;
    }
    Ok(reserved)
}

/// Has an announced upload's reservation grow.
pub(super) fn reserve(
    draft: &mut Draft,
    tenant: &TenantId,
    blob: BlobKey,
    bytes: u64,
    quota: Quota,
) -> Result<Reserved, StorageError> {
    if !draft.rows().blob(tenant, blob)?.as_ref().is_some_and(BlobEntry::is_announced) {
        return Ok(Reserved::UploadLost);
    }
    put(draft, tenant, blob, bytes, quota)
}

/// Has a reservation grow, or makes it, if the quota leaves as much.
pub(super) fn put(
    draft: &mut Draft,
    tenant: &TenantId,
    blob: BlobKey,
    bytes: u64,
    quota: Quota,
) -> Result<Reserved, StorageError> {
    let key = Key::reserved(tenant, blob);
    let before = draft.rows().get(&key)?.map(|raw| number(&raw)).transpose()?;
    if quota.is_bounded() && !quota.allows(&draft.rows().usage(tenant)?, before, bytes) {
        return Ok(Reserved::OverQuota);
    }
    if before.is_none_or(|before| bytes > before) {
        draft.put_raw(key, &bytes.to_be_bytes());
    }
    Ok(Reserved::Done)
}

impl Draft {
    /// A live asset counts from now on; its row is yet to be written.
    pub(super) fn charge(&mut self, record: &AssetRecord) -> Result<(), StorageError> {
        let Sum { bytes, assets } = self.rows().sum(&record.tenant)?;
        let sum = Sum { bytes: bytes.saturating_add(record.bytes), assets: assets + 1 };
        self.put(Key::of(Space::Usage, &record.tenant), &sum);
        Ok(())
    }

    /// An asset that is about to end counts no more, if it did; its row is yet to be written.
    pub(super) fn discharge(&mut self, record: &AssetRecord) -> Result<(), StorageError> {
        if !record.is_live() {
            return Ok(());
        }
        let Sum { bytes, assets } = self.rows().sum(&record.tenant)?;
        // A sum that is wrong is for `verify` to tell of, not for an end to fail by.
        let sum = Sum { bytes: bytes.saturating_sub(record.bytes), assets: assets.saturating_sub(1) };
        self.put(Key::of(Space::Usage, &record.tenant), &sum);
        Ok(())
    }
}

impl Rows<'_> {
    /// What the tenant uses.
    pub(super) fn usage(self, tenant: &TenantId) -> Result<Usage, StorageError> {
        let Sum { bytes, assets } = self.sum(tenant)?;
        self.with_reserved(tenant, bytes, assets)
    }

    /// The same, and what a count comes to.
    pub(super) fn counted_usage(self, tenant: &TenantId) -> Result<Counted, StorageError> {
        let Sum { bytes, assets } = self.count(tenant)?;
        Ok(Counted { kept: self.usage(tenant)?, counted: self.with_reserved(tenant, bytes, assets)? })
    }

    fn with_reserved(self, tenant: &TenantId, bytes: u64, assets: u64) -> Result<Usage, StorageError> {
        let mut usage = Usage { bytes, assets, ..Usage::default() };
        for row in self.scan(&Key::of(Space::Reserved, tenant)) {
            usage.reserved_bytes = usage.reserved_bytes.saturating_add(number(&row?.1)?);
            usage.reserved_assets += 1;
        }
        Ok(usage)
    }

    fn sum(self, tenant: &TenantId) -> Result<Sum, StorageError> {
        match self.read("usage", &Key::of(Space::Usage, tenant))? {
            Some(sum) => Ok(sum),
            None => self.count(tenant),
        }
    }

    fn count(self, tenant: &TenantId) -> Result<Sum, StorageError> {
        let mut sum = Sum::default();
        for row in self.scan(&Key::of(Space::Assets, tenant)) {
            let record = decode::<AssetRow>("asset", &row?.1)?.record;
            if record.is_live() {
                sum = Sum { bytes: sum.bytes.saturating_add(record.bytes), assets: sum.assets + 1 };
            }
        }
        Ok(sum)
    }
}

fn number(raw: &[u8]) -> Result<u64, StorageError> {
    let bytes = raw.try_into().map_err(|_| corrupt("reservation: not a number".into()))?;
    Ok(u64::from_be_bytes(bytes))
}
