//! Flash video: tags, each with its length before and behind.

use super::video;
use crate::media::{
    Facts, Flag, Found, Provenance,
    container::AudioConfig,
    reader::{Broken, Bytes, Fields, Walk},
};

/// Tags beyond these bytes are not visited one by one; metadata or the last tag tells the length.
const WALKED: u64 = 64 << 20;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !head.starts_with(b"FLV\x01") {
        return None;
    }
    let mut found = Found::of("video/x-flv");
    let mut flv = Flv::default();
    let walk = flv.walk(bytes, &mut found.facts);
    match flv.stated {
        Some(seconds) if seconds > 0.0 => found.facts.lasts(seconds, Provenance::Container),
        _ if flv.last > 0 => found.facts.lasts_ticks(flv.last.into(), 1000, Provenance::Scanned),
        _ => {}
    }
    if let Some((width, height)) = flv.size {
        found.facts.size(width, height);
    }
    found.facts.settle(walk);
    Some(found)
}

#[derive(Debug, Default)]
struct Flv {
    stated: Option<f64>,
    size: Option<(u32, u32)>,
    /// Milliseconds of the last tag.
    last: u32,
}

impl Flv {
    fn walk(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
        // The header's own length, then the length of the tag before the first, which is none.
        let mut at = u64::from(bytes.be32(5)?) + 4;
        bytes.reaches(at - 4)?;
        while at + 11 <= bytes.size() && at < WALKED {
            bytes.step()?;
            let header: [u8; 11] = bytes.array(at)?;
            let length = u64::from(header.be24(1).unwrap_or(0));
            let time = header.be24(4).unwrap_or(0) | u32::from(header[7]) << 24;
            let body = at + 11;
            if !matches!(header[0] & 0x1F, 8 | 9 | 18) {
                facts.flag(Flag::TrailingBytes);
                return Err(Broken::Bad);
            }
            bytes.reaches(body + length)?;
            match header[0] & 0x1F {
                8 => sound(bytes, facts, body, length)?,
                9 => self.picture(bytes, facts, body, length)?,
                _ if length > 0 && self.stated.is_none() => self.script(bytes, body, length),
                _ => {}
            }
            self.last = self.last.max(time);
            at = body + length + 4;
        }
        Ok(())
    }

    /// Metadata: names and numbers, of which three are wanted.
    fn script(&mut self, bytes: &mut Bytes<'_>, at: u64, length: u64) {
        let data = bytes.peek(at, usize::try_from(length).unwrap_or(usize::MAX).min(64 << 10));
        let number = |name: &str| {
            let key = [&(name.len() as u16).to_be_bytes(), name.as_bytes(), &[0]].concat();
            let at = memchr::memmem::find(data, &key)? + key.len();
            data.be64(at).map(f64::from_bits).filter(|number| number.is_finite() && *number > 0.0)
        };
        if self.stated.is_none() {
            self.stated = number("duration");
        }
        if self.size.is_none()
            && let (Some(width), Some(height)) = (number("width"), number("height"))
        {
            self.size = Some((width as u32, height as u32));
        }
    }

    fn picture(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts, at: u64, length: u64) -> Walk {
        if length == 0 || facts.codec.is_some() {
            return Ok(());
        }
        let codec = bytes.u8(at)? & 15;
        facts.coded(match codec {
            2 => "h263",
            3 | 6 => "screen",
            4 | 5 => "vp6",
            7 => "h264",
            12 => "hevc",
            _ => return Ok(()),
        });
        if self.size.is_none() {
            self.size = match codec {
                2 => sorenson(bytes.peek(at + 1, 12)),
                // Twelve bits each, behind four of the block's size.
                3 | 6 => bytes.be32(at + 1).ok().map(|packed| (packed >> 16 & 0xFFF, packed & 0xFFF)),
                // A configuration record: its parameter sets begin behind a count and a length.
                7 if bytes.u8(at + 1)? == 0 => {
                    let set = bytes.peek(at + 13, 256);
                    video::h264_size(&[&[0, 0, 1], set].concat())
                }
                _ => None,
            };
        }
        Ok(())
    }
}

/// The size in a Sorenson picture header, after a start code of 17 bits, a version and a number.
fn sorenson(header: &[u8]) -> Option<(u32, u32)> {
    let mut bits = super::Bits::new(header);
    bits.skip(17 + 5 + 8)?;
    Some(match bits.take(3)? {
        0 => (bits.take(8)?, bits.take(8)?),
        1 => (bits.take(16)?, bits.take(16)?),
        2 => (352, 288),
        3 => (176, 144),
        4 => (128, 96),
        5 => (320, 240),
        6 => (160, 120),
        _ => return None,
    })
}

fn sound(bytes: &mut Bytes<'_>, facts: &mut Facts, at: u64, length: u64) -> Walk {
    if length == 0 || facts.channels.is_some() {
        return Ok(());
    }
    let flags = bytes.u8(at)?;
    let format = flags >> 4;
    let mut rate = [5_512, 11_025, 22_050, 44_100][usize::from(flags >> 2 & 3)];
    let mut channels = u32::from(flags & 1) + 1;
    match format {
        4 => (rate, channels) = (16_000, 1),
        5 => (rate, channels) = (8_000, 1),
        // AAC describes itself in its first tag.
        10 if bytes.u8(at + 1)? == 0 => {
            if let Some(config) = AudioConfig::parse(bytes.peek(at + 2, 16)) {
                (rate, channels) = (config.sample_rate, config.channels.max(1));
            }
        }
        11 => rate = 16_000,
        _ => {}
    }
    facts.sound(channels, rate);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    fn tag(kind: u8, time: u8, body: &[u8]) -> Vec<u8> {
        let length = body.len() as u8;
        [&[kind, 0, 0, length, 0, 0, time, 0, 0, 0, 0], body, &[0, 0, 0, length + 11]].concat()
    }

    #[test]
    fn metadata_tells_size_and_length() {
        let number =
            |name: &str, value: f64| [&[0, name.len() as u8], name.as_bytes(), &[0], &value.to_be_bytes()].concat();
        let meta = [
            b"\x02\0\x0AonMetaData\x08\0\0\0\x03".to_vec(),
            number("duration", 1.5),
            number("width", 64.0),
            number("height", 48.0),
        ];
        let file = [
            b"FLV\x01\x05\0\0\0\x09\0\0\0\0".to_vec(),
            tag(18, 0, &meta.concat()),
            tag(9, 40, &[0x22]),
            tag(8, 80, &[0x2F]),
        ];
        let found = look(&file.concat());
        let facts = &found.facts;
        assert_eq!(
            (found.mime_type.as_str(), facts.width, facts.duration_seconds),
            ("video/x-flv", Some(64), Some(1.5))
        );
        assert_eq!((facts.channels, facts.sample_rate, facts.codec.as_deref()), (Some(2), Some(44_100), Some("h263")));
        assert!(facts.well_formed);
    }
}
