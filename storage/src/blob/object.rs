//! Any other object store: what is small is put in one piece, what is large in parts that become one object when the last is there.
//!
//! An object shows only whole, so there is nothing to see of what is being written. But parts are kept, and paid for, until their upload
//! is completed or aborted, and a store does not tell their names to everybody. So before the first part is sent a **note** of the upload
//! is put beside the blobs; whoever removes the blob reads it and aborts what it names, and [`super::unsealed`] finds the notes of which
//! nobody knows any more. A crash between the store's answer and the note, or a store that takes neither the note nor the abort, leaves an
//! upload without parts, which is what a bucket's lifecycle rule is for.
//!
//! Memory: an upload holds one part that is being gathered and [`IN_FLIGHT`] that are on their way; all uploads of a process together
//! no more than [`Room`] has, and whoever comes later waits with [`SMALL`] bytes in hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use object_store::signer::{Method, SignedUrlOptions, Signer};
use object_store::{MultipartId, ObjectStore, ObjectStoreExt, PutPayload, path::Path};
use ring::digest;
use tokio::task::{JoinHandle, JoinSet};
use tracing::warn;
use url::Url;

use super::room::{Room, Taken};
use super::{Sealed, ignore_missing, unavailable};
use crate::error::StorageError;
use crate::ids::{Digest, TenantId};

/// The smallest part that S3 takes is 5 MiB, and it takes 10,000 of them; some stores want all but the last to be of one size.
const PART: usize = 8 << 20;

/// The largest blob that fits into 10,000 parts.
pub(super) const LARGEST: u64 = PART as u64 * 10_000;

/// So many parts of one upload are on their way while the next is gathered.
const IN_FLIGHT: usize = 2;

/// So long an abort waits for parts that are on their way.
const ARRIVAL: Duration = Duration::from_secs(10);

/// What an upload holds without asking for the room of a part.
const SMALL: usize = 256 << 10;

/// An object store and its way of writing in parts.
#[derive(Clone)]
pub(super) struct Objects {
    pub(super) whole: Arc<dyn ObjectStore>,
    parts: Arc<dyn MultipartStore>,
    /// What `whole` puts before each path, and `parts` does not.
    prefix: Path,
    room: Arc<Room>,
    /// How many aborts the store did not confirm.
    unconfirmed: Arc<AtomicU64>,
    signer: Option<Arc<dyn Signer>>,
    /// The store has refused the condition of a put as something that it does not have.
    pub(super) is_without_conditions: Arc<AtomicBool>,
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
        Self {
            whole,
            parts: store,
            prefix,
            room: Arc::new(Room::new()),
            unconfirmed: Arc::default(),
            signer: None,
            is_without_conditions: Arc::default(),
        }
    }

    /// How many aborts of uploads in parts the store did not confirm so far.
    pub(super) fn unconfirmed_aborts(&self) -> u64 {
        self.unconfirmed.load(Ordering::Relaxed)
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
    pub(super) async fn abort_noted(&self, place: &Place) -> Result<(), StorageError> {
        let noted = match self.whole.get(&place.note).await {
            Ok(noted) => noted.bytes().await.map_err(|error| unavailable(&error))?,
            Err(object_store::Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(unavailable(&error)),
        };
        let id = String::from_utf8(noted.into()).map_err(|_| StorageError::Corrupt {
            store: "store",
            reason: format!("the note of an upload {} is not text", place.note),
        })?;
        self.abort(place, &id).await
    }

    /// Aborts the upload of that name, and takes its note away.
    async fn abort(&self, place: &Place, id: &MultipartId) -> Result<(), StorageError> {
        let aborted = self.parts.abort_multipart(&self.full(&place.blob), id).await;
        ignore_missing(aborted).inspect_err(|_| {
            self.unconfirmed.fetch_add(1, Ordering::Relaxed);
        })?;
        ignore_missing(self.whole.delete(&place.note).await)
    }

    /// Begins an upload in parts, and notes it.
    async fn begin(self, place: Place) -> object_store::Result<Begun> {
        let id = self.parts.create_multipart(&self.full(&place.blob)).await?;
        let noted = self.whole.put(&place.note, PutPayload::from(id.clone())).await.map(drop);
        Ok(Begun { id, noted })
    }

    /// The path as the store has it.
    fn full(&self, path: &Path) -> Path {
        Path::from_iter(self.prefix.parts().chain(path.parts()))
    }
}

/// Where a blob lies, and the note of its upload while it is written in parts.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) tenant: TenantId,
    pub(super) blob: Path,
    pub(super) note: Path,
}

/// An object being written.
pub(super) struct Staging {
    objects: Objects,
    place: Place,
    gathered: Gathered,
    /// An upload in parts that is being begun: in a task of its own, so that its name is never lost with whoever waited for it.
    beginning: Option<JoinHandle<object_store::Result<Begun>>>,
    parts: Option<Parts>,
    hash: digest::Context,
    bytes: u64,
    /// A write did not come to its end: what was gathered in it is lost, and nothing more is taken.
    is_broken: bool,
}

#[derive(Default)]
struct Gathered {
    chunks: Vec<Bytes>,
    bytes: usize,
    /// Held from [`SMALL`] bytes on, until the part has been sent.
    room: Option<Taken>,
}

/// An upload in parts, and whether it was noted.
struct Begun {
    id: MultipartId,
    noted: object_store::Result<()>,
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
        let gathered = Gathered::default();
        Self { objects, place, gathered, beginning: None, parts: None, hash, bytes: 0, is_broken: false }
    }

    pub(super) async fn write(&mut self, mut chunk: Bytes) -> Result<(), StorageError> {
        self.must_be_whole()?;
        // Until its end, also if nobody waits for that: a hole is none that a later part could fill.
        self.is_broken = true;
        self.hash.update(&chunk);
        self.bytes += chunk.len() as u64;
        while !chunk.is_empty() {
            let piece = chunk.split_to(chunk.len().min(PART - self.gathered.bytes));
            self.gather(piece).await?;
            if self.gathered.bytes == PART {
                self.send_part().await?;
            }
        }
        self.is_broken = false;
        Ok(())
    }

    fn must_be_whole(&self) -> Result<(), StorageError> {
        match self.is_broken {
            true => {
                Err(StorageError::Unavailable { store: "store", reason: "an earlier write came to no end".to_owned() })
            }
            false => Ok(()),
        }
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
        if self.beginning.is_some() {
            // What could not be begun is nothing to abort; what could not be noted is.
            let _ = self.begun().await;
        }
        let Some(mut parts) = self.parts.take() else {
            return Ok(());
        };
        // A part that comes to the store behind the abort may stay there, so those on their way are waited for.
        let _ = tokio::time::timeout(ARRIVAL, async { while parts.on_their_way.join_next().await.is_some() {} }).await;
        parts.on_their_way.shutdown().await;
        self.objects.abort(&self.place, &parts.id).await
    }

    async fn gather(&mut self, piece: Bytes) -> Result<(), StorageError> {
        if self.gathered.room.is_none() && self.gathered.bytes + piece.len() > SMALL {
            self.gathered.room = Some(self.objects.room.take(&self.place.tenant).await);
        }
        self.gathered.bytes += piece.len();
        self.gathered.chunks.push(piece);
        Ok(())
    }

    async fn send_part(&mut self) -> Result<(), StorageError> {
        let gathered = std::mem::take(&mut self.gathered);
        let path = self.objects.full(&self.place.blob);
        if self.parts.is_none() {
            self.begun().await?;
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

    /// Begins the upload in parts.
    async fn begun(&mut self) -> Result<(), StorageError> {
        let (objects, place) = (self.objects.clone(), self.place.clone());
        let beginning = self.beginning.get_or_insert_with(|| tokio::spawn(objects.begin(place)));
        let begun = beginning.await;
        self.beginning = None;
        let begun = begun.map_err(|error| StorageError::Unavailable { store: "store", reason: error.to_string() })?;
        let Begun { id, noted } = begun.map_err(|error| unavailable(&error))?;
        self.parts = Some(Parts { id, sent: Vec::new(), on_their_way: JoinSet::new() });
        noted.map_err(|error| unavailable(&error))
    }

    async fn finish(&mut self) -> Result<(), StorageError> {
        self.must_be_whole()?;
        if self.parts.is_none() {
            let gathered = std::mem::take(&mut self.gathered);
            return self.objects.put_new(&self.place.blob, PutPayload::from_iter(gathered.chunks)).await;
        }
        if self.gathered.bytes > 0 {
            self.send_part().await?;
        }
        let parts = self.parts.as_mut().expect("looked at above");
        while !parts.on_their_way.is_empty() {
            parts.hear_of_one().await?;
        }
        let sent: Option<Vec<_>> = std::mem::take(&mut parts.sent).into_iter().collect();
        // Without one of them the object would be another, and look whole.
        let sent = sent.ok_or_else(|| StorageError::Unavailable {
            store: "store",
            reason: "a part of an upload was not heard of".to_owned(),
        })?;
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
