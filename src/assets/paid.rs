//! Recovery records that were written, until the index hears of it.

use std::sync::{Mutex, PoisonError};

use mediakeep_storage::record::Owed;
use mediakeep_storage::{Digest, TenantId};

/// What was paid and is still noted as owed. A request does not wait for the note: should it be lost, the record is written once more.
#[derive(Debug, Default)]
pub struct Paid(Mutex<Vec<(TenantId, Digest)>>);

impl Paid {
    /// The record is durable.
    pub fn note(&self, tenant: &TenantId, owed: &Owed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((tenant.clone(), owed.name()));
    }

    /// What was paid since this was last asked.
    pub fn take(&self) -> Vec<(TenantId, Digest)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
