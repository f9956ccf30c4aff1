//! Uploads that come in parts, over many requests.

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{AssetId, TenantId, UploadId};
use crate::index::{NewAsset, Published};
use crate::quota::{Quota, Reserved};
use crate::resumable::{Cleared, Joining, KeptFor, Lease, Leased, Opened, Part, Resumable};
use crate::retention::Terms;

/// Uploads that come in parts, over many requests. `now` is a parameter: an index has no clock.
#[async_trait]
pub trait ResumableUploads: Debug + Send + Sync + 'static {
    /// Begins an upload, with so many bytes and one asset of the tenant's quota reserved for it until it is finished or ends: all of it,
    /// or nothing. With `most` reservations the tenant has enough.
    async fn begin_resumable(
        &self,
        tenant: &TenantId,
        upload: Resumable,
        bytes: u64,
        most: u64,
        quota: Quota,
    ) -> Result<Opened, StorageError>;

    /// The upload, unless it has ended.
    async fn resumable(&self, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, StorageError>;

    /// Its parts in the order of their bytes, those that begin at `from` or later.
    async fn resumable_parts(
        &self,
        tenant: &TenantId,
        id: UploadId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Part>, StorageError>;

    /// Gives the right to write, or gives it for longer: to one at a time, however many ask at however many replicas.
    async fn lease_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        lease: Lease,
        now: Timestamp,
    ) -> Result<Leased, StorageError>;

    /// Gives the lease back, if this request has it.
    async fn release_resumable(&self, tenant: &TenantId, id: UploadId, holder: [u8; 16]) -> Result<(), StorageError>;

    /// Reserves so many bytes in all for the upload, and says how long it will be if that was not known. What it has reserved already
    /// stays, also if that is more. [`Reserved::UploadLost`] if the upload is not open, the lease another's, or the length not that.
    async fn extend_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        bytes: u64,
        length: Option<u64>,
        quota: Quota,
    ) -> Result<Reserved, StorageError>;

    /// Makes the announced blob the next part of the upload, if it begins where the last one ended and the lease is still this request's;
    /// says what the upload is then, and `None` if nothing happened.
    async fn append_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        part: Part,
        kept: KeptFor,
    ) -> Result<Option<Resumable>, StorageError>;

    /// [Publishes](super::Uploads::publish) what was made of an upload, and finishes it: both, or neither. What was reserved for it, and for the
    /// pieces that it is joined of, turns into the asset, and the pieces end. [`Published::UploadLost`] if the upload is not complete, the
    /// lease another's, or a piece not there any more.
    async fn publish_resumable(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        upload: Joining,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError>;

    /// Finishes the upload with an asset that was there already; says whether it did.
    async fn finish_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        asset: AssetId,
        now: Timestamp,
    ) -> Result<bool, StorageError>;

    /// Ends the upload, open or finished, if the lease is this request's; says whether it did. What was made of it stays.
    async fn end_resumable(&self, tenant: &TenantId, upload: Joining, now: Timestamp) -> Result<bool, StorageError>;

    /// Uploads that are to be looked at now, the oldest look first. Across tenants.
    async fn due_resumables(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, UploadId)>, StorageError>;

    /// Looks at the upload: ends one whose time has passed and which nobody writes, and condemns at most `limit` parts of one that is no
    /// longer open. The row goes with the last of them, or at its time if an asset was made of it.
    async fn clear_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Cleared, StorageError>;
}
