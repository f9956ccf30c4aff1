//! File names: what of a sent name is kept, and how `Content-Disposition` carries it (RFC 6266, RFC 8187).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// A `Content-Disposition` value that every agent parses to one safe name, whatever the name holds.
///
/// `filename` is plain ASCII for old agents; `filename*` follows it where ASCII does not say it all.
pub fn content_disposition(disposition: Disposition, name: Option<&str>) -> String {
    let disposition = match disposition {
        Disposition::Inline => "inline",
        Disposition::Attachment => "attachment",
    };
    let Some(name) = name.and_then(clean_name) else {
        return disposition.to_owned();
    };
    let plain = plain(&name);
    if plain == name {
        return format!("{disposition}; filename=\"{plain}\"");
    }
    let full = utf8_percent_encode(&name, EXT_VALUE);
    format!("{disposition}; filename=\"{plain}\"; filename*=UTF-8''{full}")
}

/// Whether a browser may show the asset or has to save it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Shown in place.
    Inline,
    /// Saved to a file.
    Attachment,
}

/// The part of a sent name that is kept: without control and bidi-control characters, path separators and outer white
/// space. Nothing when nothing is left, or only a step in a path.
///
/// ```
/// # use mediakeep::http::disposition::clean_name;
/// assert_eq!(clean_name("a/b\r\n.txt").as_deref(), Some("ab.txt"));
/// assert_eq!(clean_name(" /.. "), None);
/// ```
pub fn clean_name(raw: &str) -> Option<String> {
    let kept: String = raw.chars().filter(|c| !is_separator(*c) && !c.is_control() && !is_bidi_control(*c)).collect();
    match kept.trim() {
        "" | "." | ".." => None,
        name => Some(name.to_owned()),
    }
}

/// RFC 8187's `attr-char` as it stands; everything else as percent-encoded UTF-8.
const EXT_VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// RFC 6266, appendix D: some agents take `\"` for a path and some decode `%41`, so neither is in the plain name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if matches!(c, ' '..='~') && !matches!(c, '"' | '\\' | '%') { c } else { '_' }).collect()
}

fn is_separator(c: char) -> bool {
    matches!(c, '/' | '\\')
}

/// Unicode's property `Bidi_Control`: what can make `gpj.exe` look like `exe.jpg`.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sent_name_loses_what_could_mislead_and_keeps_the_rest() {
        let table = [
            ("signups.png", Some("signups.png")),
            ("한글.pdf", Some("한글.pdf")),
            ("👩‍🚀 flight.jpg", Some("👩‍🚀 flight.jpg")),
            ("x\r\nSet-Cookie: a=1.txt", Some("xSet-Cookie: a=1.txt")),
            ("../../etc/passwd", Some("....etcpasswd")),
            ("C:\\temp\\a.txt", Some("C:tempa.txt")),
            ("\u{202E}gpj.exe", Some("gpj.exe")),
            ("a\u{2066}b\u{2069}\u{061C}\u{200E}\u{200F}c", Some("abc")),
            ("a\0b\u{7f}c\u{85}d", Some("abcd")),
            (" \t report.pdf\u{a0}\n", Some("report.pdf")),
            ("...", Some("...")),
            (".", None),
            ("/../", None),
            (" \u{2066} ", None),
            ("", None),
        ];
        for (raw, expected) in table {
            assert_eq!(clean_name(raw).as_deref(), expected, "{raw:?}");
        }
    }

    #[test]
    fn a_name_travels_in_one_header_that_old_and_new_agents_read() {
        let table = [
            (Some("signups.png"), r#"attachment; filename="signups.png""#),
            (Some("my file (1).txt"), r#"attachment; filename="my file (1).txt""#),
            (Some("한글.pdf"), r#"attachment; filename="__.pdf"; filename*=UTF-8''%ED%95%9C%EA%B8%80.pdf"#),
            (Some("a\"b\\c.txt"), r#"attachment; filename="a_bc.txt"; filename*=UTF-8''a%22bc.txt"#),
            (Some("100%41.txt"), r#"attachment; filename="100_41.txt"; filename*=UTF-8''100%2541.txt"#),
            (Some("it's é*.txt"), r#"attachment; filename="it's _*.txt"; filename*=UTF-8''it%27s%20%C3%A9%2A.txt"#),
            (Some("x\r\nSet-Cookie: a=1.txt"), r#"attachment; filename="xSet-Cookie: a=1.txt""#),
            (Some(".."), "attachment"),
            (None, "attachment"),
        ];
        for (name, expected) in table {
            assert_eq!(content_disposition(Disposition::Attachment, name), expected, "{name:?}");
        }
        assert_eq!(content_disposition(Disposition::Inline, None), "inline");
    }

    proptest! {
        #[test]
        fn cleaning_a_clean_name_changes_nothing(raw in any::<String>()) {
            let once = clean_name(&raw);
            prop_assert_eq!(once.as_deref().and_then(clean_name), once);
        }

        #[test]
        fn any_name_makes_one_printable_header_and_comes_back_whole(raw in any::<String>()) {
            let value = content_disposition(Disposition::Inline, Some(&raw));
            prop_assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)));

            let full = value.split_once("filename*=UTF-8''").map(|(_, full)| {
                percent_encoding::percent_decode_str(full).decode_utf8_lossy().into_owned()
            });
            let plain = value.split('"').nth(1).map(str::to_owned);
            prop_assert!(value.matches('"').count() <= 2 && !value.contains('\\'));
            prop_assert_eq!(full.or(plain), clean_name(&raw));
        }
    }
}
