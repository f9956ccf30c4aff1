//! Sound files with a short header of their own.
//!
//! Promised: signature, channels, rate and length as their headers state them, where the bytes bear it. Deliberately
//! absent: playing a score. What a MIDI file lasts depends on its tempo events.

use super::lossless::{ape, musepack, musepack_old, tta, wavpack};
use crate::media::{
    Facts, Flag, Found, Provenance,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8], at: u64) -> Option<Found> {
    let (name, codec, read): (&str, &str, Read) = match head {
        _ if head.starts_with(b"#!AMR-WB\n") => ("audio/amr-wb", "amr-wb", amr_wide),
        _ if head.starts_with(b"#!AMR\n") => ("audio/amr", "amr-nb", amr),
        _ if head.starts_with(b".snd") && head.be32(4).is_none_or(|length| length >> 24 == 0 || length == u32::MAX) => {
            ("audio/basic", "pcm", au)
        }
        _ if head.starts_with(b"caff\0\x01") => ("audio/x-caf", "", caf),
        _ if head.starts_with(b"DSD \x1C\0\0\0") => ("audio/x-dsf", "dsd", dsf),
        _ if head.starts_with(b"FRM8") && head.has(12, b"DSD ") => ("audio/x-dff", "dsd", dff),
        _ if head.starts_with(b"TTA1") && head.le16(4).is_some_and(|format| format < 4) => ("audio/x-tta", "tta", tta),
        _ if head.starts_with(b"MAC ") && head.le16(4).is_some_and(|version| (3_000..5_000).contains(&version)) => {
            ("audio/x-ape", "ape", ape)
        }
        _ if head.starts_with(b"wvpk") && head.len() >= 32 => ("audio/wavpack", "wavpack", wavpack),
        _ if head.starts_with(b"MPCK") => ("audio/x-musepack", "musepack", musepack),
        _ if head.starts_with(b"MP+") && head.get(3)? & 15 == 7 => ("audio/x-musepack", "musepack", musepack_old),
        _ if head.starts_with(b"MThd\0\0\0\x06") => ("audio/midi", "", midi),
        _ if head.starts_with(b"Creative Voice File\x1A") => ("audio/x-voc", "pcm", voc),
        _ => return None,
    };
    let mut found = Found::of(name);
    if !codec.is_empty() {
        found.facts.coded(codec);
    }
    let walk = read(bytes, at, &mut found.facts);
    found.facts.settle(walk);
    Some(found)
}

type Read = fn(&mut Bytes<'_>, u64, &mut Facts) -> Walk;

fn amr(bytes: &mut Bytes<'_>, at: u64, facts: &mut Facts) -> Walk {
    facts.sound(1, 8_000);
    amr_frames(bytes, at + 6, facts, &[12, 13, 15, 17, 19, 20, 26, 31, 5])
}

fn amr_wide(bytes: &mut Bytes<'_>, at: u64, facts: &mut Facts) -> Walk {
    facts.sound(1, 16_000);
    amr_frames(bytes, at + 9, facts, &[17, 23, 32, 36, 40, 46, 50, 58, 60, 5])
}

/// Frames of 20 ms, whose type says how long they are (RFC 4867); 14 and 15 are lost and empty.
fn amr_frames(bytes: &mut Bytes<'_>, mut at: u64, facts: &mut Facts, sizes: &[u64]) -> Walk {
    let mut count = 0;
    let mut walk = Ok(());
    while at < bytes.size() {
        bytes.step()?;
        let kind = usize::from(bytes.u8(at)? >> 3 & 15);
        let Some(length) = sizes.get(kind).copied().or((kind >= 14).then_some(0)) else {
            walk = Err(Broken::Bad);
            break;
        };
        at += 1 + length;
        if at > bytes.size() {
            walk = Err(Broken::Short);
            break;
        }
        count += 1;
    }
    facts.lasts_ticks(count, 50, Provenance::Scanned);
    walk
}

fn au(bytes: &mut Bytes<'_>, at: u64, facts: &mut Facts) -> Walk {
    let [header, stated, encoding, rate, channels] = numbers(bytes, at + 4)?;
    facts.sound(channels, rate);
    // In bits: µ-law, linear and floating point, A-law, and the ADPCM of G.721 to G.726.
    let sample = match encoding {
        1 | 2 | 27 => 8,
        3 => 16,
        4 => 24,
        5 | 6 => 32,
        7 => 64,
        23 | 24 => 4,
        25 => 3,
        26 => 5,
        _ => 0,
    };
    let start = at + u64::from(header);
    bytes.reaches(start)?;
    let here = bytes.size() - start;
    let data = if stated == u32::MAX { here } else { here.min(stated.into()) };
    if let Some(frames) = data.saturating_mul(8).checked_div(sample * u64::from(channels)) {
        let from = if stated == u32::MAX { Provenance::Bytes } else { Provenance::Container };
        facts.lasts_ticks(frames, rate.into(), from);
    }
    if stated != u32::MAX && u64::from(stated) > here {
        facts.flag(Flag::SizeClaimWrong);
        return Err(Broken::Short);
    }
    Ok(())
}

fn numbers<const N: usize>(bytes: &mut Bytes<'_>, at: u64) -> Walk<[u32; N]> {
    let mut out = [0; N];
    for (n, number) in out.iter_mut().enumerate() {
        *number = bytes.be32(at + n as u64 * 4)?;
    }
    Ok(out)
}

/// Apple's Core Audio Format: chunks with sizes of 64 bits, of which only the data's may be open.
fn caf(bytes: &mut Bytes<'_>, start: u64, facts: &mut Facts) -> Walk {
    let mut at = start + 8;
    let (mut rate, mut per_packet, mut packet) = (0.0, 0, 0);
    let (mut packets, mut frames, mut data) = (0u64, None, None);
    let mut walk = Ok(());
    while at + 12 <= bytes.size() {
        bytes.step()?;
        let name: [u8; 4] = bytes.array(at)?;
        let (body, length) = (at + 12, bytes.be64(at + 4)?);
        match &name {
            b"desc" => {
                rate = f64::from_bits(bytes.be64(body)?);
                let [format, _, bytes_per, frames_per, channels, _] = numbers(bytes, body + 8)?;
                (packet, per_packet) = (bytes_per, frames_per);
                facts.sound(channels, if rate.is_finite() { rate.round() as u32 } else { 0 });
                let format = format.to_be_bytes();
                let codec = std::str::from_utf8(&format).unwrap_or_default().trim();
                if codec.bytes().all(|byte| byte.is_ascii_graphic()) && !codec.is_empty() {
                    facts.coded(if codec == "lpcm" { "pcm" } else { codec });
                }
            }
            b"pakt" => (packets, frames) = (bytes.be64(body)?, Some(bytes.be64(body + 8)?)),
            b"data" => data = Some(length.min(bytes.size() - body).saturating_sub(4)),
            _ => {}
        }
        if length == u64::MAX {
            break;
        }
        let Some(end) = body.checked_add(length).filter(|&end| end <= bytes.size()) else {
            walk = Err(Broken::Short);
            break;
        };
        at = end;
    }
    let counted =
        data.and_then(|data| data.checked_div(packet.into())).map(|packets| packets.saturating_mul(per_packet.into()));
    // A packet has at least one byte, and none in use plays longer than this.
    let most = data.unwrap_or(0).max(packets.min(bytes.size())).saturating_mul(MOST_PER_PACKET);
    if let Some(frames) = frames.or(counted)
        && rate.is_finite()
        && rate >= 1.0
    {
        if frames > most {
            facts.flag(Flag::SizeClaimWrong);
        } else {
            facts.lasts(frames as f64 / rate, Provenance::Container);
        }
    }
    walk
}

/// Frames in a packet of the longest in use, FLAC's.
const MOST_PER_PACKET: u64 = 65_535;

/// Creative's blocks of a type and a length of three bytes; sound, silence, and what they are made of.
fn voc(bytes: &mut Bytes<'_>, start: u64, facts: &mut Facts) -> Walk {
    let mut at = start + u64::from(bytes.le16(start + 20)?);
    let (mut seconds, mut extended) = (0.0, None);
    let (mut rate, mut frame) = (0u32, 1u64);
    while at < bytes.size() {
        bytes.step()?;
        let kind = bytes.u8(at)?;
        if kind == 0 {
            break;
        }
        let [low, middle, high] = bytes.array(at + 1)?;
        let length = u64::from(u32::from_le_bytes([low, middle, high, 0]));
        let body = at + 4;
        bytes.reaches(body + length)?;
        let mut samples = 0;
        match kind {
            1 => {
                let own = 1_000_000 / (256 - u32::from(bytes.u8(body)?));
                let channels;
                (rate, channels) = extended.take().unwrap_or((own, 1));
                frame = channels.into();
                facts.sound(channels, rate);
                samples = length.saturating_sub(2) / frame;
            }
            2 => samples = length / frame,
            3 => {
                let own = 1_000_000 / (256 - u32::from(bytes.u8(body + 2)?));
                seconds += (f64::from(bytes.le16(body)?) + 1.0) / f64::from(own);
            }
            8 => {
                let channels = u32::from(bytes.u8(body + 3)?) + 1;
                extended = Some((256_000_000 / (channels * (65_536 - u32::from(bytes.le16(body)?))), channels));
            }
            9 => {
                rate = bytes.le32(body)?;
                let (bits, channels) = (u64::from(bytes.u8(body + 4)?), bytes.u8(body + 5)?);
                frame = (bits.div_ceil(8) * u64::from(channels)).max(1);
                facts.sound(channels.into(), rate);
                samples = length.saturating_sub(12) / frame;
            }
            _ => {}
        }
        if samples > 0 && rate > 0 {
            seconds += samples as f64 / f64::from(rate);
        }
        at = body + length;
    }
    if seconds > 0.0 {
        facts.lasts(seconds, Provenance::Container);
    }
    Ok(())
}

fn dsf(bytes: &mut Bytes<'_>, at: u64, facts: &mut Facts) -> Walk {
    let (channels, rate, count) = (bytes.le32(at + 52)?, bytes.le32(at + 56)?, bytes.le64(at + 64)?);
    facts.sound(channels, rate);
    let most = bytes.size().saturating_mul(8);
    if count > most {
        facts.flag(Flag::SizeClaimWrong);
    } else {
        facts.lasts_ticks(count, rate.into(), Provenance::Container);
    }
    let whole = bytes.le64(at + 12)?;
    bytes.reaches(whole)
}

fn dff(bytes: &mut Bytes<'_>, start: u64, facts: &mut Facts) -> Walk {
    let end = bytes.be64(start + 4)?.saturating_add(start + 12);
    let mut at = start + 16;
    let (mut rate, mut channels) = (0, 0);
    while at + 12 <= end.min(bytes.size()) {
        bytes.step()?;
        let name: [u8; 4] = bytes.array(at)?;
        let length = bytes.be64(at + 4)?;
        let body = at + 12;
        match &name {
            // A list of properties: go on inside it.
            b"PROP" => {
                at = body + 4;
                continue;
            }
            // Compressed sound, which begins with how many frames there are and how many play in a second.
            b"DST " => {
                at = body;
                continue;
            }
            b"FRTE" => {
                facts.lasts_ticks(bytes.be32(body)?.into(), bytes.be16(body + 4)?.into(), Provenance::Container);
            }
            b"FS  " => rate = bytes.be32(body)?,
            b"CHNL" => channels = bytes.be16(body)?.into(),
            b"DSD " => {
                let here = length.min(bytes.size() - body);
                facts.sound(channels, rate);
                if let Some(samples) = (here * 8).checked_div(channels.into()) {
                    facts.lasts_ticks(samples, rate.into(), Provenance::Container);
                }
            }
            _ => {}
        }
        at = body.checked_add(length).map(|end| end + (end & 1)).ok_or(Broken::Bad)?;
    }
    facts.sound(channels, rate);
    bytes.reaches(end)
}

/// Tracks as many as the header says, one chunk each.
fn midi(bytes: &mut Bytes<'_>, start: u64, _: &mut Facts) -> Walk {
    let tracks = bytes.be16(start + 10)?;
    let mut at = start + 14;
    for _ in 0..tracks {
        bytes.step()?;
        if bytes.array::<4>(at)? != *b"MTrk" {
            return Err(Broken::Bad);
        }
        at += 8 + u64::from(bytes.be32(at + 4)?);
        bytes.reaches(at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn sun_audio_is_measured_by_its_bytes() {
        let header =
            [b".snd".as_slice(), &[0, 0, 0, 24], &[0xFF; 4], &[0, 0, 0, 1], &8_000u32.to_be_bytes(), &[0, 0, 0, 1]]
                .concat();
        let found = look(&[header, vec![0x7F; 4_000]].concat());
        assert_eq!((found.mime_type.as_str(), found.facts.duration_seconds), ("audio/basic", Some(0.5)));
    }

    #[test]
    fn creative_blocks_add_up() {
        let header = b"Creative Voice File\x1A\x1A\0\x0A\x01\x29\x11";
        // A rate of 8,000, a second of sound, half a second more, a tenth of silence, the end.
        let sound = [&[1, 0x42, 0x1F, 0, 131, 0], vec![0; 8000].as_slice(), &[2, 0xA0, 0x0F, 0], &[0; 4000]].concat();
        let found = look(&[header.as_slice(), &sound, &[3, 3, 0, 0, 0x1F, 3, 131], &[0]].concat());
        assert_eq!((found.mime_type.as_str(), found.facts.duration_seconds), ("audio/x-voc", Some(1.6)));
        assert_eq!((found.facts.channels, found.facts.sample_rate), (Some(1), Some(8_000)));
        assert!(!look(&[header.as_slice(), &sound[..100]].concat()).facts.well_formed);
    }

    #[test]
    fn speech_frames_are_counted() {
        let found = look(&[b"#!AMR\n".as_slice(), &[0x3C; 32].repeat(50)].concat());
        assert_eq!((found.mime_type.as_str(), found.facts.duration_seconds), ("audio/amr", Some(1.0)));
        assert!(found.facts.well_formed);
    }
}
