//! Any other object store: what is small is put in one piece, what is large in parts that become one object when the last is there.
//!
//! An object shows only whole, so there is nothing to see of what is being written. But parts are kept, and paid for, until their upload
//! is completed or aborted, and a store does not tell their names to everybody. So before the first part is sent a **note** of the upload
//! is put beside the blobs; whoever removes the blob reads it and aborts what it names. A crash between the store's answer and the note
//! leaves an upload without parts, which is what a bucket's lifecycle rule is for.
//!
//! Memory: an upload holds one part that is being gathered and [`IN_FLIGHT`] that are on their way; all uploads of a process together
//! no more than [`GATHERED_AT_ONCE`] parts, and whoever comes later waits with [`SMALL`] bytes in hand.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use object_store::signer::{Method, SignedUrlOptions, Signer};
use object_store::{MultipartId, ObjectStore, ObjectStoreExt, PutPayload, path::Path};
use ring::digest;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tracing::warn;
use url::Url;

use super::{Sealed, ignore_missing, unavailable};
use crate::error::StorageError;
use crate::ids::Digest;

/// The smallest part that S3 takes is 5 MiB, and it takes 10,000 of them; some stores want all but the last to be of one size.
const PART: usize = 8 << 20;

/// The largest blob that fits into 10,000 parts.
pub(super) const LARGEST: u64 = PART as u64 * 10_000;

/// So many parts of one upload are on their way while the next is gathered.
const IN_FLIGHT: usize = 2;

/// So many parts are held in memory by all uploads together: 256 MiB.
const GATHERED_AT_ONCE: usize = 32;

/// What an upload holds without asking for the room of a part.
const SMALL: usize = 256 << 10;

/// An object store and its way of writing in parts.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) whole: Arc<dyn ObjectStore>,
    parts: Arc<dyn MultipartStore>,
    /// What `whole` puts before each path, and `parts` does not.
    prefix: Path,
    room: Arc<Semaphore>,
    signer: Option<Arc<dyn Signer>>,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").field("whole", &self.whole).finish_non_exhaustive()
    }
}

impl Objects {
    pub(super) fn new<S: ObjectStore + MultipartStore>(store: S, prefix: Path) -> Self {
        let store = Arc::new(store);
        let whole: Arc<dyn ObjectStore> = match prefix.is_root() {
            true => store.clone(),
            false => Arc::new(object_store::prefix::PrefixStore::new(store.clone(), prefix.clone())),
        };
        Self { whole, parts: store, prefix, room: Arc::new(Semaphore::new(GATHERED_AT_ONCE)), signer: None }
    }

    /// The same, of a store that signs URLs.
    pub(super) fn signing(self, signer: Arc<dyn Signer>) -> Self {
        Self { signer: Some(signer), ..self }
    }

    pub(super) fn signs(&self) -> bool {
        self.signer.is_some()
    }

    /// A URL of that object, if the store signs any.
    pub(super) async fn sign(
        &self,
        method: Method,
        path: &Path,
        lifetime: Duration,
        said: &SignedUrlOptions,
    ) -> Result<Option<Url>, StorageError> {
        let Some(signer) = &self.signer else {
            return Ok(None);
        };
        let signed = signer.signed_url_opts(method, &self.full(path), lifetime, said).await;
        let mut url = signed.map_err(|error| unavailable(&error))?;
        // Those of an endpoint are ours, and no part of what is signed.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        Ok(Some(url))
    }

    /// Removes an object, or what there is of one.
    pub(super) async fn remove(&self, place: &Place) -> Result<(), StorageError> {
        self.abort_noted(place).await?;
        ignore_missing(self.whole.delete(&place.blob).await)
    }

    /// Aborts the upload that the note names, if there is one; the note goes last.
    async fn abort_noted(&self, place: &Place) -> Result<(), StorageError> {
        let noted = match self.whole.get(&place.note).await {
            Ok(noted) => noted.bytes().await.map_err(|error| unavailable(&error))?,
            Err(object_store::Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(unavailable(&error)),
        };
        let id = String::from_utf8(noted.into()).map_err(|_| StorageError::Corrupt {
            store: "store",
            reason: format!("the note of an upload {} is not text", place.note),
        })?;
        ignore_missing(self.parts.abort_multipart(&self.full(&place.blob), &id).await)?;
        ignore_missing(self.whole.delete(&place.note).await)
    }

    /// The path as the store has it.
    fn full(&self, path: &Path) -> Path {
        Path::from_iter(self.prefix.parts().chain(path.parts()))
    }
}

/// Where a blob lies, and the note of its upload while it is written in parts.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) blob: Path,
    pub(super) note: Path,
}

/// An object being written.
pub(super) struct Staging {
    objects: Objects,
    place: Place,
    gathered: Gathered,
    parts: Option<Parts>,
    hash: digest::Context,
    bytes: u64,
}

#[derive(Default)]
struct Gathered {
    chunks: Vec<Bytes>,
    bytes: usize,
    /// Held from [`SMALL`] bytes on, until the part has been sent.
    room: Option<OwnedSemaphorePermit>,
}

struct Parts {
    id: MultipartId,
    sent: Vec<Option<PartId>>,
    on_their_way: JoinSet<object_store::Result<(usize, PartId)>>,
}

impl std::fmt::Debug for Staging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staging").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Staging {
    pub(super) fn new(objects: Objects, place: Place) -> Self {
        let hash = digest::Context::new(&digest::SHA256);
        Self { objects, place, gathered: Gathered::default(), parts: None, hash, bytes: 0 }
    }

    pub(super) async fn write(&mut self, mut chunk: Bytes) -> Result<(), StorageError> {
        self.hash.update(&chunk);
        self.bytes += chunk.len() as u64;
        while !chunk.is_empty() {
            let piece = chunk.split_to(chunk.len().min(PART - self.gathered.bytes));
            self.gather(piece).await?;
            if self.gathered.bytes == PART {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    pub(super) async fn seal(mut self) -> Result<Sealed, StorageError> {
        if let Err(error) = self.finish().await {
            // The error counts: what could not be aborted now is aborted when the blob is removed.
            if let Err(again) = self.abort().await {
                warn!(%again, "an upload in parts could not be aborted");
            }
            return Err(error);
        }
        let hash = self.hash.finish();
        Ok(Sealed { bytes: self.bytes, sha256: Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes")) })
    }

    /// Takes back what was sent in parts. What was put whole has an answer, or is removed with the upload's row.
    pub(super) async fn abort(&mut self) -> Result<(), StorageError> {
        let Some(mut parts) = self.parts.take() else {
            return Ok(());
        };
        parts.on_their_way.shutdown().await;
        self.objects.abort_noted(&self.place).await
    }

    async fn gather(&mut self, piece: Bytes) -> Result<(), StorageError> {
        if self.gathered.room.is_none() && self.gathered.bytes + piece.len() > SMALL {
            let room = self.objects.room.clone().acquire_owned().await;
            self.gathered.room = Some(room.expect("the room for parts is never closed"));
        }
        self.gathered.bytes += piece.len();
        self.gathered.chunks.push(piece);
        Ok(())
    }

    async fn send_part(&mut self) -> Result<(), StorageError> {
        let gathered = std::mem::take(&mut self.gathered);
        let path = self.objects.full(&self.place.blob);
        if self.parts.is_none() {
            self.parts = Some(self.begin(&path).await?);
        }
        let parts = self.parts.as_mut().expect("it was begun above");
        while parts.on_their_way.len() >= IN_FLIGHT {
            parts.hear_of_one().await?;
        }
        let (number, id, store) = (parts.sent.len(), parts.id.clone(), self.objects.parts.clone());
        parts.sent.push(None);
        parts.on_their_way.spawn(async move {
            let Gathered { chunks, room, .. } = gathered;
            let sent = store.put_part(&path, &id, number, PutPayload::from_iter(chunks)).await;
            drop(room);
            sent.map(|part| (number, part))
        });
        Ok(())
    }

    async fn begin(&self, path: &Path) -> Result<Parts, StorageError> {
        let id = self.objects.parts.create_multipart(path).await.map_err(|error| unavailable(&error))?;
        let noted = self.objects.whole.put(&self.place.note, PutPayload::from(id.clone())).await;
        let parts = Parts { id, sent: Vec::new(), on_their_way: JoinSet::new() };
        if let Err(error) = noted {
            ignore_missing(self.objects.parts.abort_multipart(path, &parts.id).await)?;
            return Err(unavailable(&error));
        }
        Ok(parts)
    }

    async fn finish(&mut self) -> Result<(), StorageError> {
        if self.parts.is_none() {
            let gathered = std::mem::take(&mut self.gathered);
            let put = self.objects.whole.put(&self.place.blob, PutPayload::from_iter(gathered.chunks)).await;
            return put.map(drop).map_err(|error| unavailable(&error));
        }
        if self.gathered.bytes > 0 {
            self.send_part().await?;
        }
        let parts = self.parts.as_mut().expect("looked at above");
        while !parts.on_their_way.is_empty() {
            parts.hear_of_one().await?;
        }
        let sent = std::mem::take(&mut parts.sent).into_iter().flatten().collect();
        let path = self.objects.full(&self.place.blob);
        let completed = self.objects.parts.complete_multipart(&path, &parts.id, sent).await;
        if let Err(error) = completed
            && !self.is_complete().await
        {
            return Err(unavailable(&error));
        }
        self.parts = None;
        ignore_missing(self.objects.whole.delete(&self.place.note).await)
    }

    /// Whether the object is there after all: the answer that said so may have been lost, and then the upload is not known any more. Nobody
    /// else writes to this key, so an object of this size is ours.
    async fn is_complete(&self) -> bool {
        self.objects.whole.head(&self.place.blob).await.is_ok_and(|meta| meta.size == self.bytes)
    }
}

impl Parts {
    async fn hear_of_one(&mut self) -> Result<(), StorageError> {
        let Some(joined) = self.on_their_way.join_next().await else {
            return Ok(());
        };
        let sent = joined.map_err(|error| StorageError::Unavailable { store: "store", reason: error.to_string() })?;
        let (number, part) = sent.map_err(|error| unavailable(&error))?;
        self.sent[number] = Some(part);
        Ok(())
    }
}
