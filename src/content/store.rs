//! The bytes of a part: decoded or fetched, and stored for the run by the one way in.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use mediakeep_storage::{AssetId, RunId};

use super::ContentError;
use crate::access::Principal;
use crate::app::App;
use crate::assets::AssetError;
use crate::assets::ingest::{Ingest, Start};
use crate::assets::members::RawMembers;
use crate::base64::Decoder;

pub(super) async fn store_data(
    app: &Arc<App>,
    caller: &Principal,
    run: &RunId,
    text: &str,
    declared: Option<String>,
    path: &str,
) -> Result<AssetId, ContentError> {
    let mut ingest = begin(app, caller, run).await?;
    let fed = decode(text, path, async |bytes| Ok(ingest.write(bytes).await?)).await;
    finish(ingest, declared, fed.map(drop)).await
}

pub(super) async fn store_url(
    app: &Arc<App>,
    caller: &Principal,
    run: &RunId,
    url: &str,
    declared: Option<String>,
    most: u64,
    path: &str,
) -> Result<AssetId, ContentError> {
    let failed = |error| ContentError::Remote { path: path.to_owned(), error };
    // The place first: whoever may not upload now has nothing fetched.
    let mut ingest = begin(app, caller, run).await?;
    let feed = async {
        let mut bytes = 0;
        let mut fetched = app.remote.fetch(&app.settings.remote, url).await.map_err(failed)?;
        ingest.came_from(&fetched.host);
        while let Some(chunk) = fetched.chunk().await.map_err(failed)? {
            bytes += chunk.len() as u64;
            if bytes > most {
                return Err(AssetError::TooLarge { limit: most }.into());
            }
            ingest.write(chunk).await?;
        }
        Ok(())
    };
    let fed = feed.await;
    finish(ingest, declared, fed).await
}

async fn begin(app: &Arc<App>, caller: &Principal, run: &RunId) -> Result<Ingest, ContentError> {
    let start = Start {
        principal: caller.clone(),
        run: Some(run.clone()),
        idempotency_key: None,
        announced: None,
        at_most: None,
        from: None,
    };
    Ok(Ingest::begin(app, start).await?)
}

async fn finish(
    ingest: Ingest,
    mime_type: Option<String>,
    fed: Result<(), ContentError>,
) -> Result<AssetId, ContentError> {
    let members = RawMembers { mime_type, delivery: Some("url".to_owned()), ..RawMembers::default() }.check();
    match (fed, members) {
        (Ok(()), Ok(members)) => Ok(ingest.finish(members).await?.view.record.id),
        (Err(error), _) => {
            ingest.abandon().await;
            Err(error)
        }
        (_, Err(error)) => {
            ingest.abandon().await;
            Err(error.into())
        }
    }
}

/// So much base64 is decoded at once.
const STEP: usize = 64 << 10;

/// Decodes, gives each piece away, and says how many bytes there were: at least one.
pub(super) async fn decode(
    text: &str,
    path: &str,
    mut give: impl AsyncFnMut(Bytes) -> Result<(), ContentError>,
) -> Result<u64, ContentError> {
    let bad = |bad: crate::base64::BadBase64| ContentError::Base64 { path: path.to_owned(), offset: bad.offset };
    let (mut decoder, mut out, mut bytes) = (Decoder::new(), BytesMut::new(), 0);
    for step in text.as_bytes().chunks(STEP) {
        decoder.push(step, &mut out).map_err(bad)?;
        bytes += out.len() as u64;
        give(out.split().freeze()).await?;
    }
    decoder.finish(&mut out).map_err(bad)?;
    bytes += out.len() as u64;
    if !out.is_empty() {
        give(out.freeze()).await?;
    }
    if bytes == 0 { Err(AssetError::Empty.into()) } else { Ok(bytes) }
}
