//! Compound files of OLE 2 (MS-CFB): which program's, by the names in the directory.

use crate::media::{
    Found,
    reader::{Broken, Bytes, Fields, Walk},
};

const SIGNATURE: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];

/// Directory sectors that are read; a document with a thousand embedded objects has fewer.
const MOST_SECTORS: u32 = 512;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !head.starts_with(SIGNATURE) {
        return None;
    }
    let mut entries = Vec::new();
    let walk = directory(bytes, &mut entries);
    let mut found = Found::of(program(&entries).unwrap_or("application/x-ole-storage"));
    found.facts.settle(walk);
    Some(found)
}

/// One stream or storage: what it tells of its program, and its neighbours in the tree of the storage that it lies in.
#[derive(Debug)]
struct Entry {
    program: Option<&'static str>,
    before: u32,
    behind: u32,
    inside: u32,
}

/// What lies directly in the root says whose document it is; what is embedded has a storage of its own. Where the tree is broken, the
/// first name that tells anything has to do.
fn program(entries: &[Entry]) -> Option<&'static str> {
    let mut open = vec![entries.first()?.inside];
    for _ in 0..entries.len() {
        let Some(number) = open.pop() else { break };
        let Some(entry) = usize::try_from(number).ok().and_then(|number| entries.get(number)) else { continue };
        if entry.program.is_some() {
            return entry.program;
        }
        open.extend([entry.before, entry.behind]);
    }
    entries.iter().find_map(|entry| entry.program)
}

fn directory(bytes: &mut Bytes<'_>, entries: &mut Vec<Entry>) -> Walk {
    let shift = bytes.le16(30)?;
    if !matches!(shift, 9 | 12) {
        return Err(Broken::Bad);
    }
    let sector_size = 1u64 << shift;
    let place = |sector: u32| (u64::from(sector) + 1) << shift;
    let mut sector = bytes.le32(48)?;
    for _ in 0..MOST_SECTORS {
        bytes.step()?;
        if sector >= 0xFFFF_FFFA {
            return Ok(());
        }
        let sectors = bytes.take(place(sector), sector_size as usize)?;
        entries.extend(sectors.chunks_exact(128).map(|entry| Entry {
            program: known(entry),
            before: entry.le32(68).unwrap_or(u32::MAX),
            behind: entry.le32(72).unwrap_or(u32::MAX),
            inside: entry.le32(76).unwrap_or(u32::MAX),
        }));
        // The allocation table says which sector is next; its own sectors are listed in the header.
        let per_sector = sector_size as u32 / 4;
        let table = u64::from(sector / per_sector);
        if table >= 109 {
            return Ok(());
        }
        let table = bytes.le32(76 + table * 4)?;
        sector = bytes.le32(place(table) + u64::from(sector % per_sector) * 4)?;
    }
    Err(Broken::Bad)
}

/// The program that a directory entry's name gives away.
fn known(entry: &[u8]) -> Option<&'static str> {
    let length = usize::from(entry.le16(64)?).saturating_sub(2).min(62);
    let name: String =
        char::decode_utf16(entry[..length].chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])))
            .map(|unit| unit.unwrap_or('\u{FFFD}'))
            .collect();
    Some(match name.as_str() {
        "WordDocument" => "application/msword",
        "Workbook" | "Book" | "WORKBOOK" | "BOOK" => "application/vnd.ms-excel",
        "PowerPoint Document" => "application/vnd.ms-powerpoint",
        "VisioDocument" => "application/vnd.visio",
        _ if name.starts_with("__properties_version1.0") || name.starts_with("__nameid_version1.0") => {
            "application/vnd.ms-outlook"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::look;

    fn compound(stream: &str) -> Vec<u8> {
        let mut file = vec![0; 512 * 3];
        file[..8].copy_from_slice(SIGNATURE);
        file[30] = 9;
        file[48] = 1;
        // The table is sector 0 and the directory sector 1, the last of its chain.
        file[512 + 4..512 + 8].copy_from_slice(&0xFFFF_FFFEu32.to_le_bytes());
        let name: Vec<u8> = stream.encode_utf16().flat_map(u16::to_le_bytes).collect();
        file[1024..1024 + name.len()].copy_from_slice(&name);
        file[1024 + 64] = name.len() as u8 + 2;
        file
    }

    #[test]
    fn streams_name_their_program() {
        assert_eq!(look(&compound("WordDocument")).mime_type, "application/msword");
        assert_eq!(look(&compound("Workbook")).mime_type, "application/vnd.ms-excel");
        assert_eq!(look(&compound("Contents")).mime_type, "application/x-ole-storage");
    }

    #[test]
    fn what_is_embedded_does_not_name_the_document() {
        let mut file = compound("Root Entry");
        let mut put = |number: usize, stream: &str, [before, behind, inside]: [u32; 3]| {
            let at = 1024 + number * 128;
            let name: Vec<u8> = stream.encode_utf16().flat_map(u16::to_le_bytes).collect();
            file[at..at + name.len()].copy_from_slice(&name);
            file[at + 64] = name.len() as u8 + 2;
            for (n, link) in [before, behind, inside].into_iter().enumerate() {
                file[at + 68 + n * 4..at + 72 + n * 4].copy_from_slice(&link.to_le_bytes());
            }
        };
        put(0, "Root Entry", [u32::MAX, u32::MAX, 2]);
        put(1, "Workbook", [u32::MAX; 3]);
        put(2, "ObjectPool", [u32::MAX, 3, 1]);
        put(3, "WordDocument", [2, 0, u32::MAX]);
        assert_eq!(look(&file).mime_type, "application/msword");
    }

    #[test]
    fn a_directory_that_bites_its_tail_ends() {
        let mut file = compound("Contents");
        file[512 + 4..512 + 8].copy_from_slice(&1u32.to_le_bytes());
        assert!(!look(&file).facts.well_formed);
    }
}
