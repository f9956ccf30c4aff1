//! Tracker modules: scores with their own instruments (ProTracker, Scream Tracker 3, Impulse Tracker, FastTracker 2).
//!
//! Promised: a length by walking the rows as a player does, with speed, tempo, jumps, breaks, loops and delays, until a row comes again.
//! Deliberately absent: a note of the music, and slides of the tempo.

mod patterns;

use std::collections::HashSet;

use crate::media::{
    Found, Provenance,
    reader::{Broken, Bytes, Fields, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let (name, read): (&str, Read) = if head.starts_with(b"IMPM") && head.len() >= 192 {
        ("audio/x-it", patterns::impulse)
    } else if head.starts_with(b"Extended Module: ") {
        ("audio/x-xm", patterns::fast)
    } else if head.has(44, b"SCRM") && head.get(28) == Some(&0x1A) {
        ("audio/x-s3m", patterns::scream)
    } else {
        return None;
    };
    Some(inspect(bytes, name, read))
}

/// A module's mark stands behind 31 instrument headers.
pub(super) fn probe_faint(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let mark: [u8; 4] = head.part(1080)?;
    patterns::channels(&mark)?;
    Some(inspect(bytes, "audio/x-mod", patterns::pro))
}

type Read = fn(&mut Bytes<'_>) -> Walk<Song>;

fn inspect(bytes: &mut Bytes<'_>, name: &str, read: Read) -> Found {
    let mut found = Found::plain(name);
    // A score that does not play is a module all the same, and nothing is said about its length.
    if let Ok(song) = read(bytes) {
        if song.stereo {
            found.facts.sound(2, 0);
        }
        if let Ok(seconds) = song.play(bytes)
            && seconds > 0.0
        {
            found.facts.lasts(seconds, Provenance::Scanned);
        }
    }
    found
}

/// What decides how long a song is.
#[derive(Debug, Default)]
struct Song {
    /// The header says that it is mixed for two sides.
    stereo: bool,
    /// Ticks per row.
    speed: u32,
    /// Two and a half seconds are this many ticks.
    tempo: u32,
    /// Patterns in the order of their playing.
    orders: Vec<u8>,
    patterns: Vec<Vec<Row>>,
}

/// What a row of a pattern changes.
#[derive(Debug, Default, Clone, Copy)]
struct Row {
    speed: Option<u32>,
    tempo: Option<u32>,
    /// Go on at this place of the order.
    jump: Option<usize>,
    /// Go on at this row of the next pattern.
    leave: Option<usize>,
    /// Zero marks a loop's start, another number how often to go back there.
    again: Option<u32>,
    /// Play the row so many times more.
    delay: u32,
}

/// Order entries that are no pattern: a mark to step over, and the end.
const SKIP: u8 = 254;
const END: u8 = 255;

impl Song {
    fn play(&self, bytes: &mut Bytes<'_>) -> Walk<f64> {
        let (mut speed, mut tempo) = (self.speed.max(1), self.tempo.max(32));
        let (mut seconds, mut order, mut row) = (0.0, 0usize, 0usize);
        let mut seen = HashSet::new();
        let (mut loop_start, mut loops_left) = (0usize, None::<u32>);
        while let Some(&number) = self.orders.get(order).filter(|&&number| number != END) {
            let rows = self.patterns.get(usize::from(number)).map_or(&[] as &[Row], Vec::as_slice);
            let Some(now) = rows.get(row).filter(|_| number != SKIP) else {
                (order, row, loop_start) = (order + 1, 0, 0);
                bytes.step()?;
                continue;
            };
            bytes.step()?;
            // A row that comes again, but for a loop's sake, is where the song begins anew.
            if loops_left.is_none() && !seen.insert((order, row)) {
                break;
            }
            if seen.len() > MOST_ROWS {
                return Err(Broken::Bad);
            }
            (speed, tempo) = (now.speed.unwrap_or(speed), now.tempo.unwrap_or(tempo));
            seconds += f64::from(speed) * f64::from(now.delay + 1) * 2.5 / f64::from(tempo);
            match now.again {
                Some(0) => loop_start = row,
                Some(times) => {
                    let left = loops_left.unwrap_or(times);
                    loops_left = (left > 0).then(|| left - 1);
                    if left > 0 {
                        row = loop_start;
                        continue;
                    }
                    loop_start = row + 1;
                }
                None => {}
            }
            if now.jump.is_some() || now.leave.is_some() {
                (order, row) = (now.jump.unwrap_or(order + 1), now.leave.unwrap_or(0));
                (loop_start, loops_left) = (0, None);
            } else {
                row += 1;
            }
        }
        Ok(seconds)
    }
}

/// 256 patterns of 256 rows.
const MOST_ROWS: usize = 65_536;

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    /// A ProTracker module of one pattern, whose first channel has these effects in its first rows.
    fn module(orders: &[u8], effects: &[(u8, u8)]) -> Vec<u8> {
        let mut file = vec![0; 1084 + 1024];
        file[950] = orders.len() as u8;
        file[952..952 + orders.len()].copy_from_slice(orders);
        file[1080..1084].copy_from_slice(b"M.K.");
        for (row, (effect, value)) in effects.iter().enumerate() {
            file[1084 + row * 16 + 2] = *effect;
            file[1084 + row * 16 + 3] = *value;
        }
        file
    }

    fn seconds(orders: &[u8], effects: &[(u8, u8)]) -> f64 {
        let found = look(&module(orders, effects));
        assert_eq!(found.mime_type, "audio/x-mod");
        found.facts.duration_seconds.expect("a length")
    }

    #[test]
    fn marks_stand_where_they_should() {
        assert_eq!(look(&module(&[], &[])).facts.duration_seconds, None);
        let mut screamer = vec![0; 96];
        screamer[28] = 0x1A;
        screamer[44..48].copy_from_slice(b"SCRM");
        assert_eq!(look(&screamer).mime_type, "audio/x-s3m");
    }

    #[test]
    fn rows_are_played_by_their_speed_and_tempo() {
        // 64 rows of six ticks of 20 ms.
        assert!((seconds(&[0], &[]) - 7.68).abs() < 1e-6);
        assert!((seconds(&[0, 0], &[]) - 15.36).abs() < 1e-6);
        assert!((seconds(&[0], &[(15, 3)]) - 3.84).abs() < 1e-6);
        assert!((seconds(&[0], &[(15, 250)]) - 3.84).abs() < 1e-6);
    }

    #[test]
    fn jumps_breaks_loops_and_delays_are_followed() {
        let row = 0.12;
        assert!((seconds(&[0, 0], &[(13, 0)]) - 2.0 * row).abs() < 1e-6, "break");
        assert!((seconds(&[0], &[(11, 0)]) - row).abs() < 1e-6, "a jump to itself ends");
        assert!((seconds(&[0], &[(14, 0x60), (14, 0x62)]) - (64.0 + 4.0) * row).abs() < 1e-6, "twice more");
        assert!((seconds(&[0], &[(14, 0xE3)]) - 67.0 * row).abs() < 1e-6, "delay");
    }

    #[test]
    fn a_loop_in_a_loop_ends() {
        let effects: Vec<(u8, u8)> = (0..64).map(|_| (14, 0x6F)).collect();
        look(&module(&[0; 128], &effects));
    }
}
