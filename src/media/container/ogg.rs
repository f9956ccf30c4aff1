//! Ogg (RFC 3533): pages of streams, named by their first packets.
//!
//! Promised: the length is the last granule position less where the stream begins and what the codec wants skipped, link
//! by link in a chain, and never longer than its packets could play. Deliberately absent: what is in packets of sound.

mod stream;

use crate::media::{
    Facts, Flag, Found, Provenance,
    reader::{Broken, Bytes, Fields, Walk},
};

use stream::{Codec, Stream};

/// Beyond this the pages in the middle are not visited: the first and the last tell the length.
const WALKED: u64 = 64 << 20;

/// A page has at most 65,307 bytes, so the last one's start lies in here.
const TAIL: u64 = 128 << 10;

/// Streams that are looked at; more are a flood.
const MOST_STREAMS: usize = 64;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !head.starts_with(b"OggS\0") {
        return None;
    }
    let mut ogg = Ogg::default();
    let walk = ogg.walk(bytes);
    let pictures = ogg.streams.iter().find(|stream| stream.codec.is_some_and(|codec| codec.is_picture()));
    let sound = ogg.streams.iter().find(|stream| stream.codec.is_some_and(|codec| codec.is_sound()));
    let skeleton = ogg.streams.iter().any(|stream| stream.codec == Some(Codec::Skeleton));
    let mut found = Found::of(match (pictures, sound) {
        (Some(_), _) => "video/ogg",
        (None, Some(_)) => "audio/ogg",
        (None, None) if skeleton => "video/ogg",
        (None, None) => "application/ogg",
    });
    if let Some(stream) = pictures {
        found.facts.size(stream.width, stream.height);
    }
    if let Some(stream) = sound {
        found.facts.sound(stream.channels, stream.rate);
    }
    if let Some(codec) = pictures.or(sound).and_then(|stream| stream.codec) {
        found.facts.coded(codec.name());
    }
    ogg.length(&mut found.facts);
    found.facts.settle(walk);
    Some(found)
}

#[derive(Debug, Default)]
struct Ogg {
    streams: Vec<Stream>,
    link: u32,
}

#[derive(Debug)]
struct Page {
    flags: u8,
    granule: u64,
    serial: u32,
    body: u64,
    end: u64,
    packets: u64,
    /// How long each part of a packet is; one below 255 is a packet's last.
    lacing: Vec<u8>,
}

impl Ogg {
    fn walk(&mut self, bytes: &mut Bytes<'_>) -> Walk {
        let mut at = 0;
        let mut data_begun = false;
        while at < bytes.size() {
            if at > WALKED && bytes.size() - at > TAIL {
                return self.tail(bytes, at);
            }
            let page = match page(bytes, at) {
                Ok(page) => page,
                Err(reason) => {
                    if at == 0 {
                        self.first_cut(bytes);
                    }
                    // What comes last still tells the length.
                    let _ = self.tail(bytes, at);
                    return Err(reason);
                }
            };
            if page.flags & 2 != 0 {
                // A beginning after data is the next link of a chain.
                if data_begun {
                    self.link += 1;
                    data_begun = false;
                }
                if self.streams.len() < MOST_STREAMS {
                    let packet = bytes.peek(page.body, usize::try_from(page.end - page.body).unwrap_or(0)).to_vec();
                    let mut stream = Stream::begin(&packet);
                    (stream.serial, stream.link) = (page.serial, self.link);
                    self.streams.push(stream);
                }
            } else {
                data_begun = true;
            }
            self.note(bytes, &page);
            at = page.end;
        }
        if self.streams.is_empty() { Err(Broken::Bad) } else { Ok(()) }
    }

    /// A first page that is cut still names its stream.
    fn first_cut(&mut self, bytes: &mut Bytes<'_>) {
        let lacing = bytes.u8(26).unwrap_or(0);
        let packet = bytes.peek(27 + u64::from(lacing), 64).to_vec();
        self.streams.push(Stream::begin(&packet));
    }

    fn note(&mut self, bytes: &mut Bytes<'_>, page: &Page) {
        // The newest stream of that number: chains may use it again.
        let Some(stream) = self.streams.iter_mut().rev().find(|stream| stream.serial == page.serial) else {
            return;
        };
        stream.packets = stream.packets.saturating_add(page.packets);
        if stream.wants_start() {
            // A page may begin with the rest of a packet, which was counted where it began.
            let (mut at, mut begins, mut samples) = (page.body, page.flags & 1 == 0, 0u64);
            for &part in &page.lacing {
                if begins {
                    samples += stream.samples_in(bytes.peek(at, usize::from(part).min(16)));
                }
                begins = part < 255;
                at += u64::from(part);
            }
            // The last page may end before its packets do, which says nothing about the beginning.
            stream.begins(page.granule, samples, page.flags & 4 != 0);
        }
        if page.granule != u64::MAX && page.granule >> 63 == 0 {
            stream.last = Some(stream.last.unwrap_or(0).max(page.granule));
        }
    }

    /// Looks for the last pages by their mark, and believes those that are whole.
    fn tail(&mut self, bytes: &mut Bytes<'_>, walked: u64) -> Walk {
        let start = bytes.size().saturating_sub(TAIL).max(walked);
        let (at, tail) = bytes.tail(usize::try_from(bytes.size() - start).unwrap_or(0));
        // What was jumped over held at most one packet per byte.
        let jumped = at.saturating_sub(walked);
        for stream in &mut self.streams {
            stream.packets = stream.packets.saturating_add(jumped);
        }
        let mut last_end = at;
        for found in memchr::memmem::find_iter(&tail, b"OggS\0") {
            if at + (found as u64) < last_end {
                continue;
            }
            if let Ok(page) = page(bytes, at + found as u64) {
                self.note(bytes, &page);
                last_end = page.end;
            }
        }
        if last_end == bytes.size() { Ok(()) } else { Err(Broken::Short) }
    }

    /// Links play one after another, the streams of a link together.
    fn length(&self, facts: &mut Facts) {
        let mut seconds = 0.0;
        let mut known = false;
        for link in 0..=self.link {
            let lengths = self.streams.iter().filter(|stream| stream.link == link).filter_map(Stream::seconds);
            if let Some(longest) = lengths.reduce(f64::max) {
                seconds += longest;
                known = true;
            }
        }
        if self.streams.iter().any(Stream::lies) {
            facts.flag(Flag::SizeClaimWrong);
        }
        if known {
            facts.lasts(seconds, Provenance::Container);
        }
    }
}

fn page(bytes: &mut Bytes<'_>, at: u64) -> Walk<Page> {
    bytes.step()?;
    let header: [u8; 27] = bytes.array(at)?;
    if !header.starts_with(b"OggS\0") {
        return Err(Broken::Bad);
    }
    let lacing = bytes.take(at + 27, header[26].into())?;
    let length: u64 = lacing.iter().map(|&byte| u64::from(byte)).sum();
    let body = at + 27 + lacing.len() as u64;
    bytes.reaches(body + length)?;
    Ok(Page {
        flags: header[5],
        granule: header.le64(6).unwrap_or(u64::MAX),
        serial: header.le32(14).unwrap_or(0),
        body,
        end: body + length,
        packets: lacing.iter().filter(|&&byte| byte < 255).count() as u64,
        lacing,
    })
}

#[cfg(test)]
mod tests {
    use crate::media::{Flag, tests::look};

    fn page(flags: u8, granule: i64, packet: &[u8]) -> Vec<u8> {
        let lacing: Vec<u8> = [vec![255; packet.len() / 255], vec![(packet.len() % 255) as u8]].concat();
        [
            b"OggS\0",
            [flags].as_slice(),
            &granule.to_le_bytes(),
            &[7, 0, 0, 0],
            &[0; 8],
            &[lacing.len() as u8],
            &lacing,
            packet,
        ]
        .concat()
    }

    fn opus(skip: u16, last: i64) -> Vec<u8> {
        let head = [b"OpusHead\x01\x02", skip.to_le_bytes().as_slice(), &44_100u32.to_le_bytes(), &[0; 3]].concat();
        let packets: Vec<u8> = (0..20).flat_map(|_| page(0, -1, b"xx")).collect();
        [page(2, 0, &head), page(0, 0, b"OpusTags"), packets, page(4, last, b"yy")].concat()
    }

    #[test]
    fn opus_lasts_from_its_skip_to_its_last_granule() {
        for skip in [312, 3840] {
            let found = look(&opus(skip, 48_000 + i64::from(skip)));
            assert_eq!(found.mime_type, "audio/ogg");
            assert_eq!((found.facts.duration_seconds, found.facts.sample_rate), (Some(1.0), Some(48_000)));
            assert!(found.facts.well_formed && found.facts.flags.is_empty());
        }
    }

    #[test]
    fn a_recording_that_begins_in_the_middle_lasts_from_there() {
        // Packets of 20 ms (configuration 1, one frame), cut out of a stream that had played for ten minutes.
        let head = [b"OpusHead\x01\x01", 312u16.to_le_bytes().as_slice(), &48_000u32.to_le_bytes(), &[0; 3]].concat();
        let began = 600 * 48_000;
        let sound: Vec<u8> = (1..=50).flat_map(|n| page(0, began + n * 960, b"\x08x")).collect();
        let facts = look(&[page(2, 0, &head), page(0, 0, b"OpusTags"), sound].concat()).facts;
        assert_eq!(facts.duration_seconds, Some((48_000.0 - 312.0) / 48_000.0));
        assert!(facts.flags.is_empty(), "{facts:?}");
    }

    #[test]
    fn a_granule_beyond_the_packets_is_a_lie() {
        for last in [i64::MAX, 1 << 40] {
            let facts = look(&opus(312, last)).facts;
            assert_eq!(facts.duration_seconds, None);
            assert!(facts.flags.contains(&Flag::SizeClaimWrong));
        }
    }

    #[test]
    fn links_of_a_chain_add_up() {
        let facts = look(&[opus(0, 24_000), opus(0, 48_000)].concat()).facts;
        assert_eq!(facts.duration_seconds, Some(1.5));
    }

    #[test]
    fn a_cut_page_is_a_truncation() {
        let whole = opus(0, 48_000);
        let facts = look(&whole[..whole.len() - 1]).facts;
        assert!(!facts.well_formed && facts.flags.contains(&Flag::Truncated));
    }
}
