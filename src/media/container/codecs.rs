//! What codecs say about themselves inside containers, and the names that we give them.

use super::Bits;

/// MPEG-4's description of an AAC stream (ISO/IEC 14496-3, AudioSpecificConfig).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::media) struct AudioConfig {
    pub(in crate::media) sample_rate: u32,
    pub(in crate::media) channels: u32,
}

impl AudioConfig {
    pub(in crate::media) fn parse(config: &[u8]) -> Option<Self> {
        let mut bits = Bits::new(config);
        let object = object_type(&mut bits)?;
        let mut sample_rate = rate(&mut bits)?;
        let mut channels = channels(bits.take(4)?);
        // Spectral band replication plays faster than its core; parametric stereo makes two channels of one.
        if matches!(object, 5 | 29) {
            sample_rate = rate(&mut bits)?;
            if object == 29 && channels == 1 {
                channels = 2;
            }
        }
        Some(Self { sample_rate, channels })
    }
}

fn object_type(bits: &mut Bits<'_>) -> Option<u32> {
    match bits.take(5)? {
        31 => Some(32 + bits.take(6)?),
        other => Some(other),
    }
}

fn rate(bits: &mut Bits<'_>) -> Option<u32> {
    match bits.take(4)? {
        15 => bits.take(24),
        index => aac_rate(index),
    }
}

/// Sampling frequencies by index.
pub(in crate::media) fn aac_rate(index: u32) -> Option<u32> {
    const RATES: [u32; 13] =
        [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];
    RATES.get(index as usize).copied()
}

/// Channel configurations; zero leaves it to the stream.
pub(in crate::media) fn channels(configuration: u32) -> u32 {
    match configuration {
        7 | 12 | 14 => 8,
        11 => 7,
        count @ 1..=6 => count,
        _ => 0,
    }
}

/// Names by the four characters of QuickTime, MP4 and AVI.
pub(super) fn four_cc(code: [u8; 4]) -> Option<String> {
    let name = match &code {
        b"avc1" | b"avc2" | b"avc3" | b"avc4" | b"h264" | b"H264" | b"x264" | b"X264" | b"AVC1" => "h264",
        b"hvc1" | b"hev1" | b"HEVC" | b"dvh1" | b"dvhe" => "hevc",
        b"vvc1" | b"vvi1" => "vvc",
        b"av01" | b"AV01" => "av1",
        b"vp08" | b"VP80" => "vp8",
        b"vp09" | b"VP90" => "vp9",
        b"mp4v" | b"FMP4" | b"XVID" | b"xvid" | b"DIVX" | b"divx" | b"DX50" => "mpeg4",
        b"jpeg" | b"mjpa" | b"mjpb" | b"MJPG" | b"mjpg" => "mjpeg",
        b"s263" | b"h263" | b"H263" => "h263",
        b"mp4a" => "aac",
        b".mp3" | b"mp3 " => "mp3",
        b"alac" => "alac",
        b"Opus" => "opus",
        b"fLaC" => "flac",
        b"ac-3" => "ac3",
        b"ec-3" => "eac3",
        b"ac-4" => "ac4",
        b"samr" => "amr-nb",
        b"sawb" => "amr-wb",
        b"ulaw" => "mulaw",
        b"lpcm" | b"sowt" | b"twos" | b"raw " | b"in24" | b"in32" | b"fl32" | b"fl64" | b"ipcm" | b"fpcm" | b"NONE" => {
            "pcm"
        }
        _ => {
            let name = std::str::from_utf8(&code).ok()?.trim_end();
            let printable = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
            return printable.then(|| name.to_ascii_lowercase());
        }
    };
    Some(name.to_owned())
}

/// Names by the format tag of WAVE, AVI and ASF.
pub(in crate::media) fn wave_codec(tag: u16) -> Option<&'static str> {
    Some(match tag {
        1 | 3 => "pcm",
        2 | 0x11 | 0x20 => "adpcm",
        6 => "alaw",
        7 => "mulaw",
        0x31 => "gsm",
        0x50 => "mp2",
        0x55 => "mp3",
        0xFF | 0x1600 | 0x1602 => "aac",
        0x160..=0x163 => "wma",
        0x2000 => "ac3",
        0xF1AC => "flac",
        0x674F..=0x6771 => "vorbis",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_aac_config_is_two_bytes() {
        assert_eq!(AudioConfig::parse(&[0x12, 0x10]), Some(AudioConfig { sample_rate: 44_100, channels: 2 }));
    }

    #[test]
    fn replicated_bands_double_the_rate() {
        // Object 5, 24 kHz core, stereo, 48 kHz out.
        assert_eq!(AudioConfig::parse(&[0x2B, 0x11, 0x88]), Some(AudioConfig { sample_rate: 48_000, channels: 2 }));
    }
}
