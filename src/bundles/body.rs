//! Bytes that a string carries: decoded piece by piece, weighed and digested, never held.

use bytes::BytesMut;
use mediakeep_storage::Digest;
use memchr::memchr2;
use ring::digest;

use super::nested::Nested;
use crate::assets::once::Weighed;
use crate::base64::percent::{Part, Percent};
use crate::base64::{BadBase64, Decoder};

/// How the bytes stand in their string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Base64, and nothing else.
    Base64,
    /// Behind the comma of a `data:` URL that says `;base64`.
    UrlBase64,
    /// Behind the comma of one that does not.
    UrlText,
}

/// Decodes one string.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Base64(Decoder),
    UrlBase64(Lines),
    UrlText(Percent),
}

/// Base64 of a URL: percent-encoded, and in lines that may be indented.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    decoder: Decoder,
    percent: Percent,
    at_start: bool,
}

impl Body {
    pub(super) fn new(form: Form) -> Self {
        match form {
            Form::Base64 => Self::Base64(Decoder::new()),
            Form::UrlBase64 => Self::UrlBase64(Lines::default()),
            Form::UrlText => Self::UrlText(Percent::default()),
        }
    }

    /// Takes the next piece, unescaped, and appends its bytes to `out`.
    pub(super) fn push(&mut self, text: &[u8], out: &mut BytesMut) -> Result<(), BadBase64> {
        match self {
            Self::Base64(decoder) => decoder.push(text, out),
            Self::UrlBase64(lines) => lines.push(text, out),
            Self::UrlText(percent) => percent.push(text, |part| copy(part, out)),
        }
    }

    /// Ends the string and appends what was left.
    pub(super) fn finish(self, out: &mut BytesMut) -> Result<(), BadBase64> {
        match self {
            Self::Base64(decoder) => decoder.finish(out),
            Self::UrlBase64(lines) => lines.finish(out),
            Self::UrlText(percent) => percent.finish(|part| copy(part, out)),
        }
    }
}

impl Lines {
    fn push(&mut self, mut text: &[u8], out: &mut BytesMut) -> Result<(), BadBase64> {
        let Self { decoder, percent, at_start } = self;
        while !text.is_empty() {
            if *at_start {
                let blanks = text.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
                text = &text[blanks..];
                *at_start = text.is_empty();
            }
            let line = memchr2(b'\r', b'\n', text).map_or(text.len(), |end| end + 1);
            *at_start |= line > 0 && matches!(text[line - 1], b'\r' | b'\n');
            percent.push(&text[..line], |part| decode(decoder, part, out))?;
            text = &text[line..];
        }
        Ok(())
    }

    fn finish(mut self, out: &mut BytesMut) -> Result<(), BadBase64> {
        self.percent.finish(|part| decode(&mut self.decoder, part, out))?;
        self.decoder.finish(out)
    }
}

fn decode(decoder: &mut Decoder, part: Part<'_>, out: &mut BytesMut) -> Result<(), BadBase64> {
    match part {
        Part::Text(text) => decoder.push(text, out),
        Part::Decoded(byte) => decoder.push(&[byte], out),
    }
}

fn copy(part: Part<'_>, out: &mut BytesMut) -> Result<(), BadBase64> {
    match part {
        Part::Text(text) => out.extend_from_slice(text),
        Part::Decoded(byte) => out.extend_from_slice(&[byte]),
    }
    Ok(())
}

/// Decodes one string as it stands in a bundle: what is base64 within a text may be within JSON there.
#[derive(Debug)]
pub(super) struct Reader {
    body: Body,
    nested: Option<Nested>,
}

impl Reader {
    pub(super) fn new(form: Form) -> Self {
        Self { body: Body::new(form), nested: (form == Form::UrlBase64).then(Nested::default) }
    }

    /// Takes the next piece, and appends its bytes to `out`.
    pub(super) fn push(&mut self, text: &[u8], out: &mut BytesMut) -> Result<(), BadBase64> {
        let (body, mut done) = (&mut self.body, Ok(()));
        match &mut self.nested {
            None => done = body.push(text, out),
            Some(nested) => nested.push(text, 0..text.len() as u64, |piece, _| {
                if done.is_ok() {
                    done = body.push(piece, out);
                }
            }),
        }
        done
    }

    /// Ends the string and appends what was left.
    pub(super) fn finish(self, out: &mut BytesMut) -> Result<(), BadBase64> {
        self.body.finish(out)
    }
}

/// Weighs and digests what a string carries, as long as it can be decoded.
#[derive(Clone)]
pub(super) struct Meter {
    body: Body,
    hash: digest::Context,
    bytes: u64,
    failed: bool,
}

/// So much is decoded at once.
const STEP: usize = 32 << 10;

impl Meter {
    pub(super) fn new(form: Form) -> Self {
        Self { body: Body::new(form), hash: digest::Context::new(&digest::SHA256), bytes: 0, failed: false }
    }

    pub(super) fn push(&mut self, text: &[u8], out: &mut BytesMut) {
        for step in text.chunks(STEP) {
            if self.failed {
                return;
            }
            out.clear();
            self.failed = self.body.push(step, out).is_err();
            self.take(out);
        }
    }

    /// Whether what was read may end here.
    pub(super) fn may_end(&self, out: &mut BytesMut) -> bool {
        out.clear();
        !self.failed && self.body.clone().finish(out).is_ok()
    }

    /// What was read is not what it is about.
    pub(super) fn spoil(&mut self) {
        self.failed = true;
    }

    /// What it was; nothing if it could not be decoded.
    pub(super) fn finish(mut self, out: &mut BytesMut) -> Option<Weighed> {
        if self.failed {
            return None;
        }
        out.clear();
        self.body.clone().finish(out).ok()?;
        self.take(out);
        let hash = self.hash.finish();
        let sha256 = Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes"));
        Some(Weighed { bytes: self.bytes, sha256 })
    }

    fn take(&mut self, out: &BytesMut) {
        self.hash.update(out);
        self.bytes += out.len() as u64;
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
