//! Any other object store: written in parts, which become one object when the last is there.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, path::Path};
use ring::digest;

use super::{Sealed, ignore_missing, unavailable};
use crate::error::StorageError;
use crate::ids::Digest;

/// The smallest part that S3 takes is 5 MiB; a little more keeps 10,000 parts above the largest upload.
const PART: usize = 8 * 1024 * 1024;

/// An object being written. What fits into one part is put in one piece.
pub(super) struct Staging {
    objects: Arc<dyn ObjectStore>,
    path: Path,
    gathered: Vec<Bytes>,
    gathered_bytes: usize,
    parts: Option<Box<dyn MultipartUpload>>,
    hash: digest::Context,
    bytes: u64,
}

impl std::fmt::Debug for Staging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staging").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Staging {
    pub(super) fn new(objects: Arc<dyn ObjectStore>, path: Path) -> Self {
        Self {
            objects,
            path,
            gathered: Vec::new(),
            gathered_bytes: 0,
            parts: None,
            hash: digest::Context::new(&digest::SHA256),
            bytes: 0,
        }
    }

    pub(super) async fn write(&mut self, chunk: Bytes) -> Result<(), StorageError> {
        self.hash.update(&chunk);
        self.bytes += chunk.len() as u64;
        self.gathered_bytes += chunk.len();
        self.gathered.push(chunk);
        if self.gathered_bytes < PART {
            return Ok(());
        }
        self.flush_part().await
    }

    pub(super) async fn seal(mut self) -> Result<Sealed, StorageError> {
        if self.parts.is_none() {
            let payload = self.take_gathered();
            let put = self.objects.put(&self.path, payload).await;
            put.map_err(|error| unavailable(&error))?;
        } else {
            if self.gathered_bytes > 0 {
                self.flush_part().await?;
            }
            if let Some(parts) = &mut self.parts {
                parts.complete().await.map_err(|error| unavailable(&error))?;
            }
        }
        let hash = self.hash.finish();
        Ok(Sealed { bytes: self.bytes, sha256: Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes")) })
    }

    pub(super) async fn abort(mut self) -> Result<(), StorageError> {
        match &mut self.parts {
            Some(parts) => ignore_missing(parts.abort().await),
            None => Ok(()),
        }
    }

    async fn flush_part(&mut self) -> Result<(), StorageError> {
        let payload = self.take_gathered();
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => {
                let opened = self.objects.put_multipart(&self.path).await;
                none.insert(opened.map_err(|error| unavailable(&error))?)
            }
        };
        parts.put_part(payload).await.map_err(|error| unavailable(&error))
    }

    fn take_gathered(&mut self) -> PutPayload {
        self.gathered_bytes = 0;
        PutPayload::from_iter(std::mem::take(&mut self.gathered))
    }
}
