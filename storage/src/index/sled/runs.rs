//! Runs: what the registry has, and what they reference.

use jiff::Timestamp;

use super::draft::{Draft, Rows};
use super::keys::{Key, Space};
use super::packed::Row;
use super::rows::{AssetRow, RunRow};
use super::shared::Core;
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::{Referred, RunQuery};
use crate::record::{AssetRecord, Owed, ReferenceRecord, RunRecord, RunView};
use crate::retention::{RunConflict, RunUpdate, Terms};

/// Registers the run, or changes what the update names; says which assets it took up from its parent.
pub(super) fn update(
    draft: &mut Draft,
    tenant: &TenantId,
    update: &RunUpdate,
    terms: &Terms,
    audit: AuditEvent,
    now: Timestamp,
) -> Result<Result<(RunRecord, Vec<AssetId>), RunConflict>, StorageError> {
    let rows = draft.rows();
    let before = rows.run(tenant, &update.id)?;
    let parent = match &update.fork_of {
        Some(id) => rows.run(tenant, id)?.map(|row| row.record),
        None => None,
    };
    let ancestors = match (&before, &parent) {
        (Some(_), Some(parent)) => ancestors(rows, tenant, parent)?,
        _ => Vec::new(),
    };
    let known = before.as_ref().map(|row| &row.record);
    let decided = RunRecord::becomes_fork(known, update, parent.as_ref(), &ancestors)
        .and_then(|forks| Ok((forks, RunRecord::updated(known, update, now, terms)?)));
    let (forks, record) = match decided {
        Ok(decided) => decided,
        Err(conflict) => return Ok(Err(conflict)),
    };
    draft.audit(tenant, audit);
    draft.owe(tenant, Owed::run(&record));
    let row = draft.put_run(tenant, before, record, terms);
    let mut inherited = Vec::new();
    if let Some(parent) = parent.filter(|_| forks) {
        inherited = draft.rows().assets_of(tenant, &parent.id, None).collect::<Result<_, _>>()?;
        take_up(draft, tenant, &row, &inherited, terms, now)?;
    }
    if !inherited.is_empty() {
        draft.owe(tenant, Owed::References(ReferenceRecord::new(&update.id, &inherited, now)));
    }
    Ok(Ok((row.record, inherited)))
}

/// The runs that this one is a fork of, nearest first.
fn ancestors(rows: Rows<'_>, tenant: &TenantId, of: &RunRecord) -> Result<Vec<RunId>, StorageError> {
    let mut found = Vec::new();
    let mut next = of.fork_of.clone();
    while let Some(id) = next {
        next = rows.run(tenant, &id)?.and_then(|row| row.record.fork_of);
        found.push(id);
    }
    Ok(found)
}

/// Adds references to assets that are there.
pub(super) fn take_up(
    draft: &mut Draft,
    tenant: &TenantId,
    run: &RunRow,
    assets: &[AssetId],
    terms: &Terms,
    now: Timestamp,
) -> Result<(), StorageError> {
    for id in assets {
        let Some(asset) = draft.rows().asset(tenant, *id)? else {
            continue;
        };
        if let Some(place) = draft.add_reference(tenant, &run.record.id, &asset.record)? {
            see_to(draft, run, asset, place, terms, now);
        }
    }
    Ok(())
}

/// Makes the run reference all of the assets, or none.
pub(super) fn refer(
    draft: &mut Draft,
    tenant: &TenantId,
    run: &RunId,
    assets: &[AssetId],
    terms: &Terms,
    audit: AuditEvent,
    now: Timestamp,
) -> Result<Referred, StorageError> {
    let mut unknown = Vec::new();
    for (position, id) in assets.iter().enumerate() {
        if draft.rows().get(&Key::asset(tenant, *id))?.is_none() {
            unknown.push(position);
        }
    }
    if !unknown.is_empty() {
        return Ok(Referred::Unknown(unknown));
    }
    if draft.rows().run(tenant, run)?.is_some_and(|row| row.is_erased()) {
        return Ok(Referred::RunErased);
    }
    let row = touch(draft, tenant, run, terms, now)?;
    take_up(draft, tenant, &row, assets, terms, now)?;
    draft.audit(tenant, audit);
    draft.owe(tenant, Owed::run(&row.record));
    draft.owe(tenant, Owed::References(ReferenceRecord::new(run, assets, now)));
    Ok(Referred::All(row.record))
}

/// Sees to it that an asset which the run references from now on is seen in time.
fn see_to(draft: &mut Draft, run: &RunRow, asset: AssetRow, place: u64, terms: &Terms, now: Timestamp) {
    let end = run.stake().until();
    if !asset.record.is_live() {
        // From the first reference on its tombstone counts from the end of a run, which may be before its death.
        if let Some(at) = end.plus(terms.tombstone_record).instant().filter(|_| place == 0) {
            draft.put_asset_seen_by(asset, at);
        }
        return;
    }
    let until = run.stake().keeps(terms);
    // If the run's own look is over, or may be, what it would have seen has to be seen for its own sake.
    let seen = run.will_look_at_all() && !until.is_past(now);
    if let Some(at) = until.instant().filter(|_| !seen) {
        draft.put_asset_seen_by(asset, at);
    }
}

/// The run after one more reference: made if it is not known, kept for longer if nobody registered it.
pub(super) fn touch(
    draft: &mut Draft,
    tenant: &TenantId,
    id: &RunId,
    terms: &Terms,
    now: Timestamp,
) -> Result<RunRow, StorageError> {
    let before = draft.rows().run(tenant, id)?;
    let Some(row) = before else {
        let record = RunRecord::referenced(id.clone(), now, terms);
        return Ok(draft.put_run(tenant, None, record, terms));
    };
    match row.record.touched(now, terms) {
        Some(record) => Ok(draft.put_run(tenant, Some(row), record, terms)),
        None => Ok(row),
    }
}

/// The run, with its counts as they are found on the way.
pub(super) fn view(core: &Core, tenant: &TenantId, id: &RunId) -> Result<Option<RunView>, StorageError> {
    let Some(row) = core.rows().run(tenant, id)? else {
        return Ok(None);
    };
    count(core.rows(), tenant, row.record).map(Some)
}

/// Runs in the order of their names.
pub(super) fn list(core: &Core, tenant: &TenantId, query: &RunQuery) -> Result<Vec<RunView>, StorageError> {
    let after = query.after.as_ref().map(|id| Key::run(tenant, id));
    let mut views = Vec::new();
    for row in core.rows().scan_after(&Key::of(Space::Runs, tenant), after.as_ref()) {
        if views.len() >= query.limit {
            break;
        }
        let row = RunRow::read("run", &row?.1)?;
        if query.status.is_none_or(|status| status == row.record.status) {
            views.push(count(core.rows(), tenant, row.record)?);
        }
    }
    Ok(views)
}

/// The run with what it references, counted now.
pub(super) fn count(rows: Rows<'_>, tenant: &TenantId, record: RunRecord) -> Result<RunView, StorageError> {
    let (mut assets, mut bytes) = (0, 0);
    for asset in rows.assets_of(tenant, &record.id, None) {
        let Some(row) = rows.asset(tenant, asset?)? else {
            // Dropped with its references since this one was read.
            continue;
        };
        assets += 1;
        if row.record.is_live() {
            bytes += row.record.bytes;
        }
    }
    Ok(RunView { record, assets, bytes })
}

impl Draft {
    /// Adds the reference in both directions; says its place, if it is new.
    pub(super) fn add_reference(
        &mut self,
        tenant: &TenantId,
        run: &RunId,
        asset: &AssetRecord,
    ) -> Result<Option<u64>, StorageError> {
        if self.rows().place(tenant, run, asset.id)?.is_some() {
            return Ok(None);
        }
        let newest = self.rows().runs_of(tenant, asset.id).next().transpose()?;
        let place = newest.map_or(0, |(place, _)| place + 1);
        self.put_reference(tenant, run, asset, place);
        Ok(Some(place))
    }

    /// The same, where there is none.
    pub(super) fn add_first_reference(&mut self, tenant: &TenantId, run: &RunId, asset: &AssetRecord) {
        self.put_reference(tenant, run, asset, 0);
    }

    fn put_reference(&mut self, tenant: &TenantId, run: &RunId, asset: &AssetRecord, place: u64) {
        self.put_raw(Key::run_asset(tenant, run, asset.id), &place.to_be_bytes());
        self.mark(Key::asset_run(tenant, asset.id, place, run));
    }

    /// Drops every reference to the asset, in both directions.
    pub(super) fn drop_references(&mut self, asset: &AssetRecord) -> Result<Vec<(RunId, AssetId)>, StorageError> {
        let runs: Vec<(u64, RunId)> = self.rows().runs_of(&asset.tenant, asset.id).collect::<Result<_, _>>()?;
        let mut unquoted = Vec::new();
        for (place, run) in runs {
            self.delete(Key::run_asset(&asset.tenant, &run, asset.id));
            self.delete(Key::asset_run(&asset.tenant, asset.id, place, &run));
            self.owe(&asset.tenant, Owed::Unquoted { run: run.clone(), id: asset.id });
            unquoted.push((run, asset.id));
        }
        unquoted.sort();
        Ok(unquoted)
    }
}
