//! TIFF 6.0, BigTIFF, the raw formats that are TIFF inside, and the TIFF that Exif is.
//!
//! Promised: directories are counted once each, so a loop ends. Deliberately absent: sub-directories as frames, and
//! maker notes.

use crate::media::{
    Facts, Found, Provenance,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if head.starts_with(b"FUJIFILMCCD-RAW ") {
        return Some(Found::plain("image/x-fujifilm-raf"));
    }
    if head.starts_with(b"II\xBC\x01") {
        return Some(jxr(bytes));
    }
    let order = Order::of(head)?;
    let magic = order.u16(head, 2)?;
    let name = match magic {
        42 if head.has(8, b"CR\x02") => "image/x-canon-cr2",
        42 | 43 => "image/tiff",
        0x4F52 | 0x5352 => "image/x-olympus-orf",
        0x0055 if order == Order::Little => "image/x-panasonic-rw2",
        _ => return None,
    };
    let mut tiff = Tiff { order, big: magic == 43, ..Tiff::default() };
    let walk = tiff.walk(bytes);
    let name = if name == "image/tiff" { tiff.raw_name().unwrap_or(name) } else { name };
    let mut found = Found::of(name);
    if let Some(size) = tiff.size {
        found.facts.size(size.0, size.1);
    }
    if let Some(orientation) = tiff.orientation {
        found.facts.turned(orientation);
    }
    found.facts.pictures(tiff.pages, Provenance::Scanned);
    found.facts.settle(walk.and(if tiff.size.is_some() { Ok(()) } else { Err(Broken::Bad) }));
    Some(found)
}

/// The orientation in an Exif block, which is a small TIFF.
pub(super) fn orientation(exif: &[u8]) -> Option<u16> {
    // Some writers repeat the segment's name inside containers that need none.
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    let order = Order::of(exif)?;
    let at = usize::try_from(order.u32(exif, 4)?).ok().filter(|&at| at < exif.len())?;
    let count = usize::from(order.u16(exif, at)?);
    let entry = (0..count).map(|n| at + 2 + n * 12).find(|&entry| order.u16(exif, entry) == Some(ORIENTATION))?;
    order.u16(exif, entry + 8).filter(|value| (1..=8).contains(value))
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    fn of(head: &[u8]) -> Option<Self> {
        match head.get(..2)? {
            b"II" => Some(Self::Little),
            b"MM" => Some(Self::Big),
            _ => None,
        }
    }

    fn u16(self, from: &[u8], at: usize) -> Option<u16> {
        match self {
            Self::Little => from.le16(at),
            Self::Big => from.be16(at),
        }
    }

    fn u32(self, from: &[u8], at: usize) -> Option<u32> {
        match self {
            Self::Little => from.le32(at),
            Self::Big => from.be32(at),
        }
    }
}

const SUBFILE: u16 = 254;
const WIDTH: u16 = 256;
const HEIGHT: u16 = 257;
const MAKE: u16 = 271;
const ORIENTATION: u16 = 274;
const SUB_DIRECTORIES: u16 = 330;
const DNG_VERSION: u16 = 50_706;

/// Pages beyond this are not counted; nobody scans that much into one file, and each is remembered against loops.
const MOST_PAGES: usize = 65_536;

#[derive(Debug, Default)]
struct Tiff {
    order: Order,
    big: bool,
    size: Option<(u32, u32)>,
    first_is_reduced: bool,
    orientation: Option<u16>,
    pages: u32,
    make: Vec<u8>,
    has_sub_directories: bool,
    is_dng: bool,
}

impl Tiff {
    fn walk(&mut self, bytes: &mut Bytes<'_>) -> Walk {
        let mut seen = std::collections::HashSet::new();
        let mut next = if self.big { self.u64(bytes, 8)? } else { self.u32(bytes, 4)?.into() };
        while next != 0 {
            bytes.step()?;
            if !seen.insert(next) || seen.len() > MOST_PAGES {
                return Err(Broken::Bad);
            }
            next = self.directory(bytes, next)?;
            self.pages += 1;
        }
        if self.pages == 0 { Err(Broken::Bad) } else { Ok(()) }
    }

    /// Reads one directory, and says where the next is.
    fn directory(&mut self, bytes: &mut Bytes<'_>, at: u64) -> Walk<u64> {
        bytes.reaches(at)?;
        let (count, entries, width) =
            if self.big { (self.u64(bytes, at)?, at + 8, 20) } else { (self.u16(bytes, at)?.into(), at + 2, 12) };
        // Sixteen-bit tags: no directory has more entries, whatever BigTIFF allows it to say.
        if count > 65_536 {
            return Err(Broken::Bad);
        }
        let mut size = (0, 0);
        for n in 0..count {
            bytes.step()?;
            let entry = entries + n * width;
            let tag = self.u16(bytes, entry)?;
            let value = self.value(bytes, entry)?;
            match tag {
                WIDTH => size.0 = value,
                HEIGHT => size.1 = value,
                SUBFILE if self.pages == 0 => self.first_is_reduced = value & 1 == 1,
                ORIENTATION if self.pages == 0 => self.orientation = u16::try_from(value).ok(),
                MAKE if self.pages == 0 => self.make = self.text(bytes, entry),
                SUB_DIRECTORIES if self.pages == 0 => self.has_sub_directories = true,
                DNG_VERSION => self.is_dng = true,
                _ => {}
            }
        }
        if self.size.is_none() && size.0 > 0 && size.1 > 0 {
            self.size = Some(size);
        }
        let end = entries + count * width;
        if self.big { self.u64(bytes, end) } else { self.u32(bytes, end).map(u64::from) }
    }

    /// The first number of an entry whose numbers lie in the entry itself; zero for others.
    fn value(&self, bytes: &mut Bytes<'_>, entry: u64) -> Walk<u32> {
        let at = entry + if self.big { 12 } else { 8 };
        match self.u16(bytes, entry + 2)? {
            1 => bytes.u8(at).map(u32::from),
            3 => self.u16(bytes, at).map(u32::from),
            4 | 13 => self.u32(bytes, at),
            16 => self.u64(bytes, at).map(|value| u32::try_from(value).unwrap_or(0)),
            _ => Ok(0),
        }
    }

    fn text(&self, bytes: &mut Bytes<'_>, entry: u64) -> Vec<u8> {
        let at = if self.big { self.u64(bytes, entry + 12) } else { self.u32(bytes, entry + 8).map(u64::from) };
        at.map(|at| bytes.peek(at, 16).to_vec()).unwrap_or_default()
    }

    /// Makers' raw formats say who they are by the camera and by keeping the picture in a sub-directory.
    fn raw_name(&self) -> Option<&'static str> {
        if self.is_dng {
            return Some("image/x-adobe-dng");
        }
        let camera = self.has_sub_directories && self.first_is_reduced;
        if camera && self.make.starts_with(b"NIKON") {
            Some("image/x-nikon-nef")
        } else if camera && self.make.starts_with(b"SONY") {
            Some("image/x-sony-arw")
        } else {
            None
        }
    }

    fn u16(&self, bytes: &mut Bytes<'_>, at: u64) -> Walk<u16> {
        if self.order == Order::Big { bytes.be16(at) } else { bytes.le16(at) }
    }

    fn u32(&self, bytes: &mut Bytes<'_>, at: u64) -> Walk<u32> {
        if self.order == Order::Big { bytes.be32(at) } else { bytes.le32(at) }
    }

    fn u64(&self, bytes: &mut Bytes<'_>, at: u64) -> Walk<u64> {
        if self.order == Order::Big { bytes.be64(at) } else { bytes.le64(at) }
    }
}

/// JPEG XR is a TIFF with tags of its own.
fn jxr(bytes: &mut Bytes<'_>) -> Found {
    let mut found = Found::of("image/jxr");
    let walk = jxr_size(bytes, &mut found.facts);
    found.facts.settle(walk);
    found
}

fn jxr_size(bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
    let at = u64::from(bytes.le32(4)?);
    let mut size = (0, 0);
    for n in 0..u64::from(bytes.le16(at)?) {
        let entry = at + 2 + n * 12;
        match bytes.le16(entry)? {
            0xBC80 => size.0 = bytes.le32(entry + 8)?,
            0xBC81 => size.1 = bytes.le32(entry + 8)?,
            _ => {}
        }
    }
    facts.size(size.0, size.1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::media::{Flag, tests::look};

    /// A little-endian directory at `at` with short entries.
    fn directory(entries: &[(u16, u16)], next: u32) -> Vec<u8> {
        let mut out = (entries.len() as u16).to_le_bytes().to_vec();
        for (tag, value) in entries {
            out.extend_from_slice(&tag.to_le_bytes());
            out.extend_from_slice(&[3, 0, 1, 0, 0, 0]);
            out.extend_from_slice(&u32::from(*value).to_le_bytes());
        }
        out.extend_from_slice(&next.to_le_bytes());
        out
    }

    #[test]
    fn pages_are_counted() {
        let page = [(256, 7), (257, 9)];
        let file = [b"II*\0\x08\0\0\0".to_vec(), directory(&page, 38), directory(&page, 0)].concat();
        let facts = look(&file).facts;
        assert_eq!((facts.width, facts.height, facts.frames), (Some(7), Some(9), Some(2)));
        assert!(facts.well_formed);
    }

    #[test]
    fn a_loop_of_pages_ends() {
        let file = [b"II*\0\x08\0\0\0".to_vec(), directory(&[(256, 7), (257, 9)], 8)].concat();
        let facts = look(&file).facts;
        assert_eq!(facts.frames, Some(1));
        assert!(!facts.well_formed);
    }

    #[test]
    fn a_directory_beyond_the_end_is_a_truncation() {
        let facts = look(b"II*\0\xFF\xFF\0\0").facts;
        assert!(facts.flags.contains(&Flag::Truncated));
    }
}
