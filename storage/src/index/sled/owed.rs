//! What the store is owed, and the numbers of holds.

use super::draft::Draft;
use super::keys::{Key, Space};
use super::packed::Row;
use super::shared::Core;
use crate::error::StorageError;
use crate::ids::{Digest, TenantId};
use crate::record::Owed;

/// A row of `Owed`: whose it is stands in it, so that a walk need not take keys apart.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct OwedRow {
    tenant: TenantId,
    owed: Owed,
}

impl Draft {
    /// A recovery record is to follow this transition.
    pub(super) fn owe(&mut self, tenant: &TenantId, owed: Owed) {
        self.put(Key::owed(tenant, &owed.name()), &OwedRow { tenant: tenant.clone(), owed });
    }

    /// The next number of the tenant's holds.
    pub(super) fn next_hold(&mut self, tenant: &TenantId) -> Result<u64, StorageError> {
        let next = self.hold_number(tenant)? + 1;
        self.put(Key::of(Space::HoldNumbers, tenant), &next);
        Ok(next)
    }

    /// No number up to this one is given again.
    pub(super) fn raise_hold_number(&mut self, tenant: &TenantId, least: u64) -> Result<(), StorageError> {
        if self.hold_number(tenant)? < least {
            self.put(Key::of(Space::HoldNumbers, tenant), &least);
        }
        Ok(())
    }

    fn hold_number(&self, tenant: &TenantId) -> Result<u64, StorageError> {
        let key = Key::of(Space::HoldNumbers, tenant);
        Ok(self.rows().read("number of a hold", &key)?.unwrap_or(0))
    }
}

/// What is owed, from behind `after`.
pub(super) fn list(
    core: &Core,
    after: Option<(TenantId, Digest)>,
    limit: usize,
) -> Result<Vec<(TenantId, Owed)>, StorageError> {
    let after = after.map(|(tenant, name)| Key::owed(&tenant, &name));
    let rows = core.rows().scan_after(&Key::space(Space::Owed), after.as_ref()).take(limit);
    rows.map(|row| OwedRow::read("what is owed", &row?.1).map(|OwedRow { tenant, owed }| (tenant, owed))).collect()
}

/// Forgets what is paid.
pub(super) fn paid(draft: &mut Draft, written: &[(TenantId, Digest)]) -> Result<(), StorageError> {
    for (tenant, name) in written {
        let key = Key::owed(tenant, name);
        if draft.rows().get(&key)?.is_some() {
            draft.delete(key);
        }
    }
    Ok(())
}
