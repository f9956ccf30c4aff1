//! Markup where it has no business, and what in markup runs.
//!
//! Promised: one pass over a slice, without regard to case. Deliberately absent: parsing. A flag is a warning to the
//! user of the bytes, not what keeps a browser from running them; headers do that.

use memchr::memchr_iter;

/// True when HTML or a script lies in the slice. XML of metadata packets (XMP) is not meant.
pub(super) fn embedded(text: &[u8]) -> bool {
    memchr_iter(b'<', text).any(|at| {
        let rest = &text[at + 1..];
        TAGS.iter().any(|tag| starts(rest, tag) && rest.get(tag.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric()))
            || starts(rest, b"?php")
            || starts(rest, b"!doctype html")
    })
}

/// True when SVG or other XML has something in it that a browser runs or loads by itself.
pub(super) fn active(text: &[u8]) -> bool {
    let tag = memchr_iter(b'<', text).any(|at| {
        let rest = &text[at + 1..];
        match rest.first() {
            Some(b'!') => starts(rest, b"!entity"),
            Some(b'?') => starts(rest, b"?xml-stylesheet"),
            Some(first) if first.is_ascii_alphabetic() || b"_:".contains(first) => {
                // The local name counts: `<s:script` runs as well.
                let name_len = rest.iter().take(MAX_NAME).take_while(|byte| !b" \t\r\n/><".contains(byte)).count();
                let name = &rest[..name_len];
                let local = name.iter().rposition(|&byte| byte == b':').map_or(name, |colon| &name[colon + 1..]);
                ACTIVE_TAGS.iter().any(|tag| local.eq_ignore_ascii_case(tag))
            }
            // Most of what follows such a sign is no tag at all.
            _ => false,
        }
    });
    tag || memchr_iter(b'=', text).any(|at| is_handler(&text[..at])) || has_script_url(text)
}

/// An attribute whose name begins with `on` stands before an equals sign.
fn is_handler(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    let name_len = before.iter().rev().take(MAX_NAME).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let name = &before[before.len() - name_len..];
    let starts_attribute = before.len() > name_len && b" \t\r\n\"'/".contains(&before[before.len() - name_len - 1]);
    name_len > 3 && starts_attribute && starts(name, b"on")
}

fn has_script_url(text: &[u8]) -> bool {
    memchr_iter(b':', text).any(|at| {
        let before = &text[..at];
        [b"javascript".as_slice(), b"vbscript"].iter().any(|scheme| {
            before.len() >= scheme.len() && before[before.len() - scheme.len()..].eq_ignore_ascii_case(scheme)
        })
    })
}

/// No name that we look for is longer; a longer run is not a name.
const MAX_NAME: usize = 64;

const TAGS: &[&[u8]] = &[
    b"html", b"head", b"body", b"script", b"iframe", b"img", b"svg", b"object", b"embed", b"style", b"form", b"meta",
    b"link", b"a", b"div",
];

const ACTIVE_TAGS: &[&[u8]] = &[b"script", b"foreignobject", b"iframe", b"object", b"embed", b"handler", b"listener"];

/// True when `text` begins with `what`, which is in lower case.
pub(super) fn starts(text: &[u8], what: &[u8]) -> bool {
    text.get(..what.len()).is_some_and(|head| head.eq_ignore_ascii_case(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_seen_and_metadata_is_not() {
        for text in ["x<script>alert(1)</script>", "<HTML>", "<?php system($_GET[0]);", "<!DOCTYPE html>", "<img src=x"]
        {
            assert!(embedded(text.as_bytes()), "{text}");
        }
        for text in ["a < b", "<x:xmpmeta xmlns:x='adobe:ns:meta/'>", "<imgx>", "", "<"] {
            assert!(!embedded(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_runs_is_seen() {
        for text in [
            "<svg><script>1</script></svg>",
            "<s:svg><s:script/></s:svg>",
            "<svg onload = 'x()'>",
            "<svg><foreignObject/></svg>",
            "<a href=\"JavaScript:x()\">",
            "<?xml-stylesheet href='x.xsl'?>",
            "<!ENTITY x SYSTEM 'file:///etc/passwd'>",
        ] {
            assert!(active(text.as_bytes()), "{text}");
        }
        for text in ["<svg><path d='M0'/></svg>", "<svg version='1.1' one='1'>", "<t>once = upon</t>", "<svg icon='2'>"]
        {
            assert!(!active(text.as_bytes()), "{text}");
        }
    }
}
