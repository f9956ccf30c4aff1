//! What the store is owed, what is looked back at, and what is looked after.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::{AuditEvent, AuditRow};
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, Digest, TenantId};
use crate::index::sled::keys::Key;
use crate::index::sled::keys::Space;
use crate::index::sled::writer::Room;
use crate::index::sled::{SledIndex, assets, blobs, ending, owed, restore, upkeep};
use crate::index::{BlobRow, Preview, Restored, Upkeep};
use crate::quota::{Counted, Usage};
use crate::record::{AssetRecord, Owed};
use crate::retention::Terms;

#[async_trait]
impl Upkeep for SledIndex {
    async fn owed(
        &self,
        after: Option<(TenantId, Digest)>,
        limit: usize,
    ) -> Result<Vec<(TenantId, Owed)>, StorageError> {
        self.walk(move |core| owed::list(core, after, limit)).await
    }

    async fn paid(&self, written: Vec<(TenantId, Digest)>) -> Result<(), StorageError> {
        self.writer.apply(Room::Makes, move |draft| owed::paid(draft, &written)).await
    }

    async fn record(&self, tenant: &TenantId, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        let tenant = tenant.clone();
        self.writer
            .apply(Room::Takes, move |draft| {
                events.into_iter().for_each(|event| draft.audit(&tenant, event));
                Ok(())
            })
            .await
    }

    async fn seal_audit(&self, limit: usize) -> Result<usize, StorageError> {
        self.writer.apply(Room::Makes, move |draft| upkeep::seal(draft, limit)).await
    }

    async fn audit_rows(&self, tenant: &TenantId, since: u64, limit: usize) -> Result<Vec<AuditRow>, StorageError> {
        let tenant = tenant.clone();
        self.walk(move |core| upkeep::audit_rows(core, &tenant, since, limit)).await
    }

    async fn usage(&self, tenant: &TenantId) -> Result<Usage, StorageError> {
        self.core.at_once(|rows| rows.usage(tenant))
    }

    async fn counted_usage(&self, tenant: &TenantId) -> Result<Counted, StorageError> {
        let tenant = tenant.clone();
        self.walk(move |core| core.at_once(|rows| rows.counted_usage(&tenant))).await
    }

    async fn blobs(&self, after: Option<(TenantId, BlobKey)>, limit: usize) -> Result<Vec<BlobRow>, StorageError> {
        self.walk(move |core| blobs::list(core, after, limit)).await
    }

    async fn assets(&self, after: Option<(TenantId, AssetId)>, limit: usize) -> Result<Vec<AssetRecord>, StorageError> {
        self.walk(move |core| assets::list(core, after, limit)).await
    }

    async fn count_due(&self, limit: usize, terms: &Terms, now: Timestamp) -> Result<usize, StorageError> {
        let terms = *terms;
        self.walk(move |core| ending::count_due(core, limit, &terms, now)).await
    }

    async fn preview(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        after: Option<AssetId>,
        limit: usize,
        terms: &Terms,
    ) -> Result<Preview, StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        self.walk(move |core| ending::preview(core, &tenant, at, after, limit, &terms)).await
    }

    async fn restore(
        &self,
        tenant: &TenantId,
        what: Vec<Restored>,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        self.writer
            .apply(Room::Takes, move |draft| {
                what.into_iter().try_for_each(|one| restore::restore(draft, &tenant, one, &terms, now))
            })
            .await
    }

    async fn ready(&self) -> Result<(), StorageError> {
        // A disk that is nearly full refuses what adds to it, and each such request hears so; reads go on, so the index is ready.
        // A transition that writes nothing, and yet only a writer that works answers it.
        self.writer.apply(Room::Makes, |draft| draft.rows().get(&Key::space(Space::Meta)).map(|_| ())).await
    }
}
