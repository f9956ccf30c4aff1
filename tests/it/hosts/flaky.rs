//! A proxy before the service that is not always well.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// Passes on every second connection; the others are answered with 503 and closed, or, each third of these, broken off without a word.
/// Gives its address, and how many were not passed on.
pub(super) async fn before(service: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let failed = Arc::new(AtomicUsize::new(0));
    let counts = failed.clone();
    tokio::spawn(async move {
        let mut connections = 0;
        while let Ok((stream, _)) = listener.accept().await {
            connections += 1;
            if connections % 2 == 0 {
                tokio::spawn(pass_on(stream, service));
            } else {
                let nth = counts.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(fail(stream, nth % 3 == 2));
            }
        }
    });
    (address, failed)
}

async fn pass_on(mut stream: TcpStream, service: SocketAddr) {
    if let Ok(mut upstream) = TcpStream::connect(service).await {
        let _ = copy_bidirectional(&mut stream, &mut upstream).await;
    }
}

async fn fail(mut stream: TcpStream, breaks_off: bool) {
    let mut head = vec![0; 64 << 10];
    let _ = stream.read(&mut head).await;
    if breaks_off {
        return;
    }
    let body = r#"{"error":"service_unavailable","message":"the index is not available now"}"#;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: 0\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    // What is still being sent is read: closing before would take the answer back.
    while stream.read(&mut head).await.is_ok_and(|read| read > 0) {}
}
