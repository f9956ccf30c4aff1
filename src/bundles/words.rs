//! The words of a string, which end at white space, quotes and brackets, as a URL in a text does.
//!
//! A word that begins a `data:` URL is followed to where its base64 ends ([`super::data_url`]); a string that is nothing but such a URL, to
//! its end, whatever its form. No word is held longer than [`MAX_WORD`]: of a longer one the end is, so that no link is missed that begins
//! in one half and ends in the other.

use std::ops::Range;

use bytes::BytesMut;

use super::body::Form;
use super::data_url::{Ended, Head, MAX_HEAD, Open, Step};
use super::links::Links;
use super::text::Told;
use super::word::Word;

/// The longest word that is held, in bytes.
const MAX_WORD: usize = 8 << 10;

/// So much of a longer one is held on: more than any link has, also one that is percent-encoded throughout.
const OVERLAP: usize = 4 << 10;

/// The longest character, in bytes.
const MAX_CHAR: usize = 4;

/// The words of a string.
#[derive(Debug)]
pub(super) struct Words {
    word: Word,
    /// Whether nothing was before it.
    is_first: bool,
    /// Whether it may still be the head of a `data:` URL as a whole.
    is_head: bool,
    has_percent: bool,
    /// Where its last `data:` begins, until a comma follows it.
    scheme: Option<usize>,
    /// Up to where no head of a percent-encoded one begins.
    tried: usize,
    /// Whether there was anything but blanks.
    begun: bool,
    url: Option<Open>,
}

impl Default for Words {
    fn default() -> Self {
        let word = Word::default();
        let (scheme, tried) = (None, 0);
        Self { word, is_first: true, is_head: true, has_percent: false, scheme, tried, begun: false, url: None }
    }
}

impl Words {
    /// Takes the next piece: text as it stands there, or one character.
    pub(super) fn push(
        &mut self,
        piece: &[u8],
        at: Range<u64>,
        links: &Links<'_>,
        out: &mut BytesMut,
        told: &mut Told,
    ) {
        let is_plain = at.end - at.start == piece.len() as u64;
        let mut index = 0;
        while index < piece.len() && !told.is_full() {
            let rest = &piece[index..];
            let place = if is_plain { at.start + index as u64..at.end } else { at.clone() };
            match &mut self.url {
                None => index += self.take(rest, place, links, told),
                Some(url) if url.is_raw() => return,
                Some(url) => match url.go_on(rest, place, out) {
                    Step::Used(used) => index += used,
                    Step::Over(ended, left) => self.end_url(ended, &left, links, told),
                },
            }
        }
    }

    /// Whether what follows is the content of a URL to the end of the string, as it stands there.
    pub(super) fn is_raw(&self) -> bool {
        self.url.as_ref().is_some_and(Open::is_raw)
    }

    /// Where that begins.
    pub(super) fn raw_from(&self) -> Option<u64> {
        self.url.as_ref().filter(|url| url.is_raw()).map(Open::body)
    }

    /// Takes the next piece of that.
    pub(super) fn push_raw(&mut self, piece: &[u8], out: &mut BytesMut) {
        if let Some(url) = &mut self.url {
            url.push_raw(piece, out);
        }
    }

    /// Ends the string there.
    pub(super) fn finish(&mut self, end: u64, links: &Links<'_>, out: &mut BytesMut, told: &mut Told) {
        if let Some(url) = self.url.take() {
            let (ended, left) = url.finish(end, out);
            self.end_url(ended, &left, links, told);
        }
        self.end_word(links, told);
    }

    /// Takes the beginning of `rest`, up to what means something; says how much that was.
    fn take(&mut self, rest: &[u8], at: Range<u64>, links: &Links<'_>, told: &mut Told) -> usize {
        let is_plain = at.end - at.start == rest.len() as u64;
        let has_percent = &mut self.has_percent;
        let stop = rest.iter().position(|byte| {
            *has_percent |= *byte == b'%';
            matches!(byte, b',' | b':') || is_delimiter(*byte) || *has_percent && matches!(byte, b'c' | b'C')
        });
        let run = stop.unwrap_or(rest.len());
        let place = |range: Range<usize>| match is_plain {
            true => at.start + range.start as u64..at.start + range.end as u64,
            false => at.clone(),
        };
        self.hold(&rest[..run], place(0..run), links, told);
        let Some(stop) = stop else {
            return run;
        };
        let (byte, place) = (rest[stop], place(stop..stop + 1));
        let in_head = self.is_head && self.word.len() < MAX_HEAD && begins_url(self.word.bytes());
        if is_delimiter(byte) && !(in_head && matches!(byte, b' ' | b'"' | b'\'')) {
            self.end_word(links, told);
            (self.is_first, self.is_head) = (!self.begun, !self.begun);
            return stop + 1;
        }
        let body = place.end;
        self.hold(&[byte], place, links, told);
        match byte {
            b':' => self.scheme = scheme_at_end(self.word.bytes()).or(self.scheme),
            b',' => self.begin_url(body, links, told),
            b'c' | b'C' if ends_with(self.word.bytes(), b"base64%2c") => self.begin_inner_url(body, links, told),
            _ => {}
        }
        stop + 1
    }

    /// Adds to the word; of one that becomes too long the front is looked at and goes.
    fn hold(&mut self, mut run: &[u8], mut at: Range<u64>, links: &Links<'_>, told: &mut Told) {
        let is_plain = at.end - at.start == run.len() as u64;
        self.begun |= !run.is_empty();
        while !run.is_empty() {
            let room = MAX_WORD - self.word.len();
            if room < MAX_CHAR {
                self.slide(links, told);
                continue;
            }
            let fits = if is_plain { run.len().min(room) } else { run.len() };
            let end = if is_plain { at.start + fits as u64 } else { at.end };
            self.word.push(&run[..fits], at.start..end);
            (run, at.start) = (&run[fits..], end);
        }
    }

    fn slide(&mut self, links: &Links<'_>, told: &mut Told) {
        let mut cut = self.word.len() - OVERLAP;
        let from = self.word.places(&(cut..cut + 1)).start;
        for met in links.of(&self.word).into_iter().filter(|met| met.place.start < from) {
            while cut < self.word.len() && self.word.places(&(cut..cut + 1)).start < met.place.end {
                cut += 1;
            }
            told.links.push(met);
        }
        self.word.drop_front(cut);
        self.scheme = self.scheme.and_then(|at| at.checked_sub(cut));
        self.tried = self.tried.saturating_sub(cut);
        (self.is_first, self.is_head) = (false, false);
    }

    /// Whether the word up to here, which ends with a comma, is the head of a `data:` URL.
    fn begin_url(&mut self, body: u64, links: &Links<'_>, told: &mut Told) {
        self.is_head = false;
        let Some(at) = self.scheme.take() else {
            return;
        };
        let Some((declared, is_base64)) = head(&self.word.bytes()[at..]) else {
            return;
        };
        let is_first = self.is_first && at == 0;
        if !(is_base64 || is_first) {
            return;
        }
        let form = if is_base64 { Form::UrlBase64 } else { Form::UrlText };
        let from = self.word.places(&(at..at + 1)).start;
        self.open(Head { from, body, form, declared, is_first, layers: 0 }, links, told);
    }

    /// The same of one that stands in another URL, percent-encoded: only base64 has an end there.
    fn begin_inner_url(&mut self, body: u64, links: &Links<'_>, told: &mut Told) {
        // What was looked at before ended with a comma, and no head has one.
        let mut part = Word::default();
        self.word.copy_to(&mut part, self.tried..self.word.len());
        let is_first = self.is_first && self.tried == 0;
        self.tried = self.word.len();
        let Some(inner) = part.decoded() else {
            return;
        };
        let Some(at) = find_scheme(inner.bytes()) else {
            return;
        };
        if let Some((declared, true)) = head(&inner.bytes()[at..]) {
            let is_first = is_first && at == 0;
            let from = inner.places(&(at..at + 1)).start;
            self.open(Head { from, body, form: Form::UrlBase64, declared, is_first, layers: 1 }, links, told);
        }
    }

    fn open(&mut self, head: Head, links: &Links<'_>, told: &mut Told) {
        self.end_word(links, told);
        self.url = Some(Open::new(head));
    }

    fn end_url(&mut self, ended: Ended, left: &Word, links: &Links<'_>, told: &mut Told) {
        self.url = None;
        (self.is_first, self.is_head) = (false, false);
        match ended {
            Ended::Url(url) => told.data_urls.push(url),
            Ended::Broken => told.broken_url = true,
            Ended::Nothing => {}
        }
        for at in 0..left.len() {
            self.take(&left.bytes()[at..=at], left.places(&(at..at + 1)), links, told);
        }
    }

    fn end_word(&mut self, links: &Links<'_>, told: &mut Told) {
        let word = std::mem::take(&mut self.word);
        (self.has_percent, self.scheme, self.tried) = (false, None, 0);
        if !word.is_empty() {
            told.links.append(&mut links.of(&word));
        }
    }
}

const SCHEME: &[u8; 5] = b"data:";

/// Whether the word is, as far as it goes, a `data:` URL from its first byte on.
fn begins_url(word: &[u8]) -> bool {
    word.len() >= SCHEME.len() && word[..SCHEME.len()].eq_ignore_ascii_case(SCHEME)
}

/// What the head of a `data:` URL says, which ends with a comma: the type that it names, and whether base64 follows.
fn head(head: &[u8]) -> Option<(Option<String>, bool)> {
    if head.len() > MAX_HEAD {
        return None;
    }
    let head = String::from_utf8_lossy(head.get(SCHEME.len()..head.len() - 1)?);
    let mut fields = head.split(';').map(str::trim);
    let media_type = fields.next().unwrap_or_default();
    let is_base64 = fields.next_back().is_some_and(|last| last.eq_ignore_ascii_case("base64"));
    let named = !head.starts_with(' ') && (media_type.is_empty() || media_type.contains('/'));
    named.then(|| (Some(media_type.to_owned()).filter(|name| !name.is_empty()), is_base64))
}

/// Where the `data:` begins that the word ends with, if that is no end of a longer name.
fn scheme_at_end(word: &[u8]) -> Option<usize> {
    let at = word.len().checked_sub(SCHEME.len())?;
    let is_name = at.checked_sub(1).is_some_and(|before| word[before].is_ascii_alphanumeric());
    (ends_with(word, SCHEME) && !is_name).then_some(at)
}

fn ends_with(word: &[u8], end: &[u8]) -> bool {
    word.len().checked_sub(end.len()).is_some_and(|at| word[at..].eq_ignore_ascii_case(end))
}

/// The last `data:` of a word that is no end of a longer name.
fn find_scheme(word: &[u8]) -> Option<usize> {
    (SCHEME.len()..=word.len()).rev().find_map(|end| scheme_at_end(&word[..end]))
}

/// What cannot stand in a URL, and what a text puts around one.
pub(super) fn is_delimiter(byte: u8) -> bool {
    byte <= b' '
        || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'`' | b'|' | b'\\')
}
