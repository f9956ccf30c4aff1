//! A piece of a text that has something to be looked at, and where each byte of it stands in the bundle.

use std::ops::Range;

/// Bytes, and their places.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    bytes: Vec<u8>,
    runs: Vec<Run>,
}

/// Bytes whose places follow one another, or one character that is written by more.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The first of its bytes.
    index: usize,
    at: u64,
    /// Where the character ends; `None`: each byte is written by itself.
    end: Option<u64>,
}

impl Word {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends what stands there: text as it is, or one character that is written otherwise.
    pub(super) fn push(&mut self, piece: &[u8], at: Range<u64>) {
        if piece.is_empty() {
            return;
        }
        let index = self.bytes.len();
        let is_plain = at.end - at.start == piece.len() as u64;
        let goes_on = self.runs.last().is_some_and(|run| run.end.is_none() && run.place(index) == at.start);
        if !(is_plain && goes_on) {
            self.runs.push(Run { index, at: at.start, end: (!is_plain).then_some(at.end) });
        }
        self.bytes.extend_from_slice(piece);
    }

    /// Where the bytes of that range stand.
    pub(super) fn places(&self, range: &Range<usize>) -> Range<u64> {
        let last = range.end.max(range.start + 1) - 1;
        let (first, last_run) = (self.run(range.start), self.run(last));
        first.place(range.start)..last_run.end.unwrap_or_else(|| last_run.place(last) + 1)
    }

    /// Forgets so many bytes at the beginning.
    pub(super) fn drop_front(&mut self, bytes: usize) {
        let keeps = self.runs.partition_point(|run| run.index <= bytes).saturating_sub(1);
        self.bytes.drain(..bytes);
        self.runs.drain(..keeps);
        for run in &mut self.runs {
            match run.index.checked_sub(bytes) {
                Some(index) => run.index = index,
                None => {
                    run.at = run.place(bytes);
                    run.index = 0;
                }
            }
        }
    }

    /// The word with its percent-encoding undone once; `None`: there is none.
    pub(super) fn decoded(&self) -> Option<Self> {
        let (mut word, mut index, mut plain) = (Self::default(), 0, 0);
        while let Some(found) = memchr::memchr(b'%', &self.bytes[index..]) {
            let at = index + found;
            index = at + 1;
            let digits = self.bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
            if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                self.copy_to(&mut word, plain..at);
                word.push(&[byte], self.places(&(at..at + 3)));
                (index, plain) = (at + 3, at + 3);
            }
        }
        if plain == 0 {
            return None;
        }
        self.copy_to(&mut word, plain..self.bytes.len());
        Some(word)
    }

    /// Appends another one.
    pub(super) fn append(&mut self, other: &Self) {
        other.copy_to(self, 0..other.bytes.len());
    }

    /// Appends that range of it to another one.
    pub(super) fn copy_to(&self, other: &mut Self, range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            let next = self.runs.partition_point(|run| run.index <= at);
            let end = self.runs.get(next).map_or(range.end, |run| run.index.min(range.end));
            other.push(&self.bytes[at..end], self.places(&(at..end)));
            at = end;
        }
    }

    fn run(&self, index: usize) -> Run {
        let next = self.runs.partition_point(|run| run.index <= index);
        self.runs.get(next.saturating_sub(1)).copied().unwrap_or(Run { index: 0, at: 0, end: None })
    }
}

impl Run {
    fn place(&self, index: usize) -> u64 {
        match self.end {
            Some(_) => self.at,
            None => self.at + (index - self.index) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_knows_where_it_stands_also_when_its_escape_is_undone_or_its_front_gone() {
        let mut word = Word::default();
        word.push(b"ab", 10..12);
        word.push(b"%2", 12..14);
        word.push(b"F", 14..20);
        word.push(b"cd", 20..22);

        let decoded = word.decoded().expect("an escape");
        assert_eq!(decoded.bytes(), b"ab/cd");
        assert_eq!((decoded.places(&(2..3)), decoded.places(&(1..4))), (12..20, 11..21));
        assert!(decoded.decoded().is_none());

        word.drop_front(3);
        assert_eq!((word.bytes(), word.places(&(0..1))), (b"2Fcd".as_slice(), 13..14));
        assert_eq!((word.places(&(1..2)), word.places(&(2..4))), (14..20, 20..22));
        word.drop_front(2);
        assert_eq!((word.bytes(), word.places(&(0..2))), (b"cd".as_slice(), 20..22));
    }
}
