//! The end of assets: what is due, what the sweep does about it, and what an owner may.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;

use super::draft::{Draft, Rows};
use super::keys::{Key, Parts, Space};
use super::rows::{AssetRow, RunRow};
use super::shared::Core;
use super::{artifacts, assets, blobs, ingest};
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId};
use crate::index::{Deleted, Erasure, Look, LookAt, Preview, Settlement, erasure_event, expiry_event};
use crate::record::{AssetRecord, AssetState, Owed};
use crate::retention::{Next, Terms, Until, after};

/// The looks whose time has come, oldest first.
pub(super) fn due(core: &Core, now: Timestamp, limit: usize) -> Result<Vec<Look>, StorageError> {
    due_looks(core.rows(), now).take(limit).collect()
}

fn due_looks(rows: Rows<'_>, now: Timestamp) -> impl Iterator<Item = Result<Look, StorageError>> {
    rows.scan_until(&Key::space(Space::Looks), &Key::behind_time(Space::Looks, now))
        .map(|row| Parts::of(&row?.0).look())
}

/// What one call of the sweep goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep<'a> {
    pub(super) terms: &'a Terms,
    pub(super) principal: &'a str,
    pub(super) now: Timestamp,
}

/// Looks at the assets of one look.
pub(super) fn settle(
    draft: &mut Draft,
    look: &Look,
    limit: usize,
    sweep: Sweep<'_>,
) -> Result<Settlement, StorageError> {
    match &look.at {
        LookAt::Run(id) => match draft.rows().run(&look.tenant, id)? {
            Some(row) if row.look == Some(look.due) => settle_run(draft, &look.tenant, row, limit.max(1), sweep),
            _ => Ok(moved_on()),
        },
        LookAt::Asset(id) => match draft.rows().asset(&look.tenant, *id)? {
            Some(row) if row.look == Some(look.due) => settle_asset(draft, row, sweep),
            _ => Ok(moved_on()),
        },
    }
}

/// The look has moved or been settled since its caller read it; if anything is left to do, it is due under another time.
fn moved_on() -> Settlement {
    Settlement { done: true, ..Settlement::default() }
}

fn settle_run(
    draft: &mut Draft,
    tenant: &TenantId,
    row: RunRow,
    limit: usize,
    sweep: Sweep<'_>,
) -> Result<Settlement, StorageError> {
    let (erased, end, until) = (row.is_erased(), row.stake().until(), row.stake().keeps(sweep.terms));
    if !until.is_past(sweep.now) {
        // The grace has been raised since the look was placed.
        draft.put_run_look(tenant, RunRow { walked: None, ..row }, until.instant());
        return Ok(moved_on());
    }
    let page: Vec<AssetId> =
        draft.rows().assets_of(tenant, &row.record.id, row.walked).take(limit).collect::<Result<_, _>>()?;
    let gone = match page.len() < limit {
        true => artifacts::end(draft, tenant, &row, limit, sweep)?,
        false => Vec::new(),
    };
    let done = page.len() < limit && gone.len() < limit;
    let look = row.look.filter(|_| !done);
    let walked = page.last().copied().or(row.walked).filter(|_| !done);
    draft.put_run_look(tenant, RunRow { walked, ..row }, look);

    let mut settlement = Settlement { done, artifacts: gone, ..Settlement::default() };
    for id in page {
        let Some(asset) = draft.rows().asset(tenant, id)? else {
            continue;
        };
        if erased && !asset.is_erased() && is_to_be_erased(draft.rows(), &asset, sweep)? {
            let audit = erasure_event(&asset.record, sweep.principal, sweep.now);
            settlement.erased.push(wipe(draft, asset, audit, sweep.terms, sweep.now)?);
            continue;
        }
        match asset.record.state {
            AssetState::Live => match ended(draft, asset, sweep)? {
                Some(record) => settlement.expired.push(record),
                None => settlement.kept += 1,
            },
            AssetState::Expired { .. } | AssetState::Erased { .. } => {
                bury(draft, asset, end.plus(sweep.terms.tombstone_record), sweep)?;
            }
        }
    }
    Ok(settlement)
}

/// Expires a live asset that a walk came upon, if nothing keeps it; else sees to it that it is seen again in time.
fn ended(draft: &mut Draft, asset: AssetRow, sweep: Sweep<'_>) -> Result<Option<AssetRecord>, StorageError> {
    if kept_by_another_run(draft.rows(), &asset.record, sweep)? {
        return Ok(None);
    }
    let floor = draft.rows().keeping(&asset)?.floor(sweep.terms);
    if floor.until.is_past(sweep.now) {
        return expire(draft, asset, sweep).map(Some);
    }
    if let Some(at) = floor.until.instant()
        && asset.look.is_none_or(|look| look > at)
    {
        draft.put_asset_seen_by(asset, at);
    }
    Ok(None)
}

/// Sees to it that the tombstone which a walk came upon goes in time: while the run had no end it had no look, and when the run's end
/// has moved its look may be late. `least` is what this run alone gives it.
fn bury(draft: &mut Draft, asset: AssetRow, least: Until, sweep: Sweep<'_>) -> Result<(), StorageError> {
    if asset.look.is_some_and(|look| Until::At(look) <= least) {
        return Ok(());
    }
    if let Some(at) = comes_next(draft.rows(), &asset, sweep.terms)?.until().instant() {
        draft.put_asset_seen_by(asset, at);
    }
    Ok(())
}

/// Whether a run without end keeps the asset, or one whose own walk is yet to come. The newest run comes first and nearly always
/// does, so an asset that a thousand runs share costs a walk one look and not a thousand.
fn kept_by_another_run(rows: Rows<'_>, record: &AssetRecord, sweep: Sweep<'_>) -> Result<bool, StorageError> {
    for reference in rows.runs_of(&record.tenant, record.id) {
        let run = rows.referencing(&record.tenant, &reference?.1)?;
        let until = run.stake().keeps(sweep.terms);
        if until == Until::Endless || (run.will_look_at_all() && !until.is_past(sweep.now)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn settle_asset(draft: &mut Draft, row: AssetRow, sweep: Sweep<'_>) -> Result<Settlement, StorageError> {
    let mut settlement = moved_on();
    let next = comes_next(draft.rows(), &row, sweep.terms)?;
    if !next.until().is_past(sweep.now) {
        settlement.kept = usize::from(row.record.is_live());
        draft.put_asset(row, next.until().instant());
        return Ok(settlement);
    }
    match next {
        Next::Expire(_) => settlement.expired.push(expire(draft, row, sweep)?),
        Next::Erase(_) => {
            let audit = erasure_event(&row.record, sweep.principal, sweep.now);
            settlement.erased.push(wipe(draft, row, audit, sweep.terms, sweep.now)?);
        }
        Next::Drop(_) => {
            draft.owe(&row.record.tenant, Owed::Dropped { id: row.record.id });
            settlement.dropped.push(row.record.id);
            settlement.unquoted = draft.drop_references(&row.record)?;
            draft.drop_asset(&row);
        }
    }
    Ok(settlement)
}

/// What comes next in the asset's life.
pub(super) fn comes_next(rows: Rows<'_>, row: &AssetRow, terms: &Terms) -> Result<Next, StorageError> {
    Ok(rows.keeping(row)?.next(&row.record.state, terms))
}

fn is_to_be_erased(rows: Rows<'_>, row: &AssetRow, sweep: Sweep<'_>) -> Result<bool, StorageError> {
    let next = comes_next(rows, row, sweep.terms)?;
    Ok(matches!(next, Next::Erase(until) if until.is_past(sweep.now)))
}

/// Expires the asset if it is live and its floor is past.
pub(super) fn expire_if_due(
    draft: &mut Draft,
    tenant: &TenantId,
    id: AssetId,
    sweep: Sweep<'_>,
) -> Result<Option<AssetRecord>, StorageError> {
    let Some(row) = draft.rows().asset(tenant, id)? else {
        return Ok(None);
    };
    let next = comes_next(draft.rows(), &row, sweep.terms)?;
    if !row.record.is_live() || !next.until().is_past(sweep.now) {
        return Ok(Some(row.record));
    }
    if matches!(next, Next::Erase(_)) {
        let audit = erasure_event(&row.record, sweep.principal, sweep.now);
        return wipe(draft, row, audit, sweep.terms, sweep.now).map(Some);
    }
    expire(draft, row, sweep).map(Some)
}

/// Ends the asset on its owner's word, unless something protects it.
pub(super) fn delete(
    draft: &mut Draft,
    tenant: &TenantId,
    id: AssetId,
    terms: &Terms,
    audit: AuditEvent,
    now: Timestamp,
) -> Result<Deleted, StorageError> {
    let Some(row) = draft.rows().asset(tenant, id)? else {
        return Ok(Deleted::Unknown);
    };
    let keeping = draft.rows().keeping(&row)?;
    if keeping.is_held() && !row.is_erased() {
        return Ok(Deleted::Held(keeping.holds));
    }
    if !row.record.is_live() {
        blobs::hurry(draft, tenant, row.record.blob, now)?;
        return Ok(Deleted::WasGone(row.record));
    }
    if keeping.floor(terms).protected.is_some_and(|until| !until.is_past(now)) {
        return Ok(Deleted::Protected(keeping.view(row.record, terms)));
    }
    end(draft, row, now, audit, terms, now).map(Deleted::Gone)
}

/// Erases the asset, unless a hold is on it or on a run that references it.
pub(super) fn erase(
    draft: &mut Draft,
    tenant: &TenantId,
    id: AssetId,
    terms: &Terms,
    audit: AuditEvent,
    now: Timestamp,
) -> Result<Erasure, StorageError> {
    let Some(row) = draft.rows().asset(tenant, id)? else {
        return Ok(Erasure::Unknown);
    };
    if row.is_erased() {
        return Ok(Erasure::Done(Box::new(row.record)));
    }
    let keeping = draft.rows().keeping(&row)?;
    if keeping.is_held() {
        return Ok(Erasure::Held(keeping.holds));
    }
    wipe(draft, row, audit, terms, now).map(|record| Erasure::Done(Box::new(record)))
}

/// Erases an asset that is not yet.
fn wipe(
    draft: &mut Draft,
    mut row: AssetRow,
    audit: AuditEvent,
    terms: &Terms,
    now: Timestamp,
) -> Result<AssetRecord, StorageError> {
    let (tenant, id) = (row.record.tenant.clone(), row.record.id);
    draft.delete(Key::same(&tenant, &row.record.sha256, id));
    let others = draft.rows().same(&tenant, &row.record.sha256, None);
    let others: Vec<AssetId> = others.take(AssetState::SAME_BYTES).collect::<Result<_, _>>()?;
    draft.discharge(&row.record)?;
    let bytes_removed = blobs::let_go(draft, &tenant, row.record.blob, row.record.is_live(), now)?;
    if let Some(name) = row.claim.take() {
        ingest::drop_answer(draft, &tenant, &name, id)?;
    }
    draft.audit(&tenant, audit);
    row.record = row.record.erased(now, others, bytes_removed);
    draft.owe(&tenant, Owed::asset(&row.record));
    let tombstone = comes_next(draft.rows(), &row, terms)?.until();
    let record = row.record.clone();
    draft.put_asset(row, tombstone.instant());
    Ok(record)
}

fn expire(draft: &mut Draft, row: AssetRow, sweep: Sweep<'_>) -> Result<AssetRecord, StorageError> {
    let audit = expiry_event(&row.record, sweep.principal, sweep.now);
    end(draft, row, after(sweep.now, sweep.terms.tombstone_bytes), audit, sweep.terms, sweep.now)
}

/// Ends a live asset; its bytes, if nobody else holds them, go at `remove_at`.
fn end(
    draft: &mut Draft,
    mut row: AssetRow,
    remove_at: Timestamp,
    audit: AuditEvent,
    terms: &Terms,
    now: Timestamp,
) -> Result<AssetRecord, StorageError> {
    let tenant = row.record.tenant.clone();
    draft.discharge(&row.record)?;
    row.record.state = AssetState::Expired { at: now };
    row.record.revision += 1;
    draft.owe(&tenant, Owed::asset(&row.record));
    blobs::release(draft, &tenant, row.record.blob, remove_at)?;
    draft.audit(&tenant, audit);
    let tombstone = comes_next(draft.rows(), &row, terms)?.until();
    let record = row.record.clone();
    draft.put_asset(row, tombstone.instant());
    Ok(record)
}

/// How many live assets a sweep would expire now, counted up to `limit`.
pub(super) fn count_due(core: &Core, limit: usize, terms: &Terms, now: Timestamp) -> Result<usize, StorageError> {
    let mut counted: HashSet<(TenantId, AssetId)> = HashSet::new();
    for look in due_looks(core.rows(), now) {
        let look = look?;
        for id in seen_by(core.rows(), &look)? {
            if counted.len() >= limit {
                return Ok(limit);
            }
            let id = id?;
            if core.at_once(|rows| would_expire(rows, &look.tenant, id, terms, now))? {
                counted.insert((look.tenant.clone(), id));
            }
        }
    }
    Ok(counted.len())
}

/// The assets that settling the look would come upon.
fn seen_by<'a>(
    rows: Rows<'a>,
    look: &Look,
) -> Result<Box<dyn Iterator<Item = Result<AssetId, StorageError>> + 'a>, StorageError> {
    Ok(match &look.at {
        LookAt::Asset(id) => Box::new(std::iter::once(Ok(*id))),
        LookAt::Run(id) => {
            let walked = rows.run(&look.tenant, id)?.and_then(|row| row.walked);
            Box::new(rows.assets_of(&look.tenant, id, walked))
        }
    })
}

fn would_expire(
    rows: Rows<'_>,
    tenant: &TenantId,
    id: AssetId,
    terms: &Terms,
    now: Timestamp,
) -> Result<bool, StorageError> {
    match rows.asset(tenant, id)? {
        Some(row) if row.record.is_live() => Ok(comes_next(rows, &row, terms)?.until().is_past(now)),
        _ => Ok(false),
    }
}

/// What a sweep at `at` would take of the tenant's.
pub(super) fn preview(
    core: &Core,
    tenant: &TenantId,
    at: Timestamp,
    behind: Option<AssetId>,
    limit: usize,
    terms: &Terms,
) -> Result<Preview, StorageError> {
    let mut found: BTreeSet<AssetId> = BTreeSet::new();
    for look in due_looks(core.rows(), at) {
        let look = look?;
        if look.tenant != *tenant {
            continue;
        }
        for id in seen_by(core.rows(), &look)? {
            let id = id?;
            if core.at_once(|rows| would_expire(rows, tenant, id, terms, at))? {
                found.insert(id);
            }
        }
    }
    let mut preview = Preview::default();
    for id in found {
        let in_page = behind.is_none_or(|behind| id > behind) && preview.assets.len() < limit;
        let row = core.at_once(|rows| rows.asset(tenant, id))?;
        // It may have ended since it was found.
        let Some(row) = row.filter(|row| row.record.is_live()) else {
            continue;
        };
        preview.count += 1;
        preview.bytes += row.record.bytes;
        if in_page {
            preview.assets.push(core.at_once(|rows| assets::view_of(rows, row, terms))?);
        }
    }
    Ok(preview)
}
