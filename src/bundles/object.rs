//! What is known of an object or array while it is read, and the judgement at its end: whether it carries media, and by how many ways.

use std::ops::Range;

use super::text::Media;

/// Members that may carry bytes, beside one that names their type.
pub(super) const CARRIERS: [&str; 5] = ["base64", "data", "dataBase64", "contentBase64", "raw"];

/// Members that name a type.
const TYPES: [&str; 3] = ["mimeType", "mediaType", "contentType"];

/// Types of content parts that are media.
const PARTS: [&str; 4] = ["image", "audio", "document", "file"];

/// Members by which an object names an asset.
pub(super) const NAMES: [&str; 4] = ["url", "mediaRef", "ref", "assetId"];

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
    part: Option<String>,
    has_url: bool,
    /// Where its `url` stands that is `null`.
    pub(super) null_url: Option<Range<u64>>,
    has_name: bool,
    pub(super) bytes: Option<u64>,
    pub(super) sha256: Option<String>,
    /// It says of itself that its asset is over.
    pub(super) is_over: bool,
    /// Whether the object in its member `payload` has a source.
    payload: Option<bool>,
    pub(super) redaction: (bool, bool),
    pub(super) carriers: Vec<Carrier>,
    /// Members that should be base64 and are not.
    pub(super) not_base64: Vec<String>,
    /// The mentions that its own members made: they are compared with its size and digest.
    pub(super) mentions: Vec<usize>,
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

/// What an object turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Judgement {
    /// Whether a type stands beside the bytes.
    pub(super) is_typed: bool,
    /// Whether the first carrier takes the name `url`.
    pub(super) renames: bool,
    /// Whether it should have a source and has none.
    pub(super) misses_source: bool,
    /// Whether it has more than one.
    pub(super) is_ambiguous: bool,
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
            name if TYPES.contains(&name) && text.len() <= 255 && !text.is_empty() => {
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
            _ => {}
        }
    }

    /// Takes note of a number, `true`, `false` or `null`.
    pub(super) fn note_word(&mut self, word: &[u8], range: Range<u64>) {
        let word = std::str::from_utf8(word).unwrap_or_default();
        match self.name.as_str() {
            "bytes" => self.bytes = word.parse().ok(),
            "url" if word == "null" => self.null_url = Some(range),
            "url" => self.has_url = true,
            "redactionApplied" => self.redaction.0 = word == "true",
            _ => {}
        }
    }

    /// Takes note of an object that was its member.
    pub(super) fn note_object(&mut self, child: &Judgement, has_source: bool) {
        if self.name == "payload" && !child.misses_source {
            self.payload = Some(has_source);
        }
    }

    /// Whether the object names its media by any way.
    pub(super) fn has_source(&self) -> bool {
        self.has_url || self.has_name || !self.carriers.is_empty()
    }

    /// The end of the object.
    pub(super) fn judge(&self) -> Judgement {
        let is_typed = self.media_type.is_some();
        let is_part = is_typed && self.part.as_deref().is_some_and(|part| PARTS.contains(&part));
        let is_payload = is_typed && self.bytes.is_some();
        let counted = self.carriers.iter().filter(|carrier| is_typed || carrier.is_url);
        let sources = counted.count() + usize::from(self.has_url);
        let is_envelope = self.part.as_deref().is_some_and(|kind| kind.starts_with("media."));
        Judgement {
            is_typed,
            renames: is_typed && !self.has_url,
            misses_source: (is_part || is_payload) && !self.has_source() && self.not_base64.is_empty()
                || is_envelope && self.payload == Some(false),
            is_ambiguous: is_typed && sources > 1,
        }
    }
}
