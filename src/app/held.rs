//! Memory for request bodies that are held whole while they are worked on.
//!
//! Most bodies are read as they come. Those that are not are JSON of up to `limits.max_json_bytes`, and what is made of them takes about as
//! much again; so all of them together, at any time, have room for two of the longest. Who finds none is asked to come again.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many of the longest bodies are held at a time.
const BODIES: u64 = 2;

/// What is counted at once, in bytes.
const UNIT: u64 = 64 << 10;

/// Room for bodies.
#[derive(Debug, Clone)]
pub struct Held(Arc<Semaphore>);

/// What one body has of it, until it is dropped.
#[derive(Debug)]
pub struct Hold {
    held: Held,
    bytes: u64,
    permit: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// Room for bodies of which the longest has so many bytes.
    pub fn new(longest: u64) -> Self {
        let units = longest.div_ceil(UNIT).saturating_mul(BODIES);
        Self(Arc::new(Semaphore::new(usize::try_from(units).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS))))
    }

    /// For how many bytes there is room now.
    pub fn left(&self) -> u64 {
        self.0.available_permits() as u64 * UNIT
    }

    /// For a body of which nothing has come yet.
    pub fn begin(&self) -> Hold {
        Hold { held: self.clone(), bytes: 0, permit: None }
    }
}

impl Hold {
    /// Takes room for so many more bytes; `false`: there is none now. What was taken stays taken.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let before = self.bytes.div_ceil(UNIT);
        self.bytes = self.bytes.saturating_add(bytes);
        let more = u32::try_from(self.bytes.div_ceil(UNIT) - before).unwrap_or(u32::MAX);
        if more == 0 {
            return true;
        }
        let Ok(permit) = self.held.0.clone().try_acquire_many_owned(more) else {
            return false;
        };
        match &mut self.permit {
            Some(all) => all.merge(permit),
            None => self.permit = Some(permit),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_the_longest_are_held_and_no_byte_more_until_one_is_gone() {
        let held = Held::new(10 * UNIT);
        let (mut one, mut two, mut three) = (held.begin(), held.begin(), held.begin());
        assert!(one.grow(10 * UNIT) && two.grow(1) && two.grow(10 * UNIT - 1));
        assert!(!three.grow(1));

        drop(one);

        assert!(held.begin().grow(10 * UNIT));
        assert!(!two.grow(10 * UNIT + 1));
    }
}
