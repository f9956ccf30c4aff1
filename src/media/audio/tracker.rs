//! Tracker modules: scores with their own instruments.
//!
//! Deliberately absent: how long they last. That takes playing them.

use crate::media::{Found, reader::Fields};

pub(super) fn probe(head: &[u8]) -> Option<Found> {
    let name = if head.starts_with(b"IMPM") && head.len() >= 192 {
        "audio/x-it"
    } else if head.starts_with(b"Extended Module: ") {
        "audio/x-xm"
    } else if head.has(44, b"SCRM") && head.get(28) == Some(&0x1A) {
        "audio/x-s3m"
    } else {
        return None;
    };
    Some(Found::plain(name))
}

/// A module's mark stands behind 31 instrument headers.
pub(super) fn probe_faint(head: &[u8]) -> Option<Found> {
    let mark: [u8; 4] = head.part(1080)?;
    let known = matches!(&mark, b"M.K." | b"M!K!" | b"4CHN" | b"6CHN" | b"8CHN" | b"FLT4" | b"FLT8");
    known.then(|| Found::plain("audio/x-mod"))
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn marks_stand_where_they_should() {
        let mut module = vec![0; 1084];
        module[1080..].copy_from_slice(b"M.K.");
        assert_eq!(look(&module).mime_type, "audio/x-mod");
        let mut screamer = vec![0; 96];
        screamer[28] = 0x1A;
        screamer[44..48].copy_from_slice(b"SCRM");
        assert_eq!(look(&screamer).mime_type, "audio/x-s3m");
    }
}
