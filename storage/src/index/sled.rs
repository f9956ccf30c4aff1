//! The embedded index: one folder, one process, nothing to install.
//!
//! # How it keeps the contract
//!
//! - **Atomic**: everything lies in one tree (`keys` has the layout), and a group of transitions is one record of a journal in front of it,
//!   which a crash keeps or loses as a whole.
//! - **Durable**: one thread works out what waits (`writer`); another writes it to the journal, syncs that, and only then shows it to readers
//!   and answers (`syncs`, `journal`). What is durable is held in memory (`fresh`) until a third thread has brought it into sled's tree
//!   (`checkpoint`), flushed that, and synced sled's files by handles of its own (`disk` says why that is needed).
//! - **Alone**: sled's file lock keeps a second process out, at once and with a sentence that says what to do.
//! - **Never full**: sled stops writing for good when a write meets a full disk, so free space is looked at before each group, and before
//!   sled is given anything.
//!
//! # What a reader sees
//!
//! Readers run beside the writer. One row is always whole. What takes several rows (an asset with its floor, one audit page) is read
//! under a lock that the writer holds while it shows a group, not while it waits for the disk: such a read is of one moment. A list
//! of assets or runs takes that lock for each item anew, so that a long list never holds up the writer: each item is of one moment,
//! the list is not. The counts of a run are taken without it, and are as exact as a count of something that changes can be.
//!
//! What a sweep at some time would take of one tenant (`preview`) walks the looks of all tenants up to that time, because the queue is in the
//! order of times: it costs a key for each of the others' looks, and reads the rows of its own alone. PostgreSQL has an index for it.
//!
//! Point reads run on the caller's thread, which costs less than handing them over; whatever may walk many rows goes to
//! `spawn_blocking`.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use self::ending::Sweep;
use self::keys::{Key, Space};
use self::shared::Core;
use self::writer::{Room, Writer};
use super::{
    Amended, Amendment, AssetIndex, AssetQuery, BlobRow, Claimed, Deleted, Erasure, Look, NewArtifact, NewAsset,
    NewDurable, Placed, Preview, Published, PutArtifact, Referred, Restored, RunErasure, RunQuery, Settlement, Updated,
};
use crate::audit::{AuditEvent, AuditRow};
use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, BlobKey, Digest, HoldId, RunId, TenantId, UploadId};
use crate::quota::{Counted, Quota, Reserved, Usage};
use crate::record::{
    ArtifactRecord, AssetRecord, AssetView, Claim, Doomed, Hold, HoldOn, MintedUrl, Owed, RunRecord, RunView, Taken,
    UploadIntent, UrlView,
};
use crate::resumable::{Cleared, Joining, KeptFor, Lease, Leased, Opened, Part, Resumable};
use crate::retention::{Protector, RunConflict, RunUpdate, Terms};

mod artifacts;
mod assets;
mod blobs;
mod checkpoint;
mod disk;
mod draft;
mod ending;
mod fresh;
mod holds;
mod ingest;
mod journal;
mod keys;
mod looks;
mod owed;
mod packed;
mod restore;
mod resumable;
mod rows;
mod runs;
mod shared;
mod syncs;
#[cfg(test)]
mod tests;
mod upkeep;
mod urls;
mod usage;
mod writer;

/// An asset with no more references than this is looked at on the caller's thread.
const FEW: usize = 32;

/// How the index uses its disk and memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SledOptions {
    /// About how much memory sled's cache may take.
    pub cache_bytes: u64,
    /// With less free space than this nothing is added; what ends or removes things goes on down to a quarter of it.
    pub min_free: u64,
    /// When the journal, or what memory holds of it, has grown to this, its rows go into the tree and it is begun anew.
    pub journal_bytes: u64,
}

impl Default for SledOptions {
    /// 128 MiB of cache, 16 MiB of journal, and no look at free space.
    fn default() -> Self {
        Self { cache_bytes: 128 << 20, min_free: 0, journal_bytes: 16 << 20 }
    }
}

/// An [`AssetIndex`] in a folder. Dropping it finishes what is queued and gives the folder free.
pub struct SledIndex {
    // In this order: the writer's thread ends before the tree is closed.
    writer: Writer,
    core: Arc<Core>,
}

impl SledIndex {
    /// Opens the index in this folder, making it if it is not there.
    ///
    /// [`StorageError::Locked`] if somebody has it open, also in this process.
    pub fn open(path: &Path, options: SledOptions) -> Result<Self, StorageError> {
        let (core, files, journal) = Core::open(path, options)?;
        let core = Arc::new(core);
        let next_event = core.next_event()?;
        let writer = Writer::start(core.clone(), files, journal, next_event)?;
        Ok(Self { writer, core })
    }

    /// Runs a read that may take long where it blocks nobody.
    async fn walk<T, F>(&self, read: F) -> Result<T, StorageError>
    where
        T: Send + 'static,
        F: FnOnce(&Core) -> Result<T, StorageError> + Send + 'static,
    {
        let core = self.core.clone();
        tokio::task::spawn_blocking(move || read(&core))
            .await
            .map_err(|error| StorageError::Unavailable { store: "index", reason: format!("a read stopped: {error}") })?
    }
}

#[async_trait]
impl AssetIndex for SledIndex {
    async fn claim(&self, tenant: &TenantId, claim: Claim, now: Timestamp) -> Result<Claimed, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| ingest::claim(draft, &tenant, &claim, now)).await
    }

    async fn renew_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<bool, StorageError> {
        let (tenant, claim) = (tenant.clone(), claim.clone());
        self.writer.apply(Room::Makes, move |draft| ingest::renew(draft, &tenant, &claim)).await
    }

    async fn release_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<(), StorageError> {
        let (tenant, claim) = (tenant.clone(), claim.clone());
        self.writer.apply(Room::Makes, move |draft| ingest::release(draft, &tenant, &claim)).await
    }

    async fn begin_upload(&self, tenant: &TenantId, intent: UploadIntent) -> Result<(), StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| blobs::begin(draft, &tenant, &intent)).await
    }

    async fn begin_reserved(
        &self,
        tenant: &TenantId,
        intent: UploadIntent,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| usage::begin(draft, &tenant, &intent, bytes, quota)).await
    }

    async fn reserve(
        &self,
        tenant: &TenantId,
        blob: BlobKey,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| usage::reserve(draft, &tenant, blob, bytes, quota)).await
    }

    async fn end_upload(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| blobs::end(draft, &tenant, blob)).await
    }

    async fn blob_of(&self, tenant: &TenantId, sha256: &Digest) -> Result<Option<BlobKey>, StorageError> {
        self.core.rows().shareable(tenant, sha256)
    }

    async fn publish(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        self.writer.apply(Room::Takes, move |draft| ingest::publish(draft, &tenant, asset, &terms, now)).await
    }

    async fn begin_resumable(
        &self,
        tenant: &TenantId,
        upload: Resumable,
        bytes: u64,
        most: u64,
        quota: Quota,
    ) -> Result<Opened, StorageError> {
        let tenant = tenant.clone();
        let begin = move |draft: &mut _| resumable::begin(draft, &tenant, &upload, bytes, most, quota);
        self.writer.apply(Room::Takes, begin).await
    }

    async fn resumable(&self, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, StorageError> {
        resumable::find(self.core.rows(), tenant, id)
    }

    async fn resumable_parts(
        &self,
        tenant: &TenantId,
        id: UploadId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Part>, StorageError> {
        let tenant = tenant.clone();
        self.walk(move |core| resumable::parts(core.rows(), &tenant, id, from, limit)).await
    }

    async fn lease_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        lease: Lease,
        now: Timestamp,
    ) -> Result<Leased, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| resumable::lease(draft, &tenant, id, lease, now)).await
    }

    async fn release_resumable(&self, tenant: &TenantId, id: UploadId, holder: [u8; 16]) -> Result<(), StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| resumable::release(draft, &tenant, id, holder)).await
    }

    async fn extend_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        bytes: u64,
        length: Option<u64>,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        let tenant = tenant.clone();
        let extend = move |draft: &mut _| resumable::extend(draft, &tenant, &upload, bytes, length, quota);
        self.writer.apply(Room::Takes, extend).await
    }

    async fn append_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        part: Part,
        kept: KeptFor,
    ) -> Result<Option<Resumable>, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| resumable::append(draft, &tenant, &upload, &part, kept)).await
    }

    async fn publish_resumable(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        upload: Joining,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        let publish = move |draft: &mut _| resumable::publish(draft, &tenant, asset, &upload, &terms, now);
        self.writer.apply(Room::Takes, publish).await
    }

    async fn finish_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        asset: AssetId,
        now: Timestamp,
    ) -> Result<bool, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| resumable::finish(draft, &tenant, &upload, asset, now)).await
    }

    async fn end_resumable(&self, tenant: &TenantId, upload: Joining, now: Timestamp) -> Result<bool, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| resumable::end(draft, &tenant, &upload, now)).await
    }

    async fn due_resumables(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, UploadId)>, StorageError> {
        self.walk(move |core| resumable::due(core.rows(), now, limit)).await
    }

    async fn clear_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Cleared, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| resumable::clear(draft, &tenant, id, limit, now)).await
    }

    async fn find(&self, tenant: &TenantId, id: AssetId) -> Result<Option<AssetRecord>, StorageError> {
        assets::find(&self.core, tenant, id)
    }

    async fn view(&self, tenant: &TenantId, id: AssetId, terms: &Terms) -> Result<Option<AssetView>, StorageError> {
        if assets::has_few_references(&self.core, tenant, id)? {
            return assets::view(&self.core, tenant, id, terms);
        }
        let (tenant, terms) = (tenant.clone(), *terms);
        self.walk(move |core| assets::view(core, &tenant, id, &terms)).await
    }

    async fn protectors(
        &self,
        tenant: &TenantId,
        id: AssetId,
        limit: usize,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Vec<Protector>, StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        self.walk(move |core| assets::protectors(core, &tenant, id, limit, &terms, now)).await
    }

    async fn page(&self, tenant: &TenantId, query: &AssetQuery, terms: &Terms) -> Result<Vec<AssetView>, StorageError> {
        let (tenant, query, terms) = (tenant.clone(), query.clone(), *terms);
        self.walk(move |core| assets::page(core, &tenant, &query, &terms)).await
    }

    async fn amend(
        &self,
        tenant: &TenantId,
        id: AssetId,
        change: Amendment,
        audit: AuditEvent,
    ) -> Result<Amended, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| assets::amend(draft, &tenant, id, &change, audit)).await
    }

    async fn raise_generation(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| assets::raise_generation(draft, &tenant, id, durable, audit)).await
    }

    async fn raise_generations(
        &self,
        tenant: &TenantId,
        ids: &[AssetId],
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Vec<AssetRecord>, StorageError> {
        let (tenant, ids) = (tenant.clone(), ids.to_vec());
        self.writer
            .apply(Room::Makes, move |draft| urls::raise_generations(draft, &tenant, &ids, &durable, &audit))
            .await
    }

    async fn raise_epoch(&self, tenant: &TenantId, audit: AuditEvent) -> Result<u32, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| urls::raise_epoch(draft, &tenant, audit)).await
    }

    async fn count_assets(&self, tenant: &TenantId) -> Result<u64, StorageError> {
        let prefix = Key::of(Space::Assets, tenant);
        self.walk(move |core| core.rows().scan(&prefix).try_fold(0, |count, row| row.map(|_| count + 1))).await
    }

    async fn resign(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| assets::resign(draft, &tenant, id, durable, audit)).await
    }

    async fn mint(&self, tenant: &TenantId, urls: Vec<MintedUrl>, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| urls::mint(draft, &tenant, urls, events)).await
    }

    async fn url(&self, tenant: &TenantId, url_id: &str) -> Result<Option<UrlView>, StorageError> {
        self.core.at_once(|rows| urls::find(rows, tenant, url_id))
    }

    async fn urls_with(
        &self,
        tenant: &TenantId,
        label: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<UrlView>, StorageError> {
        let (tenant, label, after) = (tenant.clone(), label.to_owned(), after.map(str::to_owned));
        self.walk(move |core| urls::labelled(core, &tenant, &label, after.as_deref(), limit)).await
    }

    async fn take_use(&self, tenant: &TenantId, url_id: &str) -> Result<Taken, StorageError> {
        let (tenant, url_id) = (tenant.clone(), url_id.to_owned());
        self.writer.apply(Room::Makes, move |draft| urls::take_use(draft, &tenant, &url_id)).await
    }

    async fn revoke_urls(
        &self,
        tenant: &TenantId,
        url_ids: &[String],
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Vec<MintedUrl>, StorageError> {
        let (tenant, url_ids) = (tenant.clone(), url_ids.to_vec());
        self.writer.apply(Room::Makes, move |draft| urls::revoke(draft, &tenant, &url_ids, &audit, now)).await
    }

    async fn revoke_url(
        &self,
        tenant: &TenantId,
        url_id: &str,
        keep_until: Timestamp,
        audit: AuditEvent,
    ) -> Result<(), StorageError> {
        let (tenant, url_id) = (tenant.clone(), url_id.to_owned());
        self.writer
            .apply(Room::Makes, move |draft| assets::revoke_url(draft, &tenant, &url_id, keep_until, audit))
            .await
    }

    async fn is_revoked(&self, tenant: &TenantId, url_id: &str) -> Result<bool, StorageError> {
        assets::is_revoked(&self.core, tenant, url_id)
    }

    async fn update_run(
        &self,
        tenant: &TenantId,
        update: &RunUpdate,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Result<Updated, RunConflict>, StorageError> {
        let (owner, update, terms) = (tenant.clone(), update.clone(), *terms);
        let updated = self
            .writer
            .apply(Room::Takes, move |draft| runs::update(draft, &owner, &update, &terms, audit, now))
            .await?;
        let (record, inherited) = match updated {
            Ok(updated) => updated,
            Err(conflict) => return Ok(Err(conflict)),
        };
        // Counted outside of the transition: a run may reference more assets than a writer should read.
        let tenant = tenant.clone();
        let view = self.walk(move |core| runs::count(core.rows(), &tenant, record)).await?;
        Ok(Ok(Updated { view, inherited }))
    }

    async fn run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunView>, StorageError> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.walk(move |core| runs::view(core, &tenant, &id)).await
    }

    async fn find_run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunRecord>, StorageError> {
        Ok(self.core.rows().run(tenant, id)?.map(|row| row.record))
    }

    async fn runs(&self, tenant: &TenantId, query: &RunQuery) -> Result<Vec<RunView>, StorageError> {
        let (tenant, query) = (tenant.clone(), query.clone());
        self.walk(move |core| runs::list(core, &tenant, &query)).await
    }

    async fn refer(
        &self,
        tenant: &TenantId,
        run: &RunId,
        assets: &[AssetId],
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Referred, StorageError> {
        let (tenant, run, assets, terms) = (tenant.clone(), run.clone(), assets.to_vec(), *terms);
        self.writer
            .apply(Room::Takes, move |draft| runs::refer(draft, &tenant, &run, &assets, &terms, audit, now))
            .await
    }

    async fn put_artifact(
        &self,
        tenant: &TenantId,
        artifact: &NewArtifact,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<PutArtifact, StorageError> {
        let (tenant, artifact, terms) = (tenant.clone(), artifact.clone(), *terms);
        self.writer.apply(Room::Takes, move |draft| artifacts::put(draft, &tenant, &artifact, &terms, audit, now)).await
    }

    async fn artifact(
        &self,
        tenant: &TenantId,
        run: &RunId,
        id: &ArtifactId,
    ) -> Result<Option<ArtifactRecord>, StorageError> {
        self.core.at_once(|rows| artifacts::find(rows, tenant, run, id))
    }

    async fn artifact_naming(
        &self,
        tenant: &TenantId,
        asset: AssetId,
    ) -> Result<Option<(RunId, ArtifactId)>, StorageError> {
        self.core.at_once(|rows| artifacts::naming(rows, tenant, asset))
    }

    async fn hold(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        hold: Hold,
        audit: AuditEvent,
    ) -> Result<Placed, StorageError> {
        let (tenant, on) = (tenant.clone(), on.clone());
        self.writer.apply(Room::Makes, move |draft| holds::hold(draft, &tenant, &on, hold, audit)).await
    }

    async fn lift(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        id: &HoldId,
        terms: &Terms,
        audit: AuditEvent,
    ) -> Result<Option<u64>, StorageError> {
        let (tenant, on, id, terms) = (tenant.clone(), on.clone(), id.clone(), *terms);
        self.writer.apply(Room::Makes, move |draft| holds::lift(draft, &tenant, &on, &id, &terms, audit)).await
    }

    async fn holds(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        after: Option<&HoldId>,
        limit: usize,
    ) -> Result<Vec<Hold>, StorageError> {
        let (tenant, on, after) = (tenant.clone(), on.clone(), after.cloned());
        self.walk(move |core| core.rows().holds(&tenant, &on, after.as_ref()).take(limit).collect()).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Look>, StorageError> {
        self.walk(move |core| ending::due(core, now, limit)).await
    }

    async fn settle(
        &self,
        look: &Look,
        limit: usize,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Result<Settlement, StorageError> {
        let (look, terms, principal) = (look.clone(), *terms, principal.to_owned());
        self.writer
            .apply(Room::Makes, move |draft| {
                ending::settle(draft, &look, limit, Sweep { terms: &terms, principal: &principal, now })
            })
            .await
    }

    async fn expire_if_due(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Result<Option<AssetRecord>, StorageError> {
        let (tenant, terms, principal) = (tenant.clone(), *terms, principal.to_owned());
        self.writer
            .apply(Room::Makes, move |draft| {
                ending::expire_if_due(draft, &tenant, id, Sweep { terms: &terms, principal: &principal, now })
            })
            .await
    }

    async fn delete(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Deleted, StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        self.writer.apply(Room::Makes, move |draft| ending::delete(draft, &tenant, id, &terms, audit, now)).await
    }

    async fn erase(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Erasure, StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        self.writer.apply(Room::Makes, move |draft| ending::erase(draft, &tenant, id, &terms, audit, now)).await
    }

    async fn same_bytes(
        &self,
        tenant: &TenantId,
        id: AssetId,
        after: Option<AssetId>,
        limit: usize,
    ) -> Result<Vec<AssetId>, StorageError> {
        let tenant = tenant.clone();
        self.walk(move |core| assets::same_bytes(core, &tenant, id, after, limit)).await
    }

    async fn erase_run(
        &self,
        tenant: &TenantId,
        run: &RunId,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<RunErasure, StorageError> {
        let (tenant, run) = (tenant.clone(), run.clone());
        self.writer.apply(Room::Makes, move |draft| holds::erase_run(draft, &tenant, &run, audit, now)).await
    }

    async fn doom(&self, uploads_before: Timestamp, limit: usize, now: Timestamp) -> Result<Vec<Doomed>, StorageError> {
        self.writer.apply(Room::Makes, move |draft| blobs::doom(draft, uploads_before, limit, now)).await
    }

    async fn doom_one(&self, tenant: &TenantId, blob: BlobKey, now: Timestamp) -> Result<bool, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| blobs::doom_one(draft, &tenant, blob, now)).await
    }

    async fn forget(&self, doomed: &Doomed) -> Result<(), StorageError> {
        let doomed = doomed.clone();
        self.writer.apply(Room::Makes, move |draft| blobs::forget(draft, &doomed)).await
    }

    async fn tidy(&self, limit: usize, now: Timestamp) -> Result<usize, StorageError> {
        self.writer.apply(Room::Makes, move |draft| upkeep::tidy(draft, limit, now)).await
    }

    async fn owed(
        &self,
        after: Option<(TenantId, Digest)>,
        limit: usize,
    ) -> Result<Vec<(TenantId, Owed)>, StorageError> {
        self.walk(move |core| owed::list(core, after, limit)).await
    }

    async fn paid(&self, written: Vec<(TenantId, Digest)>) -> Result<(), StorageError> {
        self.writer.apply(Room::Makes, move |draft| owed::paid(draft, &written)).await
    }

    async fn record(&self, tenant: &TenantId, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        let tenant = tenant.clone();
        self.writer
            .apply(Room::Takes, move |draft| {
                events.into_iter().for_each(|event| draft.audit(&tenant, event));
                Ok(())
            })
            .await
    }

    async fn seal_audit(&self, limit: usize) -> Result<usize, StorageError> {
        self.writer.apply(Room::Makes, move |draft| upkeep::seal(draft, limit)).await
    }

    async fn audit_rows(&self, tenant: &TenantId, since: u64, limit: usize) -> Result<Vec<AuditRow>, StorageError> {
        let tenant = tenant.clone();
        self.walk(move |core| upkeep::audit_rows(core, &tenant, since, limit)).await
    }

    async fn usage(&self, tenant: &TenantId) -> Result<Usage, StorageError> {
        self.core.at_once(|rows| rows.usage(tenant))
    }

    async fn counted_usage(&self, tenant: &TenantId) -> Result<Counted, StorageError> {
        let tenant = tenant.clone();
        self.walk(move |core| core.at_once(|rows| rows.counted_usage(&tenant))).await
    }

    async fn blobs(&self, after: Option<(TenantId, BlobKey)>, limit: usize) -> Result<Vec<BlobRow>, StorageError> {
        self.walk(move |core| blobs::list(core, after, limit)).await
    }

    async fn assets(&self, after: Option<(TenantId, AssetId)>, limit: usize) -> Result<Vec<AssetRecord>, StorageError> {
        self.walk(move |core| assets::list(core, after, limit)).await
    }

    async fn count_due(&self, limit: usize, terms: &Terms, now: Timestamp) -> Result<usize, StorageError> {
        let terms = *terms;
        self.walk(move |core| ending::count_due(core, limit, &terms, now)).await
    }

    async fn preview(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        after: Option<AssetId>,
        limit: usize,
        terms: &Terms,
    ) -> Result<Preview, StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        self.walk(move |core| ending::preview(core, &tenant, at, after, limit, &terms)).await
    }

    async fn restore(
        &self,
        tenant: &TenantId,
        what: Vec<Restored>,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        self.writer
            .apply(Room::Takes, move |draft| {
                what.into_iter().try_for_each(|one| restore::restore(draft, &tenant, one, &terms, now))
            })
            .await
    }

    async fn ready(&self) -> Result<(), StorageError> {
        // A disk that is nearly full refuses what adds to it, and each such request hears so; reads go on, so the index is ready.
        // A transition that writes nothing, and yet only a writer that works answers it.
        self.writer.apply(Room::Makes, |draft| draft.rows().get(&Key::space(Space::Meta)).map(|_| ())).await
    }
}

impl fmt::Debug for SledIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SledIndex").field("path", &self.core.path).finish_non_exhaustive()
    }
}
