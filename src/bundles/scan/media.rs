//! The media of a bundle: where they stand, and whether it is they or their object that says so.

use std::ops::Range;

use super::Scanner;
use crate::bundles::BundleError;
use crate::bundles::found::{Edit, What};
use crate::bundles::object::{CARRIERS, Carrier, Frame, is_loose};
use crate::bundles::text::Told;

/// So many members of one object, and of its payload, may carry bytes or should.
const MAX_CARRIERS: usize = 64;

/// Members in which an envelope has its media.
const PAYLOADS: [&str; 2] = ["payload", "data"];

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
        let is_told = told.almost_base64 || !is_loose(&name);
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
        few(frame)?;
        self.store_urls(told);
        Ok(())
    }

    /// The members with bytes of an object that ends, and is the value of its parent's member that is read. What does not say itself that
    /// it is media waits for the end of its envelope, whose type may follow it.
    pub(super) fn end_carriers(&mut self, frame: &mut Frame) -> Result<(), BundleError> {
        let is_envelope = frame.is_envelope();
        for mut payload in std::mem::take(&mut frame.payloads) {
            let within = payload.name.clone();
            self.end_media(&mut payload, is_envelope, Some(&within))?;
        }
        let parent = self.frames.last_mut().filter(|parent| !parent.is_array && !frame.is_array);
        let Some(parent) = parent.filter(|parent| PAYLOADS.contains(&parent.name.as_str()) && !frame.is_settled())
        else {
            return self.end_media(frame, false, None);
        };
        parent.payloads.push(frame.payload_of(&parent.name));
        few(parent)
    }

    /// Stores what of an object's members is media, and tells what is wrong with them. `within`: it is that member of the object that ends.
    fn end_media(&mut self, frame: &mut Frame, in_envelope: bool, within: Option<&str>) -> Result<(), BundleError> {
        let place = |name: &str| within.map_or_else(|| name.to_owned(), |within| format!("{within}/{name}"));
        let is_ambiguous = frame.is_ambiguous(in_envelope);
        let mut renames = frame.renames(in_envelope);
        for carrier in std::mem::take(&mut frame.carriers) {
            if !carrier.is_url && !frame.vouches(&carrier, in_envelope) {
                continue;
            }
            let Carrier { name, name_at, literal, range, mut media, .. } = carrier;
            self.finding_at(Some(&place(&name)), "inline_media", "media that is inlined");
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
        for name in &frame.not_base64 {
            if frame.wants_base64(name, in_envelope) {
                self.finding_at(Some(&place(name)), "malformed", "no base64");
            }
        }
        if is_ambiguous {
            self.finding_at(within, "source_ambiguous", "media by more than one way");
        }
        Ok(())
    }
}

fn few(frame: &Frame) -> Result<(), BundleError> {
    match frame.carried() > MAX_CARRIERS {
        true => Err(BundleError::TooMany { what: "members with bytes in one object", limit: MAX_CARRIERS }),
        false => Ok(()),
    }
}
