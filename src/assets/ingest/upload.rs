//! The first half of an ingest: the claim on its key, and bytes on their way into the store, which anybody may still stop.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use mediakeep_storage::blob::Staging;
use mediakeep_storage::index::Claimed;
use mediakeep_storage::record::{Claim, UploadIntent};
use mediakeep_storage::retention::after;
use mediakeep_storage::{AssetId, BlobKey, RunId, StorageError, TenantId, Timestamp};
use ring::digest;
use tokio::task::JoinHandle;
use tracing::warn;

use super::Start;
use super::reservation::{Reservation, Wish};
use crate::app::App;
use crate::assets::AssetError;

/// An unfinished claim lapses after this time, unless it is renewed.
const CLAIM: Duration = Duration::from_secs(60);

/// So often an upload says that it is alive: three times within a claim's life.
const HEARTBEAT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) enum Work {
    Store(Box<Upload>),
    /// Another request has the key: the bytes are only hashed, to be compared with what it made of its own.
    Compare {
        claim: Claim,
        hash: Box<Hash>,
    },
}

impl Work {
    /// Claims the key; whoever gets it announces the upload.
    ///
    /// An answer of which nothing is left, not even a tombstone, is as if it had never been given: then the claim is on the key after that
    /// asset, the same for everybody who sends it.
    pub(super) async fn begin(
        app: Arc<App>,
        tenant: TenantId,
        mut claim: Option<Claim>,
        wish: Wish,
    ) -> Result<Self, AssetError> {
        while let Some(held) = &mut claim {
            match app.index.claim(&tenant, held.clone(), app.now()).await? {
                Claimed::Yours => break,
                Claimed::Settled { asset, .. } if app.index.find(&tenant, asset).await?.is_none() => {
                    held.name = format!("{}/{asset}", held.name);
                }
                Claimed::Settled { .. } | Claimed::InFlight => {
                    let hash = Box::new(Hash(digest::Context::new(&digest::SHA256)));
                    return Ok(Self::Compare { claim: held.clone(), hash });
                }
            }
        }
        Ok(Self::Store(Box::new(Upload::begin(app, tenant, claim, wish).await?)))
    }
}

pub(super) struct Hash(pub(super) digest::Context);

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash")
    }
}

/// Bytes on their way into the store. Dropped while they are, everything is taken back.
#[derive(Debug)]
pub(super) struct Upload {
    app: Arc<App>,
    tenant: TenantId,
    reserved: Reservation,
    pub(super) begun: Option<Begun>,
}

/// What there is to take back.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) blob: BlobKey,
    /// What the asset will be called.
    pub(super) asset: AssetId,
    pub(super) staging: Staging,
    pub(super) claim: Option<Claim>,
    pub(super) heartbeat: Heartbeat,
}

impl Upload {
    async fn begin(app: Arc<App>, tenant: TenantId, claim: Option<Claim>, wish: Wish) -> Result<Self, AssetError> {
        let blob = BlobKey::generate();
        let asset = AssetId::generate(app.now());
        let intent = UploadIntent { blob, alive_at: app.now(), asset: Some(asset) };
        let reserved = match Reservation::begin(&app, &tenant, intent, wish).await {
            Ok(reserved) => reserved,
            Err(refusal) => {
                release(&app, &tenant, claim.as_ref()).await;
                return Err(refusal);
            }
        };
        let staging = app.blobs.stage(&tenant, blob);
        let heartbeat = heartbeat(app.clone(), tenant.clone(), blob, claim.clone());
        Ok(Self { app, tenant, reserved, begun: Some(Begun { blob, asset, staging, claim, heartbeat }) })
    }

    /// Sees to it that so many bytes are reserved, before they are written.
    pub(super) async fn cover(&mut self, received: u64) -> Result<(), AssetError> {
        self.reserved.cover(&self.app, &self.tenant, received).await
    }

    pub(super) fn begun(&mut self) -> &mut Begun {
        self.begun.as_mut().expect("only its end and `finish` take it")
    }

    /// Removes what was staged, withdraws the announcement, gives up the claim: in a task of its own, which nobody cuts in two.
    pub(super) fn take_back(&mut self) -> Option<JoinHandle<()>> {
        let Begun { blob, staging, claim, heartbeat, .. } = self.begun.take()?;
        drop(heartbeat);
        let (app, tenant) = (self.app.clone(), self.tenant.clone());
        let task = async move {
            let aborted = staging.abort().await;
            discard(&app, &tenant, blob, aborted).await;
            release(&app, &tenant, claim.as_ref()).await;
        };
        Some(tokio::runtime::Handle::try_current().ok()?.spawn(task))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let _ = self.take_back();
    }
}

/// A claim on the request's key.
pub(super) fn new_claim(route: &str, start: &Start, key: &str, now: Timestamp) -> Claim {
    let run = start.run.as_ref().map_or("", RunId::as_str);
    Claim {
        // Neither a run nor a key can hold a slash.
        name: format!("{route}/{run}/{key}"),
        holder: BlobKey::generate().to_bytes(),
        lapses_at: after(now, SignedDuration::try_from(CLAIM).unwrap_or(SignedDuration::MAX)),
    }
}

/// Says that an upload is alive, until it is dropped: a panic stops it as well, and the sweep finds what that left behind.
#[derive(Debug)]
pub(super) struct Heartbeat(JoinHandle<()>);

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn heartbeat(app: Arc<App>, tenant: TenantId, blob: BlobKey, claim: Option<Claim>) -> Heartbeat {
    Heartbeat(tokio::spawn(async move {
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            let now = app.now();
            let _ = app.index.begin_upload(&tenant, UploadIntent { blob, alive_at: now, asset: None }).await;
            if let Some(claim) = &claim {
                let lapses_at = after(now, SignedDuration::try_from(CLAIM).unwrap_or(SignedDuration::MAX));
                let _ = app.index.renew_claim(&tenant, &Claim { lapses_at, ..claim.clone() }).await;
            }
        }
    }))
}

/// Withdraws the upload once its bytes are gone; while they may be there, the announcement stays for the sweep.
pub(super) async fn discard(app: &App, tenant: &TenantId, blob: BlobKey, removed: Result<(), StorageError>) {
    let done = match removed {
        Ok(()) => app.index.end_upload(tenant, blob).await,
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        warn!(blob.key = %blob, error = %error, "an upload was not cleaned up; the sweep will do it");
    }
}

/// Gives the claim up, if there is one.
pub(super) async fn release(app: &App, tenant: &TenantId, claim: Option<&Claim>) {
    if let Some(claim) = claim
        && let Err(error) = app.index.release_claim(tenant, claim).await
    {
        warn!(error = %error, "an idempotency claim was not released; it lapses by itself");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_heartbeat_ends_with_whoever_holds_it() {
        let task = tokio::spawn(std::future::pending());
        let beats = task.abort_handle();

        drop(Heartbeat(task));

        while !beats.is_finished() {
            tokio::task::yield_now().await;
        }
    }
}
