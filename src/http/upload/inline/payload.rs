//! The string that carries an asset's bytes: base64 as it stands, or a `data:` URL (RFC 2397).

use bytes::BytesMut;

use super::InlineError;
use crate::base64::percent::{Part, Percent};
use crate::base64::{BadBase64, Decoder};

/// Decodes the string while it comes, and never holds more of it than the head of a URL.
#[derive(Debug)]
pub(super) struct PayloadReader {
    form: Form,
    media_type: Option<String>,
}

#[derive(Debug)]
enum Form {
    /// It may yet turn out to be a URL: after some blanks it began like `data:`.
    Start { blanks: u64, seen: Vec<u8> },
    /// In a URL, before its comma.
    Head { blanks: u64, head: Vec<u8> },
    /// Base64 that is the whole string.
    Base64(Decoder),
    /// Base64 in a URL, where some encoders write `%2B`, `%2F` and `%3D`.
    UrlBase64(Decoder, Percent),
    /// A URL's bytes as they stand.
    UrlText(Percent),
}

impl PayloadReader {
    pub(super) fn new() -> Self {
        Self { form: Form::Start { blanks: 0, seen: Vec::new() }, media_type: None }
    }

    /// Takes the next piece of the string, unescaped, and appends the bytes that it gives to `sink`.
    pub(super) fn push(&mut self, mut text: &[u8], sink: &mut BytesMut) -> Result<(), InlineError> {
        while let [byte, rest @ ..] = text {
            match &mut self.form {
                Form::Base64(decoder) => return Ok(decoder.push(text, sink)?),
                Form::UrlBase64(decoder, percent) => {
                    return Ok(percent.push(text, |part| decode(decoder, part, sink))?);
                }
                Form::UrlText(percent) => return percent.push(text, |part| copy(part, sink)),
                Form::Head { blanks, head } if *byte == b',' => {
                    let before = *blanks + (SCHEME.len() + 1) as u64;
                    let head = Head::parse(&String::from_utf8_lossy(head))?;
                    self.form = head.body_form(before);
                    self.media_type = head.media_type;
                }
                Form::Head { head, .. } if head.len() == MAX_HEAD => {
                    return Err(InlineError::BadDataUrl { what: "its head is too long" });
                }
                Form::Head { head, .. } => head.push(*byte),
                Form::Start { blanks, seen } if seen.is_empty() && is_blank(*byte) => *blanks += 1,
                Form::Start { blanks, seen } if byte.eq_ignore_ascii_case(&SCHEME[seen.len()]) => {
                    seen.push(*byte);
                    if seen.len() == SCHEME.len() {
                        self.form = Form::Head { blanks: *blanks, head: Vec::new() };
                    }
                }
                Form::Start { blanks, seen } => {
                    self.form = Form::Base64(base64_that_began(*blanks, seen, sink)?);
                    continue;
                }
            }
            text = rest;
        }
        Ok(())
    }

    /// Ends the string, and gives the type that its URL named.
    pub(super) fn finish(self, sink: &mut BytesMut) -> Result<Option<String>, InlineError> {
        match self.form {
            Form::Start { blanks, seen } => base64_that_began(blanks, &seen, sink)?.finish(sink)?,
            Form::Head { .. } => return Err(InlineError::BadDataUrl { what: "it has no comma" }),
            Form::Base64(decoder) => decoder.finish(sink)?,
            Form::UrlBase64(mut decoder, percent) => {
                percent.finish(|part| decode(&mut decoder, part, sink))?;
                decoder.finish(sink)?;
            }
            Form::UrlText(percent) => percent.finish(|part| copy(part, sink))?,
        }
        Ok(self.media_type)
    }
}

const SCHEME: &[u8; 5] = b"data:";

/// A type and its parameters take some dozens of bytes; a URL of base64 without a comma must not fill the memory.
const MAX_HEAD: usize = 1024;

/// What stands between `data:` and the comma.
struct Head {
    media_type: Option<String>,
    is_base64: bool,
    characters: u64,
}

impl Head {
    fn parse(head: &str) -> Result<Self, InlineError> {
        let mut fields = head.split(';').map(str::trim);
        let media_type = fields.next().filter(|name| !name.is_empty()).map(str::to_owned);
        let markers: Vec<bool> = fields.map(|field| field.eq_ignore_ascii_case("base64")).collect();
        let (is_base64, others) = markers.split_last().unwrap_or((&false, &[]));
        // By the letter that is text which happens to be base64; whoever wrote it meant something else.
        if others.contains(&true) {
            return Err(InlineError::BadDataUrl { what: "base64 is not its last parameter" });
        }
        Ok(Self { media_type, is_base64: *is_base64, characters: head.chars().count() as u64 })
    }

    /// How the body is read, `before` being what precedes the head and the comma.
    fn body_form(&self, before: u64) -> Form {
        if self.is_base64 {
            Form::UrlBase64(Decoder::starting_at(before + self.characters), Percent::default())
        } else {
            Form::UrlText(Percent::default())
        }
    }
}

/// What the decoder passes over before the first character.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The decoder of a string that was taken for the start of a URL until now.
fn base64_that_began(blanks: u64, seen: &[u8], sink: &mut BytesMut) -> Result<Decoder, BadBase64> {
    let mut decoder = Decoder::starting_at(blanks);
    decoder.push(seen, sink)?;
    Ok(decoder)
}

fn decode(decoder: &mut Decoder, part: Part<'_>, sink: &mut BytesMut) -> Result<(), BadBase64> {
    match part {
        Part::Text(text) => decoder.push(text, sink),
        Part::Decoded(byte) => {
            decoder.push(&[byte], sink)?;
            decoder.skip(2);
            Ok(())
        }
    }
}

fn copy(part: Part<'_>, sink: &mut BytesMut) -> Result<(), InlineError> {
    match part {
        Part::Text(text) => sink.extend_from_slice(text),
        Part::Decoded(byte) => sink.extend_from_slice(&[byte]),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = Result<(Vec<u8>, Option<String>), InlineError>;

    fn read(string: &str, size: usize) -> Read {
        let mut reader = PayloadReader::new();
        let mut sink = BytesMut::new();
        for piece in string.as_bytes().chunks(size) {
            reader.push(piece, &mut sink)?;
        }
        let media_type = reader.finish(&mut sink)?;
        Ok((sink.to_vec(), media_type))
    }

    #[test]
    fn a_url_gives_its_bytes_and_its_type_without_parameters() {
        let table: [(&str, &[u8], Option<&str>); 15] = [
            ("aGVsbG8=", b"hello", None),
            ("data", b"u\xabZ", None),
            ("dAtA", b"t\x0b@", None),
            (" \n dQ", b"u", None),
            ("data:image/png;base64,aGVsbG8=", b"hello", Some("image/png")),
            ("\n DATA:image/png;charset=x; BASE64 ,aGVs\nbG8=\n", b"hello", Some("image/png")),
            ("data:;base64,aGVsbG8", b"hello", None),
            ("data:image/png;base64,%2b%2F%2B/aA%3D%3D", b"\xfb\xff\xbfh", Some("image/png")),
            ("data:image/png;base64,", b"", Some("image/png")),
            ("data:,", b"", None),
            ("data:,a%20b+c", b"a b+c", None),
            (
                "data:text/html;charset=utf-8,<p>%E2%82%ac\u{20ac}#x",
                "<p>\u{20ac}\u{20ac}#x".as_bytes(),
                Some("text/html"),
            ),
            ("data:text/plain,100%,%zz,%4", b"100%,%zz,%4", Some("text/plain")),
            ("data:text/plain,%%41%4%42", b"%A%4B", Some("text/plain")),
            ("data:text/plain;x=\"a,b", b"b", Some("text/plain")),
        ];
        for (string, bytes, media_type) in table {
            for size in [1, 2, 3, 7, 1000] {
                let expected = Ok((bytes.to_vec(), media_type.map(str::to_owned)));
                assert_eq!(read(string, size), expected, "{string:?} by {size}");
            }
        }
    }

    #[test]
    fn what_is_no_url_and_no_base64_is_refused_at_its_place() {
        let bad = |offset| InlineError::InvalidBase64(BadBase64 { offset });
        let url = |what| InlineError::BadDataUrl { what };
        let table = [
            ("  da ta", bad(4)),
            ("data!", bad(4)),
            ("d:", bad(1)),
            ("data:a/\u{e9};base64,AA!A", bad(18)),
            ("data:a/b;base64,%2B%2B%2D", bad(22)),
            ("data:a/b;base64,%2B%2B%2B!", bad(25)),
            ("data:a/b;base64,AAA%", bad(19)),
            ("data:a/b;base64,AAAAA", bad(20)),
            ("data:image/png;base64", url("it has no comma")),
            ("data:image/png;base64;name=x,AAAA", url("base64 is not its last parameter")),
        ];
        for (string, expected) in table {
            for size in [1, 2, 3, 1000] {
                assert_eq!(read(string, size), Err(expected.clone()), "{string:?} by {size}");
            }
        }
        let endless = format!("data:{}", "a".repeat(MAX_HEAD + 1));
        assert_eq!(read(&endless, 100), Err(url("its head is too long")));
    }
}
