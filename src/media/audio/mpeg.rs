//! MPEG audio, layers I to III of versions 1, 2 and 2.5 (ISO/IEC 11172-3, 13818-3): a chain of frames.
//!
//! Promised: every frame that the budget allows is counted, so a missing or lying Xing header does not matter. What an
//! encoder says it put before and behind the sound is not played, and not counted. Deliberately absent: a guess at it.

use memchr::memchr;

use super::tags;
use crate::media::{
    Facts, Flag, Found, Provenance, markup,
    reader::{Broken, Bytes, Walk},
};

/// How far the first frame may lie behind junk: 64 KiB, as decoders search.
const JUNK: usize = 64 << 10;

/// Frames in a row that make bytes MPEG audio. Two sync words occur by chance; three consistent ones hardly do.
const CHAIN: usize = 3;

/// Frames in a row behind junk. Every offset is tried there, and chance has as many goes.
const CHAIN_BEHIND_JUNK: usize = 8;

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::media) struct Header {
    pub(in crate::media) sample_rate: u32,
    pub(in crate::media) channels: u32,
    pub(in crate::media) layer: u32,
    pub(super) samples: u32,
    bitrate: u32,
    length: u64,
}

impl Header {
    /// Frames of one stream share version, layer and rate.
    pub(super) fn continues(self, other: Self) -> bool {
        (self.sample_rate, self.layer, self.samples) == (other.sample_rate, other.layer, other.samples)
    }

    pub(super) fn codec(self) -> &'static str {
        ["mp1", "mp2", "mp3"][self.layer as usize - 1]
    }
}

/// Reads a header; free-format frames have no length of their own and are none here (`free`).
pub(in crate::media) fn header(bytes: &[u8]) -> Option<Header> {
    let &[0xFF, second, third, fourth, ..] = bytes else {
        return None;
    };
    if second & 0xE0 != 0xE0 {
        return None;
    }
    let (version, layer) = (second >> 3 & 3, 4 - u32::from(second >> 1 & 3));
    let (rate_index, bitrate_index) = (usize::from(third >> 2 & 3), usize::from(third >> 4));
    if version == 1 || layer == 4 || rate_index == 3 || matches!(bitrate_index, 0 | 15) {
        return None;
    }
    let halvings = match version {
        3 => 0,
        2 => 1,
        _ => 2,
    };
    let sample_rate = [44_100, 48_000, 32_000][rate_index] >> halvings;
    let table = match (halvings, layer) {
        (0, 1) => &BITRATES[0],
        (0, 2) => &BITRATES[1],
        (0, _) => &BITRATES[2],
        (_, 1) => &BITRATES[3],
        _ => &BITRATES[4],
    };
    let bitrate = u32::from(table[bitrate_index - 1]) * 1000;
    let samples = match layer {
        1 => 384,
        3 if halvings > 0 => 576,
        _ => 1152,
    };
    let padding = u64::from(third >> 1 & 1);
    let length = if layer == 1 {
        (u64::from(12 * bitrate / sample_rate) + padding) * 4
    } else {
        u64::from(samples / 8 * bitrate / sample_rate) + padding
    };
    let channels = if fourth >> 6 == 3 { 1 } else { 2 };
    Some(Header { sample_rate, channels, layer, samples, bitrate, length })
}

/// Kilobits per second by index from 1, for version 1 layers I, II, III and versions 2 layer I, layers II and III.
const BITRATES: [[u16; 14]; 5] = [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];

/// Frames without a tag in front: a chain has to be there.
pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    // What begins with frames may be short; behind junk, more has to agree.
    let (first, at_once) = (header(head), header(head).is_some());
    let start = if at_once && chain(bytes, 0, CHAIN) >= shortest(bytes, first, 0) {
        0
    } else {
        search(bytes, 0, head, CHAIN_BEHIND_JUNK)?
    };
    Some(inspect_from(bytes, 0, Some(start)))
}

/// A file that ends within the chain may have fewer frames, but then it ends where a frame does.
fn shortest(bytes: &Bytes<'_>, first: Option<Header>, at: u64) -> usize {
    match first {
        Some(first) if at + first.length >= bytes.size() => 1,
        Some(first) if at + first.length * 2 + 1 >= bytes.size() => 2,
        _ => CHAIN,
    }
}

/// The first offset from which so many frames follow each other, or all that there are until the sound ends.
fn search(bytes: &mut Bytes<'_>, at: u64, head: &[u8], enough: usize) -> Option<u64> {
    let mut from = 0;
    let mut tried = 0;
    while let Some(skip) = memchr(0xFF, head.get(from..)?) {
        from += skip;
        if header(&head[from..]).is_some() {
            tried += 1;
            let start = at + from as u64;
            let count = chain(bytes, start, enough);
            if count >= enough || count >= CHAIN && ends_with(bytes, start, count) {
                return Some(start);
            }
            // Each try may read elsewhere; noise offers one every two kilobytes.
            if tried > 256 {
                return None;
            }
        }
        from += 1;
    }
    None
}

/// So many frames are all of the rest, tags aside.
fn ends_with(bytes: &mut Bytes<'_>, mut at: u64, count: usize) -> bool {
    for _ in 0..count {
        at += header(bytes.peek(at, 4)).map_or(0, |frame| frame.length);
    }
    at >= tags::sound_end(bytes)
}

/// How many consistent frames follow each other, up to `most`.
fn chain(bytes: &mut Bytes<'_>, mut at: u64, most: usize) -> usize {
    let mut first = None;
    for count in 0..most {
        let Some(next) = header(bytes.peek(at, 4)) else { return count };
        if !first.get_or_insert(next).continues(next) {
            return count;
        }
        at += next.length;
    }
    most
}

/// A file that begins with a tag, which ends at `at`.
pub(super) fn inspect(bytes: &mut Bytes<'_>, at: u64) -> Found {
    let head = bytes.peek(at, JUNK).to_vec();
    let start = match header(&head) {
        Some(first) if chain(bytes, at, CHAIN) >= shortest(bytes, Some(first), at) => Some(at),
        first => search(bytes, at, &head, CHAIN).or_else(|| first.map(|_| at)),
    };
    inspect_from(bytes, at, start)
}

fn inspect_from(bytes: &mut Bytes<'_>, tags_end: u64, start: Option<u64>) -> Found {
    let mut found = Found::of("audio/mpeg");
    let facts = &mut found.facts;
    let searched = usize::try_from(tags_end).unwrap_or(usize::MAX).min(16 << 10);
    if markup::embedded(bytes.peek(0, searched)) {
        facts.flag(Flag::EmbeddedMarkup);
    }
    let walk = match start {
        Some(start) => frames(bytes, start, facts),
        None => Err(if tags_end >= bytes.size() { Broken::Short } else { Broken::Bad }),
    };
    facts.settle(walk);
    found
}

fn frames(bytes: &mut Bytes<'_>, start: u64, facts: &mut Facts) -> Walk {
    let end = tags::sound_end(bytes);
    let first = header(bytes.peek(start, 4)).ok_or(Broken::Bad)?;
    facts.sound(first.channels, first.sample_rate);
    facts.coded(first.codec());
    let mut at = start;
    let mut count = 0u64;
    let mut constant = true;
    let mut walk = Ok(());
    let header_frame = vbr_header(bytes, start, first);
    if let Some(Announced { frames: claimed, .. }) = header_frame {
        // The frame that carries the header plays nothing.
        at += first.length;
        if claimed.saturating_mul(MOST_FRAMES_PER_BYTE.0) > (end - start).saturating_mul(MOST_FRAMES_PER_BYTE.1) {
            facts.flag(Flag::SizeClaimWrong);
        }
    }
    while at < end {
        if let Err(spent) = bytes.step() {
            walk = Err(spent);
            break;
        }
        match header(bytes.peek(at, 4)) {
            Some(next) if next.continues(first) => {
                constant &= next.bitrate == first.bitrate;
                if at + next.length > end {
                    // A last frame that is not whole still plays in most decoders, but it is not there.
                    walk = Err(Broken::Short);
                    break;
                }
                count += 1;
                at += next.length;
            }
            _ if bytes.budget_left() == 0 => {
                walk = Err(Broken::Spent);
                break;
            }
            _ => {
                let rest = bytes.peek(at, JUNK).to_vec();
                match search(bytes, at, &rest, CHAIN) {
                    Some(next) if next > at && next < end => {
                        at = next;
                        walk = Err(Broken::Bad);
                    }
                    _ => {
                        facts.flag(Flag::TrailingBytes);
                        break;
                    }
                }
            }
        }
    }
    let samples = u64::from(first.samples);
    if walk == Err(Broken::Spent) {
        if constant {
            let seconds = (end - start) as f64 * 8.0 / f64::from(first.bitrate);
            facts.lasts(seconds, Provenance::Bytes);
        }
    } else if count > 0 {
        // Only of a stream that is all there is anything missing at its end.
        let silent = header_frame.filter(|header| header.frames == count).map_or(0, |header| header.silent);
        let played = (count * samples).saturating_sub(silent);
        facts.lasts_ticks(played, first.sample_rate.into(), Provenance::Scanned);
    }
    walk
}

/// The smallest frame of all is 24 bytes (8 kbit/s at 24 kHz, 576 samples).
const MOST_FRAMES_PER_BYTE: (u64, u64) = (24, 1);

/// What a Xing, Info or VBRI header says of the frames that follow it.
#[derive(Debug, Clone, Copy)]
struct Announced {
    frames: u64,
    /// Samples before and behind the sound, which fill frames and are not played.
    silent: u64,
}

/// Where LAME's extension has the samples before and behind the sound, twelve bits each, counted from the header's name.
const DELAYS: u64 = 141;

fn vbr_header(bytes: &mut Bytes<'_>, at: u64, first: Header) -> Option<Announced> {
    if first.layer != 3 {
        return None;
    }
    let side_info = match (first.samples, first.channels) {
        (1152, 2) => 32,
        (1152, 1) | (_, 2) => 17,
        _ => 9,
    };
    // Where frames have a checksum, some writers count its two bytes in.
    let plain = at + 4 + side_info;
    let xing = [plain, plain + 2].into_iter().find(|&xing| matches!(bytes.peek(xing, 4), b"Xing" | b"Info"));
    if let Some(xing) = xing {
        let has_frames = bytes.be32(xing + 4).ok()? & 1 == 1;
        let frames = if has_frames { bytes.be32(xing + 8).ok()?.into() } else { 0 };
        let encoder: [u8; 4] = bytes.array(xing + 120).ok()?;
        let extended = matches!(&encoder, b"LAME" | b"Lavf" | b"Lavc") && DELAYS + 7 + side_info <= first.length;
        let silent = match bytes.array(xing + DELAYS) {
            Ok([high, both, low]) if extended => {
                let before = u64::from(high) << 4 | u64::from(both >> 4);
                before + (u64::from(both & 15) << 8 | u64::from(low))
            }
            _ => 0,
        };
        return Some(Announced { frames, silent });
    }
    if bytes.peek(at + 36, 4) == b"VBRI" {
        return bytes.be32(at + 50).ok().map(|frames| Announced { frames: frames.into(), silent: 0 });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::{declared::UNKNOWN, tests::look};

    /// A frame of zeros with this header.
    fn frame(start: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![0; header(&start).expect("a header").length as usize];
        frame[..4].copy_from_slice(&start);
        frame
    }

    #[test]
    fn versions_and_layers_have_their_own_tables() {
        for (start, rate, samples, length) in [
            ([0xFF, 0xFB, 0x90, 0x00], 44_100, 1152, 417),
            ([0xFF, 0xF3, 0x80, 0x00], 22_050, 576, 208),
            ([0xFF, 0xE3, 0x80, 0x00], 11_025, 576, 417),
            ([0xFF, 0xFD, 0x90, 0x00], 44_100, 1152, 522),
            ([0xFF, 0xFF, 0x90, 0x00], 44_100, 384, 312),
        ] {
            let header = header(&start).expect("a header");
            assert_eq!((header.sample_rate, header.samples, header.length), (rate, samples, length), "{start:?}");
        }
        assert_eq!(header(&[0xFF, 0xFE, 0x3C, 0x00]), None);
    }

    #[test]
    fn a_varying_rate_without_a_header_is_counted() {
        let file: Vec<u8> =
            (0..40).flat_map(|n| frame([0xFF, 0xFB, if n % 2 == 0 { 0x90 } else { 0x50 }, 0])).collect();
        let facts = look(&file).facts;
        let seconds = facts.duration_seconds.expect("a length");
        assert!((seconds - 40.0 * 1152.0 / 44_100.0).abs() < 1e-5);
        assert_eq!(facts.provenance.get("durationSeconds"), Some(&Provenance::Scanned));
    }

    #[test]
    fn a_lying_header_is_not_believed() {
        let mut first = frame([0xFF, 0xFB, 0x90, 0]);
        first[36..48].copy_from_slice(b"Xing\0\0\0\x01\xFF\xFF\xFF\xFF");
        let facts = look(&[first, frame([0xFF, 0xFB, 0x90, 0]).repeat(10)].concat()).facts;
        assert!(facts.duration_seconds.is_some_and(|seconds| seconds < 1.0));
        assert!(facts.flags.contains(&Flag::SizeClaimWrong));
    }

    #[test]
    fn what_an_encoder_put_around_the_sound_is_not_played() {
        let mut first = frame([0xFF, 0xFB, 0x90, 0]);
        first[36..48].copy_from_slice(b"Info\0\0\0\x01\0\0\0\x0A");
        first[156..160].copy_from_slice(b"LAME");
        // 576 samples before, 1,152 behind.
        first[177..180].copy_from_slice(&[0x24, 0x04, 0x80]);
        let whole = [first, frame([0xFF, 0xFB, 0x90, 0]).repeat(10)].concat();
        let seconds = |file: &[u8]| look(file).facts.duration_seconds.expect("a length") * 44_100.0 / 1152.0;
        assert!((seconds(&whole) - 8.5).abs() < 1e-3);
        // Of a file that was cut nobody knows what is missing.
        assert!((seconds(&whole[..whole.len() - 417 * 2]) - 8.0).abs() < 1e-3);
    }

    #[test]
    fn chance_in_much_junk_is_no_sound() {
        let noise = |n: usize| (0..n as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect::<Vec<_>>();
        let frames = frame([0xFF, 0xFB, 0x90, 0]);
        assert_eq!(look(&[noise(3000), frames.repeat(4), noise(9000)].concat()).mime_type, UNKNOWN);
        assert_eq!(look(&[noise(3000), frames.repeat(4)].concat()).mime_type, "audio/mpeg");
        assert_eq!(look(&[noise(3000), frames.repeat(9), noise(9000)].concat()).mime_type, "audio/mpeg");
    }

    #[test]
    fn tags_and_junk_are_stepped_over() {
        let frames = frame([0xFF, 0xF3, 0x80, 0]).repeat(5);
        for front in [b"ID3\x04\0\0\0\0\0\x02xy".as_slice(), &[0; 512], b"ID3\x03\0\0\x7F\x7F\x7F\x7F"] {
            let found = look(&[front, &frames, b"TAG", &[0; 125]].concat());
            assert_eq!(found.mime_type, "audio/mpeg");
            assert!(found.facts.well_formed, "{front:?} {:?}", found.facts);
        }
    }

    #[test]
    fn sync_words_alone_are_not_sound() {
        assert_eq!(look(&[0xFF, 0xFB].repeat(10_000)).mime_type, UNKNOWN);
        assert_eq!(look(b"\xFF\xFE<\0h\0t\0m\0l\0>\0").mime_type, "text/html");
    }
}
