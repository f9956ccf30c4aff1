//! MPEG-1 and MPEG-2 programme streams, and bare video of theirs.
//!
//! Promised: size from the first sequence header. Deliberately absent: a length. Time stamps may start anywhere and
//! jump, and the streams do not say.

use memchr::memmem;

use crate::media::{
    Facts, Found,
    reader::{Bytes, Fields},
};

/// How far the first sequence header may lie.
const SEARCHED: usize = 64 << 10;

pub(super) fn probe(_: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let pack =
        head.starts_with(&[0, 0, 1, 0xBA]) && head.get(4).is_none_or(|&first| first >> 6 == 1 || first >> 4 == 2);
    let bare = head.starts_with(&[0, 0, 1, 0xB3]) && head.len() >= 12;
    if !pack && !bare {
        return None;
    }
    let mut found = Found::plain("video/mpeg");
    sequence(&head[..head.len().min(SEARCHED)], &mut found.facts);
    Some(found)
}

/// Notes the size in the first sequence header, if there is one.
pub(super) fn sequence(from: &[u8], facts: &mut Facts) -> bool {
    let Some(at) = memmem::find(from, &[0, 0, 1, 0xB3]) else { return false };
    let Some(packed) = from.be24(at + 4) else { return false };
    facts.size(packed >> 12, packed & 0xFFF);
    let extended = memmem::find(&from[at..], &[0, 0, 1, 0xB5]).is_some_and(|extension| extension < 256);
    facts.coded(if extended { "mpeg2" } else { "mpeg1" });
    true
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn a_sequence_header_tells_the_size() {
        let found = look(b"\0\0\x01\xBA\x21\0\x01\0\x01\x80\0\x01\0\0\x01\xB3\x0A\x00\x78\x13\0\0\0\0\0");
        assert_eq!(
            (found.mime_type.as_str(), found.facts.width, found.facts.height),
            ("video/mpeg", Some(160), Some(120))
        );
    }
}
