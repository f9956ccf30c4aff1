//! What a tenant sees of its assets, and what it may change of them.

use std::borrow::Cow;

use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::index::{Amended, Amendment, AssetQuery, Deleted};
use mediakeep_storage::quota::{Quota, Usage};
use mediakeep_storage::record::{AssetState, Doomed, Owed};
use mediakeep_storage::retention::Until;
use mediakeep_storage::{AssetId, AssetRecord, AssetView, AuditEvent, TenantId, fault};
use serde_json::json;
use tracing::warn;

use super::AssetError;
use super::ingest::put_recovery_record;
use crate::access::Principal;
use crate::app::App;
use crate::retention::{floors, sweep};

/// The most entries of a page.
pub const MAX_PAGE: usize = 500;

/// The entries of a page of which nobody says how many.
pub const DEFAULT_PAGE: usize = 100;

/// The asset, whatever its state.
pub async fn show(app: &App, tenant: &TenantId, asset: AssetId) -> Result<AssetView, AssetError> {
    app.index.view(tenant, asset, &app.terms(tenant)).await?.ok_or(AssetError::NotFound)
}

/// What the tenant uses, and how much it may.
pub async fn usage(app: &App, tenant: &TenantId) -> Result<(Usage, Quota), AssetError> {
    Ok((app.index.usage(tenant).await?, app.quota(tenant)))
}

/// A page of assets, and whether there is more behind it.
pub async fn page(app: &App, tenant: &TenantId, query: AssetQuery) -> Result<(Vec<AssetView>, bool), AssetError> {
    let limit = query.limit.clamp(1, MAX_PAGE);
    // One more than asked for tells whether there is a next page.
    let query = AssetQuery { limit: limit + 1, ..query };
    let mut views = app.index.page(tenant, &query, &app.terms(tenant)).await?;
    let more = views.len() > limit;
    views.truncate(limit);
    Ok((views, more))
}

/// Changes the asset's words.
pub async fn amend(app: &App, caller: &Principal, asset: AssetId, change: Amendment) -> Result<AssetView, AssetError> {
    let tenant = &caller.tenant;
    let named: Vec<&str> = [("name", &change.name), ("alt", &change.alt), ("title", &change.title)]
        .into_iter()
        .filter_map(|(name, change)| change.as_ref().map(|_| name))
        .collect();
    let audit =
        AuditEvent::new(AuditKind::Amend, &*caller.id, app.now()).asset(asset).details(json!({"members": named}));
    let amended = app.index.amend(tenant, asset, change, audit).await;
    fault::held("change.answered").await;
    // Whatever the answer: one that was lost may have been that it is done.
    app.rows.changed(asset);
    let record = match amended? {
        Amended::Changed(record) => record,
        Amended::Stale => return Err(AssetError::Stale),
        Amended::Unknown => return Err(AssetError::NotFound),
        Amended::Dead(record) => {
            let gone = super::Gone::of(&record).ok_or(AssetError::NotFound)?;
            return Err(gone.into());
        }
    };
    fault::point("amend.changed");
    write_record(app, &record).await?;
    show(app, tenant, asset).await
}

/// Ends the asset, unless something protects it: its bytes go at once if nobody else holds them.
pub async fn delete(app: &App, caller: &Principal, asset: AssetId) -> Result<(), AssetError> {
    let (tenant, now) = (&caller.tenant, app.now());
    let audit = AuditEvent::new(AuditKind::Expire, &*caller.id, now).asset(asset).details(json!({"asked": true}));
    let deleted = app.index.delete(tenant, asset, &app.terms(tenant), audit, now).await;
    fault::held("change.answered").await;
    app.rows.changed(asset);
    match deleted? {
        Deleted::Gone(record) => {
            app.metrics.expired(1);
            fault::point("delete.ended");
            after_its_end(app, &record).await
        }
        // Also what an earlier request has ended and could not do all of.
        Deleted::WasGone(record) => after_its_end(app, &record).await,
        Deleted::Unknown => Err(AssetError::NotFound),
        Deleted::Held(holds) => Err(AssetError::Held { holds }),
        Deleted::Protected(view) => {
            let (because, _) = floors::because(app, tenant, asset, now).await?;
            Err(AssetError::Protected { retain_until: view.floor.protected.and_then(Until::instant), because })
        }
    }
}

/// What follows the end of an asset that its owner has asked for: its bytes go, and its recovery record says so.
async fn after_its_end(app: &App, record: &AssetRecord) -> Result<(), AssetError> {
    remove_bytes(app, &Doomed { tenant: record.tenant.clone(), blob: record.blob, asset: None }).await;
    fault::point("delete.removed");
    write_record(app, record).await
}

/// Writes the asset's row beside its bytes after a transition, drops what the records before it say, and looks at the row once more. Until
/// all of that is done the record stays owed, and nobody is told of the change.
///
/// Whoever ended, erased or dropped the asset since then may have written before us, and what we have written would be the last word
/// on it: an erased asset's digest and names again, or a record of an asset that is gone. One that was dropped may also have taken the
/// folder from under our feet, which is no failure then.
pub async fn write_record(app: &App, record: &AssetRecord) -> Result<(), AssetError> {
    let tenant = &record.tenant;
    let mut newest = Cow::Borrowed(record);
    loop {
        let written = replace_record(app, &newest).await;
        match app.index.find(tenant, record.id).await? {
            Some(now) if now.revision > newest.revision => newest = Cow::Owned(now),
            Some(_) => {
                written?;
                break;
            }
            None => {
                app.blobs.remove_records(tenant, RecordOf::Asset(record.id), None).await?;
                break;
            }
        }
    }
    app.paid.note(tenant, &Owed::asset(record));
    Ok(())
}

/// Writes the record, and takes those before it away. Of an erased asset they go first, so that whatever a crash leaves, nothing says
/// any more what it was.
async fn replace_record(app: &App, record: &AssetRecord) -> Result<(), AssetError> {
    let of = RecordOf::Asset(record.id);
    if matches!(record.state, AssetState::Erased { .. }) {
        app.blobs.remove_records(&record.tenant, of, Some(record.revision)).await?;
        fault::point("record.forgotten");
    }
    put_recovery_record(app, record).await?;
    fault::point("record.written");
    Ok(app.blobs.remove_records(&record.tenant, of, Some(record.revision)).await?)
}

/// Removes the recovery records of an asset that has no row any more. Who writes one meanwhile looks again, and removes it too.
pub async fn forget(app: &App, tenant: &TenantId, asset: AssetId) {
    match app.blobs.remove_records(tenant, RecordOf::Asset(asset), None).await {
        Ok(()) => app.paid.note(tenant, &Owed::Dropped { id: asset }),
        Err(error) => {
            warn!(asset.id = %asset, error = %error, "the recovery record of a dropped tombstone stays until the next sweep");
        }
    }
}

/// Writes the end of an asset beside where its bytes were. Should that fail, it stays owed until the next sweep.
pub async fn put_end_record(app: &App, record: &AssetRecord) {
    if let Err(error) = write_record(app, record).await {
        warn!(asset.id = %record.id, error = %error, "the recovery record of an ended asset says that it lives");
    }
}

/// Takes a blob that nobody holds any more out of reach, and its bytes away. Should that fail, the sweep does it.
async fn remove_bytes(app: &App, wanted: &Doomed) {
    if let Err(error) = sweep::remove_at_once(app, wanted).await {
        warn!(blob.key = %wanted.blob, error = %error, "the bytes of a deleted asset stay until the next sweep");
    }
}
