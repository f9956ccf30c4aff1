//! Holds, and the erasure of a run: what changes how long many things are kept by one row.
//!
//! Both lock the row of what they are about, and count or write there what everybody who would end something has read or locked: the
//! end of an asset writes its row, and locks those of its runs for sharing; whoever takes bytes of the dead out of reach has locked the
//! blob, and the runs for sharing.

use jiff::Timestamp;

use super::PostgresIndex;
use super::failed::Worked;
use super::looks::write_run;
use super::rows::{AssetRow, RunRow, limited, up};
use super::tx::{Tx, read};
use super::{assets, blobs, ending, looks, owed, runs, sql};
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, HoldId, RunId, TenantId};
use crate::index::codec::{corrupt, decode, encode};
use crate::index::{LookAt, Placed, RunErasure};
use crate::record::{AssetView, Hold, HoldOn, Owed};
use crate::retention::Terms;

/// Places the hold, or gives one that is there its new reason.
pub(super) async fn hold(
    tx: &mut Tx,
    tenant: &TenantId,
    on: &HoldOn,
    hold: &Hold,
    audit: &AuditEvent,
) -> Worked<Placed> {
    let placed = match on {
        HoldOn::Asset(id) => match assets::lock(tx, tenant, *id).await? {
            None => return Ok(Placed::Unknown),
            Some(row) if row.is_erased() => return Ok(Placed::Erased),
            Some(row) => {
                let hold = numbered(tx, tenant, hold).await?;
                put_on_asset(tx, row, &hold).await?
            }
        },
        HoldOn::Run(id) => match runs::find(tx, sql::RUN_LOCK, tenant, id).await? {
            None => return Ok(Placed::Unknown),
            Some(row) if row.is_erased() => return Ok(Placed::Erased),
            Some(row) => {
                let hold = numbered(tx, tenant, hold).await?;
                put_on_run(tx, tenant, row, &hold).await?
            }
        },
    };
    tx.owe(tenant, Owed::Hold { on: on.clone(), id: placed.id.clone(), number: placed.number });
    tx.audit(tenant, audit.clone());
    Ok(Placed::Done(placed))
}

/// The hold under the next number. What it is on is locked, so the numbers of one thing's holds are in the order of their transitions.
async fn numbered(tx: &mut Tx, tenant: &TenantId, hold: &Hold) -> Worked<Hold> {
    Ok(Hold { number: owed::next_hold(tx, tenant).await?, ..hold.clone() })
}

/// Writes a hold on an asset whose row is locked.
pub(super) async fn put_on_asset(tx: &mut Tx, row: AssetRow, hold: &Hold) -> Worked<Hold> {
    let (tenant, id, live) = (row.record.tenant.clone(), row.record.id, row.record.is_live());
    let (hold, new) = put(tx, &tenant, &HoldOn::Asset(id), hold).await?;
    if new {
        let look = row.look;
        assets::put(tx, &tenant, &[(AssetRow { holds: row.holds + 1, ..row }, look)]).await?;
        if !live {
            blobs::touch(tx, &tenant, vec![id.to_bytes().to_vec()]).await?;
        }
    }
    Ok(hold)
}

/// Writes a hold on a run whose row is locked.
pub(super) async fn put_on_run(tx: &mut Tx, tenant: &TenantId, row: RunRow, hold: &Hold) -> Worked<Hold> {
    let (hold, new) = put(tx, tenant, &HoldOn::Run(row.record.id.clone()), hold).await?;
    if new {
        // A walk that has begun begins anew when the last hold is lifted.
        write_run(tx, tenant, RunRow { holds: row.holds + 1, walked: None, ..row }, None).await?;
    }
    Ok(hold)
}

/// The hold as it stands, and whether it is new.
async fn put(tx: &mut Tx, tenant: &TenantId, on: &HoldOn, hold: &Hold) -> Worked<(Hold, bool)> {
    let ((kind, thing), name) = (columns(on), hold.id.as_str());
    let query = sql::HOLD_NEW.run().bind(tenant.as_str()).bind(kind).bind(&thing).bind(name).bind(encode(hold));
    if query.execute(tx.on()).await?.rows_affected() == 1 {
        return Ok((hold.clone(), true));
    }
    let query = sql::HOLD_READ.rows().bind(tenant.as_str()).bind(kind).bind(&thing).bind(name);
    let row: Option<(Vec<u8>,)> = query.fetch_optional(tx.on()).await?;
    let (before,) = row.ok_or_else(|| corrupt(format!("hold: {name} is there and has no row")))?;
    let before: Hold = decode("hold", &before)?;
    let hold = Hold { placed_at: before.placed_at, ..hold.clone() };
    let query = sql::HOLD_PUT.run().bind(tenant.as_str()).bind(kind).bind(&thing).bind(name).bind(encode(&hold));
    query.execute(tx.on()).await?;
    Ok((hold, false))
}

/// What a hold is on, as columns.
fn columns(on: &HoldOn) -> (i16, Vec<u8>) {
    match on {
        HoldOn::Asset(id) => looks::columns(&LookAt::Asset(*id)),
        HoldOn::Run(id) => looks::columns(&LookAt::Run(id.clone())),
    }
}

/// Lifts the hold, if it is there; after the last one, looks are what they would be without.
pub(super) async fn lift(
    tx: &mut Tx,
    tenant: &TenantId,
    on: &HoldOn,
    id: &HoldId,
    terms: &Terms,
    audit: &AuditEvent,
) -> Worked<Option<u64>> {
    let lifted = match on {
        HoldOn::Asset(asset) => lift_from_asset(tx, tenant, *asset, id, terms).await?,
        HoldOn::Run(run) => lift_from_run(tx, tenant, run, id, terms).await?,
    };
    if !lifted {
        return Ok(None);
    }
    let number = owed::next_hold(tx, tenant).await?;
    tx.owe(tenant, Owed::Hold { on: on.clone(), id: id.clone(), number });
    tx.audit(tenant, audit.clone());
    Ok(Some(number))
}

async fn lift_from_asset(tx: &mut Tx, tenant: &TenantId, on: AssetId, id: &HoldId, terms: &Terms) -> Worked<bool> {
    let Some(mut row) = assets::lock(tx, tenant, on).await? else {
        return Ok(false);
    };
    if !drop_hold(tx, tenant, &HoldOn::Asset(on), id).await? {
        return Ok(false);
    }
    row.holds = (row.holds - 1).max(0);
    let look = match row.holds {
        0 => ending::comes_next(tx, &row, terms).await?.until().instant().map(up),
        _ => row.look,
    };
    assets::put(tx, tenant, &[(row, look)]).await?;
    Ok(true)
}

async fn lift_from_run(tx: &mut Tx, tenant: &TenantId, on: &RunId, id: &HoldId, terms: &Terms) -> Worked<bool> {
    let Some(mut row) = runs::find(tx, sql::RUN_LOCK, tenant, on).await? else {
        return Ok(false);
    };
    if !drop_hold(tx, tenant, &HoldOn::Run(on.clone()), id).await? {
        return Ok(false);
    }
    row.holds = (row.holds - 1).max(0);
    let look = row.stake().keeps(terms).instant().map(up);
    write_run(tx, tenant, row, look).await?;
    Ok(true)
}

async fn drop_hold(tx: &mut Tx, tenant: &TenantId, on: &HoldOn, id: &HoldId) -> Worked<bool> {
    let (kind, thing) = columns(on);
    let query = sql::HOLD_DROP.run().bind(tenant.as_str()).bind(kind).bind(thing).bind(id.as_str());
    Ok(query.execute(tx.on()).await?.rows_affected() == 1)
}

/// The holds on the asset or run itself, in the order of their names.
pub(super) async fn list(
    index: &PostgresIndex,
    tenant: &TenantId,
    on: &HoldOn,
    after: Option<&HoldId>,
    limit: usize,
) -> Result<Vec<Hold>, StorageError> {
    let ((kind, thing), after) = (columns(on), after.map_or("", |id| id.as_str()));
    let rows: Vec<(Vec<u8>,)> = read!(index, on => async {
        let list = sql::HOLD_LIST.rows().bind(tenant.as_str()).bind(kind).bind(&thing).bind(after);
        Ok(list.bind(limited(limit)).fetch_all(on).await?)
    })?;
    rows.iter().map(|(record,)| decode("hold", record)).collect()
}

/// The names of those holds, as many as a view lists.
pub(super) async fn names(tx: &mut Tx, tenant: &TenantId, on: &HoldOn) -> Worked<Vec<HoldId>> {
    let (kind, thing) = columns(on);
    let query = sql::HOLD_LIST.rows().bind(tenant.as_str()).bind(kind).bind(thing).bind("");
    let rows: Vec<(Vec<u8>,)> = query.bind(limited(AssetView::HOLDS)).fetch_all(tx.on()).await?;
    rows.iter().map(|(record,)| Ok(decode::<Hold>("hold", record)?.id)).collect()
}

/// Closes the run for good; a look at once erases what it alone keeps.
pub(super) async fn erase_run(
    tx: &mut Tx,
    tenant: &TenantId,
    id: &RunId,
    audit: &AuditEvent,
    now: Timestamp,
) -> Worked<RunErasure> {
    let Some(row) = runs::find(tx, sql::RUN_LOCK, tenant, id).await? else {
        return Ok(RunErasure::Unknown);
    };
    if row.holds > 0 {
        return Ok(RunErasure::Held(names(tx, tenant, &HoldOn::Run(id.clone())).await?));
    }
    let Some(record) = row.record.erased(now) else {
        return Ok(RunErasure::Done(row.record));
    };
    // Publications and references read the run's row and do not lock it; by this they come before the erasure or not at all.
    sql::REFS_COUNT.run().bind(tenant.as_str()).bind(id.as_str()).execute(tx.on()).await?;
    tx.audit(tenant, audit.clone());
    tx.owe(tenant, Owed::run(&record));
    let row = write_run(tx, tenant, RunRow { record, walked: None, ..row }, Some(up(now))).await?;
    Ok(RunErasure::Done(row.record))
}
