//! What was found in a bundle: what is written anew, what is named, and what is wrong. Each list has a bound.

use std::ops::Range;

use mediakeep_storage::AssetId;

use super::BundleError;
use super::text::Media;

/// The member that a scrubbed bundle carries its manifest in.
pub const MANIFEST: &str = "x-host-mediakeep-mediaAssets";

/// So many media of one bundle are stored.
pub const MAX_MEDIA: usize = 10_000;

/// So many mentions of assets are looked up.
pub const MAX_MENTIONS: usize = 50_000;

/// So many findings are told.
pub const MAX_FINDINGS: usize = 1_000;

/// Something wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A JSON pointer into the bundle.
    pub path: String,
    /// Which of the codes.
    pub code: &'static str,
    /// A sentence.
    pub message: &'static str,
}

/// A place of the bundle that is written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<u64>,
    pub(super) what: What,
}

/// By what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The bound URL of what the media becomes, percent-encoded so often.
    Media(usize, u8),
    /// The bound URL of this asset, percent-encoded so often.
    Link(AssetId, u8),
    /// The same with quotation marks.
    Quoted(usize),
    /// `null`.
    Null,
    /// The name `url`.
    Name,
}

/// An asset that the bundle names, and what it says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) path: String,
    /// `None`: what is no asset's name.
    pub(super) asset: Option<AssetId>,
    pub(super) bytes: Option<u64>,
    pub(super) sha256: Option<String>,
    /// Whether the bundle itself says that it is over.
    pub(super) is_over: bool,
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// In order, and none within another.
    pub(super) edits: Vec<Edit>,
    pub(super) media: Vec<Media>,
    pub(super) mentions: Vec<Mention>,
    pub(super) findings: Vec<Finding>,
    /// Where the bundle's object begins and ends.
    pub(super) bundle: Range<u64>,
    pub(super) is_empty: bool,
    /// Where its manifest stands, if it has one.
    pub(super) manifest: Option<Range<u64>>,
    pub(super) run: Option<String>,
}

impl Found {
    /// The media that stands there becomes its URL.
    pub(super) fn store(&mut self, media: Media, range: Range<u64>, layers: u8) {
        self.edits.push(Edit { range, what: What::Media(self.media.len(), layers) });
        self.media.push(media);
    }

    /// Something is wrong there.
    pub(super) fn finding(&mut self, path: impl FnOnce() -> String, code: &'static str, message: &'static str) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding { path: path(), code, message });
        }
    }

    /// Refuses more than one bundle may have.
    pub(super) fn bounded(&self) -> Result<(), BundleError> {
        if self.media.len() > MAX_MEDIA {
            return Err(BundleError::TooMany { what: "inlined media", limit: MAX_MEDIA });
        }
        if self.mentions.len() > MAX_MENTIONS {
            return Err(BundleError::TooMany { what: "mentions of assets", limit: MAX_MENTIONS });
        }
        Ok(())
    }
}
