//! Requests that no well-behaved client would send: byte for byte, over a bare connection.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What came back, as text; empty if the service said nothing before the time was up.
pub struct Heard(pub String);

impl Heard {
    pub fn status(&self) -> u16 {
        self.0.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    pub fn body(&self) -> &str {
        self.0.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }
}

/// Sends the pieces, each by itself, then reads until the service closes or the time is up.
pub async fn send(address: SocketAddr, pieces: &[&[u8]], patience: Duration) -> Heard {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    for piece in pieces {
        if stream.write_all(piece).await.is_err() {
            break;
        }
        let _ = stream.flush().await;
    }
    read(&mut stream, patience).await
}

/// The head of an ingest into the run `run-1` by that tenant's owner, up to and with the empty line. The service closes after its
/// answer.
pub fn head(tenant: &str, content_type: &str, more: &str) -> Vec<u8> {
    let credential = super::credential(tenant, "all");
    let lines = format!("Authorization: Bearer {credential}\r\nContent-Type: {content_type}\r\n{more}");
    format!("POST /v1/runs/run-1/assets HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n").into_bytes()
}

/// A piece of a body with `Transfer-Encoding: chunked`.
pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A connection on which pieces are sent one after the other.
pub struct Wire(TcpStream);

impl Wire {
    pub async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self(stream)
    }

    pub async fn send(&mut self, piece: &[u8]) {
        self.0.write_all(piece).await.expect("the service listens");
        self.0.flush().await.expect("the service listens");
    }

    /// Says that nothing more will come.
    pub async fn end(&mut self) {
        self.0.shutdown().await.expect("a connection");
    }

    /// What the service says until it closes or the time is up.
    pub async fn hear(&mut self, patience: Duration) -> Heard {
        read(&mut self.0, patience).await
    }
}

async fn read(stream: &mut TcpStream, patience: Duration) -> Heard {
    let mut heard = Vec::new();
    let _ = tokio::time::timeout(patience, stream.read_to_end(&mut heard)).await;
    Heard(String::from_utf8_lossy(&heard).into_owned())
}
