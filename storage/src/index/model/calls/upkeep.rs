//! What the store is owed, what is looked back at, and what is looked after.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::{AuditEvent, AuditRow};
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, Digest, TenantId};
use crate::index::model::ModelIndex;
use crate::index::{BlobRow, Preview, Restored, Upkeep};
use crate::quota::{Counted, Usage};
use crate::record::{AssetRecord, Owed};
use crate::retention::Terms;

#[async_trait]
impl Upkeep for ModelIndex {
    async fn owed(
        &self,
        after: Option<(TenantId, Digest)>,
        limit: usize,
    ) -> Result<Vec<(TenantId, Owed)>, StorageError> {
        Ok(self.state().owed(after.as_ref(), limit))
    }

    async fn paid(&self, written: Vec<(TenantId, Digest)>) -> Result<(), StorageError> {
        self.state().paid(&written);
        Ok(())
    }

    async fn record(&self, tenant: &TenantId, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        let mut state = self.state();
        events.into_iter().for_each(|event| state.audit(tenant, event));
        Ok(())
    }

    async fn seal_audit(&self, limit: usize) -> Result<usize, StorageError> {
        Ok(self.state().seal_audit(limit))
    }

    async fn audit_rows(&self, tenant: &TenantId, since: u64, limit: usize) -> Result<Vec<AuditRow>, StorageError> {
        Ok(self.state().audit_rows(tenant, since, limit))
    }

    async fn usage(&self, tenant: &TenantId) -> Result<Usage, StorageError> {
        Ok(self.state().usage(tenant))
    }

    async fn counted_usage(&self, tenant: &TenantId) -> Result<Counted, StorageError> {
        let usage = self.state().usage(tenant);
        Ok(Counted { kept: usage, counted: usage })
    }

    async fn blobs(&self, after: Option<(TenantId, BlobKey)>, limit: usize) -> Result<Vec<BlobRow>, StorageError> {
        Ok(self.state().blobs(after.as_ref(), limit))
    }

    async fn assets(&self, after: Option<(TenantId, AssetId)>, limit: usize) -> Result<Vec<AssetRecord>, StorageError> {
        Ok(self.state().assets(after.as_ref(), limit))
    }

    async fn count_due(&self, limit: usize, terms: &Terms, now: Timestamp) -> Result<usize, StorageError> {
        Ok(self.state().count_due(limit, terms, now))
    }

    async fn preview(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        after: Option<AssetId>,
        limit: usize,
        terms: &Terms,
    ) -> Result<Preview, StorageError> {
        Ok(self.state().preview(tenant, at, after, limit, terms))
    }

    async fn restore(
        &self,
        tenant: &TenantId,
        what: Vec<Restored>,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        let mut state = self.state();
        what.into_iter().for_each(|one| state.restore(tenant, one, terms, now));
        Ok(())
    }

    async fn ready(&self) -> Result<(), StorageError> {
        Ok(())
    }
}
