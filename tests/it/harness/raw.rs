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

/// Sends the pieces and goes away without waiting.
pub async fn send_and_leave(address: SocketAddr, pieces: &[&[u8]]) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    for piece in pieces {
        let _ = stream.write_all(piece).await;
    }
    let _ = stream.flush().await;
}

async fn read(stream: &mut TcpStream, patience: Duration) -> Heard {
    let mut heard = Vec::new();
    let _ = tokio::time::timeout(patience, stream.read_to_end(&mut heard)).await;
    Heard(String::from_utf8_lossy(&heard).into_owned())
}
