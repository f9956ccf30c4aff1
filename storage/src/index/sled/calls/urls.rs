//! Delivery URLs: handed out, used, revoked.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::TenantId;
use crate::index::Urls;
use crate::index::sled::writer::Room;
use crate::index::sled::{SledIndex, assets, urls};
use crate::record::{MintedUrl, Taken, UrlView};

#[async_trait]
impl Urls for SledIndex {
    async fn mint(&self, tenant: &TenantId, urls: Vec<MintedUrl>, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| urls::mint(draft, &tenant, urls, events)).await
    }

    async fn url(&self, tenant: &TenantId, url_id: &str) -> Result<Option<UrlView>, StorageError> {
        self.core.at_once(|rows| urls::find(rows, tenant, url_id))
    }

    async fn urls_with(
        &self,
        tenant: &TenantId,
        label: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<UrlView>, StorageError> {
        let (tenant, label, after) = (tenant.clone(), label.to_owned(), after.map(str::to_owned));
        self.walk(move |core| urls::labelled(core, &tenant, &label, after.as_deref(), limit)).await
    }

    async fn take_use(&self, tenant: &TenantId, url_id: &str) -> Result<Taken, StorageError> {
        let (tenant, url_id) = (tenant.clone(), url_id.to_owned());
        self.writer.apply(Room::Makes, move |draft| urls::take_use(draft, &tenant, &url_id)).await
    }

    async fn revoke_urls(
        &self,
        tenant: &TenantId,
        url_ids: &[String],
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Vec<MintedUrl>, StorageError> {
        let (tenant, url_ids) = (tenant.clone(), url_ids.to_vec());
        self.writer.apply(Room::Makes, move |draft| urls::revoke(draft, &tenant, &url_ids, &audit, now)).await
    }

    async fn revoke_url(
        &self,
        tenant: &TenantId,
        url_id: &str,
        keep_until: Timestamp,
        audit: AuditEvent,
    ) -> Result<(), StorageError> {
        let (tenant, url_id) = (tenant.clone(), url_id.to_owned());
        self.writer
            .apply(Room::Makes, move |draft| assets::revoke_url(draft, &tenant, &url_id, keep_until, audit))
            .await
    }

    async fn is_revoked(&self, tenant: &TenantId, url_id: &str) -> Result<bool, StorageError> {
        assets::is_revoked(&self.core, tenant, url_id)
    }
}
