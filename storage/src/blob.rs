//! Bytes: immutable blobs under random keys, and small recovery records beside them.
//!
//! A blob is written once, sealed, read, removed; it never changes, so whoever has opened one may go on reading it. What is staged
//! and not sealed is nobody's: [`BlobStore::remove`] takes it away too. [`Staging::seal`] returns when the bytes and the way to them
//! are durable.
//!
//! Local files have a path of their own: a request for a small hot file should cost a system call or two, and the stream
//! of a general object store costs a dozen thread hops. Everything else speaks to [`object_store::ObjectStore`].
//!
//! ```text
//! staging/<tenant>.<key>            being written: the bytes (local files), or the note of an upload in parts (anywhere else)
//! t/<tenant>/b/<kk>/<key>           a sealed blob
//! t/<tenant>/r/<what>/<id>/<n>.json a recovery record; of one <id> the highest <n> counts
//! t/<tenant>/r/q/<run>/<name>.json  what a run quotes; of one <run> all of them count
//! <name>                            a note that is of no tenant
//! ```

use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use jiff::Timestamp;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use url::Url;

use crate::error::StorageError;
use crate::ids::{BlobKey, Digest, TenantId};

mod buffers;
mod cloud;
mod copy;
mod halves;
mod hot;
mod kept;
mod local;
mod object;
mod read;
mod records;
mod room;
mod signed;
mod unsealed;
mod whole;

pub use cloud::{S3Options, StoreOptions};
pub use copy::Copied;
pub use kept::{Kept, Reading, Unreadable};
pub use read::{Blob, BlobReader, BlobStream};
#[cfg(test)]
use records::text_prefix;
pub use records::{RecordOf, ReferencesOf};
pub use signed::{Shown, SignedUrl};
pub use unsealed::Unsealed;

/// Where blobs and their records lie.
#[derive(Debug, Clone)]
pub struct BlobStore {
    objects: Arc<dyn ObjectStore>,
    way: Way,
}

/// How bytes go in and out.
#[derive(Debug, Clone)]
enum Way {
    Files(local::Files),
    Objects(object::Objects),
}

/// What was sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed {
    /// How many bytes.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: Digest,
}

/// A blob that the store holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Whose folder it lies in.
    pub tenant: TenantId,
    /// Its key.
    pub blob: BlobKey,
    /// How many bytes it has.
    pub bytes: u64,
    /// When it was written.
    pub modified: Timestamp,
}

impl BlobStore {
    /// Opens the store at that address: `file:` (the folder is made), `memory:`, `s3:`, `gs:` or `az:`. Of one over the network nothing is
    /// asked yet: [`BlobStore::ready`] does.
    pub fn open(address: &Url, options: &StoreOptions) -> Result<Self, StorageError> {
        match address.scheme() {
            "memory" => Ok(Self::of(object::Objects::new(InMemory::new(), Path::ROOT))),
            "file" => {
                let root = folder_of(address)?;
                let files = local::Files::open(&root)?;
                let objects = object_store::local::LocalFileSystem::new_with_prefix(&root)
                    .map_err(|error| unavailable(&error))?
                    .with_fsync(true);
                Ok(Self { objects: Arc::new(objects), way: Way::Files(files) })
            }
            other => cloud::open(address, options).map_or_else(
                || {
                    let why = format!("store.url: it is file:, memory:, s3:, gs: or az:, not {other}:");
                    Err(StorageError::BadAddress(why))
                },
                |opened| opened.map(Self::of),
            ),
        }
    }

    fn of(objects: object::Objects) -> Self {
        Self { objects: objects.whole.clone(), way: Way::Objects(objects) }
    }

    /// The largest blob that it takes, where there is one.
    pub fn largest(&self) -> Option<u64> {
        matches!(self.way, Way::Objects(_)).then_some(object::LARGEST)
    }

    /// How many things whoever is in no hurry may ask of it at a time. Over a network they share the wait. On this machine's own disk each
    /// of them is a thread that wants a processor, and whoever is served meanwhile waits behind all of them.
    pub fn side_by_side(&self) -> usize {
        match self.way {
            Way::Files(_) => 4,
            Way::Objects(_) => 32,
        }
    }

    /// A place to write a new blob to.
    pub fn stage(&self, tenant: &TenantId, blob: BlobKey) -> Staging {
        let stage = match &self.way {
            Way::Files(files) => Stage::Local(Box::new(local::Staging::new(files, tenant, blob))),
            Way::Objects(objects) => {
                Stage::Object(Box::new(object::Staging::new(objects.clone(), place(tenant, blob))))
            }
        };
        Staging { stage, small: BytesMut::new() }
    }

    /// Opens a blob of which `bytes` are known to be there.
    pub async fn open_blob(&self, tenant: &TenantId, blob: BlobKey, bytes: u64) -> Result<Blob, StorageError> {
        match &self.way {
            Way::Files(files) => files.open_blob(tenant, blob, bytes),
            Way::Objects(_) => Ok(Blob::object(self.objects.clone(), blob_path(tenant, blob), bytes)),
        }
    }

    /// Removes a blob, staged or sealed. One that is not there is no error: a crash may have come between the removal and its note.
    pub async fn remove(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        match &self.way {
            Way::Files(files) => files.remove(tenant, blob).await,
            Way::Objects(objects) => objects.remove(&place(tenant, blob)).await,
        }
    }

    /// Gives the blob `lost` the bytes of the sealed blob `fresh`, which keeps them too: durable when this returns. For bytes that the store
    /// has lost and that have come again; whoever reads `lost` meanwhile reads the old bytes or the new ones.
    pub async fn put_again(&self, tenant: &TenantId, fresh: BlobKey, lost: BlobKey) -> Result<(), StorageError> {
        match &self.way {
            Way::Files(files) => files.put_again(tenant, fresh, lost).await,
            Way::Objects(_) => {
                let bytes = self.size(tenant, fresh).await?.ok_or(StorageError::NoSuchBlob)?;
                if bytes > LARGEST_COPY {
                    return self.copy_in_parts(tenant, fresh, lost, bytes).await;
                }
                let copied = self.objects.copy(&blob_path(tenant, fresh), &blob_path(tenant, lost)).await;
                copied.map_err(|error| unavailable(&error))
            }
        }
    }

    /// Every sealed blob, in no order; what does not look like one of ours is passed over.
    pub fn blobs(&self) -> BoxStream<'_, Result<Stored, StorageError>> {
        self.objects
            .list(Some(&Path::from("t")))
            .map_err(|error| unavailable(&error))
            .try_filter_map(|meta| async move { Ok(stored(&meta)) })
            .boxed()
    }

    /// Size of the blob, if it is there.
    pub async fn size(&self, tenant: &TenantId, blob: BlobKey) -> Result<Option<u64>, StorageError> {
        match self.objects.head(&blob_path(tenant, blob)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// What [`BlobStore::put_note`] wrote last under that name.
    pub async fn note(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        match self.objects.get(&Path::from(name)).await {
            Ok(got) => got.bytes().await.map(Some).map_err(|error| unavailable(&error)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Notes something of the store as a whole, beside all tenants' folders: durable when this returns.
    pub async fn put_note(&self, name: &str, note: Vec<u8>) -> Result<(), StorageError> {
        self.objects.put(&Path::from(name), note.into()).await.map(drop).map_err(|error| unavailable(&error))
    }

    /// Whether nothing was ever stored here.
    pub async fn is_empty(&self) -> Result<bool, StorageError> {
        let first = self.objects.list(Some(&Path::from("t"))).next().await;
        first.transpose().map(|found| found.is_none()).map_err(|error| unavailable(&error))
    }

    /// How much room is left, where that is a question with an answer.
    pub fn free_space(&self) -> Option<u64> {
        match &self.way {
            Way::Files(files) => files.free_space(),
            Way::Objects(_) => None,
        }
    }

    /// Whether the store answers. A bucket is asked for a list: of one that is gone, a single object is as missing as of one that is there.
    pub async fn ready(&self) -> Result<(), StorageError> {
        match &self.way {
            Way::Files(files) => files.ready(),
            Way::Objects(_) => self.is_empty().await.map(drop),
        }
    }
}

/// A blob being written: hashed on its way. Dropped before it is sealed, it is nobody's; `abort` removes it at once.
#[derive(Debug)]
pub struct Staging {
    stage: Stage,
    /// Small chunks, put together: each may hold on to a far larger buffer of whoever sent it.
    small: BytesMut,
}

#[derive(Debug)]
enum Stage {
    Local(Box<local::Staging>),
    Object(Box<object::Staging>),
}

impl Staging {
    /// Takes the next bytes; returns when there is room for more. At most two pieces wait for the disk: one is written while the next
    /// is gathered.
    pub async fn write(&mut self, chunk: Bytes) -> Result<(), StorageError> {
        if chunk.len() < SMALL_CHUNK {
            self.small.extend_from_slice(&chunk);
            return if self.small.len() < SMALL_CHUNKS { Ok(()) } else { self.write_small().await };
        }
        self.write_small().await?;
        self.stage.write(chunk).await
    }

    /// Ends the blob: when this returns it is complete and durable.
    pub async fn seal(mut self) -> Result<Sealed, StorageError> {
        self.write_small().await?;
        match self.stage {
            Stage::Local(staging) => staging.seal().await,
            Stage::Object(staging) => staging.seal().await,
        }
    }

    /// Takes back what was written.
    pub async fn abort(self) -> Result<(), StorageError> {
        match self.stage {
            Stage::Local(staging) => staging.abort().await,
            Stage::Object(mut staging) => staging.abort().await,
        }
    }

    async fn write_small(&mut self) -> Result<(), StorageError> {
        if self.small.is_empty() {
            return Ok(());
        }
        let together = self.small.split().freeze();
        self.stage.write(together).await
    }
}

impl Stage {
    async fn write(&mut self, chunk: Bytes) -> Result<(), StorageError> {
        match self {
            Self::Local(staging) => staging.write(chunk).await,
            Self::Object(staging) => staging.write(chunk).await,
        }
    }
}

/// A chunk below this is copied; copying a larger one would cost more than it saves.
const SMALL_CHUNK: usize = 4 * 1024;

/// So many bytes of small chunks go on together.
const SMALL_CHUNKS: usize = 64 * 1024;

/// The largest object that S3 copies at one request.
const LARGEST_COPY: u64 = 5 << 30;

/// What is gathered before the disk is troubled: large enough that a thread hop is nothing beside it.
const PIECE: usize = 512 * 1024;

fn folder_of(address: &Url) -> Result<PathBuf, StorageError> {
    address
        .to_file_path()
        .map_err(|()| StorageError::BadAddress(format!("store.url: {address} does not name a folder of this machine")))
}

fn blob_path(tenant: &TenantId, blob: BlobKey) -> Path {
    let key = blob.to_string();
    Path::from_iter(["t", &tenant.prefix(), "b", &key[..2], &key])
}

fn place(tenant: &TenantId, blob: BlobKey) -> object::Place {
    let note = Path::from_iter([unsealed::FOLDER.to_owned(), format!("{}.{blob}", tenant.prefix())]);
    object::Place { tenant: tenant.clone(), blob: blob_path(tenant, blob), note }
}

fn stored(meta: &object_store::ObjectMeta) -> Option<Stored> {
    let parts: Vec<_> = meta.location.parts().collect();
    let [_, prefix, folder, _, key] = parts.as_slice() else {
        return None;
    };
    if folder.as_ref() != "b" {
        return None;
    }
    Some(Stored {
        tenant: TenantId::from_prefix(prefix.as_ref()).ok()?,
        blob: BlobKey::parse(key.as_ref()).ok()?,
        bytes: meta.size,
        modified: Timestamp::from_millisecond(meta.last_modified.timestamp_millis()).ok()?,
    })
}

fn ignore_missing(result: object_store::Result<()>) -> Result<(), StorageError> {
    match result {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(unavailable(&error)),
    }
}

fn unavailable(error: &object_store::Error) -> StorageError {
    match file_error(error) {
        Some(file) => StorageError::file("store", "reading or writing a file", file),
        None => StorageError::Unavailable { store: "store", reason: error.to_string() },
    }
}

/// What the operating system said, if that is behind the error.
fn file_error(error: &object_store::Error) -> Option<&std::io::Error> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(file) = inner.downcast_ref() {
            return Some(file);
        }
        cause = inner.source();
    }
    None
}

#[cfg(test)]
mod tests;
