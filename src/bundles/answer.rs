//! The answer to a scrub, read piece by piece: the bundle as it was but for what is written anew, and what was done.

use std::io;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;
use std::vec;

use bytes::{Bytes, BytesMut};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::found::{Edit, What};
use super::spool::Spool;
use crate::app::App;
use crate::assets::urls;

/// The answer, read piece by piece: the bundle as it was but for what is written anew, and what was done.
#[derive(Debug)]
pub struct Scrubbed {
    pub(super) spool: Spool,
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) edits: Peekable<vec::IntoIter<Edit>>,
    /// What the media became.
    pub(super) urls: Vec<String>,
    pub(super) app: Arc<App>,
    pub(super) insert: Option<(Range<u64>, String)>,
    pub(super) head: Option<&'static str>,
    pub(super) tail: Option<String>,
    /// What was read of the bundle last, and from where.
    pub(super) window: (u64, Bytes),
}

/// A piece is at least so long, but for the last.
const PIECE: usize = 32 << 10;

impl Scrubbed {
    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut out = BytesMut::with_capacity(PIECE * 2);
        out.extend_from_slice(self.head.take().unwrap_or_default().as_bytes());
        while out.len() < PIECE {
            let insert = self.insert.as_ref().map_or(u64::MAX, |(range, _)| range.start);
            let edit = self.edits.peek().map_or(u64::MAX, |edit| edit.range.start);
            let stop = insert.min(edit).min(self.end);
            if self.at < stop {
                let piece = self.window(stop).await?;
                out.extend_from_slice(&piece);
            } else if edit <= insert && edit < self.end {
                self.write_edit(&mut out);
            } else if let Some((range, text)) = self.insert.take() {
                out.extend_from_slice(text.as_bytes());
                self.at = range.end;
            } else if let Some(tail) = self.tail.take() {
                out.extend_from_slice(tail.as_bytes());
            } else {
                break;
            }
        }
        Ok((!out.is_empty()).then(|| out.freeze()))
    }

    fn write_edit(&mut self, out: &mut BytesMut) {
        let Some(Edit { range, what }) = self.edits.next() else {
            return;
        };
        if range.start < self.at {
            return;
        }
        match what {
            What::Media(at, layers) => out.extend_from_slice(encoded(self.urls[at].clone(), layers).as_bytes()),
            What::Link(asset, layers) => {
                out.extend_from_slice(encoded(urls::bound_url(&self.app, asset), layers).as_bytes());
            }
            What::Quoted(at) => out.extend_from_slice(format!("\"{}\"", self.urls[at]).as_bytes()),
            What::Null => out.extend_from_slice(b"null"),
            What::Name => out.extend_from_slice(b"url"),
        }
        self.at = range.end;
    }

    /// What the bundle says from here on, at most to `stop`.
    async fn window(&mut self, stop: u64) -> io::Result<Bytes> {
        let (from, read) = &self.window;
        if !(*from..from + read.len() as u64).contains(&self.at) {
            self.window = (self.at, self.spool.read(&(self.at..self.end)).await?);
        }
        let (from, read) = &self.window;
        let begin = usize::try_from(self.at - from).unwrap_or(0);
        let length = usize::try_from(stop - self.at).unwrap_or(usize::MAX);
        let piece = read.slice(begin..begin.saturating_add(length).min(read.len()));
        self.at += piece.len() as u64;
        Ok(piece)
    }
}

/// The URL as it stands in another one, which may stand in another one.
fn encoded(url: String, layers: u8) -> String {
    (0..layers).fold(url, |url, _| utf8_percent_encode(&url, UNRESERVED).to_string())
}

/// What is not encoded (RFC 3986 §2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
