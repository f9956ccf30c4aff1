//! Local files: written to a staging folder, synced, renamed into place, and the folders synced after them.
//!
//! A file in place is complete and never written again, only unlinked; whoever has it open reads on. A page that is in memory is
//! read on the spot; one that is not is fetched on the blocking pool (see [`super::read`]).

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use ring::digest;
use tokio::task::JoinHandle;

use super::buffers::Buffers;
use super::hot::{Hot, SMALL};
use super::{Blob, PIECE, Sealed, halves};
use crate::error::StorageError;
use crate::ids::{BlobKey, Digest, TenantId};

/// The folder in which the files lie.
#[derive(Debug, Clone)]
pub(super) struct Files {
    root: PathBuf,
    folders: Folders,
    buffers: Buffers,
    hot: Hot,
}

impl Files {
    pub(super) fn open(root: &Path) -> Result<Self, StorageError> {
        let folders = Folders { root: root.into(), known: Arc::default() };
        let files = Self { root: root.to_owned(), folders, buffers: Buffers::default(), hot: Hot::new() };
        for folder in ["staging", "t"] {
            files.folders.ensure(&files.root.join(folder)).map_err(failed("making the store's folders"))?;
        }
        Ok(files)
    }

    pub(super) fn open_blob(&self, tenant: &TenantId, blob: BlobKey, bytes: u64) -> Result<Blob, StorageError> {
        let small = bytes <= SMALL;
        if small && let Some(kept) = self.hot.get(tenant, blob) {
            return Ok(Blob::memory(kept));
        }
        let place = small.then(|| self.hot.place(tenant, blob));
        match open_whole(&self.sealed_path(tenant, blob), bytes) {
            Ok(file) => Ok(Blob::file(file, bytes, self.buffers.clone(), place)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StorageError::NoSuchBlob),
            Err(error) => Err(failed("opening a blob")(error)),
        }
    }

    pub(super) async fn remove(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        let (sealed, staged) = (self.sealed_path(tenant, blob), self.staged_path(tenant, blob));
        let hot = self.hot.clone();
        blocking(move || {
            // What is not there may have gone a moment before a crash: its folder is synced all the same, for the row goes next.
            let gone = remove_for_good(&sealed).and_then(|()| remove_for_good(&staged));
            hot.removed(blob);
            gone.map_err(failed("removing a blob"))
        })
        .await
    }

    pub(super) async fn remove_staged(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        let staged = self.staged_path(tenant, blob);
        blocking(move || remove_for_good(&staged).map_err(failed("removing a staged blob"))).await
    }

    pub(super) async fn put_again(&self, tenant: &TenantId, fresh: BlobKey, lost: BlobKey) -> Result<(), StorageError> {
        let (from, to) = (self.sealed_path(tenant, fresh), self.sealed_path(tenant, lost));
        // Its own name from when it was staged: whatever a crash leaves there goes with the blob.
        let (between, folders) = (self.staged_path(tenant, fresh), self.folders.clone());
        blocking(move || same_bytes(&from, &between, &to, &folders).map_err(failed("putting a blob again"))).await
    }

    /// Makes a folder of which there are many, so that its entry is durable also if somebody else has just made it.
    pub(super) async fn make_folder(&self, relative: &str) -> Result<(), StorageError> {
        let (folder, folders) = (self.root.join(relative), self.folders.clone());
        let make = move || {
            let above = folder.parent().expect("a record's folder lies in the store");
            folders.ensure(above)?;
            match fs::create_dir(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            sync_folder(above)
        };
        blocking(move || make().map_err(failed("making a folder"))).await
    }

    /// Removes a folder with everything in it, also what a write that was cut off has left. One that is not there is no error.
    pub(super) async fn remove_folder(&self, relative: &str) -> Result<(), StorageError> {
        let folder = self.root.join(relative);
        blocking(move || match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed("removing a folder")(error)),
            Ok(()) => folder.parent().map_or(Ok(()), sync_folder).map_err(failed("removing a folder")),
        })
        .await
    }

    /// Removes a folder, unless something is in it. One that is not there is no error.
    pub(super) async fn remove_empty_folder(&self, relative: &str) -> Result<(), StorageError> {
        let folder = self.root.join(relative);
        blocking(move || match fs::remove_dir(&folder) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => Ok(()),
            Err(error) => Err(failed("removing a folder")(error)),
            Ok(()) => folder.parent().map_or(Ok(()), sync_folder).map_err(failed("removing a folder")),
        })
        .await
    }

    /// Removes what writes of this file have left that were cut off before it was there.
    pub(super) async fn remove_cut_off(&self, relative: &str) -> Result<(), StorageError> {
        let file = self.root.join(relative);
        blocking(move || halves::remove_of(&file).map_err(failed("removing half a record"))).await
    }

    /// The same for every file of the folder whose name is before this one.
    pub(super) async fn remove_cut_off_before(&self, relative: &str, name: &str) -> Result<(), StorageError> {
        let (folder, name) = (self.root.join(relative), name.to_owned());
        blocking(move || halves::remove_before(&folder, &name).map_err(failed("removing half a record"))).await
    }

    pub(super) fn free_space(&self) -> Option<u64> {
        let stat = rustix::fs::statvfs(&self.root).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    pub(super) fn ready(&self) -> Result<(), StorageError> {
        fs::metadata(self.root.join("t")).map(drop).map_err(failed("looking at the store's folder"))
    }

    fn staged_path(&self, tenant: &TenantId, blob: BlobKey) -> PathBuf {
        self.root.join("staging").join(format!("{}.{blob}", tenant.prefix()))
    }

    fn sealed_path(&self, tenant: &TenantId, blob: BlobKey) -> PathBuf {
        let key = blob.to_string();
        self.root.join("t").join(tenant.prefix()).join("b").join(&key[..2]).join(&key)
    }
}

/// A file being written. Pieces are hashed and written on the blocking pool, one at a time, while the next one is gathered.
#[derive(Debug)]
pub(super) struct Staging {
    staged: PathBuf,
    sealed: PathBuf,
    folders: Folders,
    gathered: Vec<Bytes>,
    gathered_bytes: usize,
    writer: Writer,
}

#[derive(Debug)]
enum Writer {
    Idle(Box<Half>),
    Busy(JoinHandle<io::Result<Box<Half>>>),
    /// A write failed: nothing more is taken.
    Broken,
}

/// A file that is half written.
struct Half {
    file: Option<File>,
    hash: digest::Context,
    bytes: u64,
}

impl std::fmt::Debug for Half {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Half").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Staging {
    pub(super) fn new(files: &Files, tenant: &TenantId, blob: BlobKey) -> Self {
        let half = Half { file: None, hash: digest::Context::new(&digest::SHA256), bytes: 0 };
        Self {
            staged: files.staged_path(tenant, blob),
            sealed: files.sealed_path(tenant, blob),
            folders: files.folders.clone(),
            gathered: Vec::new(),
            gathered_bytes: 0,
            writer: Writer::Idle(Box::new(half)),
        }
    }

    pub(super) async fn write(&mut self, chunk: Bytes) -> Result<(), StorageError> {
        self.gathered_bytes += chunk.len();
        self.gathered.push(chunk);
        if self.gathered_bytes < PIECE {
            return Ok(());
        }
        let mut half = self.idle().await?;
        let (piece, path) = (self.take_gathered(), self.staged.clone());
        self.writer = Writer::Busy(tokio::task::spawn_blocking(move || {
            half.take(&piece, &path)?;
            Ok(half)
        }));
        Ok(())
    }

    pub(super) async fn seal(mut self) -> Result<Sealed, StorageError> {
        let mut half = self.idle().await?;
        let piece = self.take_gathered();
        let Self { staged, sealed, folders, .. } = self;
        blocking(move || {
            half.take(&piece, &staged).map_err(failed("writing a blob"))?;
            half.finish(&staged, &sealed, &folders).map_err(failed("sealing a blob"))
        })
        .await
    }

    pub(super) async fn abort(mut self) -> Result<(), StorageError> {
        // A write that is under way would make the file anew behind us.
        let _ = self.idle().await;
        let staged = self.staged.clone();
        blocking(move || remove_for_good(&staged).map_err(failed("removing a staged blob"))).await
    }

    /// Waits for the piece that is being written, if there is one.
    async fn idle(&mut self) -> Result<Box<Half>, StorageError> {
        match std::mem::replace(&mut self.writer, Writer::Broken) {
            Writer::Idle(half) => Ok(half),
            Writer::Busy(task) => {
                let written = task.await.map_err(|error| io::Error::other(error.to_string()));
                written.and_then(|half| half).map_err(failed("writing a blob"))
            }
            Writer::Broken => Err(failed("writing a blob")(io::Error::other("an earlier write failed"))),
        }
    }

    fn take_gathered(&mut self) -> Vec<Bytes> {
        self.gathered_bytes = 0;
        std::mem::take(&mut self.gathered)
    }
}

impl Half {
    fn take(&mut self, piece: &[Bytes], path: &Path) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::options().write(true).create_new(true).mode(0o600).open(path)?),
        };
        for chunk in piece {
            self.hash.update(chunk);
            file.write_all(chunk)?;
            self.bytes += chunk.len() as u64;
        }
        Ok(())
    }

    fn finish(self, staged: &Path, sealed: &Path, folders: &Folders) -> io::Result<Sealed> {
        let file = self.file.expect("take has made the file");
        file.sync_all()?;
        let folder = sealed.parent().expect("a blob lies in a folder");
        folders.ensure(folder)?;
        fs::rename(staged, sealed)?;
        sync_folder(folder)?;
        let hash = self.hash.finish();
        Ok(Sealed { bytes: self.bytes, sha256: Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes")) })
    }
}

/// Puts the file at `to` as well, by way of `between`: complete from the moment that it is there, whatever was there before.
fn same_bytes(from: &Path, between: &Path, to: &Path, folders: &Folders) -> io::Result<()> {
    match fs::remove_file(between) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Not every file system knows a second name for a file.
    if fs::hard_link(from, between).is_err() {
        fs::copy(from, between)?;
        File::open(between)?.sync_all()?;
    }
    let folder = to.parent().expect("a blob lies in a folder");
    folders.ensure(folder)?;
    fs::rename(between, to)?;
    sync_folder(folder)
}

/// Opens a file that has to have so many bytes: what the disk has lost is known before the first of them is promised to anybody.
fn open_whole(path: &Path, bytes: u64) -> io::Result<File> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() && meta.len() == bytes {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the blob has {} bytes and should have {bytes}", meta.len()),
    ))
}

/// The folders that this process has found or made, and whose own entries it has seen to.
///
/// That a folder is there says nothing: another upload may have made it an instant ago, and not have synced its entry yet.
#[derive(Debug, Clone)]
struct Folders {
    root: Arc<Path>,
    known: Arc<Mutex<HashSet<PathBuf>>>,
}

impl Folders {
    /// Makes the folder and those above it, up to one that was there before the store, each durable before the one below it.
    fn ensure(&self, folder: &Path) -> io::Result<()> {
        if self.known().contains(folder) {
            return Ok(());
        }
        let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
        let inside = above.is_some_and(|above| above.starts_with(&*self.root));
        if let Some(above) = above.filter(|_| inside || !folder.is_dir()) {
            self.ensure(above)?;
            match fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            sync_folder(above)?;
        }
        self.known().insert(folder.to_owned());
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the file, so that not even a power cut brings it back. One that is not there is no error.
pub(super) fn remove_for_good(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match path.parent().map_or(Ok(()), sync_folder) {
        // Nothing was ever put there.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        synced => synced,
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> StorageError {
    move |error| StorageError::file("store", doing, &error)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(failed("working on files")(io::Error::other(error.to_string()))))
}
