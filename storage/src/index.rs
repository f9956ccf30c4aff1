//! The index: what is known of assets, runs, uploads and the past.
//!
//! [`AssetIndex`] is the contract that every backend keeps; the crate page says what atomic, durable and visible mean in it. Each
//! method is one whole transition, named for it, so that every backend has the same races: none. The suite in `contract` runs every
//! transition against each of them, and random sequences of transitions against a model.
//!
//! # The queue of ends
//!
//! A run's end stands in one row, so extending a run is one write however many assets it has. What wakes the sweep is a queue of
//! *looks*: a run is looked at when its log ends, an asset at the end of a term of its own (an unreferenced upload, a sender's wish).
//! A look promises nothing: the floor is computed anew, and an asset that something else keeps is left alone, because whatever keeps
//! it has a look of its own or has no end. A run that moves takes its look with it. So a sweep costs what is due, not what exists.
//! A hold takes a run's look away, and its lifting brings it back; the erasure of a run is a look at once.
//!
//! # What the store is owed
//!
//! The store can make the index anew from the records beside its blobs, so each transition that changes what such a record says *owes*
//! one: [`Owed`] is written in its commit. Whoever has made the transition writes the record and then notes it as paid; what a crash
//! leaves unpaid, the next sweep writes. A publication owes nothing: its record was written before it.
//!
//! # Artifacts
//!
//! An artifact is a document of a run, which names assets. It ends with the run's look: once the walk of a run that is over, or was
//! erased, has come to its last asset, the artifacts go, and whoever puts one into a run that is over already places another look. To
//! readers the artifacts of an erased run are gone at once. A fork takes none up: they are its parent's documents.
//!
//! # Forks
//!
//! A fork is a copy: in the transition that names its parent the child takes up every reference that the parent has at that moment.
//! That costs what the parent references, once, and leaves floors, pages and counts what they are, also for forks of forks.

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;

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

pub use self::answers::{
    Amended, Amendment, AssetQuery, BlobRow, Claimed, Deleted, Erasure, Look, LookAt, NewArtifact, NewAsset,
    NewDurable, Placed, Preview, Published, PutArtifact, Referred, Restored, RunErasure, RunQuery, Settlement, Updated,
};

mod answers;
mod codec;
#[cfg(any(test, feature = "testing"))]
pub mod contract;
#[cfg(any(test, feature = "testing"))]
pub mod model;
pub mod postgres;
pub mod sled;

/// What every index does. `now` is a parameter everywhere: an index has no clock.
#[async_trait]
pub trait AssetIndex: Debug + Send + Sync + 'static {
    // ── One upload, in the order in which it happens ────────────────────────────────────────────────

    /// Takes the idempotency key for this request, unless another has it: at most one holder at a time.
    ///
    /// A claim that was not renewed before it lapsed, and an answer past its time, are as if they had never been.
    async fn claim(&self, tenant: &TenantId, claim: Claim, now: Timestamp) -> Result<Claimed, StorageError>;

    /// Holds the claim for longer, if this request still holds it; says whether it does.
    async fn renew_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<bool, StorageError>;

    /// Gives the claim up, if this request still holds it: the next request with the key starts afresh.
    async fn release_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<(), StorageError>;

    /// Announces an upload, or says that it is still alive. While it is announced its bytes are nobody's to remove.
    async fn begin_upload(&self, tenant: &TenantId, intent: UploadIntent) -> Result<(), StorageError>;

    /// Announces the upload, and reserves so many bytes and one asset of the tenant's quota for it: both, or nothing if the quota leaves
    /// less. Never more is reserved and used together than the quota says, however many ask at however many replicas.
    ///
    /// The reservation ends with the upload, however that ends.
    async fn begin_reserved(
        &self,
        tenant: &TenantId,
        intent: UploadIntent,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError>;

    /// Reserves so many bytes in all for an upload that is announced. What it has reserved already stays, also if that is more.
    async fn reserve(
        &self,
        tenant: &TenantId,
        blob: BlobKey,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError>;

    /// Withdraws an upload whose staged bytes are gone.
    async fn end_upload(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError>;

    /// The blob that holds these bytes for this tenant and could be shared now. Only a hint: `publish` decides.
    async fn blob_of(&self, tenant: &TenantId, sha256: &Digest) -> Result<Option<BlobKey>, StorageError>;

    /// Makes the asset visible, adds the run's reference, keeps the idempotency answer, ends the upload, writes the audit event: all
    /// of it, or nothing.
    ///
    /// The reservation turns into the asset, which counts from here on until it ends. That it is no larger than what was reserved is
    /// its caller's to see to: nothing is refused here.
    ///
    /// Equal bytes of the same tenant share the blob already held, rescuing it if it was condemned; the newcomer's own copy is then
    /// doomed at `discard_at`, and the answer says where the bytes are. An unregistered run is kept from this reference on, and an erased
    /// one takes nothing.
    async fn publish(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError>;

    // ── Uploads in parts ────────────────────────────────────────────────────────────────────────────

    /// Begins an upload, with so many bytes and one asset of the tenant's quota reserved for it until it is finished or ends: all of it,
    /// or nothing. With `most` reservations the tenant has enough.
    async fn begin_resumable(
        &self,
        tenant: &TenantId,
        upload: Resumable,
        bytes: u64,
        most: u64,
        quota: Quota,
    ) -> Result<Opened, StorageError>;

    /// The upload, unless it has ended.
    async fn resumable(&self, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, StorageError>;

    /// Its parts in the order of their bytes, those that begin at `from` or later.
    async fn resumable_parts(
        &self,
        tenant: &TenantId,
        id: UploadId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Part>, StorageError>;

    /// Gives the right to write, or gives it for longer: to one at a time, however many ask at however many replicas.
    async fn lease_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        lease: Lease,
        now: Timestamp,
    ) -> Result<Leased, StorageError>;

    /// Gives the lease back, if this request has it.
    async fn release_resumable(&self, tenant: &TenantId, id: UploadId, holder: [u8; 16]) -> Result<(), StorageError>;

    /// Reserves so many bytes in all for the upload, and says how long it will be if that was not known. What it has reserved already
    /// stays, also if that is more. [`Reserved::UploadLost`] if the upload is not open, the lease another's, or the length not that.
    async fn extend_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        bytes: u64,
        length: Option<u64>,
        quota: Quota,
    ) -> Result<Reserved, StorageError>;

    /// Makes the announced blob the next part of the upload, if it begins where the last one ended and the lease is still this request's;
    /// says what the upload is then, and `None` if nothing happened.
    async fn append_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        part: Part,
        kept: KeptFor,
    ) -> Result<Option<Resumable>, StorageError>;

    /// [Publishes](Self::publish) what was made of an upload, and finishes it: both, or neither. What was reserved for it, and for the
    /// pieces that it is joined of, turns into the asset, and the pieces end. [`Published::UploadLost`] if the upload is not complete, the
    /// lease another's, or a piece not there any more.
    async fn publish_resumable(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        upload: Joining,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError>;

    /// Finishes the upload with an asset that was there already; says whether it did.
    async fn finish_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        asset: AssetId,
        now: Timestamp,
    ) -> Result<bool, StorageError>;

    /// Ends the upload, open or finished, if the lease is this request's; says whether it did. What was made of it stays.
    async fn end_resumable(&self, tenant: &TenantId, upload: Joining, now: Timestamp) -> Result<bool, StorageError>;

    /// Uploads that are to be looked at now, the oldest look first. Across tenants.
    async fn due_resumables(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, UploadId)>, StorageError>;

    /// Looks at the upload: ends one whose time has passed and which nobody writes, and condemns at most `limit` parts of one that is no
    /// longer open. The row goes with the last of them, or at its time if an asset was made of it.
    async fn clear_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Cleared, StorageError>;

    // ── Assets ──────────────────────────────────────────────────────────────────────────────────────

    /// The asset's row alone.
    async fn find(&self, tenant: &TenantId, id: AssetId) -> Result<Option<AssetRecord>, StorageError>;

    /// The asset with its floor and references, as of one moment.
    async fn view(&self, tenant: &TenantId, id: AssetId, terms: &Terms) -> Result<Option<AssetView>, StorageError>;

    /// What still protects the asset, of one moment: holds, the newest runs, the sender's wish, the grace; at most `limit`.
    async fn protectors(
        &self,
        tenant: &TenantId,
        id: AssetId,
        limit: usize,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Vec<Protector>, StorageError>;

    /// Assets in the order of their names, which is that of their making. What was there when paging began comes exactly once.
    async fn page(&self, tenant: &TenantId, query: &AssetQuery, terms: &Terms) -> Result<Vec<AssetView>, StorageError>;

    /// Changes the asset's words, if its row still has the revision that the caller saw.
    async fn amend(
        &self,
        tenant: &TenantId,
        id: AssetId,
        change: Amendment,
        audit: AuditEvent,
    ) -> Result<Amended, StorageError>;

    /// Gives the asset a new generation of durable URL: older ones open nothing from now on.
    async fn raise_generation(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError>;

    /// The same for several assets, each with an event of its own. Those that are not there are passed over; the others come back, in the
    /// order of their names.
    async fn raise_generations(
        &self,
        tenant: &TenantId,
        ids: &[AssetId],
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Vec<AssetRecord>, StorageError>;

    /// Raises the generation of all of the tenant's assets at once, those to come included: one write, however many there are. Says how
    /// often that has happened.
    async fn raise_epoch(&self, tenant: &TenantId, audit: AuditEvent) -> Result<u32, StorageError>;

    /// How many assets the tenant has, in every state.
    async fn count_assets(&self, tenant: &TenantId) -> Result<u64, StorageError>;

    /// Has another key sign the asset's durable URL. The generation stays, so URLs that other keys signed go on opening.
    async fn resign(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError>;

    // ── Delivery URLs ───────────────────────────────────────────────────────────────────────────────

    /// Notes URLs that are about to be handed out, with what the log says of them. Durable ones have events and no rows. A name that is
    /// there already keeps its row.
    async fn mint(&self, tenant: &TenantId, urls: Vec<MintedUrl>, events: Vec<AuditEvent>) -> Result<(), StorageError>;

    /// The delivery URL of that name.
    async fn url(&self, tenant: &TenantId, url_id: &str) -> Result<Option<UrlView>, StorageError>;

    /// The delivery URLs with this label, in the order of their names, from behind `after`.
    async fn urls_with(
        &self,
        tenant: &TenantId,
        label: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<UrlView>, StorageError>;

    /// Takes one use of a counted URL: never more than there are, however many ask at however many replicas.
    async fn take_use(&self, tenant: &TenantId, url_id: &str) -> Result<Taken, StorageError>;

    /// Revokes these delivery URLs, each with an event of its own. Says which of them opened until now, in the order of
    /// their names: those alone are changed.
    async fn revoke_urls(
        &self,
        tenant: &TenantId,
        url_ids: &[String],
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Vec<MintedUrl>, StorageError>;

    /// Notes that a delivery URL was revoked, whether it has a row or not; `keep_until` is when it would have ended by itself.
    async fn revoke_url(
        &self,
        tenant: &TenantId,
        url_id: &str,
        keep_until: Timestamp,
        audit: AuditEvent,
    ) -> Result<(), StorageError>;

    /// Whether a delivery URL was revoked.
    async fn is_revoked(&self, tenant: &TenantId, url_id: &str) -> Result<bool, StorageError>;

    // ── Runs ────────────────────────────────────────────────────────────────────────────────────────

    /// Registers the run, or changes what the update names; moves its look with its end. The first time that it is named a fork, it
    /// takes up every reference of its parent, tombstones included.
    async fn update_run(
        &self,
        tenant: &TenantId,
        update: &RunUpdate,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Result<Updated, RunConflict>, StorageError>;

    /// The run and what it references.
    async fn run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunView>, StorageError>;

    /// The run's row alone.
    async fn find_run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunRecord>, StorageError>;

    /// Runs in the order of their names.
    async fn runs(&self, tenant: &TenantId, query: &RunQuery) -> Result<Vec<RunView>, StorageError>;

    /// Makes the run reference the assets, dead ones as tombstones: all of them, or none if one is unknown or the run erased.
    async fn refer(
        &self,
        tenant: &TenantId,
        run: &RunId,
        assets: &[AssetId],
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Referred, StorageError>;

    // ── Artifacts ───────────────────────────────────────────────────────────────────────────────────

    /// Writes the artifact, in place of one that is there, and makes its run reference the assets that it names, dead ones as
    /// tombstones: all of it, or nothing if one is unknown or the run erased. Each putting and each end has a number higher than every
    /// one before it of the run's artifacts.
    async fn put_artifact(
        &self,
        tenant: &TenantId,
        artifact: &NewArtifact,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<PutArtifact, StorageError>;

    /// The run's artifact of that name, unless the run was erased.
    async fn artifact(
        &self,
        tenant: &TenantId,
        run: &RunId,
        id: &ArtifactId,
    ) -> Result<Option<ArtifactRecord>, StorageError>;

    /// An artifact that names the asset, as it stands now, of a run that was not erased: the first by the names of run and artifact.
    async fn artifact_naming(
        &self,
        tenant: &TenantId,
        asset: AssetId,
    ) -> Result<Option<(RunId, ArtifactId)>, StorageError>;

    // ── Holds ───────────────────────────────────────────────────────────────────────────────────────

    /// Keeps the asset, or everything that the run references or will, until the hold is lifted. A name that is there already gets the
    /// new reason, and its time stays. Each placing has a number higher than every one before.
    ///
    /// A dead asset keeps what is left of it: its tombstone, and bytes that were not out of reach yet.
    async fn hold(&self, tenant: &TenantId, on: &HoldOn, hold: Hold, audit: AuditEvent)
    -> Result<Placed, StorageError>;

    /// Lifts the hold, and says under which number; `None` if there is none of that name. What nothing else keeps is due at once.
    async fn lift(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        id: &HoldId,
        terms: &Terms,
        audit: AuditEvent,
    ) -> Result<Option<u64>, StorageError>;

    /// The holds on the asset or run itself, in the order of their names, from behind `after`.
    async fn holds(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        after: Option<&HoldId>,
        limit: usize,
    ) -> Result<Vec<Hold>, StorageError>;

    // ── The end ─────────────────────────────────────────────────────────────────────────────────────

    /// What is to be looked at now, oldest look first. The one query across tenants besides those that say so: the sweep's.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Look>, StorageError>;

    /// Looks at the assets of one look: expires each live one whose floor is past, computed anew inside the transaction, erases each
    /// that only erased runs reference and no hold keeps, and lets the others be. At most `limit` assets a call; the look stays until
    /// it has seen all. A look that another sweep is at is left to it, as done.
    ///
    /// A dead asset whose tombstone has had its time is dropped with all its references. Behind the last asset of a run the run's
    /// artifacts are dropped, at most `limit` a call, each with an event of its own.
    async fn settle(
        &self,
        look: &Look,
        limit: usize,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Result<Settlement, StorageError>;

    /// Expires the asset if it is live and its floor is past, computed anew inside the transaction, or erases it if that is what its
    /// runs want; returns it as it is afterwards.
    async fn expire_if_due(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Result<Option<AssetRecord>, StorageError>;

    /// Ends the asset on its owner's word, unless something protects it; its blob, if nobody else holds it, may be doomed at once, also
    /// if the asset had ended before.
    async fn delete(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Deleted, StorageError>;

    /// Erases the asset, live or expired, whatever floor it has, unless a hold is on it or on a run that references it: of its row nothing
    /// stays but name, type and size, its idempotency answer goes, and its blob is out of reach at once if nothing else needs it.
    ///
    /// Again: the same answer.
    async fn erase(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Erasure, StorageError>;

    /// The assets with the same bytes as this one, dead ones too, in the order of their names from behind `after`. Those of an erased
    /// asset are not known.
    async fn same_bytes(
        &self,
        tenant: &TenantId,
        id: AssetId,
        after: Option<AssetId>,
        limit: usize,
    ) -> Result<Vec<AssetId>, StorageError>;

    /// Closes the run for good, unless it is held: it takes up nothing more and keeps nothing. Its assets are erased by settling its
    /// look, which is due at its `erased_at`; whoever has the run erased settles it at once, and else a sweep does.
    ///
    /// Again: the same answer.
    async fn erase_run(
        &self,
        tenant: &TenantId,
        run: &RunId,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<RunErasure, StorageError>;

    /// Takes blobs whose time has come out of reach of any rescue, and announced uploads that showed no life since `uploads_before`;
    /// names those taken now and those that an earlier call took and whose bytes may still be there, an upload with the asset that it
    /// was to become. Across tenants.
    ///
    /// A hold on a dead asset, or on a run that references one, keeps its blob; such a blob is looked at again after
    /// [`crate::retention::HOLD_RECHECK`].
    async fn doom(&self, uploads_before: Timestamp, limit: usize, now: Timestamp) -> Result<Vec<Doomed>, StorageError>;

    /// Takes this one blob out of reach of any rescue if it is condemned, its time has come and no hold keeps it; says whether it is out
    /// of reach now, so that its bytes may go.
    async fn doom_one(&self, tenant: &TenantId, blob: BlobKey, now: Timestamp) -> Result<bool, StorageError>;

    /// Drops the row of a blob whose bytes are gone: a doomed one, or a copy that `publish` did not need. Of any other it drops nothing.
    async fn forget(&self, doomed: &Doomed) -> Result<(), StorageError>;

    /// Drops claims, answers, delivery URLs and revocations past their time; says how many. Across tenants.
    async fn tidy(&self, limit: usize, now: Timestamp) -> Result<usize, StorageError>;

    // ── What the store is owed ──────────────────────────────────────────────────────────────────────

    /// Recovery records that transitions have left to be written, each tenant's in an order of its own, from behind `after`. Across
    /// tenants.
    async fn owed(
        &self,
        after: Option<(TenantId, Digest)>,
        limit: usize,
    ) -> Result<Vec<(TenantId, Owed)>, StorageError>;

    /// Notes that these are written, each by [its name](Owed::name): durable when they were noted. What is not owed is passed over.
    async fn paid(&self, written: Vec<(TenantId, Digest)>) -> Result<(), StorageError>;

    // ── Looking back and looking after ──────────────────────────────────────────────────────────────

    /// Writes events that belong to no other transition.
    async fn record(&self, tenant: &TenantId, events: Vec<AuditEvent>) -> Result<(), StorageError>;

    /// Gives waiting audit rows their place in their tenants' chains; says how many. Across tenants.
    async fn seal_audit(&self, limit: usize) -> Result<usize, StorageError>;

    /// Sealed audit rows after `since`, oldest first.
    async fn audit_rows(&self, tenant: &TenantId, since: u64, limit: usize) -> Result<Vec<AuditRow>, StorageError>;

    /// What the tenant uses now, of one moment. It costs what is reserved, not what is stored.
    async fn usage(&self, tenant: &TenantId) -> Result<Usage, StorageError>;

    /// What is kept of the tenant's use, and what a count of all of its rows comes to, of one moment: what `verify` compares.
    async fn counted_usage(&self, tenant: &TenantId) -> Result<Counted, StorageError>;

    /// Every blob that the index names, in order, from behind `after`: what `verify` compares with the store. Across tenants.
    async fn blobs(&self, after: Option<(TenantId, BlobKey)>, limit: usize) -> Result<Vec<BlobRow>, StorageError>;

    /// Assets as they are, in order, from behind `after`: what `verify` compares with the store. Across tenants.
    async fn assets(&self, after: Option<(TenantId, AssetId)>, limit: usize) -> Result<Vec<AssetRecord>, StorageError>;

    /// How many live assets would expire now, counted up to `limit`. Across tenants.
    async fn count_due(&self, limit: usize, terms: &Terms, now: Timestamp) -> Result<usize, StorageError>;

    /// What a sweep at `at` would take of the tenant's: a page of the assets, and how many they are and how many bytes they have in all.
    async fn preview(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        after: Option<AssetId>,
        limit: usize,
        terms: &Terms,
    ) -> Result<Preview, StorageError>;

    /// Writes what the store has kept of a tenant into an index that was made anew: rows, references, looks, blobs and digests come out
    /// as if the transitions had happened. Runs come first, then assets in the order of their making, references in the order of
    /// their times, artifacts, holds and revocations; what is there already stays.
    async fn restore(
        &self,
        tenant: &TenantId,
        what: Vec<Restored>,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<(), StorageError>;

    /// Whether the index answers. One that only lacks room does: reads go on.
    async fn ready(&self) -> Result<(), StorageError>;
}

/// The audit event of an expiry, the same from every backend.
fn expiry_event(record: &AssetRecord, principal: &str, now: Timestamp) -> AuditEvent {
    // Without its digest: the log is for ever, and the asset may be erased one day.
    let details = Value::from_iter([("bytes", Value::from(record.bytes))]);
    AuditEvent::new(crate::audit::AuditKind::Expire, principal, now).asset(record.id).details(details)
}

/// The audit event of an artifact that goes with its run, the same from every backend.
fn artifact_end_event(run: &RunRecord, id: &ArtifactId, principal: &str, now: Timestamp) -> AuditEvent {
    use crate::audit::AuditKind::{Erase, Expire};
    let details = Value::from_iter([("artifactId", Value::from(id.as_str()))]);
    let kind = if run.erased_at.is_some() { Erase } else { Expire };
    AuditEvent::new(kind, principal, now).run(&run.id).details(details)
}

/// The audit event of an asset that is erased with its runs, the same from every backend. What is erased is not told once more.
fn erasure_event(record: &AssetRecord, principal: &str, now: Timestamp) -> AuditEvent {
    let why = Value::from_iter([("with", Value::from("run"))]);
    AuditEvent::new(crate::audit::AuditKind::Erase, principal, now).asset(record.id).details(why)
}
