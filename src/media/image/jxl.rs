//! JPEG XL (ISO/IEC 18181): the size header's bits, in a bare codestream or in boxes.
//!
//! Promised: one frame where the header says that nothing moves. Deliberately absent: a count of frames where something does; they lie
//! behind entropy-coded headers.

use crate::media::{
    Facts, Found, Provenance,
    container::boxes,
    reader::{Broken, Bytes, OrBad, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let boxed = head.starts_with(b"\0\0\0\x0CJXL \r\n\x87\n");
    if !boxed && !head.starts_with(&[0xFF, 0x0A]) {
        return None;
    }
    let mut found = Found::of("image/jxl");
    let walk = if boxed { walk(bytes, &mut found.facts) } else { codestream(&head[2..], &mut found.facts) };
    found.facts.settle(walk);
    Some(found)
}

fn walk(bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
    let size = bytes.size();
    let mut any = false;
    boxes::each(bytes, 0, size, &mut |bytes, found| {
        let at = match &found.name {
            b"jxlc" => found.body,
            // A part begins with its number.
            b"jxlp" => found.body + 4,
            _ => return Ok(()),
        };
        if !any {
            any = true;
            let part = bytes.peek(at, 32).to_vec();
            codestream(part.strip_prefix(&[0xFF, 0x0A]).or_bad()?, facts)?;
        }
        Ok(())
    })?;
    if any { Ok(()) } else { Err(Broken::Bad) }
}

fn codestream(header: &[u8], facts: &mut Facts) -> Walk {
    let mut bits = Bits { from: header, at: 0 };
    let small = bits.take(1)? == 1;
    let height = side(&mut bits, small)?;
    let width = match bits.take(3)? {
        0 => side(&mut bits, small)?,
        1 => height,
        // The ratios of Annex D: 12:10, 4:3, 3:2, 16:9, 5:4, 2:1.
        2 => height * 12 / 10,
        3 => height * 4 / 3,
        4 => height * 3 / 2,
        5 => height * 16 / 9,
        6 => height * 5 / 4,
        _ => height * 2,
    };
    facts.size(u32::try_from(width).unwrap_or(0), u32::try_from(height).unwrap_or(0));
    let (orientation, moves) = metadata(&mut bits)?;
    // Every decoder applies the orientation, so the size is that of what it shows.
    if orientation >= 5 {
        std::mem::swap(&mut facts.width, &mut facts.height);
    }
    if !moves {
        facts.pictures(1, Provenance::Container);
    }
    Ok(())
}

/// Orientation, and whether there is an animation (Annex D.3): behind an own size and a preview's.
fn metadata(bits: &mut Bits<'_>) -> Walk<(u64, bool)> {
    if bits.take(1)? == 1 || bits.take(1)? == 0 {
        return Ok((1, false));
    }
    let orientation = bits.take(3)? + 1;
    if bits.take(1)? == 1 {
        let small = bits.take(1)? == 1;
        side(bits, small)?;
        if bits.take(3)? == 0 {
            side(bits, small)?;
        }
    }
    if bits.take(1)? == 1 {
        // A preview's size: in units of eight pixels, or in pixels, with a table of its own.
        let eighths = bits.take(1)? == 1;
        preview(bits, eighths)?;
        if bits.take(3)? == 0 {
            preview(bits, eighths)?;
        }
    }
    Ok((orientation, bits.take(1)? == 1))
}

fn preview(bits: &mut Bits<'_>, eighths: bool) -> Walk {
    let widths: [usize; 4] = if eighths { [0, 0, 5, 9] } else { [6, 8, 10, 12] };
    let width = widths[bits.take(2)? as usize];
    bits.take(width).map(|_| ())
}

fn side(bits: &mut Bits<'_>, small: bool) -> Walk<u64> {
    if small {
        return Ok((bits.take(5)? + 1) * 8);
    }
    let width = [9, 13, 18, 30][bits.take(2)? as usize];
    Ok(bits.take(width)? + 1)
}

/// Least significant bit first.
#[derive(Debug)]
struct Bits<'a> {
    from: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: usize) -> Walk<u64> {
        let mut value = 0;
        for n in 0..count {
            let byte = self.from.get(self.at / 8).ok_or(Broken::Short)?;
            value |= u64::from(byte >> (self.at % 8) & 1) << n;
            self.at += 1;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn a_small_square_is_two_bytes_of_size() {
        // small, height code 3, ratio 1:1, all default.
        let found = look(&[0xFF, 0x0A, 0b0100_0111, 0b0000_0010, 0, 0]);
        assert_eq!(found.mime_type, "image/jxl");
        assert_eq!((found.facts.width, found.facts.height, found.facts.frames), (Some(32), Some(32), Some(1)));
    }
}
