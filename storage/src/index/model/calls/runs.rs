//! Runs, what they reference, their artifacts, and what is held.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, HoldId, RunId, TenantId};
use crate::index::model::ModelIndex;
use crate::index::{NewArtifact, Placed, PutArtifact, Referred, RunQuery, Runs, Updated};
use crate::record::{ArtifactRecord, Hold, HoldOn, RunRecord, RunView};
use crate::retention::{RunConflict, RunUpdate, Terms};

#[async_trait]
impl Runs for ModelIndex {
    async fn update_run(
        &self,
        tenant: &TenantId,
        update: &RunUpdate,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Result<Updated, RunConflict>, StorageError> {
        Ok(self.state().update_run(tenant, update, terms, audit, now))
    }

    async fn run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunView>, StorageError> {
        let state = self.state();
        Ok(state.run(tenant, id).map(|record| state.run_view(tenant, record)))
    }

    async fn find_run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunRecord>, StorageError> {
        Ok(self.state().run(tenant, id).cloned())
    }

    async fn runs(&self, tenant: &TenantId, query: &RunQuery) -> Result<Vec<RunView>, StorageError> {
        Ok(self.state().runs(tenant, query))
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
        Ok(self.state().refer(tenant, run, assets, terms, audit, now))
    }

    async fn put_artifact(
        &self,
        tenant: &TenantId,
        artifact: &NewArtifact,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<PutArtifact, StorageError> {
        Ok(self.state().put_artifact(tenant, artifact, terms, audit, now))
    }

    async fn artifact(
        &self,
        tenant: &TenantId,
        run: &RunId,
        id: &ArtifactId,
    ) -> Result<Option<ArtifactRecord>, StorageError> {
        Ok(self.state().artifact(tenant, run, id).cloned())
    }

    async fn artifact_naming(
        &self,
        tenant: &TenantId,
        asset: AssetId,
    ) -> Result<Option<(RunId, ArtifactId)>, StorageError> {
        Ok(self.state().artifact_naming(tenant, asset))
    }

    async fn hold(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        hold: Hold,
        audit: AuditEvent,
    ) -> Result<Placed, StorageError> {
        Ok(self.state().hold(tenant, on, hold, audit))
    }

    async fn lift(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        id: &HoldId,
        terms: &Terms,
        audit: AuditEvent,
    ) -> Result<Option<u64>, StorageError> {
        Ok(self.state().lift(tenant, on, id, terms, audit))
    }

    async fn holds(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        after: Option<&HoldId>,
        limit: usize,
    ) -> Result<Vec<Hold>, StorageError> {
        let mut holds = self.state().holds_on(tenant, on);
        holds.retain(|hold| after.is_none_or(|after| hold.id > *after));
        holds.truncate(limit);
        Ok(holds)
    }
}
