//! What there is of an asset, and what may change of it while it lives.

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId};
use crate::index::{Amended, Amendment, AssetQuery, NewDurable};
use crate::record::{AssetRecord, AssetView};
use crate::retention::{Protector, Terms};

/// What there is of an asset, and what may change of it while it lives. `now` is a parameter: an index has no clock.
#[async_trait]
pub trait Assets: Debug + Send + Sync + 'static {
    /// The asset's row alone.
    async fn find(&self, tenant: &TenantId, id: AssetId) -> Result<Option<AssetRecord>, StorageError>;

    /// The asset with its floor and references, as of one moment.
    async fn view(&self, tenant: &TenantId, id: AssetId, terms: &Terms) -> Result<Option<AssetView>, StorageError>;

    /// What still protects the asset, of one moment: holds, the newest runs, the sender's wish, the grace; at most `limit`.
    async fn protectors(
        &self,
        tenant: &TenantId,
        id: AssetId,
        limit: usize,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Vec<Protector>, StorageError>;

    /// Assets in the order of their names, which is that of their making. What was there when paging began comes exactly once.
    async fn page(&self, tenant: &TenantId, query: &AssetQuery, terms: &Terms) -> Result<Vec<AssetView>, StorageError>;

    /// Changes the asset's words, if its row still has the revision that the caller saw.
    async fn amend(
        &self,
        tenant: &TenantId,
        id: AssetId,
        change: Amendment,
        audit: AuditEvent,
    ) -> Result<Amended, StorageError>;

    /// Gives the asset a new generation of durable URL: older ones open nothing from now on.
    async fn raise_generation(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError>;

    /// The same for several assets, each with an event of its own. Those that are not there are passed over; the others come back, in the
    /// order of their names.
    async fn raise_generations(
        &self,
        tenant: &TenantId,
        ids: &[AssetId],
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Vec<AssetRecord>, StorageError>;

    /// Raises the generation of all of the tenant's assets at once, those to come included: one write, however many there are. Says how
    /// often that has happened.
    async fn raise_epoch(&self, tenant: &TenantId, audit: AuditEvent) -> Result<u32, StorageError>;

    /// How many assets the tenant has, in every state.
    async fn count_assets(&self, tenant: &TenantId) -> Result<u64, StorageError>;

    /// Has another key sign the asset's durable URL. The generation stays, so URLs that other keys signed go on opening.
    async fn resign(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError>;
}
