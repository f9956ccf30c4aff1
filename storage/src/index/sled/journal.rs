//! What makes transitions durable: a journal in front of the tree.
//!
//! Each group of transitions is one record, written with one `pwrite` into room that was filled with zeros before, and kept by one
//! `fdatasync` that has no length of a file to write. Its rows are then seen by readers (`fresh` holds them in memory), and whoever waits
//! is answered. Into sled's tree they come later, many groups at a time (`checkpoint`).
//!
//! # The files
//!
//! `journal-1`, `journal-2` … lie beside sled's files. Each begins with a sector that says its number and the number of its first record;
//! each record begins on a sector of its own (`segment` has the format), so that writing one never touches another. Records are numbered
//! through all segments. A row in the tree says up to which record everything is in the tree; there is always a segment that goes on from
//! there, so that a missing one is noticed.
//!
//! # A checkpoint
//!
//! 1. A new segment is made, under a name that says nothing yet, synced, renamed, and its folder synced. Groups go there from then on.
//! 2. The rows of the old segments go into the tree, a few hundred KiB at a time, each part flushed and synced before the next: sled writes
//!    over parts of its file that it no longer needs, and does so only once what replaced them is on the disk.
//! 3. The tree notes the last record of the old segments; flushed and synced.
//! 4. The rows leave the memory, and the old segments are removed.
//!
//! Cut anywhere, the next opening finds all segments from the noted record on, and reads them again in order: records are puts and removals
//! of whole rows, so doing them twice is doing them once.
//!
//! # When something fails
//!
//! - **No room**: room is filled with zeros before a record is written there, and where that fails the group is refused as
//!   [`StorageError::Full`]; nothing is in doubt, and with room the next group is taken. A checkpoint waits while there is too little room
//!   for what sled may write, so that sled never meets a full disk; rows are read from memory meanwhile.
//! - **The record's write or its `fdatasync`**: nobody can say what is on the disk, so the index takes no more writes until it is opened
//!   again. Reads go on, without the group.
//! - **A checkpoint**: the same; what was answered is in the journal.
//! - **A power cut** may leave the last record in part, which nobody was answered for: it is dropped. It is known by sectors that are still
//!   zeros, and by nothing behind it. A record that was written to its end and does not read, or that others follow, was answered for: then
//!   the index does not open, and says which file is damaged.

use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};

use self::segment::Segment;
use super::disk::sync_folder;
use super::fresh::Pending;
use super::syncs::Trouble;
use crate::error::StorageError;
use crate::fault;

mod replay;
mod segment;
#[cfg(test)]
mod tests;

/// How the names of segments begin; their number follows.
const NAME: &str = "journal-";
/// How the names of those end that are being made.
const UNFINISHED: &str = ".new";

/// The journal of one index, which one thread writes.
#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    current: Option<Segment>,
    /// Those before it that are still needed.
    complete: Vec<PathBuf>,
    /// The number of the next segment.
    next_segment: u64,
    /// The number of the next record.
    next: u64,
    buffer: Vec<u8>,
}

/// Segments that are written no more.
#[derive(Debug)]
pub(super) struct Ended {
    /// The last record in them.
    pub(super) last: u64,
    segments: Vec<PathBuf>,
}

impl Journal {
    /// The journal in this folder, and the rows of all records after the one that the tree has noted.
    pub(super) fn open(folder: &Path, noted: Option<u64>) -> Result<(Self, Pending), StorageError> {
        let failed = |error| StorageError::file("index", "reading the journal", &error);
        let numbers = segments(folder).map_err(failed)?;
        let mut replay = replay::Replay::new(noted);
        for number in &numbers {
            let raw = fs::read(named(folder, *number)).map_err(failed)?;
            replay.segment(*number, &raw)?;
        }
        let (next, rows) = replay.end()?;
        let journal = Self {
            folder: folder.to_path_buf(),
            current: None,
            complete: numbers.iter().map(|number| named(folder, *number)).collect(),
            next_segment: numbers.last().map_or(1, |last| last + 1),
            next,
            buffer: Vec::new(),
        };
        Ok((journal, rows))
    }

    /// Makes a group durable.
    pub(super) fn append(&mut self, rows: &Pending) -> Result<(), Trouble> {
        segment::encode(&mut self.buffer, self.next, rows)?;
        let mut segment = match self.current.take() {
            Some(current) => current,
            None => self.make_segment()?,
        };
        let written = write(&mut segment, &self.buffer);
        self.current = Some(segment);
        written?;
        self.next += 1;
        Ok(())
    }

    /// How long the segment is that is written.
    pub(super) fn bytes(&self) -> u64 {
        self.current.as_ref().map_or(0, Segment::bytes)
    }

    /// Begins a new segment; those before it have what the tree has not.
    pub(super) fn begin_segment(&mut self) -> Result<Ended, Trouble> {
        let made = self.make_segment()?;
        if let Some(before) = self.current.replace(made) {
            self.complete.push(named(&self.folder, before.number));
        }
        fault::point("journal.begun");
        Ok(Ended { last: self.next - 1, segments: mem::take(&mut self.complete) })
    }

    fn make_segment(&mut self) -> Result<Segment, Trouble> {
        let made = make(&self.folder, self.next_segment, self.next)?;
        self.next_segment += 1;
        Ok(made)
    }
}

impl Ended {
    /// Removes the segments, oldest first, so that those that a crash leaves have no gap.
    pub(super) fn remove(&self, folder: &Path) -> io::Result<()> {
        for (place, segment) in self.segments.iter().enumerate() {
            fs::remove_file(segment)?;
            if place == 0 {
                fault::point("journal.removed");
            }
        }
        sync_folder(folder)
    }
}

fn write(segment: &mut Segment, record: &[u8]) -> Result<(), Trouble> {
    segment.make_room(record.len() as u64).map_err(|error| refused("making room in the journal", &error))?;
    segment.write(record).map_err(|error| broken("writing the journal", &error))
}

/// Makes a segment that is there after a power cut, or is not there.
fn make(folder: &Path, number: u64, first: u64) -> Result<Segment, Trouble> {
    let (path, unfinished) = (named(folder, number), folder.join(format!("{NAME}{number}{UNFINISHED}")));
    let made = Segment::create(&unfinished, number, first).map_err(|error| {
        // What is left of it is removed at the next opening otherwise.
        let _ = fs::remove_file(&unfinished);
        refused("making a journal", &error)
    })?;
    fault::point("journal.made");
    let renamed = fs::rename(&unfinished, &path).and_then(|()| sync_folder(folder));
    renamed.map_err(|error| broken("making a journal", &error))?;
    Ok(made)
}

/// The numbers of the segments, in order; what was never finished is removed.
fn segments(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.strip_prefix(NAME)) else {
            continue;
        };
        if number.ends_with(UNFINISHED) {
            fs::remove_file(folder.join(&name))?;
        }
        numbers.extend(number.parse::<u64>().ok());
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn named(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{NAME}{number}"))
}

/// Nothing of the group is on the disk: where the disk is full, that is all.
fn refused(doing: &str, error: &io::Error) -> Trouble {
    match StorageError::file("index", doing, error) {
        full @ StorageError::Full { .. } => Trouble::Refused(full),
        other => Trouble::Broken(other),
    }
}

fn broken(doing: &str, error: &io::Error) -> Trouble {
    Trouble::Broken(StorageError::file("index", doing, error))
}
