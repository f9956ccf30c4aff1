//! One upload in one request, in the order in which it happens.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{BlobKey, Digest, TenantId};
use crate::index::postgres::turns::Thing;
use crate::index::postgres::tx::read;
use crate::index::postgres::tx::transact;
use crate::index::postgres::{PostgresIndex, blobs, ingest, rows, sql, usage};
use crate::index::{Claimed, NewAsset, Published, Uploads};
use crate::quota::{Quota, Reserved};
use crate::record::{Claim, UploadIntent};
use crate::retention::Terms;

#[async_trait]
impl Uploads for PostgresIndex {
    async fn claim(&self, tenant: &TenantId, claim: Claim, now: Timestamp) -> Result<Claimed, StorageError> {
        transact!(self, tx => ingest::claim(&mut tx, tenant, &claim, now))
    }

    async fn renew_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<bool, StorageError> {
        transact!(self, tx => ingest::renew(&mut tx, tenant, claim))
    }

    async fn release_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<(), StorageError> {
        transact!(self, tx => ingest::release(&mut tx, tenant, claim))
    }

    async fn begin_upload(&self, tenant: &TenantId, intent: UploadIntent) -> Result<(), StorageError> {
        transact!(self, tx => blobs::begin(&mut tx, tenant, &intent))
    }

    async fn begin_reserved(
        &self,
        tenant: &TenantId,
        intent: UploadIntent,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => usage::begin(&mut tx, tenant, &intent, bytes, quota))
    }

    async fn reserve(
        &self,
        tenant: &TenantId,
        blob: BlobKey,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => usage::reserve(&mut tx, tenant, blob, bytes, quota))
    }

    async fn end_upload(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        transact!(self, tx => blobs::end(&mut tx, tenant, blob))
    }

    async fn blob_of(&self, tenant: &TenantId, sha256: &Digest) -> Result<Option<BlobKey>, StorageError> {
        let row: Option<(Vec<u8>,)> = read!(self, on => async {
            Ok(sql::DIGEST_BLOB.rows().bind(tenant.as_str()).bind(sha256.0).fetch_optional(on).await?)
        })?;
        row.map(|(blob,)| rows::blob_key(&blob)).transpose()
    }

    async fn publish(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        let run = asset.record.run.clone().map(|run| Thing::Run(tenant.clone(), run));
        let about = run.into_iter().chain([Thing::Bytes(tenant.clone(), asset.record.sha256)]).collect();
        transact!(self, sql::BEGIN, about about, tx => ingest::publish(&mut tx, tenant, &asset, terms, now))
    }
}
