//! Reading a blob: as a stream of bounded chunks for the network, or with `Read` and `Seek` for whoever looks at its insides.

use std::fs::File;
use std::io::{self, IoSliceMut, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{FutureExt, Stream, future::BoxFuture};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use rustix::io::ReadWriteFlags;

use super::buffers::{Buffers, CHUNK};
use super::hot::Place;
use super::unavailable;
use crate::error::StorageError;

/// A blob that was opened: it stays readable for whoever holds it, also when it is removed meanwhile.
#[derive(Debug, Clone)]
pub struct Blob {
    source: Source,
    bytes: u64,
}

#[derive(Debug, Clone)]
enum Source {
    File { file: Arc<File>, buffers: Buffers, place: Option<Place> },
    Memory(Bytes),
    Object { objects: Arc<dyn ObjectStore>, path: Path },
}

impl Blob {
    pub(super) fn file(file: File, bytes: u64, buffers: Buffers, place: Option<Place>) -> Self {
        Self { source: Source::File { file: Arc::new(file), buffers, place }, bytes }
    }

    pub(super) fn memory(bytes: Bytes) -> Self {
        Self { bytes: bytes.len() as u64, source: Source::Memory(bytes) }
    }

    pub(super) fn object(objects: Arc<dyn ObjectStore>, path: Path, bytes: u64) -> Self {
        Self { source: Source::Object { objects, path }, bytes }
    }

    /// How many bytes its row says it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Those bytes, in chunks, one in flight. A blob that is shorter than its row says ends in an error, never in silence.
    pub fn stream(&self, range: Range<u64>) -> BlobStream {
        BlobStream { source: self.source.clone(), at: range.start, end: range.end.min(self.bytes), waiting: None }
    }

    /// Those bytes in one piece; for ranges whose size the caller bounds.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes, StorageError> {
        match read_now(&self.source, &range) {
            Some(bytes) => Ok(bytes),
            None => fetch(self.source.clone(), range).await,
        }
    }

    /// The same for a reader who may not be the last: all of a small blob is kept in memory for the next.
    pub async fn read_and_keep(&self, range: Range<u64>) -> Result<Bytes, StorageError> {
        let read = self.read(range.clone()).await?;
        if let Source::File { place: Some(place), .. } = &self.source
            && range == (0..self.bytes)
        {
            place.keep(&read);
        }
        Ok(read)
    }

    /// The blob as a file, for a blocking thread of the runtime.
    pub fn reader(&self) -> BlobReader {
        BlobReader {
            source: self.source.clone(),
            at: 0,
            bytes: self.bytes,
            runtime: tokio::runtime::Handle::try_current().ok(),
        }
    }
}

/// A range of a blob on its way.
pub struct BlobStream {
    source: Source,
    at: u64,
    end: u64,
    waiting: Option<BoxFuture<'static, Result<Bytes, StorageError>>>,
}

impl std::fmt::Debug for BlobStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlobStream").field("at", &self.at).field("end", &self.end).finish_non_exhaustive()
    }
}

impl Stream for BlobStream {
    type Item = Result<Bytes, StorageError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.at >= this.end {
            return Poll::Ready(None);
        }
        let range = this.at..this.end.min(this.at + CHUNK as u64);
        let read = match &mut this.waiting {
            Some(waiting) => ready!(waiting.poll_unpin(context)),
            None => match read_now(&this.source, &range) {
                Some(read) => Ok(read),
                None => {
                    let waiting = this.waiting.insert(fetch(this.source.clone(), range).boxed());
                    ready!(waiting.poll_unpin(context))
                }
            },
        };
        this.waiting = None;
        match &read {
            Ok(bytes) => this.at += bytes.len() as u64,
            Err(_) => this.at = this.end,
        }
        Poll::Ready(Some(read))
    }
}

/// The range, if all of it is in memory or in the page cache: then reading it on the spot is cheaper than a thread hop. `None`: it has
/// to be fetched, or the file system cannot say.
fn read_now(source: &Source, range: &Range<u64>) -> Option<Bytes> {
    let (file, buffers) = match source {
        Source::File { file, buffers, .. } => (file, buffers),
        Source::Memory(bytes) => return part(bytes, range),
        Source::Object { .. } => return None,
    };
    let mut buffer = buffers.take(length(range));
    let mut slices = [IoSliceMut::new(buffer.as_mut())];
    let read = rustix::io::preadv2(file, &mut slices, range.start, ReadWriteFlags::NOWAIT);
    // A short read is the end of the cached pages or of the file; the fetch tells which.
    (read == Ok(length(range))).then(|| buffer.filled())
}

fn part(bytes: &Bytes, range: &Range<u64>) -> Option<Bytes> {
    let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
    (range.end <= bytes.len()).then(|| bytes.slice(range))
}

async fn fetch(source: Source, range: Range<u64>) -> Result<Bytes, StorageError> {
    match source {
        Source::File { file, buffers, .. } => {
            let read = tokio::task::spawn_blocking(move || {
                let mut buffer = buffers.take(length(&range));
                file.read_exact_at(buffer.as_mut(), range.start)?;
                Ok(buffer.filled())
            });
            let read = read.await.map_err(|error| io::Error::other(error.to_string()));
            read.and_then(|read| read).map_err(|error| StorageError::file("store", "reading a blob", &error))
        }
        Source::Memory(bytes) => part(&bytes, &range).ok_or(StorageError::NoSuchBlob),
        Source::Object { objects, path } => match objects.get_range(&path, range).await {
            Ok(bytes) => Ok(bytes),
            Err(object_store::Error::NotFound { .. }) => Err(StorageError::NoSuchBlob),
            Err(error) => Err(unavailable(&error)),
        },
    }
}

fn length(range: &Range<u64>) -> usize {
    usize::try_from(range.end - range.start).expect("a chunk fits into memory")
}

/// A blob with `Read` and `Seek`. It blocks, so it belongs on a blocking thread.
#[derive(Debug)]
pub struct BlobReader {
    source: Source,
    at: u64,
    bytes: u64,
    runtime: Option<tokio::runtime::Handle>,
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.saturating_sub(self.at);
        let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let read = match &self.source {
            Source::File { file, .. } => file.read_at(&mut buffer[..wanted], self.at)?,
            Source::Memory(bytes) => {
                let from = usize::try_from(self.at).map_or(bytes.len(), |at| at.min(bytes.len()));
                let rest = &bytes[from..];
                let read = wanted.min(rest.len());
                buffer[..read].copy_from_slice(&rest[..read]);
                read
            }
            Source::Object { .. } => {
                let runtime = self.runtime.as_ref().ok_or_else(|| io::Error::other("no runtime to fetch with"))?;
                let wanted = wanted.min(CHUNK);
                let range = self.at..self.at + wanted as u64;
                let bytes = runtime.block_on(fetch(self.source.clone(), range)).map_err(io::Error::other)?;
                buffer[..bytes.len()].copy_from_slice(&bytes);
                bytes.len()
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for BlobReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a seek before the beginning"))?;
        Ok(self.at)
    }
}
