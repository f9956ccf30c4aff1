//! AC-3 and E-AC-3 on their own (ETSI TS 102 366): a chain of sync frames.

use crate::media::{
    Facts, Flag, Found, Provenance,
    container::Bits,
    reader::{Broken, Bytes, Walk},
};

/// One sync frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::media) struct Header {
    pub(in crate::media) sample_rate: u32,
    pub(in crate::media) channels: u32,
    pub(in crate::media) enhanced: bool,
    samples: u64,
    length: u64,
}

/// Kilobits per second by the upper five bits of the frame size code.
const BITRATES: [u64; 19] = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];

/// Full channels by coding mode; the low-frequency one comes on top.
pub(in crate::media) const CHANNELS: [u32; 8] = [2, 1, 2, 3, 3, 4, 4, 5];

/// Reads a header.
pub(in crate::media) fn header(bytes: &[u8]) -> Option<Header> {
    let bytes = bytes.strip_prefix(&[0x0B, 0x77])?;
    let identification = bytes.get(3)? >> 3;
    if identification > 10 { enhanced(bytes).filter(|_| identification <= 16) } else { plain(bytes) }
}

fn plain(bytes: &[u8]) -> Option<Header> {
    let mut bits = Bits::new(bytes);
    bits.skip(16)?;
    let (rate, size) = (bits.take(2)?, bits.take(6)? as usize);
    bits.skip(5 + 3)?;
    let mode = bits.take(3)? as usize;
    // Mix levels stand between the mode and the low-frequency flag.
    bits.skip(
        if mode & 1 == 1 && mode != 1 { 2 } else { 0 }
            + if mode & 4 != 0 { 2 } else { 0 }
            + if mode == 2 { 2 } else { 0 },
    )?;
    let low = bits.take(1)?;
    let bitrate = BITRATES.get(size / 2)?;
    let (sample_rate, words) = match rate {
        0 => (48_000, bitrate * 2),
        1 => (44_100, bitrate * 96_000 / 44_100 + (size as u64 & 1)),
        2 => (32_000, bitrate * 3),
        _ => return None,
    };
    Some(Header { sample_rate, channels: CHANNELS[mode] + low, enhanced: false, samples: 1536, length: words * 2 })
}

fn enhanced(bytes: &[u8]) -> Option<Header> {
    let mut bits = Bits::new(bytes);
    let kind = bits.take(2)?;
    bits.skip(3)?;
    let length = (u64::from(bits.take(11)?) + 1) * 2;
    let (sample_rate, blocks) = match bits.take(2)? {
        3 => ([24_000, 22_050, 16_000].get(bits.take(2)? as usize).copied()?, 6),
        code => ([48_000, 44_100, 32_000][code as usize], [1, 2, 3, 6][bits.take(2)? as usize]),
    };
    let (mode, low) = (bits.take(3)? as usize, bits.take(1)?);
    // A dependent frame adds channels to the one before it, and no time.
    let samples = if kind == 1 { 0 } else { blocks * 256 };
    (kind < 3).then_some(Header { sample_rate, channels: CHANNELS[mode] + low, enhanced: true, samples, length })
}

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let first = header(head)?;
    let end = bytes.size();
    let follower = header(bytes.peek(first.length, 8));
    if first.length != end && follower.is_none_or(|next| next.sample_rate != first.sample_rate) {
        return None;
    }
    let mut found = Found::of(if first.enhanced { "audio/eac3" } else { "audio/ac3" });
    found.facts.sound(first.channels, first.sample_rate);
    found.facts.coded(if first.enhanced { "eac3" } else { "ac3" });
    let walk = frames(bytes, first, &mut found.facts);
    found.facts.settle(walk);
    Some(found)
}

fn frames(bytes: &mut Bytes<'_>, first: Header, facts: &mut Facts) -> Walk {
    let (mut at, mut samples) = (0, 0);
    let mut walk = Ok(());
    while at < bytes.size() {
        bytes.step()?;
        let Some(frame) = header(bytes.peek(at, 8)) else {
            facts.flag(Flag::TrailingBytes);
            break;
        };
        if at + frame.length > bytes.size() {
            walk = Err(Broken::Short);
            break;
        }
        samples += frame.samples;
        at += frame.length;
    }
    facts.lasts_ticks(samples, first.sample_rate.into(), Provenance::Scanned);
    walk
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn frames_are_counted() {
        // 48 kHz, 32 kbit/s, stereo.
        let mut frame = vec![0x0B, 0x77, 0, 0, 0x00, 0x40, 0x43, 0xFF];
        frame.resize(128, 0);
        let found = look(&frame.repeat(5));
        assert_eq!(found.mime_type, "audio/ac3");
        assert_eq!((found.facts.duration_seconds, found.facts.channels), (Some(0.16), Some(2)));
        assert!(found.facts.well_formed);
    }
}
