//! Boxes of the ISO base media file format (ISO/IEC 14496-12) and of JPEG 2000: length, name, body.

use crate::media::reader::{Broken, Bytes, Walk};

/// One box, without its header.
#[derive(Debug, Clone, Copy)]
pub(in crate::media) struct Found {
    pub(in crate::media) name: [u8; 4],
    pub(in crate::media) body: u64,
    pub(in crate::media) end: u64,
}

/// Calls for each box between two offsets. A caller that wants to go deeper calls again, so that depth is written in
/// code and never in the file.
pub(in crate::media) fn each(
    bytes: &mut Bytes<'_>,
    mut at: u64,
    end: u64,
    visit: &mut dyn FnMut(&mut Bytes<'_>, Found) -> Walk,
) -> Walk {
    while let Some(found) = next(bytes, at, end)? {
        visit(bytes, found)?;
        at = found.end;
    }
    Ok(())
}

/// The box at an offset; `None` where no header fits any more, as after the zero that ends a QuickTime list.
pub(in crate::media) fn next(bytes: &mut Bytes<'_>, at: u64, end: u64) -> Walk<Option<Found>> {
    if at.saturating_add(8) > end {
        return Ok(None);
    }
    bytes.step()?;
    let [s0, s1, s2, s3, name @ ..] = bytes.array::<8>(at)?;
    let (body, length) = match u32::from_be_bytes([s0, s1, s2, s3]) {
        0 => (at + 8, end - at),
        1 => (at + 16, bytes.be64(at + 8)?),
        short => (at + 8, u64::from(short)),
    };
    let last = at.checked_add(length).ok_or(Broken::Bad)?;
    if last < body {
        return Err(Broken::Bad);
    }
    bytes.reaches(last)?;
    if last > end {
        return Err(Broken::Bad);
    }
    Ok(Some(Found { name, body, end: last }))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn names(file: &[u8]) -> (Vec<[u8; 4]>, Walk) {
        let mut source = Cursor::new(file);
        let mut bytes = Bytes::new(&mut source, file.len() as u64);
        let mut names = Vec::new();
        let walk = each(&mut bytes, 0, file.len() as u64, &mut |_, found| {
            names.push(found.name);
            Ok(())
        });
        (names, walk)
    }

    #[test]
    fn sizes_of_every_sort_are_read() {
        let file = b"\0\0\0\x08free\0\0\0\x01wide\0\0\0\0\0\0\0\x11x\0\0\0\0mdat1234";
        assert_eq!(names(file), (vec![*b"free", *b"wide", *b"mdat"], Ok(())));
    }

    #[test]
    fn sizes_that_cannot_be_end_the_walk() {
        assert_eq!(names(b"\0\0\0\x04free").1, Err(Broken::Bad));
        assert_eq!(names(b"\0\0\0\x01free\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF").1, Err(Broken::Short));
        assert_eq!(names(b"\0\0\0\x01free\0\0\0\0\0\0\0\x08").1, Err(Broken::Bad));
        assert_eq!(names(b"\0\0\0\x09free").1, Err(Broken::Short));
    }
}
