//! One file of the journal, and what its bytes mean.
//!
//! | in a segment | bytes |
//! | --- | --- |
//! | first sector | [`MAGIC`], number of the segment and of its first record (8 each), CRC-32 of these; zeros |
//! | each record, from the beginning of a sector on | length of its body (4), number (8), CRC-32 of the body (4), CRC-32 of these three (4), body, [`END`]; zeros up to the next sector |
//! | what is not written yet | zeros |
//!
//! A body is rows: length of the key, key, 0 for a removal or else the length of the value and one, value. Lengths in a body have seven
//! bits in a byte, the lowest first, and all but the last byte of one have the highest bit set. Other numbers have the lowest byte first.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::StorageError;
use crate::index::sled::fresh::Pending;
use crate::index::sled::syncs::Trouble;

/// A disk writes so much entirely or not at all.
pub(super) const SECTOR: usize = 512;
/// What a segment begins with.
pub(super) const MAGIC: &[u8; 16] = b"mediakeep log 1\n";
/// What stands before a record's body.
pub(super) const HEAD: usize = 20;
/// Behind a body: no zero, so that it tells a record that was written to its end.
pub(super) const END: u8 = 0xA5;

/// A new segment has so much room; each time that it needs more, it takes as much as it has, up to [`MOST_ROOM`].
const LEAST_ROOM: u64 = 64 << 10;
/// Filling more at a time would keep a group waiting.
const MOST_ROOM: u64 = 1 << 20;

/// The segment that is written.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    file: File,
    /// Where the next record goes.
    end: u64,
    /// From there up to here the file has zeros.
    room: u64,
}

impl Segment {
    /// Makes the file, durable but for its name.
    pub(super) fn create(path: &Path, number: u64, first: u64) -> io::Result<Self> {
        let file = File::options().write(true).create(true).truncate(true).open(path)?;
        let mut segment = Self { number, file, end: SECTOR as u64, room: 0 };
        segment.fill(LEAST_ROOM)?;
        segment.file.write_all_at(&beginning(number, first), 0)?;
        segment.file.sync_all()?;
        Ok(segment)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    /// Fills with zeros what a record of this length will be written over. If that fails the segment is as it was.
    pub(super) fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        let needed = (self.end + bytes).saturating_sub(self.room);
        if needed == 0 { Ok(()) } else { self.fill(needed.max(self.room.min(MOST_ROOM))) }
    }

    fn fill(&mut self, bytes: u64) -> io::Result<()> {
        static ZEROS: [u8; LEAST_ROOM as usize] = [0; LEAST_ROOM as usize];
        let until = self.room + bytes;
        while self.room < until {
            let piece = (until - self.room).min(LEAST_ROOM);
            self.file.write_all_at(&ZEROS[..piece as usize], self.room)?;
            self.room += piece;
        }
        Ok(())
    }

    /// Writes a record, and returns once the disk keeps it.
    pub(super) fn write(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write_all_at(record, self.end)?;
        self.file.sync_data()?;
        self.end += record.len() as u64;
        Ok(())
    }
}

fn beginning(number: u64, first: u64) -> Vec<u8> {
    let mut sector = MAGIC.to_vec();
    sector.extend(number.to_le_bytes());
    sector.extend(first.to_le_bytes());
    sector.extend(crc32fast::hash(&sector).to_le_bytes());
    sector.resize(SECTOR, 0);
    sector
}

/// Makes a record of the rows.
pub(super) fn encode(record: &mut Vec<u8>, number: u64, rows: &Pending) -> Result<(), Trouble> {
    record.clear();
    record.resize(HEAD, 0);
    for (key, written) in rows {
        length(record, key.len());
        record.extend_from_slice(key);
        match written.value() {
            None => length(record, 0),
            Some(value) => {
                length(record, value.len() + 1);
                record.extend_from_slice(value);
            }
        }
    }
    let body = &record[HEAD..];
    let Ok(bytes) = u32::try_from(body.len()) else {
        let reason = "a group of transitions is larger than 4 GiB".to_owned();
        return Err(Trouble::Refused(StorageError::Unavailable { store: "index", reason }));
    };
    let check = crc32fast::hash(body);
    record[..4].copy_from_slice(&bytes.to_le_bytes());
    record[4..12].copy_from_slice(&number.to_le_bytes());
    record[12..16].copy_from_slice(&check.to_le_bytes());
    let head = crc32fast::hash(&record[..16]);
    record[16..HEAD].copy_from_slice(&head.to_le_bytes());
    record.push(END);
    record.resize(record.len().next_multiple_of(SECTOR), 0);
    Ok(())
}

fn length(record: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        record.push(length as u8 | 0x80);
        length >>= 7;
    }
    record.push(length as u8);
}
