//! The media of a bundle: where they stand, and whether it is they or their object that says so.

use std::ops::Range;

use super::Scanner;
use crate::bundles::BundleError;
use crate::bundles::found::{Edit, What};
use crate::bundles::object::{CARRIERS, Carrier, Frame, Judgement};
use crate::bundles::text::Told;

/// So many members of one object may carry bytes.
const MAX_CARRIERS: usize = 64;

/// Members with these names are often no base64, and then nothing is wrong with them.
const LOOSE: [&str; 2] = ["data", "raw"];

impl Scanner<'_> {
    /// `data:` URLs where nothing else can be said of them: in names, in arrays, within texts.
    pub(super) fn store_urls(&mut self, told: &mut Told) {
        for url in std::mem::take(&mut told.data_urls) {
            self.found.store(url.media, url.range, url.layers);
            self.finding("inline_media", "a data: URL");
        }
        if std::mem::take(&mut told.broken_url) {
            self.finding("malformed", "a data: URL that cannot be decoded");
        }
    }

    /// Takes note of what a member carries, whose string stands there with its quotation marks. Its object's end will show what it is.
    pub(super) fn note_carriers(&mut self, literal: Range<u64>, told: &mut Told) -> Result<(), BundleError> {
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        let (name, name_at) = (frame.name.clone(), frame.name_at.clone());
        let is_carrier = CARRIERS.contains(&name.as_str());
        let is_named = told.text.as_deref().is_some_and(|text| text.contains("://"));
        let is_told = told.almost_base64 || !LOOSE.contains(&name.as_str());
        if told.not_base64 && is_told && told.data_urls.is_empty() && !is_named {
            frame.not_base64.push(name.clone());
        }
        let carrier = |range, media, is_url| Carrier {
            name: name.clone(),
            name_at: name_at.clone(),
            literal: literal.clone(),
            range,
            media,
            is_url,
        };
        if let Some(media) = told.base64.take() {
            frame.carriers.push(carrier(literal.start + 1..literal.end - 1, media, false));
        }
        for url in told.data_urls.extract_if(.., |url| url.whole && is_carrier) {
            frame.carriers.push(carrier(url.range, url.media, true));
        }
        if frame.carriers.len() > MAX_CARRIERS {
            return Err(BundleError::TooMany { what: "members with bytes in one object", limit: MAX_CARRIERS });
        }
        self.store_urls(told);
        Ok(())
    }

    /// The members with bytes of an object that ends: media if a type stands beside them.
    pub(super) fn end_carriers(&mut self, frame: &mut Frame, judgement: Judgement) -> Result<(), BundleError> {
        let mut renames = judgement.renames;
        for Carrier { name, name_at, literal, range, mut media, is_url } in std::mem::take(&mut frame.carriers) {
            if !judgement.is_typed && !is_url {
                continue;
            }
            self.finding_at(Some(&name), "inline_media", "media that is inlined");
            media.declared = media.declared.or_else(|| frame.media_type.clone());
            let renames = std::mem::take(&mut renames);
            match frame.null_url.take().filter(|_| renames) {
                // Some hosts write both members, and `null` for the one that is not: then the two change places.
                Some(null) => {
                    self.found.edits.push(Edit { range: null, what: What::Quoted(self.found.media.len()) });
                    self.found.edits.push(Edit { range: literal, what: What::Null });
                    self.found.media.push(media);
                }
                None => {
                    if renames {
                        self.found.edits.push(Edit { range: name_at, what: What::Name });
                    }
                    self.found.store(media, range, 0);
                }
            }
            self.found.bounded()?;
        }
        Ok(())
    }
}
