//! Media of our own making, small and right.

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};

/// A PNG of that size.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    picture(width, height, ImageFormat::Png)
}

/// A picture of that size and format.
pub fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let picture = RgbImage::from_fn(width, height, |x, y| Rgb([(x % 251) as u8, (y % 241) as u8, 90]));
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).expect("memory takes it");
    bytes.into_inner()
}

/// A WAV of so many seconds of silence, 8 kHz, mono, 8 bit.
pub fn wav(seconds: u32) -> Vec<u8> {
    let length = seconds * 8_000;
    let mut file = b"RIFF".to_vec();
    file.extend((length + 36).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(8_000u32.to_le_bytes());
    file.extend(8_000u32.to_le_bytes());
    file.extend(b"\x01\0\x08\0data");
    file.extend(length.to_le_bytes());
    file.extend(vec![128; length as usize]);
    file
}

/// Bytes of that number that are nothing in particular, the same every time for the same seed.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(length)
    .collect()
}
