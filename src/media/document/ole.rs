//! Compound files of OLE 2 (MS-CFB): which program's, by the names in the directory.

use crate::media::{
    Found,
    reader::{Broken, Bytes, Fields, Walk},
};

const SIGNATURE: &[u8] = &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1];

/// Directory sectors that are read; a document names its main stream in the first few.
const MOST_SECTORS: u32 = 512;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !head.starts_with(SIGNATURE) {
        return None;
    }
    let mut name = None;
    let walk = directory(bytes, &mut name);
    let mut found = Found::of(name.unwrap_or("application/x-ole-storage"));
    found.facts.settle(walk);
    Some(found)
}

fn directory(bytes: &mut Bytes<'_>, name: &mut Option<&'static str>) -> Walk {
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
        let entries = bytes.take(place(sector), sector_size as usize)?;
        for entry in entries.chunks_exact(128) {
            if let Some(known) = known(entry) {
                *name = Some(known);
                return Ok(());
            }
        }
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

/// The type that a directory entry's name gives away.
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
    fn a_directory_that_bites_its_tail_ends() {
        let mut file = compound("Contents");
        file[512 + 4..512 + 8].copy_from_slice(&1u32.to_le_bytes());
        assert!(!look(&file).facts.well_formed);
    }
}
