//! An ingest by URL: the bytes are fetched, or are those of an asset that the URL names here.

use mediakeep_storage::AssetId;

use super::Incoming;
use crate::access::Scope;
use crate::assets::ingest::Ingest;
use crate::assets::{AssetError, fetch, urls};
use crate::error::ApiError;
use crate::http::content::not_fetched;
use crate::http::extract::{allowed, deny};
use crate::remote::RemoteError;

/// So much of an asset is read at once.
const STEP: u64 = 256 << 10;

/// Brings the bytes; says which type the other side says that they are.
pub(super) async fn take(incoming: &Incoming<'_>, url: &str, ingest: &mut Ingest) -> Result<Option<String>, ApiError> {
    let (app, caller) = (&incoming.app, &incoming.start.principal);
    match urls::asset_of_own(app, &caller.tenant, url) {
        Some(asset) => {
            // Whoever may only write does not come to read by way of an ingest.
            allowed(incoming.request, caller, Scope::AssetsRead)?;
            copy(incoming, asset.ok_or(AssetError::NotFound)?, ingest).await.map(Some)
        }
        None => fetch_from(incoming, url, ingest).await,
    }
}

async fn fetch_from(incoming: &Incoming<'_>, url: &str, ingest: &mut Ingest) -> Result<Option<String>, ApiError> {
    let app = &incoming.app;
    let refused = |error| {
        if matches!(error, RemoteError::Refused(_)) {
            deny(incoming.request, |denials| denials.credential(&incoming.start.principal, "fetch_refused"));
        }
        not_fetched(error)
    };
    let mut fetched = app.remote.fetch(&app.settings.remote, url).await.map_err(refused)?;
    ingest.came_from(&fetched.host);
    while let Some(chunk) = fetched.chunk().await.map_err(refused)? {
        ingest.write(chunk).await?;
    }
    Ok(fetched.mime_type)
}

async fn copy(incoming: &Incoming<'_>, asset: AssetId, ingest: &mut Ingest) -> Result<String, ApiError> {
    let (app, tenant) = (&incoming.app, &incoming.start.principal.tenant);
    let row = fetch::open_bound(app, tenant, asset).await?;
    let record = &row.view.record;
    let blob = fetch::open_bytes(app, record).await?;
    let mut at = 0;
    while at < record.bytes {
        let end = (at + STEP).min(record.bytes);
        let chunk = blob.read(at..end).await.map_err(AssetError::from)?;
        ingest.write(chunk).await?;
        at = end;
    }
    Ok(record.mime_type.clone())
}
