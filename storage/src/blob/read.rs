//! Reading a blob: as a stream of bounded chunks for the network, or with `Read` and `Seek` for whoever looks at its insides.

use std::fs::File;
use std::io::{self, IoSliceMut, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, Stream, StreamExt, TryFutureExt, TryStreamExt};
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt, path::Path};
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
        let (end, bytes) = (range.end.min(self.bytes), self.bytes);
        BlobStream { source: self.source.clone(), bytes, at: range.start, end, waiting: None, coming: None }
    }

    /// The same, with an answer to whether they are there: an object store is asked for them before this returns.
    pub async fn stream_now(&self, range: Range<u64>) -> Result<BlobStream, StorageError> {
        let mut stream = self.stream(range);
        if let Source::Object { objects, path } = &self.source
            && stream.at < stream.end
        {
            stream.coming = Some(ask(objects.clone(), path.clone(), stream.at..stream.end, self.bytes).await?);
        }
        Ok(stream)
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
            blocks: Vec::new(),
        }
    }
}

/// A range of a blob on its way.
pub struct BlobStream {
    source: Source,
    bytes: u64,
    at: u64,
    end: u64,
    waiting: Option<BoxFuture<'static, Result<Bytes, StorageError>>>,
    /// Of an object store: the rest of the answer to the one request.
    coming: Option<Coming>,
}

type Coming = BoxStream<'static, Result<Bytes, StorageError>>;

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
        if let Source::Object { objects, path } = &this.source {
            let coming = this.coming.get_or_insert_with(|| {
                ask(objects.clone(), path.clone(), this.at..this.end, this.bytes).try_flatten_stream().boxed()
            });
            let next = ready!(coming.poll_next_unpin(context));
            return Poll::Ready(Some(this.came(next)));
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

impl BlobStream {
    /// What an object store sent, which may be less than was asked for, and must not be more.
    fn came(&mut self, next: Option<Result<Bytes, StorageError>>) -> Result<Bytes, StorageError> {
        let sent = next.unwrap_or_else(|| Err(short())).and_then(|bytes| {
            let left = self.end - self.at;
            if bytes.len() as u64 <= left { Ok(bytes) } else { Err(short()) }
        });
        match &sent {
            Ok(bytes) => self.at += bytes.len() as u64,
            Err(_) => self.at = self.end,
        }
        sent
    }
}

/// Asks for a range in one request, whose answer is read as fast as its reader takes it. A connection that breaks off is made again, and
/// goes on where it stopped, as long as the object is the same.
///
/// An object of another size than its row's is as good as none.
async fn ask(objects: Arc<dyn ObjectStore>, path: Path, range: Range<u64>, bytes: u64) -> Result<Coming, StorageError> {
    let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
    match objects.get_opts(&path, options).await {
        Ok(answer) if answer.meta.size != bytes => Err(StorageError::NoSuchBlob),
        Ok(answer) => Ok(answer.into_stream().map_err(|error| unavailable(&error)).boxed()),
        Err(object_store::Error::NotFound { .. }) => Err(StorageError::NoSuchBlob),
        Err(error) => Err(unavailable(&error)),
    }
}

fn short() -> StorageError {
    StorageError::Corrupt { store: "store", reason: "a blob is not as long as its row says".to_owned() }
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
        Source::Object { objects, path } => match objects.get_range(&path, range.clone()).await {
            Ok(bytes) if bytes.len() as u64 == range.end - range.start => Ok(bytes),
            // It is shorter than its row says.
            Ok(_) => Err(StorageError::NoSuchBlob),
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
    /// Of an object store: the blocks that were fetched last, the newest at the end.
    blocks: Vec<(u64, Bytes)>,
}

/// What is fetched from an object store at a time, since each request costs as much as the bytes of a block.
const BLOCK: u64 = 256 << 10;

/// So many blocks are kept: who looks into a file goes to and fro between its head, its tail and where it is.
const BLOCKS: usize = 6;

impl BlobReader {
    /// The bytes from where it stands to the end of that block.
    fn block(&mut self, objects: &Arc<dyn ObjectStore>, path: &Path) -> io::Result<Bytes> {
        let start = self.at - self.at % BLOCK;
        let kept = self.blocks.iter().position(|(at, _)| *at == start);
        let block = match kept {
            Some(kept) => self.blocks.remove(kept).1,
            None => {
                let runtime = self.runtime.as_ref().ok_or_else(|| io::Error::other("no runtime to fetch with"))?;
                let source = Source::Object { objects: objects.clone(), path: path.clone() };
                let range = start..self.bytes.min(start + BLOCK);
                let block = runtime.block_on(fetch(source, range)).map_err(io::Error::other)?;
                if self.blocks.len() == BLOCKS {
                    self.blocks.remove(0);
                }
                block
            }
        };
        self.blocks.push((start, block.clone()));
        let from = usize::try_from(self.at - start).expect("less than a block");
        if from >= block.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(block.slice(from..)) }
    }
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
            Source::Object { objects, path } => {
                let (objects, path) = (objects.clone(), path.clone());
                let block = self.block(&objects, &path)?;
                let read = wanted.min(block.len());
                buffer[..read].copy_from_slice(&block[..read]);
                read
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
