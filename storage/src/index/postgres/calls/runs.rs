//! Runs, what they reference, their artifacts, and what is held.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, HoldId, RunId, TenantId};
use crate::index::postgres::tx::transact;
use crate::index::postgres::{PostgresIndex, artifacts, holds, runs};
use crate::index::{NewArtifact, Placed, PutArtifact, Referred, RunQuery, Runs, Updated};
use crate::record::{ArtifactRecord, Hold, HoldOn, RunRecord, RunView};
use crate::retention::{RunConflict, RunUpdate, Terms};

#[async_trait]
impl Runs for PostgresIndex {
    async fn update_run(
        &self,
        tenant: &TenantId,
        update: &RunUpdate,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Result<Updated, RunConflict>, StorageError> {
        let updated: Result<_, StorageError> =
            transact!(self, tx => runs::update(&mut tx, tenant, update, terms, &audit, now));
        match updated? {
            // Counted outside of the transition: a run may reference more assets than a transaction should have read.
            Ok(updated) => runs::count(self, tenant, updated).await.map(Ok),
            Err(conflict) => Ok(Err(conflict)),
        }
    }

    async fn run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunView>, StorageError> {
        runs::view(self, tenant, id).await
    }

    async fn find_run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunRecord>, StorageError> {
        runs::record(self, tenant, id).await
    }

    async fn runs(&self, tenant: &TenantId, query: &RunQuery) -> Result<Vec<RunView>, StorageError> {
        runs::list(self, tenant, query).await
    }

    async fn refer(
        &self,
        tenant: &TenantId,
        run: &RunId,
        assets: &[AssetId],
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Referred, StorageError> {
        transact!(self, tx => runs::refer(&mut tx, tenant, run, assets, terms, &audit, now))
    }

    async fn put_artifact(
        &self,
        tenant: &TenantId,
        artifact: &NewArtifact,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<PutArtifact, StorageError> {
        transact!(self, tx => artifacts::put(&mut tx, tenant, artifact, terms, &audit, now))
    }

    async fn artifact(
        &self,
        tenant: &TenantId,
        run: &RunId,
        id: &ArtifactId,
    ) -> Result<Option<ArtifactRecord>, StorageError> {
        artifacts::find(self, tenant, run, id).await
    }

    async fn artifact_naming(
        &self,
        tenant: &TenantId,
        asset: AssetId,
    ) -> Result<Option<(RunId, ArtifactId)>, StorageError> {
        artifacts::naming(self, tenant, asset).await
    }

    async fn hold(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        hold: Hold,
        audit: AuditEvent,
    ) -> Result<Placed, StorageError> {
        transact!(self, tx => holds::hold(&mut tx, tenant, on, &hold, &audit))
    }

    async fn lift(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        id: &HoldId,
        terms: &Terms,
        audit: AuditEvent,
    ) -> Result<Option<u64>, StorageError> {
        transact!(self, tx => holds::lift(&mut tx, tenant, on, id, terms, &audit))
    }

    async fn holds(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        after: Option<&HoldId>,
        limit: usize,
    ) -> Result<Vec<Hold>, StorageError> {
        holds::list(self, tenant, on, after, limit).await
    }
}
