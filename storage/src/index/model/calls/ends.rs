//! The end of assets, runs and blobs.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, RunId, TenantId};
use crate::index::model::ModelIndex;
use crate::index::{Deleted, Ends, Erasure, Look, RemovalTurn, RunErasure, Settlement};
use crate::record::{AssetRecord, Doomed};
use crate::retention::Terms;

#[async_trait]
impl Ends for ModelIndex {
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Look>, StorageError> {
        Ok(self.state().due(now, limit))
    }

    async fn settle(
        &self,
        look: &Look,
        limit: usize,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Result<Settlement, StorageError> {
        Ok(self.state().settle(look, limit, terms, principal, now))
    }

    async fn expire_if_due(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Result<Option<AssetRecord>, StorageError> {
        Ok(self.state().expire_if_due(tenant, id, terms, principal, now))
    }

    async fn delete(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Deleted, StorageError> {
        Ok(self.state().delete(tenant, id, terms, audit, now))
    }

    async fn erase(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Erasure, StorageError> {
        let mut state = self.state();
        state.terms = Some(*terms);
        Ok(state.erase(tenant, id, audit, now))
    }

    async fn same_bytes(
        &self,
        tenant: &TenantId,
        id: AssetId,
        after: Option<AssetId>,
        limit: usize,
    ) -> Result<Vec<AssetId>, StorageError> {
        Ok(self.state().same_bytes(tenant, id, after, limit))
    }

    async fn erase_run(
        &self,
        tenant: &TenantId,
        run: &RunId,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<RunErasure, StorageError> {
        Ok(self.state().erase_run(tenant, run, audit, now))
    }

    async fn removal_turn(&self) -> Result<Option<RemovalTurn>, StorageError> {
        Ok(self.removal.clone().try_lock_owned().ok().map(RemovalTurn::of))
    }

    async fn doom(&self, uploads_before: Timestamp, limit: usize, now: Timestamp) -> Result<Vec<Doomed>, StorageError> {
        Ok(self.state().doom(uploads_before, limit, now))
    }

    async fn doom_one(&self, tenant: &TenantId, blob: BlobKey, now: Timestamp) -> Result<bool, StorageError> {
        Ok(self.state().doom_one(tenant, blob, now))
    }

    async fn forget(&self, doomed: &Doomed) -> Result<(), StorageError> {
        self.state().forget(doomed);
        Ok(())
    }

    async fn tidy(&self, limit: usize, now: Timestamp) -> Result<usize, StorageError> {
        Ok(self.state().tidy(limit, now))
    }
}
