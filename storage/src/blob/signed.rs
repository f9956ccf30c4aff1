//! A blob read from the store itself, by a URL that the store's own credentials have signed.
//!
//! Only S3 and what speaks like it signs what the answer says of itself along with the rest, so that nobody can have the bytes shown as
//! something else. The time in a signature is the machine's, as in every request to such a store, which compares it with its own: a
//! clock that somebody turns would make URLs that are over, or that hold for too long.

use std::fmt;
use std::time::Duration;

use object_store::signer::{Method, SignedUrlOptions};

use super::{BlobStore, Way, blob_path};
use crate::error::StorageError;
use crate::ids::{BlobKey, TenantId};

/// What the store's answer is to say of the bytes.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// `Content-Type`.
    pub content_type: &'a str,
    /// `Content-Disposition`.
    pub disposition: &'a str,
    /// `Cache-Control`.
    pub cache_control: &'a str,
}

/// Where the bytes are, for whoever has it: a capability, and not to be shown.
pub struct SignedUrl(String);

impl SignedUrl {
    /// The whole of it, for the one who asked.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SignedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedUrl")
    }
}

impl BlobStore {
    /// Whether [`BlobStore::signed_url`] gives any.
    pub fn signs_urls(&self) -> bool {
        matches!(&self.way, Way::Objects(objects) if objects.signs())
    }

    /// A URL by which anybody may read the blob for so long, in whole seconds, and which is answered as `shown` says; `None` where the store
    /// signs none. Whether the bytes are there, the store says to whoever comes by it.
    pub async fn signed_url(
        &self,
        tenant: &TenantId,
        blob: BlobKey,
        shown: Shown<'_>,
        lifetime: Duration,
    ) -> Result<Option<SignedUrl>, StorageError> {
        let Way::Objects(objects) = &self.way else {
            return Ok(None);
        };
        let said = SignedUrlOptions::new().with_query([
            ("response-cache-control", shown.cache_control),
            ("response-content-disposition", shown.disposition),
            ("response-content-type", shown.content_type),
        ]);
        let signed = objects.sign(Method::GET, &blob_path(tenant, blob), lifetime, &said).await?;
        Ok(signed.map(|url| SignedUrl(url.into())))
    }
}
