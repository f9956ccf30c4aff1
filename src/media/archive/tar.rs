//! Tape archives: a header whose checksum holds.

use crate::media::{
    Found,
    reader::{Bytes, Walk},
};

const BLOCK: usize = 512;

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if !is_header(head.get(..BLOCK)?) {
        return None;
    }
    let mut found = Found::of("application/x-tar");
    let walk = members(bytes);
    found.facts.settle(walk);
    Some(found)
}

/// The checksum counts its own field as blanks (POSIX.1-1988 section 10.1.1).
fn is_header(block: &[u8]) -> bool {
    let sum: u32 =
        block.iter().enumerate().map(|(at, &byte)| if (148..156).contains(&at) { 32 } else { u32::from(byte) }).sum();
    block[0] != 0 && octal(&block[148..156]) == Some(u64::from(sum))
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(text, 8).ok()
}

/// Steps from member to member until the empty block, or the end.
fn members(bytes: &mut Bytes<'_>) -> Walk {
    let mut at = 0;
    while at < bytes.size() {
        bytes.step()?;
        let block = bytes.take(at, BLOCK)?;
        if block.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        if !is_header(&block) {
            return Err(crate::media::reader::Broken::Bad);
        }
        // Sizes beyond octal are binary, with the first bit set.
        let size = if block[124] & 0x80 == 0 {
            octal(&block[124..136]).unwrap_or(0)
        } else {
            block[128..136].iter().fold(0, |size, &byte| size << 8 | u64::from(byte))
        };
        at = size.div_ceil(BLOCK as u64).saturating_mul(BLOCK as u64).saturating_add(at + BLOCK as u64);
        bytes.reaches(at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::tests::look;

    pub(super) fn member(name: &str, data: &[u8]) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..135].copy_from_slice(format!("{:011o}", data.len()).as_bytes());
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block.extend_from_slice(data);
        block.resize(block.len().div_ceil(BLOCK) * BLOCK, 0);
        block
    }

    #[test]
    fn a_checksum_makes_it_a_tar() {
        let file = [member("a.txt", b"hello"), member("b.txt", b""), vec![0; 1024]].concat();
        let found = look(&file);
        assert_eq!((found.mime_type.as_str(), found.facts.well_formed), ("application/x-tar", true));
        assert!(!look(&file[..600]).facts.well_formed);
    }
}
