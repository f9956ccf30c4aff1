//! Assets: how they are read, and what changes of them while they live.

use jiff::Timestamp;

use super::FEW;
use super::draft::{Draft, Rows};
use super::keys::{Key, Parts, Space};
use super::packed::Row;
use super::rows::{AssetRow, RevokedRow};
use super::shared::Core;
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId};
use crate::index::{Amended, Amendment, AssetQuery, NewDurable};
use crate::record::{AssetRecord, AssetView, DurableUrl, Owed};
use crate::retention::{self, Protector, Terms};

/// The asset's row.
pub(super) fn find(core: &Core, tenant: &TenantId, id: AssetId) -> Result<Option<AssetRecord>, StorageError> {
    Ok(core.rows().asset(tenant, id)?.map(|row| row.record))
}

/// Whether few enough runs reference the asset for its view to be read on the caller's thread.
pub(super) fn has_few_references(core: &Core, tenant: &TenantId, id: AssetId) -> Result<bool, StorageError> {
    Ok(core.rows().runs_of(tenant, id).nth(FEW).transpose()?.is_none())
}

/// The asset and what keeps it, as of one moment.
pub(super) fn view(
    core: &Core,
    tenant: &TenantId,
    id: AssetId,
    terms: &Terms,
) -> Result<Option<AssetView>, StorageError> {
    core.at_once(|rows| match rows.asset(tenant, id)? {
        Some(row) => view_of(rows, row, terms).map(Some),
        None => Ok(None),
    })
}

/// What still protects the asset, as of one moment.
pub(super) fn protectors(
    core: &Core,
    tenant: &TenantId,
    id: AssetId,
    limit: usize,
    terms: &Terms,
    now: Timestamp,
) -> Result<Vec<Protector>, StorageError> {
    core.at_once(|rows| {
        let Some(row) = rows.asset(tenant, id)? else {
            return Ok(Vec::new());
        };
        let mut runs = Vec::new();
        for reference in rows.runs_of(tenant, id) {
            let run = rows.referencing(tenant, &reference?.1)?;
            let stake = run.stake();
            runs.push((run.record.id, stake));
        }
        let holds = rows.keeping(&row)?.holds;
        Ok(retention::protectors(row.own(), holds, &runs, limit, terms, now))
    })
}

/// One page of the tenant's assets, or of one run's.
pub(super) fn page(
    core: &Core,
    tenant: &TenantId,
    query: &AssetQuery,
    terms: &Terms,
) -> Result<Vec<AssetView>, StorageError> {
    let wanted = |record: &AssetRecord| {
        query.kind.as_ref().is_none_or(|kind| *kind == record.kind)
            && query.mime_type.as_ref().is_none_or(|mime| *mime == record.mime_type)
            && query.state.as_ref().is_none_or(|state| *state == record.state.name())
    };
    let mut views = Vec::new();
    for id in names(core.rows(), tenant, query) {
        if views.len() >= query.limit {
            break;
        }
        let id = id?;
        let view = core.at_once(|rows| match rows.asset(tenant, id)? {
            Some(row) if wanted(&row.record) => view_of(rows, row, terms).map(Some),
            _ => Ok(None),
        })?;
        views.extend(view);
    }
    Ok(views)
}

fn names<'a>(
    rows: Rows<'a>,
    tenant: &TenantId,
    query: &AssetQuery,
) -> Box<dyn Iterator<Item = Result<AssetId, StorageError>> + 'a> {
    if let Some(run) = &query.run {
        return Box::new(rows.assets_of(tenant, run, query.after));
    }
    let after = query.after.map(|id| Key::asset(tenant, id));
    Box::new(rows.scan_after(&Key::of(Space::Assets, tenant), after.as_ref()).map(|row| {
        let (key, _) = row?;
        let mut parts = Parts::of(&key);
        parts.name::<TenantId>()?;
        parts.asset()
    }))
}

pub(super) fn view_of(rows: Rows<'_>, row: AssetRow, terms: &Terms) -> Result<AssetView, StorageError> {
    Ok(rows.keeping(&row)?.view(row.record, terms))
}

/// The assets with the same bytes.
pub(super) fn same_bytes(
    core: &Core,
    tenant: &TenantId,
    id: AssetId,
    after: Option<AssetId>,
    limit: usize,
) -> Result<Vec<AssetId>, StorageError> {
    let Some(row) = core.rows().asset(tenant, id)?.filter(|row| !row.is_erased()) else {
        return Ok(Vec::new());
    };
    let same = core.rows().same(tenant, &row.record.sha256, after);
    same.filter(|one| one.as_ref().map_or(true, |one| *one != id)).take(limit).collect()
}

/// Assets across tenants, in the order of tenants and names.
pub(super) fn list(
    core: &Core,
    after: Option<(TenantId, AssetId)>,
    limit: usize,
) -> Result<Vec<AssetRecord>, StorageError> {
    let after = after.map(|(tenant, id)| Key::asset(&tenant, id));
    let rows = core.rows().scan_after(&Key::space(Space::Assets), after.as_ref());
    rows.take(limit).map(|row| AssetRow::read("asset", &row?.1).map(|row| row.record)).collect()
}

/// Changes the asset's words.
pub(super) fn amend(
    draft: &mut Draft,
    tenant: &TenantId,
    id: AssetId,
    change: &Amendment,
    audit: AuditEvent,
) -> Result<Amended, StorageError> {
    let Some(mut row) = draft.rows().asset(tenant, id)? else {
        return Ok(Amended::Unknown);
    };
    if !row.record.is_live() {
        return Ok(Amended::Dead(row.record));
    }
    if change.expected.is_some_and(|revision| revision != row.record.revision) {
        return Ok(Amended::Stale);
    }
    row.record.labels = change.apply(&row.record.labels);
    row.record.revision += 1;
    let record = row.record.clone();
    let look = row.look;
    draft.put_asset(row, look);
    draft.audit(tenant, audit);
    draft.owe(tenant, Owed::asset(&record));
    Ok(Amended::Changed(record))
}

/// Gives the asset the next generation of its durable URL.
pub(super) fn raise_generation(
    draft: &mut Draft,
    tenant: &TenantId,
    id: AssetId,
    durable: NewDurable,
    audit: AuditEvent,
) -> Result<Option<AssetRecord>, StorageError> {
    change_durable(draft, tenant, id, audit, |old| DurableUrl {
        kid: durable.kid,
        issued_at: durable.issued_at,
        generation: old.generation.saturating_add(1),
    })
}

/// Has another key sign the durable URL of the same generation.
pub(super) fn resign(
    draft: &mut Draft,
    tenant: &TenantId,
    id: AssetId,
    durable: NewDurable,
    audit: AuditEvent,
) -> Result<Option<AssetRecord>, StorageError> {
    change_durable(draft, tenant, id, audit, |old| DurableUrl {
        kid: durable.kid,
        issued_at: durable.issued_at,
        generation: old.generation,
    })
}

fn change_durable(
    draft: &mut Draft,
    tenant: &TenantId,
    id: AssetId,
    audit: AuditEvent,
    change: impl FnOnce(&DurableUrl) -> DurableUrl,
) -> Result<Option<AssetRecord>, StorageError> {
    let Some(mut row) = draft.rows().asset(tenant, id)? else {
        return Ok(None);
    };
    row.record.durable = change(&row.record.durable);
    row.record.revision += 1;
    let record = row.record.clone();
    let look = row.look;
    draft.put_asset(row, look);
    draft.audit(tenant, audit);
    draft.owe(tenant, Owed::asset(&record));
    Ok(Some(record))
}

/// Notes that the URL was revoked, for as long as the longest wish.
pub(super) fn revoke_url(
    draft: &mut Draft,
    tenant: &TenantId,
    url_id: &str,
    keep_until: Timestamp,
    audit: AuditEvent,
) -> Result<(), StorageError> {
    draft.audit(tenant, audit);
    note_revoked(draft, tenant, url_id, keep_until)
}

/// The same, without its event.
pub(super) fn note_revoked(
    draft: &mut Draft,
    tenant: &TenantId,
    url_id: &str,
    keep_until: Timestamp,
) -> Result<(), StorageError> {
    let key = Key::named(Space::Revoked, tenant, url_id);
    let before: Option<RevokedRow> = draft.rows().read("revoked URL", &key)?;
    let later = before.as_ref().map_or(keep_until, |row| row.keep_until.max(keep_until));
    if let Some(row) = before {
        draft.delete(Key::tidy(row.keep_until, Space::Revoked, tenant, url_id));
    }
    draft.mark(Key::tidy(later, Space::Revoked, tenant, url_id));
    draft.put(key, &RevokedRow { keep_until: later });
    Ok(())
}

/// Whether the URL was revoked.
pub(super) fn is_revoked(core: &Core, tenant: &TenantId, url_id: &str) -> Result<bool, StorageError> {
    Ok(core.rows().get(&Key::named(Space::Revoked, tenant, url_id))?.is_some())
}
