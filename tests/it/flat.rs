//! Memory that stays flat, whatever is sent and whoever goes away.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::harness::bytes::noise;
use crate::harness::form::{self, Form};
use crate::harness::process::{Place, Server, url};

/// So many send the same at a time.
const AT_ONCE: usize = 16;

/// As long as what hostile forms have where little should be.
const LONG: usize = 10 << 20;

/// Less than a quarter of what they send at a time, and more than a server of this size needs for its connections.
const ROOM: u64 = 40 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forms_that_never_come_to_their_point_take_no_memory() {
    let place = Place::new();
    let server = Arc::new(place.serve().await);
    server.upload(noise(1 << 20, 1)).await;
    assert_eq!(send(&server, Form::new().file(b"bytes").end().into()).await, Some(201));
    let before = server.peak_memory();

    let header = format!("Content-Disposition: form-data; name=\"file\"; x=\"{}", "x".repeat(LONG));
    let parts = (0..10_000).fold(Form::new(), |form, n| form.text(&format!("p{n}"), &"x".repeat(LONG / 10_000)));
    for (what, body) in [
        ("a header line without an end", Form::new().part(&header, b"x").end()),
        ("a name without an end", Form::new().text(&"x".repeat(LONG), "x").end()),
        ("ten thousand parts", parts.end()),
        ("a member without an end", Form::new().text("alt", &"x".repeat(LONG)).end()),
        ("only garbage", noise(LONG, 3)),
        ("garbage in front", [noise(LONG, 4), Form::new().file(b"bytes").end()].concat()),
    ] {
        let body = Bytes::from(body);
        let mut senders = JoinSet::new();
        for _ in 0..AT_ONCE {
            let (server, body) = (server.clone(), body.clone());
            senders.spawn(async move { send(&server, body).await });
        }
        while let Some(status) = senders.join_next().await {
            // One that is still sending when it is refused may not hear of it.
            assert!(matches!(status.expect("an end"), None | Some(400 | 503)), "{what}");
        }
        let grown = server.peak_memory().saturating_sub(before);
        assert!(grown < ROOM, "{what}: {grown} bytes more than before");
    }
    assert_eq!(send(&server, Form::new().file(b"bytes").end().into()).await, Some(201));
}

/// The status that answers a form, unless the connection ends before.
async fn send(server: &Server, body: Bytes) -> Option<u16> {
    let request = server.request(Method::POST, "/v1/runs/run-1/assets").header("content-type", form::TYPE);
    request.body(body).send().await.ok().map(|answer| answer.status().as_u16())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_clients_that_leave_leave_no_memory_behind() {
    let place = Place::new();
    let server = place.serve().await;
    let kept = server.upload(noise(64 << 20, 5)).await;
    let path = url(&kept).trim_start_matches(&server.url("")).to_owned();
    leave(&server, &path).await;
    let before = server.peak_memory();

    for _ in 0..300 {
        leave(&server, &path).await;
    }

    let grown = server.peak_memory().saturating_sub(before);
    assert!(grown < ROOM, "{grown} bytes more than before");
    assert_eq!(server.opens(url(&kept)).await, 200);
}

/// Asks for the bytes, reads their beginning, and goes.
async fn leave(server: &Server, path: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.expect("a connection");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.expect("it is open");
    let mut begun = [0; 1_000];
    stream.read_exact(&mut begun).await.expect("the beginning");
    assert!(begun.starts_with(b"HTTP/1.1 200 "));
}
