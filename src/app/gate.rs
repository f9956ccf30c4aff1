//! How many requests a process works on at a time; whoever comes beyond that is told at once to come again.
//!
//! What a request may hold is bounded elsewhere; this bounds how many hold it, so that memory and open files have a bound whatever comes.
//! There are three lanes, so that none of them is full because of another: bytes that come in slowly never keep a revocation waiting, nor
//! somebody who reads slowly an upload.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
    lanes: [Free; 3],
}

/// What is free of a lane.
#[derive(Debug)]
struct Free {
    places: usize,
    free: Arc<Semaphore>,
}

/// A place in a lane, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Gate {
    /// With as many uploads at least as one tenant may have.
    pub fn new(uploads_per_tenant: usize) -> Self {
        let lanes = [UPLOADS.max(uploads_per_tenant), BODIES, READS].map(|places| {
            let places = places.min(Semaphore::MAX_PERMITS);
            Free { places, free: Arc::new(Semaphore::new(places)) }
        });
        Self { lanes }
    }

    /// A place, if there is one now.
    pub fn enter(&self, lane: Lane) -> Option<Place> {
        let permit = self.lanes[lane as usize].free.clone().try_acquire_owned().ok()?;
        Some(Place { _permit: permit })
    }

    /// How many places are taken.
    pub fn taken(&self, lane: Lane) -> usize {
        let lane = &self.lanes[lane as usize];
        lane.places.saturating_sub(lane.free.available_permits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_is_full_keeps_nobody_out_of_another() {
        let gate = Gate::new(64);
        let mut places: Vec<Place> = std::iter::from_fn(|| gate.enter(Lane::Upload)).collect();
        assert_eq!((places.len(), gate.taken(Lane::Upload)), (UPLOADS, UPLOADS));
        assert!(gate.enter(Lane::Body).is_some() && gate.enter(Lane::Read).is_some());

        places.pop();

        assert!(gate.enter(Lane::Upload).is_some());
        let larger = Gate::new(1_000);
        assert_eq!(std::iter::from_fn(|| larger.enter(Lane::Upload)).collect::<Vec<_>>().len(), 1_000);
    }
}
