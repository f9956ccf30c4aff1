//! A bundle read once, as it comes: what in it is media, what links to assets, what is wrong with it, and where all of that stands.
//!
//! Memory: one string's first 8 KiB, the open objects, and a list of what was found, with a bound each.

use std::collections::HashSet;
use std::ops::Range;

use bytes::BytesMut;
use mediakeep_storage::AssetId;

use super::BundleError;
use super::links::{Link, Links};
use super::object::{CARRIERS, Carrier, Frame, NAMES};
use super::text::{Media, Text, Told};
use crate::json::string::{Fault, Piece};
use crate::json::{Event, Json};

/// The member that a scrubbed bundle carries its manifest in.
pub const MANIFEST: &str = "x-host-mediakeep-mediaAssets";

/// So many media of one bundle are stored.
pub const MAX_MEDIA: usize = 10_000;

/// So many mentions of assets are looked up.
pub const MAX_MENTIONS: usize = 50_000;

/// So many findings are told.
pub const MAX_FINDINGS: usize = 1_000;

/// So many members of one object may carry bytes.
const MAX_CARRIERS: usize = 64;

/// Something wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A JSON pointer into the bundle.
    pub path: String,
    /// Which of the codes.
    pub code: &'static str,
    /// A sentence.
    pub message: &'static str,
}

/// A place of the bundle that is written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) range: Range<u64>,
    pub(super) what: What,
}

/// By what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The bound URL of what the media becomes.
    Media(usize),
    /// The bound URL of this asset.
    Link(AssetId),
    /// The same with quotation marks.
    Quoted(usize),
    /// `null`.
    Null,
    /// The name `url`.
    Name,
}

/// An asset that the bundle names, and what it says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) path: String,
    /// `None`: what is no asset's name.
    pub(super) asset: Option<AssetId>,
    pub(super) bytes: Option<u64>,
    pub(super) sha256: Option<String>,
    /// Whether the bundle itself says that it is over.
    pub(super) is_over: bool,
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// In order, and none within another.
    pub(super) edits: Vec<Edit>,
    pub(super) media: Vec<Media>,
    pub(super) mentions: Vec<Mention>,
    pub(super) findings: Vec<Finding>,
    /// Where the bundle's object begins and ends.
    pub(super) bundle: Range<u64>,
    pub(super) is_empty: bool,
    /// Where its manifest stands, if it has one.
    pub(super) manifest: Option<Range<u64>>,
    pub(super) run: Option<String>,
}

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

/// What stands at the places that mean something.
#[derive(Debug, Default)]
struct Outer {
    others: bool,
    inner: Option<Range<u64>>,
    inner_is_empty: bool,
    manifest: Option<Range<u64>>,
    inner_manifest: Option<Range<u64>>,
    run: Option<String>,
    own_run: Option<String>,
    inner_run: Option<String>,
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
        let outer = self.outer;
        match outer.inner.filter(|_| !outer.others) {
            Some(inner) => {
                self.found.bundle = inner;
                self.found.is_empty = outer.inner_is_empty;
                self.found.manifest = outer.inner_manifest;
                self.found.run = outer.inner_run.or(outer.own_run);
                let paths = self.found.findings.iter_mut().map(|finding| &mut finding.path);
                for path in paths.chain(self.found.mentions.iter_mut().map(|mention| &mut mention.path)) {
                    if let Some(inside) = path.strip_prefix("/bundle") {
                        *path = inside.to_owned();
                    }
                }
            }
            None => {
                self.found.manifest = outer.manifest;
                self.found.run = outer.run.or(outer.own_run);
            }
        }
        self.found.edits.sort_by_key(|edit| edit.range.start);
        Ok(self.found)
    }

    fn take(&mut self, event: Event<'_>, first: u8, at: u64) -> Result<(), BundleError> {
        match event {
            Event::Name(Piece::End) => self.end_name(at),
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

    fn end_name(&mut self, at: u64) {
        let Some(text) = self.text.take() else {
            return;
        };
        let from = text.from();
        let told = text.finish(at, &self.links, &mut self.out);
        if let Some(frame) = self.frames.last_mut() {
            frame.name_at = from..at;
            frame.name = told.text.clone().unwrap_or_default();
        }
        // A name that is a link travels like any other.
        self.note_links(&told);
        for url in told.data_urls {
            self.store(url.media, url.range);
        }
        if self.frames.len() == 1 {
            let name = self.frames[0].name.as_str();
            self.outer.others |= !matches!(name, "bundle" | "runId" | "scrub" | "tenant" | "tenantId");
        }
    }

    fn end_text(&mut self, at: u64) -> Result<(), BundleError> {
        let Some(text) = self.text.take() else {
            return Ok(());
        };
        let from = text.from();
        let told = text.finish(at, &self.links, &mut self.out);
        self.note_tenant(told.text.as_deref())?;
        self.note_run(told.text.as_deref());
        self.note_links(&told);
        if told.broken_url {
            self.finding("malformed", "a data: URL that cannot be decoded");
        }
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        if frame.is_array {
            for url in told.data_urls {
                self.store(url.media, url.range);
                self.finding("inline_media", "a data: URL");
            }
            return self.value_done(at + 1);
        }
        match &told.text {
            Some(text) => frame.note_text(text),
            None => frame.note_string(),
        }
        let (name, name_at) = (frame.name.clone(), frame.name_at.clone());
        let is_carrier = CARRIERS.contains(&name.as_str());
        let named = told.text.as_deref().is_some_and(|text| text.contains("://"));
        if told.not_base64 && !matches!(name.as_str(), "data" | "raw") && told.data_urls.is_empty() && !named {
            frame.not_base64.push(name.clone());
        }
        let mut carriers: Vec<Carrier> = Vec::new();
        if let Some(media) = told.base64 {
            carriers.push(Carrier {
                name: name.clone(),
                name_at: name_at.clone(),
                literal: from - 1..at + 1,
                range: from..at,
                media,
                is_url: false,
            });
        }
        for url in told.data_urls {
            if url.whole && is_carrier {
                let (name, name_at) = (name.clone(), name_at.clone());
                let literal = from - 1..at + 1;
                carriers.push(Carrier { name, name_at, literal, range: url.range, media: url.media, is_url: true });
            } else {
                self.store(url.media, url.range);
                self.finding("inline_media", "a data: URL");
            }
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.carriers.append(&mut carriers);
            if frame.carriers.len() > MAX_CARRIERS {
                return Err(BundleError::TooMany { what: "members with bytes in one object", limit: MAX_CARRIERS });
            }
        }
        self.note_name(told.text.as_deref());
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
        let judgement = frame.judge();
        let has_source = frame.has_source();
        let mut renames = judgement.renames;
        for Carrier { name, name_at, literal, range, mut media, is_url } in std::mem::take(&mut frame.carriers) {
            if !judgement.is_typed && !is_url {
                continue;
            }
            self.finding_at(Some(&name), "inline_media", "media that is inlined");
            media.declared = media.declared.or_else(|| frame.media_type.clone());
            let renames = std::mem::take(&mut renames);
            match frame.null_url.take().filter(|_| renames) {
                // Some hosts write both members, and `null` for the one that is not: then the two change places.
                Some(null) => {
                    self.found.edits.push(Edit { range: null, what: What::Quoted(self.found.media.len()) });
                    self.found.edits.push(Edit { range: literal, what: What::Null });
                    self.found.media.push(media);
                }
                None => {
                    if renames {
                        self.found.edits.push(Edit { range: name_at, what: What::Name });
                    }
                    self.store(media, range);
                }
            }
            self.bounded()?;
        }
        if judgement.is_typed {
            for name in &frame.not_base64 {
                self.finding_at(Some(name), "malformed", "no base64");
            }
        }
        if judgement.misses_source {
            self.finding("source_missing", "media without url, base64 or mediaRef");
        }
        if judgement.is_ambiguous {
            self.finding("source_ambiguous", "media by more than one way");
        }
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
        match self.frames.len() {
            0 => {
                self.found.bundle.end = self.offset;
                self.found.is_empty = frame.is_empty;
            }
            1 if self.frames[0].name == "bundle" && !frame.is_array => {
                self.outer.inner = Some(self.frames[0].value_from..self.offset);
                self.outer.inner_is_empty = frame.is_empty;
            }
            _ => {}
        }
        if let Some(parent) = self.frames.last_mut().filter(|parent| !parent.is_array && !frame.is_array) {
            parent.note_object(&judgement, has_source);
        }
        self.value_done(self.offset)
    }

    /// A value ended before `end`.
    fn value_done(&mut self, end: u64) -> Result<(), BundleError> {
        match self.frames.as_slice() {
            [root] if root.name == MANIFEST => self.outer.manifest = Some(root.value_from..end),
            [root, inner] if root.name == "bundle" && !inner.is_array && inner.name == MANIFEST => {
                self.outer.inner_manifest = Some(inner.value_from..end);
            }
            _ => {}
        }
        self.bounded()
    }

    fn bounded(&self) -> Result<(), BundleError> {
        if self.found.media.len() > MAX_MEDIA {
            return Err(BundleError::TooMany { what: "inlined media", limit: MAX_MEDIA });
        }
        if self.found.mentions.len() > MAX_MENTIONS {
            return Err(BundleError::TooMany { what: "mentions of assets", limit: MAX_MENTIONS });
        }
        Ok(())
    }

    fn store(&mut self, media: Media, range: Range<u64>) {
        self.found.edits.push(Edit { range, what: What::Media(self.found.media.len()) });
        self.found.media.push(media);
    }

    fn note_links(&mut self, told: &Told) {
        let mut met = HashSet::new();
        for (link, range) in &told.links {
            let asset = match link {
                Link::Capability(asset) => {
                    self.found.edits.push(Edit { range: range.clone(), what: What::Link(*asset) });
                    self.finding("capability_url", "a URL that opens without a credential");
                    Some(*asset)
                }
                Link::Bound(asset) => *asset,
                Link::Foreign => {
                    self.finding("foreign_url", "a URL of another tenant");
                    continue;
                }
                Link::Broken => {
                    self.finding("malformed", "a URL under our address that we have not made");
                    continue;
                }
            };
            if met.insert(asset) {
                self.mention(asset);
            }
        }
    }

    /// Takes note of an asset that is named by id or `mediaRef`.
    fn note_name(&mut self, text: Option<&str>) {
        let Some((frame, text)) = self.frames.last().zip(text) else {
            return;
        };
        let id = match frame.name.as_str() {
            "mediaRef" | "ref" => text.strip_prefix("blob:").filter(|id| id.starts_with("ast_")),
            "assetId" => Some(text).filter(|id| id.starts_with("ast_")),
            _ => None,
        };
        if let Some(id) = id {
            self.mention(AssetId::parse(id).ok());
        }
    }

    fn mention(&mut self, asset: Option<AssetId>) {
        let path = self.path(None);
        let mention = Mention { path, asset, bytes: None, sha256: None, is_over: false };
        if let Some(frame) = self.frames.last_mut().filter(|frame| NAMES.contains(&frame.name.as_str())) {
            frame.mentions.push(self.found.mentions.len());
        }
        self.found.mentions.push(mention);
    }

    fn note_run(&mut self, text: Option<&str>) {
        let names: Vec<&str> = self.frames.iter().map(|frame| frame.name.as_str()).collect();
        let place = match names.as_slice() {
            ["run", "runId"] => &mut self.outer.run,
            ["runId"] => &mut self.outer.own_run,
            ["bundle", "run", "runId"] => &mut self.outer.inner_run,
            ["bundle", "runId"] if self.outer.inner_run.is_none() => &mut self.outer.inner_run,
            _ => return,
        };
        *place = Some(text.unwrap_or_default().to_owned());
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

    /// The value that is read, or the object that was read with this member of it.
    fn path(&self, member: Option<&str>) -> String {
        let mut path = String::new();
        for frame in &self.frames {
            path.push('/');
            path.push_str(&frame.step());
        }
        if let Some(member) = member {
            path.push('/');
            path.push_str(member);
        }
        path
    }

    fn finding(&mut self, code: &'static str, message: &'static str) {
        self.finding_at(None, code, message);
    }

    fn finding_at(&mut self, member: Option<&str>, code: &'static str, message: &'static str) {
        if self.found.findings.len() < MAX_FINDINGS {
            self.found.findings.push(Finding { path: self.path(member), code, message });
        }
    }
}
