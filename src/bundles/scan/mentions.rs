//! What a bundle names: links of ours, ids and `mediaRef`s.

use std::collections::HashSet;

use mediakeep_storage::AssetId;

use super::{Scanner, path};
use crate::bundles::BundleError;
use crate::bundles::found::{Edit, MAX_MENTIONS, Mention, What};
use crate::bundles::links::{Link, Met};
use crate::bundles::object::NAMES;

impl Scanner<'_> {
    /// Takes note of the links in a string or a name.
    pub(super) fn note_links(&mut self, links: &[Met]) -> Result<(), BundleError> {
        if links.len() > MAX_MENTIONS {
            return Err(BundleError::TooMany { what: "links in one string", limit: MAX_MENTIONS });
        }
        let mut met = HashSet::new();
        for Met { link, place, layers } in links {
            let asset = match link {
                Link::Capability(asset) => {
                    self.found.edits.push(Edit { range: place.clone(), what: What::Link(*asset, *layers) });
                    self.finding("capability_url", "a URL that opens without a credential");
                    Some(*asset)
                }
                Link::Bound(asset) => *asset,
                Link::Foreign => {
                    self.finding("foreign_url", "a URL of another tenant");
                    continue;
                }
                Link::Broken => {
                    self.finding("malformed", "a URL under our address that we have not made");
                    continue;
                }
            };
            if met.insert(asset) {
                self.mention(asset);
            }
        }
        Ok(())
    }

    /// Takes note of an asset that is named by id or `mediaRef`.
    pub(super) fn note_name(&mut self, text: Option<&str>) {
        let Some((frame, text)) = self.frames.last().zip(text) else {
            return;
        };
        let id = match frame.name.as_str() {
            "mediaRef" | "ref" => text.strip_prefix("blob:").filter(|id| id.starts_with("ast_")),
            "assetId" => Some(text).filter(|id| id.starts_with("ast_")),
            _ => None,
        };
        if let Some(id) = id {
            self.mention(AssetId::parse(id).ok());
        }
    }

    fn mention(&mut self, asset: Option<AssetId>) {
        let path = path(&self.frames, None);
        let mention = Mention { path, asset, bytes: None, sha256: None, is_over: false };
        if let Some(frame) = self.frames.last_mut().filter(|frame| NAMES.contains(&frame.name.as_str())) {
            frame.mentions.push(self.found.mentions.len());
        }
        self.found.mentions.push(mention);
    }
}
