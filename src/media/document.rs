//! Documents with a format of their own; those that are zips inside are the archives' affair.

mod ole;
mod pdf;

use super::{
    Found,
    reader::{Broken, Bytes, Fields},
};

/// By signature.
pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    pdf::probe(bytes, head)
        .or_else(|| ole::probe(bytes, head))
        .or_else(|| postscript(bytes, head))
        .or_else(|| other(bytes, head))
}

/// PostScript, bare or in the binary wrapper with a preview.
fn postscript(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    // Printers are woken by an end of transmission.
    if head.strip_prefix(b"\x04").unwrap_or(head).starts_with(b"%!PS") {
        return Some(Found::plain("application/postscript"));
    }
    if !head.starts_with(&[0xC5, 0xD0, 0xD3, 0xC6]) {
        return None;
    }
    let end = u64::from(head.le32(4)?) + u64::from(head.le32(8)?);
    let mut found = Found::of("application/postscript");
    found.facts.settle(bytes.reaches(end));
    Some(found)
}

fn other(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if head.starts_with(b"{\\rtf") {
        let (_, tail) = bytes.tail(64);
        let closed = tail.iter().rfind(|byte| !byte.is_ascii_whitespace() && **byte != 0) == Some(&b'}');
        let mut found = Found::of("application/rtf");
        found.facts.settle(if closed { Ok(()) } else { Err(Broken::Short) });
        return Some(found);
    }
    let name = if head.starts_with(b"ITSF") && head.le32(4).is_some_and(|version| (2..=3).contains(&version)) {
        "application/vnd.ms-htmlhelp"
    } else if head.has(60, b"BOOKMOBI") {
        "application/x-mobipocket-ebook"
    } else if head.starts_with(b"%FDF-") {
        "application/vnd.fdf"
    } else if head.starts_with(b"\xE4\x52\x5C\x7B\x8C\xD8\xA7\x4D\xAE\xB1\x53\x78\xD0\x29\x96\xD3") {
        "application/onenote"
    } else {
        return None;
    };
    Some(Found::plain(name))
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn signatures_name_documents() {
        assert_eq!(look(b"{\\rtf1 hello}\n").mime_type, "application/rtf");
        assert!(!look(b"{\\rtf1 hello").facts.well_formed);
        assert_eq!(look(b"%!PS-Adobe-3.0\n").mime_type, "application/postscript");
    }
}
