//! Clients that take their time: none of them holds anything for long.

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Host;
use crate::harness::bytes::noise;
use crate::harness::raw::{self, Wire};

/// Longer than any limit here.
const PATIENCE: Duration = Duration::from_secs(90);

#[tokio::test]
async fn a_head_that_does_not_end_is_cut_off() {
    let host = Host::start().await;
    let mut wire = Wire::open(host.address()).await;
    wire.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ").await;

    let heard = tokio::time::timeout(PATIENCE, wire.hear(2 * PATIENCE)).await.expect("the service closes");

    assert!([0, 408].contains(&heard.status()), "{}", heard.0);
}

#[tokio::test]
async fn a_body_that_stops_is_refused_and_leaves_nothing() {
    let host = Host::start().await;
    let mut wire = Wire::open(host.address()).await;
    wire.send(&raw::head("acme", "application/octet-stream", "Content-Length: 1000000\r\n")).await;
    wire.send(&noise(200_000, 3)).await;

    let heard = tokio::time::timeout(PATIENCE, wire.hear(2 * PATIENCE)).await.expect("the service closes");

    assert_eq!(heard.status(), 400, "{}", heard.0);
    assert!(host.becomes_bare().await);
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_no_file_for_long() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(noise(24 << 20, 5)).await;
    let path = asset.url.split_once("/a/").expect("a capability URL").1;
    let mut stream = TcpStream::connect(host.address()).await.expect("a connection");
    stream.write_all(format!("GET /a/{path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.expect("it is open");
    stream.read_exact(&mut [0; 1_000]).await.expect("the beginning");
    let blobs = host.folder().join("blobs");
    assert_eq!(open_files_in(&blobs), 1);

    let closed = async {
        while open_files_in(&blobs) > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.expect("the service gives up");
}

/// How many files of that folder this process has open.
fn open_files_in(folder: &Path) -> usize {
    let handles = std::fs::read_dir("/proc/self/fd").expect("Linux").flatten();
    handles.filter_map(|handle| std::fs::read_link(handle.path()).ok()).filter(|file| file.starts_with(folder)).count()
}
