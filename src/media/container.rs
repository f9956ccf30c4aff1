//! Containers that hold sound, pictures or both: which it is, is decided by their tracks.
//!
//! Promised: a file of sound alone is audio whatever its brand says; lengths come from what is there, and a claim that
//! the bytes cannot bear is flagged instead of repeated. Deliberately absent: samples.

pub(super) mod boxes;

mod asf;
mod avi;
mod bits;
mod bmff;
mod codecs;
mod ebml;
mod flv;
mod matroska;
mod movie;
mod mpeg;
mod mxf;
mod ogg;
mod real;
mod track;
mod transport;
mod video;

use super::{Found, reader::Bytes};

pub(super) use bits::Bits;
pub(super) use codecs::{AudioConfig, aac_rate, channels, wave_codec};

/// By signature.
pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    bmff::probe(bytes, head)
        .or_else(|| matroska::probe(bytes, head))
        .or_else(|| ogg::probe(bytes, head))
        .or_else(|| avi::probe(bytes, head))
        .or_else(|| asf::probe(bytes, head))
        .or_else(|| flv::probe(bytes, head))
        .or_else(|| real::probe(bytes, head))
        .or_else(|| mxf::probe(bytes, head))
        .or_else(|| mpeg::probe(bytes, head))
}

/// Transport streams repeat one byte at a distance, and that is all that they promise.
pub(super) fn probe_faint(bytes: &mut Bytes<'_>, _: &[u8]) -> Option<Found> {
    transport::probe(bytes)
}
