//! How many requests a process works on at a time; whoever comes beyond that is told at once to come again.
//!
//! What a request may hold is bounded elsewhere; this bounds how many hold it, so that memory and open files have a bound whatever comes.
//! There are three lanes, so that none of them is full because of another: bytes that come in slowly never keep a revocation waiting, nor
//! somebody who reads slowly an upload.
//!
//! Nor is a lane full because of one client: whoever asks for another place has to hold fewer than are free. One alone comes to half of
//! them, a second to half of the rest, and a newcomer finds one as long as there is any. What one tenant may have of uploads, one client may have too.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many uploads come in at a time, of all tenants: each holds up to 1 MiB and a bit, and an open file. A tenant that is allowed more
/// has them.
pub const UPLOADS: usize = 256;

/// So many other requests with a body are worked on at a time: each holds up to 1 MiB (longer bodies find room in [`super::held`] besides).
pub const BODIES: usize = 256;

/// So many requests without a body are worked on, and their answers sent, at a time: each holds a piece of 96 KiB and what waits to be
/// sent, and an open file; and the system holds a megabyte or more for a connection whose other end is slow.
pub const READS: usize = 1_024;

/// For a process that works on all of these at once, so many connections are open at most: whoever comes in four times their number is heard
/// and told to come again; more wait in the system's queue.
pub const CONNECTIONS: usize = 4 * (UPLOADS + BODIES + READS);

/// What a request is, as far as its head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// It brings bytes to keep.
    Upload,
    /// It brings anything else.
    Body,
    /// It brings nothing.
    Read,
}

/// The lanes.
#[derive(Debug)]
pub struct Gate {
    lanes: [Arc<Places>; 3],
}

/// The places of a lane.
#[derive(Debug)]
struct Places {
    all: usize,
    /// So many a client may hold however few are free.
    own: usize,
    held: Mutex<Held>,
}

/// How many places are taken, in all and by whom.
#[derive(Debug, Default)]
struct Held {
    all: usize,
    by: HashMap<u128, usize>,
}

/// A place in a lane, until it is dropped.
#[derive(Debug)]
pub struct Place {
    lane: Arc<Places>,
    client: u128,
}

impl Gate {
    /// With as many uploads at least as one tenant may have.
    pub fn new(uploads_per_tenant: usize) -> Self {
        let uploads = (UPLOADS.max(uploads_per_tenant), uploads_per_tenant);
        let lanes = [uploads, (BODIES, 0), (READS, 0)];
        Self { lanes: lanes.map(|(all, own)| Arc::new(Places { all, own, held: Mutex::default() })) }
    }

    /// A place for [that client](crate::access::client::network), if there is one for it now.
    pub fn enter(&self, lane: Lane, client: u128) -> Option<Place> {
        let lane = &self.lanes[lane as usize];
        let mut held = lane.held();
        let (free, has) = (lane.all - held.all, held.by.get(&client).copied().unwrap_or(0));
        if free == 0 || has >= free.max(lane.own) {
            return None;
        }
        held.all += 1;
        held.by.insert(client, has + 1);
        Some(Place { lane: lane.clone(), client })
    }

    /// How many places are taken.
    pub fn taken(&self, lane: Lane) -> usize {
        self.lanes[lane as usize].held().all
    }
}

impl Places {
    /// Nothing in here panics while it is held.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.lane.held();
        held.all -= 1;
        if let Some(has) = held.by.get_mut(&self.client) {
            *has -= 1;
            if *has == 0 {
                held.by.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that the client gets.
    fn all(gate: &Gate, lane: Lane, client: u128) -> Vec<Place> {
        std::iter::from_fn(|| gate.enter(lane, client)).collect()
    }

    #[test]
    fn a_lane_that_is_full_keeps_nobody_out_of_another() {
        let gate = Gate::new(64);
        let mut places: Vec<Place> = (0..).map_while(|client| gate.enter(Lane::Upload, client)).collect();
        assert_eq!((places.len(), gate.taken(Lane::Upload)), (UPLOADS, UPLOADS));
        assert!(gate.enter(Lane::Body, 1).is_some() && gate.enter(Lane::Read, 1).is_some());

        places.pop();

        assert!(gate.enter(Lane::Upload, 1_000).is_some());
    }

    #[test]
    fn a_client_comes_to_half_of_what_is_free_and_a_newcomer_finds_a_place() {
        let gate = Gate::new(64);
        let shares: Vec<_> = (0..4).map(|client| all(&gate, Lane::Read, client)).collect();
        assert_eq!(shares.iter().map(Vec::len).collect::<Vec<_>>(), [512, 256, 128, 64]);

        drop(shares);

        assert_eq!(gate.taken(Lane::Read), 0);
        assert_eq!(all(&gate, Lane::Read, 7).len(), 512, "nothing is remembered of whoever has gone");
    }

    #[test]
    fn a_client_may_have_as_many_uploads_as_a_tenant() {
        for (per_tenant, uploads) in [(64, UPLOADS / 2), (200, 200), (UPLOADS, UPLOADS), (1_000, 1_000)] {
            assert_eq!(all(&Gate::new(per_tenant), Lane::Upload, 1).len(), uploads);
        }
    }
}
