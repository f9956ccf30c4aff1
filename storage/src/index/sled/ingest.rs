//! One upload: the claim on its key, and its publication.

use jiff::Timestamp;

use super::blobs::{self, Holding};
use super::draft::Draft;
use super::keys::{Key, Space};
use super::rows::{AssetRow, ClaimRow, ClaimState, Keeping};
use super::runs::touch;
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId};
use crate::index::{Claimed, NewAsset, Published};
use crate::record::{AssetRecord, AssetView, Claim, Owed, Settled};
use crate::retention::{FloorSource, Terms};

/// Makes the asset visible, with everything that belongs to it.
pub(super) fn publish(
    draft: &mut Draft,
    tenant: &TenantId,
    new: NewAsset,
    terms: &Terms,
    now: Timestamp,
) -> Result<Published, StorageError> {
    let erased = match &new.record.run {
        Some(run) => draft.rows().run(tenant, run)?.is_some_and(|row| row.is_erased()),
        None => false,
    };
    if erased {
        return Ok(Published::RunErased);
    }
    let claim = match &new.settled {
        Some(settled) => match held(draft, tenant, &settled.claim, now)? {
            Some(row) => Some((row, settled)),
            None => return Ok(Published::ClaimLost),
        },
        None => None,
    };
    let mut record = AssetRecord { tenant: tenant.clone(), ..new.record };
    let holding = blobs::hold(draft, &record, new.discard_at)?;
    match holding {
        Holding::Own => {}
        Holding::Shared(blob) => record.blob = blob,
        Holding::Lost => return Ok(Published::UploadLost),
    }
    if let Some((row, settled)) = &claim {
        settle_claim(draft, tenant, row, settled, &record);
    }
    if new.recorded.is_some_and(|blob| blob != record.blob) {
        draft.owe(tenant, Owed::asset(&record));
    }
    // What has no row yet is referenced by nothing: there is nothing to look for.
    let is_new = draft.rows().get(&Key::asset(tenant, record.id))?.is_none();
    let run = match &record.run {
        Some(run) => Some(touch(draft, tenant, run, terms, now)?),
        None => None,
    };
    match &run {
        Some(run) if is_new => draft.add_first_reference(tenant, &run.record.id, &record),
        Some(run) => drop(draft.add_reference(tenant, &run.record.id, &record)?),
        None => {}
    }

    draft.mark(Key::same(tenant, &record.sha256, record.id));
    let claim = new.settled.map(|settled| settled.claim.name);
    let row = AssetRow { record, look: None, claim, holds: 0 };
    let keeping = if is_new { draft.rows().keeping_of_new(&row, run.as_ref())? } else { draft.rows().keeping(&row)? };
    let view = draft.put_new_asset(row, keeping, terms, now)?;
    draft.audit(tenant, new.audit.url(view.url_id()));
    Ok(match holding {
        Holding::Shared(_) => Published::Shared(view),
        _ => Published::Stored(view),
    })
}

/// Takes the key, unless another request has it.
pub(super) fn claim(
    draft: &mut Draft,
    tenant: &TenantId,
    claim: &Claim,
    now: Timestamp,
) -> Result<Claimed, StorageError> {
    let before = draft.rows().claim(tenant, &claim.name)?;
    if let Some(row) = before.as_ref().filter(|row| row.until() > now) {
        match row.state {
            ClaimState::Settled { asset, fingerprint, .. } => return Ok(Claimed::Settled { asset, fingerprint }),
            ClaimState::Held { .. } if row.holder != claim.holder => return Ok(Claimed::InFlight),
            ClaimState::Held { .. } => {}
        }
    }
    let row = ClaimRow { holder: claim.holder, state: ClaimState::Held { lapses_at: claim.lapses_at } };
    draft.put_claim(tenant, &claim.name, before.as_ref(), &row);
    Ok(Claimed::Yours)
}

/// Holds the claim for longer, if the request still holds it.
pub(super) fn renew(draft: &mut Draft, tenant: &TenantId, claim: &Claim) -> Result<bool, StorageError> {
    let Some(row) = draft.rows().claim(tenant, &claim.name)? else {
        return Ok(false);
    };
    match row.state {
        ClaimState::Held { lapses_at } if row.holder == claim.holder => {
            if claim.lapses_at > lapses_at {
                let later = ClaimRow { state: ClaimState::Held { lapses_at: claim.lapses_at }, ..row.clone() };
                draft.put_claim(tenant, &claim.name, Some(&row), &later);
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Gives the claim up, if the request still holds it; an answer stays.
pub(super) fn release(draft: &mut Draft, tenant: &TenantId, claim: &Claim) -> Result<(), StorageError> {
    let Some(row) = draft.rows().claim(tenant, &claim.name)? else {
        return Ok(());
    };
    if row.holder == claim.holder && matches!(row.state, ClaimState::Held { .. }) {
        draft.delete(Key::tidy(row.until(), Space::Claims, tenant, &claim.name));
        draft.delete(Key::named(Space::Claims, tenant, &claim.name));
    }
    Ok(())
}

/// The claim's row, if this request holds it at `now`.
fn held(draft: &Draft, tenant: &TenantId, claim: &Claim, now: Timestamp) -> Result<Option<ClaimRow>, StorageError> {
    let row = draft.rows().claim(tenant, &claim.name)?;
    Ok(row
        .filter(|row| row.holder == claim.holder && matches!(row.state, ClaimState::Held { .. }) && row.until() > now))
}

fn settle_claim(draft: &mut Draft, tenant: &TenantId, row: &ClaimRow, settled: &Settled, record: &AssetRecord) {
    let state =
        ClaimState::Settled { asset: record.id, fingerprint: settled.fingerprint, keep_until: settled.keep_until };
    draft.put_claim(tenant, &settled.claim.name, Some(row), &ClaimRow { state, ..row.clone() });
}

/// Drops the answer under this key, if the asset is what its request made.
pub(super) fn drop_answer(draft: &mut Draft, tenant: &TenantId, name: &str, made: AssetId) -> Result<(), StorageError> {
    let Some(row) = draft.rows().claim(tenant, name)? else {
        return Ok(());
    };
    if matches!(row.state, ClaimState::Settled { asset, .. } if asset == made) {
        draft.delete(Key::tidy(row.until(), Space::Claims, tenant, name));
        draft.delete(Key::named(Space::Claims, tenant, name));
    }
    Ok(())
}

impl Draft {
    /// Writes an asset that was not there, seen at its floor by a run that references it, or by a look of its own.
    pub(super) fn put_new_asset(
        &mut self,
        row: AssetRow,
        keeping: Keeping,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<AssetView, StorageError> {
        let floor = keeping.floor(terms);
        // A run's look sees the asset when the run ends; the end of any other term, or one that is past, is the asset's own to wait for.
        let run_ends_it = matches!(floor.source, FloorSource::Run | FloorSource::Default);
        let seen = run_ends_it && keeping.seen_by_run && !floor.until.is_past(now);
        let view = keeping.view(row.record.clone(), terms);
        self.charge(&row.record)?;
        self.put_asset(row, floor.until.instant().filter(|_| !seen));
        Ok(view)
    }

    fn put_claim(&mut self, tenant: &TenantId, name: &str, before: Option<&ClaimRow>, row: &ClaimRow) {
        if let Some(before) = before {
            self.delete(Key::tidy(before.until(), Space::Claims, tenant, name));
        }
        self.mark(Key::tidy(row.until(), Space::Claims, tenant, name));
        self.put(Key::named(Space::Claims, tenant, name), row);
    }
}
