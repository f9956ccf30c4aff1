//! Runs, what they reference, their artifacts, and what is held.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, HoldId, RunId, TenantId};
use crate::index::sled::writer::Room;
use crate::index::sled::{SledIndex, artifacts, holds, runs};
use crate::index::{NewArtifact, Placed, PutArtifact, Referred, RunQuery, Runs, Updated};
use crate::record::{ArtifactRecord, Hold, HoldOn, RunRecord, RunView};
use crate::retention::{RunConflict, RunUpdate, Terms};

#[async_trait]
impl Runs for SledIndex {
    async fn update_run(
        &self,
        tenant: &TenantId,
        update: &RunUpdate,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Result<Updated, RunConflict>, StorageError> {
        let (owner, update, terms) = (tenant.clone(), update.clone(), *terms);
        let updated = self
            .writer
            .apply(Room::Takes, move |draft| runs::update(draft, &owner, &update, &terms, audit, now))
            .await?;
        let (record, inherited) = match updated {
            Ok(updated) => updated,
            Err(conflict) => return Ok(Err(conflict)),
        };
        // Counted outside of the transition: a run may reference more assets than a writer should read.
        let tenant = tenant.clone();
        let view = self.walk(move |core| runs::count(core.rows(), &tenant, record)).await?;
        Ok(Ok(Updated { view, inherited }))
    }

    async fn run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunView>, StorageError> {
        let (tenant, id) = (tenant.clone(), id.clone());
        self.walk(move |core| runs::view(core, &tenant, &id)).await
    }

    async fn find_run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunRecord>, StorageError> {
        Ok(self.core.rows().run(tenant, id)?.map(|row| row.record))
    }

    async fn runs(&self, tenant: &TenantId, query: &RunQuery) -> Result<Vec<RunView>, StorageError> {
        let (tenant, query) = (tenant.clone(), query.clone());
        self.walk(move |core| runs::list(core, &tenant, &query)).await
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
        let (tenant, run, assets, terms) = (tenant.clone(), run.clone(), assets.to_vec(), *terms);
        self.writer
            .apply(Room::Takes, move |draft| runs::refer(draft, &tenant, &run, &assets, &terms, audit, now))
            .await
    }

    async fn put_artifact(
        &self,
        tenant: &TenantId,
        artifact: &NewArtifact,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<PutArtifact, StorageError> {
        let (tenant, artifact, terms) = (tenant.clone(), artifact.clone(), *terms);
        self.writer.apply(Room::Takes, move |draft| artifacts::put(draft, &tenant, &artifact, &terms, audit, now)).await
    }

    async fn artifact(
        &self,
        tenant: &TenantId,
        run: &RunId,
        id: &ArtifactId,
    ) -> Result<Option<ArtifactRecord>, StorageError> {
        self.core.at_once(|rows| artifacts::find(rows, tenant, run, id))
    }

    async fn artifact_naming(
        &self,
        tenant: &TenantId,
        asset: AssetId,
    ) -> Result<Option<(RunId, ArtifactId)>, StorageError> {
        self.core.at_once(|rows| artifacts::naming(rows, tenant, asset))
    }

    async fn hold(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        hold: Hold,
        audit: AuditEvent,
    ) -> Result<Placed, StorageError> {
        let (tenant, on) = (tenant.clone(), on.clone());
        self.writer.apply(Room::Makes, move |draft| holds::hold(draft, &tenant, &on, hold, audit)).await
    }

    async fn lift(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        id: &HoldId,
        terms: &Terms,
        audit: AuditEvent,
    ) -> Result<Option<u64>, StorageError> {
        let (tenant, on, id, terms) = (tenant.clone(), on.clone(), id.clone(), *terms);
        self.writer.apply(Room::Makes, move |draft| holds::lift(draft, &tenant, &on, &id, &terms, audit)).await
    }

    async fn holds(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        after: Option<&HoldId>,
        limit: usize,
    ) -> Result<Vec<Hold>, StorageError> {
        let (tenant, on, after) = (tenant.clone(), on.clone(), after.cloned());
        self.walk(move |core| core.rows().holds(&tenant, &on, after.as_ref()).take(limit).collect()).await
    }
}
