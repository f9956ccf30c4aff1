//! JPEG (ITU-T T.81) and JPEG-LS: marker by marker.
//!
//! Promised: size from the frame header, orientation from Exif, the end from the end marker. Entropy-coded data is
//! crossed by searching for markers, never decoded. Deliberately absent: size of files that state it only after their
//! first scan (DNL).

use memchr::memchr;

use crate::media::{
    Facts, Flag, Found, Provenance,
    image::tiff,
    markup,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn inspect(bytes: &mut Bytes<'_>) -> Found {
    let mut facts = Facts::default();
    let mut near_lossless = false;
    let walk = walk(bytes, &mut facts, &mut near_lossless);
    let mut found = Found::of(if near_lossless { "image/jls" } else { "image/jpeg" });
    if facts.width.is_some() {
        facts.pictures(1, Provenance::Container);
    }
    facts.settle(walk);
    found.facts = facts;
    found
}

fn walk(bytes: &mut Bytes<'_>, facts: &mut Facts, near_lossless: &mut bool) -> Walk {
    let mut at = 2;
    let mut scanned = false;
    loop {
        bytes.step()?;
        at = next_marker(bytes, at, scanned, *near_lossless)?;
        let marker = bytes.u8(at - 1)?;
        match marker {
            0xD9 => {
                facts.ends_at(bytes, at);
                return if scanned && facts.width.is_some() { Ok(()) } else { Err(Broken::Bad) };
            }
            // Start again, restart intervals and the temporary marker have no length.
            0xD8 | 0x01 | 0xD0..=0xD7 => continue,
            _ => {}
        }
        let length = u64::from(bytes.be16(at)?);
        if length < 2 {
            return Err(Broken::Bad);
        }
        bytes.reaches(at + length)?;
        segment(bytes, facts, marker, at + 2, usize::try_from(length - 2).unwrap_or(0))?;
        *near_lossless |= marker == 0xF7;
        scanned |= marker == 0xDA;
        at += length;
    }
}

/// The offset behind the next marker's code. Before the first scan markers follow each other; after it data lies between.
fn next_marker(bytes: &mut Bytes<'_>, mut at: u64, in_scan: bool, near_lossless: bool) -> Walk<u64> {
    loop {
        bytes.step()?;
        let window = bytes.peek(at, WINDOW);
        if window.is_empty() {
            return Err(bytes.u8(at).err().unwrap_or(Broken::Short));
        }
        let Some(skip) = memchr(0xFF, window) else {
            if !in_scan {
                return Err(Broken::Bad);
            }
            at += window.len() as u64;
            continue;
        };
        if skip > 0 && !in_scan {
            return Err(Broken::Bad);
        }
        let fill = window[skip..].iter().take_while(|&&byte| byte == 0xFF).count();
        match window.get(skip + fill).copied() {
            // JPEG-LS stuffs one bit: whatever follows without its highest bit is data.
            Some(0x00..=0x7F) if in_scan && near_lossless => at += (skip + fill + 1) as u64,
            // A stuffed byte, or a restart inside the data.
            Some(0x00 | 0xD0..=0xD7) if in_scan => at += (skip + fill + 1) as u64,
            Some(0x00) => return Err(Broken::Bad),
            Some(_) => return Ok(at + (skip + fill + 1) as u64),
            None => {
                let end = at + (skip + fill) as u64;
                if end >= bytes.size() {
                    return Err(Broken::Short);
                }
                // Keep one FF in front of what the next window brings.
                at = end - 1;
            }
        }
    }
}

/// Entropy-coded data holds a marker-like byte every few hundred bytes; a window serves many of them.
const WINDOW: usize = 4 << 10;

fn segment(bytes: &mut Bytes<'_>, facts: &mut Facts, marker: u8, at: u64, length: usize) -> Walk {
    match marker {
        // Frame headers, JPEG-LS's among them; C4, C8 and CC are not.
        0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF | 0xF7 => {
            let (height, width) = (bytes.be16(at + 1)?, bytes.be16(at + 3)?);
            if facts.width.is_none() {
                facts.size(width.into(), height.into());
            }
        }
        0xE1 => {
            let data = bytes.peek(at, length);
            if data.starts_with(b"Exif\0")
                && facts.orientation.is_none()
                && let Some(orientation) = data.get(6..).and_then(tiff::orientation)
            {
                facts.turned(orientation);
            }
        }
        0xFE if markup::embedded(bytes.peek(at, length)) => facts.flag(Flag::EmbeddedMarkup),
        // A JFIF segment is short. One that is not hides something.
        0xE0 => {
            let data = bytes.peek(at, length);
            if !data.has(0, b"JFXX") && markup::embedded(data) {
                facts.flag(Flag::EmbeddedMarkup);
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::look;

    const FRAME: &[u8] = b"\xFF\xC0\x00\x0B\x08\x00\x14\x00\x28\x01\x01\x11\x00";
    const SCAN: &[u8] = b"\xFF\xDA\x00\x08\x01\x01\x00\x00\x3F\x00\x12\xFF\x00\x34\xFF\xD0\x56";

    fn exif(orientation: u8) -> Vec<u8> {
        let tiff = [b"MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".as_slice(), &[orientation], &[0; 6]].concat();
        [b"\xFF\xE1".as_slice(), &(tiff.len() as u16 + 8).to_be_bytes(), b"Exif\0\0", &tiff].concat()
    }

    #[test]
    fn a_sideways_photo_is_described_upright() {
        let found = look(&[b"\xFF\xD8", exif(6).as_slice(), FRAME, SCAN, b"\xFF\xD9"].concat());
        let facts = &found.facts;
        assert_eq!((facts.width, facts.height, facts.orientation), (Some(20), Some(40), Some(6)));
        assert!(facts.well_formed && facts.flags.is_empty(), "{facts:?}");
    }

    #[test]
    fn an_orientation_that_is_none_is_ignored() {
        let found = look(&[b"\xFF\xD8", exif(99).as_slice(), FRAME, SCAN, b"\xFF\xD9"].concat());
        assert_eq!((found.facts.width, found.facts.orientation), (Some(40), None));
    }

    #[test]
    fn polyglots_stay_jpeg_and_are_flagged() {
        let comment = b"\xFF\xFE\x00\x0A<script>".as_slice();
        let found = look(&[b"\xFF\xD8", comment, FRAME, SCAN, b"\xFF\xD9PK\x03\x04"].concat());
        assert_eq!(found.mime_type, "image/jpeg");
        assert!(found.facts.flags.contains(&Flag::EmbeddedMarkup));
        assert!(found.facts.flags.contains(&Flag::TrailingBytes));
    }

    #[test]
    fn a_cut_photo_keeps_its_size() {
        let found = look(&[b"\xFF\xD8", FRAME, SCAN].concat());
        assert_eq!(found.facts.width, Some(40));
        assert!(!found.facts.well_formed && found.facts.flags.contains(&Flag::Truncated));
    }
}
