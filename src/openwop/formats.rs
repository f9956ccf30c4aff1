//! The names of export formats (RFC 0205 §C): fifteen aliases, each of exactly one media type, and the pattern of what may stand in such a
//! list.

/// Each alias and the type that it names.
pub const FORMATS: [(&str, &str); 15] = [
    ("pdf", "application/pdf"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("txt", "text/plain"),
    ("csv", "text/csv"),
    ("json", "application/json"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("jpeg", "image/jpeg"),
    ("step", "model/step"),
    ("stl", "model/stl"),
    ("dxf", "image/vnd.dxf"),
];

/// The longest entry of a list of formats.
const MAX_ENTRY: usize = 255;

/// The longest half of a media type.
const MAX_NAME: usize = 127;

/// The format that an alias or a media type names; both are one. A spelling that no list may hold names none.
pub fn find(entry: &str) -> Option<(&'static str, &'static str)> {
    let known = FORMATS.into_iter().find(|(alias, media_type)| entry == *alias || entry == *media_type);
    known.filter(|_| is_entry(entry))
}

/// Whether this may stand in a list of formats: a word, `vendor.<org>.<word>`, `x-<word>`, or a media type in lower case without parameters.
pub fn is_entry(entry: &str) -> bool {
    if entry.len() > MAX_ENTRY {
        return false;
    }
    if let Some((top, sub)) = entry.split_once('/') {
        return is_type_name(top) && is_type_name(sub);
    }
    if let Some(rest) = entry.strip_prefix("vendor.") {
        return rest.split_once('.').is_some_and(|(organisation, word)| is_word(organisation) && is_word(word));
    }
    if let Some(word) = entry.strip_prefix("x-") {
        return is_word(word);
    }
    entry.starts_with(|c: char| c.is_ascii_lowercase()) && entry.bytes().all(is_small)
}

/// A letter, then letters, digits and dashes.
fn is_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase()) && word.bytes().all(|byte| is_small(byte) || byte == b'-')
}

/// One half of a media type (RFC 6838 §4.2), in lower case.
fn is_type_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().next().is_some_and(is_small)
        && name.bytes().all(|byte| is_small(byte) || b"!#$&^_.+-".contains(&byte))
}

fn is_small(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_and_its_type_are_one_format() {
        for (alias, media_type) in FORMATS {
            assert!(is_entry(alias) && is_entry(media_type), "{alias}");
            assert_eq!(find(alias), Some((alias, media_type)));
            assert_eq!(find(media_type), Some((alias, media_type)));
        }
        let mut names: Vec<&str> = FORMATS.into_iter().flat_map(|(alias, media_type)| [alias, media_type]).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 30, "no name is of two formats");
        assert_eq!(find("jpg"), None, "a word, and nobody's alias");
    }

    #[test]
    fn what_may_stand_in_a_list() {
        let long = format!("{}/{}", "a".repeat(127), "b".repeat(127));
        for entry in [
            "jpg",
            "x-own",
            "x-a1-b",
            "vendor.acme.report",
            "vendor.a-b.c-d",
            "audio/mpeg",
            "image/svg+xml",
            "0/1",
            &long,
        ] {
            assert!(is_entry(entry), "{entry}");
        }
    }

    #[test]
    fn what_may_not() {
        let (long, longer) = (format!("{}/x", "a".repeat(128)), "a".repeat(256));
        for entry in [
            "",
            "PPTX",
            "Application/PDF",
            "text/html;charset=utf-8",
            "application/",
            "/pdf",
            "/",
            "a/b/c",
            "1pdf",
            "p-d",
            "x-",
            "x-1",
            "X-own",
            "vendor.acme",
            "vendor..x",
            "vendor.acme.",
            "vendor.1.a",
            "vendor.Acme.x",
            "text/ html",
            "text/ht ml",
            ".txt",
            "text/.x",
            "*/*",
            "p\u{e4}",
            &long,
            &longer,
        ] {
            assert!(!is_entry(entry), "{entry}");
            assert_eq!(find(entry), None, "{entry}");
        }
    }
}
