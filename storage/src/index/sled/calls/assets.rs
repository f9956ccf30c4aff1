//! What there is of an asset, and what may change of it while it lives.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId};
use crate::index::sled::keys::Key;
use crate::index::sled::keys::Space;
use crate::index::sled::writer::Room;
use crate::index::sled::{SledIndex, assets, urls};
use crate::index::{Amended, Amendment, AssetQuery, Assets, NewDurable};
use crate::record::{AssetRecord, AssetView};
use crate::retention::{Protector, Terms};

#[async_trait]
impl Assets for SledIndex {
    async fn find(&self, tenant: &TenantId, id: AssetId) -> Result<Option<AssetRecord>, StorageError> {
        assets::find(&self.core, tenant, id)
    }

    async fn view(&self, tenant: &TenantId, id: AssetId, terms: &Terms) -> Result<Option<AssetView>, StorageError> {
        if assets::has_few_references(&self.core, tenant, id)? {
            return assets::view(&self.core, tenant, id, terms);
        }
        let (tenant, terms) = (tenant.clone(), *terms);
        self.walk(move |core| assets::view(core, &tenant, id, &terms)).await
    }

    async fn protectors(
        &self,
        tenant: &TenantId,
        id: AssetId,
        limit: usize,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Vec<Protector>, StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        self.walk(move |core| assets::protectors(core, &tenant, id, limit, &terms, now)).await
    }

    async fn page(&self, tenant: &TenantId, query: &AssetQuery, terms: &Terms) -> Result<Vec<AssetView>, StorageError> {
        let (tenant, query, terms) = (tenant.clone(), query.clone(), *terms);
        self.walk(move |core| assets::page(core, &tenant, &query, &terms)).await
    }

    async fn amend(
        &self,
        tenant: &TenantId,
        id: AssetId,
        change: Amendment,
        audit: AuditEvent,
    ) -> Result<Amended, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| assets::amend(draft, &tenant, id, &change, audit)).await
    }

    async fn raise_generation(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| assets::raise_generation(draft, &tenant, id, durable, audit)).await
    }

    async fn raise_generations(
        &self,
        tenant: &TenantId,
        ids: &[AssetId],
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Vec<AssetRecord>, StorageError> {
        let (tenant, ids) = (tenant.clone(), ids.to_vec());
        self.writer
            .apply(Room::Makes, move |draft| urls::raise_generations(draft, &tenant, &ids, &durable, &audit))
            .await
    }

    async fn raise_epoch(&self, tenant: &TenantId, audit: AuditEvent) -> Result<u32, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| urls::raise_epoch(draft, &tenant, audit)).await
    }

    async fn count_assets(&self, tenant: &TenantId) -> Result<u64, StorageError> {
        let prefix = Key::of(Space::Assets, tenant);
        self.walk(move |core| core.rows().scan(&prefix).try_fold(0, |count, row| row.map(|_| count + 1))).await
    }

    async fn resign(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| assets::resign(draft, &tenant, id, durable, audit)).await
    }
}
