//! HEIF and AVIF (ISO/IEC 23008-12): the primary item's size and turn, out of its properties.
//!
//! Promised: boxes and properties only. Deliberately absent: tiles and thumbnails; the primary item
//! states the whole picture's size.

use crate::media::{
    Facts, Found, Provenance,
    container::boxes::{self, Found as Box},
    reader::{Broken, Bytes, Walk},
};

/// More properties or associations than this are no picture.
const MOST: usize = 65_536;

pub(in crate::media) fn probe(bytes: &mut Bytes<'_>, name: &str) -> Found {
    let mut found = Found::of(name);
    let mut picture = Picture::default();
    let walk = picture.walk(bytes);
    picture.describe(&mut found.facts);
    found.facts.settle(walk);
    found
}

#[derive(Debug, Default)]
struct Picture {
    present: bool,
    primary: Option<u32>,
    properties: Vec<Property>,
    /// Item and property, numbered from one.
    associations: Vec<(u32, usize)>,
    sequence: u32,
    sequence_size: (u32, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    Size(u32, u32),
    /// The part that is shown.
    Crop(u32, u32),
    /// Quarter turns against the clock.
    Turn(u8),
    /// 0 swaps top and bottom, 1 left and right.
    Mirror(u8),
    Other,
}

impl Picture {
    fn walk(&mut self, bytes: &mut Bytes<'_>) -> Walk {
        let size = bytes.size();
        boxes::each(bytes, 0, size, &mut |bytes, found| match &found.name {
            b"meta" if !self.present => {
                self.present = true;
                boxes::each(bytes, found.body + 4, found.end, &mut |bytes, found| self.meta(bytes, found))
            }
            b"moov" => {
                self.present = true;
                boxes::each(bytes, found.body, found.end, &mut |bytes, found| {
                    if &found.name == b"trak" { self.track(bytes, found) } else { Ok(()) }
                })
            }
            _ => Ok(()),
        })?;
        if self.present { Ok(()) } else { Err(Broken::Bad) }
    }

    fn meta(&mut self, bytes: &mut Bytes<'_>, found: Box) -> Walk {
        match &found.name {
            b"pitm" => {
                let wide = bytes.u8(found.body)? != 0;
                let id = if wide { bytes.be32(found.body + 4)? } else { bytes.be16(found.body + 4)?.into() };
                self.primary = Some(id);
            }
            b"iprp" => {
                return boxes::each(bytes, found.body, found.end, &mut |bytes, found| match &found.name {
                    b"ipco" => {
                        boxes::each(bytes, found.body, found.end, &mut |bytes, found| self.property(bytes, found))
                    }
                    b"ipma" => self.associate(bytes, found),
                    _ => Ok(()),
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn property(&mut self, bytes: &mut Bytes<'_>, found: Box) -> Walk {
        if self.properties.len() >= MOST {
            return Err(Broken::Bad);
        }
        let property = match &found.name {
            b"ispe" => Property::Size(bytes.be32(found.body + 4)?, bytes.be32(found.body + 8)?),
            b"clap" => Property::Crop(ratio(bytes, found.body)?, ratio(bytes, found.body + 8)?),
            b"irot" => Property::Turn(bytes.u8(found.body)? & 3),
            b"imir" => Property::Mirror(bytes.u8(found.body)? & 1),
            _ => Property::Other,
        };
        self.properties.push(property);
        Ok(())
    }

    fn associate(&mut self, bytes: &mut Bytes<'_>, found: Box) -> Walk {
        let (version, wide) = (bytes.u8(found.body)?, bytes.u8(found.body + 3)? & 1 == 1);
        let mut at = found.body + 8;
        for _ in 0..bytes.be32(found.body + 4)? {
            bytes.step()?;
            let id = if version == 0 { bytes.be16(at)?.into() } else { bytes.be32(at)? };
            at += if version == 0 { 2 } else { 4 };
            let count = bytes.u8(at)?;
            at += 1;
            for _ in 0..count {
                bytes.step()?;
                let property = if wide { bytes.be16(at)? & 0x7FFF } else { u16::from(bytes.u8(at)? & 0x7F) };
                at += if wide { 2 } else { 1 };
                if self.associations.len() < MOST {
                    self.associations.push((id, property.into()));
                }
            }
            if at > found.end {
                return Err(Broken::Bad);
            }
        }
        Ok(())
    }

    /// A sequence's pictures are the samples of its track.
    fn track(&mut self, bytes: &mut Bytes<'_>, trak: Box) -> Walk {
        let mut level = trak;
        let mut pictures = false;
        for name in [*b"mdia", *b"minf", *b"stbl"] {
            let mut inner = None;
            boxes::each(bytes, level.body, level.end, &mut |bytes, found| {
                match &found.name {
                    b"tkhd" if self.sequence_size == (0, 0) => {
                        let at = found.body + if bytes.u8(found.body)? == 1 { 88 } else { 76 };
                        self.sequence_size = (bytes.be32(at)? >> 16, bytes.be32(at + 4)? >> 16);
                    }
                    b"hdlr" => pictures = &bytes.array::<4>(found.body + 8)? == b"pict",
                    _ if found.name == name => inner = Some(found),
                    _ => {}
                }
                Ok(())
            })?;
            let Some(found) = inner else { return Ok(()) };
            level = found;
        }
        boxes::each(bytes, level.body, level.end, &mut |bytes, found| {
            if &found.name == b"stsz" && pictures {
                self.sequence = self.sequence.max(bytes.be32(found.body + 8)?);
            }
            Ok(())
        })
    }

    fn describe(&self, facts: &mut Facts) {
        let of_primary = |&&(item, _): &&(u32, usize)| Some(item) == self.primary;
        let mut own: Vec<Property> = Vec::new();
        for (_, number) in self.associations.iter().filter(of_primary) {
            own.extend(number.checked_sub(1).and_then(|at| self.properties.get(at)));
        }
        let mut quarter = 0;
        let mut mirror = None;
        for property in own {
            match property {
                Property::Size(width, height) => facts.size(width, height),
                // The crop follows the size that it cuts from.
                Property::Crop(width, height) if facts.width >= Some(width) && facts.height >= Some(height) => {
                    facts.size(width, height);
                }
                Property::Crop(..) => {}
                Property::Turn(turn) => quarter = turn,
                Property::Mirror(axis) => mirror = Some(axis),
                Property::Other => {}
            }
        }
        if facts.width.is_none() {
            facts.size(self.sequence_size.0, self.sequence_size.1);
        }
        let orientation = as_exif(quarter, mirror);
        if orientation > 1 {
            facts.turned(orientation);
        }
        // A count of samples that the bytes could not hold is no count.
        facts.pictures(self.sequence.max(u32::from(facts.width.is_some())), Provenance::Container);
    }
}

/// A clean aperture's side: a numerator over a denominator.
fn ratio(bytes: &mut Bytes<'_>, at: u64) -> Walk<u32> {
    let (numerator, denominator) = (bytes.be32(at)?, bytes.be32(at + 4)?);
    Ok(numerator.checked_div(denominator).unwrap_or(0))
}

/// The EXIF orientation that shows a picture as a turn against the clock and then a mirror do.
fn as_exif(quarter: u8, mirror: Option<u8>) -> u16 {
    match (quarter, mirror) {
        (1, None) => 8,
        (2, None) => 3,
        (3, None) => 6,
        (0, Some(0)) | (2, Some(1)) => 4,
        (0, Some(_)) | (2, Some(_)) => 2,
        (1, Some(0)) | (3, Some(1)) => 5,
        (1 | 3, Some(_)) => 7,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    fn boxed(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32 + 8).to_be_bytes(), name.as_slice(), body].concat()
    }

    fn picture(brand: &[u8; 4], turn: u8) -> Vec<u8> {
        let ispe = |width: u32, height: u32| {
            boxed(b"ispe", &[&[0; 4][..], &width.to_be_bytes(), &height.to_be_bytes()].concat())
        };
        let ipco = boxed(b"ipco", &[ispe(8, 8), ispe(37, 23), boxed(b"irot", &[turn])].concat());
        let ipma = boxed(b"ipma", &[0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 1, 1, 0, 2, 2, 0x82, 3]);
        let meta =
            [&[0; 4][..], &boxed(b"pitm", &[0, 0, 0, 0, 0, 2]), &boxed(b"iprp", &[ipco, ipma].concat())].concat();
        [boxed(b"ftyp", &[brand.as_slice(), &[0; 4]].concat()), boxed(b"meta", &meta)].concat()
    }

    #[test]
    fn the_primary_item_is_described_as_shown() {
        let found = look(&picture(b"avif", 1));
        assert_eq!(found.mime_type, "image/avif");
        assert_eq!((found.facts.width, found.facts.height, found.facts.orientation), (Some(23), Some(37), Some(8)));
        let facts = look(&picture(b"avif", 0)).facts;
        assert_eq!((facts.width, facts.height, facts.orientation), (Some(37), Some(23), None));
    }

    #[test]
    fn brands_name_the_kin() {
        for (brand, name) in [
            (b"heic", "image/heic"),
            (b"heix", "image/heic"),
            (b"mif1", "image/heif"),
            (b"msf1", "image/heif-sequence"),
        ] {
            assert_eq!(look(&picture(brand, 0)).mime_type, name);
        }
    }
}
