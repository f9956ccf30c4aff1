//! Uploads that come in parts, over many requests.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{AssetId, TenantId, UploadId};
use crate::index::model::ModelIndex;
use crate::index::{NewAsset, Published, ResumableUploads};
use crate::quota::{Quota, Reserved};
use crate::resumable::{Cleared, Joining, KeptFor, Lease, Leased, Opened, Part, Resumable};
use crate::retention::Terms;

#[async_trait]
impl ResumableUploads for ModelIndex {
    async fn begin_resumable(
        &self,
        tenant: &TenantId,
        upload: Resumable,
        bytes: u64,
        most: u64,
        quota: Quota,
    ) -> Result<Opened, StorageError> {
        Ok(self.state().begin_resumable(tenant, upload, bytes, most, quota))
    }

    async fn resumable(&self, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, StorageError> {
        Ok(self.state().resumable(tenant, id).cloned())
    }

    async fn resumable_parts(
        &self,
        tenant: &TenantId,
        id: UploadId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Part>, StorageError> {
        Ok(self.state().resumable_parts(tenant, id, from, limit))
    }

    async fn lease_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        lease: Lease,
        now: Timestamp,
    ) -> Result<Leased, StorageError> {
        Ok(self.state().lease_resumable(tenant, id, lease, now))
    }

    async fn release_resumable(&self, tenant: &TenantId, id: UploadId, holder: [u8; 16]) -> Result<(), StorageError> {
        self.state().release_resumable(tenant, id, holder);
        Ok(())
    }

    async fn extend_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        bytes: u64,
        length: Option<u64>,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        Ok(self.state().extend_resumable(tenant, &upload, bytes, length, quota))
    }

    async fn append_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        part: Part,
        kept: KeptFor,
    ) -> Result<Option<Resumable>, StorageError> {
        Ok(self.state().append_resumable(tenant, &upload, part, kept))
    }

    async fn publish_resumable(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        upload: Joining,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        Ok(self.state().publish_resumable(tenant, asset, &upload, terms, now))
    }

    async fn finish_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        asset: AssetId,
        now: Timestamp,
    ) -> Result<bool, StorageError> {
        Ok(self.state().finish_resumable(tenant, &upload, asset, now))
    }

    async fn end_resumable(&self, tenant: &TenantId, upload: Joining, now: Timestamp) -> Result<bool, StorageError> {
        Ok(self.state().end_resumable(tenant, &upload, now))
    }

    async fn due_resumables(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, UploadId)>, StorageError> {
        Ok(self.state().due_resumables(now, limit))
    }

    async fn clear_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Cleared, StorageError> {
        Ok(self.state().clear_resumable(tenant, id, limit, now))
    }
}
