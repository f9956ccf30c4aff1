//! ASF, in which Windows Media lives: objects named by GUIDs.

use super::codecs;
use crate::media::{
    Facts, Flag, Found, Provenance,
    container::wave_codec,
    reader::{Broken, Bytes, Walk},
};

type Guid = [u8; 16];

const HEADER: Guid = guid(0x75B2_2630, 0x668E, 0x11CF, 0xA6D9_00AA_0062_CE6C);
const FILE_PROPERTIES: Guid = guid(0x8CAB_DCA1, 0xA947, 0x11CF, 0x8EE4_00C0_0C20_5365);
const STREAM_PROPERTIES: Guid = guid(0xB7DC_0791, 0xA9B7, 0x11CF, 0x8EE6_00C0_0C20_5365);
const AUDIO: Guid = guid(0xF869_9E40, 0x5B4D, 0x11CF, 0xA8FD_0080_5F5C_442B);
const VIDEO: Guid = guid(0xBC19_EFC0, 0x5B4D, 0x11CF, 0xA8FD_0080_5F5C_442B);

/// Objects in the header that are looked at.
const MOST_OBJECTS: u32 = 1024;

/// The first three fields are stored little end first, the rest as written.
const fn guid(first: u32, second: u16, third: u16, rest: u64) -> Guid {
    let [a, b, c, d] = first.to_le_bytes();
    let [e, f] = second.to_le_bytes();
    let [g, h] = third.to_le_bytes();
    let [i, j, k, l, m, n, o, p] = rest.to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !head.starts_with(&HEADER) {
        return None;
    }
    let mut asf = Asf::default();
    let mut facts = Facts::default();
    let walk = asf.walk(bytes, &mut facts);
    let mut found = Found::of(match (asf.seen, asf.heard) {
        (true, _) if asf.windows_media => "video/x-ms-wmv",
        (false, true) => "audio/x-ms-wma",
        _ => "video/x-ms-asf",
    });
    found.facts = facts;
    found.facts.settle(walk);
    Some(found)
}

#[derive(Debug, Default)]
struct Asf {
    seen: bool,
    heard: bool,
    windows_media: bool,
}

impl Asf {
    fn walk(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
        let end = bytes.le64(16)?;
        if end < 30 {
            return Err(Broken::Bad);
        }
        let mut at = 30u64;
        let mut left = MOST_OBJECTS;
        while at + 24 <= end.min(bytes.size()) && left > 0 {
            bytes.step()?;
            left -= 1;
            let name: Guid = bytes.array(at)?;
            let length = bytes.le64(at + 16)?;
            if length < 24 {
                return Err(Broken::Bad);
            }
            if name == FILE_PROPERTIES {
                file(bytes, facts, at)?;
            } else if name == STREAM_PROPERTIES {
                self.stream(bytes, facts, at)?;
            }
            at = at.checked_add(length).ok_or(Broken::Bad)?;
        }
        bytes.reaches(end)?;
        if at == end { data(bytes, end) } else { Err(Broken::Bad) }
    }

    fn stream(&mut self, bytes: &mut Bytes<'_>, facts: &mut Facts, at: u64) -> Walk {
        let kind: Guid = bytes.array(at + 24)?;
        // Behind both types, three lengths, flags and a reserved field.
        let own = at + 78;
        if kind == AUDIO && !self.heard {
            self.heard = true;
            let tag = bytes.le16(own)?;
            facts.sound(bytes.le16(own + 2)?.into(), bytes.le32(own + 4)?);
            if facts.codec.is_none()
                && let Some(codec) = wave_codec(tag)
            {
                facts.coded(codec);
            }
        }
        if kind == VIDEO && !self.seen {
            self.seen = true;
            facts.size(bytes.le32(own)?, bytes.le32(own + 4)?);
            // A bitmap header stands behind the size, one byte of flags and its own length.
            let code: [u8; 4] = bytes.array(own + 11 + 16)?;
            self.windows_media = matches!(
                &code,
                b"WMV1" | b"WMV2" | b"WMV3" | b"WMVA" | b"WVC1" | b"WMVP" | b"WVP2" | b"MSS1" | b"MSS2"
            );
            facts.codec = codecs::four_cc(code);
        }
        Ok(())
    }
}

/// How long it plays, in units of 100 ns, less what is buffered before, in milliseconds.
fn file(bytes: &mut Bytes<'_>, facts: &mut Facts, at: u64) -> Walk {
    let (play, preroll) = (bytes.le64(at + 64)?, bytes.le64(at + 80)?);
    let broadcast = bytes.le32(at + 88)? & 1 == 1;
    let seconds = play as f64 / 1e7 - preroll as f64 / 1e3;
    if !broadcast && play > 0 && seconds > 0.0 {
        facts.lasts(seconds, Provenance::Container);
    }
    let stated = bytes.le64(at + 40)?;
    if !broadcast && stated > bytes.size() {
        facts.flag(Flag::SizeClaimWrong);
    }
    Ok(())
}

/// The data object follows the header; a live one has no size.
fn data(bytes: &mut Bytes<'_>, at: u64) -> Walk {
    let length = bytes.le64(at + 16)?;
    bytes.reaches(at.saturating_add(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::look;

    fn object(name: Guid, body: &[u8]) -> Vec<u8> {
        [name.as_slice(), &(body.len() as u64 + 24).to_le_bytes(), body].concat()
    }

    #[test]
    fn sound_alone_is_audio() {
        let mut file = vec![0; 80];
        file[40..48].copy_from_slice(&60_000_000u64.to_le_bytes());
        file[56..64].copy_from_slice(&3_000u64.to_le_bytes());
        let stream = [AUDIO.as_slice(), &[0; 38], &[0x61, 1, 2, 0], &44_100u32.to_le_bytes(), &[0; 10]].concat();
        let objects = [object(FILE_PROPERTIES, &file), object(STREAM_PROPERTIES, &stream)].concat();
        let header = object(HEADER, &[&[2, 0, 0, 0, 1, 2], objects.as_slice()].concat());
        let found = look(&[header, object([7; 16], b"data")].concat());
        assert_eq!((found.mime_type.as_str(), found.facts.duration_seconds), ("audio/x-ms-wma", Some(3.0)));
        assert_eq!((found.facts.channels, found.facts.well_formed), (Some(2), true));
    }
}
