//! Delivery URLs, and what revokes them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::assets::{note_revoked, raise_generation};
use super::draft::{Draft, Rows};
use super::keys::{Key, Space};
use super::shared::Core;
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId};
use crate::index::NewDurable;
use crate::index::codec::corrupt;
use crate::record::{AssetRecord, MintedUrl, Owed, Taken, UrlRecord, UrlView};

/// Notes URLs that are about to be handed out.
pub(super) fn mint(
    draft: &mut Draft,
    tenant: &TenantId,
    urls: Vec<MintedUrl>,
    events: Vec<AuditEvent>,
) -> Result<(), StorageError> {
    for MintedUrl { url_id, record } in urls {
        let key = Key::named(Space::Urls, tenant, &url_id);
        if draft.rows().get(&key)?.is_some() {
            continue;
        }
        if let Some(label) = &record.label {
            draft.mark(Key::labelled(tenant, label, &url_id));
        }
        draft.mark(Key::tidy(record.keep_until, Space::Urls, tenant, &url_id));
        draft.put(key, &record);
    }
    events.into_iter().for_each(|event| draft.audit(tenant, event));
    Ok(())
}

/// The delivery URL of that name.
pub(super) fn find(rows: Rows<'_>, tenant: &TenantId, url_id: &str) -> Result<Option<UrlView>, StorageError> {
    let record = rows.read::<UrlRecord>("URL", &Key::named(Space::Urls, tenant, url_id))?;
    let Some(record) = record else {
        return Ok(None);
    };
    let revoked = rows.get(&Key::named(Space::Revoked, tenant, url_id))?.is_some();
    Ok(Some(UrlView { url_id: url_id.to_owned(), record, revoked }))
}

/// The delivery URLs with this label. One that is dropped meanwhile is passed over.
pub(super) fn labelled(
    core: &Core,
    tenant: &TenantId,
    label: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<UrlView>, StorageError> {
    let prefix = Key::label(tenant, label);
    let after = after.map(|url_id| Key::labelled(tenant, label, url_id));
    let mut found = Vec::new();
    for row in core.rows().scan_after(&prefix, after.as_ref()) {
        if found.len() >= limit {
            break;
        }
        let (key, _) = row?;
        let url_id = std::str::from_utf8(&key[prefix.as_bytes().len()..]);
        let url_id = url_id.map_err(|_| corrupt("label: a URL's name is not text".into()))?;
        found.extend(core.at_once(|rows| find(rows, tenant, url_id))?);
    }
    Ok(found)
}

/// Takes one use of a counted URL.
pub(super) fn take_use(draft: &mut Draft, tenant: &TenantId, url_id: &str) -> Result<Taken, StorageError> {
    let Some(UrlView { mut record, .. }) = find(draft.rows(), tenant, url_id)?.filter(|url| !url.revoked) else {
        return Ok(Taken::Unknown);
    };
    match record.uses_left {
        None => Ok(Taken::Unknown),
        Some(0) => Ok(Taken::Exhausted),
        Some(left) => {
            record.uses_left = Some(left - 1);
            draft.put(Key::named(Space::Urls, tenant, url_id), &record);
            Ok(Taken::Yours)
        }
    }
}

/// Revokes those of the URLs that open.
pub(super) fn revoke(
    draft: &mut Draft,
    tenant: &TenantId,
    url_ids: &[String],
    audit: &AuditEvent,
    now: Timestamp,
) -> Result<Vec<MintedUrl>, StorageError> {
    let mut revoked = Vec::new();
    for url_id in BTreeSet::from_iter(url_ids) {
        let Some(UrlView { url_id, record, .. }) = find(draft.rows(), tenant, url_id)?.filter(|url| url.opens(now))
        else {
            continue;
        };
        note_revoked(draft, tenant, &url_id, record.keep_until)?;
        draft.audit(tenant, audit.clone().asset(record.asset).url(&*url_id));
        revoked.push(MintedUrl { url_id, record });
    }
    Ok(revoked)
}

/// Drops the URL, which has its label's entry beside it.
pub(super) fn forget(draft: &mut Draft, key: Key) -> Result<(), StorageError> {
    let record: Option<UrlRecord> = draft.rows().read("URL", &key)?;
    if let Some(label) = record.and_then(|record| record.label) {
        let (tenant, url_id) = key.clone().into_named()?;
        draft.delete(Key::labelled(&tenant, &label, &url_id));
    }
    draft.delete(key);
    Ok(())
}

/// Gives several assets the next generation.
pub(super) fn raise_generations(
    draft: &mut Draft,
    tenant: &TenantId,
    ids: &[AssetId],
    durable: &NewDurable,
    audit: &AuditEvent,
) -> Result<Vec<AssetRecord>, StorageError> {
    let mut raised = Vec::with_capacity(ids.len());
    for id in BTreeSet::from_iter(ids) {
        raised.extend(raise_generation(draft, tenant, *id, durable.clone(), audit.clone().asset(*id))?);
    }
    Ok(raised)
}

/// Raises the generation of everything that the tenant has.
pub(super) fn raise_epoch(draft: &mut Draft, tenant: &TenantId, audit: AuditEvent) -> Result<u32, StorageError> {
    let epoch = draft.rows().epoch(tenant)?.saturating_add(1);
    draft.put(Key::of(Space::Epochs, tenant), &epoch);
    draft.audit(tenant, audit);
    draft.owe(tenant, Owed::Epoch(epoch));
    Ok(epoch)
}

/// The same, of an index that is made anew.
pub(super) fn restore_epoch(draft: &mut Draft, tenant: &TenantId, epoch: u32) -> Result<(), StorageError> {
    if draft.rows().epoch(tenant)? < epoch {
        draft.put(Key::of(Space::Epochs, tenant), &epoch);
    }
    Ok(())
}
