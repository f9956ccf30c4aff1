//! A picture and a sound of our own, for whoever has no file at hand.

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};

/// The sample files: names and bytes.
pub(crate) fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![("sunrise.png", picture()), ("chord.wav", sound())]
}

/// A sky that brightens towards a sun.
fn picture() -> Vec<u8> {
    let (width, height) = (480u32, 270u32);
    let picture = RgbImage::from_fn(width, height, |x, y| {
        let (dx, dy) = (f64::from(x) - 240.0, f64::from(y) - 200.0);
        let glow = (1.0 - (dx * dx + dy * dy).sqrt() / 300.0).clamp(0.0, 1.0);
        let sky = f64::from(y) / f64::from(height);
        let shade = |low: f64, high: f64| (low + (high - low) * glow.max(sky * 0.6)).round() as u8;
        Rgb([shade(24.0, 255.0), shade(32.0, 176.0), shade(92.0, 96.0)])
    });
    let mut bytes = Cursor::new(Vec::new());
    // Writing to memory cannot fail; should it, the sample is empty and the ingest says so.
    let _ = picture.write_to(&mut bytes, ImageFormat::Png);
    bytes.into_inner()
}

/// Two seconds of a fading major chord: 16-bit PCM, mono.
fn sound() -> Vec<u8> {
    const RATE: u32 = 22_050;
    let samples = (0..RATE * 2).map(|n| {
        let at = f64::from(n) / f64::from(RATE);
        let chord: f64 = [261.63, 329.63, 392.0].iter().map(|tone| (std::f64::consts::TAU * tone * at).sin()).sum();
        (chord / 3.0 * (-at * 1.5).exp() * 24_000.0) as i16
    });
    let data: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
    let length = u32::try_from(data.len()).unwrap_or(0);
    let mut file = Vec::with_capacity(data.len() + 44);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(length + 36).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend_from_slice(&RATE.to_le_bytes());
    file.extend_from_slice(&(RATE * 2).to_le_bytes());
    file.extend_from_slice(b"\x02\0\x10\0data");
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(&data);
    file
}
