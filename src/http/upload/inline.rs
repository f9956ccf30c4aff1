//! The JSON body of an inline ingest, read while it arrives: its bytes are decoded as they come and never held whole.

use bytes::BytesMut;

pub use self::error::InlineError;
use self::members::{KNOWN, Kind};
use self::payload::PayloadReader;
use crate::assets::members::RawMembers;
use crate::json::string::{Fault, Piece};
use crate::json::{Event, Json};

mod error;
mod members;
mod payload;

/// Reads one flat object of strings, however it is cut, and decodes the one that carries the bytes on its way.
///
/// Memory: what [`Limits`] allow, and per chunk the bytes decoded from it. After an error the reader and what it wrote
/// are of no use.
#[derive(Debug)]
pub struct InlineReader {
    tenant: String,
    limits: Limits,
    json: Json,
    /// Bytes read.
    offset: u64,
    /// Those of them that were not inside of the payload.
    frame_bytes: usize,
    /// The name of a member while it is read, then the string that is its value.
    text: Vec<u8>,
    target: Target,
    /// The string that carries the bytes, while it is read.
    payload: Option<PayloadReader>,
    met: Vec<&'static str>,
    source: Option<&'static str>,
    unknown: Option<String>,
    /// A name of the tenant that stands there twice.
    twice: Option<&'static str>,
    inline: Inline,
}

/// How much of a body may be something other than an asset's bytes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest string, unescaped. The longest that means anything is an `alt` of 1,024 characters or a long `url`.
    pub text_bytes: usize,
    /// Everything outside of the payload's string: names, values, white space.
    pub frame_bytes: usize,
}

/// An inline body that was read to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inline {
    /// What it says of the bytes.
    pub members: RawMembers,
    /// The type that the payload's `data:` URL named, without parameters: the declared one if there is no `mimeType`.
    pub data_url_type: Option<String>,
    /// The bytes that went to the sink.
    pub payload: Payload,
}

/// The bytes that a body carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Payload {
    /// No member carries bytes, or it was `null`. A body with a `url` has none.
    #[default]
    Missing,
    /// A member carries bytes, and there are none.
    Empty,
    /// That many, at least one.
    Bytes(u64),
}

impl InlineReader {
    /// A reader for a body sent with a credential of `tenant`.
    ///
    /// A body that names another tenant is refused for that, also when it has an unknown member as well, wherever
    /// either of them stands.
    pub fn new(tenant: &str, limits: Limits) -> Self {
        Self {
            tenant: tenant.to_owned(),
            limits,
            json: Json::new(),
            offset: 0,
            frame_bytes: 0,
            text: Vec::new(),
            target: Target::Skipped,
            payload: None,
            met: Vec::new(),
            source: None,
            unknown: None,
            twice: None,
            inline: Inline::default(),
        }
    }

    /// Reads the next piece of the body and appends the asset's bytes in it to `sink`.
    pub fn push(&mut self, mut chunk: &[u8], sink: &mut BytesMut) -> Result<(), InlineError> {
        while !chunk.is_empty() {
            let offset = self.offset;
            let syntax = |Fault { at, what }| InlineError::Syntax { offset: offset + at as u64, what };
            let (event, used) = self.json.next(chunk).map_err(syntax)?;
            if self.payload.is_none() {
                self.spend(used)?;
            }
            self.take(event, sink)?;
            self.offset += used as u64;
            chunk = &chunk[used..];
        }
        Ok(())
    }

    /// Ends the body.
    pub fn finish(self) -> Result<Inline, InlineError> {
        if !self.json.is_done() {
            return Err(InlineError::Syntax { offset: self.offset, what: "the end" });
        }
        match (self.twice, self.unknown) {
            (Some(member), _) => Err(InlineError::DuplicateMember { member }),
            (None, Some(member)) => Err(InlineError::UnknownMember { member }),
            (None, None) => Ok(self.inline),
        }
    }

    fn take(&mut self, event: Event<'_>, sink: &mut BytesMut) -> Result<(), InlineError> {
        match event {
            Event::Nothing | Event::Null => Ok(()),
            Event::Scalar | Event::Opens => match self.target {
                // Whatever it is, it is not the caller's own.
                Target::Known(_, Kind::Tenant) => Err(InlineError::ForeignTenant),
                Target::Known(member, _) => Err(InlineError::NotText { member }),
                Target::Skipped => Ok(()),
            },
            Event::Name(piece) => self.take_name(piece),
            Event::TextBegins => self.begin_text(),
            Event::Text(piece) if self.payload.is_some() => self.take_payload(piece, sink),
            Event::Text(piece) => self.take_text(piece),
        }
    }

    fn take_name(&mut self, piece: Piece<'_>) -> Result<(), InlineError> {
        // Only below an unknown member is there anything deeper.
        if self.json.depth() > 1 {
            return Ok(());
        }
        // Longer than any name that is known, so that what is cut off is still unknown.
        extend(&mut self.text, piece, MAX_NAME_BYTES);
        if piece == Piece::End {
            let name = std::mem::take(&mut self.text);
            self.target = self.meet(&String::from_utf8_lossy(&name))?;
        }
        Ok(())
    }

    /// Says what to do with the value of a member. An unknown one is read over, because the tenant may yet follow.
    fn meet(&mut self, name: &str) -> Result<Target, InlineError> {
        let Some((member, kind)) = KNOWN.into_iter().find(|(known, _)| *known == name) else {
            self.unknown.get_or_insert_with(|| printable(name));
            return Ok(Target::Skipped);
        };
        match self.met.contains(&member) {
            // What it says is read first: another tenant is told of before anything else.
            true if kind == Kind::Tenant => self.twice = Some(member),
            true => return Err(InlineError::DuplicateMember { member }),
            false => {}
        }
        self.met.push(member);
        Ok(Target::Known(member, kind))
    }

    fn begin_text(&mut self) -> Result<(), InlineError> {
        let Target::Known(member, kind) = self.target else {
            return Ok(());
        };
        let gives_bytes = kind == Kind::Payload || member == "url";
        if gives_bytes && let Some(first) = self.source.replace(member) {
            return Err(InlineError::SeveralPayloads { first, second: member });
        }
        if kind == Kind::Payload {
            self.inline.payload = Payload::Empty;
            self.payload = Some(PayloadReader::new());
        }
        Ok(())
    }

    fn take_payload(&mut self, piece: Piece<'_>, sink: &mut BytesMut) -> Result<(), InlineError> {
        let Some(reader) = &mut self.payload else {
            return Ok(());
        };
        let before = sink.len();
        match piece {
            Piece::Text(text) => reader.push(text, sink)?,
            Piece::Char(character) => reader.push(character.encode_utf8(&mut [0; 4]).as_bytes(), sink)?,
            Piece::More => {}
            Piece::End => {
                let reader = self.payload.take();
                self.inline.data_url_type = reader.map(|reader| reader.finish(sink)).transpose()?.flatten();
            }
        }
        self.inline.payload.add((sink.len() - before) as u64);
        Ok(())
    }

    fn take_text(&mut self, piece: Piece<'_>) -> Result<(), InlineError> {
        let Target::Known(member, kind) = self.target else {
            return Ok(());
        };
        let limit = self.limits.text_bytes;
        if !extend(&mut self.text, piece, limit) {
            return Err(InlineError::TextTooLong { member, limit });
        }
        if piece != Piece::End {
            return Ok(());
        }
        let text = String::from_utf8(std::mem::take(&mut self.text)).expect("a string reader gives valid UTF-8");
        match self.inline.members.slot(member) {
            Some(slot) => *slot = Some(text),
            None if kind == Kind::Tenant && text != self.tenant => return Err(InlineError::ForeignTenant),
            None => {}
        }
        Ok(())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), InlineError> {
        self.frame_bytes += bytes;
        if self.frame_bytes <= self.limits.frame_bytes {
            return Ok(());
        }
        // An unknown member is what made it long, most likely.
        Err(match self.unknown.take() {
            Some(member) => InlineError::UnknownMember { member },
            None => InlineError::FrameTooLong { limit: self.limits.frame_bytes },
        })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { text_bytes: 16 * 1024, frame_bytes: 64 * 1024 }
    }
}

impl Payload {
    fn add(&mut self, more: u64) {
        *self = match *self {
            Self::Bytes(bytes) => Self::Bytes(bytes + more),
            _ if more > 0 => Self::Bytes(more),
            other => other,
        };
    }
}

/// What becomes of the value that is read.
#[derive(Debug, Clone, Copy)]
enum Target {
    Known(&'static str, Kind),
    Skipped,
}

/// Enough of an unknown name to show 64 characters of it.
const MAX_NAME_BYTES: usize = 256;

/// Adds a piece as far as there is room, and says whether there was.
fn extend(text: &mut Vec<u8>, piece: Piece<'_>, limit: usize) -> bool {
    let mut buffer = [0; 4];
    let piece = match piece {
        Piece::Text(text) => text,
        Piece::Char(character) => character.encode_utf8(&mut buffer).as_bytes(),
        Piece::More | Piece::End => &[],
    };
    let room = limit - text.len();
    text.extend_from_slice(&piece[..piece.len().min(room)]);
    piece.len() <= room
}

/// A name as an error may show it: 64 characters, none of which steers a terminal or turns the direction of text.
fn printable(name: &str) -> String {
    name.chars().take(64).map(|c| if c.is_alphanumeric() || c.is_ascii_graphic() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests;
