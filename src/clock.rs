//! What time it is. Everything that depends on the time asks here, so that a test can turn it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use mediakeep_storage::Timestamp;

/// A clock in whole milliseconds: what we store and sign has no finer time.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's.
    System,
    /// One that stands still until it is turned.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands at this instant.
    pub fn manual(at: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(at.as_millisecond())))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        let millis = match self {
            Self::System => Timestamp::now().as_millisecond(),
            Self::Manual(millis) => millis.load(Ordering::SeqCst),
        };
        Timestamp::from_millisecond(millis).expect("a whole millisecond of a time in range")
    }

    /// Turns a manual clock on; the machine's is nobody's to turn.
    pub fn advance(&self, by: std::time::Duration) {
        if let Self::Manual(millis) = self {
            let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            millis.fetch_add(by, Ordering::SeqCst);
        }
    }
}
