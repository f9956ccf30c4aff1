//! FLAC (RFC 9639): metadata blocks, then frames.
//!
//! Promised: the stream's own count of samples, if the bytes can hold so many; else the last frame's number.
//! Deliberately absent: a walk through frames, whose lengths only a decoder knows.

use memchr::memrchr_iter;

use crate::media::{
    Facts, Flag, Found, Provenance,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8], at: u64) -> Option<Found> {
    // Of the block types 126 are undefined; a letter is one of them.
    if !head.starts_with(b"fLaC") || head.get(4).is_some_and(|kind| kind & 0x7F > 6) {
        return None;
    }
    let mut found = Found::of("audio/flac");
    found.facts.coded("flac");
    let mut info = None;
    let walk = blocks(bytes, at + 4, &mut info);
    let walk = walk.and_then(|sound| describe(bytes, &mut found.facts, info.ok_or(Broken::Bad)?, sound));
    if let (Err(_), Some(info)) = (walk, info) {
        found.facts.sound(info.channels, info.rate);
    }
    found.facts.settle(walk);
    Some(found)
}

#[derive(Debug, Clone, Copy)]
struct Info {
    rate: u32,
    channels: u32,
    total: u64,
    /// Samples per frame where all have the same number.
    block: Option<u64>,
}

/// Walks the metadata; the offset behind it is where frames begin.
fn blocks(bytes: &mut Bytes<'_>, mut at: u64, info: &mut Option<Info>) -> Walk<u64> {
    loop {
        bytes.step()?;
        let header = bytes.be32(at)?;
        let (last, kind, length) = (header >> 31 == 1, header >> 24 & 0x7F, u64::from(header & 0xFF_FFFF));
        bytes.reaches(at + 4 + length)?;
        if kind == 127 {
            return Err(Broken::Bad);
        }
        if kind == 0 && info.is_none() && length >= 34 {
            let packed = bytes.be64(at + 14)?;
            let (least, most) = (bytes.be16(at + 4)?, bytes.be16(at + 6)?);
            *info = Some(Info {
                rate: (packed >> 44) as u32,
                channels: (packed >> 41 & 7) as u32 + 1,
                total: packed & 0xF_FFFF_FFFF,
                block: (least == most).then_some(most.into()),
            });
        }
        at += 4 + length;
        if last {
            return Ok(at);
        }
    }
}

/// A frame is at least this long: header, one constant subframe, checksum.
const LEAST_FRAME: u64 = 10;

/// A frame holds at most this many samples.
const MOST_SAMPLES: u64 = 65_535;

fn describe(bytes: &mut Bytes<'_>, facts: &mut Facts, info: Info, sound: u64) -> Walk {
    facts.sound(info.channels, info.rate);
    if info.rate == 0 {
        return Err(Broken::Bad);
    }
    let most = ((bytes.size() - sound) / LEAST_FRAME + 1) * MOST_SAMPLES;
    if info.total > most {
        facts.flag(Flag::SizeClaimWrong);
        return Ok(());
    }
    if info.total > 0 {
        facts.lasts_ticks(info.total, info.rate.into(), Provenance::Container);
        return Ok(());
    }
    if let Some(samples) = last_sample(bytes, info.block, sound) {
        facts.lasts_ticks(samples.min(most), info.rate.into(), Provenance::Scanned);
    }
    Ok(())
}

/// Where the last frame ends, by its own number, for streams that did not know their length.
fn last_sample(bytes: &mut Bytes<'_>, block: Option<u64>, sound: u64) -> Option<u64> {
    let (at, tail) = bytes.tail(64 << 10);
    let start = usize::try_from(sound.saturating_sub(at)).ok()?.min(tail.len());
    let tail = &tail[start..];
    memrchr_iter(0xFF, tail).find_map(|at| frame_end(&tail[at..], block))
}

/// The number of samples up to a frame's end, if a frame's header with a right checksum is here.
fn frame_end(frame: &[u8], block: Option<u64>) -> Option<u64> {
    let (&[0xFF, second, third, _], rest) = frame.split_first_chunk::<4>()? else {
        return None;
    };
    if second & 0xFE != 0xF8 {
        return None;
    }
    // A number coded as UTF-8 codes characters, up to seven bytes.
    let first = *rest.first()?;
    let more = first.leading_ones().saturating_sub(1) as usize;
    if first.leading_ones() == 1 || more > 6 {
        return None;
    }
    let mut number = u64::from(first) & (0x7F >> first.leading_ones().min(6));
    for byte in rest.get(1..=more)? {
        number = number << 6 | u64::from(byte & 0x3F);
    }
    let mut at = 5 + more;
    let samples = match third >> 4 {
        1 => 192,
        code @ 2..=5 => 576 << (code - 2),
        6 => u64::from(*frame.get(at)?) + 1,
        7 => u64::from(frame.be16(at)?) + 1,
        code @ 8..=15 => 256 << (code - 8),
        _ => return None,
    };
    at += match third >> 4 {
        6 => 1,
        7 => 2,
        _ => 0,
    };
    at += match third & 15 {
        12 => 1,
        13 | 14 => 2,
        15 => return None,
        _ => 0,
    };
    if crc8(frame.get(..at)?) != *frame.get(at)? {
        return None;
    }
    let varying = second & 1 == 1;
    let start = if varying { number } else { number.checked_mul(block.unwrap_or(samples))? };
    start.checked_add(samples)
}

/// The polynomial x⁸ + x² + x + 1 of section 9.1.8.
fn crc8(header: &[u8]) -> u8 {
    header.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ byte, |crc: u8, _| if crc & 0x80 == 0 { crc << 1 } else { crc << 1 ^ 0x07 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::look;

    fn flac(total: u64, frames: &[u8]) -> Vec<u8> {
        let packed = 44_100u64 << 44 | 1 << 41 | 15 << 36 | total;
        let info = [&[0x10, 0, 0x10, 0][..], &[0; 6], &packed.to_be_bytes(), &[0; 16]].concat();
        [b"fLaC\x80\0\0\x22", info.as_slice(), frames].concat()
    }

    /// A frame of 4096 samples with this number.
    fn frame(number: u8) -> Vec<u8> {
        let mut header = vec![0xFF, 0xF8, 0xC9, 0x18, number];
        header.push(crc8(&header));
        header.extend_from_slice(&[0; 40]);
        header
    }

    #[test]
    fn the_stated_count_is_the_length() {
        let facts = look(&flac(44_100, &[frame(0), frame(1)].concat())).facts;
        assert_eq!((facts.duration_seconds, facts.channels, facts.well_formed), (Some(1.0), Some(2), true));
    }

    #[test]
    fn a_count_that_cannot_be_is_flagged() {
        let facts = look(&flac(0xF_FFFF_FFFF, &[0; 56])).facts;
        assert_eq!(facts.duration_seconds, None);
        assert!(facts.flags.contains(&Flag::SizeClaimWrong));
    }

    #[test]
    fn a_stream_without_a_count_ends_with_its_last_frame() {
        let facts = look(&flac(0, &[frame(0), frame(1), frame(2)].concat())).facts;
        let seconds = facts.duration_seconds.expect("a length");
        assert!((seconds - 3.0 * 4096.0 / 44_100.0).abs() < 1e-5, "{seconds}");
    }
}
