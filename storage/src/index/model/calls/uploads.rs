//! One upload in one request, in the order in which it happens.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{BlobKey, Digest, TenantId};
use crate::index::model::ModelIndex;
use crate::index::{Claimed, NewAsset, Published, Uploads};
use crate::quota::{Quota, Reserved};
use crate::record::{Claim, UploadIntent};
use crate::retention::Terms;

#[async_trait]
impl Uploads for ModelIndex {
    async fn claim(&self, tenant: &TenantId, claim: Claim, now: Timestamp) -> Result<Claimed, StorageError> {
        Ok(self.state().claim(tenant, claim, now))
    }

    async fn renew_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<bool, StorageError> {
        Ok(self.state().renew_claim(tenant, claim))
    }

    async fn release_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<(), StorageError> {
        self.state().release_claim(tenant, claim);
        Ok(())
    }

    async fn begin_upload(&self, tenant: &TenantId, intent: UploadIntent) -> Result<(), StorageError> {
        self.state().begin_upload(tenant, &intent);
        Ok(())
    }

    async fn begin_reserved(
        &self,
        tenant: &TenantId,
        intent: UploadIntent,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        Ok(self.state().begin_reserved(tenant, &intent, bytes, quota))
    }

    async fn reserve(
        &self,
        tenant: &TenantId,
        blob: BlobKey,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        Ok(self.state().reserve(tenant, blob, bytes, quota))
    }

    async fn end_upload(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        self.state().end_upload(tenant, blob);
        Ok(())
    }

    async fn blob_of(&self, tenant: &TenantId, sha256: &Digest) -> Result<Option<BlobKey>, StorageError> {
        Ok(self.state().blob_of(tenant, sha256))
    }

    async fn publish(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        Ok(self.state().publish(tenant, asset, terms, now))
    }
}
