//! The inside of a JSON string, read in pieces (RFC 8259 §7).

use memchr::memchr2;

/// Reads one string from behind its opening quotation mark to its closing one, however it is cut.
///
/// What comes out is valid UTF-8 as a whole; a character may be cut where a chunk was.
#[derive(Debug, Default)]
pub(crate) struct StringReader {
    escape: Escape,
    utf8: Utf8,
}

/// What a string goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Text as it stands.
    Text(&'a [u8]),
    /// The character that an escape stood for.
    Char(char),
    /// The input is used up inside of an escape.
    More,
    /// The closing quotation mark.
    End,
}

/// What is wrong, and how far into the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

impl StringReader {
    /// Takes the next piece off `input`, which is not empty, and says how many bytes it was.
    pub(crate) fn next<'a>(&mut self, input: &'a [u8]) -> Result<(Piece<'a>, usize), Fault> {
        if self.escape != Escape::None {
            return self.read_escape(input);
        }
        let block = &input[..input.len().min(BLOCK)];
        let text = &block[..memchr2(b'"', b'\\', block).unwrap_or(block.len())];
        if !text.is_empty() {
            let text = self.sound(text)?;
            return Ok((Piece::Text(text), text.len()));
        }
        if !self.utf8.is_whole() {
            return Err(Fault { at: 0, what: "invalid UTF-8" });
        }
        if input[0] == b'"' {
            return Ok((Piece::End, 1));
        }
        self.escape = Escape::Backslash { high: None };
        let (piece, used) = self.read_escape(&input[1..]).map_err(|fault| Fault { at: fault.at + 1, ..fault })?;
        Ok((piece, used + 1))
    }

    /// The text up to what is wrong with it, so that whoever reads the text meets its own errors first, wherever a
    /// chunk was cut.
    fn sound<'a>(&mut self, text: &'a [u8]) -> Result<&'a [u8], Fault> {
        // One pass that the compiler turns into vector instructions; what it finds is looked at again, byte by byte.
        let is_plain = text.iter().fold(true, |plain, byte| plain & matches!(byte, 0x20..0x80));
        if is_plain && self.utf8.is_whole() {
            return Ok(text);
        }
        for (at, byte) in text.iter().enumerate() {
            let what = match self.utf8.after(*byte) {
                Some(utf8) if *byte >= 0x20 => {
                    self.utf8 = utf8;
                    continue;
                }
                Some(_) => "a control character in a string",
                None => "invalid UTF-8",
            };
            return if at == 0 { Err(Fault { at, what }) } else { Ok(&text[..at]) };
        }
        Ok(text)
    }

    fn read_escape(&mut self, input: &[u8]) -> Result<(Piece<'static>, usize), Fault> {
        for (at, byte) in input.iter().enumerate() {
            match self.escape.take(*byte).map_err(|what| Fault { at, what })? {
                Step::Next(escape) => self.escape = escape,
                Step::Char(character) => {
                    self.escape = Escape::None;
                    return Ok((Piece::Char(character), at + 1));
                }
            }
        }
        Ok((Piece::More, input.len()))
    }
}

/// What is checked and handed on at once, so that the next reader finds it in the first cache of the processor.
const BLOCK: usize = 16 * 1024;

/// How much of an escape was read. `high` is the first half of a surrogate pair, which must be followed by its second.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Backslash {
        high: Option<u16>,
    },
    Hex {
        high: Option<u16>,
        value: u16,
        digits: u8,
    },
    /// Between the halves of a pair.
    Half {
        high: u16,
    },
}

enum Step {
    Next(Escape),
    Char(char),
}

impl Escape {
    fn take(self, byte: u8) -> Result<Step, &'static str> {
        match self {
            Self::None => Err("no escape was begun"),
            Self::Half { high } if byte == b'\\' => Ok(Step::Next(Self::Backslash { high: Some(high) })),
            Self::Half { .. } => Err(LONE),
            Self::Backslash { high } if byte == b'u' => Ok(Step::Next(Self::Hex { high, value: 0, digits: 0 })),
            Self::Backslash { high: Some(_) } => Err(LONE),
            Self::Backslash { high: None } => short(byte).map(Step::Char).ok_or("an unknown escape"),
            Self::Hex { high, value, digits } => {
                let digit = char::from(byte).to_digit(16).ok_or("an escape without its four digits")?;
                let value = value << 4 | digit as u16;
                if digits < 3 {
                    return Ok(Step::Next(Self::Hex { high, value, digits: digits + 1 }));
                }
                match (high, value) {
                    (None, 0xD800..0xDC00) => Ok(Step::Next(Self::Half { high: value })),
                    (None, _) => char::from_u32(value.into()).map(Step::Char).ok_or(LONE),
                    (Some(high), _) => pair(high, value).map(Step::Char).ok_or(LONE),
                }
            }
        }
    }
}

const LONE: &str = "half of a surrogate pair";

fn short(byte: u8) -> Option<char> {
    Some(match byte {
        b'"' | b'\\' | b'/' => char::from(byte),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}

fn pair(high: u16, low: u16) -> Option<char> {
    char::decode_utf16([high, low]).next().and_then(Result::ok)
}

/// UTF-8 that is checked byte by byte, by the table of RFC 3629 §4.
#[derive(Debug, Default, Clone, Copy)]
struct Utf8 {
    /// How many bytes the character still misses.
    missing: u8,
    /// What the next of them can be, at least and at most: narrower than usual after some first bytes.
    next: (u8, u8),
}

impl Utf8 {
    fn is_whole(self) -> bool {
        self.missing == 0
    }

    fn after(self, byte: u8) -> Option<Self> {
        let (least, most) = self.next;
        let (missing, next) = match byte {
            _ if self.missing > 0 && !(least..=most).contains(&byte) => return None,
            _ if self.missing > 0 => (self.missing - 1, (0x80, 0xBF)),
            0..0x80 => return Some(self),
            0xC2..=0xDF => (1, (0x80, 0xBF)),
            0xE0 => (2, (0xA0, 0xBF)),
            0xED => (2, (0x80, 0x9F)),
            0xE1..=0xEF => (2, (0x80, 0xBF)),
            0xF0 => (3, (0x90, 0xBF)),
            0xF1..=0xF3 => (3, (0x80, 0xBF)),
            0xF4 => (3, (0x80, 0x8F)),
            _ => return None,
        };
        Some(Self { missing, next })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a string with its closing quotation mark from pieces of `size` bytes.
    fn read(raw: &[u8], size: usize) -> Result<Vec<u8>, Fault> {
        let mut reader = StringReader::default();
        let mut text = Vec::new();
        let mut done = 0;
        for chunk in raw.chunks(size) {
            let mut rest = chunk;
            while !rest.is_empty() {
                let base = done + chunk.len() - rest.len();
                let (piece, used) =
                    reader.next(rest).map_err(|fault| Fault { at: base + fault.at, what: fault.what })?;
                match piece {
                    Piece::Text(piece) => text.extend_from_slice(piece),
                    Piece::Char(character) => text.extend_from_slice(character.to_string().as_bytes()),
                    Piece::More => {}
                    Piece::End => return Ok(text),
                }
                rest = &rest[used..];
            }
            done += chunk.len();
        }
        Err(Fault { at: raw.len(), what: "no end" })
    }

    #[test]
    fn escapes_and_characters_that_are_none_are_refused_where_they_are() {
        let table: [(&[u8], usize, &str); 14] = [
            (b"ab\ncd\"", 2, "a control character in a string"),
            (b"ab\0\"", 2, "a control character in a string"),
            (b"\\x41\"", 1, "an unknown escape"),
            (b"\\u00g0\"", 4, "an escape without its four digits"),
            (b"\\uD800\"", 6, LONE),
            (b"\\uD800x\"", 6, LONE),
            (b"\\uD800\\n\"", 7, LONE),
            (b"\\uD800\\uD800\"", 11, LONE),
            (b"\\uDC00\"", 5, LONE),
            (b"a\xff\"", 1, "invalid UTF-8"),
            (b"\xc0\xaf\"", 0, "invalid UTF-8"),
            (b"\xed\xa0\x80\"", 1, "invalid UTF-8"),
            (b"\xe2\x82\"", 2, "invalid UTF-8"),
            (b"\xe2\x82\\n\"", 2, "invalid UTF-8"),
        ];
        for (raw, at, what) in table {
            for size in [1, 2, 3, 100] {
                assert_eq!(read(raw, size), Err(Fault { at, what }), "{} by {size}", raw.escape_ascii());
            }
        }
    }

    #[test]
    fn a_pair_of_escapes_is_one_character() {
        for (raw, expected) in [("\\uD800\\uDC00\"", "\u{10000}"), ("\\udbff\\udfff\"", "\u{10FFFF}")] {
            assert_eq!(read(raw.as_bytes(), 4), Ok(expected.as_bytes().to_vec()), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn it_reads_what_serde_reads(text in any::<String>(), ascii in any::<bool>(), size in 1..9_usize) {
            let mut raw = serde_json::to_string(&text).expect("a string is JSON");
            if ascii {
                let plain = |unit: u16| u8::try_from(unit).ok().filter(u8::is_ascii).map(char::from);
                let escaped = |unit| plain(unit).map_or_else(|| format!("\\u{unit:04x}"), String::from);
                raw = raw.encode_utf16().map(escaped).collect();
            }
            prop_assert_eq!(read(&raw.as_bytes()[1..], size), Ok(text.into_bytes()));
        }

        #[test]
        fn it_accepts_the_bytes_that_std_accepts(
            mut raw in prop::collection::vec(any::<u8>(), 0..6),
            size in 1..4_usize,
        ) {
            raw.retain(|byte| *byte >= 0x20 && !matches!(byte, b'"' | b'\\'));
            let valid = std::str::from_utf8(&raw).is_ok();
            raw.push(b'"');
            prop_assert_eq!(read(&raw, size).is_ok(), valid);
        }
    }
}
