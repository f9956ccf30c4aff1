//! The movie box and its fragments: tracks, and how long they last.
//!
//! Promised: fixed depth, bounded tracks, fragments added up. Deliberately absent: anything
//! that is played rather than measured.

use super::{
    boxes::{self, Found},
    track::{Track, clock},
};
use crate::media::reader::{Broken, Bytes, Walk};

/// More tracks than this are skipped; the facts are those of the first ones anyway.
const MOST_TRACKS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Movie {
    pub(super) present: bool,
    pub(super) has_data: bool,
    pub(super) fragmented: bool,
    pub(super) tracks: Vec<Track>,
    timescale: u32,
    duration: u64,
}

impl Movie {
    /// The longest of the tracks that are seen or heard; the movie's own claim where they make none.
    pub(super) fn seconds(&self) -> Option<f64> {
        let per = |ticks: u64, scale: u32| (scale > 0 && ticks > 0).then(|| ticks as f64 / f64::from(scale));
        let track = |track: &Track| {
            if self.fragmented && track.fragments > 0 {
                return per(track.fragments.saturating_add(track.duration), track.timescale);
            }
            let edited = track.edited.and_then(|ticks| per(ticks, self.timescale));
            edited.or_else(|| per(track.duration, track.timescale))
        };
        let played = self.tracks.iter().filter(|track| track.is_seen() || track.is_heard());
        let longest = played.filter_map(track).reduce(f64::max);
        longest.or_else(|| per(self.duration, self.timescale))
    }

    pub(super) fn read(&mut self, bytes: &mut Bytes<'_>, moov: Found) -> Walk {
        self.present = true;
        boxes::each(bytes, moov.body, moov.end, &mut |bytes, found| match &found.name {
            b"mvhd" => {
                (self.timescale, self.duration) = clock(bytes, found)?;
                Ok(())
            }
            b"trak" if self.tracks.len() < MOST_TRACKS => {
                let mut track = Track::default();
                let walk = track.read(bytes, found);
                self.tracks.push(track);
                walk
            }
            b"mvex" => self.extends(bytes, found),
            _ => Ok(()),
        })
    }

    fn extends(&mut self, bytes: &mut Bytes<'_>, mvex: Found) -> Walk {
        self.fragmented = true;
        boxes::each(bytes, mvex.body, mvex.end, &mut |bytes, found| {
            if &found.name == b"trex" {
                let (id, default) = (bytes.be32(found.body + 4)?, bytes.be32(found.body + 12)?);
                if let Some(track) = self.tracks.iter_mut().find(|track| track.id == id) {
                    track.default_sample = default;
                }
            }
            Ok(())
        })
    }

    /// Adds what one fragment plays to its tracks.
    pub(super) fn fragment(&mut self, bytes: &mut Bytes<'_>, moof: Found) -> Walk {
        self.fragmented = true;
        boxes::each(bytes, moof.body, moof.end, &mut |bytes, found| {
            if &found.name != b"traf" {
                return Ok(());
            }
            let (mut id, mut default, mut played) = (0, None, 0u64);
            let tracks = &self.tracks;
            boxes::each(bytes, found.body, found.end, &mut |bytes, found| {
                match &found.name {
                    b"tfhd" => {
                        let flags = bytes.be32(found.body)?;
                        id = bytes.be32(found.body + 4)?;
                        let skip = if flags & 1 == 0 { 0 } else { 8 } + if flags & 2 == 0 { 0 } else { 4 };
                        if flags & 8 != 0 {
                            default = Some(bytes.be32(found.body + 8 + skip)?);
                        }
                    }
                    b"trun" => {
                        let each =
                            default.or(tracks.iter().find(|track| track.id == id).map(|track| track.default_sample));
                        played = played.saturating_add(run(bytes, found, each.unwrap_or(0))?);
                    }
                    _ => {}
                }
                Ok(())
            })?;
            if let Some(track) = self.tracks.iter_mut().find(|track| track.id == id) {
                track.fragments = track.fragments.saturating_add(played);
            }
            Ok(())
        })
    }
}

/// How long one run of samples plays.
fn run(bytes: &mut Bytes<'_>, trun: Found, each: u32) -> Walk<u64> {
    let flags = bytes.be32(trun.body)?;
    let count = bytes.be32(trun.body + 4)?;
    if flags & 0x100 == 0 {
        return Ok(u64::from(count) * u64::from(each));
    }
    let fields = [0x100, 0x200, 0x400, 0x800].into_iter().filter(|bit| flags & bit != 0).count() as u64;
    let mut at = trun.body + 8 + if flags & 1 == 0 { 0 } else { 4 } + if flags & 4 == 0 { 0 } else { 4 };
    if at + u64::from(count) * fields * 4 > trun.end {
        return Err(Broken::Bad);
    }
    let mut sum = 0;
    for _ in 0..count {
        bytes.step()?;
        sum += u64::from(bytes.be32(at)?);
        at += fields * 4;
    }
    Ok(sum)
}
