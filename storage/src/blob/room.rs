//! Memory for parts that are being gathered, or are on their way.
//!
//! Whoever sends slowly keeps the room of a part for as long as it takes to fill it. So no tenant has more than half of all: those who
//! wait behind a tenant's slow uploads are its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ids::TenantId;

/// So many parts are held in memory by all uploads together: 256 MiB.
const ALL: usize = 32;

/// And so many by those of one tenant.
const OF_A_TENANT: usize = ALL / 2;

/// Room for all parts of a process.
#[derive(Debug)]
pub(super) struct Room {
    all: Arc<Semaphore>,
    /// Those of tenants that have uploads, and of some that had.
    tenants: Mutex<HashMap<TenantId, Weak<Semaphore>>>,
}

/// Room for one part.
#[derive(Debug)]
pub(super) struct Taken {
    _of_all: OwnedSemaphorePermit,
    _of_the_tenant: OwnedSemaphorePermit,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(ALL)), tenants: Mutex::default() }
    }

    /// Waits for the room of a part. Whoever waits for its tenant's turn holds nothing of what others wait for.
    pub(super) async fn take(&self, tenant: &TenantId) -> Taken {
        const NEVER_CLOSED: &str = "the room for parts is never closed";
        let _of_the_tenant = self.of(tenant).acquire_owned().await.expect(NEVER_CLOSED);
        let _of_all = self.all.clone().acquire_owned().await.expect(NEVER_CLOSED);
        Taken { _of_all, _of_the_tenant }
    }

    fn of(&self, tenant: &TenantId) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = tenants.get(tenant).and_then(Weak::upgrade) {
            return room;
        }
        tenants.retain(|_, room| room.strong_count() > 0);
        let room = Arc::new(Semaphore::new(OF_A_TENANT));
        tenants.insert(tenant.clone(), Arc::downgrade(&room));
        room
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_tenant_has_half_of_the_room_and_what_it_gives_back_is_there_again() {
        let (room, acme, globex) = (Room::new(), TenantId::parse("acme"), TenantId::parse("globex"));
        let (acme, globex) = (acme.expect("a tenant"), globex.expect("a tenant"));
        let mut taken: Vec<Taken> = Vec::new();
        for _ in 0..OF_A_TENANT {
            taken.push(room.take(&acme).now_or_never().expect("room"));
        }

        assert!(room.take(&acme).now_or_never().is_none());
        assert!(room.take(&globex).now_or_never().is_some());
        taken.pop();
        assert!(room.take(&acme).now_or_never().is_some());
        drop(taken);
        assert!(room.take(&globex).now_or_never().is_some());
        assert_eq!(room.tenants.lock().expect("nobody panicked").len(), 1, "whoever has none is forgotten");
    }
}
