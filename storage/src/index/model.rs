//! The contract, done the plainest way: lists in memory, read from end to end each time.
//!
//! It shares nothing with the index in `sled` but the trait and the pure functions of `retention`, so that what the two agree on is the
//! contract's and not one program's. It has no queue: what is due is found by computing every floor, which is what a queue of looks
//! has to come to. Nothing is kept when it is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use self::state::State;
use crate::ids::{ArtifactId, RunId, TenantId};
use crate::retention::Terms;
mod artifacts;
mod calls;
mod ending;
mod holds;
mod lists;
mod owed;
mod records;
mod restore;
mod resumable;
mod state;
mod urls;
mod usage;

/// An [`AssetIndex`](super::AssetIndex) in memory, for tests.
#[derive(Debug, Default)]
pub struct ModelIndex {
    state: Mutex<State>,
    /// Locked by whoever has the turn to remove bytes.
    removal: Arc<tokio::sync::Mutex<()>>,
}

impl ModelIndex {
    /// Ends this many artifacts of a run that is over, and nothing else of it: an index that walks runs in pages comes to them last.
    pub(in crate::index) fn end_artifacts(
        &self,
        tenant: &TenantId,
        run: &RunId,
        limit: usize,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Vec<(ArtifactId, u64)> {
        self.state().end_artifacts(tenant, run, limit, terms, principal, now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::{AssetIndex, contract};

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn the_model_keeps_the_contract() {
        contract::run_all(|| async { Arc::new(ModelIndex::default()) as Arc<dyn AssetIndex> }).await;
    }
}
