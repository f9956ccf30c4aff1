//! EBML (RFC 8794): elements of an identifier, a size that may be unknown, and a body.
//!
//! Promised: one element at a time, at an offset. Deliberately absent: recursion.

use crate::media::reader::{Broken, Bytes, Walk};

/// An element's header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element {
    pub(super) id: u32,
    pub(super) body: u64,
    /// `None` when the size is not known.
    pub(super) end: Option<u64>,
}

/// The element at an offset.
pub(super) fn element(bytes: &mut Bytes<'_>, at: u64) -> Walk<Element> {
    bytes.step()?;
    let end_of_bytes = bytes.size();
    let header = bytes.peek(at, 12);
    let missing = if header.len() < 12 && at + 12 > end_of_bytes { Broken::Short } else { Broken::Bad };
    let (id, id_width) = vint(header, false).filter(|(_, width)| *width <= 4).ok_or(missing)?;
    let (size, size_width) = vint(&header[id_width..], true).ok_or(missing)?;
    let body = at + (id_width + size_width) as u64;
    let unknown = size == (1 << (7 * size_width)) - 1;
    let end = if unknown { None } else { Some(body.checked_add(size).ok_or(Broken::Bad)?) };
    Ok(Element { id: u32::try_from(id).map_err(|_| Broken::Bad)?, body, end })
}

/// A number of one to eight bytes whose leading zeros say how long it is, and its width.
pub(super) fn vint(from: &[u8], strip: bool) -> Option<(u64, usize)> {
    let first = *from.first()?;
    let width = first.leading_zeros() as usize + 1;
    if width > 8 || from.len() < width {
        return None;
    }
    let value = from[..width].iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    Some((if strip { value & !(1 << (7 * width)) } else { value }, width))
}

/// Calls for each element inside another of known size.
pub(super) fn children(
    bytes: &mut Bytes<'_>,
    parent: Element,
    visit: &mut dyn FnMut(&mut Bytes<'_>, Element) -> Walk,
) -> Walk {
    let end = parent.end.ok_or(Broken::Bad)?;
    let mut at = parent.body;
    while at < end {
        let found = element(bytes, at)?;
        let next = found.end.ok_or(Broken::Bad)?;
        bytes.reaches(next)?;
        if next > end {
            return Err(Broken::Bad);
        }
        visit(bytes, found)?;
        at = next;
    }
    Ok(())
}

/// An unsigned number of up to eight bytes.
pub(super) fn number(bytes: &mut Bytes<'_>, found: Element) -> Walk<u64> {
    let length = found.end.ok_or(Broken::Bad)? - found.body;
    if length > 8 {
        return Err(Broken::Bad);
    }
    Ok(bytes.take(found.body, length as usize)?.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// A floating-point number of either width; `None` for a width that is none.
pub(super) fn float(bytes: &mut Bytes<'_>, found: Element) -> Walk<Option<f64>> {
    match found.end.ok_or(Broken::Bad)? - found.body {
        0 => Ok(Some(0.0)),
        4 => bytes.be32(found.body).map(|bits| Some(f32::from_bits(bits).into())),
        8 => bytes.be64(found.body).map(|bits| Some(f64::from_bits(bits))),
        _ => Ok(None),
    }
}

/// Codec names are short.
pub(super) fn text(bytes: &mut Bytes<'_>, found: Element) -> Walk<String> {
    let length = usize::try_from(found.end.ok_or(Broken::Bad)? - found.body).unwrap_or(usize::MAX);
    Ok(String::from_utf8_lossy(bytes.peek(found.body, length.min(64))).trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn numbers_carry_their_width() {
        assert_eq!(vint(&[0x81], true), Some((1, 1)));
        assert_eq!(vint(&[0x40, 0x02], true), Some((2, 2)));
        assert_eq!(vint(&[0x1A, 0x45, 0xDF, 0xA3], false), Some((0x1A45_DFA3, 4)));
        assert_eq!(vint(&[0x40], true), None);
        assert_eq!(vint(&[0x00; 9], true), None);
    }

    #[test]
    fn a_size_may_be_unknown_or_too_large() {
        let mut source = Cursor::new([0xEC, 0xFF, 0xEC, 0x01, 0, 0, 0, 0, 0, 0, 9]);
        let mut bytes = Bytes::new(&mut source, 11);
        assert_eq!(element(&mut bytes, 0).map(|found| found.end), Ok(None));
        assert_eq!(element(&mut bytes, 2).map(|found| found.end), Ok(Some(20)));
    }
}
