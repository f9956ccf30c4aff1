//! One store's content into another, object by object, so that it can be begun again where it stopped.

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt, PutPayload};

use super::{BlobStore, Sealed, Staging, Stored, Unsealed, Way, ignore_missing, unavailable};
use crate::error::StorageError;
use crate::ids::{BlobKey, TenantId};

/// What came of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// It was there already, as long as it has to be.
    Already,
    /// It is there now: so many bytes, with this digest.
    Now(Sealed),
    /// It went meanwhile.
    Gone,
}

impl BlobStore {
    /// Copies a blob to the same name in another store: it is whole and durable there when this returns, or not there.
    pub async fn copy_blob(&self, to: &Self, stored: &Stored) -> Result<Copied, StorageError> {
        let Stored { tenant, blob, bytes, .. } = stored;
        match to.size(tenant, *blob).await? {
            Some(there) if there == *bytes => return Ok(Copied::Already),
            // What is no copy stands in the way of one.
            Some(_) => to.remove(tenant, *blob).await?,
            None => (),
        }
        self.pour(to.stage(tenant, *blob), tenant, *blob, *bytes).await
    }

    /// Gives the blob `to` the bytes of `from`, in parts: for what is too large to be copied by the store itself.
    pub(super) async fn copy_in_parts(
        &self,
        tenant: &TenantId,
        from: BlobKey,
        to: BlobKey,
        bytes: u64,
    ) -> Result<(), StorageError> {
        match self.pour(self.stage(tenant, to), tenant, from, bytes).await? {
            Copied::Gone => Err(StorageError::NoSuchBlob),
            Copied::Already | Copied::Now(_) => Ok(()),
        }
    }

    /// Reads the blob into what is being written.
    async fn pour(
        &self,
        mut staging: Staging,
        tenant: &TenantId,
        blob: BlobKey,
        bytes: u64,
    ) -> Result<Copied, StorageError> {
        let source = match self.open_blob(tenant, blob, bytes).await {
            Ok(opened) => opened.stream_now(0..bytes).await,
            Err(error) => Err(error),
        };
        let mut source = match source {
            Ok(stream) => stream,
            Err(StorageError::NoSuchBlob) => return Ok(Copied::Gone),
            Err(error) => return Err(error),
        };
        loop {
            let written = match source.try_next().await {
                Ok(Some(chunk)) => staging.write(chunk).await,
                Ok(None) => break,
                Err(error) => Err(error),
            };
            if let Err(error) = written {
                staging.abort().await?;
                return Err(error);
            }
        }
        staging.seal().await.map(Copied::Now)
    }

    /// Takes back what a copy has left here that was cut off: nobody else writes to a store that is made a copy.
    pub async fn forget_halves(&self) -> Result<(), StorageError> {
        let mut halves = self.unsealed();
        while let Some(Unsealed { tenant, blob, .. }) = halves.try_next().await? {
            self.abort_unsealed(&tenant, blob).await?;
        }
        Ok(())
    }

    /// Copies what lies beside the blobs of a tenant; how many records were not there yet.
    pub async fn copy_records(&self, to: &Self, tenant: &TenantId) -> Result<u64, StorageError> {
        let folder = records_of(tenant);
        let mut copied = 0;
        let mut listed = self.objects.list(Some(&folder));
        while let Some(record) = listed.try_next().await.map_err(|error| unavailable(&error))? {
            // A record may be written anew, as long as before: then it is younger than its copy.
            let there = to.objects.head(&record.location).await;
            if there.is_ok_and(|copy| copy.size == record.size && is_older(&record, &copy)) {
                continue;
            }
            let json = match self.objects.get(&record.location).await {
                Ok(got) => got.bytes().await.map_err(|error| unavailable(&error))?,
                Err(object_store::Error::NotFound { .. }) => continue,
                Err(error) => return Err(unavailable(&error)),
            };
            if let Way::Files(files) = &to.way {
                let parts: Vec<_> = record.location.parts().collect();
                let folder = Path::from_iter(parts.iter().take(parts.len().saturating_sub(1)).cloned());
                files.make_folder(folder.as_ref()).await?;
            }
            let put = to.objects.put(&record.location, PutPayload::from(json)).await;
            put.map_err(|error| unavailable(&error))?;
            copied += 1;
        }
        Ok(copied)
    }

    /// Removes from `self` what `source` does not have any more: what ended or was erased there since it was copied. How many objects went.
    pub async fn remove_what_is_not_in(&self, source: &Self) -> Result<u64, StorageError> {
        let mut removed = 0;
        let mut listed = self.objects.list(Some(&Path::from("t")));
        while let Some(object) = listed.try_next().await.map_err(|error| unavailable(&error))? {
            match source.objects.head(&object.location).await {
                Ok(_) => continue,
                Err(object_store::Error::NotFound { .. }) => (),
                Err(error) => return Err(unavailable(&error)),
            }
            match super::stored(&object) {
                Some(stored) => self.remove(&stored.tenant, stored.blob).await?,
                None => ignore_missing(self.objects.delete(&object.location).await)?,
            }
            removed += 1;
        }
        Ok(removed)
    }

    /// Every sealed blob of a tenant, in no order.
    pub fn blobs_of(&self, tenant: &TenantId) -> BoxStream<'_, Result<Stored, StorageError>> {
        self.objects
            .list(Some(&Path::from_iter(["t", &tenant.prefix(), "b"])))
            .map_err(|error| unavailable(&error))
            .try_filter_map(|meta| async move { Ok(super::stored(&meta)) })
            .boxed()
    }

    /// What was copied here is from the store of that name. False: it is from another one, or this store has data of its own.
    pub async fn is_copy_of(&self, name: &str) -> Result<bool, StorageError> {
        Ok(self.note(COPY_OF).await?.is_some_and(|noted| noted == name))
    }

    /// From now on this store has data of its own: nothing is copied over it, and nothing removed because another store does not have it.
    pub async fn is_nobodys_copy(&self) -> Result<(), StorageError> {
        ignore_missing(self.objects.delete(&Path::from(COPY_OF)).await)
    }

    /// Notes that this store is a copy of the one of that name.
    pub async fn note_copy_of(&self, name: &str) -> Result<(), StorageError> {
        self.put_note(COPY_OF, name.into()).await
    }
}

/// How far the clocks of two stores may be apart: a record that is not older than its copy by so much is copied again.
const CLOCKS_MILLIS: i64 = 5 * 60 * 1_000;

/// The note that says whose copy a store is.
const COPY_OF: &str = "copy-of";

fn is_older(record: &ObjectMeta, copy: &ObjectMeta) -> bool {
    let (record, copy) = (record.last_modified.timestamp_millis(), copy.last_modified.timestamp_millis());
    record < copy - CLOCKS_MILLIS
}

fn records_of(tenant: &TenantId) -> Path {
    Path::from_iter(["t", &tenant.prefix(), "r"])
}
