//! Putting an object in one piece, where there is none yet.
//!
//! A blob is written once. So the store is asked to take it only where nothing lies: then no blob is ever written over, whatever went wrong
//! with its key, and a bucket that keeps versions has one version of it, which goes when the blob goes. A store that says that it has no
//! such condition (501), or of which the environment says so (`AWS_CONDITIONAL_PUT=disabled`), is asked without one.
//!
//! An answer that is lost leaves the question whether the object is ours, and so does a refusal behind one. Then what lies there is read
//! and compared. An object put in parts has no such condition: its key is as new, and [`super::object`] looks at its size.

use std::error::Error;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::client::HttpError;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMode, PutPayload};
use tracing::warn;

use super::object::Objects;
use super::unavailable;
use crate::error::StorageError;

/// So often an object is put whose answer does not come and of which nothing is there.
const TRIES: u32 = 4;

/// So long before the second time, twice as long before each further one. Each is behind a question that the store's client asks at a
/// pace of its own, with jitter.
const PAUSE: Duration = Duration::from_millis(100);

impl Objects {
    /// Puts the object: it is there, whole, when this returns. What lies there already stays, and is an error unless it is the same.
    pub(super) async fn put_new(&self, path: &Path, payload: PutPayload) -> Result<(), StorageError> {
        let mut tried = 0;
        while !self.is_without_conditions.load(Ordering::Relaxed) {
            let error = match self.whole.put_opts(path, payload.clone(), PutMode::Create.into()).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if knows_no_conditions(&error) {
                warn!("the store takes no conditions: blobs are put without");
                self.is_without_conditions.store(true, Ordering::Relaxed);
                break;
            }
            tried += 1;
            if tried == TRIES || !leaves_a_question(&error) {
                return Err(unavailable(&error));
            }
            match self.is_there(path, &payload).await {
                Ok(Some(true)) => return Ok(()),
                Ok(Some(false)) => return Err(occupied(path)),
                Ok(None) => tokio::time::sleep(PAUSE * 2_u32.pow(tried)).await,
                Err(again) => return Err(unavailable(&again)),
            }
        }
        self.whole.put(path, payload).await.map(drop).map_err(|error| unavailable(&error))
    }

    /// Whether that is what lies there; `None`: nothing does.
    async fn is_there(&self, path: &Path, payload: &PutPayload) -> object_store::Result<Option<bool>> {
        let got = match self.whole.get(path).await {
            Ok(got) => got,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if got.meta.size != payload.content_length() as u64 {
            return Ok(Some(false));
        }
        let (mut ours, mut there) = (payload.iter().flat_map(|chunk| chunk.iter()), got.into_stream());
        while let Some(chunk) = there.try_next().await? {
            if !chunk.iter().all(|byte| ours.next() == Some(byte)) {
                return Ok(Some(false));
            }
        }
        Ok(Some(ours.next().is_none()))
    }
}

/// Whether the store, or its client, says that it has no such condition. The client tells an answer's status in its words alone.
fn knows_no_conditions(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotImplemented { .. }) || error.to_string().contains("501 Not Implemented")
}

/// Whether the object may be there in spite of the error.
fn leaves_a_question(error: &object_store::Error) -> bool {
    if matches!(error, object_store::Error::AlreadyExists { .. }) {
        return true;
    }
    // Without an answer, rather than with one that says no.
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if inner.is::<HttpError>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

fn occupied(path: &Path) -> StorageError {
    StorageError::Corrupt { store: "store", reason: format!("something else lies at {path}, where a new blob belongs") }
}
