//! WAVE in its dresses: RIFF, RIFX, RF64, BW64 and Sony's W64.
//!
//! Promised: the length comes from the sample bytes that are there, whatever a streamed header says. Deliberately
//! absent: lists of metadata.

use crate::media::{
    Facts, Flag, Found, Provenance,
    container::wave_codec,
    markup,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if head.starts_with(b"riff\x2E\x91\xCF\x11\xA5\xD6\x28\xDB\x04\xC1\0\0") {
        let mut found = Found::of("audio/x-w64");
        let mut wave = Wave { wide: true, ..Wave::default() };
        let walk = wave.walk(bytes, 40, &mut found.facts);
        wave.describe(&mut found.facts);
        found.facts.settle(walk);
        return Some(found);
    }
    let dress: [u8; 4] = head.part(0)?;
    if !matches!(&dress, b"RIFF" | b"RIFX" | b"RF64" | b"BW64") {
        return None;
    }
    if head.has(8, b"QLCM") {
        return Some(Found::plain("audio/qcelp"));
    }
    if !head.has(8, b"WAVE") {
        // A MIDI file or an MP3 in a RIFF of its own.
        return match head.get(8..12)? {
            b"RMID" => Some(Found::plain("audio/midi")),
            _ => None,
        };
    }
    let mut found = Found::of("audio/wav");
    let mut wave = Wave { big: &dress == b"RIFX", ..Wave::default() };
    let walk = wave.walk(bytes, 12, &mut found.facts);
    wave.describe(&mut found.facts);
    found.facts.settle(walk);
    Some(found)
}

#[derive(Debug, Default)]
struct Wave {
    big: bool,
    wide: bool,
    format: Option<Format>,
    /// Sample bytes that are there.
    data: Option<u64>,
    /// The header left the size open, as a stream has to.
    streamed: bool,
    long_data: Option<u64>,
    long_whole: Option<u64>,
    samples: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Format {
    tag: u16,
    channels: u16,
    rate: u32,
    bytes_per_second: u32,
    block: u16,
    bits: u16,
    /// Samples per block of a compressed format.
    per_block: u16,
}

/// Samples in a byte of the densest format in use: MPEG audio's shortest frame has 24 bytes for 576.
const MOST_PER_BYTE: u64 = 24;

/// Sizes that say "I did not know yet".
const OPEN: [u64; 3] = [0xFFFF_FFFF, 0x7FFF_FFFF, 0x7FFF_FFFF_FFFF_FFFF];

impl Wave {
    fn walk(&mut self, bytes: &mut Bytes<'_>, mut at: u64, facts: &mut Facts) -> Walk {
        let size = bytes.size();
        let whole = self.whole(bytes)?;
        while at + self.header() <= size {
            bytes.step()?;
            // What the RIFF claims to hold ends here; W64 has no such thing as a tail.
            if at >= whole && self.data.is_some() {
                facts.flag(Flag::TrailingBytes);
                break;
            }
            let (name, body, length) = self.chunk(bytes, at)?;
            let end = body.checked_add(length).ok_or(Broken::Bad)?;
            match &name {
                b"fmt " => self.format = Some(self.read_format(bytes, body, length)?),
                b"ds64" => {
                    self.long_whole = Some(bytes.le64(body)?);
                    self.long_data = Some(bytes.le64(body + 8)?);
                }
                b"fact" if length >= 4 => self.samples = Some(self.u32(bytes, body)?.into()),
                b"data" if self.data.is_none() => {
                    self.sound(bytes, facts, body, length)?;
                    let stated = self.long_data.map_or(end, |long| body.saturating_add(long));
                    if self.data == Some(size - body) {
                        // The rest of the bytes is all sound.
                        return if self.streamed || stated <= size { self.sane() } else { Err(Broken::Short) };
                    }
                }
                b"data" => {}
                b"LIST" | b"id3 " | b"ID3 " => {
                    let part = usize::try_from(length).unwrap_or(usize::MAX).min(4 << 10);
                    if markup::embedded(bytes.peek(body, part)) {
                        facts.flag(Flag::EmbeddedMarkup);
                    }
                }
                _ => {}
            }
            if self.data.is_none() && end > size {
                return Err(Broken::Short);
            }
            at = self.padded(if &name == b"data" && self.long_data.is_some() {
                body + self.data.unwrap_or(0)
            } else {
                end
            });
        }
        if self.format.is_none() || self.data.is_none() {
            return Err(if at + self.header() > size { Broken::Short } else { Broken::Bad });
        }
        if whole > size + 1 && !self.streamed {
            facts.flag(Flag::SizeClaimWrong);
            return Err(Broken::Short);
        }
        self.sane()
    }

    /// A format that could play anything at all.
    fn sane(&self) -> Walk {
        let format = self.format.ok_or(Broken::Bad)?;
        let plain = matches!(format.tag, 1 | 3);
        let silent = format.channels == 0 || format.rate == 0 || plain && (format.bits == 0 || format.block == 0);
        if silent { Err(Broken::Bad) } else { Ok(()) }
    }

    fn header(&self) -> u64 {
        if self.wide { 24 } else { 8 }
    }

    /// Chunks begin at even offsets; W64's at multiples of eight.
    fn padded(&self, at: u64) -> u64 {
        if self.wide { at.saturating_add(7) & !7 } else { at.saturating_add(at & 1) }
    }

    fn whole(&mut self, bytes: &mut Bytes<'_>) -> Walk<u64> {
        if self.wide {
            return bytes.le64(16);
        }
        let claimed = self.u32(bytes, 4)?.into();
        // RF64 says elsewhere how long it is; an open size is as long as the bytes.
        if OPEN.contains(&claimed) || claimed == 0 {
            return Ok(bytes.size());
        }
        Ok(claimed + 8)
    }

    fn chunk(&self, bytes: &mut Bytes<'_>, at: u64) -> Walk<([u8; 4], u64, u64)> {
        let name = bytes.array(at)?;
        if self.wide {
            // The size counts its own header.
            let length = bytes.le64(at + 16)?.checked_sub(24).ok_or(Broken::Bad)?;
            return Ok((name, at + 24, length));
        }
        Ok((name, at + 8, self.u32(bytes, at + 4)?.into()))
    }

    fn sound(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts, body: u64, claimed: u64) -> Walk {
        let here = bytes.size() - body;
        let long = self.long_data.filter(|_| claimed == 0xFFFF_FFFF);
        let stated = long.unwrap_or(claimed);
        self.streamed =
            OPEN.contains(&stated) || (stated == 0 && here > 0 && self.samples.is_none_or(|count| count > 0));
        if stated > here && !self.streamed {
            facts.flag(Flag::SizeClaimWrong);
        }
        self.data = Some(if self.streamed { here } else { stated.min(here) });
        if self.streamed && stated == 0 {
            // An empty chunk and a forgotten size look alike; sound that follows is counted, chunks are not sound.
            let next: Option<[u8; 4]> = bytes.array(body).ok();
            if next.is_some_and(|name| matches!(&name, b"LIST" | b"id3 " | b"fact" | b"cue " | b"smpl" | b"bext")) {
                self.streamed = false;
                self.data = Some(0);
            }
        }
        Ok(())
    }

    fn read_format(&self, bytes: &mut Bytes<'_>, at: u64, length: u64) -> Walk<Format> {
        if length < 14 {
            return Err(Broken::Bad);
        }
        let mut tag = self.u16(bytes, at)?;
        let bits = if length >= 16 { self.u16(bytes, at + 14)? } else { 0 };
        // The extensible form carries the old tag at the start of a GUID.
        if tag == 0xFFFE && length >= 40 {
            tag = self.u16(bytes, at + 24)?;
        }
        let per_block = if matches!(tag, 2 | 0x11) && length >= 20 { self.u16(bytes, at + 18)? } else { 0 };
        Ok(Format {
            tag,
            channels: self.u16(bytes, at + 2)?,
            rate: self.u32(bytes, at + 4)?,
            bytes_per_second: self.u32(bytes, at + 8)?,
            block: self.u16(bytes, at + 12)?,
            bits,
            per_block,
        })
    }

    fn describe(&self, facts: &mut Facts) {
        let Some(format) = self.format else { return };
        facts.sound(format.channels.into(), format.rate);
        if let Some(codec) = wave_codec(format.tag) {
            facts.coded(codec);
        }
        let Some(data) = self.data else { return };
        let from = if self.streamed { Provenance::Bytes } else { Provenance::Container };
        if matches!(format.tag, 1 | 3 | 6 | 7) {
            let sample = u64::from(format.bits).div_ceil(8) * u64::from(format.channels);
            let block = if format.block > 0 { u64::from(format.block) } else { sample };
            // Bytes that are not one block long play nothing that is known.
            if let Some(blocks) = data.checked_div(block).filter(|&blocks| blocks > 0 || data == 0) {
                facts.lasts_ticks(blocks, format.rate.into(), from);
            }
            return;
        }
        // Compressed: by blocks of a known number of samples, by the count of samples, or by the mean rate.
        let seconds = if format.per_block > 0 && format.block > 0 && format.rate > 0 {
            Some((data / u64::from(format.block) * u64::from(format.per_block)) as f64 / f64::from(format.rate))
        } else {
            let mean = (format.bytes_per_second > 0).then(|| data as f64 / f64::from(format.bytes_per_second));
            let counted = self.samples.filter(|_| format.rate > 0).map(|count| count as f64 / f64::from(format.rate));
            // A count is believed when the mean rate says about the same, or where there is none, when the bytes can hold it.
            let fits = |counted: &f64| match mean {
                Some(mean) => *counted <= mean * 2.0 + 1.0,
                None => *counted <= (data * MOST_PER_BYTE) as f64 / f64::from(format.rate),
            };
            counted.filter(fits).or(mean)
        };
        if let Some(seconds) = seconds {
            facts.lasts(seconds, from);
        }
    }

    fn u16(&self, bytes: &mut Bytes<'_>, at: u64) -> Walk<u16> {
        if self.big { bytes.be16(at) } else { bytes.le16(at) }
    }

    fn u32(&self, bytes: &mut Bytes<'_>, at: u64) -> Walk<u32> {
        if self.big { bytes.be32(at) } else { bytes.le32(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::look;

    fn wav(dress: &[u8; 4], whole: u32, extra: &[u8], claimed: u32, samples: usize) -> Vec<u8> {
        let format = [1u16, 1].map(u16::to_le_bytes).concat();
        let rates = [24_000u32, 48_000].map(u32::to_le_bytes).concat();
        let ends = [2u16, 16].map(u16::to_le_bytes).concat();
        [
            dress.as_slice(),
            &whole.to_le_bytes(),
            b"WAVE",
            extra,
            b"fmt \x10\0\0\0",
            &format,
            &rates,
            &ends,
            b"data",
            &claimed.to_le_bytes(),
            &vec![0; samples * 2],
        ]
        .concat()
    }

    #[test]
    fn a_streamed_header_lasts_as_long_as_its_bytes() {
        for open in [u32::MAX, 0x7FFF_FFFF] {
            let facts = look(&wav(b"RIFF", u32::MAX, b"", open, 24_000)).facts;
            assert_eq!(facts.duration_seconds, Some(1.0));
            assert_eq!(facts.provenance.get("durationSeconds"), Some(&Provenance::Bytes));
            assert!(facts.well_formed, "{facts:?}");
        }
    }

    #[test]
    fn a_long_form_says_its_size_in_64_bits() {
        let ds64 = [b"ds64\x1C\0\0\0".as_slice(), &[0; 8], &48_000u64.to_le_bytes(), &[0; 12]].concat();
        let found = look(&wav(b"RF64", u32::MAX, &ds64, u32::MAX, 24_000));
        assert_eq!((found.mime_type.as_str(), found.facts.duration_seconds), ("audio/wav", Some(1.0)));
        assert_eq!(found.facts.provenance.get("durationSeconds"), Some(&Provenance::Container));
    }

    #[test]
    fn claims_beyond_the_bytes_are_cut_to_them() {
        let facts = look(&wav(b"RIFF", 96_036, b"", 96_000, 24_000)).facts;
        assert_eq!(facts.duration_seconds, Some(1.0));
        assert!(!facts.well_formed && facts.flags.contains(&Flag::SizeClaimWrong));
        assert!(facts.flags.contains(&Flag::Truncated));
    }

    #[test]
    fn zeros_in_the_format_divide_nothing() {
        let mut file = wav(b"RIFF", 136, b"", 100, 50);
        file[22..36].fill(0);
        assert_eq!(look(&file).facts.duration_seconds, None);
    }
}
