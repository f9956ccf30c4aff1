//! Cursors: where the next page begins. They are opaque to callers, and one of another list or another shape is refused.

use data_encoding::BASE64URL_NOPAD;

use crate::error::ApiError;

/// A cursor of the list `list` behind the entry `last`.
pub fn cursor(list: &str, last: &str) -> String {
    BASE64URL_NOPAD.encode(format!("{list}\n{last}").as_bytes())
}

/// The entry behind which the page begins.
pub fn read_cursor<T>(list: &str, raw: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
    let Some(raw) = raw else {
        return Ok(None);
    };
    let text = BASE64URL_NOPAD.decode(raw.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let last = text.as_deref().and_then(|text| text.split_once('\n')).filter(|(of, _)| *of == list);
    last.and_then(|(_, last)| parse(last)).map(Some).ok_or_else(|| ApiError::validation("cursor: not one of this list"))
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
        for broken in ["", "!", "cnVucw", &made[1..]] {
            assert_eq!(read("runs", broken), None, "{broken}");
        }
    }
}
