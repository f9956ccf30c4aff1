//! MXF (SMPTE ST 377): keys, lengths and values, of which the header's descriptors are read.

use crate::media::{
    Facts, Found, Provenance,
    reader::{Broken, Bytes, Fields, Walk},
};

/// A partition pack's key, but for its last letters.
const PARTITION: &[u8] = b"\x06\x0E\x2B\x34\x02\x05\x01\x01\x0D\x01\x02\x01\x01\x02";

/// How much of the file the header's metadata may take.
const HEADER: u64 = 8 << 20;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !head.starts_with(PARTITION) {
        return None;
    }
    let mut found = Found::of("application/mxf");
    let mut mxf = Mxf::default();
    let walk = mxf.walk(bytes);
    found.facts.settle(walk);
    mxf.describe(&mut found.facts);
    Some(found)
}

#[derive(Debug, Default)]
struct Mxf {
    size: (u32, u32),
    rate: (u32, u32),
    length: u64,
    channels: u32,
    sample_rate: (u32, u32),
    /// Of the tracks, where descriptors do not say.
    track_rate: (u32, u32),
    track_length: u64,
}

impl Mxf {
    fn walk(&mut self, bytes: &mut Bytes<'_>) -> Walk {
        let mut at = 0;
        while at + 17 <= bytes.size() {
            bytes.step()?;
            let key: [u8; 16] = bytes.array(at)?;
            if !key.starts_with(b"\x06\x0E\x2B\x34") {
                return Err(Broken::Bad);
            }
            let (body, length) = length(bytes, at + 16)?;
            // Local sets of two-byte tags and lengths hold the structural metadata.
            if key[4..6] == [0x02, 0x53] && at < HEADER {
                self.set(bytes, body, length.min(64 << 10))?;
            }
            at = body.checked_add(length).ok_or(Broken::Bad)?;
            bytes.reaches(at)?;
        }
        Ok(())
    }

    fn set(&mut self, bytes: &mut Bytes<'_>, start: u64, length: u64) -> Walk {
        let set = bytes.take(start, length as usize)?;
        let mut at = 0;
        while let (Some(tag), Some(length)) = (set.be16(at), set.be16(at + 2)) {
            let value = at + 4;
            match tag {
                0x3203 => self.size.0 = set.be32(value).unwrap_or(0),
                0x3202 => self.size.1 = set.be32(value).unwrap_or(0),
                0x3001 => self.rate = (set.be32(value).unwrap_or(0), set.be32(value + 4).unwrap_or(0)),
                0x4B01 => self.track_rate = (set.be32(value).unwrap_or(0), set.be32(value + 4).unwrap_or(0)),
                0x0202 => {
                    let length = set.be64(value).unwrap_or(0);
                    // All ones mean that it is not known.
                    self.track_length = self.track_length.max(if length == u64::MAX { 0 } else { length });
                }
                0x3D07 if self.channels == 0 => self.channels = set.be32(value).unwrap_or(0),
                0x3D03 if self.sample_rate.0 == 0 => {
                    self.sample_rate = (set.be32(value).unwrap_or(0), set.be32(value + 4).unwrap_or(0));
                }
                0x3002 => self.length = self.length.max(set.be64(value).unwrap_or(0)),
                _ => {}
            }
            at = value + usize::from(length);
        }
        Ok(())
    }

    fn describe(&self, facts: &mut Facts) {
        facts.size(self.size.0, self.size.1);
        facts.sound(self.channels, self.sample_rate.0.checked_div(self.sample_rate.1).unwrap_or(0));
        let (rate, length) =
            if self.length > 0 { (self.rate, self.length) } else { (self.track_rate, self.track_length) };
        if rate.0 > 0 && rate.1 > 0 && length > 0 {
            facts.lasts(length as f64 * f64::from(rate.1) / f64::from(rate.0), Provenance::Container);
        }
    }
}

/// BER: a short length, or how many bytes the length has.
fn length(bytes: &mut Bytes<'_>, at: u64) -> Walk<(u64, u64)> {
    let first = bytes.u8(at)?;
    let count = usize::from(first & 0x7F);
    if first & 0x80 == 0 {
        return Ok((at + 1, first.into()));
    }
    if count > 8 {
        return Err(Broken::Bad);
    }
    let length = bytes.take(at + 1, count)?.iter().fold(0, |length, &byte| length << 8 | u64::from(byte));
    Ok((at + 1 + count as u64, length))
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn descriptors_tell_the_size() {
        let partition = b"\x06\x0E\x2B\x34\x02\x05\x01\x01\x0D\x01\x02\x01\x01\x02\x04\x00\x00";
        let set = b"\x06\x0E\x2B\x34\x02\x53\x01\x01\x0D\x01\x01\x01\x01\x01\x28\x00\x10\x32\x03\0\x04\0\0\0\x40\x32\x02\0\x04\0\0\0\x30";
        let found = look(&[partition.as_slice(), set].concat());
        assert_eq!(
            (found.mime_type.as_str(), found.facts.width, found.facts.height),
            ("application/mxf", Some(64), Some(48))
        );
        assert!(found.facts.well_formed);

        let sound = b"\x06\x0E\x2B\x34\x02\x53\x01\x01\x0D\x01\x01\x01\x01\x01\x48\x00\x14\x3D\x03\0\x08\0\0\xBB\x80\0\0\0\x01\x3D\x07\0\x04\0\0\0\x02";
        let facts = look(&[partition.as_slice(), sound].concat()).facts;
        assert_eq!((facts.channels, facts.sample_rate), (Some(2), Some(48_000)));
    }
}
