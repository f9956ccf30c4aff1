//! The second half of an ingest: from sealed bytes to an asset that everybody may ask for.

use std::sync::Arc;

use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::blob::{RecordOf, Sealed, Staging};
use mediakeep_storage::index::{NewAsset, Published};
use mediakeep_storage::record::{AssetRecord, AssetState, Claim, Doomed, DurableUrl, Settled};
use mediakeep_storage::resumable::Joining;
use mediakeep_storage::retention::after;
use mediakeep_storage::{AssetId, AuditEvent, BlobKey, Digest, StorageError, TenantId, Timestamp, fault};
use serde_json::json;
use tracing::{info, warn};

use super::upload::{Begun, discard, release};
use super::{Ingested, Start};
use crate::app::App;
use crate::assets::AssetError;
use crate::assets::library::write_record;
use crate::assets::members::Members;
use crate::config::settings::Policy;
use crate::media::{self, Found};
use crate::retention::runs::put_record_if_new;

/// The first generation of a durable URL.
const FIRST_GENERATION: u32 = 1;

/// The second half of an ingest, which runs to its end whoever waits for it.
pub(super) struct Publication {
    pub(super) app: Arc<App>,
    pub(super) start: Start,
    /// The upload in parts that the bytes are of.
    pub(super) upload: Option<Joining>,
    pub(super) members: Members,
}

impl Publication {
    pub(super) async fn run(self, begun: Begun) -> Result<Ingested, AssetError> {
        let Begun { blob, asset, staging, claim, heartbeat } = begun;
        let tenant = &self.start.principal.tenant;
        let prepared = self.prepare(blob, asset, staging).await;
        let record = match prepared {
            Ok(record) => record,
            Err(error) => {
                drop(heartbeat);
                take_back(&self.app, tenant, blob, asset).await;
                release(&self.app, tenant, claim.as_ref()).await;
                return Err(error);
            }
        };
        let published = self.publish(blob, &record, claim).await;
        drop(heartbeat);
        published
    }

    /// Everything before the transition: whatever fails here has made nothing, and its bytes may be removed.
    async fn prepare(&self, blob: BlobKey, asset: AssetId, staging: Staging) -> Result<AssetRecord, AssetError> {
        let sealed = staging.seal().await?;
        if self.members.sha256.is_some_and(|digest| digest != sealed.sha256) {
            return Err(AssetError::DigestMismatch { what: "sha256" });
        }
        let found = self.inspect(blob, sealed).await?;
        self.admit(&found)?;
        let tenant = &self.start.principal.tenant;
        let mut record = AssetRecord { id: asset, ..self.record(blob, sealed, found, self.app.now())? };
        // The record beside the bytes has to name the blob that will hold them, which an earlier upload of the same bytes may have made.
        if let Some(shared) = self.app.index.blob_of(tenant, &sealed.sha256).await? {
            self.mend(blob, shared, sealed).await?;
            record.blob = shared;
        }
        fault::point("publish.sealed");
        put_recovery_record(&self.app, &record).await?;
        fault::point("publish.recorded");
        Ok(record)
    }

    /// Puts the fresh bytes in the place of those that the asset is to share, if the store has lost these. An asset would be promised bytes
    /// that nobody has; and so the others that share them have theirs again.
    async fn mend(&self, fresh: BlobKey, shared: BlobKey, sealed: Sealed) -> Result<(), AssetError> {
        let (app, tenant) = (&self.app, &self.start.principal.tenant);
        let found = app.blobs.size(tenant, shared).await?;
        if found == Some(sealed.bytes) {
            return Ok(());
        }
        app.blobs.put_again(tenant, fresh, shared).await?;
        // Doomed meanwhile, and perhaps forgotten: then nobody else would remove what has just been put there.
        if app.index.blob_of(tenant, &sealed.sha256).await? != Some(shared) {
            return Ok(app.blobs.remove(tenant, shared).await?);
        }
        app.metrics.blob_mended();
        let found = found.map_or_else(|| "none".to_owned(), |bytes| bytes.to_string());
        warn!(blob.key = %shared, tenant.id = %tenant, size_bytes = sealed.bytes, found,
            "the store had lost bytes of blob {shared}; an upload of the same bytes has put them back");
        Ok(())
    }

    /// The transition and what follows it. Should it fail, nobody knows whether it happened: then the bytes stay where they are, and the
    /// sweep decides by the index.
    async fn publish(&self, blob: BlobKey, record: &AssetRecord, claim: Option<Claim>) -> Result<Ingested, AssetError> {
        let (tenant, now) = (&self.start.principal.tenant, self.app.now());
        let asset = NewAsset {
            record: AssetRecord { blob, ..record.clone() },
            settled: claim.as_ref().map(|claim| self.settled(claim.clone(), record.sha256, now)),
            recorded: Some(record.blob),
            discard_at: after(now, self.app.settings.retention.orphan_grace.0),
            audit: self.audit(record, now),
        };
        let terms = self.app.terms(tenant);
        let published = match &self.upload {
            Some(upload) => self.app.index.publish_resumable(tenant, asset, upload.clone(), &terms, now).await?,
            None => self.app.index.publish(tenant, asset, &terms, now).await?,
        };
        let (view, copy) = match published {
            Published::Stored(view) => (view, false),
            Published::Shared(view) => (view, true),
            Published::ClaimLost => {
                return Err(self.withdraw(blob, record, None, AssetError::IdempotencyInFlight).await);
            }
            Published::RunErased => {
                return Err(self.withdraw(blob, record, claim.as_ref(), AssetError::RunErased).await);
            }
            Published::UploadLost => {
                return Err(self.withdraw(blob, record, claim.as_ref(), lost(blob).into()).await);
            }
        };
        fault::point(if copy { "publish.shared" } else { "publish.stored" });
        if view.record.blob != record.blob {
            write_record(&self.app, &view.record).await?;
        }
        if let Some(run) = &view.record.run {
            put_record_if_new(&self.app, tenant, run).await?;
        }
        if copy {
            let removed = self.app.blobs.remove(tenant, blob).await;
            fault::point("publish.copy_removed");
            discard_copy(&self.app, tenant, blob, removed).await;
        }
        self.app.metrics.ingested(&view.record.kind, view.record.bytes);
        let id = view.record.id;
        info!(asset.id = %id, tenant.id = %tenant, size_bytes = view.record.bytes, mime_type = view.record.mime_type, "stored asset {id}");
        Ok(Ingested { view, replayed: false, inline_allowed: self.members.inline_allowed })
    }

    /// What the bytes are.
    async fn inspect(&self, blob: BlobKey, sealed: Sealed) -> Result<Found, AssetError> {
        let tenant = &self.start.principal.tenant;
        let opened = self.app.blobs.open_blob(tenant, blob, sealed.bytes).await.map_err(|error| match error {
            StorageError::NoSuchBlob => lost(blob),
            other => other,
        })?;
        let declared = self.members.declared.clone();
        self.app.inspector.look(|| opened.reader(), sealed.bytes, declared).await.ok_or(AssetError::Overloaded)
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
        let mut details = json!({"bytes": record.bytes, "mimeType": record.mime_type});
        if let Some(host) = &self.start.from {
            details["fetchedFrom"] = json!(host);
        }
        let event =
            AuditEvent::new(AuditKind::Ingest, &*self.start.principal.id, now).asset(record.id).details(details);
        match &record.run {
            Some(run) => event.run(run),
            None => event,
        }
    }

    /// Nothing was published: takes everything back.
    async fn withdraw(
        &self,
        blob: BlobKey,
        record: &AssetRecord,
        claim: Option<&Claim>,
        why: AssetError,
    ) -> AssetError {
        let (app, tenant) = (&self.app, &record.tenant);
        take_back(app, tenant, blob, record.id).await;
        release(app, tenant, claim).await;
        why
    }
}

/// The sweep took the upload: it may be sent again.
pub(super) fn lost(blob: BlobKey) -> StorageError {
    StorageError::Unavailable { store: "store", reason: format!("upload {blob} showed no life for too long") }
}

/// Takes back what an asset that never was has left, its recovery record first, lest it make an asset of it one day. While any of it may
/// be there, the announcement stays for the sweep.
async fn take_back(app: &App, tenant: &TenantId, blob: BlobKey, asset: AssetId) {
    let removed = match app.blobs.remove_records(tenant, RecordOf::Asset(asset), None).await {
        Ok(()) => app.blobs.remove(tenant, blob).await,
        Err(error) => Err(error),
    };
    discard(app, tenant, blob, removed).await;
}

/// Writes the asset's row beside the bytes, so that the store alone can make the index anew.
pub async fn put_recovery_record(app: &App, record: &AssetRecord) -> Result<(), AssetError> {
    let json = serde_json::to_vec(record).map_err(|error| AssetError::Internal(error.to_string()))?;
    Ok(app.blobs.put_record(&record.tenant, RecordOf::Asset(record.id), record.revision, json).await?)
}

/// Forgets a copy once its bytes are gone; while they may be there, its row stays for the sweep.
async fn discard_copy(app: &App, tenant: &TenantId, blob: BlobKey, removed: Result<(), StorageError>) {
    let doomed = Doomed { tenant: tenant.clone(), blob, asset: None };
    let done = match removed {
        Ok(()) => app.index.forget(&doomed).await,
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        warn!(blob.key = %blob, error = %error, "a copy was not removed; the sweep will do it");
    }
}

/// Whether the pattern, a type or a family such as `image/*`, names this type.
fn type_matches(pattern: &str, mime_type: &str) -> bool {
    match pattern.strip_suffix("/*") {
        Some(family) => mime_type.split_once('/').is_some_and(|(found, _)| found.eq_ignore_ascii_case(family)),
        None => pattern.eq_ignore_ascii_case(mime_type),
    }
}
