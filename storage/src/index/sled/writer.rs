//! The one thread that writes: transitions come in by a queue, and go to the disk in groups.
//!
//! The thread takes whatever waits, up to [`GROUP`], applies each in turn to one [`Draft`], hands sled one batch, makes it durable,
//! and only then answers, so that the price of the disk is shared. A transition that fails leaves nothing of its own. If the disk
//! fails nobody can say what is on it, so from then on every write is refused until the index is opened again; reads go on.

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};
use tracing::error;

use super::disk::{self, Files};
use super::draft::Draft;
use super::shared::Core;
use crate::error::StorageError;

/// How many transitions share one sync: enough that a busy host's wait for the disk is all shared, few enough that the first of a
/// group does not wait for long.
const GROUP: usize = 256;
/// How many wait in the queue before a caller waits to get into it.
const QUEUE: usize = 1024;
/// Transitions that make room may go on until free space is below this part of `min_free`: else a full disk could never be swept.
const RESERVE: u64 = 4;

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
    pub(super) fn start(core: Arc<Core>, files: Files, next_event: u64) -> io::Result<Self> {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let draft = Draft::new(core.tree().clone(), next_event);
        let thread = std::thread::Builder::new()
            .name("mediakeep-index".into())
            .spawn(move || Group { core: &core, files, draft }.run(waiting))?;
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

fn stopped() -> StorageError {
    StorageError::Unavailable { store: "index", reason: "its writer has stopped".into() }
}

/// Something to be done by the writer, and somebody who waits for it.
trait Transition: Send {
    /// Does it to the draft, or leaves the draft as it was.
    fn act(&mut self, draft: &mut Draft, space: &Space);
    /// Says what came of it, now that it is durable, or why it is not.
    fn answer(self: Box<Self>, durable: Result<(), StorageError>);
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

struct Group<'c> {
    core: &'c Core,
    files: Files,
    draft: Draft,
}

impl Group<'_> {
    fn run(mut self, mut waiting: mpsc::Receiver<Box<dyn Transition>>) {
        let mut group = Vec::with_capacity(GROUP);
        while waiting.blocking_recv_many(&mut group, GROUP) > 0 {
            let durable = self.apply(&mut group);
            for transition in group.drain(..) {
                transition.answer(match &durable {
                    Ok(()) => Ok(()),
                    Err(failure) => Err(failure.again()),
                });
            }
        }
    }

    fn apply(&mut self, group: &mut [Box<dyn Transition>]) -> Result<(), Failure> {
        self.core.usable().map_err(Failure)?;
        let free = disk::free_bytes(&self.core.path).map_err(Failure)?;
        let space = Space { free, min_free: self.core.options.min_free };
        for transition in group {
            transition.act(&mut self.draft, &space);
        }
        self.commit().map_err(|failure| {
            error!(error = %failure, "the index could not be written: it takes no more writes until it is opened again");
            self.core.refuse_writes(&failure);
            Failure(failure)
        })
    }

    fn commit(&mut self) -> Result<(), StorageError> {
        let Some(batch) = self.draft.take_batch() else {
            return Ok(());
        };
        {
            let _moment = self.core.moment.write().unwrap_or_else(PoisonError::into_inner);
            self.core.tree().apply_batch(batch).map_err(|error| disk::failed("writing the index", error))?;
        }
        self.core.tree().flush().map_err(|error| disk::failed("flushing the index", error))?;
        self.files.sync().map_err(|error| StorageError::file("index", "syncing the index", &error))
    }
}

/// A failure that everybody in the group hears of.
struct Failure(StorageError);

impl Failure {
    fn again(&self) -> StorageError {
        match &self.0 {
            StorageError::Full { store } => StorageError::Full { store },
            other => StorageError::Unavailable { store: "index", reason: other.to_string() },
        }
    }
}
