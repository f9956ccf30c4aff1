//! One upload in one request, in the order in which it happens.

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{BlobKey, Digest, TenantId};
use crate::index::{Claimed, NewAsset, Published};
use crate::quota::{Quota, Reserved};
use crate::record::{Claim, UploadIntent};
use crate::retention::Terms;

/// One upload in one request, in the order in which it happens. `now` is a parameter: an index has no clock.
#[async_trait]
pub trait Uploads: Debug + Send + Sync + 'static {
    /// Takes the idempotency key for this request, unless another has it: at most one holder at a time.
    ///
    /// A claim that was not renewed before it lapsed, and an answer past its time, are as if they had never been.
    async fn claim(&self, tenant: &TenantId, claim: Claim, now: Timestamp) -> Result<Claimed, StorageError>;

    /// Holds the claim for longer, if this request still holds it; says whether it does.
    async fn renew_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<bool, StorageError>;

    /// Gives the claim up, if this request still holds it: the next request with the key starts afresh.
    async fn release_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<(), StorageError>;

    /// Announces an upload, or says that it is still alive. While it is announced its bytes are nobody's to remove.
    async fn begin_upload(&self, tenant: &TenantId, intent: UploadIntent) -> Result<(), StorageError>;

    /// Announces the upload, and reserves so many bytes and one asset of the tenant's quota for it: both, or nothing if the quota leaves
    /// less. Never more is reserved and used together than the quota says, however many ask at however many replicas.
    ///
    /// The reservation ends with the upload, however that ends.
    async fn begin_reserved(
        &self,
        tenant: &TenantId,
        intent: UploadIntent,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError>;

    /// Reserves so many bytes in all for an upload that is announced. What it has reserved already stays, also if that is more.
    async fn reserve(
        &self,
        tenant: &TenantId,
        blob: BlobKey,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError>;

    /// Withdraws an upload whose staged bytes are gone.
    async fn end_upload(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError>;

    /// The blob that holds these bytes for this tenant and could be shared now. Only a hint: `publish` decides.
    async fn blob_of(&self, tenant: &TenantId, sha256: &Digest) -> Result<Option<BlobKey>, StorageError>;

    /// Makes the asset visible, adds the run's reference, keeps the idempotency answer, ends the upload, writes the audit event: all
    /// of it, or nothing.
    ///
    /// The reservation turns into the asset, which counts from here on until it ends. That it is no larger than what was reserved is
    /// its caller's to see to: nothing is refused here.
    ///
    /// Equal bytes of the same tenant share the blob already held, rescuing it if it was condemned; the newcomer's own copy is then
    /// doomed at `discard_at`, and the answer says where the bytes are. An unregistered run is kept from this reference on, and an erased
    /// one takes nothing.
    async fn publish(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError>;
}
