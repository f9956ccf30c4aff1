//! The one way in for bytes.
//!
//! An [`Ingest`] is begun before the first byte, fed, and finished or abandoned. The order is what keeps the promises:
//!
//! 1. claim the idempotency key and announce the upload (a crash from here on leaves a row that names what it left);
//! 2. stage the bytes, hashed and counted on their way, against the limit;
//! 3. seal them: complete and durable, and still nobody's;
//! 4. look at what they are, off the async threads, bounded, never refusing what is merely broken;
//! 5. write the recovery record;
//! 6. publish: asset, reference, idempotency answer and audit event in one transition;
//! 7. if equal bytes were there already, discard the copy.
//!
//! From step 3 on the work runs in a task of its own: a caller that goes away does not cut it in two. Before that, dropping an `Ingest`
//! takes everything back.
//!
//! Deliberately absent: any decision about types at the first bytes. A ZIP says what it is at its end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::blob::{RecordOf, Sealed, Staging};
use mediakeep_storage::index::{Claimed, NewAsset, Published};
use mediakeep_storage::record::{AssetRecord, AssetState, Claim, DurableUrl, Settled, UploadIntent};
use mediakeep_storage::retention::after;
use mediakeep_storage::{AssetId, AssetView, AuditEvent, BlobKey, Digest, RunId, StorageError, TenantId, Timestamp};
use ring::digest;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::AssetError;
use super::members::Members;
use crate::access::Principal;
use crate::app::App;
use crate::config::settings::Policy;
use crate::media::{self, Found};

/// An unfinished claim lapses after this time, unless it is renewed.
const CLAIM: Duration = Duration::from_secs(60);

/// So often an upload says that it is alive: three times within a claim's life.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// The longest that anybody waits for an inspection; what has said nothing by then is stored as unknown.
const INSPECTION: Duration = Duration::from_secs(20);

/// The first generation of a durable URL.
const FIRST_GENERATION: u32 = 1;

/// What is known before the first byte.
#[derive(Debug, Clone)]
pub struct Start {
    /// Who sends.
    pub principal: Principal,
    /// Into which run.
    pub run: Option<RunId>,
    /// The `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// How many bytes the request says it has: only for an early refusal.
    pub announced: Option<u64>,
}

/// An upload in progress.
#[derive(Debug)]
pub struct Ingest {
    app: Arc<App>,
    start: Start,
    limit: u64,
    received: u64,
    work: Option<Work>,
    _slot: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum Work {
    Store(Box<Upload>),
    /// Another request has the key: the bytes are only hashed, to be compared with what it made of its own.
    Compare {
        claim: Claim,
        hash: Box<Hash>,
    },
}

impl Work {
    /// Claims the key; whoever gets it announces the upload.
    async fn begin(app: Arc<App>, tenant: TenantId, claim: Option<Claim>) -> Result<Self, AssetError> {
        if let Some(claim) = &claim
            && app.index.claim(&tenant, claim.clone(), app.now()).await? != Claimed::Yours
        {
            let hash = Box::new(Hash(digest::Context::new(&digest::SHA256)));
            return Ok(Self::Compare { claim: claim.clone(), hash });
        }
        Ok(Self::Store(Box::new(Upload::begin(app, tenant, claim).await?)))
    }
}

struct Hash(digest::Context);

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash")
    }
}

/// Bytes on their way into the store. Dropped while they are, everything is taken back.
#[derive(Debug)]
struct Upload {
    app: Arc<App>,
    tenant: TenantId,
    begun: Option<Begun>,
}

/// What there is to take back.
#[derive(Debug)]
struct Begun {
    blob: BlobKey,
    staging: Staging,
    claim: Option<Claim>,
    heartbeat: JoinHandle<()>,
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

impl Ingest {
    /// Claims the key, announces the upload, takes one of the tenant's places.
    pub async fn begin(app: &Arc<App>, start: Start) -> Result<Self, AssetError> {
        let limit = app.settings.limits.max_upload_bytes.0;
        if start.announced.is_some_and(|bytes| bytes > limit) {
            return Err(AssetError::TooLarge { limit });
        }
        check_space(app, start.announced.unwrap_or(0))?;
        let tenant = start.principal.tenant.clone();
        let slot = app.upload_slots(&tenant).try_acquire_owned().map_err(|_| AssetError::Busy)?;
        let claim = start.idempotency_key.as_ref().map(|key| new_claim(&start, key, app.now()));
        // In a task of its own: a caller that goes away meanwhile must not leave a claim that nobody gives up.
        let work = tokio::spawn(Work::begin(app.clone(), tenant, claim)).await;
        let work = work.map_err(|error| AssetError::Internal(format!("beginning stopped: {error}")))??;
        Ok(Self { app: app.clone(), start, limit, received: 0, work: Some(work), _slot: slot })
    }

    /// Takes the next bytes.
    pub async fn write(&mut self, chunk: Bytes) -> Result<(), AssetError> {
        self.received += chunk.len() as u64;
        if self.received > self.limit {
            return Err(AssetError::TooLarge { limit: self.limit });
        }
        match self.work.as_mut().expect("finish takes self") {
            Work::Store(upload) => Ok(upload.begun().staging.write(chunk).await?),
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
        match self.work.take().expect("finish takes self") {
            Work::Compare { claim, hash } => {
                let hash = hash.0.finish();
                let sha256 = Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes"));
                self.replay(claim, sha256, &members).await
            }
            Work::Store(mut upload) => {
                let publication = Publication { app: self.app.clone(), start: self.start.clone(), members };
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
            return Err(AssetError::IdempotencyMismatch);
        }
        let view = self.app.index.view(tenant, asset, &self.app.terms(tenant)).await?;
        let view = view.ok_or(AssetError::NotFound)?;
        Ok(Ingested { view, replayed: true, inline_allowed: members.inline_allowed })
    }
}

impl Upload {
    async fn begin(app: Arc<App>, tenant: TenantId, claim: Option<Claim>) -> Result<Self, AssetError> {
        let blob = BlobKey::generate();
        let intent = UploadIntent { blob, alive_at: app.now() };
        if let Err(error) = app.index.begin_upload(&tenant, intent).await {
            release(&app, &tenant, claim.as_ref()).await;
            return Err(error.into());
        }
        let staging = app.blobs.stage(&tenant, blob);
        let heartbeat = heartbeat(app.clone(), tenant.clone(), blob, claim.clone());
        Ok(Self { app, tenant, begun: Some(Begun { blob, staging, claim, heartbeat }) })
    }

    fn begun(&mut self) -> &mut Begun {
        self.begun.as_mut().expect("only its end and `finish` take it")
    }

    /// Removes what was staged, withdraws the announcement, gives up the claim: in a task of its own, which nobody cuts in two.
    fn take_back(&mut self) -> Option<JoinHandle<()>> {
        let Begun { blob, staging, claim, heartbeat } = self.begun.take()?;
        heartbeat.abort();
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

/// The second half of an ingest, which runs to its end whoever waits for it.
struct Publication {
    app: Arc<App>,
    start: Start,
    members: Members,
}

impl Publication {
    async fn run(self, begun: Begun) -> Result<Ingested, AssetError> {
        let Begun { blob, staging, claim, heartbeat } = begun;
        let tenant = &self.start.principal.tenant;
        let prepared = self.prepare(blob, staging).await;
        let record = match prepared {
            Ok(record) => record,
            Err(error) => {
                heartbeat.abort();
                let removed = self.app.blobs.remove(tenant, blob).await;
                discard(&self.app, tenant, blob, removed).await;
                release(&self.app, tenant, claim.as_ref()).await;
                return Err(error);
            }
        };
        let published = self.publish(blob, &record, claim).await;
        heartbeat.abort();
        published
    }

    /// Everything before the transition: whatever fails here has made nothing, and its bytes may be removed.
    async fn prepare(&self, blob: BlobKey, staging: Staging) -> Result<AssetRecord, AssetError> {
        let sealed = staging.seal().await?;
        if self.members.sha256.is_some_and(|digest| digest != sealed.sha256) {
            return Err(AssetError::DigestMismatch { what: "sha256" });
        }
        let found = self.inspect(blob, sealed).await?;
        self.admit(&found)?;
        let tenant = &self.start.principal.tenant;
        let mut record = self.record(blob, sealed, found, self.app.now())?;
        // The record beside the bytes has to name the blob that will hold them, which an earlier upload of the same bytes may have made.
        if let Some(shared) = self.app.index.blob_of(tenant, &sealed.sha256).await? {
            record.blob = shared;
        }
        put_recovery_record(&self.app, &record).await?;
        Ok(record)
    }

    /// The transition and what follows it. Should it fail, nobody knows whether it happened: then the bytes stay where they are, and the
    /// sweep decides by the index.
    async fn publish(&self, blob: BlobKey, record: &AssetRecord, claim: Option<Claim>) -> Result<Ingested, AssetError> {
        let (tenant, now) = (&self.start.principal.tenant, self.app.now());
        let asset = NewAsset {
            record: AssetRecord { blob, ..record.clone() },
            settled: claim.as_ref().map(|claim| self.settled(claim.clone(), record.sha256, now)),
            discard_at: after(now, self.app.settings.retention.orphan_grace.0),
            audit: self.audit(record, now),
        };
        let (view, copy) = match self.app.index.publish(tenant, asset, &self.app.terms(tenant), now).await? {
            Published::Stored(view) => (view, false),
            Published::Shared(view) => (view, true),
            Published::ClaimLost => {
                return Err(self.withdraw(blob, record, None, AssetError::IdempotencyInFlight).await);
            }
            Published::UploadLost => {
                let reason = format!("upload {blob} showed no life for too long");
                let lost = AssetError::Storage(StorageError::Unavailable { store: "store", reason });
                return Err(self.withdraw(blob, record, claim.as_ref(), lost).await);
            }
        };
        if view.record.blob != record.blob {
            put_recovery_record(&self.app, &view.record).await?;
        }
        if copy {
            let removed = self.app.blobs.remove(tenant, blob).await;
            discard_copy(&self.app, tenant, blob, removed).await;
        }
        self.app.metrics.ingested(&view.record.kind, view.record.bytes);
        let id = view.record.id;
        info!(asset.id = %id, tenant.id = %tenant, size_bytes = view.record.bytes, mime_type = view.record.mime_type, "stored asset {id}");
        Ok(Ingested { view, replayed: false, inline_allowed: self.members.inline_allowed })
    }

    /// What the bytes are. Never more at a time than there are permits, and never on an async thread.
    async fn inspect(&self, blob: BlobKey, sealed: Sealed) -> Result<Found, AssetError> {
        let tenant = &self.start.principal.tenant;
        let opened = self.app.blobs.open_blob(tenant, blob, sealed.bytes).await?;
        let permit = self.app.inspections.clone().acquire_owned().await;
        let permit = permit.map_err(|_| AssetError::Internal("the inspections are closed".to_owned()))?;
        let (mut reader, declared) = (opened.reader(), self.members.declared.clone());
        let inspection = tokio::task::spawn_blocking(move || {
            let found = media::inspect(&mut reader, sealed.bytes, declared.as_ref());
            drop(permit);
            found
        });
        match tokio::time::timeout(INSPECTION, inspection).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) | Err(_) => {
                warn!(size_bytes = sealed.bytes, "an inspection came to no end: the bytes are stored as unknown");
                self.app.metrics.inspection_failed();
                Ok(Found::unknown())
            }
        }
    }

    /// Whether the operator takes such bytes.
    fn admit(&self, found: &Found) -> Result<(), AssetError> {
        let (tenant, ingest) = (&self.start.principal.tenant, &self.app.settings.ingest);
        let live = self.app.live();
        let policy = live.settings.tenant(tenant.as_str()).and_then(|tenant| tenant.policy).unwrap_or(ingest.policy);
        let mismatch = policy == Policy::RejectMismatch && found.facts.flags.contains(&media::Flag::DeclaredMismatch);
        let refused = ingest.refuse_types.iter().any(|pattern| type_matches(pattern, &found.mime_type));
        if mismatch || refused {
            return Err(AssetError::Refused {
                declared: self.members.declared.as_ref().map(|declared| declared.as_str().to_owned()),
                detected: found.mime_type.clone(),
            });
        }
        Ok(())
    }

    fn record(&self, blob: BlobKey, sealed: Sealed, found: Found, now: Timestamp) -> Result<AssetRecord, AssetError> {
        let facts = serde_json::to_value(&found.facts).map_err(|error| AssetError::Internal(error.to_string()))?;
        let live = self.app.live();
        Ok(AssetRecord {
            id: AssetId::generate(now),
            tenant: self.start.principal.tenant.clone(),
            run: self.start.run.clone(),
            kind: found.kind.as_str().to_owned(),
            mime_type: found.mime_type,
            declared_mime_type: self.members.declared.as_ref().map(|declared| declared.as_str().to_owned()),
            bytes: sealed.bytes,
            sha256: sealed.sha256,
            blob,
            facts,
            labels: self.members.labels.clone(),
            origin: self.members.origin.clone(),
            created_at: now,
            asked_until: self.members.asked_until,
            durable: DurableUrl {
                kid: live.ring.signing_kid(now.as_second()).to_owned(),
                issued_at: now.as_second(),
                generation: FIRST_GENERATION,
            },
            state: AssetState::Live,
            revision: 1,
        })
    }

    fn settled(&self, claim: Claim, sha256: Digest, now: Timestamp) -> Settled {
        Settled {
            claim,
            fingerprint: self.members.fingerprint(sha256),
            keep_until: after(now, self.app.settings.idempotency.keep.0),
        }
    }

    fn audit(&self, record: &AssetRecord, now: Timestamp) -> AuditEvent {
        let event = AuditEvent::new(AuditKind::Ingest, &*self.start.principal.id, now)
            .asset(record.id)
            .url(format!("{}.{}", record.id, record.durable.generation))
            .details(json!({"bytes": record.bytes, "mimeType": record.mime_type, "sha256": record.sha256}));
        match &record.run {
            Some(run) => event.run(run),
            None => event,
        }
    }

    /// Nothing was published: takes everything back, the recovery record first, lest it make an asset of it one day.
    async fn withdraw(
        &self,
        blob: BlobKey,
        record: &AssetRecord,
        claim: Option<&Claim>,
        why: AssetError,
    ) -> AssetError {
        let (app, tenant) = (&self.app, &record.tenant);
        if let Err(error) = app.blobs.remove_records(tenant, RecordOf::Asset(record.id), None).await {
            warn!(asset.id = %record.id, error = %error, "the recovery record of an asset that never was stays behind");
        }
        let removed = app.blobs.remove(tenant, blob).await;
        discard(app, tenant, blob, removed).await;
        release(app, tenant, claim).await;
        why
    }
}

/// Writes the asset's row beside the bytes, so that the store alone can make the index anew.
pub async fn put_recovery_record(app: &App, record: &AssetRecord) -> Result<(), AssetError> {
    let json = serde_json::to_vec(record).map_err(|error| AssetError::Internal(error.to_string()))?;
    Ok(app.blobs.put_record(&record.tenant, RecordOf::Asset(record.id), record.revision, json).await?)
}

/// Refuses to write when little space is left: a disk that is quite full stops the index too.
pub fn check_space(app: &App, more: u64) -> Result<(), AssetError> {
    let least = app.settings.store.min_free.0.saturating_add(more);
    match app.blobs.free_space() {
        Some(free) if free < least => Err(AssetError::Storage(StorageError::Full { store: "store" })),
        _ => Ok(()),
    }
}

fn new_claim(start: &Start, key: &str, now: Timestamp) -> Claim {
    let run = start.run.as_ref().map_or("", RunId::as_str);
    Claim {
        // Neither a run nor a key can hold a slash.
        name: format!("ingest/{run}/{key}"),
        holder: BlobKey::generate().to_bytes(),
        lapses_at: after(now, jiff::SignedDuration::try_from(CLAIM).unwrap_or(jiff::SignedDuration::MAX)),
    }
}

fn heartbeat(app: Arc<App>, tenant: TenantId, blob: BlobKey, claim: Option<Claim>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            let now = app.now();
            let _ = app.index.begin_upload(&tenant, UploadIntent { blob, alive_at: now }).await;
            if let Some(claim) = &claim {
                let lapses_at = after(now, jiff::SignedDuration::try_from(CLAIM).unwrap_or(jiff::SignedDuration::MAX));
                let _ = app.index.renew_claim(&tenant, &Claim { lapses_at, ..claim.clone() }).await;
            }
        }
    })
}

/// Withdraws the upload once its bytes are gone; while they may be there, the announcement stays for the sweep.
async fn discard(app: &App, tenant: &TenantId, blob: BlobKey, removed: Result<(), StorageError>) {
    let done = match removed {
        Ok(()) => app.index.end_upload(tenant, blob).await,
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        warn!(blob.key = %blob, error = %error, "an upload was not cleaned up; the sweep will do it");
    }
}

/// Forgets a copy once its bytes are gone; while they may be there, its row stays for the sweep.
async fn discard_copy(app: &App, tenant: &TenantId, blob: BlobKey, removed: Result<(), StorageError>) {
    let doomed = mediakeep_storage::record::Doomed { tenant: tenant.clone(), blob };
    let done = match removed {
        Ok(()) => app.index.forget(&doomed).await,
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        warn!(blob.key = %blob, error = %error, "a copy was not removed; the sweep will do it");
    }
}

async fn release(app: &App, tenant: &TenantId, claim: Option<&Claim>) {
    if let Some(claim) = claim
        && let Err(error) = app.index.release_claim(tenant, claim).await
    {
        warn!(error = %error, "an idempotency claim was not released; it lapses by itself");
    }
}

/// Whether the pattern, a type or a family such as `image/*`, names this type.
fn type_matches(pattern: &str, mime_type: &str) -> bool {
    match pattern.strip_suffix("/*") {
        Some(family) => mime_type.split_once('/').is_some_and(|(found, _)| found.eq_ignore_ascii_case(family)),
        None => pattern.eq_ignore_ascii_case(mime_type),
    }
}
