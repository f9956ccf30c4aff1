//! Where each tracker keeps its order, its patterns, and the effects that tell how long a row takes.

use super::{Row, Song};
use crate::media::reader::{Broken, Bytes, Walk};

/// How many channels a ProTracker module of this mark has; `None` for what is no mark.
pub(super) fn channels(mark: &[u8; 4]) -> Option<usize> {
    Some(match mark {
        b"M.K." | b"M!K!" | b"M&K!" | b"FLT4" | b"4CHN" => 4,
        b"6CHN" => 6,
        b"8CHN" | b"FLT8" | b"OCTA" | b"CD81" => 8,
        _ => return None,
    })
}

/// ProTracker: cells of four bytes, 64 rows to a pattern.
pub(super) fn pro(bytes: &mut Bytes<'_>) -> Walk<Song> {
    let channels = channels(&bytes.array(1080)?).ok_or(Broken::Bad)?;
    let length = usize::from(bytes.u8(950)?).min(128);
    let orders = bytes.take(952, length)?;
    let mut patterns = Vec::new();
    for number in 0..=u64::from(orders.iter().copied().max().unwrap_or(0)) {
        let cells = bytes.take(1084 + number * 64 * channels as u64 * 4, 64 * channels * 4)?;
        let mut rows = vec![Row::default(); 64];
        for (row, cells) in rows.iter_mut().zip(cells.chunks_exact(channels * 4)) {
            for cell in cells.chunks_exact(4) {
                row.apply(cell[2] & 15, cell[3]);
            }
        }
        patterns.push(rows);
    }
    Ok(Song { speed: 6, tempo: 125, orders, patterns, ..Song::default() })
}

/// FastTracker 2: patterns with a header each, cells that say which of their five bytes they have.
pub(super) fn fast(bytes: &mut Bytes<'_>) -> Walk<Song> {
    let size = u64::from(bytes.le32(60)?);
    let (length, channels, count) = (bytes.le16(64)?, usize::from(bytes.le16(68)?), bytes.le16(70)?);
    let song = Song {
        speed: bytes.le16(76)?.into(),
        tempo: bytes.le16(78)?.into(),
        orders: bytes.take(80, usize::from(length).min(256))?,
        ..Song::default()
    };
    let mut at = 60 + size;
    let mut patterns = Vec::new();
    for _ in 0..count.min(256) {
        bytes.step()?;
        let (header, rows, packed) = (bytes.le32(at)?, bytes.le16(at + 5)?, bytes.le16(at + 7)?);
        let mut rows = vec![Row::default(); usize::from(rows).min(1024)];
        let data = bytes.take(at + u64::from(header), packed.into())?;
        let mut cells = data.iter().copied();
        'rows: for row in &mut rows {
            for _ in 0..channels {
                let Some(first) = cells.next() else { break 'rows };
                let mask = if first & 0x80 == 0 { 0x1E } else { first };
                let mut field = |bit: u8| if mask & bit == 0 { Some(0) } else { cells.next() };
                let (Some(_), Some(_), Some(_)) =
                    (if first & 0x80 == 0 { Some(0) } else { field(1) }, field(2), field(4))
                else {
                    break 'rows;
                };
                let (Some(effect), Some(value)) = (field(8), field(16)) else { break 'rows };
                row.apply(effect, value);
            }
        }
        patterns.push(rows);
        at = at.checked_add(u64::from(header) + u64::from(packed)).ok_or(Broken::Bad)?;
    }
    Ok(Song { patterns, ..song })
}

/// Scream Tracker 3: patterns at paragraphs, and cells with a bit for each part of them.
pub(super) fn scream(bytes: &mut Bytes<'_>) -> Walk<Song> {
    let (length, instruments, count) = (bytes.le16(32)?, u64::from(bytes.le16(34)?), u64::from(bytes.le16(36)?));
    let song = Song {
        stereo: bytes.u8(51)? & 0x80 != 0,
        speed: bytes.u8(49)?.into(),
        tempo: bytes.u8(50)?.into(),
        orders: bytes.take(96, usize::from(length).min(256))?,
        ..Song::default()
    };
    let pointers = 96 + u64::from(length) + instruments * 2;
    let mut patterns = Vec::new();
    for number in 0..count.min(256) {
        bytes.step()?;
        let at = u64::from(bytes.le16(pointers + number * 2)?) * 16;
        let mut rows = vec![Row::default(); 64];
        if at > 0 {
            let length = usize::from(bytes.le16(at)?);
            // Some writers count the length itself, others do not: what is there is read.
            let data = bytes.peek(at + 2, length).to_vec();
            let mut at = 0;
            let mut row = 0;
            while let (Some(&what), true) = (data.get(at), row < rows.len()) {
                at += 1;
                if what == 0 {
                    row += 1;
                    continue;
                }
                at += if what & 32 == 0 { 0 } else { 2 } + if what & 64 == 0 { 0 } else { 1 };
                if what & 128 != 0 {
                    if let (Some(&command), Some(&value)) = (data.get(at), data.get(at + 1)) {
                        rows[row].command(command, value, decimal(value));
                    }
                    at += 2;
                }
            }
        }
        patterns.push(rows);
    }
    Ok(Song { patterns, ..song })
}

/// Impulse Tracker: like Scream Tracker's cells, but a channel may keep its last bits.
pub(super) fn impulse(bytes: &mut Bytes<'_>) -> Walk<Song> {
    let (length, instruments) = (bytes.le16(32)?, u64::from(bytes.le16(34)?));
    let (samples, count) = (u64::from(bytes.le16(36)?), u64::from(bytes.le16(38)?));
    let song = Song {
        stereo: bytes.u8(44)? & 1 != 0,
        speed: bytes.u8(50)?.into(),
        tempo: bytes.u8(51)?.into(),
        orders: bytes.take(192, usize::from(length).min(256))?,
        ..Song::default()
    };
    let pointers = 192 + u64::from(length) + (instruments + samples) * 4;
    let mut patterns = Vec::new();
    for number in 0..count.min(256) {
        bytes.step()?;
        let at = u64::from(bytes.le32(pointers + number * 4)?);
        if at == 0 {
            patterns.push(vec![Row::default(); 64]);
            continue;
        }
        let (length, rows) = (bytes.le16(at)?, bytes.le16(at + 2)?);
        let mut rows = vec![Row::default(); usize::from(rows).min(256)];
        unpack(bytes.peek(at + 8, length.into()), &mut rows);
        patterns.push(rows);
    }
    Ok(Song { patterns, ..song })
}

fn unpack(data: &[u8], rows: &mut [Row]) {
    let mut masks = [0u8; 64];
    let mut last = [(0u8, 0u8); 64];
    let (mut at, mut row) = (0, 0);
    while let (Some(&channel), true) = (data.get(at), row < rows.len()) {
        at += 1;
        if channel == 0 {
            row += 1;
            continue;
        }
        let own = usize::from(channel.wrapping_sub(1) & 63);
        if channel & 128 != 0 {
            masks[own] = data.get(at).copied().unwrap_or(0);
            at += 1;
        }
        let mask = masks[own];
        at += (mask & 7).count_ones() as usize;
        if mask & 8 != 0 {
            last[own] = (data.get(at).copied().unwrap_or(0), data.get(at + 1).copied().unwrap_or(0));
            at += 2;
        }
        if mask & 0x88 != 0 {
            let (command, value) = last[own];
            rows[row].command(command, value, value.into());
        }
    }
}

impl Row {
    /// An effect of ProTracker and FastTracker.
    fn apply(&mut self, effect: u8, value: u8) {
        match effect {
            0x0B => self.jump = Some(value.into()),
            0x0D => self.leave = Some(decimal(value)),
            0x0F if value >= 32 => self.tempo = Some(value.into()),
            0x0F if value > 0 => self.speed = Some(value.into()),
            0x0E => self.special(value >> 4, value, 0x6, 0xE),
            _ => {}
        }
    }

    /// A command of Scream Tracker and Impulse Tracker, by its letter's number.
    fn command(&mut self, letter: u8, value: u8, row: usize) {
        match letter {
            1 if value > 0 => self.speed = Some(value.into()),
            2 => self.jump = Some(value.into()),
            3 => self.leave = Some(row),
            19 => self.special(value >> 4, value, 0xB, 0xE),
            20 if value >= 32 => self.tempo = Some(value.into()),
            _ => {}
        }
    }

    fn special(&mut self, kind: u8, value: u8, again: u8, delay: u8) {
        if kind == again {
            self.again = Some((value & 15).into());
        } else if kind == delay {
            self.delay = (value & 15).into();
        }
    }
}

/// Two digits in a byte's halves.
fn decimal(value: u8) -> usize {
    usize::from(value >> 4) * 10 + usize::from(value & 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_keeps_its_mask_and_its_command() {
        let mut rows = [Row::default(); 3];
        // Channel 1: a command of its own; then the same once more by the last mask; then by the mask's "as before".
        unpack(&[0x81, 0x08, 1, 3, 0, 0x01, 1, 4, 0, 0x81, 0x80, 0], &mut rows);
        assert_eq!(rows.map(|row| row.speed), [Some(3), Some(4), Some(4)]);
    }

    #[test]
    fn rows_are_counted_in_tens() {
        assert_eq!(decimal(0x32), 32);
    }
}
