//! One upload in one request, in the order in which it happens.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{BlobKey, Digest, TenantId};
use crate::index::sled::writer::Room;
use crate::index::sled::{SledIndex, blobs, ingest, usage};
use crate::index::{Claimed, NewAsset, Published, Uploads};
use crate::quota::{Quota, Reserved};
use crate::record::{Claim, UploadIntent};
use crate::retention::Terms;

#[async_trait]
impl Uploads for SledIndex {
    async fn claim(&self, tenant: &TenantId, claim: Claim, now: Timestamp) -> Result<Claimed, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| ingest::claim(draft, &tenant, &claim, now)).await
    }

    async fn renew_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<bool, StorageError> {
        let (tenant, claim) = (tenant.clone(), claim.clone());
        self.writer.apply(Room::Makes, move |draft| ingest::renew(draft, &tenant, &claim)).await
    }

    async fn release_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<(), StorageError> {
        let (tenant, claim) = (tenant.clone(), claim.clone());
        self.writer.apply(Room::Makes, move |draft| ingest::release(draft, &tenant, &claim)).await
    }

    async fn begin_upload(&self, tenant: &TenantId, intent: UploadIntent) -> Result<(), StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| blobs::begin(draft, &tenant, &intent)).await
    }

    async fn begin_reserved(
        &self,
        tenant: &TenantId,
        intent: UploadIntent,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| usage::begin(draft, &tenant, &intent, bytes, quota)).await
    }

    async fn reserve(
        &self,
        tenant: &TenantId,
        blob: BlobKey,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Takes, move |draft| usage::reserve(draft, &tenant, blob, bytes, quota)).await
    }

    async fn end_upload(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        let tenant = tenant.clone();
        self.writer.apply(Room::Makes, move |draft| blobs::end(draft, &tenant, blob)).await
    }

    async fn blob_of(&self, tenant: &TenantId, sha256: &Digest) -> Result<Option<BlobKey>, StorageError> {
        self.core.rows().shareable(tenant, sha256)
    }

    async fn publish(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        let (tenant, terms) = (tenant.clone(), *terms);
        self.writer.apply(Room::Takes, move |draft| ingest::publish(draft, &tenant, asset, &terms, now)).await
    }
}
