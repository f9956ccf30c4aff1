//! PDF (ISO 32000): header, end marker, and names of what runs.
//!
//! Promised: a PDF with no flag begins with its header, ends with its marker, and names no action that runs by itself,
//! as far as its uncompressed objects and its object streams tell. Deliberately absent: the cross-reference table;
//! viewers repair it, so it proves nothing.

use memchr::{memchr, memchr_iter, memmem};

use crate::media::{
    Facts, Flag, Found, inflate, markup,
    reader::{Broken, Bytes, Fields, Walk},
};

/// Viewers look this far for a header that is not where it belongs.
const LATE_HEADER: usize = 1024;

/// And this far from the end for the marker.
const LATE_END: usize = 1024;

/// How much is searched for names; more is not called clean.
const SEARCHED: u64 = 64 << 20;

/// How much of an object stream is unpacked, what it may inflate to, and what all of them may.
const PACKED: usize = 256 << 10;
const INFLATED: usize = 1 << 20;
const INFLATED_ALL: usize = 8 << 20;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let start = memmem::find(&head[..head.len().min(LATE_HEADER)], b"%PDF-")?;
    if start > 0 && !is_late_header(bytes, head, start) {
        return None;
    }
    let mut found = Found::of("application/pdf");
    let walk = walk(bytes, start, &mut found.facts);
    // Showing a PDF depends on this, so that here what was not looked at is not well.
    found.facts.settle(if walk == Err(Broken::Spent) { Err(Broken::Bad) } else { walk });
    Some(found)
}

/// Printer commands, a byte order mark or white space stand in front; markup or an archive do not, for that is what it is.
fn is_late_header(bytes: &mut Bytes<'_>, head: &[u8], start: usize) -> bool {
    let version = head.get(start + 5).is_some_and(u8::is_ascii_digit) && head.get(start + 6) == Some(&b'.');
    let front = head[..start].strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&head[..start]).trim_ascii_start();
    let own = !front.starts_with(b"<") && !front.starts_with(b"PK") && !head.has(257, b"ustar");
    let (_, tail) = bytes.tail(LATE_END);
    version && own && memmem::find(&tail, b"%%EOF").is_some()
}

fn walk(bytes: &mut Bytes<'_>, start: usize, facts: &mut Facts) -> Walk {
    let (_, tail) = bytes.tail(LATE_END);
    let end = memmem::rfind(&tail, b"%%EOF");
    if let Some(end) = end
        && !tail[end + 5..].iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0)
    {
        facts.flag(Flag::TrailingBytes);
    }
    let first = bytes.peek(0, 1024).to_vec();
    if markup::embedded(&first) {
        facts.flag(Flag::EmbeddedMarkup);
    }
    search(bytes, facts)?;
    match (start, end) {
        (_, None) => Err(Broken::Short),
        (0, Some(_)) => Ok(()),
        _ => Err(Broken::Bad),
    }
}

/// Names of actions and of things that carry them.
const ACTIVE: &[&[u8]] = &[
    b"JavaScript",
    b"JS",
    b"OpenAction",
    b"AA",
    b"Launch",
    b"EmbeddedFile",
    b"RichMedia",
    b"XFA",
    b"SubmitForm",
    b"ImportData",
];

/// The longest name that is compared, escapes included: three bytes for one.
const LONGEST: usize = 40;

fn search(bytes: &mut Bytes<'_>, facts: &mut Facts) -> Walk {
    const PART: usize = 256 << 10;
    let mut at = 0;
    let (mut inflated, mut left) = (0, MOST_NAMES);
    while at < bytes.size() {
        bytes.step()?;
        if at > SEARCHED || left == 0 {
            return Err(Broken::Spent);
        }
        let part = bytes.peek(at, PART).to_vec();
        if part.is_empty() {
            return Err(Broken::Spent);
        }
        if names_active(&part, &mut left) {
            facts.flag(Flag::ActiveContent);
            return Ok(());
        }
        for stream in memmem::find_iter(&part, b"/ObjStm") {
            if object_stream(bytes, at + stream as u64, &mut inflated, &mut left) {
                facts.flag(Flag::ActiveContent);
                return Ok(());
            }
        }
        if part.len() < PART {
            break;
        }
        // A name may lie across the boundary.
        at += (part.len() - LONGEST) as u64;
    }
    Ok(())
}

/// Looks at each name that could be one of them; `left` bounds how many.
fn names_active(part: &[u8], left: &mut u32) -> bool {
    memchr_iter(b'/', part).any(|at| {
        let rest = &part[at + 1..(at + 1 + LONGEST).min(part.len())];
        if rest.first().is_none_or(|first| !b"JOALERXSI#".contains(first)) || *left == 0 {
            return false;
        }
        *left -= 1;
        let (mut room, raw) = ([0; LONGEST], name(rest));
        let name = if memchr(b'#', raw).is_none() { raw } else { unescape(raw, &mut room) };
        // A place to open at is no action; it is an array, actions are dictionaries or references to them.
        let place =
            name == b"OpenAction" && rest.get(10..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"["));
        ACTIVE.contains(&name) && !place
    })
}

/// Names that are compared in one document. A book of a thousand pages has a hundred thousand.
const MOST_NAMES: u32 = 2_000_000;

/// A name up to its delimiter.
fn name(rest: &[u8]) -> &[u8] {
    let end = rest.iter().position(|byte| byte.is_ascii_whitespace() || *byte == 0 || b"()<>[]{}/%".contains(byte));
    &rest[..end.unwrap_or(rest.len())]
}

/// A name with `#xx` resolved: `/J#61vaScript` is a name like any other.
fn unescape<'a>(raw: &[u8], room: &'a mut [u8; LONGEST]) -> &'a [u8] {
    let (mut at, mut length) = (0, 0);
    while let Some(&byte) = raw.get(at) {
        let escaped = raw.get(at + 1..at + 3).filter(|_| byte == b'#').and_then(|hex| std::str::from_utf8(hex).ok());
        let value = escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        room[length] = value.unwrap_or(byte);
        (at, length) = (at + if value.is_some() { 3 } else { 1 }, length + 1);
    }
    &room[..length]
}

/// Looks into one compressed object stream. One that cannot be read to its end may hold anything.
fn object_stream(bytes: &mut Bytes<'_>, dictionary: u64, inflated: &mut usize, left: &mut u32) -> bool {
    let around = bytes.peek(dictionary, PACKED).to_vec();
    let Some(stream) = memmem::find(&around[..around.len().min(1024)], b"stream") else {
        // Only its name is mentioned.
        return false;
    };
    let mut data = &around[stream + 6..];
    data = data.strip_prefix(b"\r").unwrap_or(data);
    data = data.strip_prefix(b"\n").unwrap_or(data);
    // Two bytes of zlib's header; another filter, or encryption, is not ours to undo.
    if data.first().is_none_or(|method| method & 15 != 8) || data.be16(0).is_none_or(|header| header % 31 != 0) {
        return true;
    }
    let (out, whole) = inflate::prefix(&data[2..], INFLATED.min(INFLATED_ALL.saturating_sub(*inflated)));
    *inflated += out.len();
    !whole || names_active(&out, left)
}

#[cfg(test)]
mod tests {
    use crate::media::{Facts, Flag, tests::look};

    fn facts(body: &str) -> Facts {
        let found = look(format!("%PDF-1.7\n{body}\n%%EOF\n").as_bytes());
        assert_eq!(found.mime_type, "application/pdf");
        found.facts
    }

    #[test]
    fn a_plain_page_is_clean() {
        for body in ["1 0 obj <</Type /Page /Ajar 1 /JSON 2>> endobj", "<</OpenAction [3 0 R /FitH null]>>"] {
            let facts = facts(body);
            assert!(facts.well_formed && facts.flags.is_empty(), "{facts:?}");
        }
    }

    #[test]
    fn what_runs_is_flagged_however_it_is_spelled() {
        for body in
            ["<</S/JavaScript/JS(x)>>", "<</OpenAction 3 0 R>>", "<</S/Launch>>", "<</S/J#61vaScript>>", "<</AA<<>>>>"]
        {
            assert!(facts(body).flags.contains(&Flag::ActiveContent), "{body}");
        }
    }

    #[test]
    fn what_is_packed_is_looked_at() {
        // One stored block, behind zlib's header.
        let packed = |objects: &[u8]| {
            let length = objects.len() as u16;
            let block = [&[1], length.to_le_bytes().as_slice(), &(!length).to_le_bytes(), objects].concat();
            let stream = [b"<</Type/ObjStm>>\nstream\n\x78\x01".as_slice(), &block, b"\nendstream"].concat();
            look(&[b"%PDF-1.5\n".as_slice(), &stream, b"\n%%EOF"].concat()).facts
        };
        assert!(packed(b"<</Type/Page>>").flags.is_empty());
        assert!(packed(b"<</S/JavaScript>>").flags.contains(&Flag::ActiveContent));
        let sealed = look(b"%PDF-1.5\n<</Type/ObjStm>>\nstream\n\x00\x01\x02\n%%EOF").facts;
        assert!(sealed.flags.contains(&Flag::ActiveContent));
    }

    #[test]
    fn names_across_a_boundary_are_seen() {
        for shift in 0..12 {
            let body = format!("{} /JavaScript", " ".repeat((256 << 10) - 20 + shift));
            assert!(facts(&body).flags.contains(&Flag::ActiveContent), "{shift}");
        }
    }

    #[test]
    fn the_header_belongs_at_the_start_and_the_marker_at_the_end() {
        let late = look(b"\x1B%-12345X@PJL\n%PDF-1.4\n%%EOF");
        assert_eq!((late.mime_type.as_str(), late.facts.well_formed), ("application/pdf", false));
        assert!(!look(b"%PDF-1.4\nno end").facts.well_formed);
        assert!(look(b"%PDF-1.4\n%%EOF\n<script>").facts.flags.contains(&Flag::TrailingBytes));
        assert_eq!(look(b"<html>%PDF-1.4 %%EOF").mime_type, "text/html");
    }
}
