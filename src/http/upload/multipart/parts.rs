//! The parts of a form, read while they arrive (RFC 7578, RFC 2046 section 5.1.1).
//!
//! A part ends where the next delimiter stands, and nowhere else: what a part says of its own length is not believed. Memory: what was
//! pushed and not yet taken, and one header block of at most [`MAX_HEADERS`] bytes. Whatever the bytes are, each is looked at a bounded
//! number of times: the parsers that we tried take time and memory for every `\r\n--` in the data, which a sender has for nothing.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem::{Finder, find};

/// The longest header block of a part.
pub(super) const MAX_HEADERS: usize = 16 << 10;

/// The most that may stand before the first delimiter.
pub(super) const MAX_PREAMBLE: usize = 64 << 10;

/// The longest boundary (RFC 2046).
const MAX_BOUNDARY: usize = 70;

/// Reads parts, however their bytes are cut.
#[derive(Debug)]
pub(super) struct Parts {
    /// CRLF, two hyphens and the boundary.
    delimiter: Finder<'static>,
    buffer: BytesMut,
    state: State,
    preamble: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Preamble,
    Delimiter,
    Headers,
    Data,
    End,
}

/// What comes next in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// A part begins; this is its header block, without the blank line.
    Begins(Bytes),
    /// Some of its bytes.
    Data(Bytes),
    /// It ends.
    Ends,
}

/// Why a form cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadForm {
    /// The boundary is missing, or not of RFC 2046.
    #[error("the form has no usable boundary")]
    Boundary,
    /// Too much before the first delimiter.
    #[error("the form does not begin with its boundary")]
    Preamble,
    /// A part's headers are too long.
    #[error("a part's headers are longer than {MAX_HEADERS} bytes")]
    Headers,
    /// Something else stands behind a delimiter on its line.
    #[error("a boundary is followed by something else on its line")]
    Delimiter,
    /// The body ends before the form does.
    #[error("the form ends before its last boundary")]
    CutOff,
}

impl Parts {
    /// A reader of a form with that boundary.
    pub(super) fn new(boundary: &str) -> Result<Self, BadForm> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&b);
        if boundary.is_empty()
            || boundary.len() > MAX_BOUNDARY
            || boundary.ends_with(' ')
            || !boundary.bytes().all(allowed)
        {
            return Err(BadForm::Boundary);
        }
        Ok(Self {
            delimiter: Finder::new(format!("\r\n--{boundary}").as_bytes()).into_owned(),
            // The first delimiter may stand at the very beginning, without a line end before it.
            buffer: BytesMut::from(&b"\r\n"[..]),
            state: State::Preamble,
            preamble: 0,
        })
    }

    /// Takes the next piece of the body.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        if self.state != State::End {
            self.buffer.extend_from_slice(chunk);
        }
    }

    /// What comes next; `None`: more of the body is needed, or the form has ended.
    pub(super) fn next(&mut self) -> Result<Option<Event>, BadForm> {
        loop {
            match self.state {
                State::Preamble => {
                    let Some(at) = self.delimiter.find(&self.buffer) else {
                        self.skip_preamble()?;
                        return Ok(None);
                    };
                    self.buffer.advance(at + self.delimiter.needle().len());
                    self.state = State::Delimiter;
                }
                State::Delimiter => {
                    if !self.end_delimiter()? {
                        return Ok(None);
                    }
                }
                State::Headers => return self.take_headers(),
                State::Data => return Ok(self.take_data()),
                State::End => {
                    self.buffer.clear();
                    return Ok(None);
                }
            }
        }
    }

    /// Whether the form has ended: the body may end too, and what still comes of it means nothing.
    pub(super) fn has_ended(&self) -> bool {
        self.state == State::End
    }

    /// Says whether the body may end here.
    pub(super) fn finish(&self) -> Result<(), BadForm> {
        if self.has_ended() { Ok(()) } else { Err(BadForm::CutOff) }
    }

    fn skip_preamble(&mut self) -> Result<(), BadForm> {
        let skipped = self.buffer.len().saturating_sub(self.held_back());
        self.buffer.advance(skipped);
        self.preamble += skipped;
        if self.preamble > MAX_PREAMBLE { Err(BadForm::Preamble) } else { Ok(()) }
    }

    /// Reads the rest of a delimiter's line: hyphens that end the form, or white space and a line end. Says whether it was all there.
    fn end_delimiter(&mut self) -> Result<bool, BadForm> {
        if self.buffer.starts_with(b"--") {
            self.state = State::End;
            return Ok(true);
        }
        let padding = self.buffer.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        match self.buffer[padding..] {
            [b'\r', b'\n', ..] => {
                // The line end stays: an empty header block begins with it.
                self.buffer.advance(padding);
                self.state = State::Headers;
                Ok(true)
            }
            [] | [b'\r'] if padding <= MAX_BOUNDARY => Ok(false),
            [b'-'] if padding == 0 => Ok(false),
            _ => Err(BadForm::Delimiter),
        }
    }

    fn take_headers(&mut self) -> Result<Option<Event>, BadForm> {
        let searched = &self.buffer[..self.buffer.len().min(MAX_HEADERS + 4)];
        let Some(end) = find(searched, b"\r\n\r\n") else {
            return if self.buffer.len() > MAX_HEADERS { Err(BadForm::Headers) } else { Ok(None) };
        };
        let mut block = self.buffer.split_to(end + 2).freeze();
        block.advance(2.min(block.len()));
        // Of the blank line its first line end is the block's last; the second begins nothing yet.
        self.buffer.advance(2);
        self.state = State::Data;
        Ok(Some(Event::Begins(block)))
    }

    fn take_data(&mut self) -> Option<Event> {
        if let Some(at) = self.delimiter.find(&self.buffer) {
            if at > 0 {
                return Some(Event::Data(self.buffer.split_to(at).freeze()));
            }
            self.buffer.advance(self.delimiter.needle().len());
            self.state = State::Delimiter;
            return Some(Event::Ends);
        }
        let sure = self.buffer.len().saturating_sub(self.held_back());
        (sure > 0).then(|| Event::Data(self.buffer.split_to(sure).freeze()))
    }

    /// So many bytes at the end may be the beginning of a delimiter.
    fn held_back(&self) -> usize {
        self.delimiter.needle().len() - 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All parts of a body that comes in these pieces: header blocks and data.
    fn read(boundary: &str, pieces: &[&[u8]]) -> Result<Vec<(String, Vec<u8>)>, BadForm> {
        let mut parts = Parts::new(boundary)?;
        let mut read: Vec<(String, Vec<u8>)> = Vec::new();
        for piece in pieces {
            parts.push(piece);
            while let Some(event) = parts.next()? {
                match event {
                    Event::Begins(block) => read.push((String::from_utf8_lossy(&block).into_owned(), Vec::new())),
                    Event::Data(bytes) => read.last_mut().expect("a part has begun").1.extend_from_slice(&bytes),
                    Event::Ends => {}
                }
            }
        }
        parts.finish().map(|()| read)
    }

    fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (block, data) in parts {
            body.extend_from_slice(format!("--B\r\n{block}\r\n").as_bytes());
            body.extend_from_slice(data);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--B--\r\n");
        body
    }

    #[test]
    fn parts_come_as_they_were_sent() {
        let body = form(&[("a: 1\r\n", b"one"), ("", b""), ("b: 2\r\nc: 3\r\n", b"\r\n--A\r\n-\r\n--")]);

        let right = vec![
            ("a: 1\r\n".to_owned(), b"one".to_vec()),
            (String::new(), Vec::new()),
            ("b: 2\r\nc: 3\r\n".to_owned(), b"\r\n--A\r\n-\r\n--".to_vec()),
        ];
        assert_eq!(read("B", &[&body]), Ok(right));
    }

    #[test]
    fn what_stands_around_the_form_means_nothing() {
        let body =
            [b"a preamble\r\nof lines\r\n".to_vec(), form(&[("", b"x")]), b"an epilogue\r\n--B\r\n".to_vec()].concat();
        assert_eq!(read("B", &[&body]), Ok(vec![(String::new(), b"x".to_vec())]));
        let padded = b"--B \t\r\n\r\nx\r\n--B--";
        assert_eq!(read("B", &[padded]), Ok(vec![(String::new(), b"x".to_vec())]));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        let long = vec![b'x'; MAX_PREAMBLE + 100];
        assert_eq!(read("B", &[&long]), Err(BadForm::Preamble));
        let headers = [b"--B\r\n".to_vec(), vec![b'h'; MAX_HEADERS + 100]].concat();
        assert_eq!(read("B", &[&headers]), Err(BadForm::Headers));
        for (body, why) in [
            (&b""[..], BadForm::CutOff),
            (b"--B", BadForm::CutOff),
            (b"--B\r\n\r\nx", BadForm::CutOff),
            (b"--B\r\n\r\nx\r\n--B", BadForm::CutOff),
            (b"--B\r\n\r\nx\r\n--B-", BadForm::CutOff),
            (b"--Bx\r\n\r\nx\r\n--B--", BadForm::Delimiter),
            (b"--B\r\n\r\nx\r\n--B-x", BadForm::Delimiter),
            (b"--B\n\nx\n--B--", BadForm::Delimiter),
        ] {
            assert_eq!(read("B", &[body]), Err(why), "{:?}", String::from_utf8_lossy(body));
        }
        for boundary in ["", "ends with a blank ", "ä", "a\r\nb", &"x".repeat(71)] {
            assert_eq!(Parts::new(boundary).err(), Some(BadForm::Boundary), "{boundary:?}");
        }
    }

    #[test]
    fn a_part_is_as_long_as_it_is() {
        let body = form(&[("Content-Length: 2\r\n", b"hello world")]);
        assert_eq!(read("B", &[&body]).expect("a form")[0].1, b"hello world");
    }

    #[test]
    fn line_ends_and_hyphens_in_the_data_cost_nothing() {
        let data = b"\r\n--".repeat(256 << 10);
        let body = form(&[("", &data)]);
        let mut parts = Parts::new("B").expect("a boundary");
        let mut events = 0;
        for piece in body.chunks(64 << 10) {
            parts.push(piece);
            while parts.next().expect("a form").is_some() {
                events += 1;
            }
        }
        assert!(parts.has_ended());
        assert!(events < 64, "{events} events for {} pieces", body.len() / (64 << 10));
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            data in proptest::collection::vec(proptest::sample::select(b"\r\n-Bx".to_vec()), 0..200),
            cuts in proptest::collection::vec(0usize..400, 0..20),
        ) {
            let body = form(&[("h: 1\r\n", &data), ("", b"last")]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (body.len() + 1)).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();

            prop_assert_eq!(read("B", &pieces), read("B", &[&body]));
        }
    }
}
