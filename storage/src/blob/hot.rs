//! The bytes of small blobs that were read a moment ago: opening and reading such a file costs more than sending it.
//!
//! A blob never changes, so what is kept is right for as long as the blob is there. It goes when the blob is removed: a reader that
//! was already on its way then keeps nothing, whichever of the two is done first. A file that somebody else takes away is served for as
//! long as it is hot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use moka::sync::Cache;

use crate::ids::{BlobKey, TenantId};

/// Larger blobs are not kept: for them a read from the page cache is a small part of the work.
pub(super) const SMALL: u64 = 64 * 1024;

/// How many bytes are kept of all of them.
const ROOM: u64 = 16 << 20;

/// What an entry takes besides its bytes.
const FRAME: u32 = 256;

/// Small blobs by their keys.
#[derive(Debug, Clone)]
pub(super) struct Hot {
    blobs: Cache<BlobKey, Arc<Kept>>,
    removals: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Kept {
    tenant: TenantId,
    bytes: Bytes,
}

/// The place for a blob that is about to be read.
#[derive(Debug, Clone)]
pub(super) struct Place {
    hot: Hot,
    tenant: TenantId,
    blob: BlobKey,
    removals: u64,
}

impl Hot {
    pub(super) fn new() -> Self {
        let weight =
            |_: &BlobKey, kept: &Arc<Kept>| u32::try_from(kept.bytes.len()).map_or(u32::MAX, |len| len + FRAME);
        Self { blobs: Cache::builder().max_capacity(ROOM).weigher(weight).build(), removals: Arc::default() }
    }

    pub(super) fn get(&self, tenant: &TenantId, blob: BlobKey) -> Option<Bytes> {
        let kept = self.blobs.get(&blob)?;
        (kept.tenant == *tenant).then(|| kept.bytes.clone())
    }

    /// To be asked for before the blob is opened.
    pub(super) fn place(&self, tenant: &TenantId, blob: BlobKey) -> Place {
        let removals = self.removals.load(Ordering::SeqCst);
        Place { hot: self.clone(), tenant: tenant.clone(), blob, removals }
    }

    /// To be called when the blob is out of reach.
    pub(super) fn removed(&self, blob: BlobKey) {
        self.removals.fetch_add(1, Ordering::SeqCst);
        self.blobs.invalidate(&blob);
    }
}

impl Place {
    /// Keeps all the bytes of the blob, unless any blob was removed since the place was asked for: it may have been this one.
    pub(super) fn keep(&self, read: &[u8]) {
        // What was read lies in a larger buffer, which is wanted elsewhere.
        let bytes = Bytes::copy_from_slice(read);
        let kept = Kept { tenant: self.tenant.clone(), bytes };
        self.hot.blobs.insert(self.blob, Arc::new(kept));
        if self.hot.removals.load(Ordering::SeqCst) != self.removals {
            self.hot.blobs.invalidate(&self.blob);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).expect("a tenant")
    }

    #[test]
    fn what_was_read_is_kept_until_it_is_removed_for_its_tenant_alone() {
        let (hot, blob) = (Hot::new(), BlobKey::generate());
        hot.place(&tenant("acme"), blob).keep(b"bytes");

        assert_eq!(hot.get(&tenant("acme"), blob), Some(Bytes::from_static(b"bytes")));
        assert_eq!(hot.get(&tenant("globex"), blob), None);
        hot.removed(blob);
        assert_eq!(hot.get(&tenant("acme"), blob), None);
    }

    #[test]
    fn a_reader_that_was_on_its_way_when_the_blob_was_removed_keeps_nothing() {
        let (hot, blob) = (Hot::new(), BlobKey::generate());
        let place = hot.place(&tenant("acme"), blob);

        hot.removed(blob);
        place.keep(b"bytes");

        assert_eq!(hot.get(&tenant("acme"), blob), None);
    }
}
