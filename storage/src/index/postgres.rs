//! The index in PostgreSQL, which many replicas share.
//!
//! # How it keeps the contract
//!
//! - **Atomic**: each transition is one `SERIALIZABLE` transaction (`tx`), done again as a whole when the database refuses it for what
//!   others did beside it. The exceptions, the sealing of the audit log, the taking of a use
//!   and the reserving of room under a quota, go by one row's lock and say why.
//! - **Durable**: `COMMIT` is answered once the write-ahead log is on disk (`synchronous_commit = on`), and a call returns `Ok` only
//!   after that answer. If the connection is lost between the two, the call says [`StorageError::Unavailable`] and that it is not known
//!   what happened. A server that runs with `fsync` or `full_page_writes` off is named in the log when the index is opened.
//! - **Visible**: whatever a call has returned `Ok` for, every later call on every replica sees: nothing is cached here, and no read
//!   goes to a standby. What is read of several rows (an asset with its floor, a page with theirs) is one statement, which sees one
//!   moment.
//! - **Abandoned calls**: a caller that no longer waits leaves its transition undone, or, once `COMMIT` is sent, whole.
//!
//! # How replicas keep out of each other's way
//!
//! Rows are made by inserting, not by looking first; what is found by time (looks, uploads, condemned blobs, keys to tidy) stands in
//! tables of its own, so that changing a row touches no index and with it no page that another transaction has read. Sequential scans
//! are turned off in each session: on a table of a few rows the planner prefers them, and under `SERIALIZABLE` a scan counts as having
//! read all of the table, so that every two transitions of a young index would conflict.
//!
//! Publications that are refused take turns with those of the same run or bytes (`turns`): hundreds at once, of equal bytes or into one run
//! that nobody has registered, would else try in vain until their patience ends.
//!
//! Locks are taken in this order: a tenant's sum of use, upload in parts, claim, run, asset, upload, blob. What cannot keep to it (the end of an asset looks at its runs last, and
//! an erasure at the answer of its request) does not wait for a lock but begins again. Sweeps skip what another one has locked, and
//! share the work so.
//!
//! That the database can put two transitions in an order is not enough where a caller was told of one of them. What must have been
//! first for whoever heard of it meets the other in a row:
//!
//! - **An end and a longer run, or a hold on the run**: the end, an erasure and the dropping of a tombstone lock the asset's runs for
//!   sharing. A hold on the asset is counted in the row that they write.
//! - **A hold and the removal of a dead asset's bytes**: who takes a blob out of reach has locked it, and the runs of the dead that had
//!   it for sharing. A hold on a dead asset, and a reference to one by a held run, write the blob's row as it is.
//! - **A fork and its parent's erasure or walk**: the fork locks its parent for sharing. What it takes up it reads and does not lock,
//!   as a reference does: an end of it has read the references, and of the two only one happens.
//! - **An artifact that is put, and an end or the erasure of its run**: each putting counts in the run's row, which the walk that ends the
//!   run's artifacts has locked, and the erasure writes.
//! - **The erasure of a run and a publication into it**: the publication only reads the run's row, because thousands a minute go into
//!   one. The erasure reads the run's references, so the database lets only one of the two happen.
//!
//! Holds are counted in the rows of what they are on: where there are none, nothing asks for them.
//!
//! # The rows
//!
//! `storage/migrations` has the tables. Columns hold what a query or a transition looks at; the rest of a record is its JSON behind one
//! byte for its version, the same that the index in `sled` keeps, in a column `record`. To read one in psql:
//!
//! ```sql
//! SELECT convert_from(substr(record, 2), 'UTF8')::json FROM mk_assets WHERE tenant = 'acme' LIMIT 1;
//! ```
//!
//! Times are microseconds since 1970 (`to_timestamp(at / 1e6)`), rounded so that nothing ends before its record says. Words from
//! outside (idempotency keys, URL ids, types) are bytes, because PostgreSQL's text does not hold every string. Names of tenants and runs
//! are compared byte by byte (`COLLATE "C"`).
//!
//! Only plain SQL is used, which wire-compatible databases run too: no extension, no advisory lock, no procedure, no notification.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::PgPool;
use tokio::runtime::Handle;

use self::ending::Sweep;
use self::rows::limited;
use self::turns::{Thing, Turns};
use self::tx::{read, transact};
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
mod connect;
mod due;
mod ending;
mod erasing;
mod failed;
mod holds;
mod ingest;
mod looks;
mod owed;
mod restore;
mod resumable;
mod rows;
mod runs;
mod sql;
#[cfg(test)]
mod tests;
mod turns;
mod tx;
mod upkeep;
mod urls;
mod usage;

/// How the database is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// How many connections this process may have. A call holds one only while its transaction runs, so a few serve many requests;
    /// all replicas together have to stay below the server's own `max_connections`.
    pub max_connections: u32,
    /// How long a call waits for a connection, or for a new one to be made.
    pub acquire_timeout: Duration,
    /// How long the server works on one statement.
    pub statement_timeout: Duration,
    /// How long a statement waits for a row that another transaction has locked.
    pub lock_timeout: Duration,
}

impl Default for PostgresOptions {
    /// 16 connections, of which six replicas fit into a server as it is delivered; 5 s for a connection and for a lock, 15 s for a
    /// statement: a request that waits longer has been given up by most callers.
    fn default() -> Self {
        Self {
            max_connections: 16,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(15),
            lock_timeout: Duration::from_secs(5),
        }
    }
}

/// An [`AssetIndex`] in a PostgreSQL database.
pub struct PostgresIndex {
    pool: PgPool,
    /// Where connections are made and waited on: they belong to the runtime in which they were made, and end with it. Callers may have
    /// runtimes of their own that end sooner.
    home: Handle,
    options: PostgresOptions,
    retries: AtomicU64,
    turns: Turns,
}

impl PostgresIndex {
    /// Connects, and brings the schema up to date, one replica at a time.
    ///
    /// [`StorageError::BadAddress`] if that is no URL of a database, or if a newer build has made the schema;
    /// [`StorageError::Unavailable`] if it cannot be reached. Neither holds the URL.
    pub async fn open(url: &str, options: PostgresOptions) -> Result<Self, StorageError> {
        let pool = connect::open(url, &options).await?;
        Ok(Self { pool, home: Handle::current(), options, retries: AtomicU64::new(0), turns: Turns::default() })
    }

    /// Whether the database has an index already; makes nothing.
    pub async fn is_there(url: &str, options: &PostgresOptions) -> Result<bool, StorageError> {
        connect::is_there(url, options).await
    }

    /// Ends its connections in good order, once the calls that use them have returned.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// How often a transition was done again because of what others did at the same time.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl AssetIndex for PostgresIndex {
    async fn claim(&self, tenant: &TenantId, claim: Claim, now: Timestamp) -> Result<Claimed, StorageError> {
        transact!(self, tx => ingest::claim(&mut tx, tenant, &claim, now))
    }

    async fn renew_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<bool, StorageError> {
        transact!(self, tx => ingest::renew(&mut tx, tenant, claim))
    }

    async fn release_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<(), StorageError> {
        transact!(self, tx => ingest::release(&mut tx, tenant, claim))
    }

    async fn begin_upload(&self, tenant: &TenantId, intent: UploadIntent) -> Result<(), StorageError> {
        transact!(self, tx => blobs::begin(&mut tx, tenant, &intent))
    }

    async fn begin_reserved(
        &self,
        tenant: &TenantId,
        intent: UploadIntent,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => usage::begin(&mut tx, tenant, &intent, bytes, quota))
    }

    async fn reserve(
        &self,
        tenant: &TenantId,
        blob: BlobKey,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => usage::reserve(&mut tx, tenant, blob, bytes, quota))
    }

    async fn end_upload(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        transact!(self, tx => blobs::end(&mut tx, tenant, blob))
    }

    async fn blob_of(&self, tenant: &TenantId, sha256: &Digest) -> Result<Option<BlobKey>, StorageError> {
        let row: Option<(Vec<u8>,)> = read!(self, on => async {
            Ok(sql::DIGEST_BLOB.rows().bind(tenant.as_str()).bind(sha256.0).fetch_optional(on).await?)
        })?;
        row.map(|(blob,)| rows::blob_key(&blob)).transpose()
    }

    async fn publish(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        let run = asset.record.run.clone().map(|run| Thing::Run(tenant.clone(), run));
        let about = run.into_iter().chain([Thing::Bytes(tenant.clone(), asset.record.sha256)]).collect();
        transact!(self, sql::BEGIN, about about, tx => ingest::publish(&mut tx, tenant, &asset, terms, now))
    }

    async fn begin_resumable(
        &self,
        tenant: &TenantId,
        upload: Resumable,
        bytes: u64,
        most: u64,
        quota: Quota,
    ) -> Result<Opened, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => resumable::begin(&mut tx, tenant, &upload, bytes, most, quota))
    }

    async fn resumable(&self, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, StorageError> {
        resumable::find(self, tenant, id).await
    }

    async fn resumable_parts(
        &self,
        tenant: &TenantId,
        id: UploadId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Part>, StorageError> {
        resumable::parts(self, tenant, id, from, limit).await
    }

    async fn lease_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        lease: Lease,
        now: Timestamp,
    ) -> Result<Leased, StorageError> {
        transact!(self, tx => resumable::lease(&mut tx, tenant, id, lease, now))
    }

    async fn release_resumable(&self, tenant: &TenantId, id: UploadId, holder: [u8; 16]) -> Result<(), StorageError> {
        transact!(self, tx => resumable::release(&mut tx, tenant, id, holder))
    }

    async fn extend_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        bytes: u64,
        length: Option<u64>,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => resumable::extend(&mut tx, tenant, &upload, bytes, length, quota))
    }

    async fn append_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        part: Part,
        kept: KeptFor,
    ) -> Result<Option<Resumable>, StorageError> {
        transact!(self, tx => resumable::append(&mut tx, tenant, &upload, &part, kept))
    }

    async fn publish_resumable(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        upload: Joining,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        transact!(self, tx => resumable::publish(&mut tx, tenant, &asset, &upload, terms, now))
    }

    async fn finish_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        asset: AssetId,
        now: Timestamp,
    ) -> Result<bool, StorageError> {
        transact!(self, tx => resumable::finish(&mut tx, tenant, &upload, asset, now))
    }

    async fn end_resumable(&self, tenant: &TenantId, upload: Joining, now: Timestamp) -> Result<bool, StorageError> {
        transact!(self, tx => resumable::end(&mut tx, tenant, &upload, now))
    }

    async fn due_resumables(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, UploadId)>, StorageError> {
        resumable::due(self, now, limit).await
    }

    async fn clear_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Cleared, StorageError> {
        transact!(self, tx => resumable::clear(&mut tx, tenant, id, limit, now))
    }

    async fn find(&self, tenant: &TenantId, id: AssetId) -> Result<Option<AssetRecord>, StorageError> {
        assets::find(self, tenant, id).await
    }

    async fn view(&self, tenant: &TenantId, id: AssetId, terms: &Terms) -> Result<Option<AssetView>, StorageError> {
        assets::view_of(self, tenant, id, terms).await
    }

    async fn protectors(
        &self,
        tenant: &TenantId,
        id: AssetId,
        limit: usize,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Vec<Protector>, StorageError> {
        assets::protectors(self, tenant, id, limit, terms, now).await
    }

    async fn page(&self, tenant: &TenantId, query: &AssetQuery, terms: &Terms) -> Result<Vec<AssetView>, StorageError> {
        assets::page(self, tenant, query, terms).await
    }

    async fn amend(
        &self,
        tenant: &TenantId,
        id: AssetId,
        change: Amendment,
        audit: AuditEvent,
    ) -> Result<Amended, StorageError> {
        transact!(self, tx => assets::amend(&mut tx, tenant, id, &change, &audit))
    }

    async fn raise_generation(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError> {
        transact!(self, tx => assets::change_durable(&mut tx, tenant, id, &durable, 1, &audit))
    }

    async fn raise_generations(
        &self,
        tenant: &TenantId,
        ids: &[AssetId],
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Vec<AssetRecord>, StorageError> {
        transact!(self, tx => urls::raise_generations(&mut tx, tenant, ids, &durable, &audit))
    }

    async fn raise_epoch(&self, tenant: &TenantId, audit: AuditEvent) -> Result<u32, StorageError> {
        transact!(self, tx => urls::raise_epoch(&mut tx, tenant, &audit))
    }

    async fn count_assets(&self, tenant: &TenantId) -> Result<u64, StorageError> {
        urls::count_assets(self, tenant).await
    }

    async fn resign(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError> {
        transact!(self, tx => assets::change_durable(&mut tx, tenant, id, &durable, 0, &audit))
    }

    async fn mint(&self, tenant: &TenantId, urls: Vec<MintedUrl>, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        transact!(self, tx => urls::mint(&mut tx, tenant, &urls, &events))
    }

    async fn url(&self, tenant: &TenantId, url_id: &str) -> Result<Option<UrlView>, StorageError> {
        urls::find(self, tenant, url_id).await
    }

    async fn urls_with(
        &self,
        tenant: &TenantId,
        label: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<UrlView>, StorageError> {
        urls::labelled(self, tenant, label, after, limit).await
    }

    async fn take_use(&self, tenant: &TenantId, url_id: &str) -> Result<Taken, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => urls::take_use(&mut tx, tenant, url_id))
    }

    async fn revoke_urls(
        &self,
        tenant: &TenantId,
        url_ids: &[String],
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Vec<MintedUrl>, StorageError> {
        transact!(self, tx => urls::revoke(&mut tx, tenant, url_ids, &audit, now))
    }

    async fn revoke_url(
        &self,
        tenant: &TenantId,
        url_id: &str,
        keep_until: Timestamp,
        audit: AuditEvent,
    ) -> Result<(), StorageError> {
        transact!(self, tx => assets::revoke_url(&mut tx, tenant, url_id, keep_until, &audit))
    }

    async fn is_revoked(&self, tenant: &TenantId, url_id: &str) -> Result<bool, StorageError> {
        assets::is_revoked(self, tenant, url_id).await
    }

    async fn update_run(
        &self,
        tenant: &TenantId,
        update: &RunUpdate,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Result<Updated, RunConflict>, StorageError> {
        let updated: Result<_, StorageError> =
            transact!(self, tx => runs::update(&mut tx, tenant, update, terms, &audit, now));
        match updated? {
            // Counted outside of the transition: a run may reference more assets than a transaction should have read.
            Ok(updated) => runs::count(self, tenant, updated).await.map(Ok),
            Err(conflict) => Ok(Err(conflict)),
        }
    }

    async fn run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunView>, StorageError> {
        runs::view(self, tenant, id).await
    }

    async fn find_run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunRecord>, StorageError> {
        runs::record(self, tenant, id).await
    }

    async fn runs(&self, tenant: &TenantId, query: &RunQuery) -> Result<Vec<RunView>, StorageError> {
        runs::list(self, tenant, query).await
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
        transact!(self, tx => runs::refer(&mut tx, tenant, run, assets, terms, &audit, now))
    }

    async fn put_artifact(
        &self,
        tenant: &TenantId,
        artifact: &NewArtifact,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<PutArtifact, StorageError> {
        transact!(self, tx => artifacts::put(&mut tx, tenant, artifact, terms, &audit, now))
    }

    async fn artifact(
        &self,
        tenant: &TenantId,
        run: &RunId,
        id: &ArtifactId,
    ) -> Result<Option<ArtifactRecord>, StorageError> {
        artifacts::find(self, tenant, run, id).await
    }

    async fn artifact_naming(
        &self,
        tenant: &TenantId,
        asset: AssetId,
    ) -> Result<Option<(RunId, ArtifactId)>, StorageError> {
        artifacts::naming(self, tenant, asset).await
    }

    async fn hold(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        hold: Hold,
        audit: AuditEvent,
    ) -> Result<Placed, StorageError> {
        transact!(self, tx => holds::hold(&mut tx, tenant, on, &hold, &audit))
    }

    async fn lift(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        id: &HoldId,
        terms: &Terms,
        audit: AuditEvent,
    ) -> Result<Option<u64>, StorageError> {
        transact!(self, tx => holds::lift(&mut tx, tenant, on, id, terms, &audit))
    }

    async fn holds(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        after: Option<&HoldId>,
        limit: usize,
    ) -> Result<Vec<Hold>, StorageError> {
        holds::list(self, tenant, on, after, limit).await
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Look>, StorageError> {
        due::due(self, now, limit).await
    }

    async fn settle(
        &self,
        look: &Look,
        limit: usize,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Result<Settlement, StorageError> {
        transact!(self, tx => ending::settle(&mut tx, look, limit, Sweep { terms, principal, now }))
    }

    async fn expire_if_due(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Result<Option<AssetRecord>, StorageError> {
        transact!(self, tx => ending::expire_if_due(&mut tx, tenant, id, Sweep { terms, principal, now }))
    }

    async fn delete(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Deleted, StorageError> {
        transact!(self, tx => ending::delete(&mut tx, tenant, id, terms, &audit, now))
    }

    async fn erase(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Erasure, StorageError> {
        transact!(self, tx => erasing::erase(&mut tx, tenant, id, terms, &audit, now))
    }

    async fn same_bytes(
        &self,
        tenant: &TenantId,
        id: AssetId,
        after: Option<AssetId>,
        limit: usize,
    ) -> Result<Vec<AssetId>, StorageError> {
        assets::same_bytes(self, tenant, id, after, limit).await
    }

    async fn erase_run(
        &self,
        tenant: &TenantId,
        run: &RunId,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<RunErasure, StorageError> {
        transact!(self, tx => holds::erase_run(&mut tx, tenant, run, &audit, now))
    }

    async fn doom(&self, uploads_before: Timestamp, limit: usize, now: Timestamp) -> Result<Vec<Doomed>, StorageError> {
        transact!(self, tx => blobs::doom(&mut tx, uploads_before, limit, now))
    }

    async fn doom_one(&self, tenant: &TenantId, blob: BlobKey, now: Timestamp) -> Result<bool, StorageError> {
        transact!(self, tx => blobs::doom_one(&mut tx, tenant, blob, now))
    }

    async fn forget(&self, doomed: &Doomed) -> Result<(), StorageError> {
        transact!(self, tx => blobs::forget(&mut tx, doomed))
    }

    async fn tidy(&self, limit: usize, now: Timestamp) -> Result<usize, StorageError> {
        let tidied: Result<usize, StorageError> = transact!(self, tx => upkeep::tidy(&mut tx, limit, now));
        usage::fold_all(self).await?;
        tidied
    }

    async fn owed(
        &self,
        after: Option<(TenantId, Digest)>,
        limit: usize,
    ) -> Result<Vec<(TenantId, Owed)>, StorageError> {
        owed::list(self, after, limit).await
    }

    async fn paid(&self, written: Vec<(TenantId, Digest)>) -> Result<(), StorageError> {
        // One statement, which takes away what is there: it needs nothing of serializability.
        transact!(self, sql::BEGIN_BY_LOCK, tx => owed::paid(&mut tx, &written))
    }

    async fn record(&self, tenant: &TenantId, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        transact!(self, tx => async {
            events.iter().for_each(|event| tx.audit(tenant, event.clone()));
            Ok(())
        })
    }

    async fn seal_audit(&self, limit: usize) -> Result<usize, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => upkeep::seal(&mut tx, limit))
    }

    async fn audit_rows(&self, tenant: &TenantId, since: u64, limit: usize) -> Result<Vec<AuditRow>, StorageError> {
        upkeep::audit_rows(self, tenant, since, limit).await
    }

    async fn usage(&self, tenant: &TenantId) -> Result<Usage, StorageError> {
        usage::usage(self, tenant).await
    }

    async fn counted_usage(&self, tenant: &TenantId) -> Result<Counted, StorageError> {
        transact!(self, sql::BEGIN_SNAPSHOT, tx => usage::counted(&mut tx, tenant))
    }

    async fn blobs(&self, after: Option<(TenantId, BlobKey)>, limit: usize) -> Result<Vec<BlobRow>, StorageError> {
        let (tenant, blob) =
            after.map_or_else(Default::default, |(tenant, blob)| (tenant.to_string(), blob.to_bytes().to_vec()));
        let rows: Vec<blobs::BlobColumns> = read!(self, on => async {
            Ok(sql::BLOB_LIST.rows().bind(&tenant).bind(&blob).bind(limited(limit)).fetch_all(on).await?)
        })?;
        rows.into_iter().map(blobs::listed).collect()
    }

    async fn assets(&self, after: Option<(TenantId, AssetId)>, limit: usize) -> Result<Vec<AssetRecord>, StorageError> {
        assets::list(self, after, limit).await
    }

    async fn count_due(&self, limit: usize, terms: &Terms, now: Timestamp) -> Result<usize, StorageError> {
        due::count(self, limit, terms, now).await
    }

    async fn preview(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        after: Option<AssetId>,
        limit: usize,
        terms: &Terms,
    ) -> Result<Preview, StorageError> {
        due::preview(self, tenant, at, after, limit, terms).await
    }

    async fn restore(
        &self,
        tenant: &TenantId,
        what: Vec<Restored>,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        transact!(self, tx => restore::restore(&mut tx, tenant, &what, terms, now))
    }

    async fn ready(&self) -> Result<(), StorageError> {
        // The lock for sharing is one that a server which takes no writes does not give.
        let row: Result<(i32,), StorageError> = transact!(self, sql::BEGIN_BY_LOCK, tx => async {
            Ok(sql::READY.rows().fetch_one(tx.on()).await?)
        });
        row.map(|_| ())
    }
}

impl fmt::Debug for PostgresIndex {
    /// Nothing of where the database is: its address holds a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresIndex")
            .field("options", &self.options)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
