//! Bytes on their way into an upload, part by part.
//!
//! A part is announced, staged, sealed and only then appended: what an offset was told for is durable. A long request makes several, so
//! that a crash costs no more than [`PART`] of it; one that came with a digest makes one, because only the whole shows whether it is right.

use std::sync::Arc;

use bytes::Bytes;
use mediakeep_storage::blob::Staging;
use mediakeep_storage::quota::Reserved;
use mediakeep_storage::record::UploadIntent;
use mediakeep_storage::resumable::Part;
use mediakeep_storage::{BlobKey, StorageError, TenantId, fault};
use tokio::sync::OwnedSemaphorePermit;
use tracing::warn;

use super::{Held, Refusal, full, kept};
use crate::app::App;
use crate::assets::AssetError;
use crate::assets::ingest::room::Promise;

/// So many bytes lie in one part, or a little more.
const PART: u64 = 64 << 20;

/// So often free space is looked at.
const LOOK_EVERY: u64 = 8 << 20;

/// How much more than has come is reserved of the quota for an upload whose length nobody has said.
const AHEAD: u64 = 8 << 20;

/// A request that writes. Dropped before it is finished, it keeps what may be kept.
#[derive(Debug)]
pub struct Writer {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    held: Held,
    part: Option<Unsealed>,
    /// Whether bytes are good without those behind them.
    keeps: bool,
    limit: u64,
    /// So much is reserved of the quota.
    reserved: u64,
    promise: Promise,
    since_look: u64,
    _slot: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct Unsealed {
    blob: BlobKey,
    staging: Staging,
    bytes: u64,
}

impl Writer {
    /// Begins behind the last byte. `announced` is how many bytes the request says it has; `keeps` whether those of a request that breaks
    /// off are good.
    pub async fn begin(
        mut held: Held,
        announced: Option<u64>,
        length: Option<u64>,
        keeps: bool,
    ) -> Result<Self, AssetError> {
        match prepare(&mut held, announced, length).await {
            Ok((limit, promise, slot)) => {
                let reserved = held.upload.length.unwrap_or(held.upload.offset);
                let open = Open { held, part: None, keeps, limit, reserved, promise, since_look: 0, _slot: slot };
                Ok(Self { open: Some(open) })
            }
            Err(refusal) => {
                // Before the refusal is heard: who tries again at once must not meet the lease of the request before.
                held.release().await;
                Err(refusal)
            }
        }
    }

    /// Takes the next bytes.
    pub async fn write(&mut self, chunk: Bytes) -> Result<(), AssetError> {
        if chunk.is_empty() {
            return Ok(());
        }
        self.open.as_mut().expect("finish and give_up take self").write(chunk).await
    }

    /// Ends the bytes: they are all appended.
    pub async fn finish(mut self) -> Result<Held, AssetError> {
        self.settle(true).await
    }

    /// Ends the bytes of a request that broke off, or that were refused: what may be kept is.
    pub async fn give_up(mut self) {
        let keeps = self.open.as_ref().is_some_and(|open| open.keeps);
        match self.settle(keeps).await {
            Ok(held) => held.release().await,
            Err(error) => warn!(error = %error, "what came before a request broke off was not kept: {error}"),
        }
    }

    /// In a task of its own, which nobody cuts in two.
    async fn settle(&mut self, keep: bool) -> Result<Held, AssetError> {
        let open = self.open.take().expect("finish and give_up take self");
        let task = tokio::spawn(open.settle(keep));
        task.await.map_err(|error| AssetError::Internal(format!("the end of a part stopped: {error}")))?
    }
}

/// Looks at whether so much may come: up to where bytes are taken, room on the disk, and one of the tenant's places.
async fn prepare(
    held: &mut Held,
    announced: Option<u64>,
    length: Option<u64>,
) -> Result<(u64, Promise, OwnedSemaphorePermit), AssetError> {
    let app = held.app.clone();
    let most = app.settings.limits.max_upload_bytes.0;
    if length.is_some_and(|length| length > most) {
        return Err(AssetError::TooLarge { limit: most });
    }
    if let Some(length) = length {
        reserve(held, length, Some(length)).await?;
        held.upload.length = Some(length);
    }
    let limit = held.upload.length.unwrap_or(most);
    if held.upload.offset.saturating_add(announced.unwrap_or(0)) > limit {
        return Err(AssetError::TooLarge { limit });
    }
    let least = app.settings.store.min_free.0;
    let promise = app.room.promise(announced.unwrap_or(0), app.blobs.free_space(), least).ok_or_else(full)?;
    let slot = app.upload_slots(&held.tenant).try_acquire_owned().map_err(|_| AssetError::Busy)?;
    Ok((limit, promise, slot))
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let (Some(open), Ok(runtime)) = (self.open.take(), tokio::runtime::Handle::try_current()) {
            let keeps = open.keeps;
            runtime.spawn(async move {
                if let Ok(held) = open.settle(keeps).await {
                    held.release().await;
                }
            });
        }
    }
}

impl Open {
    async fn write(&mut self, chunk: Bytes) -> Result<(), AssetError> {
        let bytes = chunk.len() as u64;
        let written = self.part.as_ref().map_or(0, |part| part.bytes);
        let end = self.held.upload.offset + written + bytes;
        if end > self.limit {
            // What is too long is not what its sender meant: none of it is kept.
            self.keeps = false;
            return Err(AssetError::TooLarge { limit: self.limit });
        }
        self.cover(end).await?;
        self.look_at_room(bytes)?;
        if self.part.is_none() {
            self.part = Some(self.begin_part().await?);
        }
        let part = self.part.as_mut().expect("there is one now");
        part.staging.write(chunk).await?;
        part.bytes += bytes;
        if self.keeps && part.bytes >= PART {
            self.append().await?;
        }
        Ok(())
    }

    /// Sees to it that so many bytes are reserved: of an upload whose length is not known a little more, if there is so much.
    async fn cover(&mut self, end: u64) -> Result<(), AssetError> {
        if end <= self.reserved {
            return Ok(());
        }
        let ahead = end.saturating_add(AHEAD).min(self.limit);
        self.reserved = match reserve(&self.held, ahead, None).await {
            Ok(()) => ahead,
            Err(AssetError::OverQuota) => reserve(&self.held, end, None).await.map(|()| end)?,
            Err(other) => return Err(other),
        };
        Ok(())
    }

    fn look_at_room(&mut self, bytes: u64) -> Result<(), AssetError> {
        let app = &self.held.app;
        self.since_look += bytes;
        if self.since_look >= LOOK_EVERY {
            self.since_look = 0;
            if !self.promise.holds(app.blobs.free_space(), app.settings.store.min_free.0) {
                return Err(full());
            }
        }
        self.promise.take(bytes);
        Ok(())
    }

    async fn begin_part(&self) -> Result<Unsealed, AssetError> {
        let (app, tenant, blob) = (&self.held.app, &self.held.tenant, BlobKey::generate());
        app.index.begin_upload(tenant, UploadIntent { blob, alive_at: app.now(), asset: None }).await?;
        self.held.is_writing(Some(blob));
        Ok(Unsealed { blob, staging: app.blobs.stage(tenant, blob), bytes: 0 })
    }

    async fn settle(mut self, keep: bool) -> Result<Held, AssetError> {
        if keep {
            self.append().await?;
        } else if let Some(Unsealed { blob, staging, .. }) = self.part.take() {
            let aborted = staging.abort().await;
            withdraw(&self.held.app, &self.held.tenant, blob, aborted).await;
        }
        self.held.is_writing(None);
        Ok(self.held)
    }

    /// Makes what was written durable, and then a part of the upload.
    async fn append(&mut self) -> Result<(), AssetError> {
        let Some(Unsealed { blob, staging, bytes }) = self.part.take() else {
            return Ok(());
        };
        let (app, tenant) = (self.held.app.clone(), self.held.tenant.clone());
        match self.append_sealed(blob, staging, bytes).await {
            Ok(()) => {
                fault::point("resumable.appended");
                Ok(())
            }
            // What became of a transition that was not answered, the next look at the row tells: its bytes stay where they are.
            Err(error @ AssetError::Storage(_)) => Err(error),
            Err(error) => {
                let removed = app.blobs.remove(&tenant, blob).await;
                withdraw(&app, &tenant, blob, removed).await;
                Err(error)
            }
        }
    }

    async fn append_sealed(&mut self, blob: BlobKey, staging: Staging, bytes: u64) -> Result<(), AssetError> {
        let (app, tenant) = (&self.held.app, &self.held.tenant);
        let sealed = match staging.seal().await {
            Ok(sealed) => sealed,
            Err(error) => {
                // Nothing was made of it, and a disk that is full has no room to spare for an hour.
                let removed = app.blobs.remove(tenant, blob).await;
                withdraw(app, tenant, blob, removed).await;
                return Err(error.into());
            }
        };
        fault::point("resumable.sealed");
        if sealed.bytes != bytes {
            return Err(AssetError::Internal(format!("of {bytes} bytes of a part {} were stored", sealed.bytes)));
        }
        let part = Part { offset: self.held.upload.offset, bytes, blob };
        let appended = app.index.append_resumable(tenant, self.held.joining()?, part, kept(app, app.now()));
        // Whoever took the lease meanwhile goes on where the last part ended.
        self.held.upload = appended.await?.ok_or(Refusal::Locked)?;
        Ok(())
    }
}

async fn reserve(held: &Held, bytes: u64, length: Option<u64>) -> Result<(), AssetError> {
    let (app, tenant) = (&held.app, &held.tenant);
    match app.index.extend_resumable(tenant, held.joining()?, bytes, length, app.quota(tenant)).await? {
        Reserved::Done => Ok(()),
        Reserved::UploadLost if length.is_some() => Err(Refusal::Length.into()),
        Reserved::UploadLost => Err(Refusal::Locked.into()),
        Reserved::OverQuota => {
            app.metrics.over_quota();
            Err(AssetError::OverQuota)
        }
    }
}

/// Withdraws a part's announcement once its bytes are gone; while they may be there, it stays for the sweep.
async fn withdraw(app: &Arc<App>, tenant: &TenantId, blob: BlobKey, removed: Result<(), StorageError>) {
    let done = match removed {
        Ok(()) => app.index.end_upload(tenant, blob).await,
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        warn!(blob.key = %blob, error = %error, "a part was not cleaned up; the sweep will do it");
    }
}
