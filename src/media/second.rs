//! A second opinion: what our own rules leave open, the libraries are asked, `image` for a size and `symphonia` for a length of time.
//!
//! Promised: only an absent fact is filled in, never one of ours replaced, and never a type; only small files are shown to a library,
//! because its own appetite is not ours to bound. A library that panics or hangs has said nothing: `second_opinion` catches the one, and
//! who calls it the other. Deliberately absent: any decoding to pixels or samples.

use std::io::Cursor;

use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, TrackType};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;

use super::facts::Provenance;
use super::reader::{Bytes, MOST_AT_ONCE};
use super::{Found, Kind};

/// Streams without a container: no header states their length, and a library's answer is a guess from the first frames.
const GUESSED: [&str; 2] = ["audio/mpeg", "audio/aac"];

/// Asks whoever may know what is still unknown.
pub(super) fn ask(bytes: &mut Bytes<'_>, found: &mut Found) {
    let Some(wish) = Wish::of(found, bytes.size()) else {
        return;
    };
    let whole = bytes.peek(0, MOST_AT_ONCE).to_vec();
    match wish {
        Wish::Size => ask_for_size(&whole, found),
        Wish::Length => ask_for_length(whole, found),
    }
}

/// What our rules have left open, and a library may know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Width and height.
    Size,
    /// How long it plays.
    Length,
}

impl Wish {
    /// What there is to ask about bytes of that size; nothing about most.
    pub(super) fn of(found: &Found, size: u64) -> Option<Self> {
        if size > MOST_AT_ONCE as u64 {
            return None;
        }
        match found.kind {
            Kind::Image => found.facts.width.is_none().then_some(Self::Size),
            Kind::Audio | Kind::Video => {
                let open = found.facts.duration_seconds.is_none() && !GUESSED.contains(&found.mime_type.as_str());
                open.then_some(Self::Length)
            }
            _ => None,
        }
    }
}

fn ask_for_size(whole: &[u8], found: &mut Found) {
    let reader = image::ImageReader::new(Cursor::new(whole)).with_guessed_format();
    if let Some((width, height)) = reader.ok().and_then(|reader| reader.into_dimensions().ok()) {
        found.facts.size(width, height);
    }
}

fn ask_for_length(whole: Vec<u8>, found: &mut Found) {
    let stream = MediaSourceStream::new(Box::new(Cursor::new(whole)), MediaSourceStreamOptions::default());
    let probed = symphonia::default::get_probe().probe(
        &Hint::new(),
        stream,
        FormatOptions::default(),
        MetadataOptions::default(),
    );
    let Ok(reader) = probed else {
        return;
    };
    let kind = if found.kind == Kind::Video { TrackType::Video } else { TrackType::Audio };
    let track = reader.first_track(kind).or_else(|| reader.first_track(TrackType::Audio));
    let length = track.and_then(|track| {
        let (base, duration) = (track.time_base?, track.duration?);
        base.calc_duration(duration)
    });
    // A length of nothing is what a header says that does not know.
    if let Some(seconds) = length.map(|time| time.as_secs_f64()).filter(|seconds| *seconds > 0.0) {
        found.facts.lasts(seconds, Provenance::Container);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(mime_type: &str, whole: &[u8]) -> Found {
        let mut source = Cursor::new(whole);
        let mut bytes = Bytes::new(&mut source, whole.len() as u64);
        let mut found = Found::of(mime_type);
        ask(&mut bytes, &mut found);
        found
    }

    #[test]
    fn an_open_size_is_filled_in() {
        let mut png = Cursor::new(Vec::new());
        image::RgbImage::new(7, 5).write_to(&mut png, image::ImageFormat::Png).expect("memory takes it");

        let found = asked("image/png", png.get_ref());

        assert_eq!((found.facts.width, found.facts.height), (Some(7), Some(5)));
    }

    #[test]
    fn an_open_length_is_filled_in() {
        let mut wav =
            b"RIFF\x64\x1f\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x40\x1f\0\0"
                .to_vec();
        wav.extend([128; 8_000]);

        assert_eq!(asked("audio/wav", &wav).facts.duration_seconds, Some(1.0));
    }

    #[test]
    fn a_fact_of_ours_is_never_replaced() {
        let mut png = Cursor::new(Vec::new());
        image::RgbImage::new(7, 5).write_to(&mut png, image::ImageFormat::Png).expect("memory takes it");
        let mut source = Cursor::new(png.get_ref().as_slice());
        let mut bytes = Bytes::new(&mut source, png.get_ref().len() as u64);
        let mut found = Found::of("image/png");
        found.facts.size(1, 1);

        ask(&mut bytes, &mut found);

        assert_eq!(found.facts.width, Some(1));
    }

    #[test]
    fn nonsense_stays_unknown() {
        let found = asked("image/png", b"nothing of the kind");
        assert_eq!(found.facts.width, None);
        assert_eq!(asked("audio/mpeg", b"nothing of the kind").facts.duration_seconds, None);
    }
}
