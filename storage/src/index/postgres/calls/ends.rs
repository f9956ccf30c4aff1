//! The end of assets, runs and blobs.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, RunId, TenantId};
use crate::index::postgres::ending::Sweep;
use crate::index::postgres::tx::transact;
use crate::index::postgres::{PostgresIndex, assets, blobs, due, ending, erasing, holds, removal, upkeep, usage};
use crate::index::{Deleted, Ends, Erasure, Look, RemovalTurn, RunErasure, Settlement};
use crate::record::{AssetRecord, Doomed};
use crate::retention::Terms;

#[async_trait]
impl Ends for PostgresIndex {
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

    async fn removal_turn(&self) -> Result<Option<RemovalTurn>, StorageError> {
        removal::turn(self).await
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
}
