//! What is kept of a tenant's quota for an upload while its bytes come.
//!
//! A length that the sender says is reserved before the first byte. Where none is said, or only that of a body with wrapping, more is
//! reserved than has come, so that not each chunk costs a transition of the index; and where the quota leaves less than that, exactly
//! what has come: bytes that fit are never refused for what might have followed. No byte is written that is not reserved.

use mediakeep_storage::quota::Reserved;
use mediakeep_storage::record::UploadIntent;
use mediakeep_storage::{BlobKey, TenantId};

use super::Start;
use super::publication::lost;
use crate::app::App;
use crate::assets::AssetError;

/// How much is reserved ahead of what has come: half as much again, at least and at most so many bytes.
const AHEAD: (u64, u64) = (1 << 20, 64 << 20);

/// How many bytes an upload needs reserved before any have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wish {
    /// With less it cannot end well.
    least: u64,
    /// With so much it will not come again, or not soon.
    most: u64,
    /// More than this no upload may have.
    limit: u64,
    /// All of it is reserved elsewhere.
    is_reserved: bool,
}

impl Wish {
    /// What the request says of itself.
    pub(super) fn of(start: &Start, limit: u64) -> Self {
        let (least, most) = match (start.announced, start.at_most) {
            (Some(exactly), _) => (exactly, exactly),
            (None, Some(at_most)) => (1, at_most.min(limit).max(1)),
            (None, None) => (1, ahead(0, limit)),
        };
        Self { least, most, limit, is_reserved: false }
    }

    /// The same, of bytes for which something else has all reserved that they need.
    pub(super) fn reserved_elsewhere(self, is_reserved: bool) -> Self {
        Self { is_reserved, ..self }
    }
}

/// What is reserved for one upload.
#[derive(Debug)]
pub(super) struct Reservation {
    blob: BlobKey,
    bytes: u64,
    limit: u64,
}

impl Reservation {
    /// Announces the upload, and reserves what it wishes for.
    pub(super) async fn begin(
        app: &App,
        tenant: &TenantId,
        intent: UploadIntent,
        wish: Wish,
    ) -> Result<Self, AssetError> {
        let (blob, quota) = (intent.blob, app.quota(tenant));
        if wish.is_reserved {
            app.index.begin_upload(tenant, intent).await?;
            return Ok(Self { blob, bytes: u64::MAX, limit: wish.limit });
        }
        for bytes in [wish.most, wish.least] {
            match app.index.begin_reserved(tenant, intent.clone(), bytes, quota).await? {
                Reserved::Done => return Ok(Self { blob, bytes, limit: wish.limit }),
                Reserved::UploadLost => return Err(lost(blob).into()),
                Reserved::OverQuota => {}
            }
        }
        Err(over_quota(app))
    }

    /// Sees to it that so many bytes are reserved.
    pub(super) async fn cover(&mut self, app: &App, tenant: &TenantId, received: u64) -> Result<(), AssetError> {
        if received <= self.bytes {
            return Ok(());
        }
        let quota = app.quota(tenant);
        for bytes in [ahead(received, self.limit), received] {
            match app.index.reserve(tenant, self.blob, bytes, quota).await? {
                Reserved::Done => {
                    self.bytes = bytes;
                    return Ok(());
                }
                Reserved::UploadLost => return Err(lost(self.blob).into()),
                Reserved::OverQuota => {}
            }
        }
        Err(over_quota(app))
    }
}

fn ahead(received: u64, limit: u64) -> u64 {
    let (least, most) = AHEAD;
    received.saturating_add((received / 2).clamp(least, most)).min(limit.max(received))
}

fn over_quota(app: &App) -> AssetError {
    app.metrics.over_quota();
    AssetError::OverQuota
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_further_an_upload_is_the_more_is_reserved_for_it_and_never_more_than_it_may_have() {
        assert_eq!(ahead(0, 1 << 31), 1 << 20);
        assert_eq!(ahead(100 << 20, 1 << 31), 150 << 20);
        assert_eq!(ahead(1 << 30, 1 << 31), (1 << 30) + (64 << 20));
        assert_eq!(ahead((1 << 31) - 5, 1 << 31), 1 << 31);
        assert_eq!(ahead(9, 9), 9);
    }
}
