//! A bundle on the disk while it is worked on: a file without a name, gone with whoever holds it.
//!
//! The system frees such a file when the process ends, however it ends: a crash leaves nothing that a sweep would have to find. (Where a
//! file system knows no files without a name, one is made and its name removed before the first byte is written.)
//!
//! Room for it is promised as room for uploads is, on the disk that it lies on: beside the bytes, where they lie in a folder, their disk
//! and their promises; else the disk of the index, or of the system's temporary files.

use std::io::{self, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use mediakeep_storage::{StorageError, TenantId};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use url::Url;

use super::BundleError;
use crate::app::App;
use crate::assets::AssetError;
use crate::assets::ingest::room::Promise;
use crate::config::Settings;
use crate::config::address::IndexPlace;

/// So much is read at once.
const STEP: u64 = 64 << 10;

/// So often a bundle that goes on is held against the free space.
const LOOK_EVERY: u64 = 8 << 20;

/// The file.
#[derive(Debug)]
pub struct Spool {
    file: File,
    /// One of the tenant's uploads, as long as the bundle lies on the disk.
    slot: Arc<OwnedSemaphorePermit>,
    folder: PathBuf,
    promise: Promise,
    least: u64,
    written: u64,
    looked_at: u64,
}

impl Spool {
    /// An empty one, at one of the tenant's places and with room for so many bytes: beside the bytes if they lie in a folder, else beside the index, else where the system
    /// puts such files.
    pub async fn new(app: &App, tenant: &TenantId, room: u64) -> Result<Self, BundleError> {
        let slot = app.upload_slots(tenant).try_acquire_owned().map_err(|_| AssetError::Busy)?;
        let (folder, least) = (folder(&app.settings), app.settings.store.min_free.0);
        let promise = app.room.promise(room, free_space(&folder), least).ok_or_else(full)?;
        let place = folder.clone();
        let made = tokio::task::spawn_blocking(move || tempfile::tempfile_in(place));
        let file = File::from_std(made.await.map_err(io::Error::other)??);
        Ok(Self { file, slot: Arc::new(slot), folder, promise, least, written: 0, looked_at: 0 })
    }

    /// Its place: what is stored of the bundle is stored there, one after the other.
    pub fn slot(&self) -> Arc<OwnedSemaphorePermit> {
        self.slot.clone()
    }

    /// Appends, while there is room.
    pub async fn write(&mut self, chunk: &[u8]) -> Result<(), BundleError> {
        self.written += chunk.len() as u64;
        if self.written - self.looked_at >= LOOK_EVERY {
            self.looked_at = self.written;
            if !self.promise.holds(free_space(&self.folder), self.least) {
                return Err(full());
            }
        }
        self.promise.take(chunk.len() as u64);
        Ok(self.file.write_all(chunk).await?)
    }

    /// Ends the writing.
    pub async fn seal(&mut self) -> io::Result<()> {
        self.file.flush().await
    }

    /// Reads the beginning of a range, at most 64 KiB of it.
    pub async fn read(&mut self, range: &Range<u64>) -> io::Result<Bytes> {
        let length = (range.end - range.start).min(STEP);
        self.file.seek(SeekFrom::Start(range.start)).await?;
        let mut chunk = BytesMut::zeroed(usize::try_from(length).unwrap_or(0));
        self.file.read_exact(&mut chunk).await?;
        Ok(chunk.freeze())
    }
}

fn full() -> BundleError {
    AssetError::Storage(StorageError::Full { store: "store" }).into()
}

/// What is free on the disk of that folder; `None`: nobody knows.
fn free_space(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

fn folder(settings: &Settings) -> PathBuf {
    let store = Url::parse(&settings.store.url).ok().filter(|url| url.scheme() == "file");
    let store = store.and_then(|url| url.to_file_path().ok()).filter(|folder| folder.is_dir());
    let beside_index = || match settings.index.url.place() {
        Ok(IndexPlace::Sled(folder)) => folder.parent().map(Path::to_path_buf).filter(|folder| folder.is_dir()),
        _ => None,
    };
    store.or_else(beside_index).unwrap_or_else(std::env::temp_dir)
}
