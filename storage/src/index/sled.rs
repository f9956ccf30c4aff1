//! The embedded index: one folder, one process, nothing to install.
//!
//! # How it keeps the contract
//!
//! - **Atomic**: everything lies in one tree (`keys` has the layout), and a group of transitions is one record of a journal in front of it,
//!   which a crash keeps or loses as a whole.
//! - **Durable**: one thread works out what waits (`writer`); another writes it to the journal, syncs that, and only then shows it to readers
//!   and answers (`syncs`, `journal`). What is durable is held in memory (`fresh`) until a third thread has brought it into sled's tree
//!   (`checkpoint`), flushed that, and synced sled's files by handles of its own (`disk` says why that is needed).
//! - **Alone**: sled's file lock keeps a second process out, at once and with a sentence that says what to do.
//! - **Never full**: sled stops writing for good when a write meets a full disk, so free space is looked at before each group, and before
//!   sled is given anything.
//!
//! # What a reader sees
//!
//! Readers run beside the writer. One row is always whole. What takes several rows (an asset with its floor, one audit page) is read
//! under a lock that the writer holds while it shows a group, not while it waits for the disk: such a read is of one moment. A list
//! of assets or runs takes that lock for each item anew, so that a long list never holds up the writer: each item is of one moment,
//! the list is not. The counts of a run are taken without it, and are as exact as a count of something that changes can be.
//!
//! What a sweep at some time would take of one tenant (`preview`) walks the looks of all tenants up to that time, because the queue is in the
//! order of times: it costs a key for each of the others' looks, and reads the rows of its own alone. PostgreSQL has an index for it.
//!
//! Point reads run on the caller's thread, which costs less than handing them over; whatever may walk many rows goes to
//! `spawn_blocking`.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use self::shared::Core;
use self::writer::Writer;
use crate::error::StorageError;
mod artifacts;
mod assets;
mod blobs;
mod calls;
mod checkpoint;
mod disk;
mod draft;
mod ending;
mod fresh;
mod holds;
mod ingest;
mod journal;
mod keys;
mod looks;
mod owed;
mod packed;
mod restore;
mod resumable;
mod rows;
mod runs;
mod shared;
mod syncs;
#[cfg(test)]
mod tests;
mod upkeep;
mod urls;
mod usage;
mod writer;

/// An asset with no more references than this is looked at on the caller's thread.
const FEW: usize = 32;

/// How the index uses its disk and memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SledOptions {
    /// About how much memory sled's cache may take.
    pub cache_bytes: u64,
    /// With less free space than this nothing is added; what ends or removes things goes on down to a quarter of it.
    pub min_free: u64,
    /// When the journal, or what memory holds of it, has grown to this, its rows go into the tree and it is begun anew.
    pub journal_bytes: u64,
}

impl Default for SledOptions {
    /// 128 MiB of cache, 16 MiB of journal, and no look at free space.
    fn default() -> Self {
        Self { cache_bytes: 128 << 20, min_free: 0, journal_bytes: 16 << 20 }
    }
}

/// An [`AssetIndex`](super::AssetIndex) in a folder. Dropping it finishes what is queued and gives the folder free.
pub struct SledIndex {
    // In this order: the writer's thread ends before the tree is closed.
    writer: Writer,
    core: Arc<Core>,
    /// Locked by whoever has the turn to remove bytes.
    removal: Arc<Mutex<()>>,
}

impl SledIndex {
    /// Opens the index in this folder, making it if it is not there.
    ///
    /// [`StorageError::Locked`] if somebody has it open, also in this process.
    pub fn open(path: &Path, options: SledOptions) -> Result<Self, StorageError> {
        let (core, files, journal) = Core::open(path, options)?;
        let core = Arc::new(core);
        let next_event = core.next_event()?;
        let writer = Writer::start(core.clone(), files, journal, next_event)?;
        Ok(Self { writer, core, removal: Arc::default() })
    }

    /// Runs a read that may take long where it blocks nobody.
    async fn walk<T, F>(&self, read: F) -> Result<T, StorageError>
    where
        T: Send + 'static,
        F: FnOnce(&Core) -> Result<T, StorageError> + Send + 'static,
    {
        let core = self.core.clone();
        tokio::task::spawn_blocking(move || read(&core))
            .await
            .map_err(|error| StorageError::Unavailable { store: "index", reason: format!("a read stopped: {error}") })?
    }
}

impl fmt::Debug for SledIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SledIndex").field("path", &self.core.path).finish_non_exhaustive()
    }
}
