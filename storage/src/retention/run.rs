//! What a host says of its runs, and what becomes of them.

use jiff::{SignedDuration, Timestamp};

use super::{RunEnd, Terms, after};
use crate::ids::RunId;
use crate::record::{RunRecord, RunStatus};

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
    /// The run that it is a fork of.
    pub fork_of: Option<RunId>,
    /// The host's workflow.
    pub workflow_id: Option<String>,
}

/// Why an update cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunConflict {
    /// It would be a fork of itself, or of a fork of it.
    #[error("a run cannot be a fork of itself")]
    Cycle,
    /// It would be a fork of a run that is not known.
    #[error("the run that it is to be a fork of is not known")]
    UnknownParent,
    /// The run, or the one that it would be a fork of, was erased.
    #[error("the run was erased")]
    Erased,
    /// It is a fork of another run already.
    #[error("the run is a fork of {current}")]
    ForkOf {
        /// Of this one.
        current: RunId,
    },
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
            fork_of: None,
            workflow_id: None,
            created_at: now,
            erased_at: None,
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

    /// Whether the run becomes a fork by this update, and so takes up what its parent references; or why it may not.
    ///
    /// `parent` is the run that the update names, if that is known, and `ancestors` are those of the parent: needed only if the run was
    /// known before, since a new one is nobody's parent.
    pub fn becomes_fork(
        before: Option<&Self>,
        update: &RunUpdate,
        parent: Option<&Self>,
        ancestors: &[RunId],
    ) -> Result<bool, RunConflict> {
        let erased = before.is_some_and(|run| run.erased_at.is_some());
        let Some(named) = &update.fork_of else {
            return if erased { Err(RunConflict::Erased) } else { Ok(false) };
        };
        if *named == update.id || ancestors.contains(&update.id) {
            return Err(RunConflict::Cycle);
        }
        let parent = parent.ok_or(RunConflict::UnknownParent)?;
        if erased {
            return Err(RunConflict::Erased);
        }
        match before.and_then(|run| run.fork_of.as_ref()) {
            Some(current) if current == named => Ok(false),
            Some(current) => Err(RunConflict::ForkOf { current: current.clone() }),
            None if parent.erased_at.is_some() => Err(RunConflict::Erased),
            None => Ok(true),
        }
    }

    /// The run after its erasure: it keeps nothing from now on. `None`: it was erased before.
    pub fn erased(&self, now: Timestamp) -> Option<Self> {
        self.erased_at.is_none().then(|| Self {
            status: RunStatus::Closed,
            end: RunEnd::At(now),
            erased_at: Some(now),
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
        if let Some(parent) = &update.fork_of {
            run.fork_of = Some(parent.clone());
        }
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
            fork_of: None,
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
    fn a_run_becomes_a_fork_once_and_of_one_run() {
        let run = |name: &str| RunRecord::referenced(RunId::parse(name).expect("a run"), day(0), &terms());
        let fork = |of: &str| RunUpdate { fork_of: Some(RunId::parse(of).expect("a run")), ..put() };
        let of = |name: &str| RunRecord { fork_of: Some(run(name).id), ..run("run-1") };
        let gone = |run: RunRecord| run.erased(day(1)).expect("it was not erased before");
        let parent = run("parent");
        let other = Err(RunConflict::ForkOf { current: run("other").id });
        for (name, before, update, known, ancestors, right) in [
            ("names none", Some(run("run-1")), put(), None, vec![], Ok(false)),
            ("new", None, fork("parent"), Some(&parent), vec![], Ok(true)),
            ("known before", Some(run("run-1")), fork("parent"), Some(&parent), vec![], Ok(true)),
            ("the same again", Some(of("parent")), fork("parent"), Some(&parent), vec![], Ok(false)),
            (
                "the same, erased since",
                Some(of("parent")),
                fork("parent"),
                Some(&gone(parent.clone())),
                vec![],
                Ok(false),
            ),
            ("another", Some(of("other")), fork("parent"), Some(&parent), vec![], other),
            ("unknown", None, fork("parent"), None, vec![], Err(RunConflict::UnknownParent)),
            ("itself", None, fork("run-1"), None, vec![], Err(RunConflict::Cycle)),
            (
                "a cycle",
                Some(run("run-1")),
                fork("parent"),
                Some(&parent),
                vec![run("run-1").id],
                Err(RunConflict::Cycle),
            ),
            ("of an erased one", None, fork("parent"), Some(&gone(parent.clone())), vec![], Err(RunConflict::Erased)),
            ("erased", Some(gone(run("run-1"))), fork("parent"), Some(&parent), vec![], Err(RunConflict::Erased)),
            ("erased, names none", Some(gone(run("run-1"))), put(), None, vec![], Err(RunConflict::Erased)),
        ] {
            assert_eq!(RunRecord::becomes_fork(before.as_ref(), &update, known, &ancestors), right, "{name}");
        }
    }

    #[test]
    fn a_run_is_erased_once() {
        let run = RunRecord::updated(None, &until(day(9)), day(0), &terms()).expect("a new run");
        let erased = run.erased(day(3)).expect("it was not erased before");

        assert_eq!((erased.end, erased.status), (RunEnd::At(day(3)), RunStatus::Closed));
        assert_eq!((erased.erased_at, erased.revision), (Some(day(3)), 2));
        assert_eq!(erased.erased(day(4)), None);
    }
}
