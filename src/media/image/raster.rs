//! Pictures with a fixed header: type and size out of its fields.
//!
//! Promised: fields that contradict the format make it another format or a broken file, not a size. Deliberately
//! absent: a walk through the pixel data.

use crate::media::{
    Facts, Found, Provenance,
    reader::{Broken, Bytes, Fields, OrBad, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let (name, read): (&str, Read) = match head {
        [b'B', b'M', ..] if is_bmp(head) => ("image/bmp", bmp),
        [0, 0, 1, 0, ..] if is_icon(head) => ("image/vnd.microsoft.icon", icon),
        // WHATWG has one name for both, and a mark alone does not tell more.
        [0, 0, 2, 0] => ("image/vnd.microsoft.icon", icon),
        [0, 0, 2, 0, ..] if is_icon(head) => ("image/x-win-bitmap", icon),
        [b'8', b'B', b'P', b'S', 0, 1 | 2, ..] => ("image/vnd.adobe.photoshop", photoshop),
        [b'q', b'o', b'i', b'f', ..] if matches!(head.get(12), Some(3 | 4)) => ("image/x-qoi", qoi),
        [b'D', b'D', b'S', b' ', 124, 0, 0, 0, ..] => ("image/vnd.ms-dds", dds),
        [b'f', b'a', b'r', b'b', b'f', b'e', b'l', b'd', 0, ..] => ("image/x-farbfeld", farbfeld),
        [b'#', b'?', ..] if head.has(2, b"RADIANCE") || head.has(2, b"RGBE") => ("image/vnd.radiance", radiance),
        [b'S', b'D', b'P', b'X', ..] | [b'X', b'P', b'D', b'S', ..] if head.has(8, b"V") => ("image/x-dpx", dpx),
        [0x76, 0x2F, 0x31, 0x01, ..] => ("image/x-exr", exr),
        [0x01, 0xDA, 0 | 1, 1 | 2, 0, 1..=3, ..] => ("image/sgi", sgi),
        [b'g', b'i', b'm', b'p', b' ', b'x', b'c', b'f', b' ', ..] if head.get(13) == Some(&0) => ("image/x-xcf", xcf),
        [b'B', b'P', b'G', 0xFB, ..] => ("image/bpg", bpg),
        [b'F', b'L', b'I', b'F', b'1'..=b'd', b'0'..=b'2', ..] => ("image/flif", flif),
        [b'i', b'c', b'n', b's', 0..=0x1F, ..] if head.len() >= 8 => ("image/icns", icns),
        [0xAB, b'K', b'T', b'X', b' ', b'1', b'1', 0xBB, ..] => ("image/ktx", ktx),
        [0xAB, b'K', b'T', b'X', b' ', b'2', b'0', 0xBB, ..] => ("image/ktx2", ktx2),
        _ => return None,
    };
    let mut found = Found::of(name);
    let walk = read(bytes, head, &mut found.facts);
    if found.facts.width.is_some() && matches!(name, "image/bmp" | "image/x-qoi" | "image/vnd.adobe.photoshop") {
        found.facts.pictures(1, Provenance::Container);
    }
    found.facts.settle(walk);
    Some(found)
}

type Read = fn(&mut Bytes<'_>, &[u8], &mut Facts) -> Walk;

/// The information header's size says which of the known headers it is.
fn is_bmp(head: &[u8]) -> bool {
    head.len() == 2 || matches!(head.le32(14), Some(12 | 16 | 40 | 48 | 52 | 56 | 64 | 108 | 124))
}

fn bmp(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    let pixels = bytes.le32(10)?;
    let (width, height, bits, packed) = if bytes.le32(14)? == 12 {
        (u32::from(bytes.le16(18)?), u32::from(bytes.le16(20)?), bytes.le16(24)?, false)
    } else {
        let (width, height) = (bytes.le32(18)?.cast_signed(), bytes.le32(22)?.cast_signed());
        // A negative height means rows from the top.
        let size = (u32::try_from(width).unwrap_or(0), height.unsigned_abs());
        (size.0, size.1, bytes.le16(28)?, matches!(bytes.le32(30), Ok(1 | 2 | 4 | 5)))
    };
    if width == 0 || height == 0 || height > i32::MAX.unsigned_abs() {
        return Err(Broken::Bad);
    }
    facts.size(width, height);
    let row = (u64::from(width) * u64::from(bits)).div_ceil(32) * 4;
    let needed = if packed { 0 } else { row.saturating_mul(height.into()) };
    bytes.reaches(u64::from(pixels).saturating_add(needed))
}

/// An image directory: at least one entry, and the first is possible.
fn is_icon(head: &[u8]) -> bool {
    let Some(count) = head.le16(4) else {
        return head.len() == 4;
    };
    let (Some(length), Some(offset)) = (head.le32(14), head.le32(18)) else {
        return false;
    };
    count > 0
        && length > 0
        && head.get(9).is_some_and(|&reserved| reserved == 0 || reserved == 0xFF)
        && (offset == 0 || offset >= 22)
}

fn icon(bytes: &mut Bytes<'_>, head: &[u8], facts: &mut Facts) -> Walk {
    let mut largest = (0, 0);
    let count = u64::from(head.le16(4).or_bad()?);
    let mut whole = Ok(());
    for n in 0..count {
        bytes.step()?;
        let entry: [u8; 16] = match bytes.array(6 + n * 16) {
            Ok(entry) => entry,
            Err(broken) => {
                whole = Err(broken);
                break;
            }
        };
        let (length, at) = (entry.le32(8).or_bad()?, u64::from(entry.le32(12).or_bad()?));
        let side = |byte: u8| if byte == 0 { 256 } else { u32::from(byte) };
        let mut size = (side(entry[0]), side(entry[1]));
        // A PNG inside knows better than a byte that cannot say more than 256.
        if bytes.peek(at, 24).has(12, b"IHDR") {
            size = (bytes.be32(at + 16)?, bytes.be32(at + 20)?);
        }
        whole = whole.and(bytes.reaches(at + u64::from(length)));
        if at < 6 + count * 16 {
            whole = Err(Broken::Bad);
        }
        if u64::from(size.0) * u64::from(size.1) > u64::from(largest.0) * u64::from(largest.1) {
            largest = size;
        }
    }
    facts.size(largest.0, largest.1);
    facts.pictures(u32::try_from(count).unwrap_or(0), Provenance::Container);
    whole
}

fn photoshop(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    let version = bytes.be16(4)?;
    if !(1..=2).contains(&version) {
        return Err(Broken::Bad);
    }
    facts.size(bytes.be32(18)?, bytes.be32(14)?);
    let colors = 26 + 4 + u64::from(bytes.be32(26)?);
    let resources = colors + 4 + u64::from(bytes.be32(colors)?);
    let layers = if version == 1 {
        resources + 4 + u64::from(bytes.be32(resources)?)
    } else {
        bytes.be64(resources)?.saturating_add(resources + 8)
    };
    bytes.reaches(layers)
}

fn qoi(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    facts.size(bytes.be32(4)?, bytes.be32(8)?);
    let (_, tail) = bytes.tail(8);
    if tail == [0, 0, 0, 0, 0, 0, 0, 1] { Ok(()) } else { Err(Broken::Short) }
}

fn dds(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    facts.size(bytes.le32(16)?, bytes.le32(12)?);
    bytes.reaches(128)
}

fn farbfeld(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    let (width, height) = (bytes.be32(8)?, bytes.be32(12)?);
    facts.size(width, height);
    let pixels = u64::from(width).saturating_mul(height.into()).saturating_mul(8);
    bytes.reaches(pixels.saturating_add(16))
}

/// Lines of text, an empty one, and the resolution line.
fn radiance(_: &mut Bytes<'_>, head: &[u8], facts: &mut Facts) -> Walk {
    let blank = memchr::memmem::find(head, b"\n\n").or_bad()? + 2;
    let line = head[blank..].split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| Broken::Bad)?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [first_axis, first, second_axis, second] = words[..] else {
        return Err(Broken::Bad);
    };
    let (first, second) = (first.parse().map_err(|_| Broken::Bad)?, second.parse().map_err(|_| Broken::Bad)?);
    match (first_axis, second_axis) {
        ("-Y" | "+Y", "-X" | "+X") => facts.size(second, first),
        ("-X" | "+X", "-Y" | "+Y") => facts.size(first, second),
        _ => return Err(Broken::Bad),
    }
    Ok(())
}

fn dpx(bytes: &mut Bytes<'_>, head: &[u8], facts: &mut Facts) -> Walk {
    let big = head.starts_with(b"SDPX");
    let (width, height, pixels) = if big {
        (bytes.be32(772)?, bytes.be32(776)?, bytes.be32(4)?)
    } else {
        (bytes.le32(772)?, bytes.le32(776)?, bytes.le32(4)?)
    };
    facts.size(width, height);
    bytes.reaches(pixels.into())
}

/// Attributes until an empty name; the display window is the picture.
fn exr(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    let mut at = 8;
    loop {
        bytes.step()?;
        let name = c_string(bytes, at)?;
        if name.is_empty() {
            return if facts.width.is_some() { Ok(()) } else { Err(Broken::Bad) };
        }
        at += name.len() as u64 + 1;
        at += c_string(bytes, at)?.len() as u64 + 1;
        let length = u64::from(bytes.le32(at)?);
        if name == b"displayWindow" {
            let corner = |bytes: &mut Bytes<'_>, at| bytes.le32(at).map(|value| i64::from(value.cast_signed()));
            let (left, top) = (corner(bytes, at + 4)?, corner(bytes, at + 8)?);
            let (right, bottom) = (corner(bytes, at + 12)?, corner(bytes, at + 16)?);
            let side = |from: i64, to: i64| u32::try_from(to - from + 1).unwrap_or(0);
            facts.size(side(left, right), side(top, bottom));
        }
        at += 4 + length;
        bytes.reaches(at)?;
    }
}

/// Names in OpenEXR have at most 255 bytes.
fn c_string(bytes: &mut Bytes<'_>, at: u64) -> Walk<Vec<u8>> {
    let part = bytes.peek(at, 256);
    let end = memchr::memchr(0, part).ok_or(if part.len() < 256 { Broken::Short } else { Broken::Bad })?;
    Ok(part[..end].to_vec())
}

fn sgi(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    facts.size(bytes.be16(6)?.into(), if bytes.be16(4)? == 1 { 1 } else { bytes.be16(8)?.into() });
    bytes.reaches(512)
}

fn xcf(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    facts.size(bytes.be32(14)?, bytes.be32(18)?);
    Ok(())
}

/// Numbers of seven bits per byte, most significant first.
fn varying(head: &[u8], at: &mut usize) -> Walk<u32> {
    let mut value = 0u64;
    for _ in 0..5 {
        let byte = *head.get(*at).ok_or(Broken::Short)?;
        *at += 1;
        value = value << 7 | u64::from(byte & 0x7F);
        if byte & 0x80 == 0 {
            return u32::try_from(value).map_err(|_| Broken::Bad);
        }
    }
    Err(Broken::Bad)
}

fn bpg(_: &mut Bytes<'_>, head: &[u8], facts: &mut Facts) -> Walk {
    let mut at = 6;
    let width = varying(head, &mut at)?;
    facts.size(width, varying(head, &mut at)?);
    Ok(())
}

fn flif(_: &mut Bytes<'_>, head: &[u8], facts: &mut Facts) -> Walk {
    let mut at = 6;
    let width = varying(head, &mut at)?;
    facts.size(width.saturating_add(1), varying(head, &mut at)?.saturating_add(1));
    Ok(())
}

/// A list of typed icons; the type is the size.
fn icns(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    let end = u64::from(bytes.be32(4)?);
    let mut at = 8;
    let mut largest = 0;
    let mut count = 0;
    while at < end {
        bytes.step()?;
        let name: [u8; 4] = bytes.array(at)?;
        let length = u64::from(bytes.be32(at + 4)?);
        if length < 8 || at + length > end {
            return Err(Broken::Bad);
        }
        let side = match &name {
            b"icm#" | b"icm4" | b"icm8" | b"ics#" | b"ics4" | b"ics8" | b"is32" | b"s8mk" | b"icp4" | b"ic04" => 16,
            b"ICON" | b"ICN#" | b"icl4" | b"icl8" | b"il32" | b"l8mk" | b"icp5" | b"ic05" | b"ic11" => 32,
            b"ich#" | b"ich4" | b"ich8" | b"ih32" | b"h8mk" => 48,
            b"icp6" | b"ic12" => 64,
            b"it32" | b"t8mk" | b"ic07" => 128,
            b"ic08" | b"ic13" => 256,
            b"ic09" | b"ic14" => 512,
            b"ic10" => 1024,
            _ => 0,
        };
        count += u32::from(side > 0);
        largest = largest.max(side);
        facts.size(largest, largest);
        at += length;
    }
    facts.pictures(count, Provenance::Container);
    bytes.reaches(end)
}

fn ktx(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    let little = bytes.le32(12)? == 0x0403_0201;
    let side = |bytes: &mut Bytes<'_>, at| if little { bytes.le32(at) } else { bytes.be32(at) };
    let width = side(bytes, 36)?;
    facts.size(width, side(bytes, 40)?.max(1));
    Ok(())
}

fn ktx2(bytes: &mut Bytes<'_>, _: &[u8], facts: &mut Facts) -> Walk {
    facts.size(bytes.le32(20)?, bytes.le32(24)?.max(1));
    bytes.reaches(80)
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    fn bmp(width: i32, height: i32) -> Vec<u8> {
        let mut file = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
        file.extend_from_slice(&width.to_le_bytes());
        file.extend_from_slice(&height.to_le_bytes());
        file.extend_from_slice(&[1, 0, 24, 0]);
        file.resize(54 + 16, 0);
        file
    }

    #[test]
    fn rows_from_the_top_are_rows() {
        let facts = look(&bmp(2, -2)).facts;
        assert_eq!((facts.width, facts.height, facts.well_formed), (Some(2), Some(2), true));
    }

    #[test]
    fn impossible_heights_are_no_size() {
        assert_eq!(look(&bmp(2, i32::MIN)).facts.height, None);
        assert!(!look(&bmp(i32::MAX, i32::MAX)).facts.well_formed);
    }

    #[test]
    fn a_word_is_not_a_bitmap() {
        assert_eq!(look(b"BMW makes cars and motorcycles.").mime_type, "text/plain");
    }

    #[test]
    fn the_largest_icon_counts() {
        let entry = |side: u8, at: u8| [side, side, 0, 0, 1, 0, 32, 0, 2, 0, 0, 0, at, 0, 0, 0];
        let file = [[0, 0, 1, 0, 2, 0].as_slice(), &entry(16, 38), &entry(0, 40), &[0; 4]].concat();
        let facts = look(&file).facts;
        assert_eq!((facts.width, facts.frames, facts.well_formed), (Some(256), Some(2), true));
    }

    #[test]
    fn radiance_axes_are_named() {
        let found = look(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 67 +X 100\n\x02\x02\x00\x64");
        assert_eq!(found.mime_type, "image/vnd.radiance");
        assert_eq!((found.facts.width, found.facts.height), (Some(100), Some(67)));
    }
}
