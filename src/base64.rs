//! Base64 that arrives in pieces, decoded as it comes.

use base64_simd::{Out, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::BytesMut;
use memchr::memchr2;

use self::group::{Alphabet, Group};

mod group;
pub(crate) mod percent;

/// Decodes one base64 string, with the same result wherever its pieces were cut.
///
/// The string is of the standard or of the URL-safe alphabet, not of both; padded or not. Line breaks anywhere and
/// white space around it are passed over. Everything else is refused with its place: a blank inside (it may once have
/// been a `+`), bits after the last byte that are not zero, a string that ends one character into a group.
///
/// After an error the decoder and what it wrote are of no use.
#[derive(Debug, Clone)]
pub struct Decoder {
    alphabet: Option<Alphabet>,
    phase: Phase,
    group: Group,
    /// Characters taken.
    offset: u64,
    /// The place of the last character that a group, or its padding, still waits with.
    last: u64,
}

/// The string is not base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("character {offset} does not belong into a base64 string")]
pub struct BadBase64 {
    /// The place of the offending character, counted in characters from the start of the string as sent.
    pub offset: u64,
}

impl Decoder {
    /// A decoder for a string of which nothing was read yet.
    pub fn new() -> Self {
        Self::starting_at(0)
    }

    /// A decoder for what follows the first `offset` characters of a string, such as the head of a `data:` URL.
    pub fn starting_at(offset: u64) -> Self {
        Self { alphabet: None, phase: Phase::Before, group: Group::default(), offset, last: offset }
    }

    /// Decodes the next piece and appends its bytes to `out`, at most three for every four characters.
    pub fn push(&mut self, mut input: &[u8], out: &mut BytesMut) -> Result<(), BadBase64> {
        out.reserve(input.len() / 4 * 3 + 3);
        while !input.is_empty() {
            let block = &input[..input.len().min(BLOCK)];
            let line = &block[..memchr2(b'\r', b'\n', block).unwrap_or(block.len())];
            self.take_line(line, out)?;
            input = &input[line.len()..];
            if let [b'\r' | b'\n', rest @ ..] = input {
                self.offset += 1;
                input = rest;
            }
        }
        Ok(())
    }

    /// Ends the string and appends the bytes of its last, unpadded group.
    pub fn finish(mut self, out: &mut BytesMut) -> Result<(), BadBase64> {
        match self.phase {
            Phase::Padding => Err(BadBase64 { offset: self.last }),
            _ => self.close_group(out),
        }
    }

    /// Counts characters that stood for one: the piece before was `+`, but it was sent as `%2B`.
    pub(crate) fn skip(&mut self, characters: u64) {
        self.offset += characters;
    }

    /// Whole groups go the fast way. If one of them holds an irregularity, all of them go the careful way, which finds
    /// it; the block bounds what that costs.
    fn take_line(&mut self, line: &[u8], out: &mut BytesMut) -> Result<(), BadBase64> {
        let (head, rest) = line.split_at(self.group.missing().min(line.len()));
        self.take_carefully(head, out)?;
        let (groups, tail) = rest.split_at(rest.len() / 4 * 4);
        if !self.take_quickly(groups, out) {
            self.take_carefully(groups, out)?;
        }
        self.take_carefully(tail, out)
    }

    /// Decodes whole groups at once, or none of them.
    fn take_quickly(&mut self, groups: &[u8], out: &mut BytesMut) -> bool {
        if groups.is_empty() || !self.group.is_empty() || !matches!(self.phase, Phase::Before | Phase::Inside) {
            return false;
        }
        let alphabet = self.alphabet.or_else(|| Alphabet::shown_by(groups));
        let engine = match alphabet {
            Some(Alphabet::UrlSafe) => &URL_SAFE_NO_PAD,
            Some(Alphabet::Standard) | None => &STANDARD_NO_PAD,
        };
        let start = out.len();
        out.resize(start + groups.len() / 4 * 3, 0);
        if engine.decode(groups, Out::from_slice(&mut out[start..])).is_err() {
            out.truncate(start);
            return false;
        }
        self.alphabet = alphabet;
        self.phase = Phase::Inside;
        self.offset += groups.len() as u64;
        true
    }

    fn take_carefully(&mut self, characters: &[u8], out: &mut BytesMut) -> Result<(), BadBase64> {
        for character in characters {
            self.take(*character, out)?;
        }
        Ok(())
    }

    fn take(&mut self, character: u8, out: &mut BytesMut) -> Result<(), BadBase64> {
        let here = BadBase64 { offset: self.offset };
        match (character, self.phase) {
            (b' ' | b'\t', Phase::Before | Phase::Gap(_) | Phase::After) => {}
            (b' ' | b'\t', Phase::Inside) => self.phase = Phase::Gap(self.offset),
            (_, Phase::Gap(offset)) => return Err(BadBase64 { offset }),
            (b'=', Phase::Inside) if matches!(self.group.missing(), 1 | 2) => {
                let after = if self.group.missing() == 2 { Phase::Padding } else { Phase::After };
                self.close_group(out)?;
                self.phase = after;
                self.last = self.offset;
            }
            (b'=', Phase::Padding) => self.phase = Phase::After,
            (_, Phase::Before | Phase::Inside) => {
                let value = self.value_of(character).ok_or(here)?;
                self.phase = Phase::Inside;
                self.last = self.offset;
                self.group.add(value, out);
            }
            (_, Phase::Padding | Phase::After) => return Err(here),
        }
        self.offset += 1;
        Ok(())
    }

    /// Looks a character up; the first that only one alphabet has settles which one it is.
    fn value_of(&mut self, character: u8) -> Option<u8> {
        let shown = match character {
            b'+' | b'/' => Alphabet::Standard,
            b'-' | b'_' => Alphabet::UrlSafe,
            b'A'..=b'Z' => return Some(character - b'A'),
            b'a'..=b'z' => return Some(character - b'a' + 26),
            b'0'..=b'9' => return Some(character - b'0' + 52),
            _ => return None,
        };
        let is_last = matches!(character, b'/' | b'_');
        (*self.alphabet.get_or_insert(shown) == shown).then_some(62 + u8::from(is_last))
    }

    fn close_group(&mut self, out: &mut BytesMut) -> Result<(), BadBase64> {
        let last = BadBase64 { offset: self.last };
        self.group.close(out).ok_or(last)
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// What is decoded at once: input and output together stay in the first cache of a processor.
const BLOCK: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing but white space so far.
    Before,
    /// Between characters of the alphabet.
    Inside,
    /// After a blank at this place: the end, or an error there.
    Gap(u64),
    /// After the first `=` of two.
    Padding,
    /// After the padding.
    After,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<u8>, BadBase64> {
        let mut decoder = Decoder::new();
        let mut out = BytesMut::new();
        for piece in pieces {
            decoder.push(piece, &mut out)?;
        }
        decoder.finish(&mut out)?;
        Ok(out.to_vec())
    }

    #[test]
    fn every_usual_form_of_a_string_gives_its_bytes() {
        let table: [(&str, &[u8]); 16] = [
            ("", b""),
            (" \r\n\t", b""),
            ("aGVsbG8=", b"hello"),
            ("aGVsbG8", b"hello"),
            ("aGVs\r\nbG8=\r\n", b"hello"),
            ("aG\nVsb\nG8\n=\n", b"hello"),
            ("  \taGVsbG8= \n ", b"hello"),
            ("aGVsbG8 ", b"hello"),
            ("aA==", b"h"),
            ("aA", b"h"),
            ("aA=\n=", b"h"),
            ("+/+/", b"\xfb\xff\xbf"),
            ("-_-_", b"\xfb\xff\xbf"),
            ("-_8=", b"\xfb\xff"),
            ("-_8", b"\xfb\xff"),
            ("AAAA", b"\0\0\0"),
        ];
        for (string, expected) in table {
            assert_eq!(decode([string.as_bytes()]).as_deref(), Ok(expected), "{string:?}");
        }
    }

    #[test]
    fn whatever_is_no_base64_is_refused_at_its_place() {
        let table: [(&str, u64); 22] = [
            ("aGVs bG8=", 4),
            ("aGVs\tbG8=", 4),
            ("aGVs \r\nbG8=", 4),
            ("aGVsbG8 =", 7),
            ("aA= =", 3),
            ("+/+/-_-_", 4),
            ("-AAA\r\n+AAA", 6),
            ("aGVsb", 4),
            ("aGVsb\r\n", 4),
            ("aGVsb=", 5),
            ("aGVsb===", 5),
            ("aGVsbG9=", 6),
            ("aGVsbG9\r\n=", 6),
            ("aGVsbG9", 6),
            ("aB==", 1),
            ("aA=", 2),
            ("aA=A", 3),
            ("aA==aA==", 4),
            ("aA==\n=", 5),
            ("=", 0),
            ("aGVsbG8*", 7),
            ("aGVsé", 4),
        ];
        for (string, offset) in table {
            assert_eq!(decode([string.as_bytes()]), Err(BadBase64 { offset }), "{string:?}");
        }
    }

    #[test]
    fn an_error_far_into_a_long_string_has_its_exact_place() {
        for place in [0, 1, 4095, 16383, 16384, 16385, 40_000] {
            let mut string = vec![b'A'; 65_536];
            string[place] = b'!';
            assert_eq!(decode([&string[..]]), Err(BadBase64 { offset: place as u64 }));
        }
        let mut mixed = vec![b'A'; 65_536];
        (mixed[9], mixed[65_000]) = (b'-', b'+');
        assert_eq!(decode([&mixed[..]]), Err(BadBase64 { offset: 65_000 }));
    }

    /// A string as some encoder writes it, and what it means.
    fn written() -> impl Strategy<Value = (Vec<u8>, String)> {
        let bytes = prop_oneof![prop::collection::vec(any::<u8>(), 0..600), Just(vec![0xfb; 40_000])];
        (bytes, any::<bool>(), any::<bool>(), 1..100_usize, any::<bool>()).prop_map(
            |(bytes, padded, url_safe, width, breaks)| {
                let encoding = match (padded, url_safe) {
                    (true, false) => data_encoding::BASE64,
                    (false, false) => data_encoding::BASE64_NOPAD,
                    (true, true) => data_encoding::BASE64URL,
                    (false, true) => data_encoding::BASE64URL_NOPAD,
                };
                let plain = encoding.encode(&bytes);
                let lines: Vec<_> = plain.as_bytes().chunks(width).map(String::from_utf8_lossy).collect();
                let string = if breaks { format!(" {}\r\n", lines.join("\r\n")) } else { plain };
                (bytes, string)
            },
        )
    }

    /// The same text in pieces.
    fn cut<'a>(text: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
        let mut places: Vec<_> = places.iter().map(|place| place.index(text.len() + 1)).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        places.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
    }

    proptest! {
        #[test]
        fn what_an_encoder_wrote_is_read_however_it_is_cut(
            (bytes, string) in written(),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            prop_assert_eq!(decode(cut(string.as_bytes(), &places)), Ok(bytes));
        }

        #[test]
        fn a_cut_changes_neither_the_bytes_nor_the_place_of_an_error(
            string in "[ \\t]{0,2}([AQgw]{0,9}|[AQ/+\\-_=\r\n !]{0,9}){0,9}=?=?[ \\t\n]{0,2}",
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let whole = decode([string.as_bytes()]);
            prop_assert_eq!(&decode(cut(string.as_bytes(), &places)), &whole);
            prop_assert_eq!(decode(string.as_bytes().chunks(1)), whole);
        }

        #[test]
        fn it_accepts_what_a_strict_decoder_accepts_and_nothing_more(string in "[AQgw+/=]{0,12}") {
            let raw = string.as_bytes();
            let strict = data_encoding::BASE64.decode(raw).or_else(|_| data_encoding::BASE64_NOPAD.decode(raw));
            // `data-encoding` reads `AA==AA==` as two strings; here the first padding ends the one there is.
            let is_one = !string.trim_end_matches('=').contains('=');
            prop_assert_eq!(decode([raw]).ok(), strict.ok().filter(|_| is_one));
        }
    }
}
