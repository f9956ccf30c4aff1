//! The one thread that writes: transitions come in by a queue, and go to the disk in groups.
//!
//! The thread takes whatever waits, up to [`GROUP`], and does each in turn to one [`Draft`]. What they wrote becomes one record of
//! the [`Journal`], made durable and answered by [`super::syncs`], so that the price of the disk is shared, and the next group is worked on
//! meanwhile. A transition that fails leaves nothing of its own. If the disk fails nobody can say what is on it, so from then on every
//! write is refused until the index is opened again; reads go on.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};
use tracing::error;

use super::checkpoint::Checkpoints;
use super::disk::{self, Files};
use super::draft::Draft;
use super::fresh::Pending;
use super::journal::Journal;
use super::shared::Core;
use super::syncs::{Disk, Failure, Syncs, Trouble, Waiting, answer, stopped};
use super::usage;
use crate::error::StorageError;

/// How many transitions are done in one go: few enough that the next sync, which waits meanwhile, does not wait for long.
const GROUP: usize = 256;
/// How many wait in the queue before a caller waits to get into it.
const QUEUE: usize = 1024;
/// Transitions that make room may go on until free space is below this part of `min_free`: else a full disk could never be swept.
const RESERVE: u64 = 4;

/// While a checkpoint is under way, memory holds at most so many times the rows that one is begun for.
const BEHIND: u64 = 3;

/// What a transition does to the disk in the long run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// It adds: refused when free space is below the limit.
    Takes,
    /// It ends or removes things, or is needed for that: goes on in the reserve.
    Makes,
}

/// The way to the writer's thread; dropping it waits until what is queued is done.
pub(super) struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Transition>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        core: Arc<Core>,
        files: Files,
        journal: Journal,
        next_event: u64,
    ) -> Result<Self, StorageError> {
        let failed = |error| StorageError::file("index", "starting the writer", &error);
        let (queue, waiting) = mpsc::channel(QUEUE);
        let mut draft = Draft::new(core.base.clone(), next_event);
        let checkpoints = Checkpoints::start(core.clone(), files).map_err(failed)?;
        let disk = IndexDisk { core: core.clone(), journal: Mutex::new(journal), checkpoints };
        disk.bring_up_to_date(&mut draft)?;
        disk.checkpoint();
        let syncs = Syncs::start(disk, draft).map_err(failed)?;
        let thread = std::thread::Builder::new().name("mediakeep-index".into());
        let thread = thread.spawn(move || run(&core, &syncs, waiting)).map_err(failed)?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Does the transition, and returns once it is durable. From the moment that it is queued it happens even if nobody waits for it.
    pub(super) async fn apply<T, F>(&self, room: Room, act: F) -> Result<T, StorageError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Draft) -> Result<T, StorageError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let queued = Box::new(Queued { room, act: Some(act), outcome: None, reply });
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.send(queued).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Without a sender the thread finishes what is queued and returns.
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported where it happened.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

/// Something to be done by the writer, and somebody who waits for it.
trait Transition: Waiting {
    /// Does it to the draft, or leaves the draft as it was.
    fn act(&mut self, draft: &mut Draft, space: &Space);
}

struct Queued<T, F> {
    room: Room,
    act: Option<F>,
    outcome: Option<Result<T, StorageError>>,
    reply: oneshot::Sender<Result<T, StorageError>>,
}

impl<T, F> Transition for Queued<T, F>
where
    T: Send,
    F: FnOnce(&mut Draft) -> Result<T, StorageError> + Send,
{
    fn act(&mut self, draft: &mut Draft, space: &Space) {
        let Some(act) = self.act.take() else {
            return;
        };
        draft.begin();
        let mut outcome = act(draft);
        // A transition that wrote nothing needs no room, and its answer is as good as ever.
        if outcome.is_ok() && draft.wrote() && !space.allows(self.room) {
            outcome = Err(StorageError::Full { store: "index" });
        }
        if outcome.is_err() {
            draft.roll_back();
        }
        self.outcome = Some(outcome);
    }
}

impl<T, F> Waiting for Queued<T, F>
where
    T: Send,
    F: Send,
{
    fn answer(self: Box<Self>, durable: Result<(), StorageError>) {
        let Self { outcome, reply, .. } = *self;
        // Whoever asked may have gone away; what was done stays done.
        let _ = reply.send(durable.and_then(|()| outcome.unwrap_or_else(|| Err(stopped()))));
    }
}

/// How much room there was when the group began.
struct Space {
    free: u64,
    min_free: u64,
}

impl Space {
    fn allows(&self, room: Room) -> bool {
        match room {
            Room::Takes => self.free >= self.min_free,
            Room::Makes => self.free >= self.min_free / RESERVE,
        }
    }
}

fn run(core: &Core, syncs: &Syncs<IndexDisk>, mut waiting: mpsc::Receiver<Box<dyn Transition>>) {
    let mut group = Vec::with_capacity(GROUP);
    while waiting.blocking_recv_many(&mut group, GROUP) > 0 {
        match space(core) {
            Ok(space) => syncs.add(|draft| act(draft, &mut group, &space), || !waiting.is_empty()),
            Err(failure) => {
                let mut group = group.drain(..).map(|transition| transition as Box<dyn Waiting>).collect();
                answer(&mut group, &Err(Failure::of(failure)));
            }
        }
    }
}

/// Does every transition of the group to the draft.
fn act(draft: &mut Draft, group: &mut Vec<Box<dyn Transition>>, space: &Space) -> Vec<Box<dyn Waiting>> {
    let acted = group.drain(..).map(|mut transition| {
        transition.act(draft, space);
        transition as Box<dyn Waiting>
    });
    acted.collect()
}

/// How much room there is, if the index takes writes at all.
fn space(core: &Core) -> Result<Space, StorageError> {
    core.usable()?;
    Ok(Space { free: disk::free_bytes(&core.path)?, min_free: core.options.min_free })
}

/// Where the index lies. Dropping it brings everything into the tree.
struct IndexDisk {
    core: Arc<Core>,
    journal: Mutex<Journal>,
    checkpoints: Checkpoints,
}

impl Disk for IndexDisk {
    type Draft = Draft;
    type Group = Arc<Pending>;

    fn take(&self, draft: &mut Draft) -> Option<Arc<Pending>> {
        draft.take()
    }

    fn keep(&self, group: Arc<Pending>) -> Result<(), Trouble> {
        let mut journal = self.journal();
        let appended = self.make_way(&mut journal).and_then(|()| journal.append(&group));
        appended.inspect_err(|trouble| self.note(trouble))?;
        let _moment = self.core.moment.write().unwrap_or_else(PoisonError::into_inner);
        self.core.base.add(&group);
        Ok(())
    }

    fn landed(&self, draft: &mut Draft) {
        draft.landed();
    }

    fn forget(&self, draft: &mut Draft) {
        draft.forget();
    }
}

impl IndexDisk {
    /// Writes anew what an earlier version wrote otherwise.
    fn bring_up_to_date(&self, draft: &mut Draft) -> Result<(), StorageError> {
        usage::take_over(draft)?;
        let Some(group) = draft.take() else {
            return Ok(());
        };
        self.keep(group).map_err(|trouble| match trouble {
            Trouble::Refused(reason) | Trouble::Broken(reason) => reason,
        })?;
        draft.landed();
        Ok(())
    }

    /// Begins a checkpoint if it is time, and waits for one that is behind.
    fn make_way(&self, journal: &mut Journal) -> Result<(), Trouble> {
        let (most, memory) = (self.core.options.journal_bytes, self.core.base.young_bytes());
        if memory.max(journal.bytes()) < most {
            return Ok(());
        }
        let behind = memory >= most.saturating_mul(BEHIND);
        if self.checkpoints.is_busy() {
            return match behind {
                false => Ok(()),
                true if self.checkpoints.wait() => self.begin(journal),
                true => Err(Trouble::Refused(StorageError::Full { store: "index" })),
            };
        }
        match self.begin(journal) {
            // There is no room for another segment, and yet there may be some in this one.
            Err(Trouble::Refused(_)) if !behind => Ok(()),
            begun => begun,
        }
    }

    fn begin(&self, journal: &mut Journal) -> Result<(), Trouble> {
        let ended = journal.begin_segment()?;
        self.checkpoints.begin(self.core.base.begin_checkpoint(), ended);
        Ok(())
    }

    /// Begins a checkpoint if there is anything for it, and none is under way.
    fn checkpoint(&self) {
        if self.core.base.young_bytes() == 0 || self.checkpoints.is_busy() {
            return;
        }
        if let Err(trouble) = self.begin(&mut self.journal()) {
            self.note(&trouble);
        }
    }

    fn note(&self, trouble: &Trouble) {
        if let Trouble::Broken(failure) = trouble {
            error!(error = %failure, "the index could not be written: it takes no more writes until it is opened again");
            self.core.refuse_writes(failure);
        }
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for IndexDisk {
    fn drop(&mut self) {
        // Where that cannot be done, the journal has it.
        if self.core.usable().is_ok() && self.checkpoints.wait() {
            self.checkpoint();
            self.checkpoints.wait();
        }
    }
}
