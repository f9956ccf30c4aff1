//! Runs, what they reference, their artifacts, and what is held.

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, HoldId, RunId, TenantId};
use crate::index::{NewArtifact, Placed, PutArtifact, Referred, RunQuery, Updated};
use crate::record::{ArtifactRecord, Hold, HoldOn, RunRecord, RunView};
use crate::retention::{RunConflict, RunUpdate, Terms};

/// Runs, what they reference, their artifacts, and what is held. `now` is a parameter: an index has no clock.
#[async_trait]
pub trait Runs: Debug + Send + Sync + 'static {
    // ── Runs ──

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

    // ── Artifacts ──

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

    // ── Holds ──

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
}
