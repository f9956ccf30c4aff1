//! Cursors: where the next page begins. They are opaque to callers, and one of another list or another shape is refused.

use data_encoding::BASE64URL_NOPAD;
use ring::digest;

use crate::error::ApiError;

/// A cursor of the list `list` behind the entry `last`. The list's name holds all that the list depends on, its tenant first.
pub fn cursor(list: &str, last: &str) -> String {
    BASE64URL_NOPAD.encode(&[&mark(list), last.as_bytes()].concat())
}

/// The entry behind which the page begins.
pub fn read_cursor<T>(list: &str, raw: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
    let Some(raw) = raw else {
        return Ok(None);
    };
    let bytes = BASE64URL_NOPAD.decode(raw.as_bytes()).unwrap_or_default();
    let last = bytes.strip_prefix(&mark(list)).and_then(|last| std::str::from_utf8(last).ok());
    last.and_then(parse).map(Some).ok_or_else(|| ApiError::validation("cursor: not one of this list"))
}

/// Tells lists apart, and says nothing of their names. It is no secret: a cursor gives no right to anything.
fn mark(list: &str) -> [u8; 8] {
    let hash = digest::digest(&digest::SHA256, list.as_bytes());
    hash.as_ref()[..8].try_into().expect("a digest has 32 bytes")
}

/// How many entries the page has.
pub fn limit(raw: Option<&str>, default: usize, most: usize) -> Result<usize, ApiError> {
    let Some(raw) = raw else {
        return Ok(default);
    };
    match raw.parse() {
        Ok(limit) if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(ApiError::validation(format!("limit: 1 to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_list_alone() {
        let made = cursor("runs", "run-7");
        let read = |list: &str, raw: &str| read_cursor(list, Some(raw), |last| Some(last.to_owned())).ok().flatten();

        assert_eq!(read("runs", &made), Some("run-7".into()));
        assert_eq!(read("assets", &made), None);
        assert!(!String::from_utf8_lossy(&BASE64URL_NOPAD.decode(made.as_bytes()).expect("base64")).contains("runs"));
        for broken in ["", "!", "cnVucw", &made[1..]] {
            assert_eq!(read("runs", broken), None, "{broken}");
        }
    }
}
