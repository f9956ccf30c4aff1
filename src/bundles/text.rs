//! The inside of one string of a bundle: whether it is base64 as a whole, the `data:` URLs in it, and the links in it.
//!
//! Where the string is JSON itself, its escapes are undone ([`super::nested`]) before its words are read ([`super::words`]).

use std::ops::Range;

use bytes::BytesMut;

use super::body::{Form, Meter};
use super::data_url::DataUrl;
use super::found::{MAX_MEDIA, MAX_MENTIONS};
use super::links::{Links, Met};
use super::nested::Nested;
use super::words::Words;
use crate::assets::once::Weighed;

/// So much of a string is kept, for those whose text means something.
const MAX_KEPT: usize = 1024;

/// Base64 of at least so many characters is nothing that somebody wrote.
const LONG: u64 = 64;

/// Media that a string carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Media {
    pub(super) form: Form,
    /// Where its characters stand in the bundle.
    pub(super) body: Range<u64>,
    /// The type that its own URL says.
    pub(super) declared: Option<String>,
    pub(super) weighed: Weighed,
}

/// What was found in a string.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The text, if it is short.
    pub(super) text: Option<String>,
    /// It is base64 as a whole, and of at least one byte. Asked of some members alone.
    pub(super) base64: Option<Media>,
    /// It is not empty, and was to be base64, and is not.
    pub(super) not_base64: bool,
    /// The same, and it looks like nothing else: long, and almost all of it of one alphabet.
    pub(super) almost_base64: bool,
    /// There is a `data:` URL of base64 that cannot be decoded.
    pub(super) broken_url: bool,
    pub(super) data_urls: Vec<DataUrl>,
    /// Links of ours, or that look so, and where they stand in the bundle.
    pub(super) links: Vec<Met>,
}

impl Told {
    /// Whether it has more than a bundle may have: nothing more is looked for.
    pub(super) fn is_full(&self) -> bool {
        self.links.len() > MAX_MENTIONS || self.data_urls.len() > MAX_MEDIA
    }
}

/// A string while it is read.
#[derive(Debug)]
pub(super) struct Text {
    from: u64,
    kept: Option<Vec<u8>>,
    base64: Option<Member>,
    nested: Nested,
    words: Words,
    told: Told,
}

/// A member that may be base64 as a whole.
#[derive(Debug)]
struct Member {
    meter: Meter,
    length: u64,
    /// Characters of no alphabet of base64.
    others: u64,
}

impl Text {
    /// A string whose inside begins there. `may_be_base64`: its member's name says that it may carry bytes.
    pub(super) fn new(from: u64, may_be_base64: bool) -> Self {
        let member = || Member { meter: Meter::new(Form::Base64), length: 0, others: 0 };
        Self {
            from,
            kept: Some(Vec::new()),
            base64: may_be_base64.then(member),
            nested: Nested::default(),
            words: Words::default(),
            told: Told::default(),
        }
    }

    /// Where its inside begins.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    /// Takes the next piece: text as it stands between these places of the bundle, or one character that an escape there stands for.
    pub(super) fn push(&mut self, piece: &[u8], at: Range<u64>, links: &Links<'_>, out: &mut BytesMut) {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(piece);
            if kept.len() > MAX_KEPT {
                self.kept = None;
            }
        }
        if let Some(member) = &mut self.base64 {
            member.push(piece, out);
        }
        let Self { nested, words, told, .. } = self;
        if words.is_raw() {
            return words.push_raw(piece, out);
        }
        nested.push(piece, at.clone(), |piece, at| words.push(piece, at, links, out, told));
        if let Some(from) = words.raw_from() {
            // The rest is the content of a URL, as it stands there.
            *nested = Nested::default();
            let from = usize::try_from(from.saturating_sub(at.start)).unwrap_or(usize::MAX);
            words.push_raw(piece.get(from..).unwrap_or_default(), out);
        }
    }

    /// Ends the string, whose closing quotation mark stands there.
    pub(super) fn finish(mut self, end: u64, links: &Links<'_>, out: &mut BytesMut) -> Told {
        let Self { nested, words, told, .. } = &mut self;
        nested.finish(|piece, at| words.push(piece, at, links, out, told));
        words.finish(end, links, out, told);
        if let Some(member) = self.base64.take() {
            member.finish(self.from..end, out, &mut self.told);
        }
        self.told.text = self.kept.take().and_then(|kept| String::from_utf8(kept).ok());
        self.told
    }
}

impl Member {
    fn push(&mut self, piece: &[u8], out: &mut BytesMut) {
        self.meter.push(piece, out);
        self.length += piece.len() as u64;
        let others = piece.iter().filter(|byte| !byte.is_ascii_alphanumeric() && !b"+/-_=\r\n".contains(byte));
        self.others += others.count() as u64;
    }

    fn finish(self, body: Range<u64>, out: &mut BytesMut, told: &mut Told) {
        match self.meter.finish(out) {
            Some(weighed) if weighed.bytes > 0 => {
                told.base64 = Some(Media { form: Form::Base64, body, declared: None, weighed });
            }
            Some(_) => {}
            None => {
                told.not_base64 = self.length > 0;
                told.almost_base64 = self.length >= LONG && self.others <= self.length / 100 + 1;
            }
        }
    }
}
