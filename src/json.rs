//! The structure of a JSON text, read in pieces: which byte may follow which, and where members begin and end.

use serde::de::IgnoredAny;

use self::string::{Fault, Piece, StringReader};

pub(crate) mod string;

/// Reads a text that is one object, however it is cut. Gives strings as they come and remembers nothing of them.
#[derive(Debug)]
pub(crate) struct Json {
    state: State,
    open: Vec<Container>,
    string: StringReader,
    word: Vec<u8>,
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// Nothing that matters alone.
    Nothing,
    /// The next piece of a member's name.
    Name(Piece<'a>),
    /// A value is a string; its pieces follow.
    TextBegins,
    /// The next piece of it.
    Text(Piece<'a>),
    /// A value was `null`.
    Null,
    /// A value was a number, `true` or `false`.
    Scalar,
    /// A value is an object or an array; what it holds follows.
    Opens,
}

impl Json {
    pub(crate) fn new() -> Self {
        Self { state: State::Start, open: Vec::new(), string: StringReader::default(), word: Vec::new() }
    }

    /// Takes something off `input`, which is not empty, and says how many bytes it was.
    pub(crate) fn next<'a>(&mut self, input: &'a [u8]) -> Result<(Event<'a>, usize), Fault> {
        match self.state {
            State::InName => {
                let (piece, used) = self.string.next(input)?;
                if piece == Piece::End {
                    self.state = State::Colon;
                }
                Ok((Event::Name(piece), used))
            }
            State::InText => {
                let (piece, used) = self.string.next(input)?;
                if piece == Piece::End {
                    self.state = State::After;
                }
                Ok((Event::Text(piece), used))
            }
            State::InWord => self.read_word(input),
            _ => self.step(input[0]),
        }
    }

    /// How many objects and arrays are open: 1 among the members of the text's own object.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The number, `true`, `false` or `null` that was read last.
    pub(crate) fn word(&self) -> &[u8] {
        &self.word
    }

    /// Whether the object is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    fn step(&mut self, byte: u8) -> Result<(Event<'static>, usize), Fault> {
        let (state, event) = match (self.state, byte) {
            (state, b' ' | b'\t' | b'\r' | b'\n') => (state, Event::Nothing),
            (State::Start, b'{') => (self.open(Container::Object)?, Event::Nothing),
            (State::Name | State::NameOrEnd, b'"') => (State::InName, Event::Nothing),
            (State::Colon, b':') => (State::Value, Event::Nothing),
            (State::Value | State::ValueOrEnd, b'"') => (State::InText, Event::TextBegins),
            (State::Value | State::ValueOrEnd, b'{') => (self.open(Container::Object)?, Event::Opens),
            (State::Value | State::ValueOrEnd, b'[') => (self.open(Container::Array)?, Event::Opens),
            (State::Value | State::ValueOrEnd, _) if is_of_word(byte) => {
                self.word.clear();
                self.word.push(byte);
                (State::InWord, Event::Nothing)
            }
            (State::After, b',') if self.open.last() == Some(&Container::Object) => (State::Name, Event::Nothing),
            (State::After, b',') => (State::Value, Event::Nothing),
            (State::NameOrEnd, b'}') | (State::ValueOrEnd, b']') => (self.close(), Event::Nothing),
            (State::After, b'}') if self.open.last() == Some(&Container::Object) => (self.close(), Event::Nothing),
            (State::After, b']') if self.open.last() == Some(&Container::Array) => (self.close(), Event::Nothing),
            (State::Start, 0xEF) => return Err(Fault { at: 0, what: "a byte order mark" }),
            (state, _) => return Err(Fault { at: 0, what: state.wanted() }),
        };
        self.state = state;
        Ok((event, 1))
    }

    fn open(&mut self, container: Container) -> Result<State, Fault> {
        if self.open.len() == MAX_DEPTH {
            return Err(Fault { at: 0, what: "more than 64 levels" });
        }
        self.open.push(container);
        Ok(match container {
            Container::Object => State::NameOrEnd,
            Container::Array => State::ValueOrEnd,
        })
    }

    fn close(&mut self) -> State {
        self.open.pop();
        if self.open.is_empty() { State::Done } else { State::After }
    }

    /// Reads a number, `true`, `false` or `null` up to the byte that cannot belong to it.
    fn read_word(&mut self, input: &[u8]) -> Result<(Event<'static>, usize), Fault> {
        let used = input.iter().position(|byte| !is_of_word(*byte)).unwrap_or(input.len());
        if self.word.len() + used > MAX_WORD {
            return Err(Fault { at: 0, what: "a number of more than 4096 characters" });
        }
        self.word.extend_from_slice(&input[..used]);
        if used == input.len() {
            return Ok((Event::Nothing, used));
        }
        if serde_json::from_slice::<IgnoredAny>(&self.word).is_err() {
            return Err(Fault { at: used, what: "a word that is no value" });
        }
        self.state = State::After;
        let event = if self.word == b"null" { Event::Null } else { Event::Scalar };
        Ok((event, used))
    }
}

/// The depth that any JSON body may have.
const MAX_DEPTH: usize = 64;

/// The longest number that is held while it is looked at.
const MAX_WORD: usize = 4096;

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

/// What is awaited, or what is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    NameOrEnd,
    Name,
    InName,
    Colon,
    Value,
    ValueOrEnd,
    InText,
    InWord,
    After,
    Done,
}

impl State {
    fn wanted(self) -> &'static str {
        match self {
            Self::Start => "something other than an object",
            Self::NameOrEnd | Self::Name | Self::InName => "something other than a member's name",
            Self::Colon => "something other than a colon",
            Self::Value | Self::ValueOrEnd | Self::InText | Self::InWord => "something other than a value",
            Self::After => "something other than a comma or an end",
            Self::Done => "something after the object",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &[u8], size: usize) -> Result<(), (usize, &'static str)> {
        let mut json = Json::new();
        let mut done = 0;
        for chunk in text.chunks(size) {
            let mut rest = chunk;
            while !rest.is_empty() {
                let (_, used) = json.next(rest).map_err(|fault| (done + fault.at, fault.what))?;
                rest = &rest[used..];
                done += used;
            }
        }
        if json.is_done() { Ok(()) } else { Err((done, "no end")) }
    }

    #[test]
    fn a_text_that_is_no_object_is_refused_where_it_ceases_to_be_one() {
        let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(read(deep(63).as_bytes(), 7), Ok(()));
        let (too_deep, comma) = (deep(64), "something other than a comma or an end");
        let table: [(&str, usize, &str); 18] = [
            ("", 0, "no end"),
            ("{\"a\":1", 6, "no end"),
            ("\u{feff}{}", 0, "a byte order mark"),
            ("[]", 0, "something other than an object"),
            ("\"a\"", 0, "something other than an object"),
            ("{,}", 1, "something other than a member's name"),
            ("{\"a\":1,}", 7, "something other than a member's name"),
            ("{'a':1}", 1, "something other than a member's name"),
            ("{\"a\" 1}", 5, "something other than a colon"),
            ("{\"a\":}", 5, "something other than a value"),
            ("{\"a\":[1,]}", 8, "something other than a value"),
            ("{\"a\":1 2}", 7, comma),
            ("{\"a\":[1}", 7, comma),
            ("{\"a\":{\"b\":1]}", 11, comma),
            ("{\"a\":01}", 7, "a word that is no value"),
            ("{\"a\":nul}", 8, "a word that is no value"),
            ("{} x", 3, "something after the object"),
            (&too_deep, 68, "more than 64 levels"),
        ];
        for (text, at, what) in table {
            for size in [1, 2, 5, 1000] {
                assert_eq!(read(text.as_bytes(), size), Err((at, what)), "{text:?} by {size}");
            }
        }
    }

    proptest! {
        #[test]
        fn it_accepts_the_objects_that_serde_accepts(
            text in "\\{(\"a\"|[0-9.eE+-]{1,3}|null|true|[\\[\\]{}:, \"]){0,12}\\}",
            size in 1..9_usize,
        ) {
            let serde = serde_json::from_str::<std::collections::BTreeMap<String, IgnoredAny>>(&text);
            prop_assert_eq!(read(text.as_bytes(), size).is_ok(), serde.is_ok(), "{}", text);
        }
    }
}
