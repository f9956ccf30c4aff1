//! What the caller says the bytes are, and how far that is believed.
//!
//! Promised: one spelling per type, and a yes or no whether the bytes contradict it. Deliberately absent: any way for
//! a declared type to turn bytes into another family, or into anything that a browser would run.

use std::fmt;

use super::catalogue::{self, Family};

/// A declared type: lower case, without parameters, under our own spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Declared(String);

impl Declared {
    /// `None` for what declares nothing: an empty string or `application/octet-stream`.
    pub fn parse(raw: &str) -> Result<Option<Self>, BadType> {
        let essence = raw.split(';').next().unwrap_or_default().trim_matches([' ', '\t', '\r', '\n']);
        if essence.len() > MAX_BYTES {
            return Err(BadType::TooLong);
        }
        if essence.is_empty() {
            return Ok(None);
        }
        let name = essence.to_ascii_lowercase();
        let (top, sub) = name.split_once('/').ok_or(BadType::NotAType)?;
        if !is_token(top) || !is_token(sub) {
            return Err(BadType::NotAType);
        }
        if NOTHING.contains(&name.as_str()) {
            return Ok(None);
        }
        Ok(Some(Self(catalogue::canonical(&name).map_or(name, str::to_owned))))
    }

    /// The type's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The more exact name of bytes that are only known to be of a family that this type belongs to.
    pub(super) fn breaks_tie(&self, found: &str) -> bool {
        let name = self.as_str();
        match found {
            "text/plain"
            | "text/csv"
            | "text/tab-separated-values"
            | "text/markdown"
            | "text/css"
            | "text/javascript" => catalogue::family(name) == Family::Prose && !BY_SIGNATURE.contains(&name),
            "application/json" => catalogue::family(name) == Family::Json && name != "application/x-ndjson",
            "application/xml" => catalogue::family(name) == Family::Xml && !catalogue::known(name),
            _ => false,
        }
    }

    /// True when the bytes are something else than what was declared.
    pub(super) fn contradicts(&self, found: &str) -> bool {
        let name = self.as_str();
        if name == found {
            return false;
        }
        let family = catalogue::family(found);
        if family != Family::Own && family == catalogue::family(name) {
            // Bytes that are only the family's plainest member are not the particular member that was declared.
            return PLAINEST.contains(&found);
        }
        if matches!(family, Family::Json) && catalogue::family(name) == Family::Prose {
            return false;
        }
        if found == UNKNOWN {
            // A type without a rule here cannot be disproved.
            return catalogue::known(name);
        }
        true
    }
}

impl fmt::Display for Declared {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// Why a string is not a media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadType {
    /// Longer than any registered name.
    #[error("a media type is at most {MAX_BYTES} bytes")]
    TooLong,
    /// Not of the form `type/subtype`.
    #[error("not a media type of the form type/subtype")]
    NotAType,
}

/// RFC 6838 allows 127 characters on each side of the slash.
const MAX_BYTES: usize = 255;

/// The answer for bytes that no rule recognises.
pub(super) const UNKNOWN: &str = "application/octet-stream";

/// Names by which clients say that they do not know.
const NOTHING: &[&str] = &[UNKNOWN, "binary/octet-stream", "application/unknown", "application/x-empty"];

/// Members of a family that are recognised as such only when nothing more exact fits.
const PLAINEST: &[&str] = &["application/zip", "application/x-ole-storage", "application/xml", "application/x-archive"];

/// Textual types with a signature of their own: without it the bytes are not that.
const BY_SIGNATURE: &[&str] = &["text/vtt", "text/calendar", "text/vcard", "message/rfc822"];

/// RFC 9110 section 5.6.2.
fn is_token(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(raw: &str) -> Option<String> {
        Declared::parse(raw).expect("a media type").map(|declared| declared.as_str().to_owned())
    }

    #[test]
    fn names_are_normalised() {
        for (raw, name) in [
            ("image/jpg", "image/jpeg"),
            ("Audio/MP3", "audio/mpeg"),
            ("audio/x-wav", "audio/wav"),
            ("image/png; charset=binary", "image/png"),
            (" text/plain ;charset=utf-8", "text/plain"),
            ("application/x-Custom", "application/x-custom"),
        ] {
            assert_eq!(parsed(raw).as_deref(), Some(name), "{raw}");
        }
    }

    #[test]
    fn nothing_is_declared_by_saying_nothing() {
        for raw in ["", "  ", "application/octet-stream", "APPLICATION/OCTET-STREAM; x=y"] {
            assert_eq!(parsed(raw), None, "{raw}");
        }
    }

    #[test]
    fn garbage_is_refused() {
        for raw in ["png", "image/", "/png", "image/p ng", "image/png\r\nx: y", "ü/x"] {
            assert_eq!(Declared::parse(raw), Err(BadType::NotAType), "{raw}");
        }
        assert_eq!(Declared::parse(&"a".repeat(256)), Err(BadType::TooLong));
    }

    #[test]
    fn ties_are_broken_inside_a_family_only() {
        let declared = |raw| Declared::parse(raw).expect("a media type").expect("something");
        assert!(declared("text/markdown").breaks_tie("text/plain"));
        assert!(declared("text/plain").breaks_tie("text/csv"));
        assert!(declared("application/ld+json").breaks_tie("application/json"));
        assert!(!declared("text/html").breaks_tie("text/plain"));
        assert!(!declared("image/svg+xml").breaks_tie("application/xml"));
        assert!(!declared("image/png").breaks_tie("text/plain"));
    }

    #[test]
    fn another_family_is_a_contradiction() {
        let declared = |raw| Declared::parse(raw).expect("a media type").expect("something");
        assert!(declared("audio/mpeg").contradicts("image/png"));
        assert!(declared("image/png").contradicts(UNKNOWN));
        assert!(!declared("application/x-own").contradicts(UNKNOWN));
        assert!(!declared("video/mp4").contradicts("audio/mp4"));
        assert!(!declared("application/zip").contradicts("application/epub+zip"));
        assert!(declared("application/epub+zip").contradicts("application/zip"));
    }
}
