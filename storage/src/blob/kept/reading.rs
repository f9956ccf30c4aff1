//! What the records of one thing say, also while a service goes on that replaces them.

use object_store::ObjectStoreExt;
use object_store::path::Path;
use serde::de::DeserializeOwned;

use super::{Reading, Revisions, Unreadable};
use crate::blob::{BlobStore, unavailable};
use crate::error::StorageError;

/// So often a thing is looked at whose newest record has gone by the time it is read: the one after it was written meanwhile.
const TRIES: usize = 10;

impl BlobStore {
    pub(super) async fn read<T: DeserializeOwned>(&self, revisions: &Revisions) -> Result<Reading<T>, StorageError> {
        let unreadable = match self.read_one(&revisions.newest).await? {
            Some(Ok(record)) => return Ok(Reading { record: Some(record), unreadable: None }),
            Some(Err(reason)) => Unreadable::new(&revisions.newest, &reason),
            None => return self.read_anew(revisions).await,
        };
        let mut older: Vec<&Path> = revisions.older.iter().collect();
        older.sort_unstable();
        for path in older.into_iter().rev() {
            if let Some(Ok(record)) = self.read_one(path).await? {
                let unreadable = Unreadable { instead: Some(path.to_string()), ..unreadable };
                return Ok(Reading { record: Some(record), unreadable: Some(unreadable) });
            }
        }
        Ok(Reading { record: None, unreadable: Some(unreadable) })
    }

    /// The newest record has gone since it was listed: a newer one has come before, or the thing is no more.
    async fn read_anew<T: DeserializeOwned>(&self, revisions: &Revisions) -> Result<Reading<T>, StorageError> {
        let gone = Reading { record: None, unreadable: None };
        let parts: Vec<_> = revisions.newest.parts().collect();
        let (Some(_), [folder @ .., _]) = (revisions.numbered(), parts.as_slice()) else {
            return Ok(gone);
        };
        let folder = Path::from_iter(folder.iter().cloned());
        for _ in 0..TRIES {
            let Some(newest) = self.paths_in(&folder).await?.into_iter().max() else {
                return Ok(gone);
            };
            match self.read_one(&newest).await? {
                Some(Ok(record)) => return Ok(Reading { record: Some(record), unreadable: None }),
                Some(Err(reason)) => {
                    let unreadable = Some(Unreadable::new(&newest, &reason));
                    return Ok(Reading { record: None, unreadable });
                }
                None => {}
            }
        }
        let unreadable = Some(Unreadable::new(&revisions.newest, "it changes faster than it can be read"));
        Ok(Reading { record: None, unreadable })
    }

    /// What the record says, or why it does not read; `None`: it is not there.
    async fn read_one<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<Result<T, String>>, StorageError> {
        let got = match self.objects.get(path).await {
            Ok(got) => got,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(unavailable(&error)),
        };
        let json = got.bytes().await.map_err(|error| unavailable(&error))?;
        Ok(Some(serde_json::from_slice(&json).map_err(|error| error.to_string())))
    }
}
