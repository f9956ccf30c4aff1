//! MPEG transport streams (ISO/IEC 13818-1), of 188, 192 or 204 bytes a packet.
//!
//! Promised: the sync byte at every packet that is looked at, a programme table, and sizes out of the elementary
//! streams' first headers. Deliberately absent: changes of programme.

use super::{mpeg, video};
use crate::media::{
    Facts, Found, Provenance, audio,
    reader::{Broken, Bytes, Fields, Walk},
};

/// Packets at the beginning that are read for tables, headers and the first time stamps.
const FIRST: u64 = 4096;

/// Packets at the end that are read for the last time stamps.
const LAST: u64 = 2048;

/// Sync bytes in a row that make bytes a transport stream; fewer only if that is all there is.
const SYNCS: u64 = 5;

/// How much of a stream's beginning is gathered for its headers.
const GATHERED: usize = 4096;

pub(super) fn probe(bytes: &mut Bytes<'_>) -> Option<Found> {
    let (start, stride) =
        [(0, 188), (4, 192), (0, 204)].into_iter().find(|&(start, stride)| is_stream(bytes, start, stride))?;
    let mut stream = Transport { start, stride, ..Transport::default() };
    let mut found = Found::of("video/mp2t");
    let walk = stream.walk(bytes);
    stream.describe(&mut found.facts);
    found.facts.settle(walk);
    Some(found)
}

fn is_stream(bytes: &mut Bytes<'_>, start: u64, stride: u64) -> bool {
    let packets = bytes.size() / stride;
    packets >= 2 && (0..SYNCS.min(packets)).all(|n| bytes.u8(start + n * stride) == Ok(0x47))
}

#[derive(Debug, Default)]
struct Transport {
    start: u64,
    stride: u64,
    tables: Vec<u16>,
    streams: Vec<Stream>,
}

#[derive(Debug, Default)]
struct Stream {
    id: u16,
    kind: u8,
    first: Option<u64>,
    last: Option<u64>,
    beginning: Vec<u8>,
}

/// Streams that are followed.
const MOST_STREAMS: usize = 64;

impl Transport {
    fn walk(&mut self, bytes: &mut Bytes<'_>) -> Walk {
        let packets =
            (bytes.size() - self.start) / self.stride + u64::from((bytes.size() - self.start) % self.stride >= 188);
        let tail = packets.saturating_sub(LAST).max(FIRST.min(packets));
        for n in (0..FIRST.min(packets)).chain(tail..packets) {
            bytes.step()?;
            let packet = bytes.take(self.start + n * self.stride, 188)?;
            if packet[0] != 0x47 {
                return Err(Broken::Bad);
            }
            self.packet(&packet);
        }
        if self.streams.is_empty() { Err(Broken::Bad) } else { Ok(()) }
    }

    fn packet(&mut self, packet: &[u8]) {
        let (begins, id) = (packet[1] & 0x40 != 0, packet.be16(1).unwrap_or(0) & 0x1FFF);
        let payload = match packet[3] >> 4 & 3 {
            1 => 4,
            3 => 5 + usize::from(packet[4]),
            _ => return,
        };
        let Some(payload) = packet.get(payload..) else { return };
        if id == 0 && begins {
            self.programmes(payload);
        } else if begins && self.tables.contains(&id) {
            self.programme(payload);
        } else if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) {
            stream.payload(payload, begins);
        }
    }

    /// The association table: which packets carry programme tables.
    fn programmes(&mut self, payload: &[u8]) {
        let Some(section) = section(payload, 0) else { return };
        for entry in section.get(8..).unwrap_or_default().chunks_exact(4) {
            let (number, id) = (entry.be16(0).unwrap_or(0), entry.be16(2).unwrap_or(0) & 0x1FFF);
            if number != 0 && !self.tables.contains(&id) && self.tables.len() < MOST_STREAMS {
                self.tables.push(id);
            }
        }
    }

    fn programme(&mut self, payload: &[u8]) {
        let Some(section) = section(payload, 2) else { return };
        let mut at = 12 + usize::from(section.be16(10).unwrap_or(0) & 0xFFF);
        while let (Some(&kind), Some(id), Some(length)) = (section.get(at), section.be16(at + 1), section.be16(at + 3))
        {
            let id = id & 0x1FFF;
            if self.streams.len() < MOST_STREAMS && self.streams.iter().all(|stream| stream.id != id) {
                self.streams.push(Stream { id, kind, ..Stream::default() });
            }
            at += 5 + usize::from(length & 0xFFF);
        }
    }

    fn describe(&self, facts: &mut Facts) {
        for stream in &self.streams {
            match stream.kind {
                0x01 | 0x02 if facts.width.is_none() => _ = mpeg::sequence(&stream.beginning, facts),
                0x1B if facts.width.is_none() => {
                    facts.coded("h264");
                    if let Some((width, height)) = video::h264_size(&stream.beginning) {
                        facts.size(width, height);
                    }
                }
                0x24 if facts.width.is_none() => {
                    facts.coded("hevc");
                    if let Some((width, height)) = video::hevc_size(&stream.beginning) {
                        facts.size(width, height);
                    }
                }
                _ if facts.channels.is_none() => stream.sound(facts),
                _ => {}
            }
        }
        // From the first to the last stamp of the longest stream, and one interval for what the last one shows.
        let spans = self.streams.iter().filter_map(|stream| stream.last?.checked_sub(stream.first?));
        if let Some(longest) = spans.max().filter(|&ticks| ticks > 0) {
            facts.lasts_ticks(longest, 90_000, Provenance::Scanned);
        }
    }
}

/// A table's section without its checksum, if it is of this kind and all in one packet.
fn section(payload: &[u8], kind: u8) -> Option<&[u8]> {
    let section = payload.get(1 + usize::from(*payload.first()?)..)?;
    let length = usize::from(section.be16(1)? & 0xFFF) + 3;
    (section.first() == Some(&kind)).then_some(())?;
    section.get(..length.checked_sub(4)?)
}

impl Stream {
    fn payload(&mut self, payload: &[u8], begins: bool) {
        let mut data = payload;
        if begins && payload.starts_with(&[0, 0, 1]) {
            let header = usize::from(payload.get(8).copied().unwrap_or(0));
            if payload.get(7).is_some_and(|flags| flags & 0x80 != 0)
                && let Some(stamp) = payload.get(9..14)
            {
                self.stamp(stamp);
            }
            data = payload.get(9 + header..).unwrap_or_default();
        } else if self.beginning.is_empty() {
            // The middle of something whose start is not here.
            return;
        }
        let room = GATHERED - self.beginning.len();
        self.beginning.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// A time stamp of 33 bits in five bytes.
    fn stamp(&mut self, bytes: &[u8]) {
        let ticks = u64::from(bytes[0] >> 1 & 7) << 30
            | u64::from(bytes.be16(1).unwrap_or(0) >> 1) << 15
            | u64::from(bytes.be16(3).unwrap_or(0) >> 1);
        self.first = Some(self.first.map_or(ticks, |first| first.min(ticks)));
        self.last = Some(self.last.map_or(ticks, |last| last.max(ticks)));
    }

    fn sound(&self, facts: &mut Facts) {
        let start = self.beginning.as_slice();
        let (name, channels, rate) = match self.kind {
            0x03 | 0x04 => match audio::mpeg_header(start) {
                Some(header) => ("mpeg", header.channels, header.sample_rate),
                None => return,
            },
            0x0F => match audio::adts_header(start) {
                Some(header) => ("aac", header.channels, header.sample_rate),
                None => return,
            },
            0x81 | 0x87 | 0x06 => match audio::ac3_header(start) {
                Some(header) => (if header.enhanced { "eac3" } else { "ac3" }, header.channels, header.sample_rate),
                None => return,
            },
            _ => return,
        };
        facts.sound(channels, rate);
        if facts.codec.is_none() {
            facts.coded(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::media::{declared::UNKNOWN, tests::look};

    fn packet(id: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x47, 0x40 | (id >> 8) as u8, id as u8, 0x10];
        packet.extend_from_slice(payload);
        packet.resize(188, 0xFF);
        packet
    }

    #[test]
    fn tables_lead_to_streams() {
        let programmes = packet(0, &[0, 0, 0xB0, 13, 0, 1, 0xC1, 0, 0, 0, 1, 0xE1, 0, 0, 0, 0, 0]);
        let programme =
            packet(0x100, &[0, 2, 0xB0, 18, 0, 1, 0xC1, 0, 0, 0xE1, 1, 0xF0, 0, 0x0F, 0xE1, 1, 0xF0, 0, 0, 0, 0, 0]);
        let sound = |second: u8| {
            let stamp = [0x21, 0, 1 | second << 1, 0, 1];
            packet(
                0x101,
                &[&[0, 0, 1, 0xC0, 0, 0, 0x80, 0x80, 5], stamp.as_slice(), &[0xFF, 0xF1, 0x50, 0x80, 0x01, 0x7F, 0xFC]]
                    .concat(),
            )
        };
        let found = look(&[programmes, programme, sound(0), sound(2), sound(4)].concat());
        assert_eq!(found.mime_type, "video/mp2t");
        assert_eq!((found.facts.channels, found.facts.sample_rate), (Some(2), Some(44_100)));
        assert!(found.facts.duration_seconds.is_some_and(|seconds| seconds > 1.0));
    }

    #[test]
    fn a_letter_at_a_distance_is_not_a_stream() {
        assert_eq!(look(&[0x47, 0, 0]).mime_type, UNKNOWN);
    }
}
