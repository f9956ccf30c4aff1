//! How text is encoded: byte order marks, zeros in every other place, and UTF-8.

use crate::media::reader::Bytes;

/// The encodings that can be told for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
    Utf32Le,
    Utf32Be,
}

impl Encoding {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16Le => "utf-16le",
            Self::Utf16Be => "utf-16be",
            Self::Utf32Le => "utf-32le",
            Self::Utf32Be => "utf-32be",
        }
    }

    /// By mark; the longer one first, for UTF-32's begins with UTF-16's.
    pub(super) fn marked(head: &[u8]) -> Option<Self> {
        match head {
            [0xEF, 0xBB, 0xBF, ..] => Some(Self::Utf8),
            [0xFF, 0xFE, 0, 0, ..] => Some(Self::Utf32Le),
            [0, 0, 0xFE, 0xFF, ..] => Some(Self::Utf32Be),
            [0xFF, 0xFE, ..] => Some(Self::Utf16Le),
            [0xFE, 0xFF, ..] => Some(Self::Utf16Be),
            _ => None,
        }
    }

    /// UTF-16 of Western text without a mark: every other byte is zero, all others are printable.
    pub(super) fn by_zeros(head: &[u8]) -> Option<Self> {
        let units = &head[..head.len() & !1];
        if units.len() < 8 {
            return None;
        }
        let is_text = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7E);
        if units.chunks_exact(2).all(|unit| is_text(unit[0]) && unit[1] == 0) {
            Some(Self::Utf16Le)
        } else if units.chunks_exact(2).all(|unit| is_text(unit[1]) && unit[0] == 0) {
            Some(Self::Utf16Be)
        } else {
            None
        }
    }

    /// The head as text, without its mark; what does not decode becomes replacement characters.
    pub(super) fn decode(self, head: &[u8]) -> String {
        let text = match self {
            Self::Utf8 => String::from_utf8_lossy(head).into_owned(),
            Self::Utf16Le | Self::Utf16Be => {
                let units = head.chunks_exact(2).map(|unit| {
                    let unit = [unit[0], unit[1]];
                    if self == Self::Utf16Le { u16::from_le_bytes(unit) } else { u16::from_be_bytes(unit) }
                });
                char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
            }
            Self::Utf32Le | Self::Utf32Be => head
                .chunks_exact(4)
                .map(|unit| {
                    let unit = [unit[0], unit[1], unit[2], unit[3]];
                    let value = if self == Self::Utf32Le { u32::from_le_bytes(unit) } else { u32::from_be_bytes(unit) };
                    char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)
                })
                .collect(),
        };
        match text.strip_prefix('\u{FEFF}') {
            Some(rest) => rest.to_owned(),
            None => text,
        }
    }
}

/// WHATWG's binary data bytes: controls that no text has.
pub(super) fn has_binary(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| matches!(byte, 0x00..=0x08 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F))
}

/// Bytes that are not UTF-8 may be eight-bit text, which has some ASCII in it, and few of the one byte that fills gaps.
pub(super) fn is_plausible(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(_) => true,
        // Only the end of the head is cut.
        Err(error) => error.error_len().is_none(),
    };
    let ascii = head.iter().any(|byte| byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace());
    let fill = head.iter().filter(|&&byte| byte == 0xFF).count();
    valid || (ascii && fill * 8 <= head.len())
}

/// Text in wide characters: no controls, and nothing that is no character.
pub(super) fn is_clean(text: &str) -> bool {
    let mut rest = text.chars().rev().peekable();
    // The head may end inside a pair.
    if rest.peek() == Some(&char::REPLACEMENT_CHARACTER) {
        rest.next();
    }
    rest.all(|c| {
        let control = matches!(c, '\0'..='\u{8}' | '\u{B}' | '\u{E}'..='\u{1A}' | '\u{1C}'..='\u{1F}');
        !control && !matches!(c, char::REPLACEMENT_CHARACTER | '\u{FFFE}' | '\u{FFFF}')
    })
}

/// Text longer than this is not called UTF-8 without having been read.
const CHECKED: u64 = 64 << 20;

/// True when all the bytes are valid UTF-8.
pub(super) fn is_utf8(bytes: &mut Bytes<'_>) -> bool {
    const PART: usize = 64 << 10;
    if bytes.size() > CHECKED {
        return false;
    }
    let mut at = 0;
    while at < bytes.size() {
        let size = bytes.size();
        let part = bytes.peek(at, PART);
        let last = at + part.len() as u64 >= size;
        let part_len = part.len();
        let valid = match std::str::from_utf8(part) {
            Ok(_) => part_len,
            // A character cut by the part's end goes on in the next.
            Err(error) if error.error_len().is_none() && !last => error.valid_up_to(),
            Err(_) => return false,
        };
        if valid == 0 {
            return false;
        }
        at += valid as u64;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn characters_across_parts_are_whole() {
        let text = format!("{}é", "a".repeat((64 << 10) - 1));
        assert!(is_utf8(&mut Bytes::new(&mut Cursor::new(text.as_bytes()), text.len() as u64)));
        let cut = &text.as_bytes()[..text.len() - 1];
        assert!(!is_utf8(&mut Bytes::new(&mut Cursor::new(cut), cut.len() as u64)));
    }

    #[test]
    fn zeros_in_every_other_place() {
        assert_eq!(Encoding::by_zeros(b"<\0h\0t\0m\0l\0>\0"), Some(Encoding::Utf16Le));
        assert_eq!(Encoding::by_zeros(b"\0<\0?\0x\0m\0l"), Some(Encoding::Utf16Be));
        assert_eq!(Encoding::by_zeros(b"\0\0\0\0\0\0\0\0"), None);
    }
}
