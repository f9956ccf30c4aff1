//! Holds, and the erasure of a run: what changes how long many things are kept by one row.

use jiff::Timestamp;

use super::draft::Draft;
use super::ending::comes_next;
use super::keys::Key;
use super::rows::RunRow;
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{HoldId, RunId, TenantId};
use crate::index::{Placed, RunErasure};
use crate::record::{AssetView, Hold, HoldOn, Owed};
use crate::retention::Terms;

/// Places the hold, or gives one that is there its new reason.
pub(super) fn hold(
    draft: &mut Draft,
    tenant: &TenantId,
    on: &HoldOn,
    hold: Hold,
    audit: AuditEvent,
) -> Result<Placed, StorageError> {
    let placed = match on {
        HoldOn::Asset(id) => match draft.rows().asset(tenant, *id)? {
            None => Placed::Unknown,
            Some(row) if row.is_erased() => Placed::Erased,
            Some(_) => Placed::Done(number(draft, tenant, on, hold)?),
        },
        HoldOn::Run(id) => match draft.rows().run(tenant, id)? {
            None => Placed::Unknown,
            Some(row) if row.is_erased() => Placed::Erased,
            Some(_) => Placed::Done(number(draft, tenant, on, hold)?),
        },
    };
    if matches!(placed, Placed::Done(_)) {
        draft.audit(tenant, audit);
    }
    Ok(placed)
}

/// Places a hold on something that is there under the next number.
fn number(draft: &mut Draft, tenant: &TenantId, on: &HoldOn, hold: Hold) -> Result<Hold, StorageError> {
    let number = draft.next_hold(tenant)?;
    draft.owe(tenant, Owed::Hold { on: on.clone(), id: hold.id.clone(), number });
    put(draft, tenant, on, Hold { number, ..hold })
}

/// Writes a hold on something that is there.
pub(super) fn put(draft: &mut Draft, tenant: &TenantId, on: &HoldOn, mut hold: Hold) -> Result<Hold, StorageError> {
    let key = Key::hold(tenant, on, &hold.id);
    let before: Option<Hold> = draft.rows().read("hold", &key)?;
    match &before {
        Some(before) => hold.placed_at = before.placed_at,
        None => count_one_more(draft, tenant, on)?,
    }
    draft.put(key, &hold);
    Ok(hold)
}

fn count_one_more(draft: &mut Draft, tenant: &TenantId, on: &HoldOn) -> Result<(), StorageError> {
    match on {
        HoldOn::Asset(id) => {
            if let Some(mut row) = draft.rows().asset(tenant, *id)? {
                row.holds += 1;
                let look = row.look;
                draft.put_asset(row, look);
            }
        }
        HoldOn::Run(id) => {
            if let Some(row) = draft.rows().run(tenant, id)? {
                // A walk that has begun begins anew when the last hold is lifted.
                draft.put_run_look(tenant, RunRow { holds: row.holds + 1, walked: None, ..row }, None);
            }
        }
    }
    Ok(())
}

/// Lifts the hold, if it is there; after the last one, looks are what they would be without.
pub(super) fn lift(
    draft: &mut Draft,
    tenant: &TenantId,
    on: &HoldOn,
    id: &HoldId,
    terms: &Terms,
    audit: AuditEvent,
) -> Result<Option<u64>, StorageError> {
    let key = Key::hold(tenant, on, id);
    if draft.rows().get(&key)?.is_none() {
        return Ok(None);
    }
    let number = draft.next_hold(tenant)?;
    draft.owe(tenant, Owed::Hold { on: on.clone(), id: id.clone(), number });
    draft.delete(key);
    match on {
        HoldOn::Asset(id) => {
            if let Some(mut row) = draft.rows().asset(tenant, *id)? {
                row.holds = row.holds.saturating_sub(1);
                let look =
                    if row.holds > 0 { row.look } else { comes_next(draft.rows(), &row, terms)?.until().instant() };
                draft.put_asset(row, look);
            }
        }
        HoldOn::Run(id) => {
            if let Some(mut row) = draft.rows().run(tenant, id)? {
                row.holds = row.holds.saturating_sub(1);
                let look = row.stake().keeps(terms).instant();
                draft.put_run_look(tenant, row, look);
            }
        }
    }
    draft.audit(tenant, audit);
    Ok(Some(number))
}

/// Closes the run for good; a look at once erases what it alone keeps.
pub(super) fn erase_run(
    draft: &mut Draft,
    tenant: &TenantId,
    id: &RunId,
    audit: AuditEvent,
    now: Timestamp,
) -> Result<RunErasure, StorageError> {
    let Some(row) = draft.rows().run(tenant, id)? else {
        return Ok(RunErasure::Unknown);
    };
    if row.holds > 0 {
        let holds = draft.rows().holds(tenant, &HoldOn::Run(id.clone()), None).take(AssetView::HOLDS);
        let names = holds.map(|hold| hold.map(|hold| hold.id)).collect::<Result<_, _>>()?;
        return Ok(RunErasure::Held(names));
    }
    let Some(record) = row.record.erased(now) else {
        return Ok(RunErasure::Done(row.record));
    };
    draft.audit(tenant, audit);
    draft.owe(tenant, Owed::run(&record));
    let row = draft.put_run_look(tenant, RunRow { record, walked: None, ..row }, Some(now));
    Ok(RunErasure::Done(row.record))
}
