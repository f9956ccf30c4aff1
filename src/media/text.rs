//! Text: encoding first, then markup, then data, then prose.
//!
//! Promised: bytes with control characters that no text has are not text (WHATWG MIME Sniffing section 7); a charset
//! is named when it is certain. Deliberately absent: guessing the alphabet of eight-bit text, and the language of code.

mod data;
mod encoding;
mod html;
mod prose;
mod svg;
mod xml;

use super::{Declared, Facts, Flag, Found, markup, reader::Bytes};
use encoding::Encoding;

/// Text that a byte order mark announces.
pub(super) fn probe_marked(bytes: &mut Bytes<'_>, head: &[u8], declared: Option<&Declared>) -> Option<Found> {
    let encoding = Encoding::marked(head)?;
    let text = encoding.decode(head);
    // After a mark that other formats begin with as well, the rest has to be text too.
    if encoding != Encoding::Utf8 && !encoding::is_clean(&text) {
        return None;
    }
    if encoding == Encoding::Utf8 && encoding::has_binary(head) {
        return None;
    }
    Some(describe(bytes, head, encoding, &text, declared))
}

/// Text without a mark.
pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8], declared: Option<&Declared>) -> Option<Found> {
    let encoding = match Encoding::by_zeros(head) {
        Some(wide) => wide,
        None if encoding::has_binary(head) || !encoding::is_plausible(head) => return None,
        None => Encoding::Utf8,
    };
    let text = encoding.decode(head);
    Some(describe(bytes, head, encoding, &text, declared))
}

fn describe(bytes: &mut Bytes<'_>, head: &[u8], encoding: Encoding, text: &str, declared: Option<&Declared>) -> Found {
    let whole = bytes.size() as usize <= head.len();
    let mut facts = Facts { well_formed: true, ..Facts::default() };
    let charset = if encoding == Encoding::Utf8 && !encoding::is_utf8(bytes) { None } else { Some(encoding.name()) };
    facts.charset = charset.map(str::to_owned);
    let name = name(bytes, encoding, text, whole, &mut facts);
    let name = match declared {
        Some(declared) if charset.is_some() && declared.breaks_tie(name) => declared.as_str(),
        _ => name,
    };
    Found { facts, ..Found::of(name) }
}

/// From the most to the least particular.
fn name(bytes: &mut Bytes<'_>, encoding: Encoding, text: &str, whole: bool, facts: &mut Facts) -> &'static str {
    if let Some(root) = xml::root(text) {
        let name = xml::name(&root, text);
        if name == Some("image/svg+xml") {
            svg::size(&root, facts);
        }
        if let Some(name) = name {
            facts.well_formed = xml::closes(bytes, encoding, &root);
            if name == "application/xhtml+xml" || runs(bytes, encoding, text) {
                facts.flag(Flag::ActiveContent);
            }
            return name;
        }
    }
    if html::is_html(text) {
        facts.flag(Flag::ActiveContent);
        return "text/html";
    }
    if xml::is_declared(text) {
        if runs(bytes, encoding, text) {
            facts.flag(Flag::ActiveContent);
        }
        return "application/xml";
    }
    prose::by_signature(text)
        .or_else(|| data::structured(bytes, encoding, text, whole))
        .or_else(|| data::tabular(text, whole))
        .unwrap_or("text/plain")
}

/// How much of a drawing is searched for what runs, and in how many parts.
const SEARCHED: usize = 1 << 20;
const PARTS: usize = 4;

fn runs(bytes: &mut Bytes<'_>, encoding: Encoding, text: &str) -> bool {
    if encoding != Encoding::Utf8 {
        return markup::active(text.as_bytes());
    }
    let (mut at, mut parts) = (0, 0);
    while at < bytes.size() && parts < PARTS {
        let part = bytes.peek(at, SEARCHED).to_vec();
        if part.is_empty() || markup::active(&part) {
            return !part.is_empty();
        }
        // What runs may lie across a boundary.
        at += part.len().saturating_sub(128).max(1) as u64;
        parts += 1;
        if part.len() < SEARCHED {
            break;
        }
    }
    // What was not searched is not called passive.
    at < bytes.size() && parts == PARTS
}

#[cfg(test)]
mod tests {
    use crate::media::{
        Declared, Flag,
        declared::UNKNOWN,
        tests::{inspect, look},
    };

    fn declared_as(text: &str, raw: &str) -> String {
        let declared = Declared::parse(raw).expect("a type");
        inspect(&mut std::io::Cursor::new(text), text.len() as u64, declared.as_ref()).mime_type
    }

    #[test]
    fn markup_in_every_dress() {
        for (text, name) in [
            ("<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
            ("<?xml version='1.0'?>\n<!-- c --><!DOCTYPE svg [<!ENTITY x 'y'>]>\n<svg></svg>", "image/svg+xml"),
            ("\u{FEFF}  <!-- <html> --><s:svg xmlns:s='x'></s:svg>", "image/svg+xml"),
            ("<?xml version='1.0'?><note/>", "application/xml"),
            ("<?xml version='1.0'?><rss></rss>", "application/rss+xml"),
            ("<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'></html>", "application/xhtml+xml"),
            ("<!DOCTYPE html><p>hi", "text/html"),
            (" \n<IFRAME src=x>", "text/html"),
            ("<!-- x -->", "text/html"),
            ("a <b>bold</b> word", "text/plain"),
        ] {
            assert_eq!(look(text.as_bytes()).mime_type, name, "{text}");
        }
    }

    #[test]
    fn what_runs_is_flagged() {
        for text in
            ["<svg><script/></svg>", "<svg onload='x()'/>", "<!doctype html><p>", "<svg><a href='javascript:x'/></svg>"]
        {
            assert!(look(text.as_bytes()).facts.flags.contains(&Flag::ActiveContent), "{text}");
        }
        assert!(look(b"<svg><path d='M0 0'/></svg>").facts.flags.is_empty());
    }

    #[test]
    fn data_and_prose() {
        for (text, name) in [
            (r#"{"a": [1, 2]}"#, "application/json"),
            ("\u{FEFF}[1]", "application/json"),
            ("{\"a\":1}\n{\"a\":2}\n", "application/x-ndjson"),
            ("{\"a\":", "text/plain"),
            ("12", "text/plain"),
            ("name,age\nana,31\nbo,4\n", "text/csv"),
            ("a\tb\n1\t2\n", "text/tab-separated-values"),
            ("Hello, world\nGoodbye, moon\n", "text/plain"),
            ("WEBVTT\n\n00:00.000 --> 00:01.000\nhi", "text/vtt"),
            ("BEGIN:VCALENDAR\r\nEND:VCALENDAR", "text/calendar"),
            ("#!/bin/sh\necho hi", "text/x-shellscript"),
            ("Just words.", "text/plain"),
        ] {
            assert_eq!(look(text.as_bytes()).mime_type, name, "{text}");
        }
    }

    #[test]
    fn encodings_are_named_when_certain() {
        assert_eq!(look("grün".as_bytes()).facts.charset.as_deref(), Some("utf-8"));
        assert_eq!(look(b"gr\xFCn").facts.charset, None);
        assert_eq!(look(b"\xFF\xFEh\0i\0").facts.charset.as_deref(), Some("utf-16le"));
        assert_eq!(look(b"\x00\x00\xFE\xFF\x00\x00\x00h").facts.charset.as_deref(), Some("utf-32be"));
        assert_eq!(look(b"h\x01i").mime_type, UNKNOWN);
    }

    #[test]
    fn declared_names_refine_text_and_nothing_else() {
        assert_eq!(declared_as("# Title\n\nWords.", "text/markdown"), "text/markdown");
        assert_eq!(declared_as("name,age\nana,31\n", "text/plain"), "text/plain");
        assert_eq!(declared_as("just words", "text/csv"), "text/csv");
        assert_eq!(declared_as("just words", "text/html"), "text/plain");
        assert_eq!(declared_as("{\"a\":1}", "text/plain"), "application/json");
        assert_eq!(declared_as("<svg/>", "text/plain"), "image/svg+xml");
    }
}
