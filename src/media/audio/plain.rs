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
        _ if head.starts_with(b"Creative Voice File\x1A") => ("audio/x-voc", "pcm", |bytes, _, _| bytes.reaches(26)),
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
    let sample = match encoding {
        1 | 2 | 27 => 1,
        3 => 2,
        4 => 3,
        5 | 6 => 4,
        7 => 8,
        _ => 0,
    };
    let start = at + u64::from(header);
    bytes.reaches(start)?;
    let here = bytes.size() - start;
    let data = if stated == u32::MAX { here } else { here.min(stated.into()) };
    if let Some(frames) = data.checked_div(sample * u64::from(channels)) {
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
    let (mut frames, mut data) = (None, None);
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
            b"pakt" => frames = Some(bytes.be64(body + 8)?),
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
    if let Some(frames) = frames.or(counted)
        && rate.is_finite()
        && rate >= 1.0
    {
        facts.lasts(frames as f64 / rate, Provenance::Container);
    }
    walk
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
    fn speech_frames_are_counted() {
        let found = look(&[b"#!AMR\n".as_slice(), &[0x3C; 32].repeat(50)].concat());
        assert_eq!((found.mime_type.as_str(), found.facts.duration_seconds), ("audio/amr", Some(1.0)));
        assert!(found.facts.well_formed);
    }
}
