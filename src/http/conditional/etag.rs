//! Entity tags and lists of them (RFC 9110 §8.8.3, §13.1.1).

use std::fmt;

/// A tag that names one state of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag {
    weak: bool,
    opaque: Vec<u8>,
}

/// The text holds a character that a tag cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an entity tag holds visible ASCII without quotation marks")]
pub struct BadEntityTag;

impl EntityTag {
    /// A tag that changes with every byte of what it names. `opaque` is without its quotation marks.
    pub fn strong(opaque: &str) -> Result<Self, BadEntityTag> {
        if !opaque.bytes().all(|byte| byte.is_ascii() && is_tag_byte(byte)) {
            return Err(BadEntityTag);
        }
        Ok(Self { weak: false, opaque: opaque.as_bytes().to_vec() })
    }

    /// Parses a value that is exactly one tag.
    pub fn parse(raw: &[u8]) -> Option<Self> {
        let (tag, rest) = Self::first(raw.trim_ascii())?;
        rest.is_empty().then_some(tag)
    }

    /// Strong comparison: equal, and neither is weak.
    pub fn is_strongly(&self, other: &Self) -> bool {
        !self.weak && self == other
    }

    /// Weak comparison: equal but for weakness.
    pub fn is_weakly(&self, other: &Self) -> bool {
        self.opaque == other.opaque
    }

    /// The tag that `raw` begins with, and what follows it.
    fn first(raw: &[u8]) -> Option<(Self, &[u8])> {
        let (weak, quoted) = match raw.strip_prefix(b"W/") {
            Some(rest) => (true, rest),
            None => (false, raw),
        };
        let inner = quoted.strip_prefix(b"\"")?;
        let end = inner.iter().position(|byte| !is_tag_byte(*byte))?;
        let rest = inner[end..].strip_prefix(b"\"")?;
        Some((Self { weak, opaque: inner[..end].to_vec() }, rest))
    }
}

/// The value of the `ETag` header.
impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weak = if self.weak { "W/" } else { "" };
        write!(f, "{weak}\"{}\"", String::from_utf8_lossy(&self.opaque))
    }
}

/// Says whether field lines name a tag that is `wanted`, or say `*`, which is any tag there is. What is no tag names
/// nothing.
pub(super) fn names(lines: &[&[u8]], wanted: impl Fn(&EntityTag) -> bool) -> bool {
    lines.iter().any(|line| {
        let mut rest = line.trim_ascii();
        if rest == b"*" {
            return true;
        }
        while !rest.is_empty() {
            // A comma inside of quotes belongs to the tag, so tags are read, not split.
            rest = match EntityTag::first(rest) {
                Some((tag, after)) if is_end_of_element(after) => {
                    if wanted(&tag) {
                        return true;
                    }
                    after
                }
                _ => rest,
            };
            let comma = rest.iter().position(|byte| *byte == b',').map_or(rest.len(), |comma| comma + 1);
            rest = rest[comma..].trim_ascii_start();
        }
        false
    })
}

fn is_end_of_element(rest: &[u8]) -> bool {
    matches!(rest.trim_ascii_start().first(), None | Some(b','))
}

/// `etagc`: visible ASCII but the quotation mark, and whatever is beyond ASCII.
fn is_tag_byte(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x7E | 0x80..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(lines: &[&[u8]]) -> bool {
        let ours = EntityTag::strong("ours").expect("a valid tag");
        names(lines, |tag| tag.is_strongly(&ours))
    }

    #[test]
    fn a_tag_is_found_among_others_and_among_rubbish() {
        let found: [&[&[u8]]; 7] = [
            &[b"\"ours\""],
            &[b"  \"ours\"  "],
            &[b"\"other\",\"ours\""],
            &[b",, \"other\"\t,\t\"ours\",,"],
            &[b"\"o,t,h,e,r\", \"ours\""],
            &[b"rubbish, \"ours\""],
            &[b"\"other\"", b"\"ours\""],
        ];
        for lines in found {
            assert!(named(lines), "{lines:?}");
        }
        let missed: [&[&[u8]]; 8] = [
            &[],
            &[b""],
            &[b"ours"],
            &[b"W/\"ours\""],
            &[b"w/\"ours\""],
            &[b"\"ours"],
            &[b"\"ours\"x"],
            &[b"\"a,\" \"ours\""],
        ];
        for lines in missed {
            assert!(!named(lines), "{lines:?}");
        }
    }

    #[test]
    fn a_tag_is_shown_as_it_is_parsed() {
        for raw in ["\"\"", "\"ours\"", "W/\"a,b\""] {
            let tag = EntityTag::parse(raw.as_bytes()).expect("a valid tag");
            assert_eq!(tag.to_string(), raw);
        }
        for raw in ["", "*", "ours", "\"a\"\"", "\"a b\"", "\"a\", \"b\""] {
            assert_eq!(EntityTag::parse(raw.as_bytes()), None, "{raw}");
        }
        for opaque in ["a\"b", "a b", "a\r\nb", "é"] {
            assert_eq!(EntityTag::strong(opaque), Err(BadEntityTag), "{opaque}");
        }
    }
}
