//! PNG and APNG (W3C PNG, third edition): chunk by chunk.
//!
//! Promised: every chunk's length and checksum is looked at, up to `CHECKED` bytes of it; frames are the frame control
//! chunks that are there, not those that are claimed. Deliberately absent: inflating anything, text chunks included.

use crate::media::{
    Facts, Flag, Found, Provenance,
    image::tiff,
    markup,
    reader::{Broken, Bytes, Walk},
};

pub(super) const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Checksums of more than this cost more than they tell.
const CHECKED: u64 = 64 << 20;

/// How much of a text chunk is searched for markup.
const SEARCHED: usize = 64 << 10;

pub(super) fn inspect(bytes: &mut Bytes<'_>) -> Found {
    let mut found = Found::of("image/png");
    let mut png = Png::default();
    let walk = png.walk(bytes, &mut found.facts);
    if png.animated {
        found = Found { facts: found.facts, ..Found::of("image/apng") };
    }
    let frames = if png.animated { png.frames } else { u32::from(png.has_pixels) };
    found.facts.pictures(frames, Provenance::Container);
    if png.animated && png.claimed != png.frames {
        found.facts.flag(Flag::SizeClaimWrong);
    }
    found.facts.settle(walk);
    found
}

#[derive(Debug, Default)]
struct Png {
    animated: bool,
    has_pixels: bool,
    claimed: u32,
    frames: u32,
    checked: u64,
}

impl Png {
    fn walk(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
        let mut at = SIGNATURE.len() as u64;
        let mut first = true;
        let mut checksums_hold = true;
        loop {
            bytes.step()?;
            let length = u64::from(bytes.be32(at)?);
            let name: [u8; 4] = bytes.array(at + 4)?;
            if first != (&name == b"IHDR") || length > 0x7FFF_FFFF || !name.iter().all(u8::is_ascii_alphabetic) {
                return Err(Broken::Bad);
            }
            first = false;
            self.chunk(bytes, facts, name, at + 8, length)?;
            bytes.reaches(at + 12 + length)?;
            if self.checked + length <= CHECKED {
                self.checked += length;
                checksums_hold &= checksum(bytes, at + 4, length + 4)? == bytes.be32(at + 8 + length)?;
            }
            at += 12 + length;
            if &name == b"IEND" {
                facts.ends_at(bytes, at);
                let sound = checksums_hold && self.has_pixels && facts.width.is_some();
                return if sound { Ok(()) } else { Err(Broken::Bad) };
            }
        }
    }

    fn chunk(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts, name: [u8; 4], at: u64, length: u64) -> Walk {
        let part = usize::try_from(length).unwrap_or(usize::MAX).min(SEARCHED);
        match &name {
            b"IHDR" => {
                if length != 13 {
                    return Err(Broken::Bad);
                }
                facts.size(bytes.be32(at)?, bytes.be32(at + 4)?);
            }
            b"IDAT" => self.has_pixels = true,
            // An animation has to announce itself before the first pixels.
            b"acTL" if !self.has_pixels => {
                self.animated = true;
                self.claimed = bytes.be32(at)?;
            }
            b"fcTL" => self.frames += 1,
            b"eXIf" => {
                let exif = bytes.peek(at, part);
                if let Some(orientation) = tiff::orientation(exif) {
                    facts.turned(orientation);
                }
            }
            b"tEXt" | b"iTXt" => {
                let text = bytes.peek(at, part);
                if markup::embedded(text) {
                    facts.flag(Flag::EmbeddedMarkup);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn checksum(bytes: &mut Bytes<'_>, mut at: u64, mut left: u64) -> Walk<u32> {
    let mut crc = u32::MAX;
    while left > 0 {
        let part = bytes.peek(at, usize::try_from(left).unwrap_or(usize::MAX).min(32 << 10));
        if part.is_empty() {
            return Err(Broken::Spent);
        }
        crc = part.iter().fold(crc, |crc, &byte| TABLE[((crc ^ u32::from(byte)) & 0xFF) as usize] ^ (crc >> 8));
        let got = part.len() as u64;
        at += got;
        left -= got;
    }
    Ok(!crc)
}

/// The CRC of ISO 3309 by bytes, as the PNG specification's annex describes it.
static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0u32; 256];
    let mut n = 0;
    while n < 256 {
        let mut value = n as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xEDB8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[n] = value;
        n += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::look;

    fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let mut body = name.to_vec();
        body.extend_from_slice(data);
        let mut source = std::io::Cursor::new(body.clone());
        let crc = checksum(&mut Bytes::new(&mut source, body.len() as u64), 0, body.len() as u64).expect("in memory");
        [&(data.len() as u32).to_be_bytes(), body.as_slice(), &crc.to_be_bytes()].concat()
    }

    fn png(width: u32, height: u32, before: &[Vec<u8>], after: &[Vec<u8>]) -> Vec<u8> {
        let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
        [
            SIGNATURE.to_vec(),
            chunk(b"IHDR", &header),
            before.concat(),
            chunk(b"IDAT", &[0x78, 0x9C]),
            after.concat(),
            chunk(b"IEND", &[]),
        ]
        .concat()
    }

    #[test]
    fn a_bomb_is_only_a_header() {
        let found = look(&png(100_000, 100_000, &[], &[]));
        assert_eq!(
            (found.mime_type.as_str(), found.facts.width, found.facts.frames),
            ("image/png", Some(100_000), Some(1))
        );
        assert!(found.facts.well_formed);
    }

    #[test]
    fn frames_are_counted_not_believed() {
        let control = chunk(b"acTL", &[0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]);
        let frame = chunk(b"fcTL", &[0; 26]);
        let found = look(&png(2, 2, &[control, frame.clone()], &[frame]));
        assert_eq!((found.mime_type.as_str(), found.facts.frames), ("image/apng", Some(2)));
        assert!(found.facts.flags.contains(&Flag::SizeClaimWrong));
    }

    #[test]
    fn damage_is_seen() {
        let whole = png(2, 2, &[], &[]);
        let cut = look(&whole[..whole.len() - 6]);
        assert!(!cut.facts.well_formed && cut.facts.flags.contains(&Flag::Truncated));
        let mut flipped = whole.clone();
        flipped[30] ^= 1;
        assert!(!look(&flipped).facts.well_formed);
        let mut longer = whole;
        longer.extend_from_slice(b"PK");
        let found = look(&longer);
        assert!(found.facts.well_formed && found.facts.flags.contains(&Flag::TrailingBytes));
    }

    #[test]
    fn markup_in_text_is_flagged() {
        let found = look(&png(2, 2, &[chunk(b"tEXt", b"Comment\0<script>alert(1)</script>")], &[]));
        assert!(found.facts.flags.contains(&Flag::EmbeddedMarkup));
        assert_eq!(found.mime_type, "image/png");
    }
}
