//! What is known of an object or array while it is read, and what that says at its end: whether it carries media, and by how many ways.

use std::ops::Range;

use super::text::Media;

/// Members that may carry bytes, beside one that says so ([`Frame::vouches`]).
pub(super) const CARRIERS: [&str; 5] = ["base64", "data", "dataBase64", "contentBase64", "raw"];

/// Those of them that are often no base64, and then nothing is wrong with them.
const LOOSE: [&str; 2] = ["data", "raw"];

/// Base64 of more bytes than this is no digest, no name and no word, all of which may be base64 by chance: a SHA-512 in hexadecimal
/// digits reads as 96 bytes.
const CHANCE: u64 = 128;

/// Members that name a type; the last as a provider's messages have it.
const TYPES: [&str; 4] = ["mimeType", "mediaType", "contentType", "media_type"];

/// Types of content parts that are media.
const PARTS: [&str; 4] = ["image", "audio", "document", "file"];

/// Members by which an object names an asset.
pub(super) const NAMES: [&str; 4] = ["url", "mediaRef", "ref", "assetId"];

/// The longest type that is taken for one, in bytes.
const MAX_TYPE: usize = 255;

/// The longest name that a path repeats whole, in bytes.
const MAX_NAME: usize = 256;

/// What stands in a path for a name that would travel by it.
const HIDDEN: &str = "[REDACTED]";

/// An object or an array.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) is_array: bool,
    pub(super) index: usize,
    /// The member that is read: its name, and where that stands, without its quotation marks.
    pub(super) name: String,
    pub(super) name_at: Range<u64>,
    /// Whether the name is what no report repeats: it has media or a link in it.
    pub(super) is_hidden: bool,
    /// Where the value that is read begins.
    pub(super) value_from: u64,
    pub(super) is_empty: bool,
    pub(super) media_type: Option<String>,
    type_said: Said,
    part: Option<String>,
    has_url: bool,
    /// Where its `url` stands that is `null`.
    pub(super) null_url: Option<Range<u64>>,
    has_name: bool,
    pub(super) bytes: Option<u64>,
    /// Whether its `bytes` is a number, of any spelling.
    has_bytes: bool,
    pub(super) sha256: Option<String>,
    /// It says of itself that its asset is over.
    pub(super) is_over: bool,
    /// Whether the object in its member `payload` has a source.
    payload: Option<bool>,
    pub(super) redaction: (bool, bool),
    pub(super) carriers: Vec<Carrier>,
    /// Members that should be base64 and are not.
    pub(super) not_base64: Vec<String>,
    /// Its `payload` and `data` that carry something of which they do not say that it is media: its own type may.
    pub(super) payloads: Vec<Self>,
    /// The mentions that its own members made: they are compared with its size and digest.
    pub(super) mentions: Vec<usize>,
}

/// What an object says of its type.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    #[default]
    Nothing,
    /// It has a member for it, of nothing: `null`, `""`.
    Blank,
    /// A text, be it too long for a type.
    Name,
}

/// A member with bytes.
#[derive(Debug)]
pub(super) struct Carrier {
    pub(super) name: String,
    pub(super) name_at: Range<u64>,
    /// The whole string, with its quotation marks.
    pub(super) literal: Range<u64>,
    /// What of it is replaced.
    pub(super) range: Range<u64>,
    pub(super) media: Media,
    /// A `data:` URL is media whatever stands beside it.
    pub(super) is_url: bool,
}

impl Frame {
    pub(super) fn new(is_array: bool) -> Self {
        Self { is_array, is_empty: true, ..Self::default() }
    }

    /// What stands between this one and the value that is read, in a JSON pointer.
    pub(super) fn step(&self) -> String {
        match self.is_array {
            true => self.index.to_string(),
            false if self.is_hidden => HIDDEN.to_owned(),
            false => {
                let short: String = self.name.chars().take(MAX_NAME).collect();
                short.replace('~', "~0").replace('/', "~1")
            }
        }
    }

    /// Takes note of a member that is a short string.
    pub(super) fn note_text(&mut self, text: &str) {
        match self.name.as_str() {
            name if TYPES.contains(&name) && text.is_empty() => return self.note_blank_type(),
            name if TYPES.contains(&name) && text.len() <= MAX_TYPE => {
                self.media_type.get_or_insert_with(|| text.to_owned());
            }
            "type" => self.part = Some(text.to_owned()),
            "sha256" => self.sha256 = Some(text.to_ascii_lowercase()),
            "state" => self.is_over = matches!(text, "expired" | "erased"),
            "redactionMode" => self.redaction.1 = text == "passthrough",
            _ => {}
        }
        self.note_string();
    }

    /// Takes note of a member that is a string of any length.
    pub(super) fn note_string(&mut self) {
        match self.name.as_str() {
            "url" => self.has_url = true,
            "mediaRef" | "ref" | "assetId" | "streamRef" => self.has_name = true,
            name if TYPES.contains(&name) => self.type_said = Said::Name,
            _ => {}
        }
    }

    fn note_blank_type(&mut self) {
        self.type_said = self.type_said.max(Said::Blank);
    }

    /// Takes note of a number, `true`, `false` or `null`.
    pub(super) fn note_word(&mut self, word: &[u8], range: Range<u64>) {
        let word = std::str::from_utf8(word).unwrap_or_default();
        match self.name.as_str() {
            "bytes" => {
                self.bytes = word.parse().ok();
                self.has_bytes = word.starts_with(|first: char| first == '-' || first.is_ascii_digit());
            }
            name if TYPES.contains(&name) => self.note_blank_type(),
            "url" if word == "null" => self.null_url = Some(range),
            "url" => self.has_url = true,
            "redactionApplied" => self.redaction.0 = word == "true",
            _ => {}
        }
    }

    /// Takes note of an object that was its member.
    pub(super) fn note_object(&mut self, child: &Self) {
        if self.name == "payload" && !child.misses_own_source() {
            self.payload = Some(child.has_source());
        }
    }

    /// Whether the object names its media by any way.
    fn has_source(&self) -> bool {
        self.has_url || self.has_name || !self.carriers.is_empty()
    }

    /// Whether it is media that should have a source and has none.
    pub(super) fn misses_source(&self) -> bool {
        self.misses_own_source() || self.is_envelope() && self.payload == Some(false)
    }

    fn misses_own_source(&self) -> bool {
        let is_typed = self.media_type.is_some();
        let is_part = is_typed && self.part.as_deref().is_some_and(|part| PARTS.contains(&part));
        let is_payload = is_typed && self.bytes.is_some();
        (is_part || is_payload) && !self.has_source() && self.not_base64.is_empty()
    }

    /// Whether it is an envelope of media: then its `payload` is media whatever that says of itself.
    pub(super) fn is_envelope(&self) -> bool {
        self.part.as_deref().is_some_and(|kind| kind.starts_with("media."))
    }

    /// Whether base64 in it is media as far as its other members go.
    pub(super) fn is_media(&self, in_envelope: bool) -> bool {
        in_envelope || self.has_bytes || self.type_said > Said::Nothing
    }

    /// Whether what stands beside the carrier says that it is media.
    ///
    /// A type does, and so does the envelope that the object lies in. A number `bytes`, which is all that the schema of a payload asks for,
    /// and a type that is left blank do for the members that are called base64. `data` and `raw` may be any text, and many a text is
    /// valid base64 by chance: for them `bytes` has to be their size, or they have to be longer than chance is.
    pub(super) fn vouches(&self, carrier: &Carrier, in_envelope: bool) -> bool {
        let size = carrier.media.weighed.bytes;
        match (in_envelope, self.type_said, is_loose(&carrier.name)) {
            (true, ..) | (_, Said::Name, _) => true,
            (_, said, false) => self.has_bytes || said == Said::Blank,
            (.., true) => self.has_bytes && (self.bytes == Some(size) || size > CHANCE),
        }
    }

    /// Whether it is wrong that the member of that name is no base64.
    pub(super) fn wants_base64(&self, name: &str, in_envelope: bool) -> bool {
        let has_blank = self.type_said == Said::Blank && !is_loose(name);
        in_envelope || self.has_bytes || self.type_said == Said::Name || has_blank
    }

    /// Whether all that it carries is media or wrong by what it says itself, or nothing is.
    pub(super) fn is_settled(&self) -> bool {
        self.carriers.iter().all(|carrier| self.vouches(carrier, false))
            && self.not_base64.iter().all(|name| self.wants_base64(name, false))
    }

    /// What of it waits for the end of the object whose member of that name it is.
    pub(super) fn payload_of(&mut self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            media_type: self.media_type.clone(),
            type_said: self.type_said,
            has_url: self.has_url,
            null_url: self.null_url.take(),
            bytes: self.bytes,
            has_bytes: self.has_bytes,
            carriers: std::mem::take(&mut self.carriers),
            not_base64: std::mem::take(&mut self.not_base64),
            ..Self::default()
        }
    }

    /// How many members of it carry bytes, or should.
    pub(super) fn carried(&self) -> usize {
        let waiting: usize = self.payloads.iter().map(Self::carried).sum();
        self.carriers.len() + self.not_base64.len() + waiting
    }

    /// Whether its media come by more than one way.
    pub(super) fn is_ambiguous(&self, in_envelope: bool) -> bool {
        let counted = self.carriers.iter().filter(|carrier| carrier.is_url || self.vouches(carrier, in_envelope));
        let sources = counted.count() + usize::from(self.has_url);
        self.is_media(in_envelope) && sources > 1
    }

    /// Whether its first carrier takes the name `url`.
    pub(super) fn renames(&self, in_envelope: bool) -> bool {
        self.is_media(in_envelope) && !self.has_url
    }
}

/// Whether a member of that name is often no base64.
pub(super) fn is_loose(name: &str) -> bool {
    LOOSE.contains(&name)
}
