//! What a tenant uses: a sum of its live assets, and of what is reserved for its uploads.
//!
//! One row has both. The transitions that make and end assets and announcements keep it; there is one writer, so of a group that many
//! uploads of one tenant share only the last of these rows is written. A tenant of whom no sum is kept, because an earlier version wrote
//! its rows, is counted the first time.
//!
//! A reservation stands in the row of the announced blob, and so it ends with the announcement, however that ends; that of an upload in
//! parts, beside which no blob is announced, in a row of its own. An earlier version
//! had a row of its own for each, in a space of their own: [`take_over`] brings them here.

use super::blobs;
use super::draft::{Draft, Rows};
use super::keys::{Key, Parts, Space};
use super::packed::Row;
use super::rows::{AssetRow, BlobEntry, BlobState, Sum};
use crate::error::StorageError;
use crate::ids::{BlobKey, TenantId, UploadId};
use crate::index::codec::corrupt;
use crate::quota::{Counted, Quota, Reserved, Usage};
use crate::record::{AssetRecord, UploadIntent};

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
    if !allows(draft, tenant, quota, there.as_ref(), bytes)? {
        return Ok(Reserved::OverQuota);
    }
    blobs::announce(draft, tenant, intent, there.as_ref(), Some(bytes))?;
    Ok(Reserved::Done)
}

/// Has an announced upload's reservation grow.
pub(super) fn reserve(
    draft: &mut Draft,
    tenant: &TenantId,
    blob: BlobKey,
    bytes: u64,
    quota: Quota,
) -> Result<Reserved, StorageError> {
    let there = draft.rows().blob(tenant, blob)?;
    let Some(BlobEntry { state: BlobState::Announced { alive_at, .. }, asset, .. }) = there else {
        return Ok(Reserved::UploadLost);
    };
    if !allows(draft, tenant, quota, there.as_ref(), bytes)? {
        return Ok(Reserved::OverQuota);
    }
    blobs::announce(draft, tenant, &UploadIntent { blob, alive_at, asset }, there.as_ref(), Some(bytes))?;
    Ok(Reserved::Done)
}

/// Reserves for an upload in parts, beside which no blob is announced; or has its reservation grow.
pub(super) fn reserve_in_parts(
    draft: &mut Draft,
    tenant: &TenantId,
    id: UploadId,
    bytes: u64,
    quota: Quota,
) -> Result<Reserved, StorageError> {
    let before = draft.rows().reserved_in_parts(tenant, id)?;
    if quota.is_bounded() && !quota.allows(&draft.rows().usage(tenant)?, before, bytes) {
        return Ok(Reserved::OverQuota);
    }
    let after = bytes.max(before.unwrap_or(0));
    draft.change_reserved(tenant, before, Some(after))?;
    draft.put_raw(Key::resumable_reserved(tenant, id), &after.to_be_bytes());
    Ok(Reserved::Done)
}

/// Gives back what is reserved for an upload in parts.
pub(super) fn release_in_parts(draft: &mut Draft, tenant: &TenantId, id: UploadId) -> Result<(), StorageError> {
    let before = draft.rows().reserved_in_parts(tenant, id)?;
    draft.change_reserved(tenant, before, None)?;
    draft.delete(Key::resumable_reserved(tenant, id));
    Ok(())
}

fn allows(
    draft: &Draft,
    tenant: &TenantId,
    quota: Quota,
    upload: Option<&BlobEntry>,
    bytes: u64,
) -> Result<bool, StorageError> {
    let before = upload.and_then(BlobEntry::reserved);
    Ok(!quota.is_bounded() || quota.allows(&draft.rows().usage(tenant)?, before, bytes))
}

/// Moves reservations from where an earlier version wrote them into the rows of their blobs.
pub(super) fn take_over(draft: &mut Draft) -> Result<(), StorageError> {
    let earlier: Vec<_> = draft.rows().scan(&Key::space(Space::Reserved)).collect::<Result<_, _>>()?;
    for (key, raw) in earlier {
        let mut parts = Parts::of(&key);
        let (tenant, blob) = (parts.name()?, parts.blob()?);
        if let Some(entry) = draft.rows().blob(&tenant, blob)?
            && let BlobState::Announced { alive_at, reserved: None } = entry.state
        {
            let state = BlobState::Announced { alive_at, reserved: Some(number(&raw)?) };
            draft.put_blob(&tenant, blob, Some(&entry), &BlobEntry { state, ..entry.clone() })?;
        }
        draft.delete(Key::read(&key));
    }
    Ok(())
}

impl Draft {
    /// A live asset counts from now on; its row is yet to be written.
    pub(super) fn charge(&mut self, record: &AssetRecord) -> Result<(), StorageError> {
        let sum = self.rows().sum(&record.tenant)?;
        let (bytes, assets) = (sum.bytes.saturating_add(record.bytes), sum.assets + 1);
        self.put(Key::of(Space::Usage, &record.tenant), &Sum { bytes, assets, ..sum });
        Ok(())
    }

    /// An asset that is about to end counts no more, if it did; its row is yet to be written.
    pub(super) fn discharge(&mut self, record: &AssetRecord) -> Result<(), StorageError> {
        if !record.is_live() {
            return Ok(());
        }
        let sum = self.rows().sum(&record.tenant)?;
        // A sum that is wrong is for `verify` to tell of, not for an end to fail by.
        let (bytes, assets) = (sum.bytes.saturating_sub(record.bytes), sum.assets.saturating_sub(1));
        self.put(Key::of(Space::Usage, &record.tenant), &Sum { bytes, assets, ..sum });
        Ok(())
    }

    /// An upload has this reservation instead of that one; the row of its blob is yet to be written.
    pub(super) fn change_reserved(
        &mut self,
        tenant: &TenantId,
        before: Option<u64>,
        after: Option<u64>,
    ) -> Result<(), StorageError> {
        if before == after {
            return Ok(());
        }
        let sum = self.rows().sum(tenant)?;
        let bytes = sum.reserved_bytes.saturating_sub(before.unwrap_or(0)).saturating_add(after.unwrap_or(0));
        let assets = sum.reserved_assets.saturating_sub(before.is_some().into()) + u64::from(after.is_some());
        self.put(Key::of(Space::Usage, tenant), &Sum { reserved_bytes: bytes, reserved_assets: assets, ..sum });
        Ok(())
    }
}

impl Rows<'_> {
    /// What the tenant uses.
    pub(super) fn usage(self, tenant: &TenantId) -> Result<Usage, StorageError> {
        self.sum(tenant).map(Usage::from)
    }

    /// The same, and what a count comes to.
    pub(super) fn counted_usage(self, tenant: &TenantId) -> Result<Counted, StorageError> {
        Ok(Counted { kept: self.usage(tenant)?, counted: self.count(tenant)?.into() })
    }

    fn reserved_in_parts(self, tenant: &TenantId, id: UploadId) -> Result<Option<u64>, StorageError> {
        self.get(&Key::resumable_reserved(tenant, id))?.map(|raw| number(&raw)).transpose()
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
            let record = AssetRow::read("asset", &row?.1)?.record;
            if record.is_live() {
                sum.bytes = sum.bytes.saturating_add(record.bytes);
                sum.assets += 1;
            }
        }
        for row in self.scan(&Key::space(Space::Uploads)) {
            let (_, owner, blob) = Parts::of(&row?.0).blob_at()?;
            if owner == *tenant
                && let Some(bytes) = self.blob(tenant, blob)?.and_then(|entry| entry.reserved())
            {
                sum.reserved_bytes = sum.reserved_bytes.saturating_add(bytes);
                sum.reserved_assets += 1;
            }
        }
        for row in self.scan(&Key::of(Space::ResumableReserved, tenant)) {
            sum.reserved_bytes = sum.reserved_bytes.saturating_add(number(&row?.1)?);
            sum.reserved_assets += 1;
        }
        Ok(sum)
    }
}

impl From<Sum> for Usage {
    fn from(sum: Sum) -> Self {
        let Sum { bytes, assets, reserved_bytes, reserved_assets } = sum;
        Self { bytes, assets, reserved_bytes, reserved_assets }
    }
}

fn number(raw: &[u8]) -> Result<u64, StorageError> {
    let bytes = raw.try_into().map_err(|_| corrupt("reservation: not a number".into()))?;
    Ok(u64::from_be_bytes(bytes))
}
