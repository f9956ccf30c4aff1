//! Packed files: what packs them, and for zips what they are beyond that.
//!
//! Promised: names and structure. Deliberately absent: what is inside. Nothing is unpacked but one small list of parts.

mod package;
mod tar;
mod zip;

use super::{
    Found,
    reader::{Broken, Bytes, Fields},
};

/// By signature.
pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    zip::probe(bytes, head).or_else(|| tar::probe(bytes, head)).or_else(|| packed(bytes, head))
}

fn packed(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let found = match head {
        [0x1F, 0x8B, 8, ..] => least(bytes, "application/gzip", 18),
        [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..] if is_bzip(rest) => least(bytes, "application/x-bzip2", 14),
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => xz(bytes),
        [0x28, 0xB5, 0x2F, 0xFD, ..] => Found::plain("application/zstd"),
        [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Found::plain("application/zstd"),
        [0x04, 0x22, 0x4D, 0x18, ..] | [0x02, 0x21, 0x4C, 0x18, ..] => Found::plain("application/x-lz4"),
        [b'L', b'Z', b'I', b'P', 0 | 1, ..] => least(bytes, "application/x-lzip", 26),
        [0x5D, 0, 0, ..] if is_lzma(head) => Found::plain("application/x-lzma"),
        [0x1F, 0x9D, flags, ..] if (9..=16).contains(&(flags & 0x1F)) => Found::plain("application/x-compress"),
        [b'7', b'z', 0xBC, 0xAF, 0x27, 0x1C, ..] if head.len() >= 32 => seven(bytes),
        [b'R', b'a', b'r', b'!', 0x1A, 0x07, 0, ..] | [b'R', b'a', b'r', b'!', 0x1A, 0x07, 1, 0, ..] => {
            Found::plain("application/vnd.rar")
        }
        [b'M', b'S', b'C', b'F', 0, 0, 0, 0, ..] => cabinet(bytes, head),
        [0x60, 0xEA, ..] if is_arj(head) => Found::plain("application/x-arj"),
        [0xED, 0xAB, 0xEE, 0xDB, ..] => Found::plain("application/x-rpm"),
        [b'x', b'a', b'r', b'!', 0, ..] => Found::plain("application/x-xar"),
        [b'C', b'r', b'2', b'4', 2 | 3, 0, 0, 0, ..] => Found::plain("application/x-chrome-extension"),
        // Headers of digits all through; a number could begin like one.
        [b'0', b'7', b'0', b'7', b'0', b'1' | b'2' | b'7', rest @ ..]
            if rest.get(..64).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) =>
        {
            Found::plain("application/x-cpio")
        }
        [0xC7, 0x71, ..] | [0x71, 0xC7, ..] if is_old_cpio(head) => Found::plain("application/x-cpio"),
        _ if head.starts_with(b"!<arch>\ndebian-binary") => Found::plain("application/vnd.debian.binary-package"),
        _ if head.starts_with(b"!<arch>\n") => Found::plain("application/x-archive"),
        _ if head.starts_with(b"WARC/1.") || head.starts_with(b"WARC/0.") => Found::plain("application/warc"),
        _ if bytes.peek(32_769, 5) == b"CD001" => Found::plain("application/x-iso9660-image"),
        _ => return None,
    };
    Some(found)
}

/// A format whose smallest file is known.
fn least(bytes: &Bytes<'_>, name: &str, size: u64) -> Found {
    let mut found = Found::of(name);
    found.facts.settle(bytes.reaches(size));
    found
}

/// The first block's mark, or the mark of an empty file's end.
fn is_bzip(rest: &[u8]) -> bool {
    rest.starts_with(&[0x31, 0x41, 0x59, 0x26, 0x53, 0x59]) || rest.starts_with(&[0x17, 0x72, 0x45, 0x38, 0x50, 0x90])
}

/// The usual properties, a dictionary of a round size, an open or a possible length, and a first byte of the range coder, always zero.
fn is_lzma(head: &[u8]) -> bool {
    let round = head.le32(1).is_some_and(|size| size >= 1 << 12 && size.count_ones() <= 2);
    let length = head.le64(5).is_some_and(|length| length == u64::MAX || length < 1 << 40);
    round && length && head.get(13) == Some(&0)
}

/// The footer ends with the magic's letters, behind padding of zeros.
fn xz(bytes: &mut Bytes<'_>) -> Found {
    let (_, tail) = bytes.tail(1024);
    let end = tail.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let mut found = Found::of("application/x-xz");
    found.facts.settle(if tail[..end].ends_with(b"YZ") { Ok(()) } else { Err(Broken::Short) });
    found
}

/// The start header says where the end header lies.
fn seven(bytes: &mut Bytes<'_>) -> Found {
    let mut found = Found::of("application/x-7z-compressed");
    let walk = (|| {
        let end =
            bytes.le64(12)?.checked_add(bytes.le64(20)?).and_then(|end| end.checked_add(32)).ok_or(Broken::Bad)?;
        bytes.reaches(end)?;
        found.facts.ends_at(bytes, end);
        Ok(())
    })();
    found.facts.settle(walk);
    found
}

fn cabinet(bytes: &Bytes<'_>, head: &[u8]) -> Found {
    let mut found = Found::of("application/vnd.ms-cab-compressed");
    found.facts.settle(head.le32(8).ok_or(Broken::Short).and_then(|size| bytes.reaches(size.into())));
    found
}

/// A basic header of a possible size, whose first part is 30 bytes or more.
fn is_arj(head: &[u8]) -> bool {
    let size = head.le16(2).unwrap_or(0);
    (30..=2600).contains(&size) && head.get(4).is_some_and(|&first| first >= 30 && u16::from(first) <= size)
}

/// Old binary headers are 26 bytes and a name that a zero ends.
fn is_old_cpio(head: &[u8]) -> bool {
    let little = head.first() == Some(&0xC7);
    let length = if little { head.le16(20) } else { head.be16(20) };
    let length = usize::from(length.unwrap_or(0));
    (2..=1024).contains(&length) && head.get(26 + length - 1) == Some(&0)
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn signatures_name_packers() {
        for (head, name) in [
            (b"\x1F\x8B\x08\0\0\0\0\0".as_slice(), "application/gzip"),
            (b"Rar!\x1A\x07\x01\0", "application/vnd.rar"),
            (b"\x50\x2A\x4D\x18\0\0\0\0", "application/zstd"),
            (b"\x5D\0\0\x80\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0", "application/x-lzma"),
            (b"!<arch>\ndebian-binary   ", "application/vnd.debian.binary-package"),
        ] {
            assert_eq!(look(head).mime_type, name);
        }
    }
}
