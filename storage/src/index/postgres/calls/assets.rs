//! What there is of an asset, and what may change of it while it lives.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId};
use crate::index::postgres::tx::transact;
use crate::index::postgres::{PostgresIndex, assets, urls};
use crate::index::{Amended, Amendment, AssetQuery, Assets, NewDurable};
use crate::record::{AssetRecord, AssetView};
use crate::retention::{Protector, Terms};

#[async_trait]
impl Assets for PostgresIndex {
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
}
