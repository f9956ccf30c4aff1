//! The folder and its files: opening, what "durable" takes, and how much room there is.
//!
//! sled keeps `db` (its log, which is also its data), `conf` (the log's shape, written once), `snap.*` (written and synced by sled
//! itself when it opens) and, in `blobs/`, messages that are larger than a segment of the log. Its `flush` on Linux is a
//! `sync_file_range`, which neither empties the disk's own cache nor writes the file's new length, and it does not sync `blobs/` at
//! all. So [`Files::sync`] follows every flush. The files of `journal` lie beside these.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock, statvfs};

use super::SledOptions;
use crate::error::StorageError;

/// How long closing waits for sled's last helper thread to let go of the lock: it holds nothing but memory by then.
const LET_GO: Duration = Duration::from_secs(5);

/// Opens sled in this folder, making it if need be, with everything that leads to it durable.
pub(super) fn open(path: &Path, options: &SledOptions) -> Result<(::sled::Db, Files), StorageError> {
    forget_half_made(path).map_err(|error| StorageError::file("index", "opening the index", &error))?;
    let made = path.ancestors().take_while(|folder| !folder.exists()).count();
    let db = ::sled::Config::new()
        .path(path)
        .cache_capacity(options.cache_bytes)
        // The writer flushes; a second flusher would only race it for the disk.
        .flush_every_ms(None)
        .open()
        .map_err(|error| match &error {
            // sled says so only in words; the version is pinned, and a test holds them.
            ::sled::Error::Io(inner) if inner.to_string().starts_with("could not acquire lock") => {
                StorageError::Locked { path: path.display().to_string() }
            }
            _ => failed("opening the index", error),
        })?;
    db.flush().map_err(|error| failed("writing the index", error))?;
    let files = Files::open(path, made).map_err(|error| StorageError::file("index", "opening the index", &error))?;
    Ok((db, files))
}

/// Removes the shape of a log that was never begun: sled writes `conf` in two pieces before it makes `db`, and does not open what a crash
/// between the two has left.
fn forget_half_made(path: &Path) -> io::Result<()> {
    if path.join("db").exists() {
        return Ok(());
    }
    match fs::remove_file(path.join("conf")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Dropped after sled was closed, it waits until the next open of the folder would get the lock.
#[derive(Debug)]
pub(super) struct Closed(pub(super) PathBuf);

impl Drop for Closed {
    fn drop(&mut self) {
        let Ok(data) = File::open(self.0.join("db")) else {
            return;
        };
        let began = Instant::now();
        while flock(&data, FlockOperation::NonBlockingLockExclusive).is_err() && began.elapsed() < LET_GO {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// How many bytes an ordinary user may still write where this folder lies.
pub(super) fn free_bytes(path: &Path) -> Result<u64, StorageError> {
    let stat = statvfs(path).map_err(|error| StorageError::file("index", "asking for free space", &error.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// What an error of sled's is to us.
pub(super) fn failed(doing: &str, error: ::sled::Error) -> StorageError {
    match error {
        ::sled::Error::Io(error) => StorageError::file("index", doing, &error),
        ::sled::Error::Corruption { .. } => {
            StorageError::Corrupt { store: "index", reason: format!("{doing}: {error}") }
        }
        other => StorageError::Unavailable { store: "index", reason: format!("{doing}: {other}") },
    }
}

/// Second handles of sled's files.
#[derive(Debug)]
pub(super) struct Files {
    data: File,
    blobs: PathBuf,
    /// The blob files that are known to be durable.
    durable: BTreeSet<OsString>,
}

impl Files {
    /// `made` is how many folders, from this one upwards, were not there before.
    fn open(path: &Path, made: usize) -> io::Result<Self> {
        let mut files =
            Self { data: File::open(path.join("db"))?, blobs: path.join("blobs"), durable: BTreeSet::new() };
        File::open(path.join("conf"))?.sync_all()?;
        files.data.sync_all()?;
        files.sync_blobs()?;
        sync_folder(&files.blobs)?;
        // Each folder that was made has its entry in the one above it, and so has one that a killed process had just made.
        for folder in path.canonicalize()?.ancestors().take(made + 2) {
            match sync_folder(folder) {
                // What we may not read, we did not make.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
                done => done?,
            }
        }
        Ok(files)
    }

    /// Makes what sled has flushed safe from a power cut.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.sync_blobs()?;
        self.data.sync_data()
    }

    /// Nearly always an empty folder: rows are small, and only a page of very large ones is written aside.
    fn sync_blobs(&mut self) -> io::Result<()> {
        let names: BTreeSet<OsString> =
            fs::read_dir(&self.blobs)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<io::Result<_>>()?;
        for name in names.difference(&self.durable) {
            match File::open(self.blobs.join(name)) {
                Ok(file) => file.sync_all()?,
                // sled has removed it since we read the folder.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if names.difference(&self.durable).next().is_some() {
            sync_folder(&self.blobs)?;
        }
        self.durable = names;
        Ok(())
    }
}

pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
