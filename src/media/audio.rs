//! Sound in files of its own: type, length, channels and rate.
//!
//! Promised: lengths are counted or computed from the bytes that are there; a header's claim is used only where the
//! bytes can bear it. Deliberately absent: samples.

mod aac;
mod ac3;
mod aiff;
mod flac;
mod free;
mod lossless;
mod mpeg;
mod plain;
mod tags;
mod tracker;
mod wav;

use super::{Found, reader::Bytes};

pub(super) use aac::header as adts_header;
pub(super) use ac3::{CHANNELS as AC3_CHANNELS, header as ac3_header};
pub(super) use mpeg::header as mpeg_header;

/// By signature, with or without tags in front.
pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if head.starts_with(b"ID3") && tags::is_id3(head) {
        return Some(tagged(bytes));
    }
    untagged(bytes, head, 0)
}

/// Frames after junk, and frames that a tag alone does not introduce.
pub(super) fn probe_faint(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    aac::probe(bytes, head, 0)
        .or_else(|| aac::probe_latm(bytes, head))
        .or_else(|| ac3::probe(bytes, head))
        .or_else(|| mpeg::probe(bytes, head))
        .or_else(|| free::probe(bytes, head))
        .or_else(|| tracker::probe_faint(bytes, head))
}

fn untagged(bytes: &mut Bytes<'_>, head: &[u8], at: u64) -> Option<Found> {
    wav::probe(bytes, head)
        .or_else(|| aiff::probe(bytes, head))
        .or_else(|| flac::probe(bytes, head, at))
        .or_else(|| plain::probe(bytes, head, at))
        .or_else(|| tracker::probe(bytes, head))
}

/// What follows the tags decides; tags before nothing recognisable are an MP3's, for nobody else begins so.
fn tagged(bytes: &mut Bytes<'_>) -> Found {
    let at = tags::skip(bytes);
    let head = bytes.peek(at, 64 << 10).to_vec();
    let other =
        [b"fLaC".as_slice(), b"MAC ", b"wvpk", b"TTA1", b"MPCK", b"MP+"].iter().any(|mark| head.starts_with(mark));
    if other && let Some(found) = untagged(bytes, &head, at) {
        return found;
    }
    aac::probe(bytes, &head, at).unwrap_or_else(|| mpeg::inspect(bytes, at))
}
