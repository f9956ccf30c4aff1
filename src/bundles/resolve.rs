//! What the URLs of a bundle lead to, for its own tenant.

use mediakeep_storage::{AssetId, AssetView};

use crate::access::Principal;
use crate::app::App;
use crate::assets::urls::{self, DEFAULT_LIFE, Wish};
use crate::assets::{AssetError, fetch};

/// The most URLs of one request.
pub const MAX_URLS: usize = 1_000;

/// What one URL leads to.
#[derive(Debug)]
pub enum Resolved {
    /// Nothing of this tenant's: foreign and absent are one.
    Unknown,
    /// An asset.
    Asset {
        /// Which.
        view: Box<AssetView>,
        /// A URL of a living one.
        url: Option<String>,
    },
}

/// Resolves them in order; with `mint` into delivery URLs that live for a quarter of an hour, else into bound ones.
pub async fn resolve(app: &App, caller: &Principal, names: &[String], mint: bool) -> Result<Vec<Resolved>, AssetError> {
    let tenant = &caller.tenant;
    let mut resolved = Vec::with_capacity(names.len());
    for name in names {
        let view = match urls::asset_named(app, tenant, name) {
            Some(asset) => living_or_dead(app, caller, asset).await?,
            None => None,
        };
        resolved.push(match view {
            None => Resolved::Unknown,
            Some(view) if !view.record.is_live() => Resolved::Asset { view: Box::new(view), url: None },
            Some(view) => {
                let url = if mint { Some(delivery(app, caller, &view).await?) } else { None };
                let url = url.or_else(|| Some(urls::bound_url(app, view.record.id)));
                Resolved::Asset { view: Box::new(view), url }
            }
        });
    }
    Ok(resolved)
}

/// The asset as it is now: one whose time has passed ends before anybody is told that it lives.
async fn living_or_dead(app: &App, caller: &Principal, asset: AssetId) -> Result<Option<AssetView>, AssetError> {
    let (tenant, terms) = (&caller.tenant, app.terms(&caller.tenant));
    let Some(view) = app.index.view(tenant, asset, &terms).await? else {
        return Ok(None);
    };
    match fetch::end_if_due(app, &view).await {
        Ok(false) => Ok(Some(view)),
        Ok(true) | Err(AssetError::Gone(_) | AssetError::NotFound) => Ok(app.index.view(tenant, asset, &terms).await?),
        Err(error) => Err(error),
    }
}

async fn delivery(app: &App, caller: &Principal, view: &AssetView) -> Result<String, AssetError> {
    let wish = Wish::Delivery { seconds: DEFAULT_LIFE, disposition: None, label: None, max_uses: None };
    let minted = urls::mint(app, caller, &[Some(view.record.id)], wish).await?;
    let first = minted.into_iter().next();
    first.map(|minted| minted.url).ok_or_else(|| AssetError::Internal("a URL was asked for and none made".to_owned()))
}
