//! Uploads in parts.

use jiff::Timestamp;

use super::state::{Life, State};
use crate::ids::{AssetId, BlobKey, TenantId, UploadId};
use crate::index::{NewAsset, Published};
use crate::quota::{Quota, Reserved};
use crate::resumable::{Cleared, Joining, KeptFor, Lease, Leased, Opened, Part, Resumable, ResumableState, Seen};
use crate::retention::Terms;

/// An upload, what is reserved for it, and its parts.
#[derive(Debug, Clone)]
pub(super) struct InParts {
    tenant: TenantId,
    row: Resumable,
    parts: Vec<Part>,
}

impl State {
    fn in_parts(&mut self, tenant: &TenantId, id: UploadId) -> Option<&mut InParts> {
        self.in_parts.iter_mut().find(|one| one.tenant == *tenant && one.row.id == id)
    }

    /// Whether something is reserved under that key for an upload in parts.
    pub(super) fn is_open_in_parts(&self, tenant: &TenantId, key: BlobKey) -> bool {
        let own = |one: &&InParts| one.tenant == *tenant && one.row.id.reservation() == key;
        self.in_parts.iter().find(own).is_some_and(|one| one.row.state == ResumableState::Open)
    }

    pub(super) fn begin_resumable(
        &mut self,
        tenant: &TenantId,
        upload: Resumable,
        bytes: u64,
        most: u64,
        quota: Quota,
    ) -> Opened {
        let usage = self.usage(tenant);
        if usage.reserved_assets >= most {
            return Opened::TooMany;
        }
        if !quota.allows(&usage, None, bytes) {
            return Opened::OverQuota;
        }
        self.put_reservation(tenant, upload.id.reservation(), bytes);
        self.in_parts.push(InParts { tenant: tenant.clone(), row: upload, parts: Vec::new() });
        Opened::Done
    }

    pub(super) fn resumable(&self, tenant: &TenantId, id: UploadId) -> Option<&Resumable> {
        let own = self.in_parts.iter().find(|one| one.tenant == *tenant && one.row.id == id)?;
        (!own.row.has_ended()).then_some(&own.row)
    }

    pub(super) fn resumable_parts(&self, tenant: &TenantId, id: UploadId, from: u64, limit: usize) -> Vec<Part> {
        let own = self.in_parts.iter().filter(|one| one.tenant == *tenant && one.row.id == id);
        own.flat_map(|one| one.parts.iter().copied()).filter(|part| part.offset >= from).take(limit).collect()
    }

    pub(super) fn lease_resumable(&mut self, tenant: &TenantId, id: UploadId, lease: Lease, now: Timestamp) -> Leased {
        let Some(own) = self.in_parts(tenant, id).filter(|one| !one.row.has_ended()) else {
            return Leased::Unknown;
        };
        match own.row.leased(lease, now) {
            Some(row) => {
                own.row = row.clone();
                Leased::Yours(Box::new(row))
            }
            None => Leased::Taken,
        }
    }

    pub(super) fn release_resumable(&mut self, tenant: &TenantId, id: UploadId, holder: [u8; 16]) {
        if let Some(own) = self.in_parts(tenant, id)
            && let Some(row) = own.row.released(holder)
        {
            own.row = row;
        }
    }

    pub(super) fn extend_resumable(
        &mut self,
        tenant: &TenantId,
        upload: &Joining,
        bytes: u64,
        length: Option<u64>,
        quota: Quota,
    ) -> Reserved {
        let Some(row) = self.resumable(tenant, upload.upload).and_then(|row| row.with_length(upload.holder, length))
        else {
            return Reserved::UploadLost;
        };
        let key = upload.upload.reservation();
        let before = self.reservation(tenant, key);
        if !quota.allows(&self.usage(tenant), before, bytes) {
            return Reserved::OverQuota;
        }
        self.put_reservation(tenant, key, bytes.max(before.unwrap_or(0)));
        if let Some(own) = self.in_parts(tenant, upload.upload) {
            own.row = row;
        }
        Reserved::Done
    }

    pub(super) fn append_resumable(
        &mut self,
        tenant: &TenantId,
        upload: &Joining,
        part: Part,
        kept: KeptFor,
    ) -> Option<Resumable> {
        let row = self.resumable(tenant, upload.upload)?.appended(upload.holder, &part, kept)?;
        let blob = self.blob_mut(tenant, part.blob).filter(|blob| matches!(blob.life, Life::Uploading(_)))?;
        (blob.life, blob.bytes, blob.asset) = (Life::Part(None), Some(part.bytes), None);
        let own = self.in_parts(tenant, upload.upload)?;
        own.row = row.clone();
        own.parts.push(part);
        Some(row)
    }

    pub(super) fn publish_resumable(
        &mut self,
        tenant: &TenantId,
        asset: NewAsset,
        upload: &Joining,
        terms: &Terms,
        now: Timestamp,
    ) -> Published {
        let id = asset.record.id;
        if self.resumable(tenant, upload.upload).and_then(|row| row.finished(upload.holder, id, now)).is_none()
            || !self.pieces_are_ready(tenant, upload.upload)
        {
            return Published::UploadLost;
        }
        let published = self.publish(tenant, asset, terms, now);
        if matches!(published, Published::Stored(_) | Published::Shared(_)) {
            self.finish_resumable(tenant, upload, id, now);
        }
        published
    }

    fn pieces_are_ready(&self, tenant: &TenantId, id: UploadId) -> bool {
        let pieces = self.resumable(tenant, id).map(Resumable::pieces).unwrap_or_default();
        pieces.iter().all(|piece| self.resumable(tenant, *piece).is_some_and(Resumable::is_ready_piece))
    }

    pub(super) fn finish_resumable(
        &mut self,
        tenant: &TenantId,
        upload: &Joining,
        asset: AssetId,
        now: Timestamp,
    ) -> bool {
        let finished = self.resumable(tenant, upload.upload).and_then(|row| row.finished(upload.holder, asset, now));
        let Some(row) = finished else {
            return false;
        };
        for piece in row.pieces() {
            if let Some(own) = self.in_parts(tenant, *piece) {
                own.row = own.row.ended(now);
            }
        }
        if let Some(own) = self.in_parts(tenant, upload.upload) {
            own.row = row;
        }
        true
    }

    pub(super) fn end_resumable(&mut self, tenant: &TenantId, upload: &Joining, now: Timestamp) -> bool {
        match self.in_parts(tenant, upload.upload).filter(|one| one.row.is_held_by(upload.holder)) {
            Some(own) => {
                own.row = own.row.ended(now);
                true
            }
            None => false,
        }
    }

    pub(super) fn due_resumables(&self, now: Timestamp, limit: usize) -> Vec<(TenantId, UploadId)> {
        let mut due: Vec<_> = self.in_parts.iter().filter(|one| one.row.look_at <= now).collect();
        due.sort_by_key(|one| (one.row.look_at, one.tenant.clone(), one.row.id));
        due.into_iter().take(limit).map(|one| (one.tenant.clone(), one.row.id)).collect()
    }

    pub(super) fn clear_resumable(&mut self, tenant: &TenantId, id: UploadId, limit: usize, now: Timestamp) -> Cleared {
        let Some(own) = self.in_parts(tenant, id) else {
            return Cleared::default();
        };
        let expired = match own.row.seen(now) {
            Seen::Stays => return Cleared::default(),
            Seen::Later(row) => {
                own.row = row;
                return Cleared::default();
            }
            Seen::Over(row, was_open) => {
                own.row = row;
                was_open
            }
        };
        let gone: Vec<BlobKey> = own.parts.drain(..limit.min(own.parts.len())).map(|part| part.blob).collect();
        let more = !own.parts.is_empty();
        let after = if more { Some(own.row.clone()) } else { own.row.cleared(now) };
        match after {
            Some(row) => own.row = row,
            None => self.in_parts.retain(|one| one.tenant != *tenant || one.row.id != id),
        }
        for key in &gone {
            if let Some(blob) = self.blob_mut(tenant, *key) {
                blob.life = Life::Part(Some(now));
            }
        }
        Cleared { condemned: gone, more, expired }
    }
}
