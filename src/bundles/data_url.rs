//! A `data:` URL while it is read: where it ends, and what it carries.
//!
//! Within a text nobody says where base64 ends that is broken over lines. A line that follows is believed to belong to it if it looks so:
//! nothing but base64, and of the width that encoders break at, or nothing that people write. What is not believed is text again, and what
//! was believed wrongly shows when it cannot be decoded: then the URL ends with the last line up to which it could.

use std::ops::Range;

use bytes::BytesMut;

use super::body::{Form, Meter};
use super::text::Media;
use super::word::Word;
use super::words::is_delimiter;

/// The longest head of a `data:` URL, in bytes.
pub(super) const MAX_HEAD: usize = 1024;

/// A `data:` URL in a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataUrl {
    /// Where it stands in the bundle.
    pub(super) range: Range<u64>,
    /// Whether it is all that the string is.
    pub(super) whole: bool,
    /// How often it is percent-encoded there.
    pub(super) layers: u8,
    pub(super) media: Media,
}

/// What a `data:` URL turned out to be.
#[derive(Debug)]
pub(super) enum Ended {
    /// Media.
    Url(DataUrl),
    /// It says that it is base64, and cannot be decoded.
    Broken,
    /// Nothing: no bytes, or prose that begins like one.
    Nothing,
}

/// One that is read.
#[derive(Debug)]
pub(super) struct Open {
    head: Head,
    meter: Meter,
    has_space: bool,
    /// Characters of base64 so far.
    length: u64,
    padded: bool,
    /// A `%` and its digits, until they are known.
    escape: Word,
    line: Option<Line>,
    /// How long the line was that was read last, and how long those before.
    last: u64,
    width: Option<u64>,
    /// What it was up to the last line break at which it could be decoded.
    good: Option<(u64, Meter)>,
}

/// What the head of a `data:` URL says.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) from: u64,
    pub(super) body: u64,
    pub(super) form: Form,
    pub(super) declared: Option<String>,
    /// Whether nothing stands before it in its string.
    pub(super) is_first: bool,
    pub(super) layers: u8,
}

/// A line that may belong to it.
#[derive(Debug)]
struct Line {
    /// Where the break before it stands.
    from: u64,
    /// How many line feeds there are before it: two leave a line empty.
    feeds: u64,
    text: Word,
}

/// Lines of at least so many characters are no word of any language.
const LONG: usize = 24;

/// Longer ones are not held until it is known whether they belong.
const SURE: usize = 128;

/// The widths at which encoders break lines (RFC 7468, RFC 2045, and two that are in use).
const WIDTHS: [u64; 4] = [60, 64, 72, 76];

/// So much base64 that cannot be decoded is not just an example.
const TOLD: u64 = 16;

/// How the URL goes on.
pub(super) enum Step {
    /// So many bytes belong to it.
    Used(usize),
    /// It ended before; this was read, and is text again.
    Over(Ended, Word),
}

impl Open {
    pub(super) fn new(head: Head) -> Self {
        let meter = Meter::new(head.form);
        let (length, last) = (0, 0);
        Self {
            head,
            meter,
            has_space: false,
            length,
            padded: false,
            escape: Word::default(),
            line: None,
            last,
            width: None,
            good: None,
        }
    }

    /// Whether it goes on to the end of its string, whatever stands there.
    pub(super) fn is_raw(&self) -> bool {
        self.head.form == Form::UrlText
    }

    /// Where its content begins.
    pub(super) fn body(&self) -> u64 {
        self.head.body
    }

    /// Follows it into a string that is nothing else.
    pub(super) fn push_raw(&mut self, rest: &[u8], out: &mut BytesMut) {
        self.has_space |= rest.iter().any(u8::is_ascii_whitespace);
        self.meter.push(rest, out);
    }

    /// Follows it into `rest`, which is not empty and stands at `at`.
    pub(super) fn go_on(&mut self, rest: &[u8], at: Range<u64>, out: &mut BytesMut) -> Step {
        if !self.escape.is_empty() || rest[0] == b'%' {
            return self.escaped(rest, at, out);
        }
        let run = if self.padded {
            equal_signs(rest)
        } else {
            rest.iter().position(|byte| !is_base64(*byte)).unwrap_or(rest.len())
        };
        if run > 0 {
            // What pads it ends it: nothing but more of that may follow.
            let run = memchr::memchr(b'=', &rest[..run]).map_or(run, |pad| pad + equal_signs(&rest[pad..run]));
            self.padded |= rest[run - 1] == b'=';
            let is_plain = at.end - at.start == rest.len() as u64;
            let place = if is_plain { at.start..at.start + run as u64 } else { at };
            self.take(&rest[..run], place, out);
            return Step::Used(run);
        }
        match rest[0] {
            b'\r' | b'\n' => match self.breaks(rest[0], at.start, out) {
                true => Step::Used(1),
                false => self.over(at.start, out),
            },
            b' ' | b'\t' if self.line.as_ref().is_some_and(|line| line.text.is_empty()) => {
                // An indentation, which is dropped when it is decoded.
                self.meter.push(&rest[..1], out);
                Step::Used(1)
            }
            other => match self.believes(Some(other)) {
                true => Step::Over(self.ended(at.start, false, out), Word::default()),
                false => self.over(at.start, out),
            },
        }
    }

    /// Ends it with its string. What was read and does not belong to it is text again.
    pub(super) fn finish(mut self, end: u64, out: &mut BytesMut) -> (Ended, Word) {
        match (self.escape.is_empty(), self.believes(None)) {
            (true, true) => (self.ended(end, true, out), Word::default()),
            (true, false) => self.reject(end, out),
            (false, _) => self.ends_at_escape(out),
        }
    }

    fn take(&mut self, run: &[u8], at: Range<u64>, out: &mut BytesMut) {
        self.meter.push(run, out);
        self.length += run.len() as u64;
        match &mut self.line {
            None => self.last += run.len() as u64,
            Some(line) => {
                line.text.push(run, at);
                if line.text.len() > SURE {
                    self.keep_line();
                }
            }
        }
    }

    /// Reads a `%` with its digits: what they stand for belongs to it or ends it.
    fn escaped(&mut self, rest: &[u8], at: Range<u64>, out: &mut BytesMut) -> Step {
        let is_plain = at.end - at.start == rest.len() as u64;
        let place = if is_plain { at.start..at.start + 1 } else { at };
        let fits = self.escape.is_empty() || rest[0].is_ascii_hexdigit();
        if fits {
            self.escape.push(&rest[..1], place.clone());
            if self.escape.len() < 3 {
                return Step::Used(1);
            }
            let meant = self.escape.decoded().map(|word| word.bytes()[0]);
            let belongs = meant.is_some_and(|byte| {
                if self.padded { byte == b'=' } else { is_base64(byte) || matches!(byte, b'\r' | b'\n') }
            });
            if belongs {
                self.padded |= meant == Some(b'=');
                let escape = std::mem::take(&mut self.escape);
                self.take(escape.bytes(), escape.places(&(0..escape.len())), out);
                return Step::Used(1);
            }
        }
        let (ended, left) = self.ends_at_escape(out);
        // Whoever asked goes on with this byte, so it is not in what is left.
        Step::Over(ended, if fits { without_last(&left) } else { left })
    }

    fn ends_at_escape(&mut self, out: &mut BytesMut) -> (Ended, Word) {
        let escape = std::mem::take(&mut self.escape);
        let from = escape.places(&(0..1)).start;
        let (ended, mut left) = match self.believes(Some(b'%')) {
            true => (self.ended(from, false, out), Word::default()),
            false => self.reject(from, out),
        };
        left.append(&escape);
        (ended, left)
    }

    /// A line break; `false`: the line before it does not belong.
    fn breaks(&mut self, byte: u8, at: u64, out: &mut BytesMut) -> bool {
        let feeds = u64::from(byte == b'\n');
        if let Some(line) = self.line.as_mut().filter(|line| line.text.is_empty()) {
            line.feeds += feeds;
        } else if self.believes(Some(byte)) {
            self.keep_line();
            if self.meter.may_end(out) {
                self.good = Some((at, self.meter.clone()));
            }
            self.line = Some(Line { from: at, feeds, text: Word::default() });
        } else {
            return false;
        }
        self.meter.push(b"\n", out);
        true
    }

    /// The line belongs to it.
    fn keep_line(&mut self) {
        if let Some(line) = self.line.take() {
            self.last = line.text.len() as u64;
            self.width.get_or_insert(self.last);
        }
    }

    /// Whether the line that is read belongs to it, before this byte, or before the end of the string.
    fn believes(&self, next: Option<u8>) -> bool {
        let Some(Line { text, feeds, .. }) = &self.line else {
            return true;
        };
        let line = text.bytes();
        if line.is_empty() {
            return next.is_none() && self.head.is_first;
        }
        if line.ends_with(b"=") {
            return true;
        }
        let has = |kind: fn(&u8) -> bool| line.iter().any(kind);
        let (upper, lower, digit) = (has(u8::is_ascii_uppercase), has(u8::is_ascii_lowercase), has(u8::is_ascii_digit));
        if matches!(next, Some(b'.' | b':' | b'@')) {
            return false;
        }
        if line.len() >= LONG && upper && lower {
            return true;
        }
        let ends_here = *feeds < 2 && next.is_none_or(|next| next != b' ' && next != b'\t' && is_delimiter(next));
        let length = line.len() as u64;
        ends_here
            && match self.width {
                Some(width) => self.last == width && length <= width,
                None => {
                    let fills = WIDTHS.contains(&self.last) && length <= self.last;
                    fills || self.head.is_first || upper && lower && digit || line.contains(&b'+')
                }
            }
    }

    /// The line does not belong to it: it ended with the one before.
    fn reject(&mut self, at: u64, out: &mut BytesMut) -> (Ended, Word) {
        let line = self.line.take().unwrap_or(Line { from: at, feeds: 0, text: Word::default() });
        self.meter.spoil();
        (self.ended(line.from, false, out), line.text)
    }

    fn over(&mut self, at: u64, out: &mut BytesMut) -> Step {
        let (ended, left) = self.reject(at, out);
        Step::Over(ended, left)
    }

    fn ended(&mut self, end: u64, at_end: bool, out: &mut BytesMut) -> Ended {
        let Head { from, body, form, ref mut declared, is_first, layers } = self.head;
        let declared = declared.take();
        // Prose that begins with the word: only what names a type is taken for a URL in spite of its spaces.
        if form == Form::UrlText && declared.is_none() && self.has_space {
            return Ended::Nothing;
        }
        let (end, weighed, whole) = match (self.meter.clone().finish(out), self.good.take()) {
            (None, Some((good, meter))) => (good, meter.finish(out), false),
            (weighed, _) => (end, weighed, is_first && at_end),
        };
        match weighed {
            Some(weighed) if weighed.bytes > 0 => {
                let media = Media { form, body: body..end, declared, weighed };
                Ended::Url(DataUrl { range: from..end, whole, layers, media })
            }
            Some(_) => Ended::Nothing,
            None if whole || self.length >= TOLD => Ended::Broken,
            None => Ended::Nothing,
        }
    }
}

/// All but the last byte.
fn without_last(word: &Word) -> Word {
    let mut short = Word::default();
    word.copy_to(&mut short, 0..word.len().saturating_sub(1));
    short
}

fn equal_signs(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte != b'=').unwrap_or(text.len())
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}
