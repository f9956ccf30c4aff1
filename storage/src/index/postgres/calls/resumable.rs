//! Uploads that come in parts, over many requests.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{AssetId, TenantId, UploadId};
use crate::index::postgres::tx::transact;
use crate::index::postgres::{PostgresIndex, resumable, sql};
use crate::index::{NewAsset, Published, ResumableUploads};
use crate::quota::{Quota, Reserved};
use crate::resumable::{Cleared, Joining, KeptFor, Lease, Leased, Opened, Part, Resumable};
use crate::retention::Terms;

#[async_trait]
impl ResumableUploads for PostgresIndex {
    async fn begin_resumable(
        &self,
        tenant: &TenantId,
        upload: Resumable,
        bytes: u64,
        most: u64,
        quota: Quota,
    ) -> Result<Opened, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => resumable::begin(&mut tx, tenant, &upload, bytes, most, quota))
    }

    async fn resumable(&self, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, StorageError> {
        resumable::find(self, tenant, id).await
    }

    async fn resumable_parts(
        &self,
        tenant: &TenantId,
        id: UploadId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Part>, StorageError> {
        resumable::parts(self, tenant, id, from, limit).await
    }

    async fn lease_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        lease: Lease,
        now: Timestamp,
    ) -> Result<Leased, StorageError> {
        transact!(self, tx => resumable::lease(&mut tx, tenant, id, lease, now))
    }

    async fn release_resumable(&self, tenant: &TenantId, id: UploadId, holder: [u8; 16]) -> Result<(), StorageError> {
        transact!(self, tx => resumable::release(&mut tx, tenant, id, holder))
    }

    async fn extend_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        bytes: u64,
        length: Option<u64>,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => resumable::extend(&mut tx, tenant, &upload, bytes, length, quota))
    }

    async fn append_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        part: Part,
        kept: KeptFor,
    ) -> Result<Option<Resumable>, StorageError> {
        transact!(self, tx => resumable::append(&mut tx, tenant, &upload, &part, kept))
    }

    async fn publish_resumable(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        upload: Joining,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        transact!(self, tx => resumable::publish(&mut tx, tenant, &asset, &upload, terms, now))
    }

    async fn finish_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        asset: AssetId,
        now: Timestamp,
    ) -> Result<bool, StorageError> {
        transact!(self, tx => resumable::finish(&mut tx, tenant, &upload, asset, now))
    }

    async fn end_resumable(&self, tenant: &TenantId, upload: Joining, now: Timestamp) -> Result<bool, StorageError> {
        transact!(self, tx => resumable::end(&mut tx, tenant, &upload, now))
    }

    async fn due_resumables(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, UploadId)>, StorageError> {
        resumable::due(self, now, limit).await
    }

    async fn clear_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Cleared, StorageError> {
        transact!(self, tx => resumable::clear(&mut tx, tenant, id, limit, now))
    }
}
