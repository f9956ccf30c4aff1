//! The audit log: what it tells of besides the index's own transitions, how it is read, and how an auditor checks it.
//!
//! Nearly every event is written by the transition that it tells of, and takes its place in its tenant's hash chain within a second
//! ([`mediakeep_storage::audit`]). The rest comes from here: [`reads`], what was [`denied`], and the keys that come into the ring and
//! leave it. Whoever signs does it in [`signed`]; [`chain`] follows a chain from its first row; [`isolation`] has a tenant's own assets
//! tried by strangers.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use mediakeep_keys::Ring;
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::index::Claimed;
use mediakeep_storage::record::Claim;
use mediakeep_storage::retention::after;
use mediakeep_storage::{AssetId, AuditEvent, BlobKey, StorageError, TenantId};
use serde_json::json;

use crate::app::App;

pub mod chain;
pub mod denied;
pub mod isolation;
pub mod log;
pub mod reads;
pub mod signed;

pub use denied::{Denials, Due};
pub use reads::{ReadTrail, Reader, read};

/// Writes what waits. Called twice a second, and once at the end.
pub async fn flush(app: &App, due: Due) -> Result<(), StorageError> {
    let reads = reads::flush(app).await;
    denied::flush(app, due).await.and(reads)
}

/// Tells every tenant that has assets, or that the settings name, which keys came into the ring and which left it. One that cannot be told
/// keeps no other from it; the answer is the last failure.
pub async fn ring_changed(app: &App, before: &Ring, after: &Ring) -> Result<(), StorageError> {
    let now = app.now();
    let kids = |ring: &Ring| -> BTreeSet<String> {
        let audit = ring.audit_public_keys().map(|key| key.kid().to_owned());
        ring.keys(now.as_second()).into_iter().map(|key| key.kid).chain(audit).collect()
    };
    let (before, after) = (kids(before), kids(after));
    if before == after {
        return Ok(());
    }
    let (added, removed): (Vec<_>, Vec<_>) = (after.difference(&before).collect(), before.difference(&after).collect());
    let event = AuditEvent::new(AuditKind::Key, "keys", now).details(json!({"added": added, "removed": removed}));
    let mut outcome = Ok(());
    for tenant in tenants(app).await? {
        if let Err(error) = record_once(app, &tenant, &event).await {
            outcome = Err(error);
        }
    }
    outcome
}

/// The tenants that have assets, or that the settings name.
pub async fn tenants(app: &App) -> Result<BTreeSet<TenantId>, StorageError> {
    let mut tenants = configured(app);
    let mut last = None;
    while let Some(tenant) = tenant_behind(app, last).await? {
        tenants.insert(tenant.clone());
        last = Some(tenant);
    }
    Ok(tenants)
}

/// For so long nobody else tells of the same change: whoever reads the ring does so within seconds.
const TOLD: SignedDuration = SignedDuration::from_hours(24);

/// Writes the event, unless another process that shares the index, and saw the same change of the ring, has written it.
async fn record_once(app: &App, tenant: &TenantId, event: &AuditEvent) -> Result<(), StorageError> {
    let change = event.details.as_ref().map(ToString::to_string).unwrap_or_default();
    // A request's claim begins with its route, so it never has this name.
    let name = format!("ring {change}");
    let claim = Claim { name, holder: BlobKey::generate().to_bytes(), lapses_at: after(app.now(), TOLD) };
    if app.index.claim(tenant, claim.clone(), app.now()).await? != Claimed::Yours {
        return Ok(());
    }
    let written = app.index.record(tenant, vec![event.clone()]).await;
    if written.is_err() {
        app.index.release_claim(tenant, &claim).await?;
    }
    written
}

/// The tenants that the settings name, in full.
fn configured(app: &App) -> BTreeSet<TenantId> {
    let live = app.live();
    let of_keys = live.settings.access.api_keys.iter().map(|key| &key.tenant);
    let of_issuers = live.settings.access.issuers.iter().flat_map(|issuer| &issuer.tenants);
    let overridden = live.settings.tenants.iter().map(|tenant| &tenant.id);
    of_keys.chain(of_issuers).chain(overridden).filter_map(|name| TenantId::parse(name).ok()).collect()
}

/// The next tenant that has assets: from behind the last name that an asset of this one could have. So a tenant costs one look,
/// however many assets it has.
async fn tenant_behind(app: &App, tenant: Option<TenantId>) -> Result<Option<TenantId>, StorageError> {
    let after = tenant.map(|tenant| (tenant, AssetId::from_bytes([u8::MAX; 16])));
    Ok(app.index.assets(after, 1).await?.into_iter().next().map(|record| record.tenant))
}
