//! How the model reads assets and runs, and changes them.

use jiff::Timestamp;

use super::state::{Reference, State};
use crate::audit::AuditEvent;
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::{Amended, Amendment, AssetQuery, NewDurable, Referred, RunQuery, Updated};
use crate::record::{AssetRecord, AssetView, DurableUrl, Owed, ReferenceRecord, RunRecord, RunView};
use crate::retention::{Own, RunConflict, RunUpdate, Stake, Terms, floor};

impl State {
    pub(super) fn asset(&self, tenant: &TenantId, id: AssetId) -> Option<&AssetRecord> {
        self.assets.iter().find(|record| record.tenant == *tenant && record.id == id)
    }

    pub(super) fn asset_mut(&mut self, tenant: &TenantId, id: AssetId) -> Option<&mut AssetRecord> {
        self.assets.iter_mut().find(|record| record.tenant == *tenant && record.id == id)
    }

    /// The runs that reference the asset, newest reference first.
    pub(super) fn runs_of(&self, record: &AssetRecord) -> Vec<&RunRecord> {
        let own = |one: &&Reference| one.tenant == record.tenant && one.asset == record.id;
        self.references.iter().rev().filter(own).filter_map(|one| self.run(&one.tenant, &one.run)).collect()
    }

    /// What the asset brings with it, and what its runs do for it.
    pub(super) fn keepers(&self, record: &AssetRecord) -> (Own, Vec<Stake>) {
        let runs = self.runs_of(record);
        let stakes = runs.iter().map(|run| Stake::of(run, self.is_held_run(&record.tenant, &run.id))).collect();
        (Own::of(record, self.is_held_itself(record)), stakes)
    }

    pub(super) fn view(&self, record: &AssetRecord, terms: &Terms) -> AssetView {
        let runs = self.runs_of(record);
        let (own, stakes) = self.keepers(record);
        AssetView {
            record: record.clone(),
            floor: floor(own, &stakes, terms),
            references: runs.iter().take(AssetView::REFERENCES).map(|run| run.id.clone()).collect(),
            reference_count: runs.len() as u64,
            epoch: self.epoch(&record.tenant),
            holds: self.holds_for(record),
        }
    }

    pub(super) fn page(&self, tenant: &TenantId, query: &AssetQuery, terms: &Terms) -> Vec<AssetView> {
        let mut found: Vec<&AssetRecord> = self
            .assets
            .iter()
            .filter(|record| record.tenant == *tenant)
            .filter(|record| query.run.as_ref().is_none_or(|run| self.runs_of(record).iter().any(|one| one.id == *run)))
            .filter(|record| query.kind.as_ref().is_none_or(|kind| record.kind == *kind))
            .filter(|record| query.mime_type.as_ref().is_none_or(|mime| record.mime_type == *mime))
            .filter(|record| query.state.as_ref().is_none_or(|state| record.state.name() == state))
            .filter(|record| query.after.is_none_or(|after| record.id > after))
            .collect();
        found.sort_by_key(|record| record.id);
        found.into_iter().take(query.limit).map(|record| self.view(record, terms)).collect()
    }

    pub(super) fn amend(&mut self, tenant: &TenantId, id: AssetId, change: &Amendment, audit: AuditEvent) -> Amended {
        let Some(record) = self.asset_mut(tenant, id) else {
            return Amended::Unknown;
        };
        if !record.is_live() {
            return Amended::Dead(record.clone());
        }
        if change.expected.is_some_and(|seen| seen != record.revision) {
            return Amended::Stale;
        }
        record.labels = change.apply(&record.labels);
        record.revision += 1;
        let record = record.clone();
        self.audit(tenant, audit);
        self.owe(tenant, Owed::asset(&record));
        Amended::Changed(record)
    }

    pub(super) fn raise_generation(
        &mut self,
        tenant: &TenantId,
        id: AssetId,
        new: NewDurable,
        audit: AuditEvent,
    ) -> Option<AssetRecord> {
        let record = self.asset_mut(tenant, id)?;
        let generation = record.durable.generation + 1;
        record.durable = DurableUrl { kid: new.kid, issued_at: new.issued_at, generation };
        record.revision += 1;
        let record = record.clone();
        self.audit(tenant, audit);
        self.owe(tenant, Owed::asset(&record));
        Some(record)
    }

    pub(super) fn resign(
        &mut self,
        tenant: &TenantId,
        id: AssetId,
        new: NewDurable,
        audit: AuditEvent,
    ) -> Option<AssetRecord> {
        let record = self.asset_mut(tenant, id)?;
        (record.durable.kid, record.durable.issued_at) = (new.kid, new.issued_at);
        record.revision += 1;
        let record = record.clone();
        self.audit(tenant, audit);
        self.owe(tenant, Owed::asset(&record));
        Some(record)
    }

    pub(super) fn run(&self, tenant: &TenantId, id: &RunId) -> Option<&RunRecord> {
        self.runs.iter().find(|(owner, run)| owner == tenant && run.id == *id).map(|(_, run)| run)
    }

    pub(super) fn put_run(&mut self, tenant: &TenantId, record: RunRecord) {
        self.runs.retain(|(owner, run)| owner != tenant || run.id != record.id);
        self.runs.push((tenant.clone(), record));
    }

    pub(super) fn touch(&mut self, tenant: &TenantId, id: &RunId, terms: &Terms, now: Timestamp) {
        let record = match self.run(tenant, id) {
            None => Some(RunRecord::referenced(id.clone(), now, terms)),
            Some(run) => run.touched(now, terms),
        };
        if let Some(record) = record {
            self.put_run(tenant, record);
        }
    }

    pub(super) fn update_run(
        &mut self,
        tenant: &TenantId,
        update: &RunUpdate,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Updated, RunConflict> {
        self.terms = Some(*terms);
        let before = self.run(tenant, &update.id);
        let parent = update.fork_of.as_ref().and_then(|id| self.run(tenant, id));
        let ancestors = self.ancestors(tenant, parent);
        let forks = RunRecord::becomes_fork(before, update, parent, &ancestors)?;
        let record = RunRecord::updated(before, update, now, terms)?;
        let mut inherited = Vec::new();
        if let Some(parent) = update.fork_of.as_ref().filter(|_| forks) {
            let of_parent = self.references.iter().filter(|one| one.tenant == *tenant && one.run == *parent);
            inherited.extend(of_parent.map(|one| one.asset));
            inherited.sort();
        }
        self.put_run(tenant, record.clone());
        self.add_references(tenant, &record.id, &inherited);
        self.audit(tenant, audit);
        self.owe(tenant, Owed::run(&record));
        if !inherited.is_empty() {
            self.owe(tenant, Owed::References(ReferenceRecord::new(&record.id, &inherited, now)));
        }
        Ok(Updated { view: self.run_view(tenant, &record), inherited })
    }

    /// The runs that this one is a fork of, nearest first.
    fn ancestors(&self, tenant: &TenantId, of: Option<&RunRecord>) -> Vec<RunId> {
        let parent = |run: &RunRecord| run.fork_of.as_ref().and_then(|id| self.run(tenant, id)).cloned();
        let nearest = of.and_then(parent);
        std::iter::successors(nearest, parent).map(|run| run.id).collect()
    }

    pub(super) fn add_references(&mut self, tenant: &TenantId, run: &RunId, assets: &[AssetId]) {
        for asset in assets {
            let reference = Reference { tenant: tenant.clone(), run: run.clone(), asset: *asset };
            if !self.references.contains(&reference) {
                self.references.push(reference);
            }
        }
    }

    pub(super) fn run_view(&self, tenant: &TenantId, record: &RunRecord) -> RunView {
        let of_run = |one: &&Reference| one.tenant == *tenant && one.run == record.id;
        let assets = self.references.iter().filter(of_run).filter_map(|one| self.asset(tenant, one.asset));
        let (mut count, mut bytes) = (0, 0);
        for asset in assets {
            count += 1;
            bytes += if asset.is_live() { asset.bytes } else { 0 };
        }
        RunView { record: record.clone(), assets: count, bytes }
    }

    pub(super) fn runs(&self, tenant: &TenantId, query: &RunQuery) -> Vec<RunView> {
        let mut found: Vec<&RunRecord> = self
            .runs
            .iter()
            .filter(|(owner, _)| owner == tenant)
            .map(|(_, run)| run)
            .filter(|run| query.status.is_none_or(|status| status == run.status))
            .filter(|run| query.after.as_ref().is_none_or(|after| run.id > *after))
            .collect();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.into_iter().take(query.limit).map(|run| self.run_view(tenant, run)).collect()
    }

    pub(super) fn refer(
        &mut self,
        tenant: &TenantId,
        run: &RunId,
        assets: &[AssetId],
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Referred {
        self.terms = Some(*terms);
        let unknown = |(_, id): &(usize, &AssetId)| self.asset(tenant, **id).is_none();
        let unknown: Vec<usize> = assets.iter().enumerate().filter(unknown).map(|(position, _)| position).collect();
        if !unknown.is_empty() {
            return Referred::Unknown(unknown);
        }
        if self.is_erased(tenant, run) {
            return Referred::RunErased;
        }
        self.touch(tenant, run, terms, now);
        self.add_references(tenant, run, assets);
        self.audit(tenant, audit);
        let record = self.run(tenant, run).cloned().expect("the run has just been touched");
        self.owe(tenant, Owed::run(&record));
        self.owe(tenant, Owed::References(ReferenceRecord::new(run, assets, now)));
        Referred::All(record)
    }
}
