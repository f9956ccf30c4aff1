//! The end of an upload: its parts, one behind the other, through the one way in.

use futures_util::TryStreamExt;
use mediakeep_storage::resumable::Part;
use mediakeep_storage::{AssetId, StorageError, UploadId};
use tracing::warn;

use super::said::Said;
use super::{Held, clearing};
use crate::access::Principal;
use crate::assets::AssetError;
use crate::assets::ingest::{Ingest, Resumed, Start};

/// So many parts are asked for at a time.
const PAGE: usize = 256;

/// Makes the asset, and clears what is no longer needed.
pub(super) async fn join(mut held: Held, principal: Principal) -> Result<AssetId, AssetError> {
    let made = make(&held, principal).await;
    let (app, tenant, id) = (held.app.clone(), held.tenant.clone(), held.upload.id);
    match &made {
        Ok(_) => {
            // It ended with the publication.
            held.lease = None;
            for piece in held.upload.pieces() {
                clearing::clear(&app, &tenant, *piece).await;
            }
            clearing::clear(&app, &tenant, id).await;
        }
        Err(error) if is_final(error) => {
            if let Err(error) = held.end().await {
                warn!(error = %error, "upload {id} cannot become an asset and was not ended; it expires");
            }
        }
        // The next one who asks tries again.
        Err(_) => held.release().await,
    }
    made
}

async fn make(held: &Held, principal: Principal) -> Result<AssetId, AssetError> {
    let (app, said) = (&held.app, Said::of(&held.upload.said));
    let (members, run) = said.read()?;
    let length = held.upload.length;
    let start =
        Start { principal, run, idempotency_key: said.idempotency_key, announced: length, at_most: length, from: None };
    let resumed = Resumed { upload: held.joining()?, began_at: held.upload.created_at };
    let mut ingest = Ingest::resume(app, start, resumed).await?;
    if let Err(error) = copy(held, &mut ingest).await {
        ingest.abandon().await;
        return Err(error);
    }
    let ingested = ingest.finish(members).await?;
    let asset = ingested.view.record.id;
    if ingested.replayed && !app.index.finish_resumable(&held.tenant, held.joining()?, asset, app.now()).await? {
        return Err(super::Refusal::Locked.into());
    }
    Ok(asset)
}

async fn copy(held: &Held, ingest: &mut Ingest) -> Result<(), AssetError> {
    match held.upload.pieces() {
        [] => copy_one(held, held.upload.id, ingest).await,
        pieces => {
            for piece in pieces {
                copy_one(held, *piece, ingest).await?;
            }
            Ok(())
        }
    }
}

async fn copy_one(held: &Held, id: UploadId, ingest: &mut Ingest) -> Result<(), AssetError> {
    let (app, tenant) = (&held.app, &held.tenant);
    let mut from = 0;
    loop {
        let parts = app.index.resumable_parts(tenant, id, from, PAGE).await?;
        for Part { offset, bytes, blob } in &parts {
            if *offset != from {
                return Err(gone(id));
            }
            let opened = app.blobs.open_blob(tenant, *blob, *bytes).await?;
            let mut stream = opened.stream(0..*bytes);
            while let Some(chunk) = stream.try_next().await? {
                ingest.write(chunk).await?;
            }
            from += bytes;
        }
        if parts.len() < PAGE {
            break;
        }
    }
    // Whoever reads the first parts of an upload that is being cleared finds none, and no gap.
    let whole = app.index.resumable(tenant, id).await?.is_some_and(|upload| upload.offset == from);
    if whole { Ok(()) } else { Err(gone(id)) }
}

/// Somebody ended it while it was being read.
fn gone(id: UploadId) -> AssetError {
    let reason = format!("parts of upload {id} went while they were read");
    StorageError::Unavailable { store: "store", reason }.into()
}

/// Whether the same bytes will be refused again.
fn is_final(error: &AssetError) -> bool {
    matches!(
        error,
        AssetError::Empty
            | AssetError::TooLarge { .. }
            | AssetError::DigestMismatch { .. }
            | AssetError::Invalid(_)
            | AssetError::Refused { .. }
            | AssetError::RunErased
            | AssetError::IdempotencyMismatch
    )
}
