//! Bytes on their way, and what becomes of them when either end goes away.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Host;
use crate::harness::bytes::noise;
use crate::harness::raw;
use crate::harness::told::Told;

/// More than any buffer between the disk and a client that does not read.
const LARGE: usize = 24 << 20;

#[tokio::test]
async fn three_hundred_clients_that_leave_leave_nothing_open() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(noise(LARGE, 5)).await;
    let path = asset.url.split_once("/a/").expect("a capability URL").1;
    let blobs = host.folder().join("blobs");
    assert_eq!(open_files_in(&blobs), 0);

    for _ in 0..300 {
        let mut stream = TcpStream::connect(host.address()).await.expect("a connection");
        let request = format!("GET /a/{path} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is open");
        let mut begun = [0; 1_000];
        stream.read_exact(&mut begun).await.expect("the beginning");
    }

    within(Duration::from_secs(20), || open_files_in(&blobs) == 0).await;
    assert_eq!(host.stranger().get(&asset.url).await.bytes().await.expect("all of it").len(), LARGE);
    within(Duration::from_secs(5), || open_files_in(&blobs) == 0).await;
}

#[tokio::test]
async fn bytes_that_are_lost_on_the_way_are_no_clean_end() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(noise(LARGE, 6)).await;
    let answer = host.stranger().get(&asset.url).await;
    assert_eq!(answer.content_length(), Some(LARGE as u64));
    let mut body = answer.bytes_stream();
    let mut received = body.next().await.expect("a beginning").expect("bytes").len();

    OpenOptions::new().write(true).open(only_blob(&host)).and_then(|file| file.set_len(1 << 20)).expect("it is ours");

    let mut broken = false;
    while let Some(chunk) = body.next().await {
        match chunk {
            Ok(chunk) => received += chunk.len(),
            Err(_) => broken = true,
        }
    }
    assert!(broken && received < LARGE, "{received} bytes");
}

#[tokio::test]
async fn what_is_removed_while_it_is_sent_is_sent_to_its_end() {
    let host = Host::start().await;
    let bytes = noise(LARGE, 7);
    let asset = host.owner("acme").upload(bytes.clone()).await;
    let mut body = host.stranger().get(&asset.url).await.bytes_stream();
    let mut received = body.next().await.expect("a beginning").expect("bytes").to_vec();

    fs::remove_file(only_blob(&host)).expect("it is ours");

    while let Some(chunk) = body.next().await {
        received.extend(chunk.expect("bytes"));
    }
    assert!(received == bytes);
}

#[tokio::test]
async fn a_row_without_its_bytes_is_our_fault_and_says_nothing_of_where_they_were() {
    let host = Host::start().await;
    for length in [1_000, 1_000_000] {
        let asset = host.owner("acme").upload(noise(length, 8)).await;
        fs::remove_file(only_blob(&host)).expect("it is ours");

        let told = Told::of(host.stranger().get(&asset.url).await).await;
        assert_eq!((told.status, told.refusal()), (503, "service_unavailable".into()));
        assert!(!String::from_utf8_lossy(&told.body).contains("blobs"));
        assert_eq!(told.header("content-disposition"), "");
    }
}

#[tokio::test]
async fn an_answer_without_a_body_ends_with_its_head() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(noise(1_000_000, 9)).await;
    let path = asset.url.split_once("/a/").expect("a capability URL").1;
    let mut stream = TcpStream::connect(host.address()).await.expect("a connection");

    for (request, status, length) in [
        (format!("HEAD /a/{path} HTTP/1.1"), "200", Some("1000000")),
        (format!("HEAD /a/{path}/x HTTP/1.1\r\nrange: bytes=0-1"), "200", Some("1000000")),
        ("HEAD /a/nothing HTTP/1.1".into(), "404", Some("50")),
        ("HEAD /healthz HTTP/1.1".into(), "200", Some("15")),
        (format!("OPTIONS /a/{path} HTTP/1.1"), "204", None),
        (format!("GET /a/{path} HTTP/1.1\r\nif-none-match: *"), "304", None),
        (format!("HEAD /a/{path} HTTP/1.1"), "200", Some("1000000")),
    ] {
        stream.write_all(format!("{request}\r\nhost: x\r\n\r\n").as_bytes()).await.expect("it is open");
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head.push(char::from(stream.read_u8().await.expect("it is open")));
        }
        // A byte that followed the last answer would stand before this one.
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {head}");
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length")).map(|(_, value)| value);
        assert_eq!(found, length, "{request}: {head}");
        assert!(!head.to_ascii_lowercase().contains("transfer-encoding"), "{head}");
    }
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_its_bytes_and_the_end_of_the_connection() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload("words and more words\n".repeat(10_000)).await;
    let path = asset.url.split_once("/a/").expect("a capability URL").1;

    let request = format!("GET /a/{path} HTTP/1.0\r\n\r\n");
    let heard = raw::send(host.address(), &[request.as_bytes()], Duration::from_secs(10)).await;

    assert_eq!((heard.status(), heard.body().len()), (200, 210_000));
}

/// The one file of the store that holds an asset's bytes.
fn only_blob(host: &Host) -> PathBuf {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                files(&entry, found);
            } else if entry.extension().is_none() {
                found.push(entry);
            }
        }
    }
    let mut found = Vec::new();
    files(&host.folder().join("blobs/t"), &mut found);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// How many files of that folder this process has open.
fn open_files_in(folder: &Path) -> usize {
    let handles = fs::read_dir("/proc/self/fd").expect("Linux").flatten();
    handles.filter_map(|handle| fs::read_link(handle.path()).ok()).filter(|file| file.starts_with(folder)).count()
}

async fn within(time: Duration, mut true_at_last: impl FnMut() -> bool) {
    let waiting = async {
        while !true_at_last() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(time, waiting).await.expect("in time");
}
