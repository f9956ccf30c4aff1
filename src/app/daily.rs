//! What is done no more often than once in a while, whoever asks.

use std::sync::{Mutex, PoisonError};

use jiff::SignedDuration;
use mediakeep_storage::Timestamp;
use mediakeep_storage::retention::after;

/// When this process began it last.
#[derive(Debug, Default)]
pub struct Daily(Mutex<Option<Timestamp>>);

impl Daily {
    /// Whether so much time has passed since it was begun, or it never was; then it counts as begun, whatever comes of it.
    pub fn begins(&self, every: SignedDuration, now: Timestamp) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| after(last, every) <= now);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}
