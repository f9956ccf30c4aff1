//! How long things are kept: pure functions, the same for every backend.
//!
//! A floor only moves forward, until a hold is lifted or a run erased. A run's end is one value in one row, so extending a run is one
//! write however many assets it has; an asset's floor is computed from the runs that reference it whenever somebody asks.
//!
//! A hold wins over everything, and an erasure over every floor.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

mod floor;
mod run;

pub use floor::{
    Floor, FloorSource, Next, Own, ProtectedBy, Protector, Stake, erased_with_its_runs, floor, next, protectors,
};
pub use run::{RunConflict, RunUpdate};

/// An instant, or no end at all. `Endless` is later than every instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Until {
    /// Until this instant; from it on the time is past.
    At(Timestamp),
    /// Without end.
    Endless,
}

impl Until {
    /// Whether the time has come.
    pub fn is_past(self, now: Timestamp) -> bool {
        matches!(self, Self::At(at) if at <= now)
    }

    /// The instant, if there is one.
    pub fn instant(self) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(at),
            Self::Endless => None,
        }
    }

    /// The same, later by that much.
    pub fn plus(self, by: SignedDuration) -> Self {
        match self {
            Self::At(at) => Self::At(after(at, by)),
            Self::Endless => Self::Endless,
        }
    }
}

/// `at + by`, or the last instant there is.
pub fn after(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// When a run's log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", content = "at", rename_all = "snake_case")]
pub enum RunEnd {
    /// No end was given yet: kept without end, and the first explicit end may be any.
    Open,
    /// Without end on purpose; never lowered.
    Forever,
    /// The host said so; only a later end replaces it.
    At(Timestamp),
    /// Nobody said; the first explicit end replaces it, also an earlier one.
    Default(Timestamp),
}

impl RunEnd {
    /// How long that is.
    pub fn until(self) -> Until {
        match self {
            Self::Open | Self::Forever => Until::Endless,
            Self::At(at) | Self::Default(at) => Until::At(at),
        }
    }

    /// Where the end comes from.
    pub fn source(self) -> FloorSource {
        match self {
            Self::Default(_) => FloorSource::Default,
            _ => FloorSource::Run,
        }
    }
}

/// Lengths of time that the operator sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long the log of a run is kept of which nobody said more.
    pub default_run_log: SignedDuration,
    /// How long an upload that no run references is kept.
    pub unreferenced: SignedDuration,
    /// How much longer than its floor an asset is kept.
    pub grace: SignedDuration,
    /// How long an expired asset's bytes stay, so that a new upload of the same can take them up.
    pub tombstone_bytes: SignedDuration,
    /// How long a dead asset's row stays after the last run that referenced it has ended.
    pub tombstone_record: SignedDuration,
}

/// How long a dead asset's bytes stay, once their time has come, before somebody looks again whether a hold still keeps them.
pub const HOLD_RECHECK: SignedDuration = SignedDuration::from_hours(24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_overflow() {
        let at = after(Timestamp::MAX, SignedDuration::MAX);
        assert_eq!(at, Timestamp::MAX);
    }
}
