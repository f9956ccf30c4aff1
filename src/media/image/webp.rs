//! WebP (RFC 9649): a RIFF of one picture or many frames.
//!
//! Promised: the canvas for extended files, the frame's own size for simple ones, frames by counting their chunks.
//! Deliberately absent: anything inside a frame but its size.

use crate::media::{
    Facts, Flag, Found, Provenance,
    image::tiff,
    markup,
    reader::{Broken, Bytes, Walk},
};

pub(super) fn inspect(bytes: &mut Bytes<'_>) -> Found {
    let mut found = Found::of("image/webp");
    let mut webp = WebP::default();
    let walk = webp.walk(bytes, &mut found.facts);
    let frames = if webp.animated { webp.frames } else { u32::from(webp.still) };
    found.facts.pictures(frames, Provenance::Scanned);
    found.facts.settle(walk);
    found
}

#[derive(Debug, Default)]
struct WebP {
    animated: bool,
    still: bool,
    frames: u32,
}

impl WebP {
    fn walk(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
        let end = 8 + u64::from(bytes.le32(4)?);
        let mut at = 12;
        while at + 8 <= end.min(bytes.size()) {
            bytes.step()?;
            let name: [u8; 4] = bytes.array(at)?;
            let length = u64::from(bytes.le32(at + 4)?);
            self.chunk(bytes, facts, name, at + 8, length)?;
            bytes.reaches(at + 8 + length)?;
            if at + 8 + length > end {
                return Err(Broken::Bad);
            }
            at += 8 + length + (length & 1);
        }
        if end > bytes.size() {
            facts.flag(Flag::SizeClaimWrong);
            return Err(Broken::Short);
        }
        // A file may end without the pad byte of its last chunk.
        facts.ends_at(bytes, end.max(at));
        if (self.still || self.frames > 0) && facts.width.is_some() { Ok(()) } else { Err(Broken::Bad) }
    }

    fn chunk(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts, name: [u8; 4], at: u64, length: u64) -> Walk {
        match &name {
            b"VP8X" => {
                let [flags, _, _, _, w0, w1, w2, h0, h1, h2] = bytes.array(at)?;
                self.animated = flags & 2 != 0;
                facts.size(u32::from_le_bytes([w0, w1, w2, 0]) + 1, u32::from_le_bytes([h0, h1, h2, 0]) + 1);
            }
            b"VP8 " => {
                let [_, _, _, sync @ .., w0, w1, h0, h1] = bytes.array::<10>(at)?;
                if sync != [0x9D, 0x01, 0x2A] {
                    return Err(Broken::Bad);
                }
                self.still = true;
                let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3FFF);
                if facts.width.is_none() {
                    facts.size(side(w0, w1), side(h0, h1));
                }
            }
            b"VP8L" => {
                let [signature, packed @ ..] = bytes.array::<5>(at)?;
                if signature != 0x2F {
                    return Err(Broken::Bad);
                }
                self.still = true;
                let packed = u32::from_le_bytes(packed);
                if facts.width.is_none() {
                    facts.size((packed & 0x3FFF) + 1, ((packed >> 14) & 0x3FFF) + 1);
                }
            }
            b"ANMF" => self.frames += 1,
            b"EXIF" => {
                let exif = bytes.peek(at, usize::try_from(length).unwrap_or(usize::MAX).min(MOST_EXIF));
                if let Some(orientation) = tiff::orientation(exif) {
                    facts.turned(orientation);
                }
            }
            b"VP8\0" => return Err(Broken::Bad),
            b"ALPH" | b"ANIM" | b"ICCP" | b"XMP " => {}
            _ => {
                let part = usize::try_from(length).unwrap_or(usize::MAX).min(MOST_EXIF);
                if markup::embedded(bytes.peek(at, part)) {
                    facts.flag(Flag::EmbeddedMarkup);
                }
            }
        }
        Ok(())
    }
}

/// A JPEG segment's limit, which Exif writers keep to elsewhere too.
const MOST_EXIF: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::look;

    fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let pad = vec![0; data.len() & 1];
        [name.as_slice(), &(data.len() as u32).to_le_bytes(), data, &pad].concat()
    }

    fn webp(chunks: &[Vec<u8>]) -> Vec<u8> {
        let body = [b"WEBP".to_vec(), chunks.concat()].concat();
        [b"RIFF".as_slice(), &(body.len() as u32).to_le_bytes(), &body].concat()
    }

    #[test]
    fn the_largest_lossless_picture_has_a_size() {
        let facts = look(&webp(&[chunk(b"VP8L", &[0x2F, 0xFF, 0xFF, 0xFF, 0x0F])])).facts;
        assert_eq!((facts.width, facts.height, facts.frames), (Some(16_384), Some(16_384), Some(1)));
        assert!(facts.well_formed);
    }

    #[test]
    fn frames_are_counted_on_the_canvas() {
        let canvas = chunk(b"VP8X", &[2, 0, 0, 0, 99, 0, 0, 86, 0, 0]);
        let facts = look(&webp(&[canvas, chunk(b"ANMF", &[0; 24]), chunk(b"ANMF", &[0; 24])])).facts;
        assert_eq!((facts.width, facts.height, facts.frames), (Some(100), Some(87), Some(2)));
    }

    #[test]
    fn a_size_beyond_the_bytes_is_a_truncation() {
        let mut file = webp(&[chunk(b"VP8L", &[0x2F, 0, 0, 0, 0])]);
        file[7] = 0x7F;
        let facts = look(&file).facts;
        assert!(!facts.well_formed && facts.flags.contains(&Flag::Truncated));
        assert_eq!(facts.width, Some(1));
    }
}
