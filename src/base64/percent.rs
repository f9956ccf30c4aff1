//! Percent-encoding that arrives in pieces (RFC 3986 §2.1).

use memchr::memchr;

/// Decodes `%41` wherever it is cut. A `%` without two digits stands for itself, as in browsers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Percent {
    /// The digits read of an escape; nothing outside of one.
    escape: Option<Option<u8>>,
}

/// What comes out, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Text without an escape.
    Text(&'a [u8]),
    /// The byte that an escape stood for: three characters as sent.
    Decoded(u8),
}

impl Percent {
    pub(crate) fn push<E>(
        &mut self,
        mut text: &[u8],
        mut give: impl FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let [byte, rest @ ..] = text {
            let digit = char::from(*byte).to_digit(16).map(|_| *byte);
            match (self.escape, digit) {
                (None, _) => {
                    let (plain, escape) = text.split_at(memchr(b'%', text).unwrap_or(text.len()));
                    give(Part::Text(plain))?;
                    let Some((_, rest)) = escape.split_first() else {
                        return Ok(());
                    };
                    self.escape = Some(None);
                    text = rest;
                }
                (Some(None), Some(digit)) => {
                    self.escape = Some(Some(digit));
                    text = rest;
                }
                (Some(Some(first)), Some(second)) => {
                    self.escape = None;
                    give(Part::Decoded(value_of(first) << 4 | value_of(second)))?;
                    text = rest;
                }
                (Some(_), None) => self.give_back(&mut give)?,
            }
        }
        Ok(())
    }

    pub(crate) fn finish<E>(mut self, mut give: impl FnMut(Part<'_>) -> Result<(), E>) -> Result<(), E> {
        self.give_back(&mut give)
    }

    /// What looked like an escape is none.
    fn give_back<E>(&mut self, give: &mut impl FnMut(Part<'_>) -> Result<(), E>) -> Result<(), E> {
        match self.escape.take() {
            None => Ok(()),
            Some(None) => give(Part::Text(b"%")),
            Some(Some(digit)) => give(Part::Text(&[b'%', digit])),
        }
    }
}

fn value_of(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(text: &[u8], size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut percent = Percent::default();
        let mut give = |part: Part<'_>| match part {
            Part::Text(text) => bytes.extend_from_slice(text),
            Part::Decoded(byte) => bytes.push(byte),
        };
        let mut give = |part: Part<'_>| -> Result<(), std::convert::Infallible> {
            give(part);
            Ok(())
        };
        for piece in text.chunks(size) {
            percent.push(piece, &mut give).unwrap_or_else(|never| match never {});
        }
        percent.finish(&mut give).unwrap_or_else(|never| match never {});
        bytes
    }

    proptest! {
        #[test]
        fn it_decodes_what_the_crate_decodes_however_it_is_cut(text in "(%?[0-9a-gA-G%z]){0,20}", size in 1..9_usize) {
            let expected: Vec<u8> = percent_encoding::percent_decode_str(&text).collect();
            prop_assert_eq!(decode(text.as_bytes(), size), expected);
        }
    }
}
