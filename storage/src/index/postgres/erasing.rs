//! Erasure: on an owner's word, or with the runs that referenced the asset.
//!
//! Locked in this order: the asset, its runs, the answer of its request, its blob, the runs of other dead assets that had the blob. From
//! the second on it does not wait, but begins again.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use super::ending::{Referring, Sweep, fix_runs, next_of, referring};
use super::failed::Worked;
use super::rows::{AssetRow, asset_id, digest, limited, up};
use super::tx::Tx;
use super::{assets, blobs, ingest, sql, usage};
use crate::audit::AuditEvent;
use crate::ids::{AssetId, Digest, TenantId};
use crate::index::{Erasure, erasure_event};
use crate::record::{AssetRecord, AssetState, Owed};
use crate::retention::{Next, Terms};

/// Erases the asset, unless a hold is on it or on a run that references it.
pub(super) async fn erase(
    tx: &mut Tx,
    tenant: &TenantId,
    id: AssetId,
    terms: &Terms,
    audit: &AuditEvent,
    now: Timestamp,
) -> Worked<Erasure> {
    let Some(row) = assets::lock(tx, tenant, id).await? else {
        return Ok(Erasure::Unknown);
    };
    if row.is_erased() {
        return Ok(Erasure::Done(Box::new(row.record)));
    }
    let keeping = assets::keeping(tx, tenant, id).await?;
    if keeping.is_held() {
        return Ok(Erasure::Held(keeping.holds));
    }
    let referring = HashMap::from([(id, Referring::from(keeping))]);
    let erased = wipe(tx, tenant, vec![row], &referring, terms, now).await?;
    tx.audit(tenant, audit.clone());
    let record = erased.into_iter().next().expect("one was erased");
    Ok(Erasure::Done(Box::new(record)))
}

/// Erases those of a page of an erased run that nothing else keeps; the others are left.
pub(super) async fn erase_left(
    tx: &mut Tx,
    tenant: &TenantId,
    page: Vec<AssetRow>,
    sweep: Sweep<'_>,
) -> Worked<(Vec<AssetRecord>, Vec<AssetRow>)> {
    let (left, mut others): (Vec<_>, Vec<_>) =
        page.into_iter().partition(|asset| !asset.is_erased() && asset.holds == 0);
    let referring = referring(tx, tenant, &left).await?;
    let goes = |asset: &AssetRow| {
        let next = next_of(asset, &referring, sweep.terms);
        matches!(next, Next::Erase(until) if until.is_past(sweep.now))
    };
    let (going, kept): (Vec<_>, Vec<_>) = left.into_iter().partition(goes);
    others.extend(kept);
    Ok((erase_with_runs(tx, tenant, going, &referring, sweep).await?, others))
}

/// Erases assets whose runs all are, and says so of each in the log.
pub(super) async fn erase_with_runs(
    tx: &mut Tx,
    tenant: &TenantId,
    going: Vec<AssetRow>,
    referring: &HashMap<AssetId, Referring>,
    sweep: Sweep<'_>,
) -> Worked<Vec<AssetRecord>> {
    for asset in &going {
        tx.audit(tenant, erasure_event(&asset.record, sweep.principal, sweep.now));
    }
    wipe(tx, tenant, going, referring, sweep.terms, sweep.now).await
}

/// Erases assets that are not yet, one after the other in this order.
async fn wipe(
    tx: &mut Tx,
    tenant: &TenantId,
    going: Vec<AssetRow>,
    referring: &HashMap<AssetId, Referring>,
    terms: &Terms,
    now: Timestamp,
) -> Worked<Vec<AssetRecord>> {
    if going.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = going.iter().map(|asset| asset.record.id).collect();
    fix_runs(tx, tenant, &ids, referring).await?;
    let answers = going.iter().filter_map(|asset| Some((asset.claim.clone()?, asset.record.id))).collect();
    ingest::drop_answers(tx, tenant, answers).await?;
    usage::discharge(tx, tenant, &going).await?;
    drop_same(tx, tenant, &going).await?;
    let others = same_bytes(tx, tenant, &going).await?;
    let leaving: Vec<_> = going.iter().map(|asset| (asset.record.blob, asset.record.is_live())).collect();
    let removed = blobs::let_go(tx, tenant, &leaving, now).await?;
    let mut changed = Vec::with_capacity(going.len());
    for ((asset, others), removed) in going.into_iter().zip(others).zip(removed) {
        let erased = AssetRow { record: asset.record.erased(now, others, removed), claim: None, ..asset };
        tx.owe(tenant, Owed::asset(&erased.record));
        let tombstone = next_of(&erased, referring, terms).until().instant().map(up);
        changed.push((erased, tombstone));
    }
    assets::put(tx, tenant, &changed).await?;
    Ok(changed.into_iter().map(|(asset, _)| asset.record).collect())
}

/// For each of these assets, which are not found by their bytes any more, what has the same bytes as it goes: those behind it too.
async fn same_bytes(tx: &mut Tx, tenant: &TenantId, going: &[AssetRow]) -> Worked<Vec<Vec<AssetId>>> {
    let digests: BTreeSet<Vec<u8>> = going.iter().map(|asset| asset.record.sha256.0.to_vec()).collect();
    let query = sql::SAME_OF.rows().bind(tenant.as_str()).bind(digests.into_iter().collect::<Vec<_>>());
    let rows: Vec<(Vec<u8>, Vec<u8>)> = query.bind(limited(AssetState::SAME_BYTES)).fetch_all(tx.on()).await?;
    let mut same: HashMap<Digest, BTreeSet<AssetId>> = HashMap::new();
    for (sha256, id) in rows {
        same.entry(digest(&sha256)?).or_default().insert(asset_id(&id)?);
    }
    let mut found = Vec::with_capacity(going.len());
    for asset in going.iter().rev() {
        let same = same.entry(asset.record.sha256).or_default();
        found.push(same.iter().copied().take(AssetState::SAME_BYTES).collect());
        same.insert(asset.record.id);
    }
    found.reverse();
    Ok(found)
}

/// From here on nothing finds these assets by their bytes.
pub(super) async fn drop_same(tx: &mut Tx, tenant: &TenantId, going: &[AssetRow]) -> Worked<()> {
    let digests: Vec<_> = going.iter().map(|asset| asset.record.sha256.0.to_vec()).collect();
    let ids: Vec<_> = going.iter().map(|asset| asset.record.id.to_bytes().to_vec()).collect();
    sql::SAME_DROP.run().bind(tenant.as_str()).bind(digests).bind(ids).execute(tx.on()).await?;
    Ok(())
}
