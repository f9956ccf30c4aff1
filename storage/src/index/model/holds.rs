//! How the model holds things, and what it says of those that are to go.

use jiff::Timestamp;

use super::state::State;
use crate::audit::AuditEvent;
use crate::ids::{AssetId, HoldId, RunId, TenantId};
use crate::index::{Placed, RunErasure};
use crate::record::{AssetRecord, AssetState, AssetView, Hold, HoldOn, Owed};
use crate::retention::Terms;

impl State {
    pub(super) fn hold(&mut self, tenant: &TenantId, on: &HoldOn, mut hold: Hold, audit: AuditEvent) -> Placed {
        let erased = match on {
            HoldOn::Asset(id) => {
                self.asset(tenant, *id).map(|record| matches!(record.state, AssetState::Erased { .. }))
            }
            HoldOn::Run(id) => self.run(tenant, id).map(|run| run.erased_at.is_some()),
        };
        match erased {
            None => return Placed::Unknown,
            Some(true) => return Placed::Erased,
            Some(false) => {}
        }
        hold.number = self.next_hold(tenant);
        let hold = self.put_hold(tenant, on, hold);
        self.owe(tenant, Owed::Hold { on: on.clone(), id: hold.id.clone(), number: hold.number });
        self.audit(tenant, audit);
        Placed::Done(hold)
    }

    pub(super) fn put_hold(&mut self, tenant: &TenantId, on: &HoldOn, mut hold: Hold) -> Hold {
        if let Some(at) = self.hold_at(tenant, on, &hold.id) {
            hold.placed_at = self.holds.remove(at).2.placed_at;
        }
        self.holds.push((tenant.clone(), on.clone(), hold.clone()));
        hold
    }

    fn hold_at(&self, tenant: &TenantId, on: &HoldOn, id: &HoldId) -> Option<usize> {
        self.holds.iter().position(|(owner, what, hold)| owner == tenant && what == on && hold.id == *id)
    }

    pub(super) fn lift(
        &mut self,
        tenant: &TenantId,
        on: &HoldOn,
        id: &HoldId,
        terms: &Terms,
        audit: AuditEvent,
    ) -> Option<u64> {
        self.terms = Some(*terms);
        let at = self.hold_at(tenant, on, id)?;
        self.holds.remove(at);
        let number = self.next_hold(tenant);
        self.owe(tenant, Owed::Hold { on: on.clone(), id: id.clone(), number });
        self.audit(tenant, audit);
        Some(number)
    }

    /// In the order of their names.
    pub(super) fn holds_on(&self, tenant: &TenantId, on: &HoldOn) -> Vec<Hold> {
        let own = self.holds.iter().filter(|(owner, what, _)| owner == tenant && what == on);
        let mut holds: Vec<Hold> = own.map(|(_, _, hold)| hold.clone()).collect();
        holds.sort_by(|a, b| a.id.cmp(&b.id));
        holds
    }

    /// The asset's own holds, then those of the runs that reference it.
    pub(super) fn holds_for(&self, record: &AssetRecord) -> Vec<HoldId> {
        let runs = self.runs_of(record).into_iter().map(|run| HoldOn::Run(run.id.clone()));
        let mut named: Vec<HoldId> = Vec::new();
        for on in std::iter::once(HoldOn::Asset(record.id)).chain(runs) {
            for hold in self.holds_on(&record.tenant, &on) {
                if !named.contains(&hold.id) {
                    named.push(hold.id);
                }
            }
        }
        named.truncate(AssetView::HOLDS);
        named
    }

    pub(super) fn is_held_itself(&self, record: &AssetRecord) -> bool {
        !self.holds_on(&record.tenant, &HoldOn::Asset(record.id)).is_empty()
    }

    pub(super) fn is_held_run(&self, tenant: &TenantId, run: &RunId) -> bool {
        !self.holds_on(tenant, &HoldOn::Run(run.clone())).is_empty()
    }

    pub(super) fn is_held(&self, record: &AssetRecord) -> bool {
        !self.holds_for(record).is_empty()
    }

    pub(super) fn is_erased(&self, tenant: &TenantId, run: &RunId) -> bool {
        self.run(tenant, run).is_some_and(|run| run.erased_at.is_some())
    }

    pub(super) fn same_bytes(
        &self,
        tenant: &TenantId,
        id: AssetId,
        after: Option<AssetId>,
        limit: usize,
    ) -> Vec<AssetId> {
        let erased = |record: &AssetRecord| matches!(record.state, AssetState::Erased { .. });
        let Some(this) = self.asset(tenant, id).filter(|record| !erased(record)) else {
            return Vec::new();
        };
        let same =
            |one: &&AssetRecord| one.tenant == *tenant && one.id != id && one.sha256 == this.sha256 && !erased(one);
        let mut found: Vec<AssetId> = self.assets.iter().filter(same).map(|record| record.id).collect();
        found.retain(|one| after.is_none_or(|after| *one > after));
        found.sort();
        found.truncate(limit);
        found
    }

    pub(super) fn erase_run(
        &mut self,
        tenant: &TenantId,
        run: &RunId,
        audit: AuditEvent,
        now: Timestamp,
    ) -> RunErasure {
        let Some(record) = self.run(tenant, run).cloned() else {
            return RunErasure::Unknown;
        };
        let mut holds: Vec<HoldId> =
            self.holds_on(tenant, &HoldOn::Run(run.clone())).into_iter().map(|hold| hold.id).collect();
        if !holds.is_empty() {
            holds.truncate(AssetView::HOLDS);
            return RunErasure::Held(holds);
        }
        let Some(erased) = record.erased(now) else {
            return RunErasure::Done(record);
        };
        self.put_run(tenant, erased.clone());
        self.audit(tenant, audit);
        self.owe(tenant, Owed::run(&erased));
        RunErasure::Done(erased)
    }
}
