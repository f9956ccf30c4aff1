//! The facts of one asset: what its container states, from where each number is, and what is odd.
//!
//! Promised: a number is there only when it is known, finite and possible; width and height are as displayed.
//! Deliberately absent: guesses.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    markup,
    reader::{Broken, Bytes, Walk},
};

/// What is known about the bytes beyond their type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// The container's own structure holds.
    #[serde(default)]
    pub well_formed: bool,
    /// Pixels across, as displayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Pixels down, as displayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// The EXIF orientation, 1 to 8, as stored; for containers with their own rotation, its EXIF equivalent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orientation: Option<u16>,
    /// Pictures in the file: frames of an animation, pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<u32>,
    /// Playing time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<f64>,
    /// Audio channels of the first audio track.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Samples per second of the first audio track.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    /// The codec of the picture, or of the sound where there is no picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codec: Option<String>,
    /// The text's encoding, when it is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charset: Option<String>,
    /// Where each number comes from, by its member name.
    #[serde(default)]
    pub provenance: BTreeMap<String, Provenance>,
    /// What is odd.
    #[serde(default)]
    pub flags: BTreeSet<Flag>,
}

/// Where a number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// The container states it.
    Container,
    /// Every frame was looked at.
    Scanned,
    /// It follows from how many bytes there are.
    Bytes,
}

/// Something about the bytes that their user should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// There are bytes after the container's end.
    TrailingBytes,
    /// HTML or script markup lies where it has no meaning to the format.
    EmbeddedMarkup,
    /// A viewer may run something in it.
    ActiveContent,
    /// The bytes end before the container does.
    Truncated,
    /// It was declared as another family's type.
    DeclaredMismatch,
    /// A stated size, count or length cannot be true.
    SizeClaimWrong,
}

/// A longer claim is a lie or a broken header: a year of sound is 30 GB at the lowest rate that people use.
const LONGEST_SECONDS: f64 = 366.0 * 86_400.0;

/// No format here stores more; a header that says so is broken.
const MOST_CHANNELS: u32 = 1024;

/// DSD at sixteen times its first rate, with room.
const HIGHEST_RATE: u32 = 100_000_000;

/// How much of what lies behind a container is searched for markup.
const SEARCHED_BEHIND: usize = 64 << 10;

impl Facts {
    pub(super) fn flag(&mut self, flag: Flag) {
        self.flags.insert(flag);
    }

    /// Width and height as stored. Zero is no size.
    pub(super) fn size(&mut self, width: u32, height: u32) {
        if width == 0 || height == 0 {
            return;
        }
        self.width = Some(width);
        self.height = Some(height);
        self.from("width", Provenance::Container);
        self.from("height", Provenance::Container);
    }

    pub(super) fn turned(&mut self, orientation: u16) {
        if (1..=8).contains(&orientation) {
            self.orientation = Some(orientation);
            self.from("orientation", Provenance::Container);
        }
    }

    pub(super) fn pictures(&mut self, count: u32, from: Provenance) {
        if count > 0 {
            self.frames = Some(count);
            self.from("frames", from);
        }
    }

    /// A length of time; what cannot be is flagged instead.
    pub(super) fn lasts(&mut self, seconds: f64, from: Provenance) {
        if !(0.0..=LONGEST_SECONDS).contains(&seconds) {
            self.flag(Flag::SizeClaimWrong);
            return;
        }
        // Microseconds are all that any container means.
        self.duration_seconds = Some((seconds * 1e6).round() / 1e6);
        self.from("durationSeconds", from);
    }

    /// A length as a number of ticks; nothing when the clock stands still.
    pub(super) fn lasts_ticks(&mut self, ticks: u64, per_second: u64, from: Provenance) {
        if per_second > 0 {
            self.lasts(ticks as f64 / per_second as f64, from);
        }
    }

    pub(super) fn sound(&mut self, channels: u32, sample_rate: u32) {
        if (1..=MOST_CHANNELS).contains(&channels) {
            self.channels = Some(channels);
            self.from("channels", Provenance::Container);
        }
        if (1..=HIGHEST_RATE).contains(&sample_rate) {
            self.sample_rate = Some(sample_rate);
            self.from("sampleRate", Provenance::Container);
        }
    }

    pub(super) fn coded(&mut self, codec: &str) {
        self.codec = Some(codec.to_owned());
    }

    /// Notes how a walk through the structure ended.
    pub(super) fn settle(&mut self, walk: Walk) {
        // A spent budget proves nothing against the bytes.
        self.well_formed = matches!(walk, Ok(()) | Err(Broken::Spent));
        if walk == Err(Broken::Short) {
            self.flag(Flag::Truncated);
        }
    }

    /// Notes what lies behind the container's end.
    pub(super) fn ends_at(&mut self, bytes: &mut Bytes<'_>, end: u64) {
        if end < bytes.size() {
            self.flag(Flag::TrailingBytes);
            if markup::embedded(bytes.peek(end, SEARCHED_BEHIND)) {
                self.flag(Flag::EmbeddedMarkup);
            }
        }
    }

    /// From stored to displayed: orientations 5 to 8 lie on their side.
    pub(super) fn turn_upright(&mut self) {
        if matches!(self.orientation, Some(5..=8)) {
            std::mem::swap(&mut self.width, &mut self.height);
        }
    }

    fn from(&mut self, member: &str, provenance: Provenance) {
        self.provenance.insert(member.to_owned(), provenance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_facts_are_not_written_and_unknown_ones_not_read() {
        let json = serde_json::to_value(Facts::default()).expect("plain data");
        assert_eq!(json, serde_json::json!({"wellFormed": false, "provenance": {}, "flags": []}));
        let facts: Facts = serde_json::from_str(r#"{"wellFormed": true, "pages": 4}"#).expect("lenient");
        assert!(facts.well_formed);
    }

    #[test]
    fn impossible_lengths_are_not_facts() {
        for seconds in [f64::NAN, f64::INFINITY, -1.0, 1e9] {
            let mut facts = Facts::default();
            facts.lasts(seconds, Provenance::Container);
            assert_eq!(facts.duration_seconds, None);
            assert!(facts.flags.contains(&Flag::SizeClaimWrong));
        }
    }

    #[test]
    fn sideways_pictures_are_described_upright() {
        let mut facts = Facts::default();
        facts.size(40, 20);
        facts.turned(6);
        facts.turn_upright();
        assert_eq!((facts.width, facts.height), (Some(20), Some(40)));
    }
}
