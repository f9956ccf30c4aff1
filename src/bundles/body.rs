//! Bytes that a string carries: decoded piece by piece, weighed and digested, never held.

use bytes::BytesMut;
use mediakeep_storage::Digest;
use ring::digest;

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
    UrlBase64(Decoder, Percent),
    UrlText(Percent),
}

impl Body {
    pub(super) fn new(form: Form) -> Self {
        match form {
            Form::Base64 => Self::Base64(Decoder::new()),
            Form::UrlBase64 => Self::UrlBase64(Decoder::new(), Percent::default()),
            Form::UrlText => Self::UrlText(Percent::default()),
        }
    }

    /// Takes the next piece, unescaped, and appends its bytes to `out`.
    pub(super) fn push(&mut self, text: &[u8], out: &mut BytesMut) -> Result<(), BadBase64> {
        match self {
            Self::Base64(decoder) => decoder.push(text, out),
            Self::UrlBase64(decoder, percent) => percent.push(text, |part| decode(decoder, part, out)),
            Self::UrlText(percent) => percent.push(text, |part| copy(part, out)),
        }
    }

    /// Ends the string and appends what was left.
    pub(super) fn finish(self, out: &mut BytesMut) -> Result<(), BadBase64> {
        match self {
            Self::Base64(decoder) => decoder.finish(out),
            Self::UrlBase64(mut decoder, percent) => {
                percent.finish(|part| decode(&mut decoder, part, out))?;
                decoder.finish(out)
            }
            Self::UrlText(percent) => percent.finish(|part| copy(part, out)),
        }
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
