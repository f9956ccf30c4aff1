//! Random access to a source, with a bound on what one inspection may cost.
//!
//! Promised: no more than `READ_BUDGET` bytes are read and `STEP_BUDGET` steps counted, whatever the bytes claim;
//! offsets beyond the end are answers, not errors. Deliberately absent: reading everything "just to be sure".

use std::io::SeekFrom;

use super::Source;

/// Bytes read per inspection: PNG checksums want up to 64 MiB, an MP3 without a header a look at every frame.
const READ_BUDGET: u64 = 192 << 20;

/// Chunks, boxes, frames or entries per inspection: an hour of MP3 has 138,000 frames.
const STEP_BUDGET: u32 = 1_000_000;

/// And of a small file no more than this and one for so many bytes: what has a step for less is made to waste time.
const STEPS_AT_LEAST: u64 = 65_536;
const BYTES_PER_STEP: u64 = 16;

/// Going back to what was read before takes as many steps as reading it again takes time: else pointers to and fro would read a small
/// file thousands of times.
const STEPS_BACK: u32 = 64;

/// The most that is collected at once: the longest tail in which a zip's end record may hide, with room.
pub(super) const MOST_AT_ONCE: usize = 1 << 20;

/// How much a far jump reads ahead, and how much reading on does.
const NEAR: usize = 4 << 10;
const AHEAD: usize = 64 << 10;

/// Why a walk through a structure stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The bytes end first.
    Short,
    /// The structure contradicts itself.
    Bad,
    /// The budget is used up; nothing is known against the bytes.
    Spent,
}

pub(super) type Walk<T = ()> = Result<T, Broken>;

/// The bytes under inspection.
pub(super) struct Bytes<'a> {
    source: &'a mut dyn Source,
    size: u64,
    window: Vec<u8>,
    window_at: u64,
    read_left: u64,
    steps_left: u32,
}

impl std::fmt::Debug for Bytes<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Bytes").field("size", &self.size).field("steps_left", &self.steps_left).finish_non_exhaustive()
    }
}

impl<'a> Bytes<'a> {
    pub(super) fn new(source: &'a mut dyn Source, size: u64) -> Self {
        let steps = (size / BYTES_PER_STEP).saturating_add(STEPS_AT_LEAST).min(STEP_BUDGET.into());
        let steps_left = u32::try_from(steps).unwrap_or(STEP_BUDGET);
        Self { source, size, window: Vec::new(), window_at: 0, read_left: READ_BUDGET, steps_left }
    }

    /// How many bytes there are.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Up to `len` bytes at `at`: fewer at the end, none beyond it or when the budget is spent.
    pub(super) fn peek(&mut self, at: u64, len: usize) -> &[u8] {
        let here = self.size.saturating_sub(at);
        let len = usize::try_from(here).unwrap_or(usize::MAX).min(len).min(MOST_AT_ONCE);
        if len == 0 {
            return &[];
        }
        let held = at >= self.window_at && at + len as u64 <= self.window_at + self.window.len() as u64;
        if !held {
            self.fill(at, len, here);
        }
        let from = usize::try_from(at - self.window_at).unwrap_or(usize::MAX).min(self.window.len());
        let to = (from + len).min(self.window.len());
        &self.window[from..to]
    }

    fn fill(&mut self, at: u64, len: usize, here: u64) {
        // A reader that goes on where the window ends is walking, and reads ahead.
        let end = self.window_at + self.window.len() as u64;
        let walking = at >= self.window_at && at <= end + NEAR as u64;
        let want = len.max(if walking { AHEAD } else { NEAR }) as u64;
        let want = want.min(here).min(self.read_left);
        if at < self.window_at {
            self.steps_left = self.steps_left.saturating_sub(STEPS_BACK);
        }
        self.window.clear();
        self.window_at = at;
        self.read_left -= want;
        self.window.resize(usize::try_from(want).unwrap_or(0), 0);
        let mut got = 0;
        if self.source.seek(SeekFrom::Start(at)).is_ok() {
            while got < self.window.len() {
                match self.source.read(&mut self.window[got..]) {
                    Ok(0) => {
                        // The source holds less than its size says.
                        self.size = self.size.min(at + got as u64);
                        break;
                    }
                    Ok(more) => got += more,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
        self.window.truncate(got);
    }

    /// Exactly `N` bytes.
    pub(super) fn array<const N: usize>(&mut self, at: u64) -> Walk<[u8; N]> {
        match self.peek(at, N).try_into() {
            Ok(bytes) => Ok(bytes),
            Err(_) => Err(self.missing(at, N as u64)),
        }
    }

    /// Exactly `len` bytes, where `len` was checked against the size of what it is part of.
    pub(super) fn take(&mut self, at: u64, len: usize) -> Walk<Vec<u8>> {
        let bytes = self.peek(at, len);
        if bytes.len() == len { Ok(bytes.to_vec()) } else { Err(self.missing(at, len as u64)) }
    }

    /// Says why bytes are not there.
    fn missing(&self, at: u64, len: u64) -> Broken {
        if at.checked_add(len).is_none_or(|end| end > self.size) { Broken::Short } else { Broken::Spent }
    }

    /// The last bytes, up to `len`, and where they begin.
    pub(super) fn tail(&mut self, len: usize) -> (u64, Vec<u8>) {
        let at = self.size.saturating_sub(len.min(MOST_AT_ONCE) as u64);
        (at, self.peek(at, len).to_vec())
    }

    /// Counts one turn of a loop over the bytes.
    pub(super) fn step(&mut self) -> Walk {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(Broken::Spent)?;
        Ok(())
    }

    /// Fails when a structure claims to end beyond the bytes.
    pub(super) fn reaches(&self, end: u64) -> Walk {
        if end > self.size { Err(Broken::Short) } else { Ok(()) }
    }

    /// How much of the reading budget is left.
    pub(super) fn budget_left(&self) -> u64 {
        self.read_left
    }

    pub(super) fn u8(&mut self, at: u64) -> Walk<u8> {
        self.array::<1>(at).map(|bytes| bytes[0])
    }

    pub(super) fn be16(&mut self, at: u64) -> Walk<u16> {
        self.array(at).map(u16::from_be_bytes)
    }

    pub(super) fn be32(&mut self, at: u64) -> Walk<u32> {
        self.array(at).map(u32::from_be_bytes)
    }

    pub(super) fn be64(&mut self, at: u64) -> Walk<u64> {
        self.array(at).map(u64::from_be_bytes)
    }

    pub(super) fn le16(&mut self, at: u64) -> Walk<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub(super) fn le32(&mut self, at: u64) -> Walk<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub(super) fn le64(&mut self, at: u64) -> Walk<u64> {
        self.array(at).map(u64::from_le_bytes)
    }
}

/// Numbers out of a slice, where there may be none.
pub(super) trait Fields {
    fn part<const N: usize>(&self, at: usize) -> Option<[u8; N]>;
    fn has(&self, at: usize, bytes: &[u8]) -> bool;

    fn be16(&self, at: usize) -> Option<u16> {
        self.part(at).map(u16::from_be_bytes)
    }
    fn be24(&self, at: usize) -> Option<u32> {
        self.part::<3>(at).map(|b| u32::from_be_bytes([0, b[0], b[1], b[2]]))
    }
    fn be32(&self, at: usize) -> Option<u32> {
        self.part(at).map(u32::from_be_bytes)
    }
    fn be64(&self, at: usize) -> Option<u64> {
        self.part(at).map(u64::from_be_bytes)
    }
    fn le16(&self, at: usize) -> Option<u16> {
        self.part(at).map(u16::from_le_bytes)
    }
    fn le32(&self, at: usize) -> Option<u32> {
        self.part(at).map(u32::from_le_bytes)
    }
    fn le64(&self, at: usize) -> Option<u64> {
        self.part(at).map(u64::from_le_bytes)
    }
}

impl Fields for [u8] {
    fn part<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn has(&self, at: usize, bytes: &[u8]) -> bool {
        self.get(at..).is_some_and(|rest| rest.starts_with(bytes))
    }
}

/// A value that ought to be there; its absence means that the structure is broken.
pub(super) trait OrBad<T> {
    fn or_bad(self) -> Walk<T>;
}

impl<T> OrBad<T> for Option<T> {
    fn or_bad(self) -> Walk<T> {
        self.ok_or(Broken::Bad)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn reading_past_the_end_is_an_answer() {
        let mut source = Cursor::new(b"abcdef");
        let mut bytes = Bytes::new(&mut source, 6);
        assert_eq!(bytes.peek(4, 10), b"ef");
        assert_eq!(bytes.peek(u64::MAX, 10), b"");
        assert_eq!(bytes.be32(3), Err(Broken::Short));
        assert_eq!(bytes.be16(0), Ok(0x6162));
    }

    #[test]
    fn a_budget_ends_every_loop() {
        for (size, budget) in
            [(16, STEPS_AT_LEAST + 1), (5 << 20, STEPS_AT_LEAST + (5 << 16)), (1 << 40, STEP_BUDGET.into())]
        {
            let mut source = Cursor::new(vec![0; 16]);
            let mut bytes = Bytes::new(&mut source, size);
            let steps = std::iter::repeat_with(|| bytes.step()).take_while(Result::is_ok).count();
            assert_eq!(steps as u64, budget, "{size}");
        }
    }

    #[test]
    fn going_to_and_fro_is_no_way_around_the_budget() {
        let mut source = Cursor::new(vec![0; 1 << 20]);
        let mut bytes = Bytes::new(&mut source, 1 << 20);
        let steps = std::iter::from_fn(|| {
            bytes.step().ok()?;
            bytes.be32(1 << 19).and_then(|_| bytes.be32(0)).ok()
        });
        assert!(steps.count() < (STEPS_AT_LEAST as usize + (1 << 16)) / STEPS_BACK as usize);
    }

    #[test]
    fn jumping_about_costs_little() {
        let mut source = Cursor::new(vec![0; 1 << 20]);
        let mut bytes = Bytes::new(&mut source, 1 << 20);
        for at in [1 << 19, 3, 1 << 18] {
            bytes.be32(at).expect("inside");
        }
        assert!(READ_BUDGET - bytes.budget_left() <= 3 * NEAR as u64 + AHEAD as u64);
    }
}
