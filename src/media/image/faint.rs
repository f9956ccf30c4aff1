//! Pictures without a signature: Truevision TGA, PCX and QuickDraw PICT.
//!
//! Promised: the whole header has to make sense, and the pixels it claims have to be there. A file that only looks
//! like one of these is unknown.

use crate::media::{
    Found, Provenance,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    pcx(head).or_else(|| tga(bytes, head)).or_else(|| pict(head))
}

fn picture(name: &str, width: u32, height: u32, walk: Walk) -> Found {
    let mut found = Found::of(name);
    found.facts.size(width, height);
    found.facts.pictures(1, Provenance::Container);
    found.facts.settle(walk);
    found
}

fn pcx(head: &[u8]) -> Option<Found> {
    let [0x0A, 0 | 2 | 3 | 4 | 5, 1, 1 | 2 | 4 | 8, ..] = head else {
        return None;
    };
    let corner = |at| head.le16(at).map(u32::from);
    let (left, top, right, bottom) = (corner(4)?, corner(6)?, corner(8)?, corner(10)?);
    let (reserved, planes, line) = (*head.get(64)?, *head.get(65)?, corner(66)?);
    let (width, height) = (right.checked_sub(left)? + 1, bottom.checked_sub(top)? + 1);
    let enough = line * 8 >= width * u32::from(head[3]);
    if reserved != 0 || !(1..=4).contains(&planes) || !enough || head.len() < 128 {
        return None;
    }
    Some(picture("image/vnd.zbrush.pcx", width, height, Ok(())))
}

fn tga(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let fields: [u8; 18] = head.part(0)?;
    let [id_length, has_map, kind, ..] = fields;
    let (map_length, map_bits) = (u64::from(fields.le16(5)?), fields[7]);
    let (width, height, bits, descriptor) = (fields.le16(12)?, fields.le16(14)?, fields[16], fields[17]);
    let mapped = matches!(kind, 1 | 9);
    let sane = match kind {
        1 | 9 => has_map == 1 && bits == 8 && matches!(map_bits, 15 | 16 | 24 | 32) && map_length > 0,
        2 | 10 => has_map <= 1 && matches!(bits, 15 | 16 | 24 | 32),
        3 | 11 => has_map == 0 && matches!(bits, 8 | 16),
        _ => false,
    };
    let no_map_is_empty = has_map == 1 || (map_length == 0 && fields[3..8].iter().all(|&byte| byte == 0));
    if !sane
        || !(no_map_is_empty || mapped)
        || width == 0
        || height == 0
        || descriptor & 0xC0 != 0
        || descriptor & 15 > 8
    {
        return None;
    }
    let map = if has_map == 1 { map_length * u64::from(map_bits).div_ceil(8) } else { 0 };
    let start = 18 + u64::from(id_length) + map;
    let pixel = u64::from(bits).div_ceil(8);
    let count = u64::from(width) * u64::from(height);
    let walk = if kind >= 9 { runs(bytes, start, pixel, count) } else { bytes.reaches(start + count * pixel) };
    let (_, tail) = bytes.tail(18);
    if walk.is_err() && tail != b"TRUEVISION-XFILE.\0" {
        return None;
    }
    Some(picture("image/x-tga", width.into(), height.into(), walk))
}

/// Walks run-length packets until all pixels are accounted for.
fn runs(bytes: &mut Bytes<'_>, mut at: u64, pixel: u64, mut count: u64) -> Walk {
    while count > 0 {
        bytes.step()?;
        let packet = bytes.u8(at)?;
        let pixels = u64::from(packet & 0x7F) + 1;
        at += 1 + if packet & 0x80 == 0 { pixels * pixel } else { pixel };
        count = count.checked_sub(pixels).ok_or(Broken::Bad)?;
    }
    bytes.reaches(at)
}

/// 512 bytes of an application's own, then a size, a frame and the version opcode.
fn pict(head: &[u8]) -> Option<Found> {
    let corner = |at| head.be16(at).map(|value| i32::from(value.cast_signed()));
    let (top, left, bottom, right) = (corner(514)?, corner(516)?, corner(518)?, corner(520)?);
    let version = head.has(522, &[0x00, 0x11, 0x02, 0xFF]) || head.has(522, &[0x11, 0x01]);
    let (width, height) = (u32::try_from(right - left).ok()?, u32::try_from(bottom - top).ok()?);
    if !version || width == 0 || height == 0 {
        return None;
    }
    Some(picture("image/x-pict", width, height, Ok(())))
}

#[cfg(test)]
mod tests {
    use crate::media::{declared::UNKNOWN, tests::look};

    fn tga(kind: u8, pixels: &[u8]) -> Vec<u8> {
        let header = [0, 0, kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 24, 0];
        [header.as_slice(), pixels].concat()
    }

    #[test]
    fn pixels_have_to_be_there() {
        assert_eq!(look(&tga(2, &[0; 6])).mime_type, "image/x-tga");
        assert_eq!(look(&tga(2, &[0; 5])).mime_type, UNKNOWN);
    }

    #[test]
    fn runs_have_to_add_up() {
        assert_eq!(look(&tga(10, &[0x81, 1, 2, 3])).mime_type, "image/x-tga");
        assert_eq!(look(&tga(10, &[0x82, 1, 2, 3])).mime_type, UNKNOWN);
    }
}
