//! From memory into the tree: what the journal has kept for long enough.
//!
//! A thread of its own does it, so that transitions go on meanwhile. `journal` has the steps and what a crash between them leaves.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing::{error, warn};

use super::disk::{self, Files};
use super::fresh::Pending;
use super::journal::Ended;
use super::shared::{Core, NOTED};
use crate::error::StorageError;
use crate::fault;

/// So many bytes of rows go into the tree before it is flushed and synced: less than a segment of sled's log, so that what sled writes over
/// has been replaced on the disk before.
const PART: usize = 256 << 10;
/// With less free space than this, and [`AMPLE`] times the part, nothing is given to sled: it never writes again once it met a full disk.
const ROOM: u64 = 4 << 20;
/// About how much sled writes for a row, at the most: the page that it is in.
const AMPLE: u64 = 16;
/// Where there is no room, it is looked for again after this.
const AGAIN: Duration = Duration::from_secs(1);

/// The thread that does checkpoints; dropping it waits until it is done, unless there is no room for that.
pub(super) struct Checkpoints {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    core: Arc<Core>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    due: Option<Due>,
    /// A checkpoint has begun, and has not ended.
    busy: bool,
    /// It waits for room, or has failed.
    stuck: bool,
    closing: bool,
}

/// What a checkpoint writes, and what is superfluous afterwards.
struct Due {
    rows: Arc<Pending>,
    ended: Ended,
}

impl Checkpoints {
    pub(super) fn start(core: Arc<Core>, files: Files) -> io::Result<Self> {
        let shared = Arc::new(Shared { core, state: Mutex::default(), changed: Condvar::new() });
        let thread = shared.clone();
        let thread =
            std::thread::Builder::new().name("mediakeep-checkpoint".into()).spawn(move || thread.run(files))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Begins one, while none is under way.
    pub(super) fn begin(&self, rows: Arc<Pending>, ended: Ended) {
        let mut state = self.shared.lock();
        state.due = Some(Due { rows, ended });
        state.busy = true;
        drop(state);
        self.shared.changed.notify_all();
    }

    pub(super) fn is_busy(&self) -> bool {
        self.shared.lock().busy
    }

    /// Waits for the end of the one that is under way; `false` if that may take for ever.
    pub(super) fn wait(&self) -> bool {
        let waiting = self.shared.changed.wait_while(self.shared.lock(), |state| state.busy && !state.stuck);
        !waiting.unwrap_or_else(PoisonError::into_inner).busy
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported where it happened.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoints").finish_non_exhaustive()
    }
}

impl Shared {
    fn run(&self, mut files: Files) {
        let _ending = Ending(self);
        while let Some(due) = self.next() {
            match self.write(&due, &mut files) {
                Ok(true) => {}
                Ok(false) => return,
                Err(failure) => {
                    error!(error = %failure, "the index could not be written: it takes no more writes until it is opened again");
                    return self.core.refuse_writes(&failure);
                }
            }
            self.lock().busy = false;
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<Due> {
        let waiting = self.changed.wait_while(self.lock(), |state| state.due.is_none() && !state.closing);
        waiting.unwrap_or_else(PoisonError::into_inner).due.take()
    }

    /// Says whether there was room for all of it before the index was closed.
    fn write(&self, due: &Due, files: &mut Files) -> Result<bool, StorageError> {
        let failed = |error| disk::failed("writing the index", error);
        let base = &self.core.base;
        let mut rows = due.rows.iter().peekable();
        while rows.peek().is_some() {
            let mut bytes = 0;
            let part: Vec<_> = std::iter::from_fn(|| {
                let (key, written) = rows.next_if(|_| bytes < PART)?;
                bytes += key.len() + written.value().map_or(0, |value| value.len());
                Some((key, written.value()))
            })
            .collect();
            if !self.wait_for_room(ROOM + AMPLE * bytes as u64)? {
                return Ok(false);
            }
            for (key, value) in part {
                match value {
                    Some(value) => base.tree().insert(key, value).map_err(failed)?,
                    None => base.tree().remove(key).map_err(failed)?,
                };
            }
            self.sync(files)?;
        }
        fault::point("checkpoint.written");
        base.tree().insert(NOTED, &due.ended.last.to_be_bytes()).map_err(failed)?;
        self.sync(files)?;
        fault::point("checkpoint.noted");
        base.end_checkpoint();
        due.ended.remove(&self.core.path).map_err(|error| StorageError::file("index", "removing a journal", &error))?;
        fault::point("checkpoint.ended");
        Ok(true)
    }

    /// Makes durable what sled was given.
    fn sync(&self, files: &mut Files) -> Result<(), StorageError> {
        self.core.base.tree().flush().map_err(|error| disk::failed("flushing the index", error))?;
        files.sync().map_err(|error| StorageError::file("index", "syncing the index", &error))
    }

    /// Waits until so much is free; `false` if the index is closed before that.
    fn wait_for_room(&self, bytes: u64) -> Result<bool, StorageError> {
        while disk::free_bytes(&self.core.path)? < bytes {
            let mut state = self.lock();
            if !state.stuck {
                warn!("the index's disk is nearly full: what the journal has stays there until there is room");
            }
            state.stuck = true;
            self.changed.notify_all();
            let waited = self.changed.wait_timeout_while(state, AGAIN, |state| !state.closing);
            if waited.unwrap_or_else(PoisonError::into_inner).0.closing {
                return Ok(false);
            }
        }
        self.lock().stuck = false;
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// However the thread ends, nobody waits for it afterwards.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.lock().stuck = true;
        self.0.changed.notify_all();
    }
}
