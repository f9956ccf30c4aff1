//! Files of boxes: MP4, QuickTime, 3GPP, HEIF, AVIF and Canon's CR3 (ISO/IEC 14496-12).
//!
//! Promised: the brand says which kin it is, the tracks whether it is seen or only heard. Deliberately absent: trust
//! in a brand where tracks are there to look at.

use super::{boxes, movie::Movie, track::Track};
use crate::media::{
    Facts, Flag, Found, Provenance, image, markup,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !begins_with_box(head) {
        return None;
    }
    let brands = Brands::read(head);
    if let Some(name) = brands.picture() {
        return Some(image::probe_heif(bytes, name));
    }
    let mut movie = Movie::default();
    let mut facts = Facts::default();
    let walk = top(bytes, &mut movie, &mut facts);
    let mut found = Found::of(brands.name(&movie));
    found.facts = facts;
    describe(&mut found, &movie);
    found.facts.settle(walk);
    Some(found)
}

/// A file type, or one of the boxes that QuickTime may begin with, whole or followed by another.
fn begins_with_box(head: &[u8]) -> bool {
    let Some(name) = head.get(4..8) else {
        return false;
    };
    match name {
        b"ftyp" | b"styp" => true,
        b"moov" | b"mdat" | b"free" | b"skip" | b"wide" | b"pnot" | b"moof" | b"sidx" => {
            let length = head.be32(0).unwrap_or(0) as usize;
            let follower = head.get(length.saturating_add(4)..length.saturating_add(8));
            let known = |name: &[u8]| {
                matches!(name, b"ftyp" | b"moov" | b"mdat" | b"free" | b"skip" | b"wide" | b"udta" | b"moof" | b"sidx")
            };
            (length == 1 || length >= 8) && follower.is_none_or(known) && (name == b"mdat" || inner_box(head))
        }
        _ => false,
    }
}

/// The first box is followed, or filled, by another.
fn inner_box(head: &[u8]) -> bool {
    let length = head.be32(0).unwrap_or(0) as usize;
    head.len() > length || head.get(12..16).is_some_and(|name| name.iter().all(u8::is_ascii_alphanumeric))
}

#[derive(Debug, Default)]
struct Brands {
    major: [u8; 4],
    compatible: Vec<[u8; 4]>,
}

impl Brands {
    /// From the file type box, which may stand behind free space.
    fn read(head: &[u8]) -> Self {
        let mut at = 0usize;
        for _ in 0..16 {
            let length = head.be32(at).unwrap_or(0) as usize;
            if head.has(at + 4, b"ftyp") || head.has(at + 4, b"styp") {
                let Some(major) = head.part(at + 8) else {
                    return Self::default();
                };
                let end = at.saturating_add(length).min(head.len());
                let listed = head.get(at + 16..end).unwrap_or_default();
                let compatible: Vec<[u8; 4]> =
                    listed.chunks_exact(4).take(MOST_BRANDS).filter_map(|brand| brand.try_into().ok()).collect();
                // A major brand that says nothing leaves it to the others.
                let telling = compatible.iter().copied().find(|&brand| is_telling(brand));
                let major = if is_telling(major) { major } else { telling.unwrap_or(major) };
                return Self { major, compatible };
            }
            if length < 8 {
                break;
            }
            at = at.saturating_add(length);
        }
        Self { major: *b"qt  ", compatible: Vec::new() }
    }

    fn compatible(&self, brand: [u8; 4]) -> bool {
        self.compatible.contains(&brand)
    }

    /// The name of a HEIF picture.
    fn picture(&self) -> Option<&'static str> {
        Some(match &self.major {
            b"avif" | b"avis" => "image/avif",
            b"heic" | b"heix" | b"heim" | b"heis" => "image/heic",
            b"hevc" | b"hevx" | b"hevm" | b"hevs" => "image/heic-sequence",
            b"mif1" | b"mif2" | b"miaf" if self.compatible(*b"avif") || self.compatible(*b"avis") => "image/avif",
            b"mif1" | b"mif2" | b"miaf" | b"avci" | b"avic" | b"jpeg" | b"j2ki" | b"1pic" | b"geo1" | b"unif" => {
                "image/heif"
            }
            b"msf1" if self.compatible(*b"avis") => "image/avif",
            b"msf1" => "image/heif-sequence",
            _ => return None,
        })
    }

    fn name(&self, movie: &Movie) -> &'static str {
        let audio_brand = matches!(&self.major, b"M4A " | b"M4B " | b"M4P " | b"F4A " | b"F4B " | b"NDAS");
        let seen = movie.tracks.iter().any(|track| track.is_seen() && !(audio_brand && track.is_still()));
        let heard = movie.tracks.iter().any(Track::is_heard);
        let audio = !seen && (heard || audio_brand);
        match &self.major {
            b"crx " => "image/x-canon-cr3",
            b"qt  " | b"mqt " => "video/quicktime",
            [b'3', b'g', b'2', _] if audio => "audio/3gpp2",
            [b'3', b'g', b'2', _] => "video/3gpp2",
            [b'3', b'g', _, _] if audio => "audio/3gpp",
            [b'3', b'g', _, _] => "video/3gpp",
            _ if audio => "audio/mp4",
            b"M4V " | b"M4VH" | b"M4VP" => "video/x-m4v",
            _ => "video/mp4",
        }
    }
}

/// Brands that say which kin a file is of.
fn is_telling(brand: [u8; 4]) -> bool {
    match &brand {
        b"qt  " | b"mqt " | b"crx " | b"NDAS" | b"avc1" | b"dash" | b"msdh" | b"mp41" | b"mp42" | b"mp71" => true,
        [b'i', b's', b'o', _] | [b'3', b'g', _, _] | [b'M', b'4', _, _] | [b'F', b'4', _, _] => true,
        _ => Brands { major: brand, compatible: Vec::new() }.picture().is_some(),
    }
}

/// A handful is usual; a flood is not read.
const MOST_BRANDS: usize = 64;

/// How much of free space is searched for markup.
const SEARCHED: usize = 4 << 10;

fn top(bytes: &mut Bytes<'_>, movie: &mut Movie, facts: &mut Facts) -> Walk {
    let size = bytes.size();
    let mut at = 0;
    let mut broken = Ok(());
    while let Some(found) = match boxes::next(bytes, at, size) {
        Ok(next) => next,
        Err(reason) => {
            broken = Err(reason);
            None
        }
    } {
        match &found.name {
            b"moov" if !movie.present => broken = broken.and(movie.read(bytes, found)),
            b"moof" => broken = broken.and(movie.fragment(bytes, found)),
            b"mdat" => movie.has_data = true,
            b"free" | b"skip" => {
                let part = usize::try_from(found.end - found.body).unwrap_or(usize::MAX).min(SEARCHED);
                if markup::embedded(bytes.peek(found.body, part)) {
                    facts.flag(Flag::EmbeddedMarkup);
                }
            }
            name if !name.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') => {
                if movie.present {
                    facts.flag(Flag::TrailingBytes);
                    return broken;
                }
                return Err(Broken::Bad);
            }
            _ => {}
        }
        at = found.end;
    }
    if broken.is_ok() && at < size {
        facts.flag(Flag::TrailingBytes);
    }
    broken.and(if movie.present || movie.fragmented { Ok(()) } else { Err(Broken::Bad) })
}

fn describe(found: &mut Found, movie: &Movie) {
    let facts = &mut found.facts;
    let is_raw = found.mime_type == "image/x-canon-cr3";
    let area = |track: &&Track| u64::from(track.width) * u64::from(track.height);
    let seen = movie.tracks.iter().filter(|track| track.is_seen());
    let seen =
        if is_raw { seen.max_by_key(area) } else { seen.clone().find(|track| area(track) > 0).or(seen.clone().next()) };
    let heard = movie.tracks.iter().find(|track| track.is_heard());
    if !found.mime_type.starts_with("audio/")
        && let Some(track) = seen
    {
        facts.size(track.width, track.height);
        if !is_raw && track.orientation > 1 {
            facts.turned(track.orientation);
        }
        facts.codec = track.codec.clone();
    }
    if is_raw {
        return;
    }
    if let Some(track) = heard {
        facts.sound(track.channels, track.sample_rate);
        if facts.codec.is_none() {
            facts.codec = track.codec.clone();
        }
    }
    if let Some(seconds) = movie.seconds() {
        facts.lasts(seconds, if movie.fragmented { Provenance::Scanned } else { Provenance::Container });
    }
}

#[cfg(test)]
mod tests {
    use crate::media::{Flag, Provenance, tests::look};

    fn boxed(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32 + 8).to_be_bytes(), name.as_slice(), body].concat()
    }

    fn track(handler: &[u8; 4]) -> Vec<u8> {
        let mdhd = boxed(b"mdhd", &[&[0; 12][..], &1000u32.to_be_bytes(), &2500u32.to_be_bytes(), &[0; 4]].concat());
        let hdlr = boxed(b"hdlr", &[&[0; 8], handler.as_slice(), &[0; 13]].concat());
        let entry = if handler == b"soun" {
            boxed(b"mp4a", &[&[0; 16][..], &[0, 2, 0, 16, 0, 0, 0, 0], &(44_100u32 << 16).to_be_bytes()].concat())
        } else {
            boxed(b"avc1", &[&[0; 24][..], &[0, 64, 0, 48], &[0; 50]].concat())
        };
        let stsd = boxed(b"stsd", &[&[0, 0, 0, 0, 0, 0, 0, 1], entry.as_slice()].concat());
        let stbl = boxed(b"stbl", &stsd);
        boxed(b"trak", &boxed(b"mdia", &[mdhd, hdlr, boxed(b"minf", &stbl)].concat()))
    }

    fn movie(brand: &[u8; 4], tracks: &[Vec<u8>]) -> Vec<u8> {
        [boxed(b"ftyp", &[brand.as_slice(), &[0; 4]].concat()), boxed(b"moov", &tracks.concat()), boxed(b"mdat", b"")]
            .concat()
    }

    #[test]
    fn tracks_decide_not_brands() {
        for (brand, tracks, name) in [
            (b"isom", vec![track(b"soun")], "audio/mp4"),
            (b"mp42", vec![track(b"soun")], "audio/mp4"),
            (b"M4B ", vec![track(b"soun")], "audio/mp4"),
            (b"M4A ", vec![track(b"vide"), track(b"soun")], "video/mp4"),
            (b"3gp4", vec![track(b"soun")], "audio/3gpp"),
            (b"qt  ", vec![track(b"vide")], "video/quicktime"),
        ] {
            assert_eq!(look(&movie(brand, &tracks)).mime_type, name);
        }
    }

    #[test]
    fn the_facts_of_a_film() {
        let facts = look(&movie(b"isom", &[track(b"vide"), track(b"soun")])).facts;
        assert_eq!((facts.width, facts.height, facts.codec.as_deref()), (Some(64), Some(48), Some("h264")));
        assert_eq!((facts.channels, facts.sample_rate, facts.duration_seconds), (Some(2), Some(44_100), Some(2.5)));
        assert!(facts.well_formed && facts.flags.is_empty(), "{facts:?}");
    }

    #[test]
    fn surround_sound_counts_its_channels_itself() {
        // Mode 3/2 with the low-frequency channel, behind ten bits; 26 for the enhanced form.
        for (entry, name, description) in
            [(b"ac-3", b"dac3", [0x10, 0x3D, 0xE0, 0].as_slice()), (b"ec-3", b"dec3", &[0x07, 0x00, 0x20, 0x0F, 0, 0])]
        {
            let fields = [&[0; 16][..], &[0, 2, 0, 16, 0, 0, 0, 0], &(48_000u32 << 16).to_be_bytes()].concat();
            let entry = boxed(entry, &[fields, boxed(name, description)].concat());
            let stsd = boxed(b"stsd", &[&[0, 0, 0, 0, 0, 0, 0, 1], entry.as_slice()].concat());
            let hdlr = boxed(b"hdlr", &[&[0; 8][..], b"soun", &[0; 13]].concat());
            let minf = boxed(b"minf", &boxed(b"stbl", &stsd));
            let trak = boxed(b"trak", &boxed(b"mdia", &[hdlr, minf].concat()));
            assert_eq!(look(&movie(b"isom", &[trak])).facts.channels, Some(6), "{name:?}");
        }
    }

    #[test]
    fn fragments_add_up() {
        let empty = track(b"soun");
        let id = |id: u32| [&[0; 4][..], &id.to_be_bytes()].concat();
        let header = [&[0; 12][..], &7u32.to_be_bytes(), &[0; 68]].concat();
        let track = boxed(b"trak", &[boxed(b"tkhd", &header), empty[8..].to_vec()].concat());
        let mut file = movie(b"iso5", &[track, boxed(b"mvex", b"")]);
        let time = [0x08u32, 7, 500].map(u32::to_be_bytes).concat();
        let run = boxed(b"trun", &id(3));
        let fragment = boxed(b"moof", &boxed(b"traf", &[boxed(b"tfhd", &time), run].concat()));
        file.extend([fragment.clone(), fragment].concat());

        let facts = look(&file).facts;

        // What the header states, and twice three samples of half a second.
        assert_eq!(facts.duration_seconds, Some(5.5));
        assert_eq!(facts.provenance.get("durationSeconds"), Some(&Provenance::Scanned));
    }

    #[test]
    fn a_cut_film_is_truncated() {
        let mut file = movie(b"isom", &[track(b"soun")]);
        file.extend_from_slice(b"\0\0\x10\0mdat");
        let facts = look(&file).facts;
        assert!(!facts.well_formed && facts.flags.contains(&Flag::Truncated));
        assert_eq!(facts.duration_seconds, Some(2.5));
    }
}
