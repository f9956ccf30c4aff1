//! Uploads in parts.
//!
//! Whoever changes an upload has locked its row, after the tenant's sum of use and before any claim, run, asset or blob. What is reserved
//! for it is a row of `mk_reserved` under its own name. The pieces of a joined upload are locked behind it, in the order of their names.

use jiff::Timestamp;

use super::failed::Worked;
use super::rows::{blob_key, bytes16, counted, down, limited, number, tenant, up};
use super::tx::{Tx, read};
use super::{PostgresIndex, blobs, ingest, sql, usage};
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId, UploadId};
use crate::index::codec::{decode, encode};
use crate::index::{NewAsset, Published};
use crate::quota::{Quota, Reserved};
use crate::resumable::{Cleared, Joining, KeptFor, Lease, Leased, Opened, Part, Resumable, Seen};
use crate::retention::Terms;

/// Begins an upload with what is reserved for it.
pub(super) async fn begin(
    tx: &mut Tx,
    owner: &TenantId,
    upload: &Resumable,
    bytes: u64,
    most: u64,
    quota: Quota,
) -> Worked<Opened> {
    let allowed = usage::allowed(tx, owner, upload.id.reservation(), bytes, quota).await?;
    let most = number(most);
    let (open,): (i64,) = sql::RESERVED_COUNT.rows().bind(owner.as_str()).bind(most).fetch_one(tx.on()).await?;
    if open >= most {
        return Ok(Opened::TooMany);
    }
    if !allowed {
        return Ok(Opened::OverQuota);
    }
    let id = upload.id.to_bytes();
    sql::RESUMABLE_NEW.run().bind(owner.as_str()).bind(id).bind(encode(upload)).execute(tx.on()).await?;
    sql::RESERVED_PUT.run().bind(owner.as_str()).bind(id).bind(number(bytes)).execute(tx.on()).await?;
    sql::RESUMABLE_LOOK_IN.run().bind(up(upload.look_at)).bind(owner.as_str()).bind(id).execute(tx.on()).await?;
    Ok(Opened::Done)
}

/// The upload, unless it has ended.
pub(super) async fn find(
    index: &PostgresIndex,
    owner: &TenantId,
    id: UploadId,
) -> Result<Option<Resumable>, StorageError> {
    let row: Option<(Vec<u8>,)> = read!(index, on => async {
        Ok(sql::RESUMABLE.rows().bind(owner.as_str()).bind(id.to_bytes()).fetch_optional(on).await?)
    })?;
    let row: Option<Resumable> = row.map(|(record,)| decode("upload in parts", &record)).transpose()?;
    Ok(row.filter(|row| !row.has_ended()))
}

/// Its parts, in order.
pub(super) async fn parts(
    index: &PostgresIndex,
    owner: &TenantId,
    id: UploadId,
    from: u64,
    limit: usize,
) -> Result<Vec<Part>, StorageError> {
    let rows: Vec<PartColumns> = read!(index, on => async {
        let query = sql::RESUMABLE_PARTS.rows().bind(owner.as_str()).bind(id.to_bytes());
        Ok(query.bind(number(from)).bind(limited(limit)).fetch_all(on).await?)
    })?;
    rows.into_iter().map(part).collect()
}

/// Gives the right to write.
pub(super) async fn lease(tx: &mut Tx, owner: &TenantId, id: UploadId, lease: Lease, now: Timestamp) -> Worked<Leased> {
    let Some(before) = open_or_finished(tx, owner, id).await? else {
        return Ok(Leased::Unknown);
    };
    let Some(after) = before.leased(lease, now) else {
        return Ok(Leased::Taken);
    };
    put(tx, owner, &before, &after).await?;
    Ok(Leased::Yours(Box::new(after)))
}

/// Gives the lease back.
pub(super) async fn release(tx: &mut Tx, owner: &TenantId, id: UploadId, holder: [u8; 16]) -> Worked<()> {
    let before = lock(tx, owner, id).await?;
    match before.as_ref().and_then(|before| before.released(holder).map(|after| (before, after))) {
        Some((before, after)) => put(tx, owner, before, &after).await,
        None => Ok(()),
    }
}

/// Reserves more, and says the length.
pub(super) async fn extend(
    tx: &mut Tx,
    owner: &TenantId,
    upload: &Joining,
    bytes: u64,
    length: Option<u64>,
    quota: Quota,
) -> Worked<Reserved> {
    let key = upload.upload.reservation();
    let allowed = usage::allowed(tx, owner, key, bytes, quota).await?;
    let Some(before) = open_or_finished(tx, owner, upload.upload).await? else {
        return Ok(Reserved::UploadLost);
    };
    let Some(after) = before.with_length(upload.holder, length) else {
        return Ok(Reserved::UploadLost);
    };
    if !allowed {
        return Ok(Reserved::OverQuota);
    }
    sql::RESERVED_PUT.run().bind(owner.as_str()).bind(key.to_bytes()).bind(number(bytes)).execute(tx.on()).await?;
    if after != before {
        put(tx, owner, &before, &after).await?;
    }
    Ok(Reserved::Done)
}

/// Makes the announced blob the next part.
pub(super) async fn append(
    tx: &mut Tx,
    owner: &TenantId,
    upload: &Joining,
    part: &Part,
    kept: KeptFor,
) -> Worked<Option<Resumable>> {
    let Some(before) = open_or_finished(tx, owner, upload.upload).await? else {
        return Ok(None);
    };
    let Some(after) = before.appended(upload.holder, part, kept) else {
        return Ok(None);
    };
    if !blobs::hold_part(tx, owner, part.blob, part.bytes).await? {
        return Ok(None);
    }
    let query = sql::RESUMABLE_PART_NEW.run().bind(owner.as_str()).bind(before.id.to_bytes());
    let query = query.bind(number(part.offset)).bind(number(part.bytes)).bind(part.blob.to_bytes());
    query.execute(tx.on()).await?;
    put(tx, owner, &before, &after).await?;
    Ok(Some(after))
}

/// Publishes what was made of an upload, and finishes it.
pub(super) async fn publish(
    tx: &mut Tx,
    owner: &TenantId,
    asset: &NewAsset,
    upload: &Joining,
    terms: &Terms,
    now: Timestamp,
) -> Worked<Published> {
    let id = asset.record.id;
    let Some(before) = open_or_finished(tx, owner, upload.upload).await? else {
        return Ok(Published::UploadLost);
    };
    let Some(after) = before.finished(upload.holder, id, now) else {
        return Ok(Published::UploadLost);
    };
    let pieces = lock_pieces(tx, owner, &before).await?;
    if pieces.len() != before.pieces().len() || !pieces.iter().all(Resumable::is_ready_piece) {
        return Ok(Published::UploadLost);
    }
    let published = ingest::publish(tx, owner, asset, terms, now).await?;
    if matches!(published, Published::Stored(_) | Published::Shared(_)) {
        finish_locked(tx, owner, (&before, &after), &pieces, now).await?;
    }
    Ok(published)
}

/// Finishes the upload, and ends the pieces that it was joined of.
pub(super) async fn finish(
    tx: &mut Tx,
    owner: &TenantId,
    upload: &Joining,
    asset: AssetId,
    now: Timestamp,
) -> Worked<bool> {
    let Some(before) = open_or_finished(tx, owner, upload.upload).await? else {
        return Ok(false);
    };
    let Some(after) = before.finished(upload.holder, asset, now) else {
        return Ok(false);
    };
    let pieces = lock_pieces(tx, owner, &before).await?;
    finish_locked(tx, owner, (&before, &after), &pieces, now).await?;
    Ok(true)
}

async fn finish_locked(
    tx: &mut Tx,
    owner: &TenantId,
    (before, after): (&Resumable, &Resumable),
    pieces: &[Resumable],
    now: Timestamp,
) -> Worked<()> {
    for piece in pieces {
        end_locked(tx, owner, piece, now).await?;
    }
    unreserve(tx, owner, before.id).await?;
    put(tx, owner, before, after).await
}

/// Ends the upload.
pub(super) async fn end(tx: &mut Tx, owner: &TenantId, upload: &Joining, now: Timestamp) -> Worked<bool> {
    match open_or_finished(tx, owner, upload.upload).await?.filter(|row| row.is_held_by(upload.holder)) {
        Some(before) => end_locked(tx, owner, &before, now).await.map(|()| true),
        None => Ok(false),
    }
}

async fn end_locked(tx: &mut Tx, owner: &TenantId, before: &Resumable, now: Timestamp) -> Worked<()> {
    unreserve(tx, owner, before.id).await?;
    put(tx, owner, before, &before.ended(now)).await
}

/// What is to be looked at.
pub(super) async fn due(
    index: &PostgresIndex,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(TenantId, UploadId)>, StorageError> {
    let rows: Vec<(String, Vec<u8>)> = read!(index, on => async {
        Ok(sql::RESUMABLES_DUE.rows().bind(down(now)).bind(limited(limit)).fetch_all(on).await?)
    })?;
    rows.into_iter()
        .map(|(owner, id)| Ok((tenant(&owner)?, UploadId::from_bytes(bytes16("upload in parts", &id)?))))
        .collect()
}

/// Looks at the upload, and condemns parts of one that is over.
pub(super) async fn clear(
    tx: &mut Tx,
    owner: &TenantId,
    id: UploadId,
    limit: usize,
    now: Timestamp,
) -> Worked<Cleared> {
    let Some(before) = lock(tx, owner, id).await? else {
        return Ok(Cleared::default());
    };
    let (over, expired) = match before.seen(now) {
        Seen::Stays => return Ok(Cleared::default()),
        Seen::Later(after) => {
            put(tx, owner, &before, &after).await?;
            return Ok(Cleared::default());
        }
        Seen::Over(over, was_open) => (over, was_open),
    };
    let query = sql::RESUMABLE_PARTS.rows().bind(owner.as_str()).bind(id.to_bytes()).bind(0_i64);
    let found: Vec<PartColumns> = query.bind(limited(limit.saturating_add(1))).fetch_all(tx.on()).await?;
    let more = found.len() > limit;
    let going: Vec<Part> = found.into_iter().take(limit).map(part).collect::<Result<_, _>>()?;
    let condemned: Vec<_> = going.iter().map(|part| part.blob).collect();
    if let Some(last) = going.last() {
        blobs::release(tx, owner, &condemned, now).await?;
        let query = sql::RESUMABLE_PARTS_DROP.run().bind(owner.as_str()).bind(id.to_bytes());
        query.bind(number(last.offset)).execute(tx.on()).await?;
    }
    if expired {
        unreserve(tx, owner, id).await?;
    }
    match if more { Some(over) } else { over.cleared(now) } {
        Some(after) => put(tx, owner, &before, &after).await?,
        None => {
            take_look_out(tx, owner, &before).await?;
            sql::RESUMABLE_DROP.run().bind(owner.as_str()).bind(id.to_bytes()).execute(tx.on()).await?;
        }
    }
    Ok(Cleared { condemned, more, expired })
}

/// Where it begins, how long it is, and its blob.
type PartColumns = (i64, i64, Vec<u8>);

fn part((begins, bytes, blob): PartColumns) -> Result<Part, StorageError> {
    Ok(Part { offset: counted(begins), bytes: counted(bytes), blob: blob_key(&blob)? })
}

async fn lock(tx: &mut Tx, owner: &TenantId, id: UploadId) -> Worked<Option<Resumable>> {
    let query = sql::RESUMABLE_LOCK.rows().bind(owner.as_str()).bind(id.to_bytes());
    let row: Option<(Vec<u8>,)> = query.fetch_optional(tx.on()).await?;
    Ok(row.map(|(record,)| decode("upload in parts", &record)).transpose()?)
}

async fn open_or_finished(tx: &mut Tx, owner: &TenantId, id: UploadId) -> Worked<Option<Resumable>> {
    Ok(lock(tx, owner, id).await?.filter(|row| !row.has_ended()))
}

/// Those of the pieces that have not ended.
async fn lock_pieces(tx: &mut Tx, owner: &TenantId, joined: &Resumable) -> Worked<Vec<Resumable>> {
    let mut names = joined.pieces().to_vec();
    names.sort_unstable();
    let mut pieces = Vec::with_capacity(names.len());
    for id in names {
        pieces.extend(open_or_finished(tx, owner, id).await?);
    }
    Ok(pieces)
}

/// Writes a locked row, and moves its look.
async fn put(tx: &mut Tx, owner: &TenantId, before: &Resumable, after: &Resumable) -> Worked<()> {
    let id = after.id.to_bytes();
    sql::RESUMABLE_PUT.run().bind(owner.as_str()).bind(id).bind(encode(after)).execute(tx.on()).await?;
    if up(before.look_at) != up(after.look_at) {
        take_look_out(tx, owner, before).await?;
        sql::RESUMABLE_LOOK_IN.run().bind(up(after.look_at)).bind(owner.as_str()).bind(id).execute(tx.on()).await?;
    }
    Ok(())
}

async fn take_look_out(tx: &mut Tx, owner: &TenantId, row: &Resumable) -> Worked<()> {
    let query = sql::RESUMABLE_LOOK_OUT.run().bind(up(row.look_at)).bind(owner.as_str()).bind(row.id.to_bytes());
    query.execute(tx.on()).await?;
    Ok(())
}

async fn unreserve(tx: &mut Tx, owner: &TenantId, id: UploadId) -> Worked<()> {
    sql::RESERVED_DROP.run().bind(owner.as_str()).bind(id.to_bytes()).execute(tx.on()).await?;
    Ok(())
}
