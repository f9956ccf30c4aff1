//! The one way in for bytes.
//!
//! An [`Ingest`] is begun before the first byte, fed, and finished or abandoned. The order is what keeps the promises:
//!
//! 1. claim the idempotency key, announce the upload and reserve of the tenant's quota what it will need, as far as that is known (a
//!    crash from here on leaves a row that names what it left);
//! 2. stage the bytes, hashed and counted on their way, against the limit;
//! 3. seal them: complete and durable, and still nobody's;
//! 4. look at what they are, off the async threads, bounded, never refusing what is merely broken;
//! 5. write the recovery record; where it names equal bytes that the store has lost, these are put in their place before;
//! 6. publish: asset, reference, idempotency answer and audit event in one transition;
//! 7. if equal bytes were there already, discard the copy.
//!
//! From step 3 on the work runs in a task of its own: a caller that goes away does not cut it in two. Before that, dropping an `Ingest`
//! takes everything back.
//!
//! Deliberately absent: any decision about types at the first bytes. A ZIP says what it is at its end.

use std::sync::Arc;

use bytes::Bytes;
use mediakeep_storage::index::Claimed;
use mediakeep_storage::record::Claim;
use mediakeep_storage::resumable::Joining;
use mediakeep_storage::{AssetView, Digest, RunId, StorageError, Timestamp};
use tokio::sync::OwnedSemaphorePermit;

use self::publication::Publication;
use self::reservation::Wish;
use self::room::Promise;
use self::upload::{Work, new_claim, release};
use super::AssetError;
use super::members::Members;
use crate::access::Principal;
use crate::app::App;
use crate::retention::runs::longest;

pub mod inspection;
mod publication;
mod reservation;
pub mod room;
mod upload;

pub use publication::put_recovery_record;

/// What is known before the first byte.
#[derive(Debug, Clone)]
pub struct Start {
    /// Who sends.
    pub principal: Principal,
    /// Into which run.
    pub run: Option<RunId>,
    /// The `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// How many bytes the request says the asset has: only for an early refusal.
    pub announced: Option<u64>,
    /// How many they are at most, wrapped as they come: so much room is kept for them.
    pub at_most: Option<u64>,
    /// The host that they are fetched from.
    pub from: Option<String>,
}

/// Of an upload in parts: who joins it, and what was known when it was begun.
#[derive(Debug, Clone)]
pub struct Resumed {
    /// The upload, and who has its lease.
    pub upload: Joining,
    /// When it was begun: a time that was ahead then is good.
    pub began_at: Timestamp,
}

/// An upload in progress.
#[derive(Debug)]
pub struct Ingest {
    app: Arc<App>,
    start: Start,
    /// The bytes are those of an upload in parts, for which all that they need of the quota is reserved.
    resumed: Option<Resumed>,
    /// A time that is ahead now may pass while the bytes come: that is nobody's mistake.
    began_at: Timestamp,
    limit: u64,
    received: u64,
    /// How many bytes had been received when the free space was looked at last.
    looked_at: u64,
    promise: Promise,
    work: Option<Work>,
    _slot: Arc<OwnedSemaphorePermit>,
}

/// What an ingest made.
#[derive(Debug)]
pub struct Ingested {
    /// The asset.
    pub view: AssetView,
    /// Whether an earlier request with the same key made it.
    pub replayed: bool,
    /// Whether the envelope may carry the bytes themselves.
    pub inline_allowed: bool,
}

/// So often a body that goes on is held against the free space: one look costs nothing beside writing so much.
const LOOK_EVERY: u64 = 8 << 20;

impl Ingest {
    /// Claims the key, announces the upload, takes one of the tenant's places.
    pub async fn begin(app: &Arc<App>, start: Start) -> Result<Self, AssetError> {
        Self::announced_fits(app, &start)?;
        let slot = app.upload_slots(&start.principal.tenant).try_acquire_owned().map_err(|_| AssetError::Busy)?;
        Self::begin_at(app, start, Arc::new(slot)).await
    }

    /// The same at a place that the caller has: several uploads in turn, as one request makes them.
    pub async fn begin_at(app: &Arc<App>, start: Start, slot: Arc<OwnedSemaphorePermit>) -> Result<Self, AssetError> {
        Self::begin_with(app, start, slot, None).await
    }

    /// The same of the bytes of an upload in parts, which is finished with the publication of what they make.
    pub async fn resume(app: &Arc<App>, start: Start, resumed: Resumed) -> Result<Self, AssetError> {
        Self::announced_fits(app, &start)?;
        let slot = app.upload_slots(&start.principal.tenant).try_acquire_owned().map_err(|_| AssetError::Busy)?;
        Self::begin_with(app, start, Arc::new(slot), Some(resumed)).await
    }

    async fn begin_with(
        app: &Arc<App>,
        start: Start,
        slot: Arc<OwnedSemaphorePermit>,
        resumed: Option<Resumed>,
    ) -> Result<Self, AssetError> {
        let limit = Self::announced_fits(app, &start)?;
        let (room, least) = (start.at_most.unwrap_or(0).min(limit), app.settings.store.min_free.0);
        let mut promise = app.room.promise(room, app.blobs.free_space(), least).ok_or_else(full)?;
        let tenant = start.principal.tenant.clone();
        let route = if resumed.is_some() { "uploads" } else { "ingest" };
        let claim = start.idempotency_key.as_ref().map(|key| new_claim(route, &start, key, app.now()));
        let wish = Wish::of(&start, limit).reserved_elsewhere(resumed.is_some());
        // In a task of its own: a caller that goes away meanwhile must not leave a claim that nobody gives up.
        let work = tokio::spawn(Work::begin(app.clone(), tenant, claim, wish)).await;
        let work = work.map_err(|error| AssetError::Internal(format!("beginning stopped: {error}")))??;
        if let Work::Compare { .. } = work {
            // Nothing will be written.
            promise.take(u64::MAX);
        }
        let began_at = resumed.as_ref().map_or_else(|| app.now(), |resumed| resumed.began_at);
        let app = app.clone();
        Ok(Self {
            app,
            start,
            resumed,
            began_at,
            limit,
            received: 0,
            looked_at: 0,
            promise,
            work: Some(work),
            _slot: slot,
        })
    }

    /// The limit, which what was announced does not exceed.
    fn announced_fits(app: &App, start: &Start) -> Result<u64, AssetError> {
        let limit = app.settings.limits.max_upload_bytes.0;
        match start.announced.is_some_and(|bytes| bytes > limit) {
            true => Err(AssetError::TooLarge { limit }),
            false => Ok(limit),
        }
    }

    /// Refuses members that nothing new may have; of a request that is sent again they are compared alone.
    pub fn keepable(&self, members: &Members) -> Result<(), AssetError> {
        match self.work {
            Some(Work::Store(_)) => members.keepable(self.began_at, longest(&self.app, self.began_at)),
            _ => Ok(()),
        }
    }

    /// Says which host the bytes are fetched from, for the audit log: its name alone.
    pub fn came_from(&mut self, host: &str) {
        self.start.from = Some(host.to_owned());
    }

    /// Takes the next bytes.
    pub async fn write(&mut self, chunk: Bytes) -> Result<(), AssetError> {
        self.received += chunk.len() as u64;
        if self.received > self.limit {
            return Err(AssetError::TooLarge { limit: self.limit });
        }
        match self.work.as_mut().expect("finish takes self") {
            Work::Store(upload) => {
                upload.cover(self.received).await?;
                if self.received - self.looked_at >= LOOK_EVERY {
                    self.looked_at = self.received;
                    let (free, least) = (self.app.blobs.free_space(), self.app.settings.store.min_free.0);
                    if !self.promise.holds(free, least) {
                        return Err(full());
                    }
                }
                self.promise.take(chunk.len() as u64);
                Ok(upload.begun().staging.write(chunk).await?)
            }
            Work::Compare { hash, .. } => {
                hash.0.update(&chunk);
                Ok(())
            }
        }
    }

    /// Ends the bytes, and makes the asset.
    pub async fn finish(mut self, members: Members) -> Result<Ingested, AssetError> {
        if self.received == 0 {
            self.abandon().await;
            return Err(AssetError::Empty);
        }
        if let Err(refusal) = self.keepable(&members) {
            self.abandon().await;
            return Err(refusal);
        }
        match self.work.take().expect("finish takes self") {
            Work::Compare { claim, hash } => {
                let hash = hash.0.finish();
                let sha256 = Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes"));
                self.replay(claim, sha256, &members).await
            }
            Work::Store(mut upload) => {
                let publication = Publication {
                    app: self.app.clone(),
                    start: self.start.clone(),
                    upload: self.resumed.take().map(|resumed| resumed.upload),
                    members,
                };
                let begun = upload.begun.take().expect("only here and by its end it is taken");
                let task = tokio::spawn(async move { publication.run(begun).await });
                task.await.map_err(|error| AssetError::Internal(format!("publishing stopped: {error}")))?
            }
        }
    }

    /// Takes everything back, and returns when it is done: from then on the idempotency key is free.
    pub async fn abandon(mut self) {
        if let Some(Work::Store(mut upload)) = self.work.take()
            && let Some(task) = upload.take_back()
        {
            let _ = task.await;
        }
    }

    /// Answers with what the request made that had the key first, if it has finished by now and was the same.
    async fn replay(&self, claim: Claim, sha256: Digest, members: &Members) -> Result<Ingested, AssetError> {
        let tenant = &self.start.principal.tenant;
        // What is wrong with a request is told before what is in its way.
        if members.sha256.is_some_and(|digest| digest != sha256) {
            return Err(AssetError::DigestMismatch { what: "sha256" });
        }
        let (asset, fingerprint) = match self.app.index.claim(tenant, claim.clone(), self.app.now()).await? {
            Claimed::Settled { asset, fingerprint } => (asset, fingerprint),
            Claimed::InFlight => return Err(AssetError::IdempotencyInFlight),
            // The other one failed meanwhile, and these bytes were not kept: the next attempt starts afresh.
            Claimed::Yours => {
                release(&self.app, tenant, Some(&claim)).await;
                return Err(AssetError::IdempotencyInFlight);
            }
        };
        if members.fingerprint(sha256) != fingerprint {
            members.keepable(self.began_at, longest(&self.app, self.began_at))?;
            return Err(AssetError::IdempotencyMismatch);
        }
        let view = self.app.index.view(tenant, asset, &self.app.terms(tenant)).await?;
        // Its last trace has gone since the bytes began to come: the next attempt starts afresh.
        let view = view.ok_or(AssetError::IdempotencyInFlight)?;
        Ok(Ingested { view, replayed: true, inline_allowed: members.inline_allowed })
    }
}

fn full() -> AssetError {
    AssetError::Storage(StorageError::Full { store: "store" })
}
