//! An index that is made anew from what the store has kept.

use jiff::Timestamp;

use super::draft::Draft;
use super::ending::comes_next;
use super::keys::Key;
use super::rows::{AssetRow, RunRow};
use super::runs::{take_up, touch};
use super::{artifacts, assets, blobs, holds, urls};
use crate::error::StorageError;
use crate::ids::{Digest, RunId, TenantId};
use crate::index::Restored;
use crate::record::{AssetRecord, AssetState, HoldOn};
use crate::retention::{Terms, after};

/// Writes it as if its transition had happened; what is there already stays.
pub(super) fn restore(
    draft: &mut Draft,
    tenant: &TenantId,
    what: Restored,
    terms: &Terms,
    now: Timestamp,
) -> Result<(), StorageError> {
    match what {
        Restored::Run(record) => {
            if draft.rows().run(tenant, &record.id)?.is_none() {
                draft.put_run(tenant, None, record, terms);
            }
            Ok(())
        }
        Restored::Asset { record, has_bytes } => {
            let record = AssetRecord { tenant: tenant.clone(), ..*record };
            if draft.rows().asset(tenant, record.id)?.is_some() {
                return Ok(());
            }
            restore_asset(draft, record, has_bytes, terms, now)
        }
        Restored::References(quoted) => {
            let row = known_run(draft, tenant, &quoted.run, terms, quoted.at)?;
            take_up(draft, tenant, &row, &quoted.assets, terms, now)
        }
        Restored::Hold { on, hold } => {
            let known = match &on {
                HoldOn::Asset(id) => draft.rows().asset(tenant, *id)?.is_some(),
                HoldOn::Run(id) => draft.rows().run(tenant, id)?.is_some(),
            };
            if known {
                draft.raise_hold_number(tenant, hold.number)?;
                holds::put(draft, tenant, &on, hold)?;
            }
            Ok(())
        }
        Restored::Artifact(record) => {
            let row = known_run(draft, tenant, &record.run, terms, record.put_at)?;
            artifacts::restore(draft, tenant, &record, row, terms)
        }
        Restored::Epoch(epoch) => urls::restore_epoch(draft, tenant, epoch),
        Restored::Revoked { url_id, keep_until } => assets::note_revoked(draft, tenant, &url_id, keep_until),
    }
}

fn restore_asset(
    draft: &mut Draft,
    record: AssetRecord,
    has_bytes: bool,
    terms: &Terms,
    now: Timestamp,
) -> Result<(), StorageError> {
    let tenant = record.tenant.clone();
    match record.state {
        AssetState::Live => blobs::restore_live(draft, &record)?,
        AssetState::Expired { .. } if has_bytes => {
            blobs::restore_dead(draft, &record, after(now, terms.tombstone_bytes))?;
        }
        AssetState::Erased { .. } if has_bytes => blobs::restore_dead(draft, &record, now)?,
        _ => {}
    }
    if record.sha256 != Digest::ERASED {
        draft.mark(Key::same(&tenant, &record.sha256, record.id));
    }
    if let Some(run) = &record.run {
        known_run(draft, &tenant, run, terms, record.created_at)?;
        draft.add_reference(&tenant, run, &record)?;
    }
    let row = AssetRow { record, look: None, claim: None, holds: 0 };
    if row.record.is_live() {
        return draft.put_new_asset(row, terms, now).map(drop);
    }
    let next = comes_next(draft.rows(), &row, terms)?.until();
    draft.put_asset(row, next.instant());
    Ok(())
}

/// The run, made if nothing has kept its row.
fn known_run(
    draft: &mut Draft,
    tenant: &TenantId,
    run: &RunId,
    terms: &Terms,
    at: Timestamp,
) -> Result<RunRow, StorageError> {
    match draft.rows().run(tenant, run)? {
        Some(row) if row.is_erased() => Ok(row),
        _ => touch(draft, tenant, run, terms, at),
    }
}
