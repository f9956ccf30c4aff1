//! Uploads that come in parts, over many requests.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{AssetId, TenantId, UploadId};
use crate::index::sled::writer::Room;
use crate::index::sled::{SledIndex, resumable};
use crate::index::{NewAsset, Published, ResumableUploads};
use crate::quota::{Quota, Reserved};
use crate::resumable::{Cleared, Joining, KeptFor, Lease, Leased, Opened, Part, Resumable};
use crate::retention::Terms;

#[async_trait]
impl ResumableUploads for SledIndex {
    async fn begin_resumable(
        &self,
        tenant: &TenantId,
        upload: Resumable,
        bytes: u64,
        most: u64,
        quota: Quota,
    ) -> Result<Opened, StorageError> {
        let tenant = tenant.clone();
        let begin = move |draft: &mut _| resumable::begin(draft, &tenant, &upload, bytes, most, quota);
        self.writer.apply(Room::Takes, begin).await
    }

    async fn resumable(&self, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, StorageError> {
        resumable::find(self.core.rows(), tenant, id)
    }

    async fn resumable_parts(
        &self,
        tenant: &TenantId,
        id: UploadId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Part>, StorageError> {
        let tenant = tenant.clone();
        self.walk(move |core| resumable::parts(core.rows(), &tenant, id, from, limit)).await
    }

    async fn lease_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        lease: Lease,
        now: Timestamp,
    ) -> Result<Leased, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| resumable::lease(draft, &tenant, id, lease, now)).await
    }

    async fn release_resumable(&self, tenant: &TenantId, id: UploadId, holder: [u8; 16]) -> Result<(), StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| resumable::release(draft, &tenant, id, holder)).await
    }

    async fn extend_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        bytes: u64,
        length: Option<u64>,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        let tenant = tenant.clone();
        let extend = move |draft: &mut _| resumable::extend(draft, &tenant, &upload, bytes, length, quota);
        self.writer.apply(Room::Takes, extend).await
    }

    async fn append_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        part: Part,
        kept: KeptFor,
    ) -> Result<Option<Resumable>, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| resumable::append(draft, &tenant, &upload, &part, kept)).await
    }

    async fn publish_resumable(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        upload: Joining,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        let publish = move |draft: &mut _| resumable::publish(draft, &tenant, asset, &upload, &terms, now);
        self.writer.apply(Room::Takes, publish).await
    }

    async fn finish_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        asset: AssetId,
        now: Timestamp,
    ) -> Result<bool, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| resumable::finish(draft, &tenant, &upload, asset, now)).await
    }

    async fn end_resumable(&self, tenant: &TenantId, upload: Joining, now: Timestamp) -> Result<bool, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| resumable::end(draft, &tenant, &upload, now)).await
    }

    async fn due_resumables(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, UploadId)>, StorageError> {
        self.walk(move |core| resumable::due(core.rows(), now, limit)).await
    }

    async fn clear_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Cleared, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| resumable::clear(draft, &tenant, id, limit, now)).await
    }
}
