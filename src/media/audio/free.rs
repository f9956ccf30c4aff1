//! MPEG audio in free format (ISO/IEC 11172-3 section 2.4.2.3): frames of one length, which no header states.
//!
//! Promised: the length is the distance of the first two headers, and has to hold from frame to frame. Deliberately absent: free format
//! behind tags or junk, which nobody writes.

use super::{mpeg, tags};
use crate::media::{
    Found, Provenance,
    reader::{Bytes, Walk},
};

/// The longest frame that decoders take, with room: 640 kbit/s at 32 kHz.
const LONGEST: usize = 4 << 10;

/// Frames in a row that make bytes free format; that no rate is stated is easily so by chance.
const CHAIN: usize = 6;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let first = stated(head)?;
    let slot = if first.layer == 1 { 4 } else { 1 };
    let same = |frame: &[u8]| stated(frame).is_some_and(|other| first.continues(other));
    let distance = (24..LONGEST.min(head.len())).find(|&at| head.get(at..).is_some_and(same))?;
    let length = (distance - padding(head) * slot) as u64;
    let end = tags::sound_end(bytes);
    let mut found = Found::of("audio/mpeg");
    found.facts.sound(first.channels, first.sample_rate);
    found.facts.coded(first.codec());
    let mut count = 0u64;
    let walk: Walk = (|| {
        let mut at = 0;
        while at < end {
            bytes.step()?;
            let frame = bytes.peek(at, 4);
            if !same(frame) {
                break;
            }
            at += length + (padding(frame) * slot) as u64;
            count += 1;
        }
        bytes.reaches(at)
    })();
    if count < CHAIN as u64 {
        return None;
    }
    found.facts.lasts_ticks(count * u64::from(first.samples), first.sample_rate.into(), Provenance::Scanned);
    found.facts.settle(walk);
    Some(found)
}

/// A header without a bit rate, read as if it had the lowest.
fn stated(frame: &[u8]) -> Option<mpeg::Header> {
    let &[first, second, third, fourth, ..] = frame else { return None };
    if third >> 4 != 0 {
        return None;
    }
    mpeg::header(&[first, second, third | 0x10, fourth])
}

fn padding(frame: &[u8]) -> usize {
    frame.get(2).map_or(0, |third| usize::from(third >> 1 & 1))
}

#[cfg(test)]
mod tests {
    use crate::media::{declared::UNKNOWN, tests::look};

    #[test]
    fn frames_of_one_length_are_counted() {
        // Layer III, 44.1 kHz, no rate; every other frame has a byte more.
        let frame = |padded: usize| {
            let mut frame = vec![0x55; 500 + padded];
            frame[..4].copy_from_slice(&[0xFF, 0xFB, (padded as u8) << 1, 0]);
            frame
        };
        let file: Vec<u8> = (0..10).flat_map(|n| frame(n % 2)).collect();
        let found = look(&file);
        assert_eq!((found.mime_type.as_str(), found.facts.well_formed), ("audio/mpeg", true));
        let seconds = found.facts.duration_seconds.expect("a length");
        assert!((seconds - 10.0 * 1152.0 / 44_100.0).abs() < 1e-5, "{seconds}");
        assert_eq!(look(&file[..1600]).mime_type, UNKNOWN);
    }
}
