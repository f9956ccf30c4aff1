//! AAC on its own: ADTS and LOAS frames, and ADIF (ISO/IEC 14496-3).
//!
//! Promised: frames are counted. Deliberately absent: the sound inside them, and with it implicit band replication.

use super::tags;
use crate::media::{
    Facts, Flag, Found, Provenance,
    container::{AudioConfig, Bits, aac_rate, channels},
    reader::{Broken, Bytes, Walk},
};

/// Frames in a row that make bytes AAC; fewer only where the file ends with them.
const CHAIN: usize = 3;

/// One ADTS frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::media) struct Header {
    pub(in crate::media) sample_rate: u32,
    pub(in crate::media) channels: u32,
    samples: u64,
    length: u64,
}

/// Reads a header; a frame shorter than its header is none.
pub(in crate::media) fn header(bytes: &[u8]) -> Option<Header> {
    let &[0xFF, second, third, fourth, fifth, sixth, seventh, ..] = bytes else {
        return None;
    };
    if second & 0xF6 != 0xF0 {
        return None;
    }
    // The escape value says that the rate is elsewhere, and ADTS has no elsewhere.
    let sample_rate = match u32::from(third >> 2 & 15) {
        15 => 0,
        index => aac_rate(index)?,
    };
    let configuration = u32::from(third & 1) << 2 | u32::from(fourth >> 6);
    let length = u64::from(fourth & 3) << 11 | u64::from(fifth) << 3 | u64::from(sixth >> 5);
    let own = if second & 1 == 1 { 7 } else { 9 };
    let samples = 1024 * (u64::from(seventh & 3) + 1);
    (length >= own).then_some(Header { sample_rate, channels: channels(configuration), samples, length })
}

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8], at: u64) -> Option<Found> {
    if head.starts_with(b"ADIF") {
        return Some(Found::plain("audio/x-adif"));
    }
    let first = header(head)?;
    let end = tags::sound_end(bytes);
    let mut next = at;
    for count in 0..CHAIN {
        match header(bytes.peek(next, 7)) {
            Some(frame) if frame.sample_rate == first.sample_rate => next += frame.length,
            _ if count > 0 && next == end => break,
            _ => return None,
        }
    }
    let mut found = Found::of("audio/aac");
    found.facts.sound(first.channels, first.sample_rate);
    found.facts.coded("aac");
    let walk = frames(
        bytes,
        at,
        end,
        &mut found.facts,
        |bytes, at| {
            let frame = header(bytes.peek(at, 7)).filter(|frame| frame.sample_rate == first.sample_rate)?;
            Some((frame.length, frame.samples))
        },
        first.sample_rate,
    );
    found.facts.settle(walk);
    Some(found)
}

/// Counts frames until the sound ends; what follows the last is trailing.
fn frames(
    bytes: &mut Bytes<'_>,
    mut at: u64,
    end: u64,
    facts: &mut Facts,
    next: impl Fn(&mut Bytes<'_>, u64) -> Option<(u64, u64)>,
    rate: u32,
) -> Walk {
    let mut samples = 0;
    let mut walk = Ok(());
    while at < end {
        walk = bytes.step();
        let Some((length, more)) = next(bytes, at).filter(|_| walk.is_ok()) else {
            if walk.is_ok() {
                facts.flag(Flag::TrailingBytes);
            }
            break;
        };
        if at + length > end {
            walk = Err(Broken::Short);
            break;
        }
        samples += more;
        at += length;
    }
    if walk != Err(Broken::Spent) {
        facts.lasts_ticks(samples, rate.into(), Provenance::Scanned);
    }
    walk
}

/// LOAS: an eleven-bit sync word and a length in front of each element.
pub(super) fn probe_latm(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let length = |header: &[u8]| match *header {
        [0x56, second, third, ..] if second & 0xE0 == 0xE0 => {
            Some(3 + (u64::from(second & 0x1F) << 8 | u64::from(third)))
        }
        _ => None,
    };
    let mut at = 0;
    for _ in 0..CHAIN {
        at += length(bytes.peek(at, 3)).filter(|&length| length > 3)?;
    }
    let config = mux_config(head.get(3..)?)?;
    let mut found = Found::of("audio/aac");
    found.facts.sound(config.channels, config.sample_rate);
    found.facts.coded("aac");
    let end = bytes.size();
    let walk = frames(
        bytes,
        0,
        end,
        &mut found.facts,
        |bytes, at| length(bytes.peek(at, 3)).map(|length| (length, 1024)),
        config.sample_rate,
    );
    found.facts.settle(walk);
    Some(found)
}

/// The configuration in the first element, for the only version in use.
fn mux_config(element: &[u8]) -> Option<AudioConfig> {
    let mut bits = Bits::new(element);
    let (same, version) = (bits.take(1)?, bits.take(1)?);
    if same == 1 || version == 1 {
        return None;
    }
    // Framing, sub-frames, programmes and layers.
    bits.skip(1 + 6 + 4 + 3)?;
    let mut rest = [0u8; 8];
    for byte in &mut rest {
        *byte = bits.take(8)? as u8;
    }
    AudioConfig::parse(&rest)
}

#[cfg(test)]
mod tests {
    use crate::media::{declared::UNKNOWN, tests::look};

    /// A frame of 44.1 kHz stereo of this length.
    fn frame(length: usize) -> Vec<u8> {
        let header = [
            0xFF,
            0xF1,
            0x50,
            0x80 | (length >> 11) as u8,
            (length >> 3) as u8,
            ((length & 7) << 5) as u8 | 0x1F,
            0xFC,
        ];
        [header.as_slice(), &vec![0; length.saturating_sub(7)]].concat()
    }

    #[test]
    fn frames_are_counted() {
        let found = look(&frame(100).repeat(10));
        assert_eq!(found.mime_type, "audio/aac");
        let seconds = found.facts.duration_seconds.expect("a length");
        assert!((seconds - 10.0 * 1024.0 / 44_100.0).abs() < 1e-5);
        assert_eq!((found.facts.channels, found.facts.well_formed), (Some(2), true));
    }

    #[test]
    fn frames_of_no_length_are_none() {
        assert_eq!(look(&frame(0).repeat(3000)).mime_type, UNKNOWN);
    }

    #[test]
    fn a_tag_in_front_is_no_mp3() {
        assert_eq!(look(&[b"ID3\x04\0\0\0\0\0\0".as_slice(), &frame(50).repeat(4)].concat()).mime_type, "audio/aac");
    }
}
