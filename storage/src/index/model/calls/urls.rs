//! Delivery URLs: handed out, used, revoked.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::TenantId;
use crate::index::Urls;
use crate::index::model::ModelIndex;
use crate::record::{MintedUrl, Taken, UrlView};

#[async_trait]
impl Urls for ModelIndex {
    async fn mint(&self, tenant: &TenantId, urls: Vec<MintedUrl>, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        self.state().mint(tenant, urls, events);
        Ok(())
    }

    async fn url(&self, tenant: &TenantId, url_id: &str) -> Result<Option<UrlView>, StorageError> {
        Ok(self.state().url(tenant, url_id))
    }

    async fn urls_with(
        &self,
        tenant: &TenantId,
        label: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<UrlView>, StorageError> {
        Ok(self.state().urls_with(tenant, label, after, limit))
    }

    async fn take_use(&self, tenant: &TenantId, url_id: &str) -> Result<Taken, StorageError> {
        Ok(self.state().take_use(tenant, url_id))
    }

    async fn revoke_urls(
        &self,
        tenant: &TenantId,
        url_ids: &[String],
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Vec<MintedUrl>, StorageError> {
        Ok(self.state().revoke_urls(tenant, url_ids, &audit, now))
    }

    async fn revoke_url(
        &self,
        tenant: &TenantId,
        url_id: &str,
        keep_until: Timestamp,
        audit: AuditEvent,
    ) -> Result<(), StorageError> {
        self.state().revoke_url(tenant, url_id, keep_until, audit);
        Ok(())
    }

    async fn is_revoked(&self, tenant: &TenantId, url_id: &str) -> Result<bool, StorageError> {
        Ok(self.state().is_revoked(tenant, url_id))
    }
}
