//! The frame around several ranges of one asset: `multipart/byteranges` (RFC 9110 §14.6).

use std::ops::Range;

use super::content_range;

/// A `multipart/byteranges` body whose exact length is known before its first byte is read.
///
/// The body is each of [`parts`](Self::parts), its head and then its bytes, and [`closing`](Self::closing) at last.
#[derive(Debug, Clone)]
pub struct Framing {
    boundary: Boundary,
    parts: Vec<Part>,
}

/// One range and the text that goes before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The delimiter line and the part's headers, up to the blank line.
    pub head: String,
    /// The bytes that follow the head.
    pub range: Range<u64>,
}

impl Framing {
    /// Frames `ranges` of an asset of `len` bytes. `content_type` is the asset's own `Content-Type` value.
    pub fn new(boundary: Boundary, content_type: &str, ranges: &[Range<u64>], len: u64) -> Self {
        let delimiter = |position: usize| if position == 0 { "--" } else { "\r\n--" };
        let part = |(position, range): (usize, &Range<u64>)| Part {
            head: format!(
                "{}{boundary}\r\nContent-Type: {content_type}\r\nContent-Range: {}\r\n\r\n",
                delimiter(position),
                content_range(range, len),
                boundary = boundary.0,
            ),
            range: range.clone(),
        };
        let parts = ranges.iter().enumerate().map(part).collect();
        Self { boundary, parts }
    }

    /// The answer's `Content-Type`.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary.0)
    }

    /// The answer's `Content-Length`.
    pub fn content_length(&self) -> u64 {
        let text = self.parts.iter().map(|part| part.head.len() as u64).sum::<u64>() + self.closing().len() as u64;
        self.parts.iter().fold(text, |sum, part| sum.saturating_add(part.range.end - part.range.start))
    }

    /// The parts in the order in which they are sent.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What ends the body.
    pub fn closing(&self) -> String {
        format!("\r\n--{}--\r\n", self.boundary.0)
    }
}

/// A delimiter that no asset contains, as long as nobody could know it when the asset was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary(String);

impl Boundary {
    /// Makes a boundary of 128 random bits.
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(framing: &Framing, asset: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        for part in framing.parts() {
            body.extend_from_slice(part.head.as_bytes());
            body.extend_from_slice(&asset[part.range.start as usize..part.range.end as usize]);
        }
        body.extend_from_slice(framing.closing().as_bytes());
        body
    }

    #[test]
    fn two_ranges_are_framed_as_the_rfc_shows() {
        let framing = Framing::new(Boundary::from_random(0xbeef), "text/plain; charset=utf-8", &[0..2, 8..10], 10);
        let boundary = "0000000000000000000000000000beef";

        let expected = format!(
            "--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n\
             --{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 8-9/10\r\n\r\n89\r\n\
             --{boundary}--\r\n"
        );
        assert_eq!(body(&framing, b"0123456789"), expected.as_bytes());
        assert_eq!(framing.content_length(), expected.len() as u64);
        assert_eq!(framing.content_type(), format!("multipart/byteranges; boundary={boundary}"));
    }

    proptest! {
        #[test]
        fn the_length_is_exact_before_the_body_is_made(
            bits in any::<u128>(),
            cuts in prop::collection::vec((0..200_u64, 1..56_u64), 1..16),
        ) {
            let ranges: Vec<_> = cuts.iter().map(|(start, length)| *start..start + length).collect();
            let framing = Framing::new(Boundary::from_random(bits), "image/png", &ranges, 256);
            prop_assert_eq!(framing.content_length(), body(&framing, &[7; 256]).len() as u64);
        }

        #[test]
        fn the_length_of_what_no_disk_holds_does_not_overflow(start in any::<u64>()) {
            let ranges = [start.min(u64::MAX - 1)..u64::MAX, 0..u64::MAX];
            let framing = Framing::new(Boundary::from_random(1), "image/png", &ranges, u64::MAX);
            prop_assert_eq!(framing.content_length(), u64::MAX);
        }
    }
}
