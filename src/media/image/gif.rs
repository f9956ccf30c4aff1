//! GIF87a and GIF89a: block by block.
//!
//! Promised: frames are the image descriptors that are there. Deliberately absent: LZW.

use crate::media::{
    Facts, Flag, Found, Provenance, markup,
    reader::{Broken, Bytes, Walk},
};

pub(super) fn inspect(bytes: &mut Bytes<'_>) -> Found {
    let mut found = Found::of("image/gif");
    let mut frames = 0;
    let walk = walk(bytes, &mut found.facts, &mut frames);
    found.facts.pictures(frames, Provenance::Scanned);
    found.facts.settle(walk);
    found
}

fn walk(bytes: &mut Bytes<'_>, facts: &mut Facts, frames: &mut u32) -> Walk {
    let (width, height) = (bytes.le16(6)?, bytes.le16(8)?);
    facts.size(width.into(), height.into());
    let mut at = 13 + color_table(bytes.u8(10)?);
    loop {
        bytes.step()?;
        match bytes.u8(at)? {
            0x2C => {
                at += 10 + color_table(bytes.u8(at + 9)?);
                // One byte of LZW code size, then data.
                at = sub_blocks(bytes, at + 1, None)?;
                *frames += 1;
            }
            0x21 => {
                let comment = bytes.u8(at + 1)? == 0xFE;
                at = sub_blocks(bytes, at + 2, comment.then_some(&mut *facts))?;
            }
            0x3B => {
                facts.ends_at(bytes, at + 1);
                return if *frames > 0 && facts.width.is_some() { Ok(()) } else { Err(Broken::Bad) };
            }
            _ => return Err(Broken::Bad),
        }
    }
}

fn color_table(packed: u8) -> u64 {
    if packed & 0x80 == 0 { 0 } else { 3 << ((packed & 7) + 1) }
}

/// The offset behind a chain of sub-blocks; comments are searched for markup on the way.
fn sub_blocks(bytes: &mut Bytes<'_>, mut at: u64, mut comment: Option<&mut Facts>) -> Walk<u64> {
    loop {
        bytes.step()?;
        let length = bytes.u8(at)?;
        if length == 0 {
            return Ok(at + 1);
        }
        if let Some(facts) = comment.as_deref_mut()
            && markup::embedded(bytes.peek(at + 1, length.into()))
        {
            facts.flag(Flag::EmbeddedMarkup);
        }
        at += 1 + u64::from(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::look;

    const HEADER: &[u8] = b"GIF89a\x10\x27\x10\x27\x00\x00\x00";
    const FRAME: &[u8] = b"\x2C\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0";

    #[test]
    fn frames_are_walked_not_drawn() {
        let found = look(&[HEADER, FRAME, FRAME, b"\x3B"].concat());
        let facts = &found.facts;
        assert_eq!((facts.width, facts.height, facts.frames), (Some(10_000), Some(10_000), Some(2)));
        assert!(facts.well_formed && facts.flags.is_empty());
    }

    #[test]
    fn a_missing_trailer_is_a_truncation() {
        let found = look(&[HEADER, FRAME].concat());
        assert!(!found.facts.well_formed && found.facts.flags.contains(&Flag::Truncated));
        assert_eq!(found.facts.frames, Some(1));
    }

    #[test]
    fn a_page_in_a_comment_is_flagged() {
        let comment = b"\x21\xFE\x06<html>\x00";
        let found = look(&[HEADER, comment, FRAME, b"\x3Bx"].concat());
        assert!(found.facts.flags.contains(&Flag::EmbeddedMarkup));
        assert!(found.facts.flags.contains(&Flag::TrailingBytes));
    }
}
