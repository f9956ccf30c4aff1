//! Runs: what the registry has, and what they reference.

use std::collections::HashMap;

use jiff::Timestamp;

use super::PostgresIndex;
use super::failed::Worked;
use super::looks::{new_run, put_run};
use super::rows::{RunRow, asset_id, counted, limited, up};
use super::sql::{self, Sql};
use super::tx::{Tx, read};
use super::{assets, blobs};
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::codec::{corrupt, decode};
use crate::index::{Referred, RunQuery, Updated};
use crate::record::{Owed, ReferenceRecord, RunRecord, RunStatus, RunView};
use crate::retention::{RunConflict, RunUpdate, Terms};

/// Registers the run, or changes what the update names; says which assets it took up from its parent.
///
/// The parent is locked for sharing once the run itself is: it is not erased, and no walk of it goes on, until the run is its fork. Two
/// runs that become forks of each other wait for each other; the database refuses one of them, and that one sees a cycle.
pub(super) async fn update(
    tx: &mut Tx,
    tenant: &TenantId,
    update: &RunUpdate,
    terms: &Terms,
    audit: &AuditEvent,
    now: Timestamp,
) -> Worked<Result<(RunRecord, Vec<AssetId>), RunConflict>> {
    let made = match RunRecord::updated(None, update, now, terms) {
        Ok(record) => new_run(tx, tenant, record, terms).await?,
        Err(_) => None,
    };
    let before = match &made {
        Some(_) => None,
        None => find(tx, sql::RUN_LOCK, tenant, &update.id).await?,
    };
    let is_fork = before.as_ref().is_some_and(|row| row.record.fork_of.is_some());
    let parent = match &update.fork_of {
        Some(id) if *id != update.id => {
            let by = if is_fork { sql::RUN_READ } else { sql::RUN_SHARE };
            find(tx, by, tenant, id).await?.map(|row| row.record)
        }
        _ => None,
    };
    let ancestors = match (&before, &parent) {
        (Some(_), Some(parent)) => ancestors(tx, tenant, parent).await?,
        _ => Vec::new(),
    };
    let known = before.as_ref().map(|row| &row.record);
    let decided = RunRecord::becomes_fork(known, update, parent.as_ref(), &ancestors)
        .and_then(|forks| Ok((forks, RunRecord::updated(known, update, now, terms)?)));
    let (forks, record) = match decided {
        Ok(decided) => decided,
        Err(conflict) => {
            tx.undo();
            return Ok(Err(conflict));
        }
    };
    tx.audit(tenant, audit.clone());
    tx.owe(tenant, Owed::run(&record));
    let row = match (made, before) {
        (Some(row), _) => row,
        (None, Some(before)) => put_run(tx, tenant, before, record, terms).await?,
        (None, None) => return Err(corrupt(format!("run: {} is there and has no row", update.id)).into()),
    };
    let inherited = match parent.filter(|_| forks) {
        Some(parent) => inherit(tx, tenant, &row, &parent.id, terms, now).await?,
        None => Vec::new(),
    };
    if !inherited.is_empty() {
        tx.owe(tenant, Owed::References(ReferenceRecord::new(&update.id, &inherited, now)));
    }
    Ok(Ok((row.record, inherited)))
}

/// The runs that this one is a fork of, nearest first.
async fn ancestors(tx: &mut Tx, tenant: &TenantId, of: &RunRecord) -> Worked<Vec<RunId>> {
    let mut found = Vec::new();
    let mut next = of.fork_of.clone();
    while let Some(id) = next {
        next = find(tx, sql::RUN_READ, tenant, &id).await?.and_then(|row| row.record.fork_of);
        found.push(id);
    }
    Ok(found)
}

/// Takes up every reference of the parent; says which those are, in the order of names.
///
/// The assets are read and not locked, as in [`refer`].
async fn inherit(
    tx: &mut Tx,
    tenant: &TenantId,
    run: &RunRow,
    parent: &RunId,
    terms: &Terms,
    now: Timestamp,
) -> Worked<Vec<AssetId>> {
    let rows = sql::ASSETS_INHERITED.rows().bind(tenant.as_str()).bind(parent.as_str()).fetch_all(tx.on()).await?;
    let there: Vec<(AssetId, There)> = rows.into_iter().map(There::read).collect::<Worked<_>>()?;
    let query = sql::REFS_INHERIT.rows().bind(tenant.as_str()).bind(parent.as_str()).bind(run.record.id.as_str());
    let added = query.fetch_all(tx.on()).await?;
    let inherited = there.iter().map(|(id, _)| *id).collect();
    see_to(tx, tenant, run, &there.into_iter().collect(), added, terms, now).await?;
    Ok(inherited)
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
    if row.is_erased() {
        return Ok(Referred::RunErased);
    }
    take_up(tx, tenant, &row, &there, terms, now).await?;
    tx.audit(tenant, audit.clone());
    tx.owe(tenant, Owed::run(&row.record));
    tx.owe(tenant, Owed::References(ReferenceRecord::new(run, assets, now)));
    Ok(Referred::All(row.record))
}

/// Adds references to these assets.
pub(super) async fn take_up(
    tx: &mut Tx,
    tenant: &TenantId,
    run: &RunRow,
    there: &HashMap<AssetId, There>,
    terms: &Terms,
    now: Timestamp,
) -> Worked<()> {
    let mut ids: Vec<_> = there.keys().map(|id| id.to_bytes().to_vec()).collect();
    ids.sort_unstable();
    let query = sql::REFS_NEW.rows().bind(tenant.as_str()).bind(run.record.id.as_str()).bind(ids);
    let added = query.fetch_all(tx.on()).await?;
    see_to(tx, tenant, run, there, added, terms, now).await
}

/// Sees to it that assets which the run references from now on, each with the place of its reference, are seen in time.
async fn see_to(
    tx: &mut Tx,
    tenant: &TenantId,
    run: &RunRow,
    there: &HashMap<AssetId, There>,
    added: Vec<(Vec<u8>, i64)>,
    terms: &Terms,
    now: Timestamp,
) -> Worked<()> {
    let (mut looks, mut dead) = (Vec::new(), Vec::new());
    for (name, place) in added {
        let id = asset_id(&name)?;
        let Some(&There { live, look }) = there.get(&id) else { continue };
        if let Some(at) = to_be_seen(run, live, place, terms, now).map(up) {
            looks.push((id, look, Some(look.map_or(at, |look| look.min(at)))));
        }
        if !live {
            dead.push(name);
        }
    }
    assets::put_looks(tx, tenant, &looks).await?;
    if run.holds > 0 && !dead.is_empty() {
        blobs::touch(tx, tenant, dead).await?;
    }
    Ok(())
}

/// What a reference asks of an asset's row.
#[derive(Debug, Clone, Copy)]
pub(super) struct There {
    live: bool,
    look: Option<i64>,
}

impl There {
    fn read((id, state, look): (Vec<u8>, String, Option<i64>)) -> Worked<(AssetId, Self)> {
        Ok((asset_id(&id)?, Self { live: state == "live", look }))
    }
}

/// Those of the assets that are there.
pub(super) async fn there(tx: &mut Tx, tenant: &TenantId, assets: &[AssetId]) -> Worked<HashMap<AssetId, There>> {
    let ids: Vec<_> = assets.iter().map(|id| id.to_bytes().to_vec()).collect();
    let rows = sql::ASSETS_THERE.rows().bind(tenant.as_str()).bind(ids).fetch_all(tx.on()).await?;
    rows.into_iter().map(There::read).collect()
}

/// When an asset that the run references from now on has to be seen for its own sake, if it has to be.
fn to_be_seen(run: &RunRow, live: bool, place: i64, terms: &Terms, now: Timestamp) -> Option<Timestamp> {
    let end = run.stake().until();
    if !live {
        // From the first reference on its tombstone counts from the end of a run, which may be before its death.
        return end.plus(terms.tombstone_record).instant().filter(|_| place == 0);
    }
    let until = run.stake().keeps(terms);
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

/// This state of the run, with what it references, counted now, and what it took up.
pub(super) async fn count(
    index: &PostgresIndex,
    tenant: &TenantId,
    (record, inherited): (RunRecord, Vec<AssetId>),
) -> Result<Updated, StorageError> {
    let (assets, bytes): (i64, i64) = read!(index, on => async {
        Ok(sql::RUN_COUNT.rows().bind(tenant.as_str()).bind(record.id.as_str()).fetch_one(on).await?)
    })?;
    let view = RunView { record, assets: counted(assets), bytes: counted(bytes) };
    Ok(Updated { view, inherited })
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
