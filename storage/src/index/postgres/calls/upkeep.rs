//! What the store is owed, what is looked back at, and what is looked after.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::{AuditEvent, AuditRow};
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, Digest, TenantId};
use crate::index::postgres::rows::limited;
use crate::index::postgres::tx::read;
use crate::index::postgres::tx::transact;
use crate::index::postgres::{PostgresIndex, assets, blobs, due, owed, restore, sql, upkeep, usage};
use crate::index::{BlobRow, Preview, Restored, Upkeep};
use crate::quota::{Counted, Usage};
use crate::record::{AssetRecord, Owed};
use crate::retention::Terms;

#[async_trait]
impl Upkeep for PostgresIndex {
    async fn owed(
        &self,
        after: Option<(TenantId, Digest)>,
        limit: usize,
    ) -> Result<Vec<(TenantId, Owed)>, StorageError> {
        owed::list(self, after, limit).await
    }

    async fn paid(&self, written: Vec<(TenantId, Digest)>) -> Result<(), StorageError> {
        // One statement, which takes away what is there: it needs nothing of serializability.
        transact!(self, sql::BEGIN_BY_LOCK, tx => owed::paid(&mut tx, &written))
    }

    async fn record(&self, tenant: &TenantId, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        transact!(self, tx => async {
            events.iter().for_each(|event| tx.audit(tenant, event.clone()));
            Ok(())
        })
    }

    async fn seal_audit(&self, limit: usize) -> Result<usize, StorageError> {
        transact!(self, sql::BEGIN_BY_LOCK, tx => upkeep::seal(&mut tx, limit))
    }

    async fn audit_rows(&self, tenant: &TenantId, since: u64, limit: usize) -> Result<Vec<AuditRow>, StorageError> {
        upkeep::audit_rows(self, tenant, since, limit).await
    }

    async fn usage(&self, tenant: &TenantId) -> Result<Usage, StorageError> {
        usage::usage(self, tenant).await
    }

    async fn counted_usage(&self, tenant: &TenantId) -> Result<Counted, StorageError> {
        transact!(self, sql::BEGIN_SNAPSHOT, tx => usage::counted(&mut tx, tenant))
    }

    async fn blobs(&self, after: Option<(TenantId, BlobKey)>, limit: usize) -> Result<Vec<BlobRow>, StorageError> {
        let (tenant, blob) =
            after.map_or_else(Default::default, |(tenant, blob)| (tenant.to_string(), blob.to_bytes().to_vec()));
        let rows: Vec<blobs::BlobColumns> = read!(self, on => async {
            Ok(sql::BLOB_LIST.rows().bind(&tenant).bind(&blob).bind(limited(limit)).fetch_all(on).await?)
        })?;
        rows.into_iter().map(blobs::listed).collect()
    }

    async fn assets(&self, after: Option<(TenantId, AssetId)>, limit: usize) -> Result<Vec<AssetRecord>, StorageError> {
        assets::list(self, after, limit).await
    }

    async fn count_due(&self, limit: usize, terms: &Terms, now: Timestamp) -> Result<usize, StorageError> {
        due::count(self, limit, terms, now).await
    }

    async fn preview(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        after: Option<AssetId>,
        limit: usize,
        terms: &Terms,
    ) -> Result<Preview, StorageError> {
        due::preview(self, tenant, at, after, limit, terms).await
    }

    async fn restore(
        &self,
        tenant: &TenantId,
        what: Vec<Restored>,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        transact!(self, tx => restore::restore(&mut tx, tenant, &what, terms, now))
    }

    async fn ready(&self) -> Result<(), StorageError> {
        // The lock for sharing is one that a server which takes no writes does not give.
        let row: Result<(i32,), StorageError> = transact!(self, sql::BEGIN_BY_LOCK, tx => async {
            Ok(sql::READY.rows().fetch_one(tx.on()).await?)
        });
        row.map(|_| ())
    }
}
