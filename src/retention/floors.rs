//! Why an asset is kept, and what a sweep would take.

use mediakeep_storage::index::Preview;
use mediakeep_storage::retention::{ProtectedBy, Protector};
use mediakeep_storage::{AssetId, AssetView, TenantId, Timestamp};
use serde_json::{Value, json};

use crate::app::App;
use crate::assets::AssetError;
use crate::assets::library::MAX_PAGE;

/// So many of the things that protect an asset are named.
const MAX_BECAUSE: usize = 1_000;

/// The asset's floor, what it comes from, and whether there is more of that than is named.
pub async fn show(app: &App, tenant: &TenantId, asset: AssetId) -> Result<(AssetView, Value, bool), AssetError> {
    let view = crate::assets::library::show(app, tenant, asset).await?;
    let (because, truncated) = because(app, tenant, asset, app.now()).await?;
    Ok((view, because, truncated))
}

/// What protects the asset, as answers say it, and whether there is more.
pub async fn because(
    app: &App,
    tenant: &TenantId,
    asset: AssetId,
    now: Timestamp,
) -> Result<(Value, bool), AssetError> {
    let terms = app.terms(tenant);
    let mut protectors = app.index.protectors(tenant, asset, MAX_BECAUSE + 1, &terms, now).await?;
    let truncated = protectors.len() > MAX_BECAUSE;
    if truncated {
        // The last ones are the sender's wish and the grace, of which there is one each.
        let runs = protectors.iter().take_while(|one| matches!(one.by, ProtectedBy::Hold(_) | ProtectedBy::Run(_)));
        let last = runs.count().saturating_sub(1);
        protectors.remove(last);
    }
    Ok((protectors.into_iter().map(told).collect(), truncated))
}

fn told(protector: Protector) -> Value {
    let until = protector.until.instant();
    match protector.by {
        ProtectedBy::Hold(hold) => json!({"hold": hold, "until": until}),
        ProtectedBy::Run(run) => json!({"run": run, "until": until}),
        ProtectedBy::Ask(ask) => json!({"ask": ask, "until": until}),
        ProtectedBy::Grace(grace) => json!({"grace": grace.as_secs(), "until": until}),
    }
}

/// What a sweep at `at` would take: a page of it, and whether there is more behind it.
pub async fn preview(
    app: &App,
    tenant: &TenantId,
    at: Timestamp,
    after: Option<AssetId>,
    limit: usize,
) -> Result<(Preview, bool), AssetError> {
    let limit = limit.clamp(1, MAX_PAGE);
    let mut preview = app.index.preview(tenant, at, after, limit + 1, &app.terms(tenant)).await?;
    let more = preview.assets.len() > limit;
    preview.assets.truncate(limit);
    Ok((preview, more))
}
