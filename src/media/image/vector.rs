//! Drawings of instructions: Windows metafiles and DjVu pages.
//!
//! Deliberately absent: a size for metafiles. They state one in units of a device that is not here.

use crate::media::{
    Facts, Found, Provenance,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if head.starts_with(&[0xD7, 0xCD, 0xC6, 0x9A]) || head.starts_with(&[1, 0, 9, 0, 0, 3]) {
        return Some(Found::plain("image/wmf"));
    }
    if head.starts_with(&[1, 0, 0, 0]) && head.has(40, b" EMF") {
        let mut found = Found::of("image/emf");
        let stated = u64::from(head.le32(48).unwrap_or(u32::MAX));
        found.facts.settle(bytes.reaches(stated));
        return Some(found);
    }
    if head.starts_with(b"AT&TFORM") && head.has(12, b"DJV") || head.has(12, b"THUM") && head.starts_with(b"AT&T") {
        let mut found = Found::of("image/vnd.djvu");
        let walk = djvu(bytes, &mut found.facts);
        found.facts.settle(walk);
        return Some(found);
    }
    None
}

/// IFF chunks: one page, or a directory and many pages in forms of their own.
fn djvu(bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
    let end = 12 + u64::from(bytes.be32(8)?);
    let many = bytes.array::<4>(12)? == *b"DJVM";
    let mut at = 16;
    let mut pages = 0;
    while at + 8 <= end.min(bytes.size()) {
        bytes.step()?;
        let name: [u8; 4] = bytes.array(at)?;
        let length = u64::from(bytes.be32(at + 4)?);
        let form = bytes.peek(at + 8, 4) == b"DJVU";
        if many && &name == b"FORM" && form {
            pages += 1;
            if bytes.peek(at + 12, 4) == b"INFO" && facts.width.is_none() {
                facts.size(bytes.be16(at + 20)?.into(), bytes.be16(at + 22)?.into());
            }
        } else if &name == b"INFO" && !many {
            pages = 1;
            facts.size(bytes.be16(at + 8)?.into(), bytes.be16(at + 10)?.into());
        }
        at += 8 + length + (length & 1);
    }
    facts.pictures(pages, Provenance::Scanned);
    if at > end + 1 {
        return Err(Broken::Bad);
    }
    bytes.reaches(end)
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn a_page_states_its_size() {
        let file = b"AT&TFORM\0\0\0\x16DJVUINFO\0\0\0\x0A\x03\x52\x04\x4C\x18\0\x2C\x01\x16\x01";
        let found = look(file);
        assert_eq!(found.mime_type, "image/vnd.djvu");
        assert_eq!((found.facts.width, found.facts.height), (Some(850), Some(1100)));
        assert!(found.facts.well_formed);
    }
}
