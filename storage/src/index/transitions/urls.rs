//! Delivery URLs: handed out, used, revoked.

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::TenantId;
use crate::record::{MintedUrl, Taken, UrlView};

/// Delivery URLs: handed out, used, revoked. `now` is a parameter: an index has no clock.
#[async_trait]
pub trait Urls: Debug + Send + Sync + 'static {
    /// Notes URLs that are about to be handed out, with what the log says of them. Durable ones have events and no rows. A name that is
    /// there already keeps its row.
    async fn mint(&self, tenant: &TenantId, urls: Vec<MintedUrl>, events: Vec<AuditEvent>) -> Result<(), StorageError>;

    /// The delivery URL of that name.
    async fn url(&self, tenant: &TenantId, url_id: &str) -> Result<Option<UrlView>, StorageError>;

    /// The delivery URLs with this label, in the order of their names, from behind `after`.
    async fn urls_with(
        &self,
        tenant: &TenantId,
        label: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<UrlView>, StorageError>;

    /// Takes one use of a counted URL: never more than there are, however many ask at however many replicas.
    async fn take_use(&self, tenant: &TenantId, url_id: &str) -> Result<Taken, StorageError>;

    /// Revokes these delivery URLs, each with an event of its own. Says which of them opened until now, in the order of
    /// their names: those alone are changed.
    async fn revoke_urls(
        &self,
        tenant: &TenantId,
        url_ids: &[String],
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Vec<MintedUrl>, StorageError>;

    /// Notes that a delivery URL was revoked, whether it has a row or not; `keep_until` is when it would have ended by itself.
    async fn revoke_url(
        &self,
        tenant: &TenantId,
        url_id: &str,
        keep_until: Timestamp,
        audit: AuditEvent,
    ) -> Result<(), StorageError>;

    /// Whether a delivery URL was revoked.
    async fn is_revoked(&self, tenant: &TenantId, url_id: &str) -> Result<bool, StorageError>;
}
