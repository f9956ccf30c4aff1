//! A group of four characters, and the alphabet they are from.

use bytes::{BufMut, BytesMut};
use memchr::memchr2;

/// Up to three characters that wait for the fourth.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    bits: u32,
    held: usize,
}

impl Group {
    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// How many characters make it whole.
    pub(super) fn missing(&self) -> usize {
        (4 - self.held) % 4
    }

    pub(super) fn add(&mut self, value: u8, out: &mut BytesMut) {
        self.bits = self.bits << 6 | u32::from(value);
        self.held += 1;
        if self.held == 4 {
            out.put_slice(&self.bits.to_be_bytes()[1..]);
            *self = Self::default();
        }
    }

    /// Writes the bytes of a group that stays short; nothing when it holds no whole byte, or more than zeros after it.
    pub(super) fn close(&mut self, out: &mut BytesMut) -> Option<()> {
        let bits = self.bits << (6 * self.missing());
        let bytes = match self.held {
            0 => 0,
            1 => return None,
            held => held - 1,
        };
        let [_, written @ ..] = bits.to_be_bytes();
        if written[bytes..].iter().any(|byte| *byte != 0) {
            return None;
        }
        out.put_slice(&written[..bytes]);
        *self = Self::default();
        Some(())
    }
}

/// The two spellings of the values 62 and 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    Standard,
    UrlSafe,
}

impl Alphabet {
    /// The alphabet of the first character that is in one only.
    pub(super) fn shown_by(groups: &[u8]) -> Option<Self> {
        let standard = memchr2(b'+', b'/', groups);
        let before = &groups[..standard.unwrap_or(groups.len())];
        match memchr2(b'-', b'_', before) {
            Some(_) => Some(Self::UrlSafe),
            None => standard.map(|_| Self::Standard),
        }
    }
}
