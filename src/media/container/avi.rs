//! AVI: a RIFF of streams.
//!
//! Promised: the longest stream's length as its header states it. Deliberately absent: the index.

use super::codecs;
use crate::media::{
    Facts, Flag, Found, Provenance,
    container::wave_codec,
    reader::{Broken, Bytes, Fields, Walk},
};

/// Streams that are looked at.
const MOST_STREAMS: u32 = 64;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !head.starts_with(b"RIFF") || !head.has(8, b"AVI") {
        return None;
    }
    let mut found = Found::of("video/x-msvideo");
    let mut avi = Avi::default();
    let walk = avi.walk(bytes, &mut found.facts);
    if let Some(seconds) = avi.seconds {
        found.facts.lasts(seconds, Provenance::Container);
    }
    found.facts.settle(walk);
    Some(found)
}

#[derive(Debug, Default)]
struct Avi {
    kind: [u8; 4],
    seconds: Option<f64>,
    streams: u32,
    has_data: bool,
}

impl Avi {
    /// One loop: a list's header is stepped over, so that its chunks come next; only the data's list is jumped.
    fn walk(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
        let end = 8 + u64::from(bytes.le32(4)?);
        let mut at = 12;
        while at + 8 <= bytes.size() {
            bytes.step()?;
            let name: [u8; 4] = bytes.array(at)?;
            let (body, length) = (at + 8, u64::from(bytes.le32(at + 4)?));
            if at >= end && &name != b"RIFF" {
                facts.flag(Flag::TrailingBytes);
                break;
            }
            match &name {
                b"LIST" | b"RIFF" => {
                    let list: [u8; 4] = bytes.array(body)?;
                    if &list != b"movi" {
                        if body + length > bytes.size() {
                            facts.flag(Flag::SizeClaimWrong);
                        }
                        at = body + 4;
                        continue;
                    }
                    self.has_data = true;
                }
                b"avih" => self.header(bytes, facts, body)?,
                b"strh" if self.streams < MOST_STREAMS => self.stream(bytes, body)?,
                b"strf" if self.streams <= MOST_STREAMS => self.format(bytes, facts, body)?,
                _ => {}
            }
            at = body + length + (length & 1);
        }
        if at > bytes.size() + 1 || end > bytes.size() + 1 {
            return Err(Broken::Short);
        }
        if self.has_data { Ok(()) } else { Err(Broken::Bad) }
    }

    fn header(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts, at: u64) -> Walk {
        let (micros, frames) = (bytes.le32(at)?, bytes.le32(at + 16)?);
        facts.size(bytes.le32(at + 32)?, bytes.le32(at + 36)?);
        if micros > 0 && frames > 0 {
            self.seconds = Some(f64::from(micros) * f64::from(frames) / 1e6);
        }
        Ok(())
    }

    fn stream(&mut self, bytes: &mut Bytes<'_>, at: u64) -> Walk {
        self.streams += 1;
        self.kind = bytes.array(at)?;
        let (scale, rate, length) = (bytes.le32(at + 20)?, bytes.le32(at + 24)?, bytes.le32(at + 32)?);
        if matches!(&self.kind, b"vids" | b"auds") && rate > 0 && scale > 0 && length > 0 {
            let seconds = f64::from(length) * f64::from(scale) / f64::from(rate);
            // The first stream's own clock is more exact than the header's microseconds.
            self.seconds = Some(if self.streams == 1 { seconds } else { self.seconds.unwrap_or(0.0).max(seconds) });
        }
        Ok(())
    }

    fn format(&self, bytes: &mut Bytes<'_>, facts: &mut Facts, at: u64) -> Walk {
        match &self.kind {
            b"vids" => {
                let (width, height) = (bytes.le32(at + 4)?, bytes.le32(at + 8)?.cast_signed().unsigned_abs());
                if facts.width.is_none() {
                    facts.size(width, height);
                }
                facts.codec = codecs::four_cc(bytes.array(at + 16)?);
            }
            b"auds" if facts.channels.is_none() => {
                let (tag, channels, rate) = (bytes.le16(at)?, bytes.le16(at + 2)?, bytes.le32(at + 4)?);
                facts.sound(channels.into(), rate);
                if facts.codec.is_none()
                    && let Some(codec) = wave_codec(tag)
                {
                    facts.coded(codec);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [name.as_slice(), &(body.len() as u32).to_le_bytes(), body].concat()
    }

    #[test]
    fn streams_tell_size_and_length() {
        let mut stream = [0u8; 56];
        stream[..4].copy_from_slice(b"vids");
        (stream[20], stream[24], stream[32]) = (1, 25, 50);
        let mut format = [0u8; 40];
        (format[4], format[8]) = (64, 48);
        format[16..20].copy_from_slice(b"MJPG");
        let list = [b"strl".to_vec(), chunk(b"strh", &stream), chunk(b"strf", &format)].concat();
        let header = [b"hdrl".to_vec(), chunk(b"LIST", &list)].concat();
        let body = [b"AVI ".to_vec(), chunk(b"LIST", &header), chunk(b"LIST", b"movi")].concat();
        let found = look(&chunk(b"RIFF", &body));
        assert_eq!(found.mime_type, "video/x-msvideo");
        let facts = &found.facts;
        assert_eq!((facts.width, facts.duration_seconds, facts.codec.as_deref()), (Some(64), Some(2.0), Some("mjpeg")));
        assert!(facts.well_formed);
    }
}
