//! What bytes are: their type, kind, and the facts that their containers state.
//!
//! Promised: every input gets an answer within a fixed number of bytes read and steps taken; nothing is decoded to
//! pixels or samples, inflated as a whole, fetched or run; `application/octet-stream` where no rule is sure. Bytes
//! decide, and a declared type only breaks a tie inside one family. Deliberately absent: refusing. Broken bytes are
//! described as broken, and what to do with them is for the caller.
//!
//! The order of the rules is the order of certainty: byte order marks, then signatures, then containers whose
//! structure has to hold because their signature is short, and text last.

pub mod admit;

mod archive;
mod audio;
mod catalogue;
mod container;
mod declared;
mod document;
mod facts;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod image;
mod inflate;
mod magic;
mod markup;
mod reader;
mod second;
mod text;

use std::{
    fmt,
    io::{Read, Seek},
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde::{Deserialize, Serialize};

pub use declared::{BadType, Declared};
pub use facts::{Facts, Flag, Provenance};

use declared::UNKNOWN;
use reader::Bytes;

/// What is looked at: a file, or bytes in memory.
pub trait Source: Read + Seek + Send {}

impl<T: Read + Seek + Send + ?Sized> Source for T {}

/// What an inspection found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The type that the bytes have.
    pub mime_type: String,
    /// Its kind.
    pub kind: Kind,
    /// What the container states.
    pub facts: Facts,
}

/// The coarse sort of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Still or animated pictures.
    Image,
    /// Sound without pictures.
    Audio,
    /// Moving pictures.
    Video,
    /// Paginated or office documents.
    Document,
    /// Text for people or programs.
    Text,
    /// Packed files.
    Archive,
    /// Everything else.
    Other,
}

impl Kind {
    /// The name used in JSON and in the index.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Document => "document",
            Self::Text => "text",
            Self::Archive => "archive",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}

/// Says what the bytes are, by our own rules. Blocking, bounded, and without failure: what cannot be read is unknown or not well formed.
pub fn identify(source: &mut dyn Source, size: u64, declared: Option<&Declared>) -> Found {
    let mut bytes = Bytes::new(source, size);
    // Neither our parsers nor a dependency's may take an upload down with them.
    let mut found = catch_unwind(AssertUnwindSafe(|| by_rules(&mut bytes, declared))).unwrap_or_else(|_| {
        tracing::error!(size_bytes = size, "a media parser panicked; the bytes are kept as unknown");
        Found::unknown()
    });
    if let Some(declared) = declared
        && declared.contradicts(&found.mime_type)
    {
        found.facts.flag(Flag::DeclaredMismatch);
    }
    found.facts.turn_upright();
    found
}

/// Fills in what our rules left open, by asking libraries. Blocking, and bounded in bytes alone: a library may take its time, so whoever
/// calls this keeps what was found before, and waits only so long.
pub fn second_opinion(source: &mut dyn Source, size: u64, mut found: Found) -> Found {
    let mut bytes = Bytes::new(source, size);
    let had_size = found.facts.width.is_some();
    if catch_unwind(AssertUnwindSafe(|| second::ask(&mut bytes, &mut found))).is_err() {
        tracing::warn!(size_bytes = size, "a library panicked over media; what it was asked stays unknown");
    }
    if !had_size {
        found.facts.turn_upright();
    }
    found
}

impl Found {
    /// Whether a library may know what is still open.
    pub fn wants_second_opinion(&self, size: u64) -> bool {
        second::Wish::of(self, size).is_some()
    }

    fn of(mime_type: &str) -> Self {
        Self { mime_type: mime_type.to_owned(), kind: catalogue::kind(mime_type), facts: Facts::default() }
    }

    /// Nothing is known, so nothing about it is broken.
    pub fn unknown() -> Self {
        Self::plain(UNKNOWN)
    }

    /// A type whose structure is not looked at any further than its rule did.
    fn plain(mime_type: &str) -> Self {
        let mut found = Self::of(mime_type);
        found.facts.well_formed = true;
        found
    }
}

/// How much of the beginning the rules see at once: enough for a long comment before a root element.
const SNIFF_WINDOW: usize = 64 * 1024;

type Rule = fn(&mut Bytes<'_>, &[u8]) -> Option<Found>;

/// By certainty; each looks at the head first, so that all but one cost a few comparisons.
const RULES: &[Rule] = &[image::probe, audio::probe, container::probe, document::probe, archive::probe, magic::probe];

/// Rules on bytes that carry no signature worth the name: they demand that the structure holds.
const FAINT_RULES: &[Rule] = &[audio::probe_faint, container::probe_faint, image::probe_faint, magic::probe_faint];

fn by_rules(bytes: &mut Bytes<'_>, declared: Option<&Declared>) -> Found {
    let head = bytes.peek(0, SNIFF_WINDOW).to_vec();
    if head.is_empty() {
        return Found::unknown();
    }
    if magic::is_stub(&head) {
        return Found::unknown();
    }
    // FF FE is a byte order mark before it is anything else: MPEG audio begins with the same bits.
    if let Some(found) = text::probe_marked(bytes, &head, declared) {
        return found;
    }
    if let Some(found) = RULES.iter().find_map(|rule| rule(bytes, &head)) {
        return found;
    }
    if let Some(found) = text::probe(bytes, &head, declared) {
        return found;
    }
    FAINT_RULES.iter().find_map(|rule| rule(bytes, &head)).unwrap_or_else(Found::unknown)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// The whole of an inspection of bytes in memory.
    pub(crate) fn look(bytes: &[u8]) -> Found {
        inspect(&mut Cursor::new(bytes), bytes.len() as u64, None)
    }

    /// Our rules, then the libraries.
    pub(crate) fn inspect(source: &mut dyn Source, size: u64, declared: Option<&Declared>) -> Found {
        let found = identify(source, size, declared);
        second_opinion(source, size, found)
    }

    #[test]
    fn nothing_is_unknown() {
        assert_eq!(look(b"").mime_type, UNKNOWN);
    }

    #[test]
    fn noise_is_unknown() {
        let noise: Vec<u8> = (0u32..4096).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        assert_eq!(look(&noise).mime_type, UNKNOWN);
    }

    #[test]
    fn noise_behind_every_signature_gets_an_answer() {
        let signatures: &[&[u8]] = &[
            b"\x89PNG\r\n\x1A\n",
            b"\xFF\xD8\xFF",
            b"GIF89a",
            b"RIFF\xFF\0\0\0WEBPVP8 ",
            b"II*\0\x08\0\0\0",
            b"MM\0\x2B\0\x08\0\0",
            b"\0\0\0\x18ftypavif",
            b"\0\0\0\x10ftypisom\0\0\0\0\0\0\x02\0moov",
            b"\x1A\x45\xDF\xA3\x87\x42\x82\x84webm",
            b"OggS\0\x02",
            b"fLaC\0\0\0\x22",
            b"ID3\x04\0\0",
            b"RIFF\xFF\0\0\0WAVEfmt ",
            b"FORM\0\0\xFF\0AIFFCOMM",
            b"FLV\x01",
            b"%PDF-1.7\n/ObjStm stream\n\x78\x9C",
            b"PK\x03\x04",
            b"PK\x05\x06",
            b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1",
            b"8BPS\0\x01",
            b"\x30\x26\xB2\x75\x8E\x66\xCF\x11\xA6\xD9\0\xAA\0\x62\xCE\x6C",
            b"MAC \x96\x0F",
            b"wvpk",
            b"MPCKSH",
            b"caff\0\x01",
            b"\0\0\x01\0\x01\0",
            b"\xFF\x0A",
            b"\xFF\x4F\xFF\x51",
            b"<svg ",
            b"{",
            b"\xFF\xFE",
            b"",
        ];
        let mut seed = 1u32;
        for signature in signatures {
            for length in (0..400).step_by(7) {
                let noise = std::iter::repeat_with(|| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    // Small numbers lead further into structures than large ones.
                    if seed & 0x300 == 0 { (seed >> 24) as u8 } else { (seed >> 29) as u8 }
                });
                let file: Vec<u8> = signature.iter().copied().chain(noise.take(length)).collect();
                // Not `identify`: it would hide a panic.
                by_rules(&mut Bytes::new(&mut Cursor::new(&file), file.len() as u64), None);
            }
        }
    }

    #[test]
    fn words_that_begin_like_a_signature_are_words() {
        for text in [
            "BMW and Audi",
            "OTTO met ANNA",
            "wOFF and on",
            "fLaC is lossless",
            ".snd files",
            "CWS 2024",
            "FWS news",
            "TTA1 rules",
            "MAC addresses",
            "PAR1 2 3",
            "AC10 bus",
            "icns files",
            "farbfeld is small",
            "FLIF is dead",
            "070701 is a number",
            "ID3 tags",
            "8BPS what",
            "MP3 is a format",
            "gimp xcf is a format",
            "II*",
            "SDPX or not",
            "true or false?",
            "P5 is a grade",
            "MZ",
        ] {
            assert_eq!(look(text.as_bytes()).mime_type, "text/plain", "{text}");
        }
    }

    #[test]
    fn a_mismatch_is_flagged_and_never_followed() {
        let declared = Declared::parse("audio/mpeg").expect("a type");
        let found = inspect(&mut Cursor::new(b"%PDF-1.4\n%%EOF"), 14, declared.as_ref());
        assert_eq!(found.mime_type, "application/pdf");
        assert!(found.facts.flags.contains(&Flag::DeclaredMismatch));
    }

    #[test]
    fn a_size_that_is_not_there_is_survived() {
        let found = inspect(&mut Cursor::new(b"GIF89a"), 1 << 40, None);
        assert_eq!(found.mime_type, "image/gif");
        assert!(!found.facts.well_formed);
    }
}
