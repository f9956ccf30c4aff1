//! Delivery URLs: handed out, used, revoked.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::TenantId;
use crate::index::Urls;
use crate::index::postgres::tx::transact;
use crate::index::postgres::{PostgresIndex, assets, sql, urls};
use crate::record::{MintedUrl, Taken, UrlView};

#[async_trait]
impl Urls for PostgresIndex {
    async fn mint(&self, tenant: &TenantId, urls: Vec<MintedUrl>, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        transact!(self, tx => urls::mint(&mut tx, tenant, &urls, &events))
    }

    async fn url(&self, tenant: &TenantId, url_id: &str) -> Result<Option<UrlView>, StorageError> {
        urls::find(self, tenant, url_id).await
    }

    async fn urls_with(
        &self,
        tenant: &TenantId,
        label: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<UrlView>, StorageError> {
        urls::labelled(self, tenant, label, after, limit).await
    }

    async fn take_use(&self, tenant: &TenantId, url_id: &str) -> Result<Taken, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => urls::take_use(&mut tx, tenant, url_id))
    }

    async fn revoke_urls(
        &self,
        tenant: &TenantId,
        url_ids: &[String],
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Vec<MintedUrl>, StorageError> {
        transact!(self, tx => urls::revoke(&mut tx, tenant, url_ids, &audit, now))
    }

    async fn revoke_url(
        &self,
        tenant: &TenantId,
        url_id: &str,
        keep_until: Timestamp,
        audit: AuditEvent,
    ) -> Result<(), StorageError> {
        transact!(self, tx => assets::revoke_url(&mut tx, tenant, url_id, keep_until, &audit))
    }

    async fn is_revoked(&self, tenant: &TenantId, url_id: &str) -> Result<bool, StorageError> {
        assets::is_revoked(self, tenant, url_id).await
    }
}
