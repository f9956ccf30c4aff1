//! Data in text: JSON, lines of JSON, and tables.
//!
//! Promised: JSON only when all of it parses, or its beginning does where it is longer than we read. A table only when
//! its rows agree and it does not read like sentences.

use serde::de::IgnoredAny;

use super::Encoding;
use crate::media::reader::Bytes;

/// JSON up to this size is parsed to its end; of longer JSON the beginning counts.
const PARSED: u64 = 1 << 20;

/// JSON, alone or line by line.
pub(super) fn structured(bytes: &mut Bytes<'_>, encoding: Encoding, head: &str, whole: bool) -> Option<&'static str> {
    let trimmed = head.trim_start();
    if !trimmed.starts_with(['{', '[']) {
        return None;
    }
    if is_lines(trimmed, whole) {
        return Some("application/x-ndjson");
    }
    let longer = !whole && encoding == Encoding::Utf8 && bytes.size() <= PARSED;
    let (text, whole) = if longer {
        let all = bytes.peek(0, PARSED as usize).to_vec();
        (encoding.decode(&all), true)
    } else {
        (trimmed.to_owned(), whole)
    };
    match serde_json::from_str::<IgnoredAny>(text.trim()) {
        Ok(_) => Some("application/json"),
        // The rest was not read, and what was read is JSON so far.
        Err(error) if error.is_eof() && !whole => Some("application/json"),
        // Deeper than the parser follows, which says nothing against it.
        Err(error) if error.is_syntax() && error.to_string().starts_with("recursion limit") && is_nested(&text) => {
            Some("application/json")
        }
        Err(_) => None,
    }
}

/// Brackets and strings are in balance: all that is asked of JSON that is too deep to parse.
fn is_nested(text: &str) -> bool {
    let (mut open, mut quoted, mut escaped) = (Vec::new(), false, false);
    for byte in text.bytes() {
        if quoted {
            (quoted, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' if open.pop() != Some(byte) => return false,
            _ => {}
        }
    }
    open.is_empty() && !quoted
}

/// At least two lines, each an object or an array of its own.
fn is_lines(text: &str, whole: bool) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        // The last line of a longer text is cut.
        if lines.peek().is_none() && !whole {
            break;
        }
        let line = line.trim();
        if !line.starts_with(['{', '[']) || serde_json::from_str::<IgnoredAny>(line).is_err() {
            return false;
        }
        count += 1;
    }
    count >= 2
}

/// Rows that are compared; a table shows itself early.
const ROWS: usize = 200;

/// A cell of a table is a value, not a paragraph.
const LONGEST_CELL: usize = 512;

/// A cell that is longer may be a part of a sentence.
const TERSE_CELL: usize = 40;

/// Tables by comma, semicolon or tab.
pub(super) fn tabular(text: &str, whole: bool) -> Option<&'static str> {
    if is_table(text, '\t', whole) {
        Some("text/tab-separated-values")
    } else if is_table(text, ',', whole) || is_table(text, ';', whole) {
        Some("text/csv")
    } else {
        None
    }
}

fn is_table(text: &str, separator: char, whole: bool) -> bool {
    let Some(rows) = rows(text, separator, whole) else { return false };
    let Some(first) = rows.first() else { return false };
    let same = rows.iter().all(|row| row.cells == first.cells);
    // Sentences have a space after each comma, but they end as sentences do, and their parts are long.
    let terse = first.cells >= 3 && rows.len() >= 3 && !rows.iter().any(|row| row.sentence);
    let tight = rows.iter().any(|row| row.tight) || separator == '\t' || terse;
    // Code has nothing after its last semicolon, and brackets around its commas.
    let filled = rows.iter().any(|row| row.last_filled);
    let code = separator == ',' && rows.iter().all(|row| row.code);
    // A log's times have a comma before their thousandths.
    let times = separator == ',' && rows.iter().all(|row| row.time);
    first.cells >= 2 && rows.len() >= 2 && same && tight && filled && !code && !times
}

#[derive(Debug, Default)]
struct Row {
    cells: usize,
    /// A separator without a space behind it, or a quoted cell.
    tight: bool,
    last_filled: bool,
    /// A bracket, an assignment or a semicolon outside of quotes.
    code: bool,
    /// A long cell, or a mark at the end that only a sentence has.
    sentence: bool,
    /// Its first separator stands between a time's seconds and their thousandths.
    time: bool,
}

impl Row {
    fn new() -> Self {
        Self { cells: 1, ..Self::default() }
    }
}

/// RFC 4180 rows; quotes may hold separators and line ends.
fn rows(text: &str, separator: char, whole: bool) -> Option<Vec<Row>> {
    let mut rows = Vec::new();
    let mut row = Row::new();
    let (mut cell, mut quoted) = (0usize, false);
    // ISO 2022 text changes alphabets by escapes, and its letters look like anything.
    if text.contains('\u{1B}') {
        return None;
    }
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        cell += 1;
        if cell > LONGEST_CELL {
            return None;
        }
        match c {
            '"' if quoted && chars.peek().is_some_and(|next| next.1 == '"') => {
                chars.next();
            }
            '"' if quoted => quoted = false,
            '"' if cell == 1 => (quoted, row.tight) = (true, true),
            _ if quoted => {}
            '\n' => {
                row.last_filled = cell > 1;
                // An empty line ends nothing.
                if row.cells > 1 || cell > 1 {
                    rows.push(row);
                }
                (row, cell) = (Row::new(), 0);
                if rows.len() >= ROWS {
                    return Some(rows);
                }
            }
            '\r' => cell -= 1,
            '.' | '!' | '?' if chars.peek().is_none_or(|next| matches!(next.1, '\r' | '\n')) => row.sentence = true,
            _ if c == separator => {
                row.time |= row.cells == 1 && is_time(&text[..at], &text[at + c.len_utf8()..]);
                row.cells += 1;
                row.tight |= chars.peek().is_some_and(|next| !next.1.is_whitespace());
                cell = 0;
            }
            '(' | '{' | '}' | ';' | '=' => row.code = true,
            _ => row.sentence |= cell > TERSE_CELL,
        }
    }
    // A last line without an end counts when it is all there; a cut one does not, however many cells it has.
    if whole && !quoted && (row.cells > 1 || cell > 0) {
        row.last_filled = cell > 0;
        rows.push(row);
    }
    Some(rows)
}

/// `…:59` before, three digits behind.
fn is_time(before: &str, behind: &str) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    let (before, behind) = (before.as_bytes(), behind.as_bytes());
    let seconds = before.len() >= 3 && before[before.len() - 3] == b':' && digits(&before[before.len() - 2..]);
    seconds && behind.get(..3).is_some_and(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree_with_themselves() {
        for (text, name) in [
            ("a,b\n\"x, y\n z\",2\n", Some("text/csv")),
            ("a;b\n1,5;2\n", Some("text/csv")),
            ("a\tb\r\n1\t\r\n", Some("text/tab-separated-values")),
            ("a,b\n1\n", None),
            ("one, two\nthree, four\n", None),
            ("Name, Age, City\nAnna, 31, Bern\nBo, 4, Oslo\n", Some("text/csv")),
            ("naïve café, “quotes”, Привет.\n".repeat(3).leak(), None),
            ("roses are red,\nviolets are blue,\n", None),
            ("00:00:01,500 start\n00:00:02,250 end\n", None),
            ("f(a,b);\nx = [1,2];\n", None),
            ("a();\nb();\n", None),
            ("word\nword\n", None),
        ] {
            assert_eq!(tabular(text, true), name, "{text:?}");
        }
    }

    #[test]
    fn depth_is_counted_not_climbed() {
        let deep = |close: usize| format!("{}{}", "[".repeat(100_000), "]".repeat(close));
        assert!(is_nested(&deep(100_000)));
        assert!(!is_nested(&deep(99_999)));
    }

    #[test]
    fn lines_of_json_are_each_json() {
        assert!(is_lines("{}\n\n[1]\n", true));
        assert!(!is_lines("{}\n1\n", true));
        assert!(is_lines("{}\n{}\n{\"cut", false));
        assert!(!is_lines("{\"a\":\n1}", true));
    }
}
