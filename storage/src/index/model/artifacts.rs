//! The model's artifacts.

use jiff::Timestamp;

use super::state::State;
use crate::audit::AuditEvent;
use crate::ids::{ArtifactId, AssetId, RunId, TenantId};
use crate::index::{Look, LookAt, NewArtifact, PutArtifact, artifact_end_event};
use crate::record::{ArtifactRecord, Owed, ReferenceRecord};
use crate::retention::{Stake, Terms, Until};

impl State {
    pub(super) fn put_artifact(
        &mut self,
        tenant: &TenantId,
        new: &NewArtifact,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> PutArtifact {
        self.terms = Some(*terms);
        let unknown = |(_, id): &(usize, &AssetId)| self.asset(tenant, **id).is_none();
        let unknown: Vec<usize> = new.assets.iter().enumerate().filter(unknown).map(|(position, _)| position).collect();
        if !unknown.is_empty() {
            return PutArtifact::Unknown(unknown);
        }
        if self.is_erased(tenant, &new.run) {
            return PutArtifact::RunErased;
        }
        self.touch(tenant, &new.run, terms, now);
        self.add_references(tenant, &new.run, &new.assets);
        let number = self.next_artifact(tenant, &new.run);
        let before = self.artifact(tenant, &new.run, &new.id).cloned();
        let artifact = new.record(before.as_ref(), number, now);
        self.remove_artifact(tenant, &new.run, &new.id);
        self.artifacts.push((tenant.clone(), artifact.clone()));
        let run = self.run(tenant, &new.run).cloned().expect("the run has just been touched");
        self.audit(tenant, audit);
        self.owe(tenant, Owed::run(&run));
        if !artifact.assets.is_empty() {
            self.owe(tenant, Owed::References(ReferenceRecord::new(&new.run, &artifact.assets, now)));
        }
        self.owe(tenant, Owed::artifact(&artifact));
        PutArtifact::Done { artifact: Box::new(artifact), run: Box::new(run), replaced: before.is_some() }
    }

    /// The artifact, unless its run was erased.
    pub(super) fn artifact(&self, tenant: &TenantId, run: &RunId, id: &ArtifactId) -> Option<&ArtifactRecord> {
        let own = |(owner, one): &&(TenantId, ArtifactRecord)| owner == tenant && one.run == *run && one.id == *id;
        self.artifacts.iter().find(own).map(|(_, one)| one).filter(|_| !self.is_erased(tenant, run))
    }

    pub(super) fn artifact_naming(&self, tenant: &TenantId, asset: AssetId) -> Option<(RunId, ArtifactId)> {
        let names = |(owner, one): &&(TenantId, ArtifactRecord)| {
            owner == tenant && one.assets.contains(&asset) && !self.is_erased(tenant, &one.run)
        };
        self.artifacts.iter().filter(names).map(|(_, one)| (one.run.clone(), one.id.clone())).min()
    }

    /// A look at each run that is over and has artifacts left.
    pub(super) fn artifact_looks(&self, terms: &Terms, now: Timestamp) -> Vec<Look> {
        let mut looks: Vec<Look> = Vec::new();
        for (tenant, one) in &self.artifacts {
            let until = self.artifacts_until(tenant, &one.run, terms);
            let at = LookAt::Run(one.run.clone());
            if let Some(due) = until.instant().filter(|_| until.is_past(now))
                && !looks.iter().any(|look| look.tenant == *tenant && look.at == at)
            {
                looks.push(Look { tenant: tenant.clone(), at, due });
            }
        }
        looks
    }

    fn artifacts_until(&self, tenant: &TenantId, run: &RunId, terms: &Terms) -> Until {
        self.run(tenant, run)
            .map_or(Until::Endless, |record| Stake::of(record, self.is_held_run(tenant, run)).keeps(terms))
    }

    /// Ends artifacts of a run that is over, in the order of their names; at most so many.
    pub(super) fn end_artifacts(
        &mut self,
        tenant: &TenantId,
        run: &RunId,
        limit: usize,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Vec<(ArtifactId, u64)> {
        let Some(record) = self.run(tenant, run).cloned() else {
            return Vec::new();
        };
        if !self.artifacts_until(tenant, run, terms).is_past(now) {
            return Vec::new();
        }
        let own = self.artifacts.iter().filter(|(owner, one)| owner == tenant && one.run == *run);
        let mut ending: Vec<ArtifactId> = own.map(|(_, one)| one.id.clone()).collect();
        ending.sort();
        ending.truncate(limit);
        let mut ended = Vec::new();
        for id in ending {
            let number = self.next_artifact(tenant, run);
            self.remove_artifact(tenant, run, &id);
            self.audit(tenant, artifact_end_event(&record, &id, principal, now));
            self.owe(tenant, Owed::Artifact { run: run.clone(), id: id.clone(), number });
            ended.push((id, number));
        }
        ended
    }

    pub(super) fn restore_artifact(&mut self, tenant: &TenantId, record: ArtifactRecord, terms: &Terms) {
        let ArtifactRecord { run, id, number, put_at, .. } = &record;
        if self.is_erased(tenant, run) {
            let number = number + 1;
            self.raise_artifact_number(tenant, run, number);
            self.owe(tenant, Owed::Artifact { run: run.clone(), id: id.clone(), number });
            return;
        }
        self.raise_artifact_number(tenant, run, *number);
        if self.artifact(tenant, run, id).is_none() {
            self.touch(tenant, run, terms, *put_at);
            self.artifacts.push((tenant.clone(), record));
        }
    }

    fn remove_artifact(&mut self, tenant: &TenantId, run: &RunId, id: &ArtifactId) {
        self.artifacts.retain(|(owner, one)| owner != tenant || one.run != *run || one.id != *id);
    }

    fn next_artifact(&mut self, tenant: &TenantId, run: &RunId) -> u64 {
        let next = self.artifact_number(tenant, run) + 1;
        self.raise_artifact_number(tenant, run, next);
        next
    }

    fn raise_artifact_number(&mut self, tenant: &TenantId, run: &RunId, least: u64) {
        let number = self.artifact_number(tenant, run).max(least);
        self.artifact_numbers.retain(|(owner, of, _)| owner != tenant || of != run);
        self.artifact_numbers.push((tenant.clone(), run.clone(), number));
    }

    fn artifact_number(&self, tenant: &TenantId, run: &RunId) -> u64 {
        let own = self.artifact_numbers.iter().find(|(owner, of, _)| owner == tenant && of == run);
        own.map_or(0, |(_, _, number)| *number)
    }
}
