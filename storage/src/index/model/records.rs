//! How the model reads assets and runs, and changes them.

use jiff::Timestamp;

use super::state::{Reference, State};
use crate::audit::AuditEvent;
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::{Amended, Amendment, AssetQuery, NewDurable, Referred, RunQuery};
use crate::record::{AssetRecord, AssetView, DurableUrl, RunRecord, RunView};
use crate::retention::{Floor, RunConflict, RunUpdate, Terms, floor};

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

    pub(super) fn floor(&self, record: &AssetRecord, terms: &Terms) -> Floor {
        floor(record.created_at, record.asked_until, self.runs_of(record).into_iter().map(|run| run.end), terms)
    }

    pub(super) fn view(&self, record: &AssetRecord, terms: &Terms) -> AssetView {
        let runs = self.runs_of(record);
        AssetView {
            record: record.clone(),
            floor: self.floor(record, terms),
            references: runs.iter().take(AssetView::REFERENCES).map(|run| run.id.clone()).collect(),
            reference_count: runs.len() as u64,
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
        Some(record)
    }

    pub(super) fn revoke_url(&mut self, tenant: &TenantId, url_id: &str, keep_until: Timestamp, audit: AuditEvent) {
        let earlier = self.revoked.iter_mut().find(|(owner, id, _)| owner == tenant && id == url_id);
        match earlier {
            Some((_, _, until)) => *until = keep_until.max(*until),
            None => self.revoked.push((tenant.clone(), url_id.to_owned(), keep_until)),
        }
        self.audit(tenant, audit);
    }

    pub(super) fn is_revoked(&self, tenant: &TenantId, url_id: &str) -> bool {
        self.revoked.iter().any(|(owner, id, _)| owner == tenant && id == url_id)
    }

    pub(super) fn run(&self, tenant: &TenantId, id: &RunId) -> Option<&RunRecord> {
        self.runs.iter().find(|(owner, run)| owner == tenant && run.id == *id).map(|(_, run)| run)
    }

    fn put_run(&mut self, tenant: &TenantId, record: RunRecord) {
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
    ) -> Result<RunView, RunConflict> {
        self.terms = Some(*terms);
        let record = RunRecord::updated(self.run(tenant, &update.id), update, now, terms)?;
        self.put_run(tenant, record.clone());
        self.audit(tenant, audit);
        Ok(self.run_view(tenant, &record))
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
        self.touch(tenant, run, terms, now);
        for asset in assets {
            let reference = Reference { tenant: tenant.clone(), run: run.clone(), asset: *asset };
            if !self.references.contains(&reference) {
                self.references.push(reference);
            }
        }
        self.audit(tenant, audit);
        Referred::All(self.run(tenant, run).cloned().expect("the run has just been touched"))
    }
}
