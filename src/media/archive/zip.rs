//! Zips (APPNOTE 6.3): the central directory is what counts.
//!
//! Promised: names from the directory, in any order; local headers only where there is no directory. Deliberately
//! absent: trust in any of the sizes.

use memchr::memmem;

use super::package;
use crate::media::{
    Facts, Flag, Found, inflate,
    reader::{Broken, Bytes, Fields, OrBad, Walk},
};

/// A comment of 65,535 bytes may follow the 22 of the end record.
const TAIL: usize = 22 + 65_535;

/// Entries that are read; the parts that tell a package's type are few, but may come last.
const MOST_ENTRIES: u64 = 65_536;

/// One entry of the directory.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    method: u16,
    packed: u64,
    at: u64,
}

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !matches!(head.get(..4)?, b"PK\x03\x04" | b"PK\x05\x06" | b"PK\x07\x08" | b"PK00") {
        return None;
    }
    let mut facts = Facts::default();
    let mut entries = Vec::new();
    let walk = directory(bytes, &mut entries, &mut facts);
    if entries.is_empty() {
        // Cut or streamed: what the local headers say from the front on.
        let _ = locals(bytes, &mut entries);
    }
    let mut found = Found::of(package::name(bytes, &entries));
    found.facts = facts;
    found.facts.settle(walk);
    Some(found)
}

fn directory(bytes: &mut Bytes<'_>, entries: &mut Vec<Entry>, facts: &mut Facts) -> Walk {
    let (base, tail) = bytes.tail(TAIL);
    let at = memmem::rfind(&tail, b"PK\x05\x06").ok_or(Broken::Short)?;
    let end = base + at as u64;
    let record = &tail[at..];
    let comment = u64::from(record.le16(20).ok_or(Broken::Short)?);
    facts.ends_at(bytes, end + 22 + comment);
    let (mut count, mut size, mut start) = (
        u64::from(record.le16(10).or_bad()?),
        u64::from(record.le32(12).or_bad()?),
        u64::from(record.le32(16).or_bad()?),
    );
    let mut directory_end = end;
    if let Some(locator) = end.checked_sub(20)
        && bytes.peek(locator, 4) == b"PK\x06\x07"
    {
        let wide = bytes.le64(locator + 8)?;
        if bytes.peek(wide, 4) == b"PK\x06\x06" {
            (count, size, start) = (bytes.le64(wide + 32)?, bytes.le64(wide + 40)?, bytes.le64(wide + 48)?);
            directory_end = wide;
        }
    }
    // Where the directory stands tells what was put in front of the archive.
    let real = directory_end.checked_sub(size).or_bad()?;
    let front = real.checked_sub(start).or_bad()?;
    let mut at = real;
    for _ in 0..count.min(MOST_ENTRIES) {
        bytes.step()?;
        let header: [u8; 46] = bytes.array(at)?;
        if !header.starts_with(b"PK\x01\x02") {
            return Err(Broken::Bad);
        }
        let (name, extra, comment) = (lengths(&header, 28), lengths(&header, 30), lengths(&header, 32));
        entries.push(Entry {
            name: bytes.take(at + 46, name)?,
            method: header.le16(10).or_bad()?,
            packed: header.le32(20).or_bad()?.into(),
            at: u64::from(header.le32(42).or_bad()?).saturating_add(front),
        });
        at += 46 + (name + extra + comment) as u64;
        if at > directory_end {
            return Err(Broken::Bad);
        }
    }
    if entries.iter().any(|entry| entry.at != u64::from(u32::MAX) && entry.at > real) {
        facts.flag(Flag::SizeClaimWrong);
        return Err(Broken::Bad);
    }
    Ok(())
}

fn lengths(header: &[u8], at: usize) -> usize {
    header.le16(at).unwrap_or(0).into()
}

/// From local header to local header, until one does not say how long its data is.
fn locals(bytes: &mut Bytes<'_>, entries: &mut Vec<Entry>) -> Walk {
    let mut at = 0;
    while (entries.len() as u64) < MOST_ENTRIES {
        bytes.step()?;
        let header: [u8; 30] = bytes.array(at)?;
        if !header.starts_with(b"PK\x03\x04") {
            return Ok(());
        }
        let (name, extra) = (lengths(&header, 26), lengths(&header, 28));
        let packed = u64::from(header.le32(18).or_bad()?);
        let streamed = header.le16(6).or_bad()? & 8 != 0 && packed == 0;
        entries.push(Entry { name: bytes.take(at + 30, name)?, method: header.le16(8).or_bad()?, packed, at });
        if streamed {
            return Ok(());
        }
        at += 30 + (name + extra) as u64 + packed;
    }
    Ok(())
}

/// The beginning of an entry's content, up to `most` bytes of it.
pub(super) fn content(bytes: &mut Bytes<'_>, entry: &Entry, most: usize) -> Option<Vec<u8>> {
    let header: [u8; 30] = bytes.array(entry.at).ok()?;
    if !header.starts_with(b"PK\x03\x04") {
        return None;
    }
    let start = entry.at + 30 + (lengths(&header, 26) + lengths(&header, 28)) as u64;
    let packed = usize::try_from(entry.packed).ok()?.min(most);
    let data = bytes.peek(start, packed);
    match entry.method {
        0 => Some(data.to_vec()),
        8 => Some(inflate::prefix(data, most).0),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::media::tests::look;

    /// A zip of stored entries, in this order.
    pub(in crate::media::archive) fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut file, mut directory) = (Vec::new(), Vec::new());
        for (name, data) in entries {
            let sizes = [(data.len() as u32).to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
            let names = [(name.len() as u16).to_le_bytes(), [0; 2]].concat();
            let at = (file.len() as u32).to_le_bytes();
            file.extend_from_slice(
                &[b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0", sizes.as_slice(), &names, name.as_bytes(), data]
                    .concat(),
            );
            directory.extend_from_slice(
                &[
                    b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0",
                    sizes.as_slice(),
                    &names,
                    &[0; 10],
                    &at,
                    name.as_bytes(),
                ]
                .concat(),
            );
        }
        let count = (entries.len() as u16).to_le_bytes();
        let (size, start) = ((directory.len() as u32).to_le_bytes(), (file.len() as u32).to_le_bytes());
        [file, directory, [b"PK\x05\x06\0\0\0\0", count.as_slice(), &count, &size, &start, &[0; 2]].concat()].concat()
    }

    #[test]
    fn a_zip_of_files_is_a_zip() {
        let file = zip(&[("a.txt", b"hello"), ("word/notes.txt", b"")]);
        let found = look(&file);
        assert_eq!((found.mime_type.as_str(), found.facts.well_formed), ("application/zip", true));
        assert!(found.facts.flags.is_empty());
        assert!(!look(&file[..40]).facts.well_formed);
        assert!(look(&[file, b"more".to_vec()].concat()).facts.flags.contains(&Flag::TrailingBytes));
    }
}
