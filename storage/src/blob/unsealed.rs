//! What was begun and is neither sealed nor taken back: what a crash has left, and what a store would not abort.

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use super::{BlobStore, Way, place, unavailable};
use crate::error::StorageError;
use crate::ids::{BlobKey, TenantId};

/// A blob that is being written, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsealed {
    /// Whose.
    pub tenant: TenantId,
    /// Its key.
    pub blob: BlobKey,
    /// Of local files when bytes came last, anywhere else when it was begun.
    pub since: Timestamp,
}

impl BlobStore {
    /// Every blob that is not sealed, in no order; on stores over the network those alone that come in parts.
    pub fn unsealed(&self) -> BoxStream<'_, Result<Unsealed, StorageError>> {
        self.objects
            .list(Some(&Path::from(FOLDER)))
            .map_err(|error| unavailable(&error))
            .try_filter_map(|meta| async move { Ok(unsealed(&meta)) })
            .boxed()
    }

    /// Takes back what was written of a blob that is not sealed; the blob, should it be there after all, stays.
    pub async fn abort_unsealed(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        match &self.way {
            Way::Files(files) => files.remove_staged(tenant, blob).await,
            Way::Objects(objects) => objects.abort_noted(&place(tenant, blob)).await,
        }
    }

    /// How many aborts of uploads in parts the store has not confirmed since it was opened. Each of them is tried again by whoever removes
    /// the blob.
    pub fn unconfirmed_aborts(&self) -> u64 {
        match &self.way {
            Way::Files(_) => 0,
            Way::Objects(objects) => objects.unconfirmed_aborts(),
        }
    }
}

/// Where they lie, or their notes.
pub(super) const FOLDER: &str = "staging";

fn unsealed(meta: &ObjectMeta) -> Option<Unsealed> {
    let (prefix, key) = meta.location.filename()?.split_once('.')?;
    Some(Unsealed {
        tenant: TenantId::from_prefix(prefix).ok()?,
        blob: BlobKey::parse(key).ok()?,
        since: Timestamp::from_millisecond(meta.last_modified.timestamp_millis()).ok()?,
    })
}
