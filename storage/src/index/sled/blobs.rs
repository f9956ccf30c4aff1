//! Blobs: who holds them, when they go, and how they are taken out of reach before their bytes are touched.

use std::collections::HashSet;

use jiff::Timestamp;

use super::draft::{Draft, Rows};
use super::keys::{Key, Parts, Space};
use super::packed::Row;
use super::rows::{BlobEntry, BlobState};
use super::shared::Core;
use crate::error::StorageError;
use crate::ids::{BlobKey, Digest, TenantId};
use crate::index::BlobRow;
use crate::index::codec::corrupt;
use crate::record::{AssetRecord, Doomed, UploadIntent};
use crate::retention::{HOLD_RECHECK, after};

/// Announces the upload, or moves the time at which it last showed life.
pub(super) fn begin(draft: &mut Draft, tenant: &TenantId, intent: &UploadIntent) -> Result<(), StorageError> {
    let before = draft.rows().blob(tenant, intent.blob)?;
    announce(draft, tenant, intent, before.as_ref(), None)
}

/// The same, with so many bytes reserved, if it has not more; `before` is what it was.
pub(super) fn announce(
    draft: &mut Draft,
    tenant: &TenantId,
    intent: &UploadIntent,
    before: Option<&BlobEntry>,
    reserved: Option<u64>,
) -> Result<(), StorageError> {
    let (alive_at, reserved, asset) = match before {
        None => (intent.alive_at, reserved, intent.asset),
        Some(BlobEntry { state: BlobState::Announced { alive_at, reserved: had }, asset, .. }) => {
            (intent.alive_at.max(*alive_at), reserved.max(*had), asset.or(intent.asset))
        }
        // Published, or timed out and doomed: the announcement is over, and `publish` says so.
        Some(_) => return Ok(()),
    };
    let entry = BlobEntry { state: BlobState::Announced { alive_at, reserved }, bytes: None, sha256: None, asset };
    match before == Some(&entry) {
        true => Ok(()),
        false => draft.put_blob(tenant, intent.blob, before, &entry),
    }
}

/// Withdraws the announcement.
pub(super) fn end(draft: &mut Draft, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
    match draft.rows().blob(tenant, blob)? {
        Some(entry) if matches!(entry.state, BlobState::Announced { .. }) => draft.drop_blob(tenant, blob, &entry),
        _ => Ok(()),
    }
}

/// Where the bytes of a new asset are, now that it holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holding {
    /// In the blob that was uploaded for it.
    Own,
    /// In a blob that was there already.
    Shared(BlobKey),
    /// Nowhere: the upload's announcement is over.
    Lost,
}

/// Ends the upload of the record's blob: the asset holds it, or an equal one that is there, and then this one is discarded.
pub(super) fn hold(draft: &mut Draft, record: &AssetRecord, discard_at: Timestamp) -> Result<Holding, StorageError> {
    let (tenant, own) = (&record.tenant, record.blob);
    let Some(announced) = draft.rows().blob(tenant, own)? else {
        return Ok(Holding::Lost);
    };
    if !matches!(announced.state, BlobState::Announced { .. }) {
        return Ok(Holding::Lost);
    }
    let bytes = Some(record.bytes);
    let Some(shared) = draft.rows().shareable(tenant, &record.sha256)? else {
        let held = BlobEntry { state: BlobState::Held { holders: 1 }, bytes, sha256: Some(record.sha256), asset: None };
        draft.put_blob(tenant, own, Some(&announced), &held)?;
        draft.put_raw(Key::digest(tenant, &record.sha256), &own.to_bytes());
        return Ok(Holding::Own);
    };
    let before = existing(draft.rows(), tenant, shared)?;
    let holders = match before.state {
        BlobState::Held { holders } => holders + 1,
        BlobState::Condemned { .. } => 1,
        other => return Err(corrupt(format!("blob: {shared} is to be shared and is {other:?}"))),
    };
    draft.put_blob(
        tenant,
        shared,
        Some(&before),
        &BlobEntry { state: BlobState::Held { holders }, ..before.clone() },
    )?;
    let discarded =
        BlobEntry { state: BlobState::Discarded { remove_at: discard_at }, bytes, sha256: None, asset: None };
    draft.put_blob(tenant, own, Some(&announced), &discarded)?;
    Ok(Holding::Shared(shared))
}

/// An upload in parts holds the announced blob as one of them; says whether it was announced.
pub(super) fn hold_part(draft: &mut Draft, tenant: &TenantId, blob: BlobKey, bytes: u64) -> Result<bool, StorageError> {
    let Some(announced) = draft.rows().blob(tenant, blob)?.filter(BlobEntry::is_announced) else {
        return Ok(false);
    };
    // Without a digest: nothing shares it.
    let held = BlobEntry { state: BlobState::Held { holders: 1 }, bytes: Some(bytes), sha256: None, asset: None };
    draft.put_blob(tenant, blob, Some(&announced), &held)?;
    Ok(true)
}

/// One asset less holds the blob; the last one condemns it.
pub(super) fn release(
    draft: &mut Draft,
    tenant: &TenantId,
    blob: BlobKey,
    remove_at: Timestamp,
) -> Result<(), StorageError> {
    let before = existing(draft.rows(), tenant, blob)?;
    let state = match before.state {
        BlobState::Held { holders: 0 | 1 } => BlobState::Condemned { remove_at },
        BlobState::Held { holders } => BlobState::Held { holders: holders - 1 },
        other => return Err(corrupt(format!("blob: {blob} is held by a live asset and is {other:?}"))),
    };
    draft.put_blob(tenant, blob, Some(&before), &BlobEntry { state, ..before.clone() })
}

/// A condemned blob goes at `remove_at` at the latest; any other stays what it is.
pub(super) fn hurry(
    draft: &mut Draft,
    tenant: &TenantId,
    blob: BlobKey,
    remove_at: Timestamp,
) -> Result<(), StorageError> {
    match draft.rows().blob(tenant, blob)? {
        Some(before) if matches!(before.state, BlobState::Condemned { remove_at: later } if later > remove_at) => {
            let sooner = BlobEntry { state: BlobState::Condemned { remove_at }, ..before.clone() };
            draft.put_blob(tenant, blob, Some(&before), &sooner)
        }
        _ => Ok(()),
    }
}

/// Ends what an asset that is being erased has to do with its blob, which goes out of reach at once if nothing else needs it: says
/// whether nothing does.
pub(super) fn let_go(
    draft: &mut Draft,
    tenant: &TenantId,
    blob: BlobKey,
    was_live: bool,
    now: Timestamp,
) -> Result<bool, StorageError> {
    if was_live {
        release(draft, tenant, blob, now)?;
    } else {
        hurry(draft, tenant, blob, now)?;
    }
    let Some(entry) = draft.rows().blob(tenant, blob)? else {
        return Ok(true);
    };
    match entry.state {
        BlobState::Held { .. } => Ok(false),
        BlobState::Condemned { .. } if kept_by_hold(draft.rows(), tenant, blob, &entry)? => Ok(false),
        BlobState::Condemned { .. } => put_out_of_reach(draft, tenant, blob, &entry).map(|()| true),
        _ => Ok(true),
    }
}

/// Whether a hold keeps a dead asset that had this blob, or a run that references one.
fn kept_by_hold(rows: Rows<'_>, tenant: &TenantId, blob: BlobKey, entry: &BlobEntry) -> Result<bool, StorageError> {
    let Some(sha256) = &entry.sha256 else {
        return Ok(false);
    };
    for id in rows.same(tenant, sha256, None) {
        if let Some(row) = rows.asset(tenant, id?)?
            && row.record.blob == blob
            && rows.is_held(&row)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What was in a blob of which only a dead asset is known goes at its time, unless another asset holds it.
pub(super) fn restore_dead(draft: &mut Draft, record: &AssetRecord, remove_at: Timestamp) -> Result<(), StorageError> {
    let (tenant, blob) = (&record.tenant, record.blob);
    let sha256 = (record.sha256 != Digest::ERASED).then_some(record.sha256);
    let before = draft.rows().blob(tenant, blob)?;
    let entry = match &before {
        None => BlobEntry { state: BlobState::Condemned { remove_at }, bytes: Some(record.bytes), sha256, asset: None },
        Some(entry) => match entry.state {
            BlobState::Condemned { remove_at: other } if sha256.is_some() => {
                let state = BlobState::Condemned { remove_at: other.max(remove_at) };
                BlobEntry { state, sha256, ..entry.clone() }
            }
            _ => return Ok(()),
        },
    };
    draft.put_blob(tenant, blob, before.as_ref(), &entry)?;
    if let Some(sha256) = &sha256
        && draft.rows().shareable(tenant, sha256)?.is_none()
    {
        draft.put_raw(Key::digest(tenant, sha256), &blob.to_bytes());
    }
    Ok(())
}

/// A live asset holds its blob, which is there.
pub(super) fn restore_live(draft: &mut Draft, record: &AssetRecord) -> Result<(), StorageError> {
    let (tenant, blob) = (&record.tenant, record.blob);
    let before = draft.rows().blob(tenant, blob)?;
    let holders = match before.as_ref().map(|entry| entry.state) {
        Some(BlobState::Held { holders }) => holders + 1,
        _ => 1,
    };
    let (bytes, sha256) = (Some(record.bytes), Some(record.sha256));
    let held = BlobEntry { state: BlobState::Held { holders }, bytes, sha256, asset: None };
    draft.put_blob(tenant, blob, before.as_ref(), &held)?;
    draft.put_raw(Key::digest(tenant, &record.sha256), &blob.to_bytes());
    Ok(())
}

/// Takes what is past its time out of reach, and names it with what was taken earlier.
///
/// What is new comes first: bytes that cannot be removed must not keep all others in the store.
pub(super) fn doom(
    draft: &mut Draft,
    uploads_before: Timestamp,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<Doomed>, StorageError> {
    let (condemned, uploads) = (Key::space(Space::Condemned), Key::space(Space::Uploads));
    let rows = draft.rows();
    let due = rows.scan_until(&condemned, &Key::behind_time(Space::Condemned, now));
    let silent = rows.scan(&uploads).take_while(|row| match row {
        Ok((key, _)) => Parts::of(key).time().map_or(true, |alive_at| alive_at < uploads_before),
        Err(_) => true,
    });
    let found: Vec<(TenantId, BlobKey)> = due
        .chain(silent)
        .take(limit)
        .map(|row| Parts::of(&row?.0).blob_at().map(|(_, tenant, blob)| (tenant, blob)))
        .collect::<Result<_, _>>()?;
    let mut doomed = Vec::with_capacity(found.len());
    for (tenant, blob) in found {
        let before = existing(draft.rows(), &tenant, blob)?;
        if matches!(before.state, BlobState::Condemned { .. }) && kept_by_hold(draft.rows(), &tenant, blob, &before)? {
            let state = BlobState::Condemned { remove_at: after(now, HOLD_RECHECK) };
            draft.put_blob(&tenant, blob, Some(&before), &BlobEntry { state, ..before.clone() })?;
            continue;
        }
        put_out_of_reach(draft, &tenant, blob, &before)?;
        doomed.push(Doomed { tenant, blob, asset: before.asset });
    }
    let seen: HashSet<_> = doomed.iter().map(|one| (one.tenant.clone(), one.blob)).collect();
    for row in draft.rows().scan(&Key::space(Space::Doomed)) {
        if doomed.len() >= limit {
            break;
        }
        let (key, _) = row?;
        let mut parts = Parts::of(&key);
        let (tenant, blob) = (parts.name()?, parts.blob()?);
        if !seen.contains(&(TenantId::clone(&tenant), blob)) {
            let asset = existing(draft.rows(), &tenant, blob)?.asset;
            doomed.push(Doomed { tenant, blob, asset });
        }
    }
    Ok(doomed)
}

/// Takes this one out of reach if it is condemned and its time has come; says whether it is out of reach now.
pub(super) fn doom_one(
    draft: &mut Draft,
    tenant: &TenantId,
    blob: BlobKey,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let Some(before) = draft.rows().blob(tenant, blob)? else {
        return Ok(false);
    };
    match before.state {
        BlobState::Condemned { remove_at } if remove_at <= now => {
            if kept_by_hold(draft.rows(), tenant, blob, &before)? {
                return Ok(false);
            }
            put_out_of_reach(draft, tenant, blob, &before)?;
            Ok(true)
        }
        BlobState::Doomed => Ok(true),
        _ => Ok(false),
    }
}

/// From here on no publish can find the blob, so nothing can rescue it once its bytes are touched.
fn put_out_of_reach(
    draft: &mut Draft,
    tenant: &TenantId,
    blob: BlobKey,
    before: &BlobEntry,
) -> Result<(), StorageError> {
    if let Some(sha256) = &before.sha256
        && draft.rows().shareable(tenant, sha256)? == Some(blob)
    {
        draft.delete(Key::digest(tenant, sha256));
    }
    draft.put_blob(tenant, blob, Some(before), &BlobEntry { state: BlobState::Doomed, ..before.clone() })
}

/// Drops the row of a blob that nothing can hold any more.
pub(super) fn forget(draft: &mut Draft, doomed: &Doomed) -> Result<(), StorageError> {
    match draft.rows().blob(&doomed.tenant, doomed.blob)? {
        Some(entry) if matches!(entry.state, BlobState::Doomed | BlobState::Discarded { .. }) => {
            draft.drop_blob(&doomed.tenant, doomed.blob, &entry)
        }
        _ => Ok(()),
    }
}

/// Every blob that has a row, in the order of tenants and keys.
pub(super) fn list(
    core: &Core,
    after: Option<(TenantId, BlobKey)>,
    limit: usize,
) -> Result<Vec<BlobRow>, StorageError> {
    let after = after.map(|(tenant, blob)| Key::blob(&tenant, blob));
    let rows = core.rows().scan_after(&Key::space(Space::Blobs), after.as_ref());
    rows.take(limit)
        .map(|row| {
            let (key, raw) = row?;
            let mut parts = Parts::of(&key);
            let entry = BlobEntry::read("blob", &raw)?;
            let holders = match entry.state {
                BlobState::Held { holders } => holders,
                _ => 0,
            };
            let doomed = matches!(entry.state, BlobState::Doomed | BlobState::Discarded { .. });
            Ok(BlobRow { tenant: parts.name()?, blob: parts.blob()?, bytes: entry.bytes, holders, doomed })
        })
        .collect()
}

impl Draft {
    pub(super) fn put_blob(
        &mut self,
        tenant: &TenantId,
        blob: BlobKey,
        before: Option<&BlobEntry>,
        entry: &BlobEntry,
    ) -> Result<(), StorageError> {
        // Before the row, because a sum that is not kept is counted from the rows.
        self.change_reserved(tenant, before.and_then(BlobEntry::reserved), entry.reserved())?;
        let (was, is) =
            (before.and_then(|before| queue_entry(tenant, blob, before.state)), queue_entry(tenant, blob, entry.state));
        if was != is {
            was.into_iter().for_each(|queued| self.delete(queued));
            is.into_iter().for_each(|queued| self.mark_new(queued));
        }
        match before {
            Some(_) => self.put(Key::blob(tenant, blob), entry),
            None => self.put_new(Key::blob(tenant, blob), entry),
        }
        Ok(())
    }

    fn drop_blob(&mut self, tenant: &TenantId, blob: BlobKey, entry: &BlobEntry) -> Result<(), StorageError> {
        self.change_reserved(tenant, entry.reserved(), None)?;
        if let Some(queued) = queue_entry(tenant, blob, entry.state) {
            self.delete(queued);
        }
        self.delete(Key::blob(tenant, blob));
        Ok(())
    }
}

/// The queue in which a blob in this state waits for something.
fn queue_entry(tenant: &TenantId, blob: BlobKey, state: BlobState) -> Option<Key> {
    match state {
        BlobState::Announced { alive_at, .. } => Some(Key::blob_at(Space::Uploads, alive_at, tenant, blob)),
        BlobState::Condemned { remove_at } | BlobState::Discarded { remove_at } => {
            Some(Key::blob_at(Space::Condemned, remove_at, tenant, blob))
        }
        BlobState::Doomed => Some(Key::doomed(tenant, blob)),
        BlobState::Held { .. } => None,
    }
}

fn existing(rows: Rows<'_>, tenant: &TenantId, blob: BlobKey) -> Result<BlobEntry, StorageError> {
    rows.blob(tenant, blob)?.ok_or_else(|| corrupt(format!("blob: {blob} is named by a row and has none")))
}
