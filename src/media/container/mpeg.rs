//! MPEG-1 and MPEG-2 programme streams (ISO/IEC 11172-1, 13818-1), and bare video of theirs.
//!
//! Promised: size from the first sequence header, sound from the first frame of it, length from the first to the last time stamp.
//! Deliberately absent: a length where the clock jumps back, and one for bare video, which has no clock.

use memchr::{memchr_iter, memmem};

use crate::media::{
    Facts, Found, Provenance, audio,
    reader::{Broken, Bytes, Fields, Walk},
};

/// How far the first sequence header may lie.
const SEARCHED: usize = 64 << 10;

/// How much of the beginning is walked packet by packet, and of the end searched for the last stamps.
const FIRST: u64 = 2 << 20;
const LAST: usize = 512 << 10;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let pack =
        head.starts_with(&[0, 0, 1, 0xBA]) && head.get(4).is_none_or(|&first| first >> 6 == 1 || first >> 4 == 2);
    let bare = head.starts_with(&[0, 0, 1, 0xB3]) && head.len() >= 12;
    if !pack && !bare {
        return None;
    }
    let mut found = Found::plain("video/mpeg");
    sequence(&head[..head.len().min(SEARCHED)], &mut found.facts);
    if pack {
        let mut programme = Programme::default();
        let walk = programme.walk(bytes, &mut found.facts);
        programme.tail(bytes);
        if let Some(ticks) = programme.longest() {
            found.facts.lasts_ticks(ticks, 90_000, Provenance::Scanned);
        }
        found.facts.settle(walk);
    }
    Some(found)
}

/// Notes the size in the first sequence header, if there is one.
pub(super) fn sequence(from: &[u8], facts: &mut Facts) -> bool {
    let Some(at) = memmem::find(from, &[0, 0, 1, 0xB3]) else { return false };
    let Some(packed) = from.be24(at + 4) else { return false };
    facts.size(packed >> 12, packed & 0xFFF);
    let extended = memmem::find(&from[at..], &[0, 0, 1, 0xB5]).is_some_and(|extension| extension < 256);
    facts.coded(if extended { "mpeg2" } else { "mpeg1" });
    true
}

/// First and last time stamp of each stream, by its number.
#[derive(Debug, Default)]
struct Programme {
    streams: Vec<(u8, u64, u64)>,
}

/// A programme has 32 streams of sound, 16 of pictures, and private ones.
const MOST_STREAMS: usize = 64;

impl Programme {
    fn walk(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
        let mut at = 0;
        while at + 4 <= bytes.size() && at < FIRST {
            bytes.step()?;
            let [0, 0, 1, id] = bytes.array(at)? else {
                return Err(Broken::Bad);
            };
            at += match id {
                0xBA if bytes.u8(at + 4)? >> 6 == 1 => 14 + u64::from(bytes.u8(at + 13)? & 7),
                0xBA => 12,
                0xB9 => {
                    // Some writers end each part; what goes on is more of the same.
                    if bytes.peek(at + 4, 3) == [0, 0, 1] {
                        at += 4;
                        continue;
                    }
                    facts.ends_at(bytes, at + 4);
                    return Ok(());
                }
                0xBB..=0xFF => {
                    let length = u64::from(bytes.be16(at + 4)?);
                    bytes.reaches(at + 6 + length)?;
                    let packet = bytes.take(at + 6, length as usize)?;
                    self.packet(id, &packet, facts);
                    6 + length
                }
                _ => return Err(Broken::Bad),
            };
        }
        Ok(())
    }

    fn packet(&mut self, id: u8, packet: &[u8], facts: &mut Facts) {
        let Some((stamp, payload)) = header(packet).filter(|_| has_stamps(id)) else { return };
        self.note(id, stamp);
        if facts.width.is_none() && id >> 4 == 0xE {
            sequence(payload, facts);
        }
        if facts.channels.is_none() {
            sound(id, payload, facts);
        }
    }

    /// Stamps in the end, by their start codes: what is there need not begin with a packet.
    fn tail(&mut self, bytes: &mut Bytes<'_>) {
        let (_, tail) = bytes.tail(LAST);
        for at in memmem::find_iter(&tail, &[0, 0, 1]).map(|at| at + 3) {
            if let Some(&id) = tail.get(at)
                && has_stamps(id)
                && self.streams.iter().any(|stream| stream.0 == id)
                && let Some((stamp, _)) = tail.get(at + 3..).and_then(header)
            {
                self.note(id, stamp);
            }
        }
    }

    fn note(&mut self, id: u8, stamp: Option<u64>) {
        let Some(stamp) = stamp else { return };
        if let Some((_, first, last)) = self.streams.iter_mut().find(|stream| stream.0 == id) {
            (*first, *last) = ((*first).min(stamp), (*last).max(stamp));
        } else if self.streams.len() < MOST_STREAMS {
            self.streams.push((id, stamp, stamp));
        }
    }

    fn longest(&self) -> Option<u64> {
        self.streams.iter().map(|(_, first, last)| last - first).max().filter(|&ticks| ticks > 0)
    }
}

fn has_stamps(id: u8) -> bool {
    matches!(id, 0xBD | 0xC0..=0xEF)
}

/// A packet's time stamp and what it carries, in MPEG-2's form or MPEG-1's.
fn header(packet: &[u8]) -> Option<(Option<u64>, &[u8])> {
    let first = *packet.first()?;
    if first >> 6 == 2 {
        let stamp = if packet.get(1)? & 0x80 == 0 { None } else { packet.get(3..8).and_then(stamp) };
        return Some((stamp, packet.get(3 + usize::from(*packet.get(2)?)..)?));
    }
    let stuffing = packet.iter().take(16).take_while(|&&byte| byte == 0xFF).count();
    let mut rest = packet.get(stuffing..)?;
    if rest.first()? >> 6 == 1 {
        rest = rest.get(2..)?;
    }
    match rest.first()? >> 4 {
        2 => Some((rest.get(..5).and_then(stamp), rest.get(5..)?)),
        3 => Some((rest.get(..5).and_then(stamp), rest.get(10..)?)),
        0 => Some((None, rest.get(1..)?)),
        _ => None,
    }
}

/// 33 bits in five bytes, with a one behind each part of them.
fn stamp(bytes: &[u8]) -> Option<u64> {
    let marked = bytes[0] & 1 == 1 && bytes[2] & 1 == 1 && bytes[4] & 1 == 1;
    let ticks =
        u64::from(bytes[0] >> 1 & 7) << 30 | u64::from(bytes.be16(1)? >> 1) << 15 | u64::from(bytes.be16(3)? >> 1);
    marked.then_some(ticks)
}

/// The first frame of sound in a packet.
fn sound(id: u8, payload: &[u8], facts: &mut Facts) {
    let start = match id {
        0xC0..=0xDF => 0,
        // A private stream of DVDs: a number, and where its first frame begins.
        0xBD if payload.first().is_some_and(|number| (0x80..=0x87).contains(number)) => 4,
        _ => return,
    };
    let frames = payload.get(start..).unwrap_or_default();
    let found = memchr_iter(if id == 0xBD { 0x0B } else { 0xFF }, frames).find_map(|at| {
        let frame = &frames[at..];
        if id == 0xBD {
            return audio::ac3_header(frame).map(|header| ("ac3", header.channels, header.sample_rate));
        }
        audio::mpeg_header(frame).map(|header| ("mpeg", header.channels, header.sample_rate))
    });
    let Some((codec, channels, rate)) = found else { return };
    facts.sound(channels, rate);
    if facts.codec.is_none() {
        facts.coded(codec);
    }
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn a_sequence_header_tells_the_size() {
        let found = look(b"\0\0\x01\xB3\x0A\x00\x78\x13\0\0\0\0\0");
        assert_eq!(
            (found.mime_type.as_str(), found.facts.width, found.facts.height),
            ("video/mpeg", Some(160), Some(120))
        );
    }

    #[test]
    fn stamps_tell_the_length_and_frames_the_sound() {
        let pack = [0, 0, 1, 0xBA, 0x44, 0, 4, 0, 4, 1, 0, 0, 3, 0xF8];
        // Ninety thousand ticks a second, from the first second to the third.
        let packet = |seconds: u64| {
            let ticks = seconds * 90_000;
            let [low, high] = [(ticks << 1 | 1) as u16, (ticks >> 14 | 1) as u16].map(u16::to_be_bytes);
            let stamp = [0x21 | (ticks >> 29 & 0xE) as u8, high[0], high[1], low[0], low[1]];
            let frame = [0xFF, 0xFD, 0x84, 0, 0, 0];
            [&[0, 0, 1, 0xC0, 0, 14, 0x80, 0x80, 5], stamp.as_slice(), &frame].concat()
        };
        let file = [pack.to_vec(), packet(1), pack.to_vec(), packet(3), vec![0, 0, 1, 0xB9]].concat();
        let facts = look(&file).facts;
        assert_eq!((facts.duration_seconds, facts.channels, facts.sample_rate), (Some(2.0), Some(2), Some(48_000)));
        assert!(facts.well_formed, "{facts:?}");
    }
}
