//! What the store is owed, what is looked back at, and what is looked after.

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::{AuditEvent, AuditRow};
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, Digest, TenantId};
use crate::index::{BlobRow, Preview, Restored};
use crate::quota::{Counted, Usage};
use crate::record::{AssetRecord, Owed};
use crate::retention::Terms;

/// What the store is owed, what is looked back at, and what is looked after. `now` is a parameter: an index has no clock.
#[async_trait]
pub trait Upkeep: Debug + Send + Sync + 'static {
    // ── What the store is owed ──

    /// Recovery records that transitions have left to be written, each tenant's in an order of its own, from behind `after`. Across
    /// tenants.
    async fn owed(
        &self,
        after: Option<(TenantId, Digest)>,
        limit: usize,
    ) -> Result<Vec<(TenantId, Owed)>, StorageError>;

    /// Notes that these are written, each by [its name](Owed::name): durable when they were noted. What is not owed is passed over.
    async fn paid(&self, written: Vec<(TenantId, Digest)>) -> Result<(), StorageError>;

    // ── Looking back and looking after ──

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
