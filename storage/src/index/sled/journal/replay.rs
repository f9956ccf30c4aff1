//! The journal read again: every record in its order, up to the end that a crash may have left.

use super::segment::{END, HEAD, MAGIC, SECTOR};
use crate::error::StorageError;
use crate::index::sled::fresh::{Pending, Written};

/// What the segments said that have been read.
#[derive(Debug)]
pub(super) struct Replay {
    /// The last record whose rows are in the tree; everything before the first one is.
    noted: u64,
    /// The number of the next record, once a segment has been read.
    next: Option<u64>,
    rows: Pending,
}

/// What stands at a place where a record may begin.
enum Found<'a> {
    /// A record that reads.
    Record { number: u64, body: &'a [u8] },
    /// Nothing, or what was being written when the power failed.
    Unwritten,
    /// Something that was written, and is not any more as it was.
    Damaged(&'static str),
}

impl Replay {
    /// `noted` is what the tree has noted, if it has.
    pub(super) fn new(noted: Option<u64>) -> Self {
        Self { noted: noted.unwrap_or(0), next: None, rows: Pending::new() }
    }

    /// Reads one more segment.
    pub(super) fn segment(&mut self, number: u64, raw: &[u8]) -> Result<(), StorageError> {
        let damaged = |at: usize, what: &str| Err(damaged(&format!("journal-{number} at byte {at}: {what}")));
        let first = match beginning(raw) {
            Some((named, first)) if named == number => first,
            _ => return damaged(0, "its beginning does not read"),
        };
        // The first segment goes on where the tree ends or before that, every other one where the one before it ends.
        if self.next.map_or(first > self.noted + 1, |next| first != next) {
            let expected = self.next.unwrap_or(self.noted + 1);
            return damaged(0, &format!("it begins with record {first}, and record {expected} is in no file"));
        }
        let (mut at, mut next) = (SECTOR, first);
        loop {
            match at_sector(raw, at) {
                Found::Record { number, body } if number == next => {
                    if number > self.noted {
                        self.read(body).or_else(|what| damaged(at, what))?;
                    }
                    next += 1;
                    at += (HEAD + body.len() + 1).next_multiple_of(SECTOR);
                }
                Found::Record { .. } => return damaged(at, "another record was expected"),
                Found::Damaged(what) => return damaged(at, what),
                Found::Unwritten if follows(raw, at, next) => return damaged(at, "a record is missing before others"),
                Found::Unwritten => break,
            }
        }
        self.next = Some(next);
        Ok(())
    }

    /// The number of the next record, and what all of them wrote.
    pub(super) fn end(self) -> Result<(u64, Pending), StorageError> {
        let next = self.next.unwrap_or(1);
        if next <= self.noted {
            return Err(damaged(&format!("it ends before record {next}, and the tree has noted {}", self.noted)));
        }
        Ok((next, self.rows))
    }

    fn read(&mut self, mut body: &[u8]) -> Result<(), &'static str> {
        const UNREADABLE: &str = "a row does not read";
        while !body.is_empty() {
            let key = take_length(&mut body).and_then(|length| take(&mut body, length)).ok_or(UNREADABLE)?;
            let written = match take_length(&mut body).ok_or(UNREADABLE)? {
                0 => Written::Gone,
                length => Written::Put(take(&mut body, length - 1).ok_or(UNREADABLE)?.into()),
            };
            self.rows.insert(key.into(), written);
        }
        Ok(())
    }
}

fn damaged(what: &str) -> StorageError {
    StorageError::Corrupt { store: "index", reason: format!("the journal is damaged: {what}") }
}

/// The number of the segment and that of its first record.
fn beginning(raw: &[u8]) -> Option<(u64, u64)> {
    let (magic, rest) = raw.split_first_chunk::<16>()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (first, rest) = rest.split_first_chunk()?;
    let (check, _) = rest.split_first_chunk()?;
    let reads = magic == MAGIC && u32::from_le_bytes(*check) == crc32fast::hash(&raw[..32]);
    reads.then(|| (u64::from_le_bytes(*number), u64::from_le_bytes(*first)))
}

fn at_sector(raw: &[u8], at: usize) -> Found<'_> {
    let rest = raw.get(at..).unwrap_or_default();
    let sector = &rest[..rest.len().min(SECTOR)];
    if is_zero(sector) {
        return Found::Unwritten;
    }
    let Some((bytes, number, check)) = head(rest) else {
        // A file that a killed process wrote may end, or go over to zeros, anywhere in the head.
        return if is_zero(sector.get(HEAD..).unwrap_or_default()) {
            Found::Unwritten
        } else {
            Found::Damaged("the head of a record does not read")
        };
    };
    let end = HEAD + bytes;
    let body = rest.get(HEAD..end).filter(|body| crc32fast::hash(body) == check);
    match body {
        Some(body) if rest.get(end) == Some(&END) => Found::Record { number, body },
        _ if is_torn(rest, end) => Found::Unwritten,
        _ => Found::Damaged("a record is not as it was written"),
    }
}

/// The length of the body, the number, and the checksum of the body.
fn head(raw: &[u8]) -> Option<(usize, u64, u32)> {
    let (bytes, rest) = raw.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (check, rest) = rest.split_first_chunk()?;
    let (own, _) = rest.split_first_chunk()?;
    let reads = u32::from_le_bytes(*own) == crc32fast::hash(&raw[..16]);
    reads.then(|| (u32::from_le_bytes(*bytes) as usize, u64::from_le_bytes(*number), u32::from_le_bytes(*check)))
}

/// Whether a record whose end mark is at this place was not written entirely: a sector of it is as it was before.
fn is_torn(rest: &[u8], end: usize) -> bool {
    match rest.get(..=end) {
        None | Some([.., 0]) => true,
        Some(record) => record.chunks(SECTOR).any(is_zero),
    }
}

/// Whether a later record begins anywhere behind this place: it was written after those before it were on the disk.
fn follows(raw: &[u8], at: usize, missing: u64) -> bool {
    let later = |at: usize| head(&raw[at..]).is_some_and(|(_, number, _)| number > missing);
    (at + SECTOR..raw.len()).step_by(SECTOR).any(later)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

fn take_length(from: &mut &[u8]) -> Option<usize> {
    let mut length = 0_usize;
    for place in 0..5 {
        let byte = take(from, 1)?[0];
        length |= usize::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(length);
        }
    }
    None
}
