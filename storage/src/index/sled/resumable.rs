//! Uploads in parts.
//!
//! What is reserved for one is a row of its own, beside which no blob is announced: it counts like any other. The
//! row that says when an upload is looked at moves with the upload's own.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::draft::{Draft, Rows};
use super::keys::{Key, Parts, Space};
use super::{blobs, ingest, usage};
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, TenantId, UploadId};
use crate::index::codec::{corrupt, decode};
use crate::index::{NewAsset, Published};
use crate::quota::{Quota, Reserved};
use crate::resumable::{Cleared, Joining, KeptFor, Lease, Leased, Opened, Part, Resumable, Seen};
use crate::retention::Terms;

/// A part; where it begins stands in its key.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct PartRow {
    offset: u64,
    bytes: u64,
    blob: BlobKey,
}

impl From<PartRow> for Part {
    fn from(PartRow { offset, bytes, blob }: PartRow) -> Self {
        Self { offset, bytes, blob }
    }
}

/// Begins an upload with what is reserved for it.
pub(super) fn begin(
    draft: &mut Draft,
    tenant: &TenantId,
    upload: &Resumable,
    bytes: u64,
    most: u64,
    quota: Quota,
) -> Result<Opened, StorageError> {
    let usage = draft.rows().usage(tenant)?;
    if usage.reserved_assets >= most {
        return Ok(Opened::TooMany);
    }
    if !quota.allows(&usage, None, bytes) {
        return Ok(Opened::OverQuota);
    }
    usage::reserve_in_parts(draft, tenant, upload.id, bytes, quota)?;
    draft.put_resumable(tenant, None, upload);
    Ok(Opened::Done)
}

/// The upload, unless it has ended.
pub(super) fn find(rows: Rows<'_>, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, StorageError> {
    Ok(row(rows, tenant, id)?.filter(|row| !row.has_ended()))
}

/// Its parts, in order.
pub(super) fn parts(
    rows: Rows<'_>,
    tenant: &TenantId,
    id: UploadId,
    from: u64,
    limit: usize,
) -> Result<Vec<Part>, StorageError> {
    let before = from.checked_sub(1).map(|before| Key::resumable_part(tenant, id, before));
    let rows = rows.scan_after(&Key::resumable_parts(tenant, id), before.as_ref()).take(limit);
    rows.map(|row| decode::<PartRow>("part of an upload", &row?.1).map(Part::from)).collect()
}

/// Gives the right to write.
pub(super) fn lease(
    draft: &mut Draft,
    tenant: &TenantId,
    id: UploadId,
    lease: Lease,
    now: Timestamp,
) -> Result<Leased, StorageError> {
    let Some(before) = find(draft.rows(), tenant, id)? else {
        return Ok(Leased::Unknown);
    };
    let Some(after) = before.leased(lease, now) else {
        return Ok(Leased::Taken);
    };
    draft.put_resumable(tenant, Some(&before), &after);
    Ok(Leased::Yours(Box::new(after)))
}

/// Gives the lease back.
pub(super) fn release(
    draft: &mut Draft,
    tenant: &TenantId,
    id: UploadId,
    holder: [u8; 16],
) -> Result<(), StorageError> {
    if let Some(before) = row(draft.rows(), tenant, id)?
        && let Some(after) = before.released(holder)
    {
        draft.put_resumable(tenant, Some(&before), &after);
    }
    Ok(())
}

/// Reserves more, and says the length.
pub(super) fn extend(
    draft: &mut Draft,
    tenant: &TenantId,
    upload: &Joining,
    bytes: u64,
    length: Option<u64>,
    quota: Quota,
) -> Result<Reserved, StorageError> {
    let Some(before) = find(draft.rows(), tenant, upload.upload)? else {
        return Ok(Reserved::UploadLost);
    };
    let Some(after) = before.with_length(upload.holder, length) else {
        return Ok(Reserved::UploadLost);
    };
    let reserved = usage::reserve_in_parts(draft, tenant, upload.upload, bytes, quota)?;
    if reserved == Reserved::Done && after != before {
        draft.put_resumable(tenant, Some(&before), &after);
    }
    Ok(reserved)
}

/// Makes the announced blob the next part.
pub(super) fn append(
    draft: &mut Draft,
    tenant: &TenantId,
    upload: &Joining,
    part: &Part,
    kept: KeptFor,
) -> Result<Option<Resumable>, StorageError> {
    let Some(before) = find(draft.rows(), tenant, upload.upload)? else {
        return Ok(None);
    };
    let Some(after) = before.appended(upload.holder, part, kept) else {
        return Ok(None);
    };
    if !blobs::hold_part(draft, tenant, part.blob, part.bytes)? {
        return Ok(None);
    }
    let Part { offset, bytes, blob } = *part;
    draft.put(Key::resumable_part(tenant, before.id, offset), &PartRow { offset, bytes, blob });
    draft.put_resumable(tenant, Some(&before), &after);
    Ok(Some(after))
}

/// Publishes what was made of an upload, and finishes it.
pub(super) fn publish(
    draft: &mut Draft,
    tenant: &TenantId,
    asset: NewAsset,
    upload: &Joining,
    terms: &Terms,
    now: Timestamp,
) -> Result<Published, StorageError> {
    let id = asset.record.id;
    let Some(before) = find(draft.rows(), tenant, upload.upload)? else {
        return Ok(Published::UploadLost);
    };
    let mut ready = before.finished(upload.holder, id, now).is_some();
    for piece in before.pieces() {
        ready &= find(draft.rows(), tenant, *piece)?.is_some_and(|piece| piece.is_ready_piece());
    }
    if !ready {
        return Ok(Published::UploadLost);
    }
    let published = ingest::publish(draft, tenant, asset, terms, now)?;
    if matches!(published, Published::Stored(_) | Published::Shared(_)) {
        finish(draft, tenant, upload, id, now)?;
    }
    Ok(published)
}

/// Finishes the upload, and ends the pieces that it was joined of.
pub(super) fn finish(
    draft: &mut Draft,
    tenant: &TenantId,
    upload: &Joining,
    asset: AssetId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let Some(before) = find(draft.rows(), tenant, upload.upload)? else {
        return Ok(false);
    };
    let Some(after) = before.finished(upload.holder, asset, now) else {
        return Ok(false);
    };
    for piece in before.pieces() {
        if let Some(piece) = find(draft.rows(), tenant, *piece)? {
            draft.end_resumable(tenant, &piece, now)?;
        }
    }
    usage::release_in_parts(draft, tenant, before.id)?;
    draft.put_resumable(tenant, Some(&before), &after);
    Ok(true)
}

/// Ends the upload.
pub(super) fn end(
    draft: &mut Draft,
    tenant: &TenantId,
    upload: &Joining,
    now: Timestamp,
) -> Result<bool, StorageError> {
    match find(draft.rows(), tenant, upload.upload)?.filter(|row| row.is_held_by(upload.holder)) {
        Some(before) => {
            draft.end_resumable(tenant, &before, now)?;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// What is to be looked at.
pub(super) fn due(rows: Rows<'_>, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, UploadId)>, StorageError> {
    let (queue, end) = (Key::space(Space::ResumableLooks), Key::behind_time(Space::ResumableLooks, now));
    rows.scan_until(&queue, &end).take(limit).map(|row| Parts::of(&row?.0).resumable_look()).collect()
}

/// Looks at the upload, and condemns parts of one that is over.
pub(super) fn clear(
    draft: &mut Draft,
    tenant: &TenantId,
    id: UploadId,
    limit: usize,
    now: Timestamp,
) -> Result<Cleared, StorageError> {
    let Some(before) = row(draft.rows(), tenant, id)? else {
        return Ok(Cleared::default());
    };
    let (over, expired) = match before.seen(now) {
        Seen::Stays => return Ok(Cleared::default()),
        Seen::Later(after) => {
            draft.put_resumable(tenant, Some(&before), &after);
            return Ok(Cleared::default());
        }
        Seen::Over(over, was_open) => (over, was_open),
    };
    let found = parts(draft.rows(), tenant, id, 0, limit.saturating_add(1))?;
    let more = found.len() > limit;
    let mut condemned = Vec::new();
    for part in found.into_iter().take(limit) {
        blobs::release(draft, tenant, part.blob, now)?;
        draft.delete(Key::resumable_part(tenant, id, part.offset));
        condemned.push(part.blob);
    }
    if expired {
        usage::release_in_parts(draft, tenant, id)?;
    }
    match if more { Some(over) } else { over.cleared(now) } {
        Some(after) => draft.put_resumable(tenant, Some(&before), &after),
        None => {
            draft.delete(Key::resumable_look(before.look_at, tenant, id));
            draft.delete(Key::resumable(tenant, id));
        }
    }
    Ok(Cleared { condemned, more, expired })
}

impl Draft {
    fn put_resumable(&mut self, tenant: &TenantId, before: Option<&Resumable>, after: &Resumable) {
        let moved = before.map(|before| before.look_at) != Some(after.look_at);
        if let Some(before) = before.filter(|_| moved) {
            self.delete(Key::resumable_look(before.look_at, tenant, before.id));
        }
        if moved {
            self.mark(Key::resumable_look(after.look_at, tenant, after.id));
        }
        self.put(Key::resumable(tenant, after.id), after);
    }

    fn end_resumable(&mut self, tenant: &TenantId, before: &Resumable, now: Timestamp) -> Result<(), StorageError> {
        usage::release_in_parts(self, tenant, before.id)?;
        self.put_resumable(tenant, Some(before), &before.ended(now));
        Ok(())
    }
}

fn row(rows: Rows<'_>, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, StorageError> {
    let found: Option<Resumable> = rows.read("upload in parts", &Key::resumable(tenant, id))?;
    match found {
        Some(row) if row.id != id => Err(corrupt(format!("upload in parts: {id} has the row of {}", row.id))),
        found => Ok(found),
    }
}
