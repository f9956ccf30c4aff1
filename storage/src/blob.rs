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
//! ```

use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use jiff::Timestamp;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload, path::Path};
use ring::digest;
use url::Url;

use crate::error::StorageError;
use crate::ids::{ArtifactId, BlobKey, Digest, HoldId, RunId, TenantId};
use crate::record::{HoldOn, ReferenceRecord};

mod buffers;
mod cloud;
mod copy;
mod hot;
mod kept;
mod local;
mod object;
mod read;

pub use cloud::{S3Options, StoreOptions};
pub use copy::Copied;
pub use kept::{Kept, Reading, Unreadable};
pub use read::{Blob, BlobReader, BlobStream};

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

/// What a recovery record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOf<'a> {
    /// An asset's row.
    Asset(crate::AssetId),
    /// A run's row.
    Run(&'a RunId),
    /// A hold.
    Hold(&'a HoldOn, &'a HoldId),
    /// How often all of the tenant's URLs were revoked at once, as a number.
    Epoch,
    /// An artifact of a run.
    Artifact(&'a RunId, &'a ArtifactId),
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

    /// Writes a recovery record: durable when this returns. Of one thing, the record with the highest `revision` counts.
    pub async fn put_record(
        &self,
        tenant: &TenantId,
        of: RecordOf<'_>,
        revision: u64,
        json: Vec<u8>,
    ) -> Result<(), StorageError> {
        self.put_json(&record_folder(tenant, of), &format!("{revision:020}.json"), json).await
    }

    /// Writes which assets a run references: durable when this returns. Every such record counts, and the same assets again are the same
    /// record, so that repeats leave no more.
    pub async fn put_references(&self, tenant: &TenantId, record: &ReferenceRecord) -> Result<(), StorageError> {
        let named = record.assets.iter().flat_map(|asset| asset.to_bytes()).collect::<Vec<u8>>();
        let name = data_encoding::HEXLOWER.encode(digest::digest(&digest::SHA256, &named).as_ref());
        let json = serde_json::to_vec(record).expect("names and a time can be written");
        self.put_json(&references_folder(tenant, &record.run), &format!("{name}.json"), json).await
    }

    /// What the records say that the run references, in no order.
    pub async fn references(&self, tenant: &TenantId, run: &RunId) -> Result<Vec<ReferenceRecord>, StorageError> {
        let mut records = Vec::new();
        for path in self.paths_in(&references_folder(tenant, run)).await? {
            let got = self.objects.get(&path).await.map_err(|error| unavailable(&error))?;
            let json = got.bytes().await.map_err(|error| unavailable(&error))?;
            records.push(serde_json::from_slice(&json).map_err(|error| {
                let reason = format!("recovery record {path}: {error}");
                StorageError::Corrupt { store: "store", reason }
            })?);
        }
        Ok(records)
    }

    /// The newest recovery record, if there is one.
    pub async fn newest_record(&self, tenant: &TenantId, of: RecordOf<'_>) -> Result<Option<Bytes>, StorageError> {
        let Some(newest) = self.record_paths(tenant, of).await?.into_iter().max() else {
            return Ok(None);
        };
        let got = self.objects.get(&newest).await.map_err(|error| unavailable(&error))?;
        got.bytes().await.map(Some).map_err(|error| unavailable(&error))
    }

    /// Removes the recovery records older than `revision`, or all of them.
    pub async fn remove_records(
        &self,
        tenant: &TenantId,
        of: RecordOf<'_>,
        older_than: Option<u64>,
    ) -> Result<(), StorageError> {
        if let (Way::Files(files), None) = (&self.way, older_than) {
            return files.remove_folder(record_folder(tenant, of).as_ref()).await;
        }
        let keep_from = older_than.map(|revision| record_folder(tenant, of).join(format!("{revision:020}.json")));
        for path in self.record_paths(tenant, of).await? {
            if keep_from.as_ref().is_none_or(|from| path < *from) {
                ignore_missing(self.objects.delete(&path).await)?;
            }
        }
        Ok(())
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

    /// Whether the store answers.
    pub async fn ready(&self) -> Result<(), StorageError> {
        match &self.way {
            Way::Files(files) => files.ready(),
            Way::Objects(_) => self
                .size(&TenantId::parse("ready").expect("a valid name"), BlobKey::from_bytes([0; 16]))
                .await
                .map(drop),
        }
    }

    async fn record_paths(&self, tenant: &TenantId, of: RecordOf<'_>) -> Result<Vec<Path>, StorageError> {
        self.paths_in(&record_folder(tenant, of)).await
    }

    async fn put_json(&self, folder: &Path, name: &str, json: Vec<u8>) -> Result<(), StorageError> {
        if let Way::Files(files) = &self.way {
            files.make_folder(folder.as_ref()).await?;
        }
        let put = self.objects.put(&folder.clone().join(name), PutPayload::from(json)).await;
        put.map(drop).map_err(|error| unavailable(&error))
    }

    async fn paths_in(&self, folder: &Path) -> Result<Vec<Path>, StorageError> {
        let list = self.objects.list(Some(folder)).map_ok(|meta| meta.location);
        list.try_collect().await.map_err(|error| unavailable(&error))
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
    let note = Path::from_iter(["staging".to_owned(), format!("{}.{blob}", tenant.prefix())]);
    object::Place { blob: blob_path(tenant, blob), note }
}

fn record_folder(tenant: &TenantId, of: RecordOf<'_>) -> Path {
    let (what, id) = match of {
        RecordOf::Asset(id) => ("a", id.to_string()),
        RecordOf::Run(id) => ("r", text_prefix(id.as_str())),
        RecordOf::Epoch => ("e", "all".to_owned()),
        RecordOf::Artifact(run, id) => ("f", artifact_folder(run, id)),
        RecordOf::Hold(HoldOn::Asset(asset), id) => ("h", format!("{asset}.{}", text_prefix(id.as_str()))),
        RecordOf::Hold(HoldOn::Run(run), id) => {
            ("h", format!("{}.{}", text_prefix(run.as_str()), text_prefix(id.as_str())))
        }
    };
    Path::from_iter(["t", &tenant.prefix(), "r", what, &id])
}

/// Both names as they are would be longer than a folder's name may be.
fn artifact_folder(run: &RunId, id: &ArtifactId) -> String {
    let names = format!("{run}\n{id}");
    data_encoding::HEXLOWER.encode(digest::digest(&digest::SHA256, names.as_bytes()).as_ref())
}

fn references_folder(tenant: &TenantId, run: &RunId) -> Path {
    Path::from_iter(["t", &tenant.prefix(), "r", "q", &text_prefix(run.as_str())])
}

/// A host's name where upper and lower case may be one.
fn text_prefix(name: &str) -> String {
    data_encoding::BASE32_NOPAD.encode(name.as_bytes()).to_ascii_lowercase()
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
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(file) = inner.downcast_ref::<std::io::Error>() {
            return StorageError::file("store", "reading or writing a file", file);
        }
        cause = inner.source();
    }
    StorageError::Unavailable { store: "store", reason: error.to_string() }
}

#[cfg(test)]
mod tests;
