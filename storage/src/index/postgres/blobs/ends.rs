//! How blobs end: assets let go of them, holds keep those of the dead, and what is past its time is taken out of reach.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;

use super::super::failed::Worked;
use super::super::rows::{asset_id, blob_key, down, limited, tenant, up};
use super::super::sql;
use super::super::tx::Tx;
use super::{Blob, BlobColumns, State, drop_row, lock, put};
use crate::error::StorageError;
use crate::ids::{BlobKey, TenantId};
use crate::index::codec::corrupt;
use crate::record::Doomed;
use crate::retention::{HOLD_RECHECK, after};

/// Some assets less hold these blobs, each named once for each of them; the last one condemns its blob.
pub(in crate::index::postgres) async fn release(
    tx: &mut Tx,
    owner: &TenantId,
    keys: &[BlobKey],
    remove_at: Timestamp,
) -> Worked<()> {
    let mut less: BTreeMap<BlobKey, u64> = BTreeMap::new();
    for key in keys {
        *less.entry(*key).or_default() += 1;
    }
    let named: Vec<_> = less.keys().map(|key| key.to_bytes().to_vec()).collect();
    let rows: Vec<BlobColumns> = sql::BLOBS_LOCK.rows().bind(owner.as_str()).bind(named).fetch_all(tx.on()).await?;
    if rows.len() != less.len() {
        return Err(corrupt("blob: one is held by a live asset and has no row".into()).into());
    }
    let mut changed = Vec::with_capacity(rows.len());
    for row in rows {
        let before = Blob::read(row)?;
        let by = less.get(&before.key).copied().unwrap_or(0);
        let state = match before.state {
            State::Held { holders } if holders > by => State::Held { holders: holders - by },
            State::Held { .. } => State::Condemned { remove_at: up(remove_at) },
            other => {
                return Err(corrupt(format!("blob: {} is held by a live asset and is {other:?}", before.key)).into());
            }
        };
        changed.push((before.clone(), Blob { state, ..before }));
    }
    put(tx, changed).await
}

/// A condemned blob goes at `remove_at` at the latest; any other stays what it is.
pub(in crate::index::postgres) async fn hurry(
    tx: &mut Tx,
    owner: &TenantId,
    key: BlobKey,
    remove_at: Timestamp,
) -> Worked<()> {
    let remove_at = up(remove_at);
    match lock(tx, owner, key).await? {
        Some(before) if matches!(before.state, State::Condemned { remove_at: later } if later > remove_at) => {
            let sooner = Blob { state: State::Condemned { remove_at }, ..before.clone() };
            put(tx, vec![(before, sooner)]).await
        }
        _ => Ok(()),
    }
}

/// Ends what assets that are being erased, in this order, have to do with their blobs; each says whether it was live. A blob that nothing
/// else needs goes out of reach at once; says for each asset whether nothing did.
pub(in crate::index::postgres) async fn let_go(
    tx: &mut Tx,
    owner: &TenantId,
    leaving: &[(BlobKey, bool)],
    now: Timestamp,
) -> Worked<Vec<bool>> {
    let mut less: BTreeMap<BlobKey, u64> = BTreeMap::new();
    for (key, was_live) in leaving {
        *less.entry(*key).or_default() += u64::from(*was_live);
    }
    let named: Vec<_> = less.keys().map(|key| key.to_bytes().to_vec()).collect();
    let rows: Vec<BlobColumns> = sql::BLOBS_LOCK.rows().bind(owner.as_str()).bind(named).fetch_all(tx.on()).await?;
    let blobs: Vec<Blob> = rows.into_iter().map(Blob::read).collect::<Result<_, _>>()?;
    let (mut held, mut idle, mut changed) = (BTreeMap::new(), Vec::new(), Vec::new());
    for blob in blobs {
        let by = less.get(&blob.key).copied().unwrap_or(0);
        match blob.state {
            State::Held { holders } if holders > by => {
                held.insert(blob.key, holders);
                changed.push((blob.clone(), Blob { state: State::Held { holders: holders - by }, ..blob }));
            }
            State::Held { holders } => {
                held.insert(blob.key, holders);
                idle.push(blob);
            }
            State::Condemned { .. } => idle.push(blob),
            State::Announced { .. } | State::Discarded { .. } | State::Doomed => {}
        }
    }
    if let Some((key, _)) = leaving.iter().find(|(key, was_live)| *was_live && !held.contains_key(key)) {
        return Err(corrupt(format!("blob: {key} is held by a live asset and is not held")).into());
    }
    let kept = kept_by_holds(tx, &idle).await?;
    let (kept, gone): (Vec<_>, Vec<_>) = idle.into_iter().partition(|blob| kept.contains(&blob.name()));
    put_out_of_reach(tx, &gone).await?;
    let later = |blob: &Blob| match blob.state {
        State::Condemned { remove_at } => remove_at.min(up(now)),
        _ => up(now),
    };
    let condemned = |blob: &Blob| Blob { state: State::Condemned { remove_at: later(blob) }, ..blob.clone() };
    changed.extend(kept.iter().map(|blob| (blob.clone(), condemned(blob))));
    put(tx, changed).await?;
    let kept: HashSet<BlobKey> = kept.into_iter().map(|blob| blob.key).collect();
    let goes = leaving.iter().map(|(key, was_live)| {
        let left = held.get_mut(key).map_or(0, |holders| {
            *holders = holders.saturating_sub(u64::from(*was_live));
            *holders
        });
        left == 0 && !kept.contains(key)
    });
    Ok(goes.collect())
}

/// Those of these locked blobs that a hold keeps for a dead asset, or a hold on a run that references one.
///
/// The runs stay as they are until the transition is over: nobody hears of a hold on one whose bytes then go. It does not wait for
/// one that another call is changing. A hold on a dead asset itself is written to the blob's row too.
async fn kept_by_holds(tx: &mut Tx, blobs: &[Blob]) -> Worked<HashSet<(TenantId, BlobKey)>> {
    let (mut owners, mut digests, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for blob in blobs {
        if let Some(sha256) = blob.sha256 {
            owners.push(blob.tenant.to_string());
            digests.push(sha256.0.to_vec());
            keys.push(blob.key.to_bytes().to_vec());
        }
    }
    if owners.is_empty() {
        return Ok(HashSet::new());
    }
    let query = sql::BLOBS_HELD.rows().bind(&owners).bind(&digests).bind(&keys);
    let mut held: Vec<(String, Vec<u8>)> = query.fetch_all(tx.on()).await?;
    let query = sql::BLOBS_RUNS.rows().bind(&owners).bind(&digests).bind(&keys);
    let runs: Vec<(String, Vec<u8>, i64)> = query.fetch_all(tx.on()).await?;
    held.extend(runs.into_iter().filter(|(.., holds)| *holds > 0).map(|(owner, key, _)| (owner, key)));
    Ok(held
        .into_iter()
        .map(|(owner, key)| Ok((tenant(&owner)?, blob_key(&key)?)))
        .collect::<Result<_, StorageError>>()?)
}

/// Writes the blobs that these dead assets had, as they are: whoever looked at the assets' holds before, to take those blobs out of
/// reach, begins again.
pub(in crate::index::postgres) async fn touch(tx: &mut Tx, owner: &TenantId, dead: Vec<Vec<u8>>) -> Worked<()> {
    sql::BLOBS_TOUCH.run().bind(owner.as_str()).bind(dead).execute(tx.on()).await?;
    Ok(())
}

/// Takes what is past its time out of reach, and names it with what was taken earlier; what a hold keeps is looked at again later.
///
/// What is new comes first: bytes that cannot be removed must not keep all others in the store. A blob that another call is busy with
/// is left to it.
pub(in crate::index::postgres) async fn doom(
    tx: &mut Tx,
    uploads_before: Timestamp,
    limit: usize,
    now: Timestamp,
) -> Worked<Vec<Doomed>> {
    let mut found = Vec::new();
    for (due, before) in [(sql::CONDEMNED_DUE, down(now)), (sql::UPLOADS_SILENT, down(uploads_before))] {
        let room = limited(limit - found.len());
        let rows: Vec<BlobColumns> = due.rows().bind(before).bind(room).fetch_all(tx.on()).await?;
        for row in rows {
            found.push(Blob::read(row)?);
        }
    }
    let condemned: Vec<Blob> = found.iter().filter(|blob| blob.is_condemned()).cloned().collect();
    let kept = kept_by_holds(tx, &condemned).await?;
    let (kept, found): (Vec<_>, Vec<_>) = found.into_iter().partition(|blob| kept.contains(&blob.name()));
    let again = State::Condemned { remove_at: up(after(now, HOLD_RECHECK)) };
    put(tx, kept.into_iter().map(|blob| (blob.clone(), Blob { state: again, ..blob })).collect()).await?;
    put_out_of_reach(tx, &found).await?;
    let mut doomed: Vec<Doomed> = found.into_iter().map(Blob::doomed).collect();
    let seen: HashSet<_> = doomed.iter().map(|one| (one.tenant.clone(), one.blob)).collect();
    let query = sql::DOOMED_LIST.rows().bind(limited(limit));
    let earlier: Vec<(String, Vec<u8>, Option<Vec<u8>>)> = query.fetch_all(tx.on()).await?;
    for (owner, key, asset) in earlier {
        let one = Doomed {
            tenant: tenant(&owner)?,
            blob: blob_key(&key)?,
            asset: asset.map(|raw| asset_id(&raw)).transpose()?,
        };
        if doomed.len() < limit && !seen.contains(&(one.tenant.clone(), one.blob)) {
            doomed.push(one);
        }
    }
    Ok(doomed)
}

/// Takes this one out of reach if it is condemned and its time has come; says whether it is out of reach now.
pub(in crate::index::postgres) async fn doom_one(
    tx: &mut Tx,
    owner: &TenantId,
    key: BlobKey,
    now: Timestamp,
) -> Worked<bool> {
    let Some(blob) = lock(tx, owner, key).await? else {
        return Ok(false);
    };
    match blob.state {
        State::Condemned { remove_at } if remove_at <= down(now) => {
            let blob = [blob];
            if !kept_by_holds(tx, &blob).await?.is_empty() {
                return Ok(false);
            }
            put_out_of_reach(tx, &blob).await?;
            Ok(true)
        }
        state => Ok(state == State::Doomed),
    }
}

/// From here on no publish can find the blobs, so nothing can rescue them once their bytes are touched.
async fn put_out_of_reach(tx: &mut Tx, blobs: &[Blob]) -> Worked<()> {
    let (mut owners, mut digests, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for blob in blobs {
        if let Some(sha256) = blob.sha256 {
            owners.push(blob.tenant.to_string());
            digests.push(sha256.0.to_vec());
            keys.push(blob.key.to_bytes().to_vec());
        }
    }
    if !owners.is_empty() {
        sql::DIGESTS_DROP.run().bind(owners).bind(digests).bind(keys).execute(tx.on()).await?;
    }
    let doomed = |blob: &Blob| (blob.clone(), Blob { state: State::Doomed, ..blob.clone() });
    put(tx, blobs.iter().map(doomed).collect()).await
}

/// Drops the row of a blob that nothing can hold any more.
pub(in crate::index::postgres) async fn forget(tx: &mut Tx, doomed: &Doomed) -> Worked<()> {
    match lock(tx, &doomed.tenant, doomed.blob).await? {
        Some(blob) if matches!(blob.state, State::Doomed | State::Discarded { .. }) => drop_row(tx, &blob).await,
        _ => Ok(()),
    }
}
