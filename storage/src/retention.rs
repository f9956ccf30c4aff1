//! How long things are kept: pure functions, the same for every backend.
//!
//! A floor only moves forward. A run's end is one value in one row, so extending a run is one write however many assets it has; an
//! asset's floor is computed from the runs that reference it whenever somebody asks.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::ids::RunId;
use crate::record::{RunRecord, RunStatus};

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

/// What a floor comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FloorSource {
    /// A run's explicit end.
    Run,
    /// A run of which nobody said how long its log is kept.
    Default,
    /// The sender's own wish.
    Ask,
    /// A hold.
    Hold,
    /// Nothing references it yet.
    Unreferenced,
}

/// How long an asset is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// It is live until then; grace included.
    pub until: Until,
    /// Because of this.
    pub source: FloorSource,
    /// Inside this time not even its owner may delete it; grace included. `None`: nothing protects it.
    pub protected: Option<Until>,
}

/// The floor of an asset: the latest of everything that keeps it.
///
/// Without a run that references it, it is kept for `terms.unreferenced` from its creation, but nothing stops its owner from
/// deleting it sooner.
pub fn floor(
    created_at: Timestamp,
    asked_until: Option<Timestamp>,
    run_ends: impl IntoIterator<Item = RunEnd>,
    terms: &Terms,
) -> Floor {
    let ask = asked_until.map(|at| (Until::At(at), FloorSource::Ask));
    let runs = run_ends.into_iter().map(|end| (end.until(), end.source()));
    let mut referenced = false;
    let protected = runs.inspect(|_| referenced = true).chain(ask).max_by_key(|(until, _)| *until);
    let protected = protected.map(|(until, source)| (until.plus(terms.grace), source));
    let unreferenced = (!referenced).then(|| {
        let until = Until::At(after(created_at, terms.unreferenced)).plus(terms.grace);
        (until, FloorSource::Unreferenced)
    });
    let (until, source) = protected
        .into_iter()
        .chain(unreferenced)
        .max_by_key(|(until, _)| *until)
        .expect("an asset without a run has the unreferenced term");
    Floor { until, source, protected: protected.map(|(until, _)| until) }
}

/// Until when the row of a dead asset stays, so that whoever reads the log of a run learns what became of it: the term counts from the
/// end of the last run that references it, or from its death if none does.
pub fn tombstone(died_at: Timestamp, run_ends: impl IntoIterator<Item = RunEnd>, terms: &Terms) -> Until {
    let last = run_ends.into_iter().map(RunEnd::until).max();
    last.unwrap_or(Until::At(died_at)).plus(terms.tombstone_record)
}

/// Something that protects an asset, and how long; grace included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protector {
    /// What it is.
    pub by: ProtectedBy,
    /// Until when it does.
    pub until: Until,
}

/// What protects an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtectedBy {
    /// A run that references it.
    Run(RunId),
    /// Its sender's wish to keep it until then.
    Ask(Timestamp),
}

/// What still protects an asset at `now`: the first of these runs, and the sender's wish last; at most `limit`.
pub fn protectors(
    asked_until: Option<Timestamp>,
    runs: impl IntoIterator<Item = (RunId, RunEnd)>,
    limit: usize,
    terms: &Terms,
    now: Timestamp,
) -> Vec<Protector> {
    let still = |by, end: Until| {
        let until = end.plus(terms.grace);
        (!until.is_past(now)).then_some(Protector { by, until })
    };
    let ask = asked_until.and_then(|at| still(ProtectedBy::Ask(at), Until::At(at)));
    let room = limit.saturating_sub(usize::from(ask.is_some()));
    let runs = runs.into_iter().filter_map(|(run, end)| still(ProtectedBy::Run(run), end.until()));
    runs.take(room).chain(ask).collect()
}

/// What a host says of a run; it changes only what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunUpdate {
    /// Which run.
    pub id: RunId,
    /// When its log ends; `Some(None)` says "without end" on purpose.
    pub log_retain_until: Option<Option<Timestamp>>,
    /// Or how long after the closing, in seconds.
    pub log_retention_seconds: Option<i64>,
    /// Whether its log still grows.
    pub status: Option<RunStatus>,
    /// The host's workflow.
    pub workflow_id: Option<String>,
}

/// Why an update cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RunConflict {
    /// It would end the log sooner than was promised.
    #[error("the run's log is promised until {}", .current.map_or_else(|| "the end of time".into(), |at| at.to_string()))]
    Floor {
        /// What was promised; `None` is without end.
        current: Option<Timestamp>,
    },
}

impl RunRecord {
    /// A run that is known only because something references it.
    pub fn referenced(id: RunId, now: Timestamp, terms: &Terms) -> Self {
        Self {
            id,
            registered: false,
            status: RunStatus::Open,
            end: RunEnd::Default(after(now, terms.default_run_log)),
            retention_after_close: None,
            workflow_id: None,
            created_at: now,
            revision: 1,
        }
    }

    /// The run after a new reference: the log of one that nobody registered is kept a while longer. `None`: nothing changes.
    pub fn touched(&self, now: Timestamp, terms: &Terms) -> Option<Self> {
        let RunEnd::Default(at) = self.end else {
            return None;
        };
        let later = after(now, terms.default_run_log);
        (!self.registered && later > at).then(|| Self {
            end: RunEnd::Default(later),
            revision: self.revision + 1,
            ..self.clone()
        })
    }

    /// The run after the update, or why there is none. `before` is the run as it was, if it was known.
    pub fn updated(
        before: Option<&Self>,
        update: &RunUpdate,
        now: Timestamp,
        terms: &Terms,
    ) -> Result<Self, RunConflict> {
        let mut run =
            before.cloned().unwrap_or_else(|| Self { revision: 0, ..Self::referenced(update.id.clone(), now, terms) });
        let was_open = run.status == RunStatus::Open;
        if !run.registered {
            run.registered = true;
            run.end = RunEnd::Open;
        }
        run.revision += 1;
        run.status = update.status.unwrap_or(run.status);
        if let Some(workflow) = &update.workflow_id {
            run.workflow_id = Some(workflow.clone());
        }
        match update.log_retain_until {
            Some(None) => run.end = RunEnd::Forever,
            Some(Some(at)) => run.end = run.end.moved_to(at)?,
            None => {}
        }
        if let Some(seconds) = update.log_retention_seconds {
            run.retention_after_close = Some(seconds);
            if run.status == RunStatus::Closed {
                let at = after(now, SignedDuration::from_secs(seconds));
                run.end = run.end.moved_to(at)?;
            }
        }
        let closes = run.status == RunStatus::Closed && was_open;
        let says_when = update.log_retain_until.is_some() || update.log_retention_seconds.is_some();
        if closes && !says_when {
            run.end = run.closed_end(now, terms);
        }
        Ok(run)
    }

    /// The end that closing gives: what was promised, or the promised time from now on, whichever is later.
    fn closed_end(&self, now: Timestamp, terms: &Terms) -> RunEnd {
        let promised = self.retention_after_close.map(|seconds| after(now, SignedDuration::from_secs(seconds)));
        match (self.end, promised) {
            (RunEnd::Open | RunEnd::Default(_), Some(at)) => RunEnd::At(at),
            (RunEnd::At(end), Some(at)) => RunEnd::At(end.max(at)),
            (RunEnd::Open, None) => RunEnd::Default(after(now, terms.default_run_log)),
            (end, _) => end,
        }
    }
}

impl RunEnd {
    /// An explicit end in place of this one: from the first explicit end on only a later one.
    fn moved_to(self, at: Timestamp) -> Result<Self, RunConflict> {
        match self {
            Self::Forever => Err(RunConflict::Floor { current: None }),
            Self::At(current) if at < current => Err(RunConflict::Floor { current: Some(current) }),
            _ => Ok(Self::At(at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(n: i64) -> Timestamp {
        Timestamp::from_second(n * 86_400).expect("a time in range")
    }

    fn terms() -> Terms {
        Terms {
            default_run_log: SignedDuration::from_hours(30 * 24),
            unreferenced: SignedDuration::from_hours(24),
            grace: SignedDuration::ZERO,
            tombstone_bytes: SignedDuration::from_hours(24),
            tombstone_record: SignedDuration::from_hours(90 * 24),
        }
    }

    fn put() -> RunUpdate {
        RunUpdate {
            id: RunId::parse("run-1").expect("a run"),
            log_retain_until: None,
            log_retention_seconds: None,
            status: None,
            workflow_id: None,
        }
    }

    fn until(at: Timestamp) -> RunUpdate {
        RunUpdate { log_retain_until: Some(Some(at)), ..put() }
    }

    fn seconds(days: i64) -> RunUpdate {
        RunUpdate { log_retention_seconds: Some(days * 86_400), ..put() }
    }

    fn closing(update: RunUpdate) -> RunUpdate {
        RunUpdate { status: Some(RunStatus::Closed), ..update }
    }

    /// Applies each update on its day.
    fn after_all(updates: &[(i64, RunUpdate)]) -> Result<RunEnd, RunConflict> {
        let mut run: Option<RunRecord> = None;
        for (on, update) in updates {
            run = Some(RunRecord::updated(run.as_ref(), update, day(*on), &terms())?);
        }
        Ok(run.expect("at least one update").end)
    }

    #[test]
    fn a_run_ends_when_its_host_says() {
        use RunEnd::{At, Default, Forever, Open};
        let endless = || RunUpdate { log_retain_until: Some(None), ..put() };
        let kept = |current| Err(RunConflict::Floor { current });
        for (name, updates, right) in [
            ("no end given", vec![(0, put())], Ok(Open)),
            ("explicit", vec![(0, until(day(5)))], Ok(At(day(5)))),
            ("later", vec![(0, until(day(5))), (1, until(day(9)))], Ok(At(day(9)))),
            ("the same again", vec![(0, until(day(5))), (1, until(day(5)))], Ok(At(day(5)))),
            ("earlier", vec![(0, until(day(5))), (1, until(day(4)))], kept(Some(day(5)))),
            ("open, then any", vec![(0, put()), (1, until(day(2)))], Ok(At(day(2)))),
            ("closed without", vec![(0, closing(put()))], Ok(Default(day(30)))),
            ("default, then earlier", vec![(0, closing(put())), (1, until(day(3)))], Ok(At(day(3)))),
            ("seconds wait for the closing", vec![(0, seconds(2))], Ok(Open)),
            ("seconds, then closed", vec![(0, seconds(2)), (5, closing(put()))], Ok(At(day(7)))),
            ("seconds with the closing", vec![(3, closing(seconds(2)))], Ok(At(day(5)))),
            ("seconds after it", vec![(0, closing(put())), (4, seconds(2))], Ok(At(day(6)))),
            ("seconds below the end", vec![(0, closing(until(day(9)))), (1, seconds(2))], kept(Some(day(9)))),
            ("closing with seconds below", vec![(0, until(day(9))), (1, closing(seconds(2)))], kept(Some(day(9)))),
            ("an instant beats earlier seconds", vec![(0, seconds(20)), (1, closing(until(day(9))))], Ok(At(day(9)))),
            ("closing never shortens", vec![(0, until(day(9))), (1, seconds(2)), (2, closing(put()))], Ok(At(day(9)))),
            ("closing keeps an end", vec![(0, until(day(9))), (1, closing(put()))], Ok(At(day(9)))),
            ("forever", vec![(0, endless())], Ok(Forever)),
            ("forever is not lowered", vec![(0, endless()), (1, until(day(9)))], kept(None)),
            ("raised to forever", vec![(0, until(day(9))), (1, endless())], Ok(Forever)),
            ("forever, closed", vec![(0, endless()), (1, closing(put()))], Ok(Forever)),
            ("forever, then seconds", vec![(0, endless()), (1, closing(put())), (2, seconds(1))], kept(None)),
        ] {
            assert_eq!(after_all(&updates), right, "{name}");
        }
    }

    #[test]
    fn a_run_that_nobody_registered_is_kept_from_its_last_reference() {
        let id = RunId::parse("run-1").expect("a run");
        let run = RunRecord::referenced(id, day(0), &terms());
        let touched = run.touched(day(10), &terms()).expect("a later end");

        assert_eq!(touched.end, RunEnd::Default(day(40)));
        assert_eq!(touched.touched(day(9), &terms()), None);
        let registered = RunRecord::updated(Some(&touched), &until(day(12)), day(11), &terms());
        assert_eq!(registered.map(|run| run.end), Ok(RunEnd::At(day(12))));
    }

    #[test]
    fn the_latest_of_all_keeps_an_asset() {
        let grace = Terms { grace: SignedDuration::from_hours(24), ..terms() };
        let floor = |ask: Option<i64>, ends: &[RunEnd]| floor(day(0), ask.map(day), ends.iter().copied(), &grace);

        let alone = floor(None, &[]);
        assert_eq!((alone.until, alone.source), (Until::At(day(2)), FloorSource::Unreferenced));
        assert_eq!(alone.protected, None);

        let asked = floor(Some(9), &[]);
        assert_eq!((asked.until, asked.source), (Until::At(day(10)), FloorSource::Ask));
        assert_eq!(asked.protected, Some(Until::At(day(10))));

        let run = floor(Some(3), &[RunEnd::At(day(4)), RunEnd::Default(day(8))]);
        assert_eq!((run.until, run.source), (Until::At(day(9)), FloorSource::Default));

        let endless = floor(Some(3), &[RunEnd::Open, RunEnd::At(day(4))]);
        assert_eq!((endless.until, endless.source), (Until::Endless, FloorSource::Run));
    }

    #[test]
    fn a_tombstone_counts_from_the_last_run_or_from_the_death() {
        let ends = |ends: &[RunEnd]| tombstone(day(3), ends.iter().copied(), &terms());

        assert_eq!(ends(&[]), Until::At(day(93)));
        assert_eq!(ends(&[RunEnd::At(day(1)), RunEnd::Default(day(2))]), Until::At(day(92)));
        assert_eq!(ends(&[RunEnd::At(day(9)), RunEnd::Open]), Until::Endless);
    }

    #[test]
    fn time_does_not_overflow() {
        let at = after(Timestamp::MAX, SignedDuration::MAX);
        assert_eq!(at, Timestamp::MAX);
    }
}
