//! A bundle read once, as it comes: what in it is media, what links to assets, what is wrong with it, and where all of that stands.
//!
//! Memory: one string's first kilobyte and one word of it, the open objects, and a list of what was found ([`super::found`]), with a
//! bound each.

use bytes::BytesMut;

use super::BundleError;
use super::found::Found;
use super::links::Links;
use super::object::{CARRIERS, Frame};
use super::outer::Outer;
use super::text::Text;
use crate::json::string::{Fault, Piece};
use crate::json::{Event, Json};

mod media;
mod mentions;

/// Reads a bundle. It is the body, or the member `bundle` of a body that has nothing beside it but `runId` and `scrub`.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    links: Links<'a>,
    json: Json,
    offset: u64,
    /// Where an escape began that was cut.
    escape: Option<u64>,
    in_word: bool,
    frames: Vec<Frame>,
    text: Option<Text>,
    out: BytesMut,
    found: Found,
    outer: Outer,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(links: Links<'a>) -> Self {
        Self {
            links,
            json: Json::new(),
            offset: 0,
            escape: None,
            in_word: false,
            frames: Vec::new(),
            text: None,
            out: BytesMut::new(),
            found: Found::default(),
            outer: Outer::default(),
        }
    }

    /// Reads the next piece.
    pub(super) fn push(&mut self, mut chunk: &[u8]) -> Result<(), BundleError> {
        while let [first, ..] = chunk {
            let at = self.offset;
            let read = self.json.next(chunk);
            let (event, used) =
                read.map_err(|Fault { at: inside, what }| BundleError::Syntax { offset: at + inside as u64, what })?;
            self.offset += used as u64;
            self.take(event, *first, at)?;
            chunk = &chunk[used..];
        }
        Ok(())
    }

    /// Ends the body.
    pub(super) fn finish(mut self) -> Result<Found, BundleError> {
        if !self.json.is_done() {
            return Err(BundleError::Syntax { offset: self.offset, what: "the end" });
        }
        self.outer.settle(&mut self.found);
        self.found.edits.sort_by_key(|edit| edit.range.start);
        Ok(self.found)
    }

    fn take(&mut self, event: Event<'_>, first: u8, at: u64) -> Result<(), BundleError> {
        match event {
            Event::Name(Piece::End) => self.end_name(at)?,
            Event::Text(Piece::End) => self.end_text(at)?,
            Event::Name(piece) | Event::Text(piece) => self.inside(piece, at),
            Event::TextBegins => {
                let frame = self.begin_value(at);
                let may_carry = frame.is_some_and(|frame| !frame.is_array && CARRIERS.contains(&frame.name.as_str()));
                self.text = Some(Text::new(at + 1, may_carry));
            }
            Event::Null | Event::Scalar => self.end_word(event == Event::Null)?,
            Event::Opens => {
                self.begin_value(at);
                self.names_no_tenant()?;
                self.frames.push(Frame::new(first == b'['));
            }
            Event::Nothing => match first {
                b'"' => self.text = Some(Text::new(at + 1, false)),
                b',' => {
                    if let Some(frame) = self.frames.last_mut() {
                        frame.index += 1;
                    }
                }
                b'{' if self.frames.is_empty() => {
                    self.found.bundle.start = at;
                    self.frames.push(Frame::new(false));
                }
                b'}' | b']' => self.close()?,
                b' ' | b'\t' | b'\r' | b'\n' | b':' => {}
                _ if self.in_word => {}
                _ => {
                    self.in_word = true;
                    self.begin_value(at);
                }
            },
        }
        Ok(())
    }

    fn begin_value(&mut self, at: u64) -> Option<&Frame> {
        let frame = self.frames.last_mut()?;
        frame.value_from = at;
        frame.is_empty = false;
        Some(frame)
    }

    fn inside(&mut self, piece: Piece<'_>, at: u64) {
        let Some(text) = &mut self.text else {
            return;
        };
        match piece {
            Piece::Text(piece) => text.push(piece, at..self.offset, &self.links, &mut self.out),
            Piece::Char(character) => {
                let from = self.escape.take().unwrap_or(at);
                let mut buffer = [0; 4];
                let piece = character.encode_utf8(&mut buffer).as_bytes();
                text.push(piece, from..self.offset, &self.links, &mut self.out);
            }
            Piece::More => {
                self.escape.get_or_insert(at);
            }
            Piece::End => {}
        }
    }

    fn end_name(&mut self, at: u64) -> Result<(), BundleError> {
        let Some(text) = self.text.take() else {
            return Ok(());
        };
        let from = text.from();
        let mut told = text.finish(at, &self.links, &mut self.out);
        if let Some(frame) = self.frames.last_mut() {
            frame.name_at = from..at;
            frame.name = told.text.take().unwrap_or_default();
            frame.is_hidden = !told.links.is_empty() || !told.data_urls.is_empty() || told.broken_url;
        }
        // A name that is a link travels like any other.
        self.note_links(&told.links)?;
        self.store_urls(&mut told);
        if let [root] = self.frames.as_slice() {
            self.outer.note_member(&root.name);
        }
        self.found.bounded()
    }

    fn end_text(&mut self, at: u64) -> Result<(), BundleError> {
        let Some(text) = self.text.take() else {
            return Ok(());
        };
        let from = text.from();
        let mut told = text.finish(at, &self.links, &mut self.out);
        self.note_tenant(told.text.as_deref())?;
        self.outer.note_text(&self.frames, told.text.as_deref());
        self.note_links(&told.links)?;
        match self.frames.last_mut() {
            Some(frame) if !frame.is_array => {
                match &told.text {
                    Some(text) => frame.note_text(text),
                    None => frame.note_string(),
                }
                self.note_carriers(from - 1..at + 1, &mut told)?;
                self.note_name(told.text.as_deref());
            }
            _ => self.store_urls(&mut told),
        }
        self.value_done(at + 1)
    }

    fn end_word(&mut self, is_null: bool) -> Result<(), BundleError> {
        self.in_word = false;
        if !is_null {
            self.names_no_tenant()?;
        }
        if let Some(frame) = self.frames.last_mut().filter(|frame| !frame.is_array) {
            frame.note_word(self.json.word(), frame.value_from..self.offset);
        }
        self.value_done(self.offset)
    }

    /// The end of an object or array.
    fn close(&mut self) -> Result<(), BundleError> {
        let Some(mut frame) = self.frames.pop() else {
            return Ok(());
        };
        if let Some(parent) = self.frames.last_mut().filter(|parent| !parent.is_array && !frame.is_array) {
            parent.note_object(&frame);
        }
        if frame.misses_source() {
            self.finding("source_missing", "media without url, base64 or mediaRef");
        }
        self.end_carriers(&mut frame)?;
        if frame.redaction == (true, true) && self.frames.len() < 2 {
            self.finding_at(Some("redactionMode"), "malformed", "a redacted bundle is not passed through");
        }
        for mention in &frame.mentions {
            if let Some(mention) = self.found.mentions.get_mut(*mention) {
                mention.bytes = frame.bytes;
                mention.sha256.clone_from(&frame.sha256);
                mention.is_over = frame.is_over;
            }
        }
        self.outer.note_object(&frame, &self.frames, self.offset, &mut self.found);
        self.value_done(self.offset)
    }

    /// A value ended before `end`.
    fn value_done(&mut self, end: u64) -> Result<(), BundleError> {
        self.outer.note_value(&self.frames, end);
        self.found.bounded()
    }

    /// The body's own tenant may be named; another may not.
    fn note_tenant(&self, text: Option<&str>) -> Result<(), BundleError> {
        match text == Some(self.links.tenant.as_str()) {
            true => Ok(()),
            false => self.names_no_tenant(),
        }
    }

    fn names_no_tenant(&self) -> Result<(), BundleError> {
        match self.frames.as_slice() {
            [root] if matches!(root.name.as_str(), "tenant" | "tenantId") => Err(BundleError::ForeignTenant),
            _ => Ok(()),
        }
    }

    fn finding(&mut self, code: &'static str, message: &'static str) {
        self.finding_at(None, code, message);
    }

    fn finding_at(&mut self, member: Option<&str>, code: &'static str, message: &'static str) {
        let frames = &self.frames;
        self.found.finding(|| path(frames, member), code, message);
    }
}

/// The value that is read, or the object that was read with this member of it.
fn path(frames: &[Frame], member: Option<&str>) -> String {
    let mut path = String::new();
    for frame in frames {
        path.push('/');
        path.push_str(&frame.step());
    }
    if let Some(member) = member {
        path.push('/');
        path.push_str(member);
    }
    path
}
