//! The two kinds of capability URL: durable ones for a run's log, delivery ones for a while.

use mediakeep_keys::{Claims, Class, Disposition};
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::record::{MintedUrl, UrlRecord};
use mediakeep_storage::retention::{Until, after};
use mediakeep_storage::{AssetId, AssetView, AuditEvent, BlobKey, TenantId, Timestamp};
use serde_json::json;
use url::Url;

use super::{AssetError, fetch};
use crate::access::Principal;
use crate::app::App;

/// How long a delivery URL lives of which nobody says how long.
pub const DEFAULT_LIFE: i64 = 900;

/// The most assets of one request.
pub const MAX_BATCH: usize = 500;

/// A URL to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// The one that goes into a run's events.
    Durable,
    /// One for a browser or a third party.
    Delivery {
        /// How many seconds it lives.
        seconds: i64,
        /// How the browser is asked to show it.
        disposition: Option<Disposition>,
        /// By what it may be revoked together with others.
        label: Option<String>,
        /// How often its bytes may be fetched; `None`: as often as anybody likes.
        max_uses: Option<u64>,
    },
}

/// A URL that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minted {
    /// The URL. Never logged.
    pub url: String,
    /// Whether it is a durable one.
    pub durable: bool,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// By what it is revoked.
    pub url_id: String,
}

/// The durable URL of an asset: the same string every time, for as long as the ring has its key.
pub fn durable_url(app: &App, view: &AssetView) -> Result<String, AssetError> {
    mint_durable(app, view).map(|minted| minted.url)
}

/// The bound URL of an asset: the same bytes, for a credential of its tenant.
pub fn bound_url(app: &App, asset: AssetId) -> String {
    format!("{}/v1/assets/{asset}/content", app.base_url)
}

/// Makes a URL of that kind for each of the assets: all of them, or none. `None` stands for a name that is no asset's.
pub async fn mint(
    app: &App,
    caller: &Principal,
    assets: &[Option<AssetId>],
    wish: Wish,
) -> Result<Vec<Minted>, AssetError> {
    let now = app.now();
    if let Wish::Delivery { seconds, .. } = &wish {
        let most = app.settings.capabilities.max_delivery.as_secs();
        if !(1..=most).contains(seconds) {
            return Err(AssetError::Invalid(format!("expiresInSeconds: 1 to {most}")));
        }
    }
    let views = views(app, &caller.tenant, assets).await?;
    let minted: Vec<Minted> = views
        .iter()
        .map(|view| match &wish {
            Wish::Durable => mint_durable(app, view),
            Wish::Delivery { seconds, disposition, max_uses, .. } => {
                mint_delivery(app, view, *seconds, *disposition, max_uses.is_some(), now)
            }
        })
        .collect::<Result<_, _>>()?;
    let events = views.iter().zip(&minted).map(|(view, minted)| mint_event(caller, view, minted, now)).collect();
    let rows = views.iter().zip(&minted).filter_map(|(view, minted)| row(app, view, minted, &wish)).collect();
    app.index.mint(&caller.tenant, rows, events).await?;
    Ok(minted)
}

/// The assets, all of them alive; else the positions of those that are unknown, or what the first dead one has left.
async fn views(app: &App, tenant: &TenantId, assets: &[Option<AssetId>]) -> Result<Vec<AssetView>, AssetError> {
    let terms = app.terms(tenant);
    let (mut views, mut unknown) = (Vec::with_capacity(assets.len()), Vec::new());
    for (position, asset) in assets.iter().enumerate() {
        let view = match asset {
            Some(asset) => app.index.view(tenant, *asset, &terms).await?,
            None => None,
        };
        match view {
            Some(view) => views.push(view),
            None => unknown.push(position),
        }
    }
    if !unknown.is_empty() {
        return Err(AssetError::Unknown { positions: unknown });
    }
    for view in &views {
        fetch::end_if_due(app, view).await?;
    }
    Ok(views)
}

/// What the index keeps of a delivery URL.
fn row(app: &App, view: &AssetView, minted: &Minted, wish: &Wish) -> Option<MintedUrl> {
    let (Wish::Delivery { label, max_uses, .. }, Some(expires_at)) = (wish, minted.expires_at) else {
        return None;
    };
    let record = UrlRecord {
        asset: view.record.id,
        generation: view.generation(),
        expires_at,
        keep_until: after(expires_at, app.settings.capabilities.clock_skew.0),
        label: label.clone(),
        uses_left: *max_uses,
    };
    Some(MintedUrl { url_id: minted.url_id.clone(), record })
}

fn mint_durable(app: &App, view: &AssetView) -> Result<Minted, AssetError> {
    let (record, durable) = (&view.record, &view.record.durable);
    let claims = Claims {
        tenant: record.tenant.to_string(),
        asset: record.id.to_string(),
        class: Class::Durable,
        issued_at: durable.issued_at,
        generation: view.generation(),
    };
    signed(app, &durable.kid, &claims)
}

/// A URL that lives for so long, but never longer than its asset.
fn mint_delivery(
    app: &App,
    view: &AssetView,
    seconds: i64,
    disposition: Option<Disposition>,
    counted: bool,
    now: Timestamp,
) -> Result<Minted, AssetError> {
    let record = &view.record;
    let wished = now.as_second().saturating_add(seconds);
    let expires_at = match view.floor.until {
        Until::Endless => wished,
        Until::At(at) => wished.min(at.as_second()),
    };
    let claims = Claims {
        tenant: record.tenant.to_string(),
        asset: record.id.to_string(),
        class: Class::Delivery {
            expires_at,
            // Chance alone: it says nothing, and no two meet.
            url_id: format!("url_{}", BlobKey::generate()),
            disposition,
            counted,
        },
        issued_at: now.as_second(),
        generation: view.generation(),
    };
    let live = app.live();
    signed(app, live.ring.signing_kid(now.as_second()), &claims)
}

fn signed(app: &App, kid: &str, claims: &Claims) -> Result<Minted, AssetError> {
    let token = app.live().ring.mint(kid, claims).map_err(|error| AssetError::Internal(error.to_string()))?;
    Ok(Minted {
        url: format!("{}/a/{token}", app.base_url),
        durable: claims.class == Class::Durable,
        expires_at: claims.expires_at().and_then(|at| Timestamp::from_second(at).ok()),
        url_id: claims.url_id(),
    })
}

fn mint_event(caller: &Principal, view: &AssetView, minted: &Minted, now: Timestamp) -> AuditEvent {
    let class = if minted.durable { "durable" } else { "delivery" };
    AuditEvent::new(AuditKind::Mint, &*caller.id, now)
        .asset(view.record.id)
        .url(&*minted.url_id)
        .details(json!({"class": class, "expiresAt": minted.expires_at}))
}

/// The asset that one of our own URLs names, for its own tenant.
///
/// A capability URL counts whose MAC is right, be it past, revoked or alive, and whatever address the service had when it was recorded. A
/// bound URL proves nothing by itself, so it has to be under our address.
pub fn asset_of_url(app: &App, tenant: &TenantId, url: &str) -> Option<AssetId> {
    let live = app.live();
    if let Some((claims, _)) = tokens(url).find_map(|token| live.ring.open(token).ok()) {
        return (claims.tenant == tenant.as_str()).then(|| AssetId::parse(&claims.asset).ok()).flatten();
    }
    let path = path_of(url).strip_prefix(&app.base_url)?;
    AssetId::parse(path.strip_prefix("/v1/assets/")?.strip_suffix("/content")?).ok()
}

/// The same of a URL that would lead back to ourselves: `Some(None)` is under our address and names nothing of the tenant's. `None`: it
/// leads elsewhere.
pub fn asset_of_own(app: &App, tenant: &TenantId, url: &str) -> Option<Option<AssetId>> {
    let named = asset_of_url(app, tenant, url);
    (named.is_some() || is_own(app, url)).then_some(named)
}

fn is_own(app: &App, url: &str) -> bool {
    let (Ok(url), Ok(base)) = (Url::parse(url), Url::parse(&app.base_url)) else {
        return false;
    };
    url.origin() == base.origin()
}

/// What may be a capability in the URL, whatever address the service had when it was recorded.
pub fn tokens(url: &str) -> impl Iterator<Item = &str> {
    let path = path_of(url);
    path.match_indices("/a/").filter_map(move |(at, before)| path[at + before.len()..].split('/').next())
}

fn path_of(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// The asset that a host names: by its id, by a `mediaRef`, or by one of our URLs.
pub fn asset_named(app: &App, tenant: &TenantId, name: &str) -> Option<AssetId> {
    let id = name.strip_prefix("blob:").unwrap_or(name);
    AssetId::parse(id).ok().or_else(|| asset_of_url(app, tenant, name))
}
