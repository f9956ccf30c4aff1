//! A bundle on the disk while it is worked on: a file without a name, gone with whoever holds it.

use std::io::{self, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use url::Url;

use crate::config::Settings;
use crate::config::address::IndexPlace;

/// So much is read at once.
const STEP: u64 = 64 << 10;

/// The file.
#[derive(Debug)]
pub struct Spool {
    file: File,
}

impl Spool {
    /// An empty one, beside the bytes if they lie in a folder, else beside the index, else where the system puts such files.
    pub async fn new(settings: &Settings) -> io::Result<Self> {
        let folder = folder(settings);
        let made = tokio::task::spawn_blocking(move || match folder {
            Some(folder) => tempfile::tempfile_in(folder),
            None => tempfile::tempfile(),
        });
        Ok(Self { file: File::from_std(made.await.map_err(io::Error::other)??) })
    }

    /// Appends.
    pub async fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.file.write_all(chunk).await
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

fn folder(settings: &Settings) -> Option<PathBuf> {
    let store = Url::parse(&settings.store.url).ok().filter(|url| url.scheme() == "file");
    let store = store.and_then(|url| url.to_file_path().ok()).filter(|folder| folder.is_dir());
    store.or_else(|| match settings.index.url.place() {
        Ok(IndexPlace::Sled(folder)) => folder.parent().map(Path::to_path_buf).filter(|folder| folder.is_dir()),
        _ => None,
    })
}
