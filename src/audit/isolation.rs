//! The isolation check: a tenant's own assets, tried against every way in as somebody who must not get in.
//!
//! What is tried and by whom is decided here; [`crate::http::isolation`] sends it through the code that serves requests. An answer leaks
//! if it differs in anything from the answer for an asset that does not exist.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::BASE64URL_NOPAD;
use jiff::SignedDuration;
use mediakeep_keys::{Claims, KeyError, Ring};
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::index::{AssetQuery, Claimed};
use mediakeep_storage::record::Claim;
use mediakeep_storage::retention::{Until, after};
use mediakeep_storage::{AssetId, AssetView, AuditEvent, BlobKey, StorageError, TenantId, Timestamp};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::access::{Principal, Scopes};
use crate::app::App;
use crate::assets::{AssetError, library};

/// Assets that are tried if nobody says how many.
pub const DEFAULT_SAMPLE: usize = 100;

/// The most assets of one check.
pub const MAX_SAMPLE: usize = 1_000;

/// What a check found.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = IsolationReport)]
pub struct Report {
    /// Assets that were tried.
    pub checked: usize,
    /// Requests that were made for it.
    pub attempts: usize,
    /// Those that were answered as they must not be. None, if all is well.
    pub leaks: Vec<Leak>,
    /// When the check ended.
    #[schema(value_type = String, format = DateTime)]
    pub checked_at: Timestamp,
}

/// A request that was answered as it must not be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Leak {
    /// The asset.
    pub asset_id: String,
    /// The method and the route's pattern; `store` if it lies where it must not.
    pub route: String,
    /// As whom it was sent: `foreign`, `anonymous`, or `forged:` and what the token was; of the store, what: `bytes` or `record`.
    #[serde(rename = "as")]
    pub as_whom: String,
}

/// The tenants whose check runs.
#[derive(Debug, Default)]
pub struct Checks(Mutex<HashSet<TenantId>>);

/// A check that runs; the next one may begin when this is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    checks: &'a Checks,
    tenant: TenantId,
}

impl Checks {
    /// Begins a tenant's check, unless one runs.
    pub fn begin(&self, tenant: &TenantId) -> Option<Turn<'_>> {
        let begun = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant.clone());
        begun.then(|| Turn { checks: self, tenant: tenant.clone() })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.checks.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.tenant);
    }
}

/// A check's place among the processes that share the index: an idempotency claim of a name that no request's has.
#[derive(Debug)]
pub struct Lease {
    app: Arc<App>,
    tenant: TenantId,
    /// Until it is given up.
    claim: Option<Claim>,
}

/// A check that died with its process keeps others out for so long. Longer than a check of [`MAX_SAMPLE`] assets takes.
const LEASE: SignedDuration = SignedDuration::from_mins(10);

impl Lease {
    /// Takes the tenant's only place, unless another has it.
    pub async fn take(app: &Arc<App>, tenant: &TenantId) -> Result<Option<Self>, StorageError> {
        let name = "isolation check".to_owned();
        let claim = Claim { name, holder: BlobKey::generate().to_bytes(), lapses_at: after(app.now(), LEASE) };
        let taken = app.index.claim(tenant, claim.clone(), app.now()).await? == Claimed::Yours;
        Ok(taken.then(|| Self { app: Arc::clone(app), tenant: tenant.clone(), claim: Some(claim) }))
    }

    /// Gives it up; when this returns the next check may begin. That it could not be given up says nothing of the check: it lapses.
    pub async fn end(mut self) {
        if let Some(claim) = self.claim.take() {
            let _ = self.app.index.release_claim(&self.tenant, &claim).await;
        }
    }
}

impl Drop for Lease {
    /// Whoever asked for the check went away.
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            let (app, tenant) = (Arc::clone(&self.app), self.tenant.clone());
            tokio::spawn(async move { app.index.release_claim(&tenant, &claim).await });
        }
    }
}

/// Whether nothing ends the asset while a check runs, whoever asks for it.
pub fn outlives_the_check(view: &AssetView, now: Timestamp) -> bool {
    match view.floor.until {
        Until::Endless => true,
        Until::At(until) => until > after(now, LEASE),
    }
}

/// Whether the asset's bytes and its recovery record lie under its own tenant's prefix, and not under the stranger's.
pub async fn stored(app: &App, view: &AssetView, stranger: &TenantId) -> Result<[Result<(), Leak>; 2], StorageError> {
    let record = &view.record;
    let of = RecordOf::Asset(record.id);
    let leak = |as_whom: &str| Leak { asset_id: record.id.to_string(), route: "store".into(), as_whom: as_whom.into() };
    let bytes = app.blobs.size(&record.tenant, record.blob).await?.is_some()
        && app.blobs.size(stranger, record.blob).await?.is_none();
    let described = app.blobs.newest_record(&record.tenant, of).await?.is_some()
        && app.blobs.newest_record(stranger, of).await?.is_none();
    Ok([bytes.then_some(()).ok_or_else(|| leak("bytes")), described.then_some(()).ok_or_else(|| leak("record"))])
}

/// Somebody of a tenant that nobody has, who may do everything there.
pub fn foreigner() -> Result<Principal, AssetError> {
    let name = format!("probe-{}", BlobKey::generate());
    let tenant = TenantId::parse(&name).map_err(|error| AssetError::Internal(error.to_string()))?;
    Ok(Principal { tenant, id: "isolation check".to_owned(), scopes: Scopes::ALL })
}

/// Live assets of the tenant, from a random one on and round to the beginning.
pub async fn sample(app: &App, tenant: &TenantId, most: usize) -> Result<Vec<AssetView>, AssetError> {
    let Some(first) = page(app, tenant, None, 1).await?.pop() else {
        return Ok(Vec::new());
    };
    let start = somewhere_between(first.record.id, app.now());
    let mut sample = Vec::new();
    let mut after = Some(start);
    while sample.len() < most {
        let views = page(app, tenant, after, most - sample.len()).await?;
        let Some(last) = views.last() else { break };
        after = Some(last.record.id);
        sample.extend(views);
    }
    let mut after = None;
    while sample.len() < most {
        let views = page(app, tenant, after, most - sample.len()).await?;
        let Some(last) = views.last() else { break };
        after = Some(last.record.id);
        let ended = last.record.id.to_bytes() > start.to_bytes();
        sample.extend(views.into_iter().filter(|view| view.record.id.to_bytes() <= start.to_bytes()));
        if ended {
            break;
        }
    }
    Ok(sample)
}

async fn page(
    app: &App,
    tenant: &TenantId,
    after: Option<AssetId>,
    limit: usize,
) -> Result<Vec<AssetView>, AssetError> {
    let query = AssetQuery { state: Some("live".into()), after, limit, ..AssetQuery::default() };
    Ok(library::page(app, tenant, query).await?.0)
}

/// An id of a moment between the asset's and now: ids begin with their millisecond.
fn somewhere_between(first: AssetId, now: Timestamp) -> AssetId {
    let millis = |id: AssetId| u64::from_be_bytes(id.to_bytes()[..8].try_into().expect("eight bytes")) >> 16;
    let chance = BlobKey::generate().to_bytes();
    let (from, to) = (millis(first), u64::try_from(now.as_millisecond()).unwrap_or(0));
    let span = to.saturating_sub(from) + 1;
    let moment = from + u64::from_be_bytes(chance[..8].try_into().expect("eight bytes")) % span;
    let mut id = chance;
    id[..6].copy_from_slice(&moment.to_be_bytes()[2..]);
    AssetId::from_bytes(id)
}

/// Tokens that look like the asset's and must not open it, each with what is wrong with it.
pub fn forged(ring: &Ring, token: &str, stranger: &TenantId) -> Result<Vec<(&'static str, String)>, KeyError> {
    let Ok((claims, kid)) = ring.open(token) else {
        return Ok(Vec::new());
    };
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, mac] = parts[..] else {
        return Ok(Vec::new());
    };
    let mac_of = |claims: &Claims| {
        let other = ring.mint(kid, claims)?;
        Ok::<_, KeyError>(other.rsplit('.').next().unwrap_or_default().to_owned())
    };
    let theirs = Claims { tenant: stranger.to_string(), ..claims.clone() };
    let of_another = Claims { asset: AssetId::from_bytes([1; 16]).to_string(), ..claims.clone() };
    let older = Claims { generation: claims.generation.checked_sub(1).unwrap_or(1), ..claims.clone() };
    let headed = |alg: &str, kid: &str| {
        BASE64URL_NOPAD.encode(format!(r#"{{"alg":"{alg}","typ":"openwop-media+jwt","kid":"{kid}"}}"#).as_bytes())
    };
    Ok(vec![
        ("older_generation", ring.mint(kid, &older)?),
        ("key_of_another_tenant", ring.mint(kid, &theirs)?),
        ("mac_of_another_tenant", format!("{header}.{payload}.{}", mac_of(&theirs)?)),
        ("mac_of_another_asset", format!("{header}.{payload}.{}", mac_of(&of_another)?)),
        ("unknown_key", format!("{}.{payload}.{mac}", headed("HS256", "k0000000000"))),
        ("algorithm_none", format!("{}.{payload}.", headed("none", kid))),
        ("algorithm_none_with_mac", format!("{}.{payload}.{mac}", headed("none", kid))),
        ("no_mac", format!("{header}.{payload}.")),
        ("short_mac", token[..token.len() - 1].to_owned()),
    ])
}

/// Notes that a check ran.
pub async fn record(app: &App, caller: &Principal, report: &Report) -> Result<(), StorageError> {
    let found = json!({"checked": report.checked, "attempts": report.attempts, "leaks": report.leaks.len()});
    let event = AuditEvent::new(AuditKind::Check, &*caller.id, report.checked_at).details(found);
    app.index.record(&caller.tenant, vec![event]).await
}
