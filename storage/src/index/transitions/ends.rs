//! The end of assets, runs and blobs.

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, RunId, TenantId};
use crate::index::{Deleted, Erasure, Look, RemovalTurn, RunErasure, Settlement};
use crate::record::{AssetRecord, Doomed};
use crate::retention::Terms;

/// The end of assets, runs and blobs. `now` is a parameter: an index has no clock.
#[async_trait]
pub trait Ends: Debug + Send + Sync + 'static {
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

    /// The turn to remove the bytes of what is doomed, which one has at a time of all that share the index; `None`: another has it. Without it
    /// the same bytes would be removed by each sweep that is under way, which loses nothing and costs twice.
    async fn removal_turn(&self) -> Result<Option<RemovalTurn>, StorageError>;

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
}
