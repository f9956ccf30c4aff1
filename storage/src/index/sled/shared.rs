//! What the readers and the writer share: the rows, the lock that makes several reads one moment, and whether writing is over.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use ::sled::{Batch, IVec};

use super::SledOptions;
use super::disk::{self, Closed, Files};
use super::draft::Rows;
use super::fresh::Base;
use super::journal::Journal;
use super::keys::{Key, Parts, Space};
use super::packed::Row;
use super::rows::AssetRow;
use crate::error::StorageError;

/// The layout of `keys`. A later one is refused, an earlier one is brought up to date at opening.
pub(super) const LAYOUT: u8 = 2;

/// Behind the layout's key: up to which record of the journal everything is in the tree.
pub(super) const NOTED: [u8; 2] = [Space::Meta as u8, b'j'];

/// How many rows are brought up to date at a time.
const BATCH: usize = 10_000;

/// What the readers and the writer share.
pub(super) struct Core {
    pub(super) base: Arc<Base>,
    /// Held by the writer while it shows a group to the readers, and by whoever reads several rows as of one moment.
    pub(super) moment: RwLock<()>,
    /// Why no more is written, once that is so.
    broken: OnceLock<String>,
    pub(super) options: SledOptions,
    pub(super) path: PathBuf,
    /// Last, because fields are dropped in order: by then the tree is closed.
    _closed: Closed,
}

impl Core {
    /// Opens the folder, and refuses a layout that this program does not know.
    pub(super) fn open(path: &Path, options: SledOptions) -> Result<(Self, Files, Journal), StorageError> {
        let (db, files) = disk::open(path, &options)?;
        let closed = Closed(path.to_path_buf());
        let noted = db.get(NOTED).map_err(|error| disk::failed("reading the index", error))?;
        let noted = noted.map(|noted| {
            let number = noted.as_ref().try_into().map(u64::from_be_bytes);
            number.map_err(|_| StorageError::Corrupt { store: "index", reason: "what the journal covers".into() })
        });
        let noted = noted.transpose()?;
        let (journal, rows) = Journal::open(path, noted)?;
        let core = Self {
            base: Arc::new(Base::new(db, rows)),
            moment: RwLock::new(()),
            broken: OnceLock::new(),
            options,
            path: path.to_path_buf(),
            _closed: closed,
        };
        core.check_layout()?;
        Ok((core, files, journal))
    }

    fn check_layout(&self) -> Result<(), StorageError> {
        let key = Key::space(Space::Meta);
        match self.rows().get(&key)?.as_deref() {
            Some([LAYOUT]) => Ok(()),
            // An index of that layout never had a journal: what is done to the tree is done to all rows.
            Some([1]) => self.note_equal_bytes(),
            Some(other) => Err(StorageError::Corrupt {
                store: "index",
                reason: format!("layout {other:?}, and this program knows layout {LAYOUT}"),
            }),
            // Durable with the first checkpoint; alone it says nothing.
            None => match self.base.tree().insert(key.as_bytes(), &[LAYOUT]) {
                Ok(_) => Ok(()),
                Err(error) => Err(disk::failed("writing the index", error)),
            },
        }
    }

    /// From layout 1 to 2: assets are found by their bytes. A crash on the way leaves layout 1, and the next opening does it again.
    fn note_equal_bytes(&self) -> Result<(), StorageError> {
        let failed = |error| disk::failed("bringing the index up to date", error);
        let mut batch = Batch::default();
        let mut waiting = 0;
        for row in self.rows().scan(&Key::space(Space::Assets)) {
            let record = AssetRow::read("asset", &row?.1)?.record;
            batch.insert(Key::same(&record.tenant, &record.sha256, record.id).into_bytes(), IVec::default());
            waiting += 1;
            if waiting == BATCH {
                self.base.tree().apply_batch(std::mem::take(&mut batch)).map_err(failed)?;
                waiting = 0;
            }
        }
        // Last, and in one log with what came before: where this is, that is too.
        batch.insert(Key::space(Space::Meta).as_bytes(), &[LAYOUT]);
        self.base.tree().apply_batch(batch).map_err(failed)?;
        self.base.tree().flush().map(drop).map_err(failed)
    }

    /// The number behind that of the last audit event that waits.
    pub(super) fn next_event(&self) -> Result<u64, StorageError> {
        let prefix = Key::space(Space::Waiting);
        match self.base.last(prefix.as_bytes(), &prefix.end())? {
            Some(key) => Ok(Parts::of(&key).number()? + 1),
            None => Ok(0),
        }
    }

    /// The rows, each as it is when it is read.
    pub(super) fn rows(&self) -> Rows<'_> {
        Rows::of(&self.base)
    }

    /// Reads several rows as they are at one moment; to be short.
    pub(super) fn at_once<T>(&self, read: impl FnOnce(Rows<'_>) -> Result<T, StorageError>) -> Result<T, StorageError> {
        let _moment = self.moment.read().unwrap_or_else(PoisonError::into_inner);
        read(self.rows())
    }

    pub(super) fn usable(&self) -> Result<(), StorageError> {
        match self.broken.get() {
            Some(reason) => Err(StorageError::Unavailable { store: "index", reason: reason.clone() }),
            None => Ok(()),
        }
    }

    pub(super) fn refuse_writes(&self, failure: &StorageError) {
        let _ = self.broken.set(format!("an earlier write failed, and what is on the disk is not known: {failure}"));
    }
}
