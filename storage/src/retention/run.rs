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
        // A run that goes on has no end that nobody gave: what its closing set was for a log that had ended.
        if run.status == RunStatus::Open && matches!(run.end, RunEnd::Default(_)) {
            run.end = RunEnd::Open;
        }
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
            // An open run that an earlier version left with the default of a closing before.
            (RunEnd::Default(end), None) => RunEnd::Default(end.max(after(now, terms.default_run_log))),
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
mod tests;
