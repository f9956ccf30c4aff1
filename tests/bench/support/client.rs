//! A client over plain sockets: it shares the machine with what it measures, so it must not be what is measured.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

/// A connection that is kept.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    credential: String,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr, credential: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket that takes options");
        Self { stream: BufReader::new(stream), credential: credential.to_owned() }
    }

    /// Asks for a path.
    pub(crate) fn get(&mut self, path: &str) -> Answer {
        let head = format!("GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n");
        self.stream.get_mut().write_all(head.as_bytes()).expect("a request goes out");
        self.answer().expect("an answer")
    }

    /// Asks for something with the credential, with JSON if there is any to send.
    pub(crate) fn ask(&mut self, method: &str, path: &str, json: &str) -> Answer {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{json}",
            self.credential,
            json.len()
        );
        self.stream.get_mut().write_all(head.as_bytes()).expect("a request goes out");
        self.answer().expect("an answer")
    }

    /// Sends a body.
    pub(crate) fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> Answer {
        self.post_pieces(path, content_type, body.len() as u64, |socket| socket.write_all(body))
    }

    /// Sends a body of that length, which `write` writes.
    pub(crate) fn post_pieces(
        &mut self,
        path: &str,
        content_type: &str,
        length: u64,
        write: impl FnOnce(&mut TcpStream) -> io::Result<()>,
    ) -> Answer {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n",
            self.credential
        );
        let socket = self.stream.get_mut();
        socket.write_all(head.as_bytes()).and_then(|()| write(socket)).expect("a request goes out");
        self.answer().expect("an answer")
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().unwrap_or(0);
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, body })
    }
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("an answer is JSON")
    }

    /// The durable URL's path, of an upload that was stored.
    pub(crate) fn capability(&self) -> String {
        assert_eq!(self.status, 201, "{}", String::from_utf8_lossy(&self.body));
        let answer: Value = serde_json::from_slice(&self.body).expect("an answer is JSON");
        let url = answer["url"].as_str().expect("an upload has a URL");
        url.find("/a/").map(|at| url[at..].to_owned()).expect("a durable URL is a capability")
    }
}
