//! Delivery URLs, each of which has a row for as long as it can be asked about.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::AssetId;

/// What the index keeps of a delivery URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlRecord {
    /// The asset that it opens.
    pub asset: AssetId,
    /// The asset's generation when it was made: once that is raised it opens nothing.
    pub generation: u32,
    /// When it ends by itself.
    pub expires_at: Timestamp,
    /// Until when its row is kept: past the end, also by a clock that is behind.
    pub keep_until: Timestamp,
    /// By what its maker may revoke it together with others.
    #[serde(default)]
    pub label: Option<String>,
    /// How many uses are left; `None`: they are not counted.
    #[serde(default)]
    pub uses_left: Option<u64>,
}

/// A delivery URL and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MintedUrl {
    /// By what it is revoked and counted.
    pub url_id: String,
    /// Its row.
    pub record: UrlRecord,
}

/// A delivery URL as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlView {
    /// Its name.
    pub url_id: String,
    /// Its row.
    pub record: UrlRecord,
    /// Whether it was revoked by its name or label.
    pub revoked: bool,
}

impl UrlView {
    /// Whether it opens its asset at `now`, as far as it is the URL's own to say: the asset may have ended, or have a new generation.
    pub fn opens(&self, now: Timestamp) -> bool {
        !self.revoked && now < self.record.expires_at && self.record.uses_left != Some(0)
    }
}

/// Delivery URLs that were revoked by name in one step: written beside the bytes, so that an index made anew knows of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedUrls {
    /// Each with the time until when that matters.
    pub urls: Vec<(String, Timestamp)>,
}

/// What `take_use` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// This use is the caller's.
    Yours,
    /// All uses are taken.
    Exhausted,
    /// There is no such counted URL, or it was revoked.
    Unknown,
}
