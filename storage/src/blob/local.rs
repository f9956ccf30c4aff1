//! Local files: written to a staging folder, synced, renamed into place, and the folders synced after them.
//!
//! A file in place is complete and never written again, only unlinked; whoever has it open reads on. A page that is in memory is
//! read on the spot; one that is not is fetched on the blocking pool (see [`super::read`]).

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ring::digest;
use tokio::task::JoinHandle;

use super::buffers::Buffers;
use super::hot::{Hot, SMALL};
use super::{Blob, PIECE, Sealed};
use crate::error::StorageError;
use crate::ids::{BlobKey, Digest, TenantId};

/// The folder in which the files lie.
#[derive(Debug, Clone)]
pub(super) struct Files {
    root: PathBuf,
    buffers: Buffers,
    hot: Hot,
}

impl Files {
    pub(super) fn open(root: &Path) -> Result<Self, StorageError> {
        let files = Self { root: root.to_owned(), buffers: Buffers::default(), hot: Hot::new() };
        ensure_folder(&files.root.join("staging")).map_err(failed("making the store's folders"))?;
        ensure_folder(&files.root.join("t")).map_err(failed("making the store's folders"))?;
        Ok(files)
    }

    pub(super) fn open_blob(&self, tenant: &TenantId, blob: BlobKey, bytes: u64) -> Result<Blob, StorageError> {
        let small = bytes <= SMALL;
        if small && let Some(kept) = self.hot.get(tenant, blob) {
            return Ok(Blob::memory(kept));
        }
        let place = small.then(|| self.hot.place(tenant, blob));
        match File::open(self.sealed_path(tenant, blob)) {
            Ok(file) => Ok(Blob::file(file, bytes, self.buffers.clone(), place)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StorageError::NoSuchBlob),
            Err(error) => Err(failed("opening a blob")(error)),
        }
    }

    pub(super) async fn remove(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        let paths = [self.sealed_path(tenant, blob), self.staged_path(tenant, blob)];
        let hot = self.hot.clone();
        blocking(move || {
            for path in paths {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(failed("removing a blob")(error));
                    }
                    _ => {}
                }
            }
            hot.removed(blob);
            Ok(())
        })
        .await
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
        let (piece, staged, sealed) = (self.take_gathered(), self.staged.clone(), self.sealed.clone());
        blocking(move || {
            half.take(&piece, &staged).map_err(failed("writing a blob"))?;
            half.finish(&staged, &sealed).map_err(failed("sealing a blob"))
        })
        .await
    }

    pub(super) async fn abort(mut self) -> Result<(), StorageError> {
        // A write that is under way would make the file anew behind us.
        let _ = self.idle().await;
        let staged = self.staged.clone();
        blocking(move || match fs::remove_file(&staged) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("removing a staged blob")(error)),
            _ => Ok(()),
        })
        .await
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

    fn finish(self, staged: &Path, sealed: &Path) -> io::Result<Sealed> {
        let file = self.file.expect("take has made the file");
        file.sync_all()?;
        let folder = sealed.parent().expect("a blob lies in a folder");
        ensure_folder(folder)?;
        fs::rename(staged, sealed)?;
        sync_folder(folder)?;
        let hash = self.hash.finish();
        Ok(Sealed { bytes: self.bytes, sha256: Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes")) })
    }
}

/// Makes the folder and those above it, each durable before the one below it.
fn ensure_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above {
        ensure_folder(above)?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    above.map_or(Ok(()), sync_folder)
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
