//! Calls about the same things, one after the other once they are in each other's way.
//!
//! Transitions that write the same rows refuse each other, and each refusal costs a whole trial. A few at once settle that by chance; of
//! hundreds, one goes through while all others try in vain, and the last ones lose patience. So who was refused takes turns with whoever
//! else of this process is about the same things, and who comes while there is such a queue joins it before the first trial. Other replicas
//! have queues of their own: of them, one each is in the others' way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Queue, OwnedMutexGuard};

use crate::ids::{Digest, RunId, TenantId};

/// What calls may be in each other's way about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Thing {
    /// A run's row.
    Run(TenantId, RunId),
    /// The blob that these bytes share.
    Bytes(TenantId, Digest),
}

/// The queues, each for as long as anybody is in it.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<Thing, Arc<Queue<()>>>>);

/// The turn at one thing, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    thing: Thing,
    /// `None` while it waits.
    at: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Whether there is a queue for any of the things.
    pub(super) fn are_sought(&self, things: &[Thing]) -> bool {
        let queues = self.queues();
        things.iter().any(|thing| queues.contains_key(thing))
    }

    /// Waits for the turn at each of the things, in their order: the same order for every call.
    pub(super) async fn take(&self, things: &[Thing]) -> Vec<Turn<'_>> {
        let mut taken = Vec::with_capacity(things.len());
        for thing in things {
            let queue = self.queues().entry(thing.clone()).or_default().clone();
            // A call that is dropped while it waits leaves the queue as one that has had its turn does.
            let mut turn = Turn { turns: self, thing: thing.clone(), at: None };
            turn.at = Some(queue.lock_owned().await);
            taken.push(turn);
        }
        taken
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<Thing, Arc<Queue<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queues = self.turns.queues();
        self.at = None;
        // Whoever waits has it too, and takes it from the table alone.
        if queues.get(&self.thing).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            queues.remove(&self.thing);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::future::join_all;

    use super::*;

    fn run(name: &str) -> Thing {
        Thing::Run(TenantId::parse("acme").expect("a tenant"), RunId::parse(name).expect("a run"))
    }

    #[tokio::test]
    async fn one_at_a_time_has_the_turn_and_nothing_is_left_of_a_queue_that_is_over() {
        let (turns, inside) = (Turns::default(), AtomicU32::new(0));
        let things = [run("a"), run("b")];
        let waiting = (0..20).map(|n| {
            let (turns, inside, things) = (&turns, &inside, &things);
            async move {
                let turn = turns.take(&things[..1 + n % 2]).await;
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(turn);
            }
        });
        join_all(waiting).await;
        assert!(turns.queues().is_empty());
    }

    #[tokio::test]
    async fn who_no_longer_waits_leaves_the_queue() {
        let (turns, things) = (Turns::default(), [run("a")]);
        let first = turns.take(&things).await;
        let given_up = tokio::time::timeout(std::time::Duration::from_millis(5), turns.take(&things)).await;
        assert!(given_up.is_err() && turns.are_sought(&things));
        drop(first);
        assert!(!turns.are_sought(&things));
    }
}
