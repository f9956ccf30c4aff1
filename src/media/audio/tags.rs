//! Tags around sound: ID3v2 in front, ID3v1, APE and Lyrics3 behind.
//!
//! Promised: a tag's claimed size never leads beyond the bytes. Deliberately absent: what the tags say.

use crate::media::reader::{Bytes, Fields};

/// Tags in a row that are skipped; real files have at most two.
const MOST_TAGS: usize = 32;

/// True for an ID3v2 header, or as much of one as there is.
pub(super) fn is_id3(head: &[u8]) -> bool {
    let version = head.get(3).is_none_or(|&major| (2..=4).contains(&major));
    version && head.get(6..10).is_none_or(|size| size.iter().all(|byte| byte & 0x80 == 0))
}

/// The offset behind the tags in front. A tag that claims to reach beyond the end is taken for its header alone.
pub(super) fn skip(bytes: &mut Bytes<'_>) -> u64 {
    let mut at = 0;
    for _ in 0..MOST_TAGS {
        let head = bytes.peek(at, 10).to_vec();
        if head.len() < 10 || !head.starts_with(b"ID3") || !is_id3(&head) {
            break;
        }
        let size = head[6..10].iter().fold(0u64, |size, &byte| size << 7 | u64::from(byte & 0x7F));
        let footer = if head[5] & 0x10 == 0 { 0 } else { 10 };
        let end = at + 10 + size + footer;
        at = if end > bytes.size() { at + 10 } else { end };
    }
    at
}

/// Where the sound ends: before the tags that stand behind it.
pub(super) fn sound_end(bytes: &mut Bytes<'_>) -> u64 {
    let mut end = bytes.size();
    for _ in 0..4 {
        let before = end;
        if end >= 128 && bytes.peek(end - 128, 3) == b"TAG" {
            end -= 128;
        }
        if end >= 32 && bytes.peek(end - 32, 8) == b"APETAGEX" {
            let footer = bytes.peek(end - 32, 32).to_vec();
            let size = u64::from(footer.le32(12).unwrap_or(0));
            let header = if footer.le32(20).unwrap_or(0) >> 31 == 1 { 32 } else { 0 };
            end = end.saturating_sub((size + header).max(32));
        }
        if end >= 15 && bytes.peek(end - 9, 9) == b"LYRICS200" {
            let digits = bytes.peek(end - 15, 6).to_vec();
            let size = std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0);
            end = end.saturating_sub(size + 15);
        }
        if end == before {
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn tags_in_a_row_are_skipped() {
        let tag = [b"ID3\x04\0\0\0\0\0\x05".as_slice(), b"TTTTT"].concat();
        let file = [tag.as_slice(), &tag, b"sound"].concat();
        assert_eq!(skip(&mut Bytes::new(&mut Cursor::new(&file), file.len() as u64)), 30);
    }

    #[test]
    fn a_tag_larger_than_the_file_hides_nothing() {
        let file = b"ID3\x04\0\0\x7F\x7F\x7F\x7Fsound";
        assert_eq!(skip(&mut Bytes::new(&mut Cursor::new(file), file.len() as u64)), 10);
    }
}
