//! Runs: what the registry has, and what they reference.

use std::collections::HashMap;

use jiff::Timestamp;

use super::PostgresIndex;
use super::assets;
use super::failed::Worked;
use super::looks::{new_run, put_run};
use super::rows::{RunRow, asset_id, counted, limited, up};
use super::sql::{self, Sql};
use super::tx::{Tx, read};
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::codec::{corrupt, decode};
use crate::index::{Referred, RunQuery};
use crate::record::{RunRecord, RunStatus, RunView};
use crate::retention::{RunConflict, RunUpdate, Terms};

/// Registers the run, or changes what the update names.
pub(super) async fn update(
    tx: &mut Tx,
    tenant: &TenantId,
    update: &RunUpdate,
    terms: &Terms,
    audit: &AuditEvent,
    now: Timestamp,
) -> Worked<Result<RunRecord, RunConflict>> {
    tx.audit(tenant, audit.clone());
    let fresh = RunRecord::updated(None, update, now, terms);
    if let Ok(record) = &fresh
        && let Some(row) = new_run(tx, tenant, record.clone(), terms).await?
    {
        return Ok(Ok(row.record));
    }
    let before = find(tx, sql::RUN_LOCK, tenant, &update.id).await?;
    match RunRecord::updated(before.as_ref().map(|row| &row.record), update, now, terms) {
        Err(conflict) => {
            tx.undo();
            Ok(Err(conflict))
        }
        Ok(record) => {
            let before = before.ok_or_else(|| corrupt(format!("run: {} is there and has no row", update.id)))?;
            Ok(Ok(put_run(tx, tenant, before, record, terms).await?.record))
        }
    }
}

/// Makes the run reference all of the assets, or none.
///
/// The assets are not locked. What ends one of them reads its references, and this reads whether it lives: of two that miss each other
/// the database lets only one happen.
pub(super) async fn refer(
    tx: &mut Tx,
    tenant: &TenantId,
    run: &RunId,
    assets: &[AssetId],
    terms: &Terms,
    audit: &AuditEvent,
    now: Timestamp,
) -> Worked<Referred> {
    let row = touch(tx, tenant, run, terms, now).await?;
    let there = there(tx, tenant, assets).await?;
    let unknown = |(position, id): (usize, &AssetId)| (!there.contains_key(id)).then_some(position);
    let unknown: Vec<usize> = assets.iter().enumerate().filter_map(unknown).collect();
    if !unknown.is_empty() {
        tx.undo();
        return Ok(Referred::Unknown(unknown));
    }
    let mut looks = Vec::new();
    for (id, place) in add_references(tx, tenant, run, there.keys()).await? {
        let Some(&There { live, look }) = there.get(&id) else { continue };
        if let Some(at) = to_be_seen(&row, live, place, terms, now).map(up) {
            looks.push((id, look, Some(look.map_or(at, |look| look.min(at)))));
        }
    }
    assets::put_looks(tx, tenant, &looks).await?;
    tx.audit(tenant, audit.clone());
    Ok(Referred::All(row.record))
}

/// What a reference asks of an asset's row.
#[derive(Debug, Clone, Copy)]
struct There {
    live: bool,
    look: Option<i64>,
}

async fn there(tx: &mut Tx, tenant: &TenantId, assets: &[AssetId]) -> Worked<HashMap<AssetId, There>> {
    let ids: Vec<_> = assets.iter().map(|id| id.to_bytes().to_vec()).collect();
    let query = sql::ASSETS_THERE.rows().bind(tenant.as_str()).bind(ids);
    let rows: Vec<(Vec<u8>, String, Option<i64>)> = query.fetch_all(tx.on()).await?;
    let read = |(id, state, look): (Vec<u8>, String, _)| Ok((asset_id(&id)?, There { live: state == "live", look }));
    rows.into_iter().map(read).collect()
}

/// Adds what is not there yet; says each new one's place.
async fn add_references(
    tx: &mut Tx,
    tenant: &TenantId,
    run: &RunId,
    assets: impl Iterator<Item = &AssetId>,
) -> Worked<Vec<(AssetId, i64)>> {
    let mut ids: Vec<_> = assets.map(|id| id.to_bytes().to_vec()).collect();
    ids.sort_unstable();
    let query = sql::REFS_NEW.rows().bind(tenant.as_str()).bind(run.as_str()).bind(ids);
    let rows: Vec<(Vec<u8>, i64)> = query.fetch_all(tx.on()).await?;
    rows.into_iter().map(|(id, place)| Ok((asset_id(&id)?, place))).collect()
}

/// When an asset that the run references from now on has to be seen for its own sake, if it has to be.
fn to_be_seen(run: &RunRow, live: bool, place: i64, terms: &Terms, now: Timestamp) -> Option<Timestamp> {
    let end = run.end().until();
    if !live {
        // From the first reference on its tombstone counts from the end of a run, which may be before its death.
        return end.plus(terms.tombstone_record).instant().filter(|_| place == 0);
    }
    let until = end.plus(terms.grace);
    // If the run's own look is over, or may be, what it would have seen has to be seen for its own sake.
    let seen = run.will_look_at_all() && !until.is_past(now);
    until.instant().filter(|_| !seen)
}

/// The run after one more reference: made if it is not known, kept for longer if nobody registered it.
pub(super) async fn touch(tx: &mut Tx, tenant: &TenantId, id: &RunId, terms: &Terms, now: Timestamp) -> Worked<RunRow> {
    let record = RunRecord::referenced(id.clone(), now, terms);
    if let Some(row) = new_run(tx, tenant, record, terms).await? {
        return Ok(row);
    }
    let row = find(tx, sql::RUN_READ, tenant, id).await?;
    let row = row.ok_or_else(|| corrupt(format!("run: {id} is there and has no row")))?;
    match row.record.touched(now, terms) {
        Some(record) => put_run(tx, tenant, row, record, terms).await,
        None => Ok(row),
    }
}

/// The run's row, read as that statement does.
pub(super) async fn find(tx: &mut Tx, by: Sql, tenant: &TenantId, id: &RunId) -> Worked<Option<RunRow>> {
    let row = by.rows().bind(tenant.as_str()).bind(id.as_str()).fetch_optional(tx.on()).await?;
    Ok(row.map(RunRow::read).transpose()?)
}

/// The run's record.
pub(super) async fn record(
    index: &PostgresIndex,
    tenant: &TenantId,
    id: &RunId,
) -> Result<Option<RunRecord>, StorageError> {
    let row = read!(index, on => async {
        Ok(sql::RUN_READ.rows().bind(tenant.as_str()).bind(id.as_str()).fetch_optional(on).await?)
    })?;
    row.map(|row| RunRow::read(row).map(|row| row.record)).transpose()
}

type Counted = (Vec<u8>, i64, i64);

fn counted_view((record, assets, bytes): Counted) -> Result<RunView, StorageError> {
    Ok(RunView { record: decode("run", &record)?, assets: counted(assets), bytes: counted(bytes) })
}

/// The run, with what it references, counted now.
pub(super) async fn view(
    index: &PostgresIndex,
    tenant: &TenantId,
    id: &RunId,
) -> Result<Option<RunView>, StorageError> {
    let row: Option<Counted> = read!(index, on => async {
        Ok(sql::RUN_VIEW.rows().bind(tenant.as_str()).bind(id.as_str()).fetch_optional(on).await?)
    })?;
    row.map(counted_view).transpose()
}

/// This state of the run, with what it references, counted now.
pub(super) async fn count(
    index: &PostgresIndex,
    tenant: &TenantId,
    record: RunRecord,
) -> Result<RunView, StorageError> {
    let (assets, bytes): (i64, i64) = read!(index, on => async {
        Ok(sql::RUN_COUNT.rows().bind(tenant.as_str()).bind(record.id.as_str()).fetch_one(on).await?)
    })?;
    Ok(RunView { record, assets: counted(assets), bytes: counted(bytes) })
}

/// Runs in the order of their names.
pub(super) async fn list(
    index: &PostgresIndex,
    tenant: &TenantId,
    query: &RunQuery,
) -> Result<Vec<RunView>, StorageError> {
    let open = query.status.map(|status| status == RunStatus::Open);
    let after = query.after.as_ref().map_or("", |id| id.as_str());
    let rows: Vec<Counted> = read!(index, on => async {
        let list = sql::RUN_LIST.rows().bind(tenant.as_str()).bind(after).bind(open).bind(limited(query.limit));
        Ok(list.fetch_all(on).await?)
    })?;
    rows.into_iter().map(counted_view).collect()
}
