//! What `strace -f -y` writes, read back: calls with the lines on which they began and ended.

use std::collections::HashMap;

use crate::harness::process::Place;

/// System calls in the order in which they began.
#[derive(Debug)]
pub struct Trace {
    pub calls: Vec<Call>,
}

/// A system call; when it began and ended is told in lines of the trace.
#[derive(Debug, Clone)]
pub struct Call {
    pub name: String,
    pub line: String,
    pub began: usize,
    pub ended: usize,
}

impl Trace {
    /// A call that another thread interrupts in the trace stands on two lines, `<unfinished ...>` and `<... resumed>`.
    pub fn parse(text: &str) -> Self {
        let (mut calls, mut open) = (Vec::<Call>::new(), HashMap::<&str, usize>::new());
        for (number, line) in text.lines().enumerate() {
            let Some((thread, rest)) = line.split_once(' ') else {
                continue;
            };
            let rest = rest.trim_start();
            if let Some(resumed) = rest.strip_prefix("<... ") {
                if let Some(at) = open.remove(thread) {
                    let tail = resumed.split_once("resumed>").map_or("", |(_, tail)| tail);
                    calls[at].line.push_str(tail);
                    calls[at].ended = number;
                }
                continue;
            }
            let Some((name, _)) = rest.split_once('(').filter(|(name, _)| name.bytes().all(is_of_name)) else {
                continue;
            };
            let (name, unfinished) = (name.to_owned(), rest.strip_suffix("<unfinished ...>"));
            if unfinished.is_some() {
                open.insert(thread, calls.len());
            }
            // One that never ends ended after everything else.
            let ended = if unfinished.is_some() { usize::MAX } else { number };
            calls.push(Call { name, line: unfinished.unwrap_or(rest).to_owned(), began: number, ended });
        }
        Self { calls }
    }

    /// The first that begins after this line and is what is looked for, and has to be there and to have succeeded.
    pub fn first(&self, after: usize, wanted: impl Fn(&Call) -> bool) -> &Call {
        let found = self.calls.iter().find(|call| call.began > after && call.succeeded() && wanted(call));
        found.unwrap_or_else(|| unreachable!("nothing of the kind after line {after} of {:#?}", self.lines(after)))
    }

    /// The lines around this one, for a failure to show.
    fn lines(&self, from: usize) -> Vec<&str> {
        let shown = self.calls.iter().filter(|call| call.began + 20 > from && !call.line.contains("eventfd"));
        shown.map(|call| &*call.line).take(120).collect()
    }
}

impl Call {
    /// The path of the file descriptor that it is made on, by `-y`.
    pub fn path(&self) -> &str {
        let argument = self.line.split_once('(').map_or("", |(_, rest)| rest);
        let path = argument.split_once('<').filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
        path.and_then(|(_, rest)| rest.split_once('>')).map_or("", |(path, _)| path)
    }

    /// One of the paths that it is given in words.
    pub fn quoted(&self, place: usize) -> &str {
        self.line.split('"').nth(2 * place + 1).unwrap_or_default()
    }

    pub fn is_write(&self) -> bool {
        matches!(&*self.name, "write" | "writev" | "pwrite64")
    }

    /// Whether it writes to a file whose path in the place begins so.
    pub fn writes(&self, place: &Place, beginning: &str) -> bool {
        self.is_write() && self.path().starts_with(&*place.file(beginning).display().to_string())
    }

    /// Whether it makes this file or folder durable.
    pub fn syncs(&self, path: &str) -> bool {
        matches!(&*self.name, "fsync" | "fdatasync") && self.path() == path
    }

    pub fn succeeded(&self) -> bool {
        let result = self.line.rsplit_once(" = ").map_or("", |(_, result)| result);
        !result.is_empty() && !result.starts_with(['-', '?'])
    }

    /// Whether it was under way at this line.
    pub fn spans(&self, line: usize) -> bool {
        self.began < line && self.ended > line
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[test]
fn a_call_that_was_interrupted_is_one_call() {
    let text = "7 fsync(3</a/b> <unfinished ...>\n8 write(4</c>, \"x\", 1) = 1\n7 <... fsync resumed>)              = 0\n\
        8 rename(\"/c\", \"/d\") = 0\n7 mkdir(\"/a\", 0777) = -1 EEXIST (File exists)\n7 +++ exited with 0 +++\n";
    let trace = Trace::parse(text);
    let told: Vec<_> =
        trace.calls.iter().map(|call| (&*call.name, call.path(), call.began, call.ended, call.succeeded())).collect();
    assert_eq!(
        told,
        [
            ("fsync", "/a/b", 0, 2, true),
            ("write", "/c", 1, 1, true),
            ("rename", "", 3, 3, true),
            ("mkdir", "", 4, 4, false)
        ]
    );
    assert_eq!(trace.calls[2].quoted(1), "/d");
    assert!(trace.calls[0].spans(1) && trace.calls[0].syncs("/a/b"));
}
