//! Picture sizes out of H.264 and H.265 parameter sets.
//!
//! Promised: the size after cropping. Deliberately absent: anything else that a parameter set says.

use memchr::memmem;

use super::Bits;

/// The size in the first H.264 sequence parameter set (ITU-T H.264 section 7.3.2.1).
pub(super) fn h264_size(stream: &[u8]) -> Option<(u32, u32)> {
    let set = unit(stream, |header| header & 0x1F == 7)?;
    let mut bits = Bits::new(set.get(1..)?);
    let profile = bits.take(8)?;
    bits.skip(16)?;
    bits.golomb()?;
    let mut chroma = 1;
    if matches!(profile, 100 | 110 | 122 | 244 | 44 | 83 | 86 | 118 | 128 | 138 | 139 | 134 | 135) {
        chroma = bits.golomb()?;
        if chroma == 3 {
            bits.skip(1)?;
        }
        bits.golomb()?;
        bits.golomb()?;
        bits.skip(1)?;
        if bits.take(1)? == 1 {
            scaling_lists(&mut bits, if chroma == 3 { 12 } else { 8 })?;
        }
    }
    bits.golomb()?;
    match bits.golomb()? {
        0 => _ = bits.golomb()?,
        1 => {
            bits.skip(1)?;
            bits.signed_golomb()?;
            bits.signed_golomb()?;
            for _ in 0..bits.golomb()?.min(255) {
                bits.signed_golomb()?;
            }
        }
        _ => {}
    }
    bits.golomb()?;
    bits.skip(1)?;
    let (across, down) = (bits.golomb()?.checked_add(1)?, bits.golomb()?.checked_add(1)?);
    let whole_frames = bits.take(1)?;
    if whole_frames == 0 {
        bits.skip(1)?;
    }
    bits.skip(1)?;
    let (width, height) = (across.checked_mul(16)?, down.checked_mul(16)?.checked_mul(2 - whole_frames)?);
    let unit = (if matches!(chroma, 1 | 2) { 2 } else { 1 }, if chroma == 1 { 2 } else { 1 } * (2 - whole_frames));
    crop(&mut bits, (width, height), unit)
}

/// The size in the first H.265 sequence parameter set (ITU-T H.265 section 7.3.2.2).
pub(super) fn hevc_size(stream: &[u8]) -> Option<(u32, u32)> {
    let set = unit(stream, |header| header >> 1 & 0x3F == 33)?;
    let mut bits = Bits::new(set.get(2..)?);
    bits.skip(4)?;
    let layers = bits.take(3)? as usize;
    // General profile and level, then flags and the same for each layer that has them.
    bits.skip(1 + 88 + 8)?;
    let mut flags = [(0, 0); 8];
    for flag in flags.iter_mut().take(layers) {
        *flag = (bits.take(1)?, bits.take(1)?);
    }
    if layers > 0 {
        bits.skip((8 - layers) * 2)?;
    }
    for (profile, level) in flags.into_iter().take(layers) {
        bits.skip(if profile == 1 { 88 } else { 0 } + if level == 1 { 8 } else { 0 })?;
    }
    bits.golomb()?;
    let chroma = bits.golomb()?;
    if chroma == 3 {
        bits.skip(1)?;
    }
    let size = (bits.golomb()?, bits.golomb()?);
    crop(&mut bits, size, (if matches!(chroma, 1 | 2) { 2 } else { 1 }, if chroma == 1 { 2 } else { 1 }))
}

/// What the cropping window leaves, in units that depend on the sampling of colour.
fn crop(bits: &mut Bits<'_>, size: (u32, u32), unit: (u32, u32)) -> Option<(u32, u32)> {
    if bits.take(1)? == 0 {
        return Some(size);
    }
    let (left, right, top, bottom) = (bits.golomb()?, bits.golomb()?, bits.golomb()?, bits.golomb()?);
    let less =
        |side: u32, one: u32, other: u32, unit: u32| side.checked_sub(one.checked_add(other)?.checked_mul(unit)?);
    Some((less(size.0, left, right, unit.0)?, less(size.1, top, bottom, unit.1)?))
}

fn scaling_lists(bits: &mut Bits<'_>, count: usize) -> Option<()> {
    for list in 0..count {
        if bits.take(1)? == 0 {
            continue;
        }
        let (mut last, mut next) = (8i32, 8i32);
        for _ in 0..if list < 6 { 16 } else { 64 } {
            if next != 0 {
                next = last.wrapping_add(bits.signed_golomb()?) & 0xFF;
            }
            if next != 0 {
                last = next;
            }
        }
    }
    Some(())
}

/// The first unit of a kind, without its start code and emulation bytes.
fn unit(stream: &[u8], wanted: impl Fn(u8) -> bool) -> Option<Vec<u8>> {
    let start = memmem::find_iter(stream, &[0, 0, 1])
        .map(|at| at + 3)
        .find(|&at| stream.get(at).is_some_and(|&header| wanted(header)))?;
    let rest = &stream[start..];
    let end = memmem::find(rest, &[0, 0, 1]).unwrap_or(rest.len());
    let mut unit = Vec::with_capacity(end);
    let mut zeros = 0;
    for &byte in &rest[..end] {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        unit.push(byte);
    }
    Some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Writer(Vec<u8>);

    impl Writer {
        fn put(mut self, bits: &str) -> Self {
            self.0.extend(bits.bytes().map(|bit| bit - b'0'));
            self
        }

        fn golomb(mut self, value: u32) -> Self {
            let bits = format!("{:b}", value + 1);
            self.0.resize(self.0.len() + bits.len() - 1, 0);
            self.put(&bits)
        }

        fn bytes(self) -> Vec<u8> {
            self.0
                .chunks(8)
                .map(|bits| bits.iter().enumerate().fold(0, |byte, (n, bit)| byte | bit << (7 - n)))
                .collect()
        }
    }

    #[test]
    fn cropped_lines_do_not_count() {
        // Id, frame number bits, order type 2, one reference frame; 120 by 68 macroblocks; eight lines cropped off.
        let fields = Writer::default().golomb(0).golomb(0).golomb(2).golomb(1).put("0").golomb(119).golomb(67);
        let fields = fields.put("111").golomb(0).golomb(0).golomb(0).golomb(4);
        let set = [&[0, 0, 0, 1, 0x67, 0x42, 0x00, 0x1E], fields.bytes().as_slice()].concat();
        assert_eq!(h264_size(&set), Some((1920, 1080)));
    }

    #[test]
    fn noise_has_no_size() {
        assert_eq!(h264_size(&[0, 0, 1, 0x67, 0xFF, 0xFF]), None);
        assert_eq!(hevc_size(&[0, 0, 1, 0x42, 1]), None);
        assert_eq!(h264_size(b"nothing"), None);
    }
}
