//! One logical stream of an Ogg file: its codec, and what its granule positions mean.
//!
//! Promised: a position that the stream's packets could not reach is a lie, and no length. Deliberately absent: what is in
//! packets beyond the first byte of each.

use crate::media::reader::Fields;

/// What is known about a stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) serial: u32,
    pub(super) link: u32,
    pub(super) codec: Option<Codec>,
    pub(super) channels: u32,
    pub(super) rate: u32,
    pub(super) skip: u64,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) frames_per: (u32, u32),
    pub(super) shift: u32,
    pub(super) last: Option<u64>,
    /// Where its sound begins: zero, but for what was cut out of a longer stream.
    start: Option<i64>,
    /// Samples of Vorbis' longer block.
    block: u64,
    /// Most packets that the pages can hold.
    pub(super) packets: u64,
}

impl Stream {
    /// What a stream's first packet says.
    pub(super) fn begin(packet: &[u8]) -> Self {
        Self::parse(packet).unwrap_or_default()
    }

    fn parse(packet: &[u8]) -> Option<Self> {
        let mut stream = Self::default();
        if packet.starts_with(b"\x01vorbis") {
            stream.codec = Some(Codec::Vorbis);
            (stream.channels, stream.rate) = ((*packet.get(11)?).into(), packet.le32(12)?);
            stream.block = 1 << (packet.get(28).copied().unwrap_or(0) >> 4);
        } else if packet.starts_with(b"OpusHead") {
            stream.codec = Some(Codec::Opus);
            // Opus always plays at 48 kHz; the stored rate is that of what went in.
            (stream.channels, stream.rate, stream.skip) = ((*packet.get(9)?).into(), 48_000, packet.le16(10)?.into());
        } else if packet.starts_with(b"\x7FFLAC") {
            stream.codec = Some(Codec::Flac);
            let packed = packet.be64(27)?;
            (stream.channels, stream.rate) = ((packed >> 41 & 7) as u32 + 1, (packed >> 44) as u32);
        } else if packet.starts_with(b"fLaC") {
            stream.codec = Some(Codec::Flac);
        } else if packet.starts_with(b"Speex   ") {
            stream.codec = Some(Codec::Speex);
            (stream.channels, stream.rate) = (packet.le32(48)?, packet.le32(36)?);
        } else if packet.starts_with(b"\x80theora") {
            stream.codec = Some(Codec::Theora);
            (stream.width, stream.height) = (packet.be24(14)?, packet.be24(17)?);
            stream.frames_per = (packet.be32(22)?, packet.be32(26)?);
            stream.shift = u32::from(packet.be16(40)? >> 5 & 31);
        } else if packet.starts_with(b"fishead\0") {
            stream.codec = Some(Codec::Skeleton);
        } else if packet.starts_with(b"OVP80\x01") {
            stream.codec = Some(Codec::Vp8);
            (stream.width, stream.height) = (packet.be16(8)?.into(), packet.be16(10)?.into());
            stream.frames_per = (packet.be32(18)?, packet.be32(22)?);
        } else if packet.starts_with(b"BBCD\0") || packet.starts_with(b"\x01video\0") {
            stream.codec = Some(Codec::OtherPicture);
        } else if packet.starts_with(b"CELT    ")
            || packet.starts_with(b"PCM     ")
            || packet.starts_with(b"\x01audio\0")
        {
            stream.codec = Some(Codec::Other);
        }
        Some(stream)
    }

    /// True until the first page of sound was seen.
    pub(super) fn wants_start(&self) -> bool {
        self.start.is_none() && matches!(self.codec, Some(Codec::Opus | Codec::Vorbis))
    }

    /// How many samples a packet of sound plays, or may play at most; none for headers.
    pub(super) fn samples_in(&self, packet: &[u8]) -> u64 {
        match self.codec {
            Some(Codec::Opus) if !packet.starts_with(b"OpusHead") && !packet.starts_with(b"OpusTags") => opus(packet),
            // Headers have the lowest bit, and of a block the half is new.
            Some(Codec::Vorbis) if packet.first().is_some_and(|first| first & 1 == 0) => self.block / 2,
            _ => 0,
        }
    }

    /// Notes the position at the end of a page with sound on it.
    pub(super) fn begins(&mut self, granule: u64, samples: u64, last: bool) {
        let Ok(granule) = i64::try_from(granule) else { return };
        if samples == 0 {
            return;
        }
        let start = granule.saturating_sub_unsigned(samples);
        self.start = Some(match self.codec {
            _ if last => 0,
            Some(Codec::Opus) => start,
            // How long Vorbis' blocks are is only known at most, so a little is no start.
            _ => start.max(0),
        });
    }

    /// Samples, or frames for pictures.
    fn units(&self) -> Option<u64> {
        let last = self.last?;
        Some(match self.codec? {
            // Frames up to the last key frame, and those since.
            Codec::Theora => (last >> self.shift) + (last & ((1 << self.shift) - 1)),
            // The upper half counts frames from zero on.
            Codec::Vp8 => (last >> 32) + 1,
            Codec::Opus | Codec::Vorbis => {
                let end = i64::try_from(last).ok()?.saturating_sub(self.start.unwrap_or(0));
                u64::try_from(end).unwrap_or(0).saturating_sub(self.skip)
            }
            _ => last.saturating_sub(self.skip),
        })
    }

    pub(super) fn lies(&self) -> bool {
        let most = self.codec.map_or(0, Codec::most_per_packet);
        // Theora's packets carry no frame when a picture repeats.
        self.codec != Some(Codec::Theora) && self.units().is_some_and(|units| units > self.packets.saturating_mul(most))
    }

    pub(super) fn seconds(&self) -> Option<f64> {
        if self.lies() {
            return None;
        }
        let units = self.units()? as f64;
        let per_second = match self.codec? {
            Codec::Theora | Codec::Vp8 if self.frames_per.1 > 0 => {
                f64::from(self.frames_per.0) / f64::from(self.frames_per.1)
            }
            Codec::Vorbis | Codec::Opus | Codec::Flac | Codec::Speex => self.rate.into(),
            _ => 0.0,
        };
        (per_second > 0.0 && units > 0.0).then(|| units / per_second)
    }
}

/// How many samples at 48 kHz a packet plays (RFC 6716 section 3.1): the first byte has the configuration and how frames are counted.
fn opus(packet: &[u8]) -> u64 {
    let Some(&first) = packet.first() else { return 0 };
    let frame = match first >> 3 {
        configuration @ 0..=11 => [480, 960, 1920, 2880][usize::from(configuration & 3)],
        configuration @ 12..=15 => [480, 960][usize::from(configuration & 1)],
        configuration => [120, 240, 480, 960][usize::from(configuration & 3)],
    };
    let frames = match first & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u64::from(packet.get(1).copied().unwrap_or(0) & 63),
    };
    frame * frames
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Vorbis,
    Opus,
    Flac,
    Speex,
    Theora,
    Vp8,
    Other,
    OtherPicture,
    Skeleton,
}

impl Codec {
    pub(super) fn is_picture(self) -> bool {
        matches!(self, Self::Theora | Self::Vp8 | Self::OtherPicture)
    }

    pub(super) fn is_sound(self) -> bool {
        matches!(self, Self::Vorbis | Self::Opus | Self::Flac | Self::Speex | Self::Other)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Vorbis => "vorbis",
            Self::Opus => "opus",
            Self::Flac => "flac",
            Self::Speex => "speex",
            Self::Theora => "theora",
            Self::Vp8 => "vp8",
            Self::Other | Self::OtherPicture | Self::Skeleton => "unknown",
        }
    }

    /// The most samples or frames that one packet can carry.
    fn most_per_packet(self) -> u64 {
        match self {
            Self::Vorbis => 8_192,
            Self::Opus => 5_760,
            Self::Speex => 10 * 640,
            Self::Theora | Self::Vp8 => 1,
            Self::Flac | Self::Other | Self::OtherPicture | Self::Skeleton => 65_536,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_packets_name_their_codec() {
        let vorbis = Stream::begin(b"\x01vorbis\0\0\0\0\x02\x44\xAC\0\0");
        assert_eq!((vorbis.codec, vorbis.channels, vorbis.rate), (Some(Codec::Vorbis), 2, 44_100));
        assert_eq!(Stream::begin(b"").codec, None);
        assert_eq!(Stream::begin(b"OpusHead").codec, None);
    }
}
