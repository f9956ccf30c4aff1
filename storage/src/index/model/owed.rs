//! What the model's store is owed, and the numbers of its holds.

use super::state::State;
use crate::ids::{Digest, TenantId};
use crate::record::Owed;

impl State {
    pub(super) fn owe(&mut self, tenant: &TenantId, owed: Owed) {
        self.paid(&[(tenant.clone(), owed.name())]);
        self.owed.push((tenant.clone(), owed));
    }

    pub(super) fn owed(&self, after: Option<&(TenantId, Digest)>, limit: usize) -> Vec<(TenantId, Owed)> {
        let name = |(tenant, owed): &(TenantId, Owed)| (tenant.clone(), owed.name().0);
        let mut found = self.owed.clone();
        found.retain(|one| after.is_none_or(|after| name(one) > (after.0.clone(), after.1.0)));
        found.sort_by_key(name);
        found.truncate(limit);
        found
    }

    pub(super) fn paid(&mut self, written: &[(TenantId, Digest)]) {
        let is_paid =
            |one: &(TenantId, Owed)| written.iter().any(|(tenant, name)| one.0 == *tenant && one.1.name() == *name);
        self.owed.retain(|one| !is_paid(one));
    }

    /// The next number of the tenant's holds.
    pub(super) fn next_hold(&mut self, tenant: &TenantId) -> u64 {
        self.raise_hold_number(tenant, self.hold_number(tenant) + 1);
        self.hold_number(tenant)
    }

    /// No number up to this one is given again.
    pub(super) fn raise_hold_number(&mut self, tenant: &TenantId, least: u64) {
        let number = self.hold_number(tenant).max(least);
        self.hold_numbers.retain(|(owner, _)| owner != tenant);
        self.hold_numbers.push((tenant.clone(), number));
    }

    fn hold_number(&self, tenant: &TenantId) -> u64 {
        self.hold_numbers.iter().find(|(owner, _)| owner == tenant).map_or(0, |(_, number)| *number)
    }
}
