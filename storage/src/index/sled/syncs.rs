//! From drafted to durable: while one sync runs, the transitions that come are drafted already, and the next sync is for all of them.
//!
//! Two threads share the work. The writer does transitions to the draft; this one's thread takes whatever has been drafted, makes the disk
//! keep it, shows it to readers, and answers. So the disk is hardly ever idle, and the more callers there are, the more share a sync.
//! A transition that is alone is synced by the writer itself: it would only pay for the way to another thread.
//!
//! Those who were just answered are back a moment after the next sync could begin. Where they do come back, it waits for them, for a part
//! of the time that a sync takes: so it is for all of them, and not for every other one.
//!
//! Nobody is answered before a sync that began after their transition was drafted has ended; one that wrote nothing has seen what came
//! before it, and so it is answered after that. If the disk has no room, everybody hears it who has seen what was not kept. Once the disk has
//! failed, nobody is told that anything is durable.

use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::StorageError;

/// So many may wait to be made durable before the writer stops to draft more.
const MOST: usize = 1024;

/// For those who may come back a sync waits at most this part of the time that the last one took.
const PART: u32 = 2;

/// And never longer than this: that the disk stood still once is no reason to stand still again.
const LONGEST: Duration = Duration::from_millis(10);

/// Where they do not come back, it is tried again after some more syncs each time, up to so many.
const RARELY: u32 = 64;

/// Somebody who waits to hear what came of a transition.
pub(super) trait Waiting: Send {
    /// Says it, now that it is durable, or why it is not.
    fn answer(self: Box<Self>, durable: Result<(), StorageError>);
}

/// What keeps transitions when the power fails.
pub(super) trait Disk: Send + Sync + 'static {
    /// What transitions have written, for the disk to take. It goes on to have what was taken, until it hears what came of it.
    type Draft: Send;
    /// What was taken.
    type Group;

    /// Takes what is drafted, if that is anything.
    fn take(&self, draft: &mut Self::Draft) -> Option<Self::Group>;
    /// Makes it durable, and then seen by everybody.
    fn keep(&self, group: Self::Group) -> Result<(), Trouble>;
    /// Everybody sees now what was taken.
    fn landed(&self, draft: &mut Self::Draft);
    /// What was taken is not kept; neither can be what was drafted since.
    fn forget(&self, draft: &mut Self::Draft);
}

/// Why a group is not durable.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nothing of it is on the disk, and another one may be kept.
    Refused(StorageError),
    /// Nobody can say what is on the disk.
    Broken(StorageError),
}

/// The writer's end; dropping it waits until everybody has been answered.
pub(super) struct Syncs<D: Disk> {
    shared: Arc<Shared<D>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<D: Disk> {
    state: Mutex<State<D::Draft>>,
    changed: Condvar,
    disk: D,
}

struct State<T> {
    draft: T,
    /// Whose transitions are in the draft.
    drafted: Vec<Box<dyn Waiting>>,
    /// Whether a sync is under way.
    syncing: bool,
    /// Who may come back.
    crowd: Crowd,
    /// Why nothing is durable any more.
    failed: Option<Failure>,
    /// No more is added.
    closed: bool,
    /// Nobody syncs any more.
    over: bool,
}

impl<D: Disk> Syncs<D> {
    pub(super) fn start(disk: D, draft: D::Draft) -> io::Result<Self> {
        let state = State {
            draft,
            drafted: Vec::new(),
            syncing: false,
            crowd: Crowd::default(),
            failed: None,
            closed: false,
            over: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), disk });
        let ending = Ending(shared.clone());
        let thread = std::thread::Builder::new().name("mediakeep-sync".into()).spawn(move || ending.0.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Has a group do its transitions to the draft, and has it answered once they are durable. `more` says whether others wait.
    pub(super) fn add(&self, act: impl FnOnce(&mut D::Draft) -> Vec<Box<dyn Waiting>>, more: impl FnOnce() -> bool) {
        let mut state = self.shared.wait_until(|state| state.drafted.len() < MOST || state.over);
        let group = act(&mut state.draft);
        if state.over {
            // Whoever waits hears that the writer has stopped.
            return;
        }
        let none_expected = state.drafted.is_empty() && !state.syncing && state.crowd.expected <= 1;
        let alone = none_expected && group.len() == 1 && !more();
        let first = state.drafted.is_empty();
        state.drafted.extend(group);
        if alone {
            self.shared.sync(state);
        } else if !state.syncing && (first || state.drafted.len() >= state.crowd.expected) {
            self.shared.changed.notify_all();
        }
    }
}

impl<D: Disk> Drop for Syncs<D> {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported where it happened.
            let _ = thread.join();
        }
    }
}

impl<D: Disk> Shared<D> {
    fn run(&self) {
        loop {
            let state = self.wait_until(|state| state.closed || !state.drafted.is_empty() && !state.syncing);
            if state.drafted.is_empty() {
                return;
            }
            let state = self.wait_for_crowd(state);
            self.sync(state);
        }
    }

    /// Waits until everybody is back who was answered, if it is worth it.
    fn wait_for_crowd<'s>(&self, mut state: MutexGuard<'s, State<D::Draft>>) -> MutexGuard<'s, State<D::Draft>> {
        let (expected, there) = (state.crowd.expected, state.drafted.len());
        let Some(patience) = state.crowd.patience().filter(|_| there < expected) else {
            return state;
        };
        let missing = |state: &mut State<D::Draft>| state.drafted.len() < expected && !state.closed;
        let waited = self.changed.wait_timeout_while(state, patience, missing);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let came = state.drafted.len() - there;
        state.crowd.waited(2 * came >= expected - there);
        state
    }

    /// Makes everything durable that has been drafted, and answers.
    fn sync(&self, mut state: MutexGuard<'_, State<D::Draft>>) {
        let mut group = mem::take(&mut state.drafted);
        state.syncing = true;
        let taken = match &state.failed {
            Some(failure) => Err(failure.clone()),
            // Whoever panicked under the lock has left half of a transition in the draft.
            None if self.state.is_poisoned() => Err(Failure::of(stopped())),
            None => Ok(self.disk.take(&mut state.draft)),
        };
        drop(state);
        self.changed.notify_all();

        let (began, wrote) = (Instant::now(), matches!(taken, Ok(Some(_))));
        let kept = taken.map(|written| written.map_or(Ok(()), |written| self.disk.keep(written)));
        let mut state = self.lock();
        state.syncing = false;
        if wrote {
            state.crowd.last_sync = began.elapsed();
        }
        state.crowd.expected = group.len() + state.drafted.len();
        let durable = match kept {
            Ok(Ok(())) => {
                self.disk.landed(&mut state.draft);
                Ok(())
            }
            Ok(Err(Trouble::Refused(reason))) => {
                self.disk.forget(&mut state.draft);
                group.append(&mut state.drafted);
                Err(Failure::of(reason))
            }
            Ok(Err(Trouble::Broken(reason))) => Err(state.failed.insert(Failure::of(reason)).clone()),
            Err(failure) => Err(state.failed.insert(failure).clone()),
        };
        drop(state);
        self.changed.notify_all();
        answer(&mut group, &durable);
    }

    fn wait_until(&self, enough: impl Fn(&State<D::Draft>) -> bool) -> MutexGuard<'_, State<D::Draft>> {
        let waited = self.changed.wait_while(self.lock(), |state| !enough(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State<D::Draft>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many may come back after they were answered, and whether they do.
#[derive(Debug, Default)]
struct Crowd {
    /// Those whom the last sync was for, and who had come meanwhile.
    expected: usize,
    last_sync: Duration,
    /// So many syncs more do not wait.
    resting: u32,
    /// How many did not the last time.
    rested: u32,
}

impl Crowd {
    /// How long the next sync may wait, if it may.
    fn patience(&mut self) -> Option<Duration> {
        if self.expected <= 1 {
            return None;
        }
        if self.resting > 0 {
            self.resting -= 1;
            return None;
        }
        Some((self.last_sync / PART).min(LONGEST))
    }

    fn waited(&mut self, came_back: bool) {
        self.rested = if came_back { 0 } else { (self.rested * 2).clamp(1, RARELY) };
        self.resting = self.rested;
    }
}

/// However the thread ends, nobody waits for it afterwards.
struct Ending<D: Disk>(Arc<Shared<D>>);

impl<D: Disk> Drop for Ending<D> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.over = true;
        state.drafted.clear();
        drop(state);
        self.0.changed.notify_all();
    }
}

impl<D: Disk> fmt::Debug for Syncs<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Syncs").finish_non_exhaustive()
    }
}

/// What a caller hears of a writer that is no more.
pub(super) fn stopped() -> StorageError {
    StorageError::Unavailable { store: "index", reason: "its writer has stopped".into() }
}

/// Says to each of them what came of it.
pub(super) fn answer(group: &mut Vec<Box<dyn Waiting>>, durable: &Result<(), Failure>) {
    for waiting in group.drain(..) {
        waiting.answer(match durable {
            Ok(()) => Ok(()),
            Err(failure) => Err(failure.again()),
        });
    }
}

/// A failure that many hear of.
#[derive(Debug, Clone)]
pub(super) struct Failure(Arc<StorageError>);

impl Failure {
    pub(super) fn of(error: StorageError) -> Self {
        Self(Arc::new(error))
    }

    fn again(&self) -> StorageError {
        match &*self.0 {
            StorageError::Full { store } => StorageError::Full { store },
            other => StorageError::Unavailable { store: "index", reason: other.to_string() },
        }
    }
}

#[cfg(test)]
mod tests;
