//! JPEG 2000 (ITU-T T.800): boxes around a codestream, or the codestream alone.

use crate::media::{
    Facts, Found,
    container::boxes,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if head.starts_with(&[0xFF, 0x4F, 0xFF, 0x51]) {
        let mut found = Found::of("image/x-jp2-codestream");
        let walk = codestream(bytes, 0, &mut found.facts).and_then(|()| {
            let (_, tail) = bytes.tail(2);
            if tail == [0xFF, 0xD9] { Ok(()) } else { Err(Broken::Short) }
        });
        found.facts.settle(walk);
        return Some(found);
    }
    if !head.starts_with(b"\0\0\0\x0CjP  \r\n\x87\n") && !head.starts_with(b"\0\0\0\x0CjP\x1A\x1A\r\n\x87\n") {
        return None;
    }
    let mut found = Found::of(match head.get(20..24) {
        Some(b"jpx ") => "image/jpx",
        Some(b"jpm ") => "image/jpm",
        _ => "image/jp2",
    });
    let walk = walk(bytes, &mut found.facts);
    found.facts.settle(walk);
    Some(found)
}

fn walk(bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
    let size = bytes.size();
    boxes::each(bytes, 0, size, &mut |bytes, found| {
        if &found.name == b"jp2h" {
            return boxes::each(bytes, found.body, found.end, &mut |bytes, inner| {
                if &inner.name == b"ihdr" && facts.width.is_none() {
                    facts.size(bytes.be32(inner.body + 4)?, bytes.be32(inner.body)?);
                }
                Ok(())
            });
        }
        if &found.name == b"jp2c" && facts.width.is_none() {
            return codestream(bytes, found.body, facts);
        }
        Ok(())
    })
}

/// The size marker comes first; the image lies in the reference grid from its offset on.
fn codestream(bytes: &mut Bytes<'_>, at: u64, facts: &mut Facts) -> Walk {
    let siz = bytes.take(at + 8, 16)?;
    let field = |n| siz.be32(n).ok_or(Broken::Short);
    let side = |end: u32, start: u32| end.saturating_sub(start);
    facts.size(side(field(0)?, field(8)?), side(field(4)?, field(12)?));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn a_codestream_states_its_size() {
        let file = [
            b"\xFF\x4F\xFF\x51\x00\x29\x00\x00\x00\x00\x00\x0A\x00\x00\x00\x09\x00\x00\x00\x02\x00\x00\x00\x01"
                .as_slice(),
            &[0; 30],
            b"\xFF\xD9",
        ]
        .concat();
        let found = look(&file);
        assert_eq!(found.mime_type, "image/x-jp2-codestream");
        assert_eq!((found.facts.width, found.facts.height), (Some(8), Some(8)));
        assert!(found.facts.well_formed);
    }
}
