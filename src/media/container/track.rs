//! One track of a movie: what it is, how large or loud, and how long.
//!
//! Promised: the sample entry's own boxes win over its fields, which older writers fill badly. Deliberately absent:
//! chunk and sync tables.

use super::{
    AudioConfig, Bits,
    boxes::{self, Found},
    codecs,
};
use crate::media::{
    audio,
    reader::{Broken, Bytes, Walk},
};

#[derive(Debug, Default)]
pub(super) struct Track {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) orientation: u16,
    pub(super) codec: Option<String>,
    pub(super) channels: u32,
    pub(super) sample_rate: u32,
    /// Pictures or chunks of sound that the size table counts.
    pub(super) samples: u32,
    pub(super) id: u32,
    handler: [u8; 4],
    format: [u8; 4],
    pub(super) timescale: u32,
    pub(super) duration: u64,
    pub(super) edited: Option<u64>,
    pub(super) default_sample: u32,
    pub(super) fragments: u64,
}

impl Track {
    pub(super) fn is_seen(&self) -> bool {
        matches!(&self.handler, b"vide" | b"pict")
    }

    pub(super) fn is_heard(&self) -> bool {
        &self.handler == b"soun"
    }

    /// A cover or chapter picture in the guise of a video track.
    pub(super) fn is_still(&self) -> bool {
        matches!(&self.format, b"jpeg" | b"png " | b"mjpa" | b"mjpb")
    }
}

impl Track {
    pub(super) fn read(&mut self, bytes: &mut Bytes<'_>, trak: Found) -> Walk {
        boxes::each(bytes, trak.body, trak.end, &mut |bytes, found| match &found.name {
            b"tkhd" => self.header(bytes, found),
            b"edts" => boxes::each(bytes, found.body, found.end, &mut |bytes, found| {
                if &found.name == b"elst" { self.edits(bytes, found) } else { Ok(()) }
            }),
            b"mdia" => boxes::each(bytes, found.body, found.end, &mut |bytes, found| self.media(bytes, found)),
            _ => Ok(()),
        })
    }

    fn header(&mut self, bytes: &mut Bytes<'_>, tkhd: Found) -> Walk {
        let wide = bytes.u8(tkhd.body)? == 1;
        self.id = bytes.be32(tkhd.body + if wide { 20 } else { 12 })?;
        let matrix = tkhd.body + if wide { 52 } else { 40 };
        let cell = |bytes: &mut Bytes<'_>, n: u64| bytes.be32(matrix + n * 4).map(|value| value.cast_signed().signum());
        self.orientation = match (cell(bytes, 0)?, cell(bytes, 1)?, cell(bytes, 3)?, cell(bytes, 4)?) {
            (0, 1, -1, 0) => 6,
            (-1, 0, 0, -1) => 3,
            (0, -1, 1, 0) => 8,
            _ => 1,
        };
        // Fixed point; what a sample entry says wins.
        self.width = bytes.be32(matrix + 36)? >> 16;
        self.height = bytes.be32(matrix + 40)? >> 16;
        Ok(())
    }

    /// The edits' own lengths, in ticks of the movie.
    fn edits(&mut self, bytes: &mut Bytes<'_>, elst: Found) -> Walk {
        let wide = bytes.u8(elst.body)? == 1;
        let count = bytes.be32(elst.body + 4)?.min(MOST_TIMES);
        let mut at = elst.body + 8;
        let mut sum = 0u64;
        for _ in 0..count {
            bytes.step()?;
            if at + 12 > elst.end {
                return Err(Broken::Bad);
            }
            let (length, start) = if wide {
                (bytes.be64(at)?, bytes.be64(at + 8)?.cast_signed())
            } else {
                (bytes.be32(at)?.into(), bytes.be32(at + 4)?.cast_signed().into())
            };
            // A start of -1 is a pause before the media, which is not part of it.
            sum = sum.saturating_add(if start == -1 { 0 } else { length });
            at += if wide { 20 } else { 12 };
        }
        self.edited = (sum > 0).then_some(sum);
        Ok(())
    }

    fn media(&mut self, bytes: &mut Bytes<'_>, found: Found) -> Walk {
        match &found.name {
            b"mdhd" => (self.timescale, self.duration) = clock(bytes, found)?,
            b"hdlr" => self.handler = bytes.array(found.body + 8)?,
            b"minf" => {
                return boxes::each(bytes, found.body, found.end, &mut |bytes, found| {
                    if &found.name != b"stbl" {
                        return Ok(());
                    }
                    boxes::each(bytes, found.body, found.end, &mut |bytes, found| self.table(bytes, found))
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn table(&mut self, bytes: &mut Bytes<'_>, found: Found) -> Walk {
        match &found.name {
            b"stsd" => match boxes::next(bytes, found.body + 8, found.end)? {
                Some(entry) => self.entry(bytes, entry),
                None => Err(Broken::Bad),
            },
            b"stsz" => {
                let (uniform, count) = (bytes.be32(found.body + 4)?, bytes.be32(found.body + 8)?);
                let fits = uniform != 0 || found.body + 12 + u64::from(count) * 4 <= found.end;
                self.samples = if fits { count } else { 0 };
                if fits { Ok(()) } else { Err(Broken::Bad) }
            }
            b"stts" | b"stco" => {
                let width = if &found.name == b"stts" { 8 } else { 4 };
                let fits = found.body + 8 + u64::from(bytes.be32(found.body + 4)?) * width <= found.end;
                if fits { Ok(()) } else { Err(Broken::Bad) }
            }
            _ => Ok(()),
        }
    }

    fn entry(&mut self, bytes: &mut Bytes<'_>, entry: Found) -> Walk {
        self.format = entry.name;
        self.codec = codecs::four_cc(entry.name);
        if self.is_seen() {
            let (width, height) = (bytes.be16(entry.body + 24)?, bytes.be16(entry.body + 26)?);
            if width > 0 && height > 0 {
                (self.width, self.height) = (width.into(), height.into());
            }
            // A picture's own boxes follow 78 bytes of fields.
            return boxes::each(bytes, entry.body + 78, entry.end, &mut |bytes, found| self.refine(bytes, found));
        }
        if !self.is_heard() {
            return Ok(());
        }
        let version = bytes.be16(entry.body + 8)?;
        self.channels = bytes.be16(entry.body + 16)?.into();
        self.sample_rate = bytes.be32(entry.body + 24)? >> 16;
        // 3GPP's speech codecs are of one channel, and the field is reserved for them (TS 26.244).
        if matches!(&entry.name, b"samr" | b"sawb") {
            self.channels = 1;
        }
        let fields = match version {
            1 => 44,
            2 => {
                self.sample_rate = f64::from_bits(bytes.be64(entry.body + 32)?) as u32;
                self.channels = bytes.be32(entry.body + 40)?;
                64
            }
            _ => 28,
        };
        // What follows is the codec's own affair: a fault in there is not one of the container.
        let _ = boxes::each(bytes, entry.body + fields, entry.end, &mut |bytes, found| self.refine(bytes, found));
        Ok(())
    }

    /// Boxes inside a sample entry that know better than its fields.
    fn refine(&mut self, bytes: &mut Bytes<'_>, found: Found) -> Walk {
        match &found.name {
            // QuickTime wraps the description once more.
            b"wave" if self.is_heard() => boxes::each(bytes, found.body, found.end, &mut |bytes, found| {
                if &found.name == b"esds" { self.descriptor(bytes, found) } else { Ok(()) }
            }),
            b"esds" => self.descriptor(bytes, found),
            b"dOps" => {
                self.channels = bytes.u8(found.body + 1)?.into();
                self.sample_rate = 48_000;
                Ok(())
            }
            b"alac" => {
                self.channels = bytes.u8(found.body + 13)?.into();
                self.sample_rate = bytes.be32(found.body + 24)?;
                Ok(())
            }
            b"dfLa" => {
                let packed = bytes.be64(found.body + 18)?;
                self.sample_rate = (packed >> 44) as u32;
                self.channels = (packed >> 41 & 7) as u32 + 1;
                Ok(())
            }
            // Rates and identifications stand before the channels' mode (ETSI TS 102 366 annex F).
            b"dac3" => self.dolby(bytes, found, 2 + 5 + 3),
            b"dec3" => self.dolby(bytes, found, 13 + 3 + 2 + 5 + 1 + 1 + 3),
            b"sinf" => boxes::each(bytes, found.body, found.end, &mut |bytes, found| {
                if &found.name == b"frma" {
                    self.codec = codecs::four_cc(bytes.array(found.body)?);
                }
                Ok(())
            }),
            _ => Ok(()),
        }
    }

    /// Channels of AC-3 and Enhanced AC-3, whose fields in the sample entry do not count them.
    fn dolby(&mut self, bytes: &mut Bytes<'_>, found: Found, bits_before: usize) -> Walk {
        let data = bytes.peek(found.body, 8).to_vec();
        let mut bits = Bits::new(&data);
        if bits.skip(bits_before).is_some()
            && let (Some(mode), Some(low)) = (bits.take(3), bits.take(1))
        {
            self.channels = audio::AC3_CHANNELS[mode as usize] + low;
        }
        Ok(())
    }

    /// MPEG-4's elementary stream descriptor: nested tags with lengths of seven bits per byte.
    fn descriptor(&mut self, bytes: &mut Bytes<'_>, esds: Found) -> Walk {
        let length = usize::try_from(esds.end - esds.body).unwrap_or(0).min(512);
        let data = bytes.take(esds.body, length)?;
        let mut at = 4;
        while let Some(&tag) = data.get(at) {
            at += 1;
            while data.get(at).is_some_and(|byte| byte & 0x80 != 0) {
                at += 1;
            }
            let length = usize::from(data.get(at).copied().unwrap_or(0));
            at += 1;
            match tag {
                3 => {
                    let flags = data.get(at + 2).copied().unwrap_or(0);
                    at += 3 + if flags & 0x80 == 0 { 0 } else { 2 } + if flags & 0x20 == 0 { 0 } else { 2 };
                    if flags & 0x40 != 0 {
                        at += 1 + usize::from(data.get(at).copied().unwrap_or(0));
                    }
                }
                4 => {
                    match data.get(at) {
                        Some(0x69 | 0x6B) => self.codec = Some("mp3".to_owned()),
                        Some(0xA5) => self.codec = Some("ac3".to_owned()),
                        Some(0xDD) => self.codec = Some("vorbis".to_owned()),
                        Some(0x60..=0x65 | 0x6A) if self.is_seen() => self.codec = Some("mpeg2".to_owned()),
                        _ => {}
                    }
                    at += 13;
                }
                5 => {
                    let config = data.get(at..(at + length).min(data.len())).unwrap_or_default();
                    if self.is_heard()
                        && self.codec.as_deref() == Some("aac")
                        && let Some(config) = AudioConfig::parse(config)
                    {
                        self.sample_rate = config.sample_rate;
                        if config.channels > 0 {
                            self.channels = config.channels;
                        }
                    }
                    return Ok(());
                }
                _ => at += length,
            }
        }
        Ok(())
    }
}

/// Entries of a time table that are added up: a varying frame rate for hours.
const MOST_TIMES: u32 = 100_000;

/// Ticks per second and length out of a movie or media header of either version; an unknown length is zero.
pub(super) fn clock(bytes: &mut Bytes<'_>, found: Found) -> Walk<(u32, u64)> {
    let (scale, ticks, unknown) = if bytes.u8(found.body)? == 1 {
        (bytes.be32(found.body + 20)?, bytes.be64(found.body + 24)?, u64::MAX)
    } else {
        (bytes.be32(found.body + 12)?, bytes.be32(found.body + 16)?.into(), u32::MAX.into())
    };
    Ok((scale, if ticks == unknown { 0 } else { ticks }))
}
