//! What a string says of itself: whether it is a URL of ours, of which kind, and whose.

use data_encoding::BASE64URL_NOPAD;
use mediakeep_storage::{AssetId, TenantId};
use serde_json::Value;

use crate::app::App;
use crate::assets::urls;

/// Reads links for one tenant. Nothing is looked up: what a link says does not depend on what exists.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links<'a> {
    pub(super) app: &'a App,
    pub(super) tenant: &'a TenantId,
}

/// A link of ours, or one that looks so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// A capability URL of the tenant's own, past or alive.
    Capability(AssetId),
    /// A bound URL; `None`: of what is no asset's name.
    Bound(Option<AssetId>),
    /// It names another tenant.
    Foreign,
    /// It is under our address, and no URL that we have made.
    Broken,
}

impl Links<'_> {
    /// What the URL is; `None`: none of ours.
    pub(super) fn of(&self, url: &str) -> Option<Link> {
        let live = self.app.live();
        for token in urls::tokens(url).filter(|token| token.bytes().filter(|byte| *byte == b'.').count() == 2) {
            if let Ok((claims, _)) = live.ring.open(token) {
                return Some(match AssetId::parse(&claims.asset) {
                    Ok(asset) if claims.tenant == self.tenant.as_str() => Link::Capability(asset),
                    Ok(_) => Link::Foreign,
                    Err(_) => Link::Broken,
                });
            }
        }
        let path = url.split(['?', '#']).next()?.strip_prefix(self.app.base_url.as_str())?;
        if let Some(token) = path.strip_prefix("/a/") {
            let foreign = tenant_said(token).is_some_and(|tenant| tenant != self.tenant.as_str());
            return Some(if foreign { Link::Foreign } else { Link::Broken });
        }
        let asset = path.strip_prefix("/v1/assets/")?.strip_suffix("/content")?;
        Some(Link::Bound(AssetId::parse(asset).ok()))
    }
}

/// Whose a token says that it is, true or not.
fn tenant_said(token: &str) -> Option<String> {
    let payload = token.split('/').next()?.split('.').nth(1)?;
    let json: Value = serde_json::from_slice(&BASE64URL_NOPAD.decode(payload.as_bytes()).ok()?).ok()?;
    json["tid"].as_str().map(str::to_owned)
}
