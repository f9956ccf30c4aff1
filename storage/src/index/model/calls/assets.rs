//! What there is of an asset, and what may change of it while it lives.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId};
use crate::index::model::ModelIndex;
use crate::index::{Amended, Amendment, AssetQuery, Assets, NewDurable};
use crate::record::{AssetRecord, AssetView};
use crate::retention::{Protector, Terms, protectors};

#[async_trait]
impl Assets for ModelIndex {
    async fn find(&self, tenant: &TenantId, id: AssetId) -> Result<Option<AssetRecord>, StorageError> {
        Ok(self.state().asset(tenant, id).cloned())
    }

    async fn view(&self, tenant: &TenantId, id: AssetId, terms: &Terms) -> Result<Option<AssetView>, StorageError> {
        let state = self.state();
        Ok(state.asset(tenant, id).map(|record| state.view(record, terms)))
    }

    async fn protectors(
        &self,
        tenant: &TenantId,
        id: AssetId,
        limit: usize,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Vec<Protector>, StorageError> {
        let state = self.state();
        let Some(record) = state.asset(tenant, id) else {
            return Ok(Vec::new());
        };
        let (own, stakes) = state.keepers(record);
        let runs: Vec<_> = state.runs_of(record).into_iter().map(|run| run.id.clone()).zip(stakes).collect();
        Ok(protectors(own, state.holds_for(record), &runs, limit, terms, now))
    }

    async fn page(&self, tenant: &TenantId, query: &AssetQuery, terms: &Terms) -> Result<Vec<AssetView>, StorageError> {
        Ok(self.state().page(tenant, query, terms))
    }

    async fn amend(
        &self,
        tenant: &TenantId,
        id: AssetId,
        change: Amendment,
        audit: AuditEvent,
    ) -> Result<Amended, StorageError> {
        Ok(self.state().amend(tenant, id, &change, audit))
    }

    async fn raise_generation(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError> {
        Ok(self.state().raise_generation(tenant, id, durable, audit))
    }

    async fn raise_generations(
        &self,
        tenant: &TenantId,
        ids: &[AssetId],
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Vec<AssetRecord>, StorageError> {
        Ok(self.state().raise_generations(tenant, ids, &durable, &audit))
    }

    async fn raise_epoch(&self, tenant: &TenantId, audit: AuditEvent) -> Result<u32, StorageError> {
        Ok(self.state().raise_epoch(tenant, audit))
    }

    async fn count_assets(&self, tenant: &TenantId) -> Result<u64, StorageError> {
        Ok(self.state().assets.iter().filter(|record| record.tenant == *tenant).count() as u64)
    }

    async fn resign(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError> {
        Ok(self.state().resign(tenant, id, durable, audit))
    }
}
