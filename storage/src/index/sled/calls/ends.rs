//! The end of assets, runs and blobs.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, RunId, TenantId};
use crate::index::sled::ending::Sweep;
use crate::index::sled::writer::Room;
use crate::index::sled::{SledIndex, assets, blobs, ending, holds, upkeep};
use crate::index::{Deleted, Ends, Erasure, Look, RemovalTurn, RunErasure, Settlement};
use crate::record::{AssetRecord, Doomed};
use crate::retention::Terms;

#[async_trait]
impl Ends for SledIndex {
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

    async fn removal_turn(&self) -> Result<Option<RemovalTurn>, StorageError> {
        Ok(self.removal.clone().try_lock_owned().ok().map(RemovalTurn::of))
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
}
