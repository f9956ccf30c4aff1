//! JSON that is itself inside of a string: its escapes undone, so that a URL is found that was written `https:\/\/…` or a base64 whose
//! lines are told apart by `\n`. However deep it is nested, the backslashes before a character mean what one would.

use std::ops::Range;

use memchr::memchr;

/// Undoes the escapes of a text that arrives in pieces.
///
/// A backslash that begins no escape comes out as one. What comes out as a piece longer or shorter than its place is one character.
#[derive(Debug, Clone, Default)]
pub(super) struct Nested {
    state: State,
}

#[derive(Debug, Clone, Default)]
enum State {
    #[default]
    Plain,
    /// Behind backslashes, which stand there.
    Slashes(Range<u64>),
    /// Behind their `u`: what was read since, and where it stands.
    Hex(Range<u64>, Vec<(u8, Range<u64>)>),
}

impl Nested {
    /// Takes the next piece, which stands at `at`.
    pub(super) fn push(&mut self, piece: &[u8], at: Range<u64>, mut give: impl FnMut(&[u8], Range<u64>)) {
        if at.end - at.start != piece.len() as u64 {
            if let [byte] = piece {
                return self.take(*byte, at, &mut give);
            }
            self.give_up(&mut give);
            return give(piece, at);
        }
        let mut index = 0;
        while index < piece.len() {
            let from = at.start + index as u64;
            if !matches!(self.state, State::Plain) {
                self.take(piece[index], from..from + 1, &mut give);
                index += 1;
                continue;
            }
            let rest = &piece[index..];
            let plain = memchr(b'\\', rest).unwrap_or(rest.len());
            if plain > 0 {
                give(&rest[..plain], from..from + plain as u64);
            } else {
                self.state = State::Slashes(from..from + 1);
            }
            index += plain.max(1);
        }
    }

    /// Ends the text.
    pub(super) fn finish(&mut self, mut give: impl FnMut(&[u8], Range<u64>)) {
        self.give_up(&mut give);
    }

    fn take(&mut self, byte: u8, at: Range<u64>, give: &mut impl FnMut(&[u8], Range<u64>)) {
        match (&mut self.state, byte) {
            (State::Plain, b'\\') => self.state = State::Slashes(at),
            (State::Plain, _) => give(&[byte], at),
            (State::Slashes(slashes), b'\\') => slashes.end = at.end,
            (State::Slashes(slashes), b'u') => {
                self.state = State::Hex(slashes.clone(), vec![(byte, at)]);
            }
            (State::Slashes(slashes), b'/' | b'"' | b'n' | b'r' | b't') => {
                let meant = match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => other,
                };
                let from = slashes.start;
                self.state = State::Plain;
                give(&[meant], from..at.end);
            }
            (State::Hex(slashes, read), _) if byte.is_ascii_hexdigit() => {
                read.push((byte, at.clone()));
                if read.len() < 5 {
                    return;
                }
                let digits = read[1..].iter().fold(0, |value, (digit, _)| value << 4 | value_of(*digit));
                let from = slashes.start;
                self.state = State::Plain;
                // Of other characters it matters only that they are none of a URL.
                let meant = u8::try_from(digits).ok().filter(u8::is_ascii).unwrap_or(b'\\');
                give(&[meant], from..at.end);
            }
            _ => {
                self.give_up(give);
                self.take(byte, at, give);
            }
        }
    }

    /// What looked like an escape is none.
    fn give_up(&mut self, give: &mut impl FnMut(&[u8], Range<u64>)) {
        match std::mem::take(&mut self.state) {
            State::Plain => {}
            State::Slashes(slashes) => give(b"\\", slashes),
            State::Hex(slashes, read) => {
                give(b"\\", slashes);
                for (byte, at) in read {
                    give(&[byte], at);
                }
            }
        }
    }
}

fn value_of(digit: u8) -> u32 {
    char::from(digit).to_digit(16).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(text: &str, size: usize) -> String {
        let (mut nested, mut out, mut at) = (Nested::default(), Vec::new(), 0);
        let mut places = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            let end = at + piece.len() as u64;
            nested.push(piece, at..end, |text, at| {
                out.extend_from_slice(text);
                places.push(at);
            });
            at = end;
        }
        nested.finish(|text, at| {
            out.extend_from_slice(text);
            places.push(at);
        });
        assert!(places.windows(2).all(|two| two[0].end == two[1].start), "{text:?}: {places:?}");
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn escapes_mean_what_they_mean_at_any_depth_and_nothing_is_lost_of_what_is_none() {
        for (text, meant) in [
            ("plain", "plain"),
            (r"https:\/\/x\/a", "https://x/a"),
            (r"https:\\\/\\\/x", "https://x"),
            (r"AA\nBB\r\nCC", "AA\nBB\r\nCC"),
            (r"a\u002fb\u002B", "a/b+"),
            (r"a\\u0065yJ", "aeyJ"),
            (r"C:\Users\ueyJ", r"C:\Users\ueyJ"),
            (r"\u12", r"\u12"),
            (r"\", r"\"),
            (r"x\u20acy", r"x\y"),
        ] {
            for size in [1, 2, 3, 100] {
                assert_eq!(undone(text, size), meant, "{text:?} by {size}");
            }
        }
    }
}
