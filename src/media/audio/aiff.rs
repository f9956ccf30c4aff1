//! AIFF and AIFF-C: chunks, big end first.

use crate::media::{
    Facts, Flag, Found, Provenance,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !head.starts_with(b"FORM") || !(head.has(8, b"AIFF") || head.has(8, b"AIFC")) {
        return None;
    }
    let mut found = Found::of("audio/aiff");
    let mut file = Aiff::default();
    let walk = file.walk(bytes, &mut found.facts);
    file.describe(&mut found.facts);
    found.facts.settle(walk);
    Some(found)
}

#[derive(Debug, Default)]
struct Aiff {
    channels: u16,
    frames: u32,
    bits: u16,
    rate: f64,
    compression: Option<[u8; 4]>,
    data: Option<u64>,
}

impl Aiff {
    fn walk(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
        let end = 8 + u64::from(bytes.be32(4)?);
        let mut at = 12;
        while at + 8 <= end.min(bytes.size()) {
            bytes.step()?;
            let name: [u8; 4] = bytes.array(at)?;
            let length = u64::from(bytes.be32(at + 4)?);
            match &name {
                b"COMM" if length >= 18 => {
                    (self.channels, self.frames, self.bits) =
                        (bytes.be16(at + 8)?, bytes.be32(at + 10)?, bytes.be16(at + 14)?);
                    self.rate = extended(bytes.array(at + 16)?);
                    if length >= 22 {
                        self.compression = Some(bytes.array(at + 26)?);
                    }
                }
                // Offset and block size stand before the samples.
                b"SSND" => self.data = Some(length.min(bytes.size() - at - 8).saturating_sub(8)),
                _ => {}
            }
            at += 8 + length + (length & 1);
        }
        if end > bytes.size() || at > bytes.size() + 1 {
            return Err(Broken::Short);
        }
        facts.ends_at(bytes, end);
        if self.channels == 0 || at > end + 1 { Err(Broken::Bad) } else { Ok(()) }
    }

    fn describe(&self, facts: &mut Facts) {
        if !self.rate.is_finite() || self.rate < 1.0 {
            return;
        }
        facts.sound(self.channels.into(), self.rate.round() as u32);
        let plain = matches!(
            self.compression.as_ref(),
            None | Some(b"NONE" | b"sowt" | b"twos" | b"fl32" | b"FL32" | b"fl64" | b"in24")
        );
        facts.coded(if plain { "pcm" } else { "compressed" });
        // Packets are counted there, not frames: 64 in one of IMA's, six in one of MACE's.
        let per_packet = match self.compression.as_ref() {
            Some(b"ima4") => 64,
            Some(b"MAC3" | b"MAC6") => 6,
            _ => 1,
        };
        let frames_of = |packets: u32| f64::from(packets) * f64::from(per_packet);
        let frame = u64::from(self.bits).div_ceil(8) * u64::from(self.channels);
        let present = self.data.and_then(|data| data.checked_div(frame));
        match present {
            Some(present) if plain && present < self.frames.into() => {
                facts.flag(Flag::SizeClaimWrong);
                facts.lasts(present as f64 / self.rate, Provenance::Bytes);
            }
            _ if plain
                || self.frames <= MOST_COMPRESSED * self.data.and_then(|data| data.try_into().ok()).unwrap_or(0) =>
            {
                facts.lasts(frames_of(self.frames) / self.rate, Provenance::Container);
            }
            _ => facts.flag(Flag::SizeClaimWrong),
        }
    }
}

/// Frames per byte of the densest compression in use (MACE 6:1), with room.
const MOST_COMPRESSED: u32 = 8;

/// An 80-bit extended number: sign, exponent, and a mantissa with its leading one.
fn extended(bytes: [u8; 10]) -> f64 {
    let exponent = i32::from(u16::from_be_bytes([bytes[0] & 0x7F, bytes[1]]));
    let mantissa = bytes.be64(2).unwrap_or(0) as f64;
    if exponent == 0x7FFF || bytes[0] & 0x80 != 0 {
        return f64::NAN;
    }
    mantissa * 2f64.powi(exponent - 16_383 - 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::look;

    fn aiff(frames: u32, rate: [u8; 10], samples: &[u8]) -> Vec<u8> {
        let comm = [b"COMM\0\0\0\x12\0\x01".as_slice(), &frames.to_be_bytes(), &[0, 16], &rate].concat();
        let sound = [b"SSND".as_slice(), &(samples.len() as u32 + 8).to_be_bytes(), &[0; 8], samples].concat();
        let body = [b"AIFF".to_vec(), comm, sound].concat();
        [b"FORM".as_slice(), &(body.len() as u32).to_be_bytes(), &body].concat()
    }

    const RATE_8000: [u8; 10] = [0x40, 0x0B, 0xFA, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn frames_over_rate() {
        let facts = look(&aiff(4000, RATE_8000, &[0; 8000])).facts;
        assert_eq!((facts.duration_seconds, facts.sample_rate, facts.well_formed), (Some(0.5), Some(8000), true));
    }

    #[test]
    fn frames_that_are_not_there_do_not_play() {
        let facts = look(&aiff(u32::MAX, RATE_8000, &[0; 8000])).facts;
        assert_eq!(facts.duration_seconds, Some(0.5));
        assert!(facts.flags.contains(&Flag::SizeClaimWrong));
    }

    #[test]
    fn packets_are_more_than_frames() {
        let mut file = aiff(125, RATE_8000, &[0; 125 * 34]);
        file.splice(38..38, *b"ima4\0\0");
        file[7] += 6;
        file[19] = 24;
        file[11] = b'C';
        let facts = look(&file).facts;
        assert_eq!((facts.duration_seconds, facts.well_formed), (Some(1.0), true), "{facts:?}");
    }

    #[test]
    fn a_rate_that_is_no_number_is_none() {
        assert_eq!(look(&aiff(1, [0x7F, 0xFF, 0xC0, 0, 0, 0, 0, 0, 0, 0], &[0; 2])).facts.sample_rate, None);
    }
}
