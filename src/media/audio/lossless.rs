//! Lossless and other compressed sound with headers of their own: TTA, Monkey's Audio, WavPack, Musepack.
//!
//! Promised: the length that the header states, where the bytes can hold so many frames. Deliberately absent: frames.

use crate::media::{
    Facts, Flag, Provenance,
    reader::{Broken, Bytes, Walk},
};

/// True Audio.
pub(super) fn tta(bytes: &mut Bytes<'_>, at: u64, facts: &mut Facts) -> Walk {
    let (channels, rate, samples) = (bytes.le16(at + 6)?, bytes.le32(at + 10)?, bytes.le32(at + 14)?);
    facts.sound(channels.into(), rate);
    facts.lasts_ticks(samples.into(), rate.into(), Provenance::Container);
    bytes.reaches(at + 22)
}

/// Monkey's Audio, whose header moved behind a descriptor with version 3.98.
pub(super) fn ape(bytes: &mut Bytes<'_>, at: u64, facts: &mut Facts) -> Walk {
    let version = bytes.le16(at + 4)?;
    let (channels, rate, frames, last, per_frame) = if version >= 3980 {
        let header = at + u64::from(bytes.le32(at + 8)?);
        (
            bytes.le16(header + 18)?,
            bytes.le32(header + 20)?,
            bytes.le32(header + 12)?,
            bytes.le32(header + 8)?,
            bytes.le32(header + 4)?,
        )
    } else {
        let level = bytes.le16(at + 6)?;
        let per_frame = match version {
            3950.. => 73_728 * 4,
            3900.. => 73_728,
            3800.. if level >= 4000 => 73_728,
            _ => 9_216,
        };
        (bytes.le16(at + 10)?, bytes.le32(at + 12)?, bytes.le32(at + 24)?, bytes.le32(at + 28)?, per_frame)
    };
    facts.sound(channels.into(), rate);
    // A frame cannot be shorter than its checksum.
    if frames == 0 || u64::from(frames) * 4 > bytes.size() {
        facts.flag(Flag::SizeClaimWrong);
        return Err(Broken::Bad);
    }
    let samples = u64::from(frames - 1) * u64::from(per_frame) + u64::from(last);
    facts.lasts_ticks(samples, rate.into(), Provenance::Container);
    Ok(())
}

/// WavPack: blocks, each with a header; the first one tells the length.
pub(super) fn wavpack(bytes: &mut Bytes<'_>, at: u64, facts: &mut Facts) -> Walk {
    const RATES: [u32; 15] = [
        6_000, 8_000, 9_600, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000,
        192_000,
    ];
    let (total, flags) = (bytes.le32(at + 12)?, bytes.le32(at + 24)?);
    let mut rate = RATES.get((flags >> 23 & 15) as usize).copied().unwrap_or(0);
    let mut channels = if flags & 4 == 0 { 2 } else { 1 };
    let end = at + 8 + u64::from(bytes.le32(at + 4)?);
    let mut inner = at + 32;
    while inner + 2 <= end.min(bytes.size()) {
        bytes.step()?;
        let id = bytes.u8(inner)?;
        let (body, words) = if id & 0x80 == 0 {
            (inner + 2, u64::from(bytes.u8(inner + 1)?))
        } else {
            let [low, middle, high] = bytes.array(inner + 1)?;
            (inner + 4, u64::from(u32::from_le_bytes([low, middle, high, 0])))
        };
        match id & 0x3F {
            // One channel count for all blocks of a moment.
            0x0D => channels = bytes.u8(body)?.into(),
            0x27 => rate = u32::from_le_bytes([bytes.u8(body)?, bytes.u8(body + 1)?, bytes.u8(body + 2)?, 0]),
            // Direct stream digital: bytes, at a power of two times the rate.
            0x0E => rate = rate.checked_shl(bytes.u8(body)?.into()).unwrap_or(0),
            _ => {}
        }
        inner = body + words * 2;
    }
    facts.sound(channels, rate);
    if total != u32::MAX {
        facts.lasts_ticks(total.into(), rate.into(), Provenance::Container);
    }
    bytes.reaches(end)
}

/// Musepack stream version 8: packets of a two-letter key and a varying size.
pub(super) fn musepack(bytes: &mut Bytes<'_>, start: u64, facts: &mut Facts) -> Walk {
    let mut at = start + 4;
    loop {
        bytes.step()?;
        let key: [u8; 2] = bytes.array(at)?;
        let mut body = at + 2;
        let length = varying(bytes, &mut body)?;
        if &key == b"SH" {
            let mut field = body + 5;
            let samples = varying(bytes, &mut field)?;
            let silence = varying(bytes, &mut field)?;
            let rate = [44_100, 48_000, 37_800, 32_000].get(usize::from(bytes.u8(field)? >> 5)).copied().unwrap_or(0);
            facts.sound(u32::from(bytes.u8(field + 1)? >> 4) + 1, rate);
            // A packet of one byte may hold 64 frames of silence.
            if samples > bytes.size().saturating_mul(64 * 1152) {
                facts.flag(Flag::SizeClaimWrong);
            } else {
                facts.lasts_ticks(samples.saturating_sub(silence), rate.into(), Provenance::Container);
            }
        }
        if &key == b"SE" {
            return Ok(());
        }
        at = at.checked_add(length).filter(|&next| next >= body).ok_or(Broken::Bad)?;
        bytes.reaches(at)?;
    }
}

fn varying(bytes: &mut Bytes<'_>, at: &mut u64) -> Walk<u64> {
    let mut value = 0;
    for _ in 0..9 {
        let byte = bytes.u8(*at)?;
        *at += 1;
        value = value << 7 | u64::from(byte & 0x7F);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Broken::Bad)
}

/// Musepack stream version 7.
pub(super) fn musepack_old(bytes: &mut Bytes<'_>, at: u64, facts: &mut Facts) -> Walk {
    let frames = u64::from(bytes.le32(at + 4)?);
    let rate = [44_100u32, 48_000, 37_800, 32_000][usize::from(bytes.u8(at + 10)? & 3)];
    facts.sound(2, rate);
    if frames > bytes.size() {
        facts.flag(Flag::SizeClaimWrong);
        return Err(Broken::Bad);
    }
    facts.lasts_ticks(frames * 1152, rate.into(), Provenance::Container);
    bytes.reaches(at + 28)
}

#[cfg(test)]
mod tests {
    use crate::media::{Flag, tests::look};

    #[test]
    fn headers_state_lengths() {
        let tail = [[44_100u32.to_le_bytes(), 22_050u32.to_le_bytes()].concat(), vec![0; 8]].concat();
        let found = look(&[b"TTA1\x01\0\x02\0\x10\0".as_slice(), &tail].concat());
        assert_eq!((found.mime_type.as_str(), found.facts.duration_seconds), ("audio/x-tta", Some(0.5)));

        let mut block = b"wvpk\x18\0\0\0\x10\x04\0\0".to_vec();
        block.extend_from_slice(&44_100u32.to_le_bytes());
        block.extend_from_slice(&[0; 8]);
        block.extend_from_slice(&(9u32 << 23).to_le_bytes());
        block.extend_from_slice(&[0; 4]);
        let found = look(&block);
        assert_eq!((found.mime_type.as_str(), found.facts.duration_seconds), ("audio/wavpack", Some(1.0)));
        assert_eq!((found.facts.channels, found.facts.well_formed), (Some(2), true));
    }

    #[test]
    fn counts_beyond_the_bytes_are_lies() {
        let mut file = b"MP+\x07\xFF\xFF\xFF\x7F".to_vec();
        file.resize(40, 0);
        let facts = look(&file).facts;
        assert_eq!(facts.duration_seconds, None);
        assert!(facts.flags.contains(&Flag::SizeClaimWrong));
    }
}
