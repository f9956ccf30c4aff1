//! Matroska and WebM: EBML elements (RFC 9559).
//!
//! Promised: elements of unknown size are walked, not trusted to end; a missing length is taken from the last block.
//! Deliberately absent: recursion, so that nesting costs nothing, and blocks' contents.

use super::ebml::{Element, children, element, float, number, text, vint};
use crate::media::{
    Facts, Flag, Found, Provenance, markup,
    reader::{Broken, Bytes, Fields, Walk},
};

const EBML: u32 = 0x1A45_DFA3;
const SEGMENT: u32 = 0x1853_8067;
const INFO: u32 = 0x1549_A966;
const TRACKS: u32 = 0x1654_AE6B;
const TRACK: u32 = 0xAE;
const CLUSTER: u32 = 0x1F43_B675;
const BLOCK_GROUP: u32 = 0xA0;
const VOID: u32 = 0xEC;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if head.be32(0)? != EBML {
        return None;
    }
    let kin = doc_type(head)?;
    let mut file = Matroska::default();
    let mut facts = Facts::default();
    let walk = file.walk(bytes, &mut facts);
    let seen = file.tracks.iter().find(|track| track.kind == 1);
    let heard = file.tracks.iter().find(|track| track.kind == 2);
    let mut found = Found::of(match (kin, seen.is_none() && heard.is_some()) {
        (Kin::WebM, false) => "video/webm",
        (Kin::WebM, true) => "audio/webm",
        (Kin::Matroska, false) => "video/matroska",
        (Kin::Matroska, true) => "audio/matroska",
    });
    found.facts = facts;
    file.describe(&mut found.facts, seen, heard);
    found.facts.settle(walk);
    Some(found)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kin {
    WebM,
    Matroska,
}

/// The document type; WHATWG's rule looks for it near the start whatever the header's size says.
fn doc_type(head: &[u8]) -> Option<Kin> {
    let window = &head[..head.len().min(256)];
    let at = memchr::memmem::find(window, &[0x42, 0x82])? + 2;
    let (length, width) = vint(window.get(at..)?, true)?;
    let name = window.get(at + width..)?;
    let name = &name[..usize::try_from(length).ok()?.min(name.len())];
    let name = name.split(|&byte| byte == 0).next()?;
    match name {
        b"webm" => Some(Kin::WebM),
        b"matroska" => Some(Kin::Matroska),
        _ => None,
    }
}

#[derive(Debug, Default)]
struct Matroska {
    tick: Option<u64>,
    duration: Option<f64>,
    tracks: Vec<Track>,
    cluster_time: u64,
    last_block: Option<u64>,
    block_gap: u64,
    segment: bool,
    clusters: u32,
}

#[derive(Debug, Default)]
struct Track {
    kind: u64,
    codec: String,
    default_duration: u64,
    width: u32,
    height: u32,
    channels: Option<u32>,
    rate: Option<f64>,
    output_rate: Option<f64>,
}

/// Tracks beyond these are not looked at.
const MOST_TRACKS: usize = 64;

impl Matroska {
    /// One loop over what lies in segments and clusters; elements with sizes are stepped over or read at fixed depth.
    fn walk(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
        let mut at = 0;
        let mut stated_end = None;
        let mut last_cluster = None;
        while at < bytes.size() {
            let found = match element(bytes, at) {
                Err(_) if self.segment && stated_end.is_some_and(|end| at >= end) => {
                    facts.flag(Flag::TrailingBytes);
                    break;
                }
                other => other?,
            };
            match found.id {
                SEGMENT => {
                    self.segment = true;
                    stated_end = found.end;
                    at = found.body;
                    continue;
                }
                CLUSTER => {
                    self.clusters += 1;
                    last_cluster = Some(found);
                    // A stated cluster is stepped over; only the last one's blocks are of interest.
                    if found.end.is_none() {
                        at = found.body;
                        continue;
                    }
                }
                INFO => self.info(bytes, found)?,
                TRACKS => self.all_tracks(bytes, found)?,
                VOID => {
                    let length = usize::try_from(found.end.unwrap_or(found.body) - found.body).unwrap_or(usize::MAX);
                    if markup::embedded(bytes.peek(found.body, length.min(4 << 10))) {
                        facts.flag(Flag::EmbeddedMarkup);
                    }
                }
                // Inside a cluster of unknown size.
                0xE7 => self.cluster_time = number(bytes, found)?,
                0xA3 => self.block(bytes, found)?,
                BLOCK_GROUP => self.group(bytes, found)?,
                _ => {}
            }
            at = found.end.ok_or(Broken::Bad)?;
            if at > bytes.size() {
                self.last(bytes, last_cluster);
                facts.flag(Flag::SizeClaimWrong);
                return Err(Broken::Short);
            }
        }
        self.last(bytes, last_cluster);
        if stated_end.is_some_and(|end| end > bytes.size()) {
            return Err(Broken::Short);
        }
        if self.segment { Ok(()) } else { Err(Broken::Bad) }
    }

    /// Reads the last cluster's blocks where the file does not say how long it is.
    fn last(&mut self, bytes: &mut Bytes<'_>, cluster: Option<Element>) {
        let Some(Element { body, end: Some(end), .. }) = cluster else {
            return;
        };
        if self.duration.is_some() {
            return;
        }
        let mut at = body;
        while at < end.min(bytes.size()) {
            let Ok(found) = element(bytes, at) else { return };
            let read = match found.id {
                0xE7 => number(bytes, found).map(|time| self.cluster_time = time),
                0xA3 => self.block(bytes, found),
                BLOCK_GROUP => self.group(bytes, found),
                _ => Ok(()),
            };
            let (Ok(()), Some(end)) = (read, found.end) else { return };
            at = end;
        }
    }

    fn info(&mut self, bytes: &mut Bytes<'_>, info: Element) -> Walk {
        children(bytes, info, &mut |bytes, found| {
            match found.id {
                0x2AD7B1 => self.tick = Some(number(bytes, found)?),
                0x4489 => self.duration = float(bytes, found)?,
                _ => {}
            }
            Ok(())
        })
    }

    fn all_tracks(&mut self, bytes: &mut Bytes<'_>, tracks: Element) -> Walk {
        children(bytes, tracks, &mut |bytes, found| {
            if found.id == TRACK && self.tracks.len() < MOST_TRACKS {
                let mut track = Track::default();
                let walk = track.read(bytes, found);
                self.tracks.push(track);
                return walk;
            }
            Ok(())
        })
    }

    fn group(&mut self, bytes: &mut Bytes<'_>, group: Element) -> Walk {
        children(bytes, group, &mut |bytes, found| if found.id == 0xA1 { self.block(bytes, found) } else { Ok(()) })
    }

    fn block(&mut self, bytes: &mut Bytes<'_>, block: Element) -> Walk {
        let (_, width) = vint(bytes.peek(block.body, 8), true).ok_or(Broken::Bad)?;
        let relative = i64::from(bytes.be16(block.body + width as u64)?.cast_signed());
        let time = self.cluster_time.saturating_add_signed(relative);
        if let Some(before) = self.last_block
            && time > before
        {
            self.block_gap = time - before;
        }
        self.last_block = Some(self.last_block.map_or(time, |before| before.max(time)));
        Ok(())
    }

    fn describe(&self, facts: &mut Facts, seen: Option<&Track>, heard: Option<&Track>) {
        if let Some(track) = seen {
            facts.size(track.width, track.height);
            facts.codec = name(&track.codec);
        }
        if let Some(track) = heard {
            let rate = track.output_rate.or(track.rate).unwrap_or(8_000.0);
            let rate = if track.codec == "A_OPUS" { 48_000.0 } else { rate };
            facts.sound(track.channels.unwrap_or(1), if rate.is_finite() { rate.round() as u32 } else { 0 });
            if facts.codec.is_none() {
                facts.codec = name(&track.codec);
            }
        }
        let nanos = self.tick.unwrap_or(1_000_000) as f64;
        if let Some(ticks) = self.duration {
            if nanos > 0.0 && ticks != 0.0 {
                facts.lasts(ticks * nanos / 1e9, Provenance::Container);
            }
        } else if let Some(last) = self.last_block {
            // The last block plays as long as the one before it did, or as its track says.
            let stated = seen.or(heard).map_or(0, |track| track.default_duration) as f64;
            let gap = if stated > 0.0 { stated } else { self.block_gap as f64 * nanos };
            let seconds = (last as f64 * nanos + gap) / 1e9;
            if seconds > 0.0 {
                facts.lasts(seconds, Provenance::Scanned);
            }
        }
    }
}

impl Track {
    fn read(&mut self, bytes: &mut Bytes<'_>, track: Element) -> Walk {
        children(bytes, track, &mut |bytes, found| {
            match found.id {
                0x83 => self.kind = number(bytes, found)?,
                0x86 => self.codec = text(bytes, found)?,
                0x0023_E383 => self.default_duration = number(bytes, found)?,
                0xE0 => children(bytes, found, &mut |bytes, found| {
                    match found.id {
                        0xB0 => self.width = number(bytes, found)?.try_into().unwrap_or(0),
                        0xBA => self.height = number(bytes, found)?.try_into().unwrap_or(0),
                        _ => {}
                    }
                    Ok(())
                })?,
                0xE1 => children(bytes, found, &mut |bytes, found| {
                    match found.id {
                        0x9F => self.channels = number(bytes, found)?.try_into().ok(),
                        0xB5 => self.rate = float(bytes, found)?,
                        0x78B5 => self.output_rate = float(bytes, found)?,
                        _ => {}
                    }
                    Ok(())
                })?,
                _ => {}
            }
            Ok(())
        })
    }
}

/// Our names by Matroska's, which begin with the sort of track.
fn name(codec: &str) -> Option<String> {
    let short = codec.split_once('_')?.1;
    let name = match short {
        "MPEG4/ISO/AVC" => "h264",
        "MPEGH/ISO/HEVC" => "hevc",
        "MPEG/L3" => "mp3",
        "MPEG/L2" => "mp2",
        _ if short.starts_with("AAC") => "aac",
        _ if short.starts_with("PCM") => "pcm",
        _ if short.starts_with("MPEG4/ISO") => "mpeg4",
        _ if short.eq_ignore_ascii_case("ms/vfw/fourcc") || short.eq_ignore_ascii_case("ms/acm") => return None,
        _ => return Some(short.to_ascii_lowercase()),
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::media::{Flag, tests::look};

    fn element(id: &[u8], body: &[u8]) -> Vec<u8> {
        [id, &[0x40 | (body.len() >> 8) as u8, body.len() as u8], body].concat()
    }

    fn header(kin: &[u8]) -> Vec<u8> {
        element(&[0x1A, 0x45, 0xDF, 0xA3], &element(&[0x42, 0x82], kin))
    }

    fn tracks(kinds: &[u8]) -> Vec<u8> {
        let track = |kind: &u8| {
            let audio =
                element(&[0xE1], &[element(&[0x9F], &[2]), element(&[0xB5], &44_100f32.to_be_bytes())].concat());
            let video = element(&[0xE0], &[element(&[0xB0], &[64]), element(&[0xBA], &[48])].concat());
            let codec = element(&[0x86], if *kind == 1 { b"V_VP9" } else { b"A_OPUS" });
            element(&[0xAE], &[element(&[0x83], &[*kind]), codec, if *kind == 1 { video } else { audio }].concat())
        };
        element(&[0x16, 0x54, 0xAE, 0x6B], &kinds.iter().flat_map(track).collect::<Vec<_>>())
    }

    /// As a browser records: nothing has a size, and nobody says how long it is.
    fn recording(kinds: &[u8]) -> Vec<u8> {
        let unknown = [0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        let cluster = |time: u8, blocks: &[u8]| {
            let blocks: Vec<u8> = blocks.iter().flat_map(|at| element(&[0xA3], &[0x81, 0, *at, 0, 9, 9])).collect();
            [&[0x1F, 0x43, 0xB6, 0x75], unknown.as_slice(), &element(&[0xE7], &[time]), &blocks].concat()
        };
        [
            header(b"webm"),
            [0x18, 0x53, 0x80, 0x67].to_vec(),
            unknown.to_vec(),
            tracks(kinds),
            cluster(0, &[0, 20]),
            cluster(100, &[0, 20]),
        ]
        .concat()
    }

    #[test]
    fn a_recording_of_sound_is_audio_and_has_a_length() {
        let found = look(&recording(&[2]));
        assert_eq!(found.mime_type, "audio/webm");
        assert_eq!(found.facts.duration_seconds, Some(0.14));
        assert_eq!((found.facts.channels, found.facts.sample_rate), (Some(2), Some(48_000)));
        assert!(found.facts.well_formed);
    }

    #[test]
    fn a_picture_track_makes_it_video() {
        let found = look(&recording(&[1, 2]));
        assert_eq!(
            (found.mime_type.as_str(), found.facts.width, found.facts.codec.as_deref()),
            ("video/webm", Some(64), Some("vp9"))
        );
    }

    #[test]
    fn a_length_that_is_no_number_is_none() {
        let info = element(&[0x15, 0x49, 0xA9, 0x66], &element(&[0x44, 0x89], &f64::NAN.to_be_bytes()));
        let facts = look(&[header(b"matroska"), element(&[0x18, 0x53, 0x80, 0x67], &info)].concat()).facts;
        assert_eq!(facts.duration_seconds, None);
        assert!(facts.flags.contains(&Flag::SizeClaimWrong));
    }

    #[test]
    fn segments_in_segments_cost_a_step_each() {
        let nest = [0x18, 0x53, 0x80, 0x67, 0xFF].repeat(50_000);
        assert_eq!(look(&[header(b"webm"), nest].concat()).mime_type, "video/webm");
    }
}
