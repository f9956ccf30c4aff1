//! The inside of one string of a bundle: whether it is base64 as a whole, the `data:` URLs in it, and the links in it.
//!
//! A string is read in words, which end at white space, quotes and brackets, as a URL in a text does. A word that begins a `data:` URL is
//! followed to where its base64 ends; a string that is nothing but such a URL to its end, whatever its form. No word is held longer
//! than [`MAX_WORD`]: no link of ours is.

use std::ops::Range;

use bytes::BytesMut;
use memchr::memmem;

use super::body::{Form, Meter};
use super::links::{Link, Links};
use crate::assets::once::Weighed;

/// The longest word that is looked at, in bytes.
const MAX_WORD: usize = 8 << 10;

/// So much of a string is kept, for those whose text means something.
const MAX_KEPT: usize = 1024;

/// The longest head of a `data:` URL, in bytes.
const MAX_HEAD: usize = 1024;

/// Media that a string carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Media {
    pub(super) form: Form,
    /// Where its characters stand in the bundle.
    pub(super) body: Range<u64>,
    /// The type that its own URL says.
    pub(super) declared: Option<String>,
    pub(super) weighed: Weighed,
}

/// A `data:` URL in a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataUrl {
    /// Where it stands in the bundle.
    pub(super) range: Range<u64>,
    /// Whether it is all that the string is.
    pub(super) whole: bool,
    pub(super) media: Media,
}

/// What was found in a string.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The text, if it is short.
    pub(super) text: Option<String>,
    /// It is base64 as a whole, and of at least one byte. Asked of some members alone.
    pub(super) base64: Option<Media>,
    /// It is not empty, and was to be base64, and is not.
    pub(super) not_base64: bool,
    /// It begins like a `data:` URL of base64, and cannot be decoded.
    pub(super) broken_url: bool,
    pub(super) data_urls: Vec<DataUrl>,
    /// Links of ours, or that look so, and where they stand in the bundle.
    pub(super) links: Vec<(Link, Range<u64>)>,
}

/// A string while it is read.
#[derive(Debug)]
pub(super) struct Text {
    from: u64,
    kept: Option<Vec<u8>>,
    is_empty: bool,
    /// Whether there was anything but blanks.
    begun: bool,
    base64: Option<Meter>,
    word: Word,
    url: Option<Open>,
    told: Told,
}

/// The word that is read.
#[derive(Debug, Default)]
struct Word {
    bytes: Vec<u8>,
    /// Where each byte stands in the bundle.
    at: Vec<u64>,
    end: u64,
    is_first: bool,
    is_head: bool,
    too_long: bool,
}

/// A `data:` URL that is read.
#[derive(Debug)]
struct Open {
    from: u64,
    body: u64,
    form: Form,
    declared: Option<String>,
    is_first: bool,
    meter: Meter,
    has_space: bool,
    /// What it was up to its first line break.
    line: Option<(u64, Option<Weighed>)>,
}

impl Text {
    /// A string whose inside begins there. `may_be_base64`: its member's name says that it may carry bytes.
    pub(super) fn new(from: u64, may_be_base64: bool) -> Self {
        Self {
            from,
            kept: Some(Vec::new()),
            is_empty: true,
            begun: false,
            base64: may_be_base64.then(|| Meter::new(Form::Base64)),
            word: Word { is_first: true, is_head: true, ..Word::default() },
            url: None,
            told: Told::default(),
        }
    }

    /// Where its inside begins.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    /// Takes the next piece: text as it stands between these places of the bundle, or one character that an escape there stands for.
    pub(super) fn push(&mut self, piece: &[u8], at: Range<u64>, links: &Links<'_>, out: &mut BytesMut) {
        self.is_empty &= piece.is_empty();
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(piece);
            if kept.len() > MAX_KEPT {
                self.kept = None;
            }
        }
        if let Some(meter) = &mut self.base64 {
            meter.push(piece, out);
        }
        let is_escape = at.end - at.start != piece.len() as u64;
        let place = |index: usize| if is_escape { at.start } else { at.start + index as u64 };
        let after = |index: usize| if is_escape { at.end } else { at.start + index as u64 + 1 };
        let mut index = 0;
        while index < piece.len() {
            let rest = &piece[index..];
            if self.url.is_some() {
                index += self.go_on(rest, place(index), out);
            } else if self.word.too_long {
                // Nothing of it is looked at: on to where it ends.
                index += rest.iter().position(|byte| is_delimiter(*byte)).unwrap_or(rest.len());
                if index < piece.len() {
                    self.end_word(links);
                }
            } else {
                self.take(rest[0], place(index), after(index), links);
                index += 1;
            }
        }
    }

    /// Ends the string, whose closing quotation mark stands there.
    pub(super) fn finish(mut self, end: u64, links: &Links<'_>, out: &mut BytesMut) -> Told {
        if self.url.is_some() {
            self.end_url(end, true, out);
        }
        self.end_word(links);
        if let Some(meter) = self.base64.take() {
            match meter.finish(out) {
                Some(weighed) if weighed.bytes > 0 => {
                    let body = self.from..end;
                    self.told.base64 = Some(Media { form: Form::Base64, body, declared: None, weighed });
                }
                Some(_) => {}
                None => self.told.not_base64 = !self.is_empty,
            }
        }
        self.told.text = self.kept.take().and_then(|kept| String::from_utf8(kept).ok());
        self.told
    }

    fn take(&mut self, byte: u8, at: u64, end: u64, links: &Links<'_>) {
        let in_head = self.word.is_head && self.word.bytes.len() < MAX_HEAD && begins_url(&self.word.bytes);
        if is_delimiter(byte) && !(in_head && matches!(byte, b' ' | b'"' | b'\'')) {
            self.end_word(links);
            self.word.is_first = !self.begun;
            self.word.is_head = !self.begun;
            return;
        }
        self.begun = true;
        let word = &mut self.word;
        word.bytes.push(byte);
        word.at.push(at);
        word.end = end;
        if byte == b',' {
            self.begin_url(end);
        } else if word.bytes.len() == MAX_WORD {
            word.too_long = true;
        }
    }

    /// Whether the word up to here, which ends with a comma, is the head of a `data:` URL.
    fn begin_url(&mut self, body: u64) {
        let word = &mut self.word;
        word.is_head = false;
        let Some(at) = find_scheme(&word.bytes) else {
            return;
        };
        let is_first = word.is_first && at == 0;
        let head = String::from_utf8_lossy(&word.bytes[at + SCHEME.len()..word.bytes.len() - 1]);
        let mut fields = head.split(';').map(str::trim);
        let media_type = fields.next().unwrap_or_default();
        let is_base64 = fields.next_back().is_some_and(|last| last.eq_ignore_ascii_case("base64"));
        let named = !head.starts_with(' ') && (media_type.is_empty() || media_type.contains('/'));
        if head.len() > MAX_HEAD || !named || !(is_base64 || is_first) {
            return;
        }
        let form = if is_base64 { Form::UrlBase64 } else { Form::UrlText };
        self.url = Some(Open {
            from: word.at[at],
            body,
            form,
            declared: Some(media_type.to_owned()).filter(|name| !name.is_empty()),
            is_first,
            meter: Meter::new(form),
            has_space: false,
            line: None,
        });
        self.word = Word::default();
    }

    /// Follows the `data:` URL into `rest`; says how far.
    fn go_on(&mut self, rest: &[u8], at: u64, out: &mut BytesMut) -> usize {
        let Some(url) = &mut self.url else {
            return 0;
        };
        if url.form == Form::UrlText {
            url.has_space |= rest.iter().any(u8::is_ascii_whitespace);
            url.meter.push(rest, out);
            return rest.len();
        }
        let run = rest.iter().position(|byte| !is_base64(*byte)).unwrap_or(rest.len());
        if run > 0 {
            url.meter.push(&rest[..run], out);
        } else if matches!(rest[0], b'\r' | b'\n') {
            if url.line.is_none() {
                url.line = Some((at, url.meter.clone().finish(out)));
            }
            return 1;
        } else {
            self.end_url(at, false, out);
        }
        run
    }

    fn end_url(&mut self, end: u64, at_end: bool, out: &mut BytesMut) {
        let Some(Open { from, body, form, declared, is_first, meter, has_space, line }) = self.url.take() else {
            return;
        };
        let whole = is_first && at_end;
        let weighed = meter.finish(out);
        // Prose that begins with the word: only what names a type is taken for a URL in spite of its spaces.
        if form == Form::UrlText && declared.is_none() && has_space {
            return;
        }
        // Lines belong together where they are the whole string; in a text the URL ends with its line.
        let (end, weighed, whole) = match line {
            Some((end, first)) if !(whole && weighed.is_some()) => (end, first, false),
            _ => (end, weighed, whole),
        };
        match weighed {
            Some(weighed) if weighed.bytes > 0 => {
                let media = Media { form, body: body..end, declared, weighed };
                self.told.data_urls.push(DataUrl { range: from..end, whole, media });
            }
            Some(_) => {}
            None => self.told.broken_url |= whole,
        }
    }

    fn end_word(&mut self, links: &Links<'_>) {
        let word = std::mem::take(&mut self.word);
        if word.too_long || word.bytes.is_empty() {
            return;
        }
        let Some((from, to)) = link_in(&word.bytes) else {
            return;
        };
        let Ok(url) = std::str::from_utf8(&word.bytes[from..to]) else {
            return;
        };
        if let Some(link) = links.of(url) {
            let end = word.at.get(to).copied().unwrap_or(word.end);
            self.told.links.push((link, word.at[from]..end));
        }
    }
}

const SCHEME: &[u8; 5] = b"data:";

/// Whether the word is, as far as it goes, a `data:` URL from its first byte on.
fn begins_url(word: &[u8]) -> bool {
    word.len() >= SCHEME.len() && word[..SCHEME.len()].eq_ignore_ascii_case(SCHEME)
}

/// The last `data:` of a word that is no end of a longer name.
fn find_scheme(word: &[u8]) -> Option<usize> {
    let places = (0..(word.len() + 1).saturating_sub(SCHEME.len())).rev();
    places
        .filter(|at| begins_url(&word[*at..]))
        .find(|at| at.checked_sub(1).is_none_or(|before| !word[before].is_ascii_alphanumeric()))
}

/// Where in a word a link of ours may stand: from its scheme on, without the punctuation of a sentence.
fn link_in(word: &[u8]) -> Option<(usize, usize)> {
    let ours = [b"/a/".as_slice(), b"/v1/assets/"];
    ours.iter().any(|path| memmem::find(word, path).is_some()).then_some(())?;
    let to = word.iter().rposition(|byte| !b".,;:!?*".contains(byte))? + 1;
    let schemes = [b"https://".as_slice(), b"http://"];
    let from = schemes.iter().filter_map(|scheme| memmem::rfind(&word[..to], scheme)).max();
    let from = from.or_else(|| ours.iter().filter_map(|path| memmem::find(word, path)).min())?;
    (from < to).then_some((from, to))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=' | b'%')
}

/// What cannot stand in a URL, and what a text puts around one.
fn is_delimiter(byte: u8) -> bool {
    byte <= b' '
        || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'`' | b'|' | b'\\')
}
