//! Pictures: type, size, orientation and number of frames, from their headers alone.
//!
//! Promised: a picture that claims 100,000 × 100,000 pixels costs what its header costs. Deliberately absent: pixels.
//! No decoder is called, not even to "check": a container that holds is all that is said.

mod faint;
mod gif;
mod heif;
mod jpeg;
mod jpeg2000;
mod jxl;
mod netpbm;
mod png;
mod raster;
mod tiff;
mod vector;
mod webp;

use super::{
    Found,
    reader::{Bytes, Fields},
};

pub(super) use heif::probe as probe_heif;

/// By signature.
pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    match head.first()? {
        0x89 if head.starts_with(png::SIGNATURE) => Some(png::inspect(bytes)),
        0xFF if head.starts_with(&[0xFF, 0xD8, 0xFF]) => Some(jpeg::inspect(bytes)),
        b'G' if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") => Some(gif::inspect(bytes)),
        b'R' if head.starts_with(b"RIFF") && head.has(8, b"WEBPVP") => Some(webp::inspect(bytes)),
        b'I' | b'M' | b'F' => tiff::probe(bytes, head),
        _ => None,
    }
    .or_else(|| raster::probe(bytes, head))
    .or_else(|| jpeg2000::probe(bytes, head))
    .or_else(|| jxl::probe(bytes, head))
    .or_else(|| netpbm::probe(bytes, head))
    .or_else(|| vector::probe(bytes, head))
}

/// Formats whose first bytes could be anything's.
pub(super) fn probe_faint(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    faint::probe(bytes, head)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    // The crate, not this module.
    use ::image::{DynamicImage, ImageFormat};

    use crate::media::tests::look;

    #[test]
    fn what_encoders_write_is_understood() {
        for (format, name) in [
            (ImageFormat::Png, "image/png"),
            (ImageFormat::Jpeg, "image/jpeg"),
            (ImageFormat::Gif, "image/gif"),
            (ImageFormat::WebP, "image/webp"),
            (ImageFormat::Bmp, "image/bmp"),
            (ImageFormat::Tiff, "image/tiff"),
            (ImageFormat::Ico, "image/vnd.microsoft.icon"),
        ] {
            let picture = DynamicImage::new_rgba8(70, 50);
            let picture = if format == ImageFormat::Jpeg { picture.to_rgb8().into() } else { picture };
            let mut file = Cursor::new(Vec::new());
            picture.write_to(&mut file, format).expect("an encoder");

            let found = look(file.get_ref());

            assert_eq!(found.mime_type, name);
            assert_eq!(
                (found.facts.width, found.facts.height, found.facts.frames),
                (Some(70), Some(50), Some(1)),
                "{name}"
            );
            assert!(found.facts.well_formed && found.facts.flags.is_empty(), "{name}: {:?}", found.facts);
        }
    }
}
