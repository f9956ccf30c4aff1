//! More than the service can: what it takes it answers, everybody else is told to come again, and it is itself again at once.
//!
//! The service is a process of its own, so that its memory is its own. Its places are held by clients that take their time; when all of
//! them are taken its metrics say so, and no clock has to.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::iter;
use mediakeep::app::gate::{BODIES, READS, UPLOADS};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::harness::bytes::noise;
use crate::harness::index::Kind;
use crate::harness::process::{Place, Server, client, eventually, free_port, url};

/// So many of the others ask at a time.
const AT_A_TIME: usize = 128;

/// So often a slow client says or takes something: who says and takes nothing is given up after half a minute.
const PACE: Duration = Duration::from_secs(5);

/// What all that is taken may need: 1 MiB for each upload, and what a process needs anyway.
const UPLOADS_BYTES: u64 = UPLOADS as u64 * (3 << 19) + (64 << 20);

/// The same of readers, of which each has a piece on its way and another that waits to be sent.
const READS_BYTES: u64 = READS as u64 * (256 << 10) + (64 << 20);

/// What a second flood that is turned away may add to the first.
const FLOOD_BYTES: u64 = 64 << 20;

/// A service whose metrics are looked at from outside.
struct Watched {
    place: Place,
    server: Server,
    metrics: String,
    client: Client,
}

impl Watched {
    async fn start() -> Self {
        let place = Place::with(&format!("[limits]\nuploads_per_tenant = {UPLOADS}"));
        let admin = format!("127.0.0.1:{}", free_port());
        let mut command = place.command(&["serve"]);
        command.env("MEDIAKEEP__SERVER__ADMIN_LISTEN", &admin).env("MEDIAKEEP__TELEMETRY__LOG", "warn");
        // A thousand readers who each ask a database for the row of what they read are another story than theirs.
        command.env("MEDIAKEEP__CAPABILITIES__REVOCATION_LAG", "1h");
        let server = place.start(command).await;
        Self { place, server, metrics: format!("http://{admin}/metrics"), client: client() }
    }

    /// How many places of the lane are taken.
    async fn taken(&self, lane: &str) -> usize {
        let text = self.client.get(&self.metrics).send().await.expect("metrics").text().await.expect("text");
        let name = format!("mediakeep_requests_under_way{{lane=\"{lane}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name)).expect("a gauge");
        line.parse().expect("a number")
    }

    async fn full(&self, lane: &str, places: usize) {
        eventually(async || self.taken(lane).await == places).await;
    }

    /// Asks so often, and counts how many were taken. Everybody else was told to come again.
    async fn flood(&self, requests: usize, request: impl Fn() -> RequestBuilder) -> usize {
        let answers = iter((0..requests).map(|_| request().send())).buffer_unordered(AT_A_TIME);
        let taken = answers.map(|answer| {
            let answer = answer.expect("an answer");
            if answer.status().is_success() {
                return 1;
            }
            comes_again(&answer);
            0
        });
        taken.fold(0, async |sum, one| sum + one).await
    }

    /// Stops the service; what it leaves is whole.
    async fn stop(self) {
        assert!(self.server.stop().await.success());
        self.place.must_run(&["verify", "--deep"]);
    }
}

fn comes_again(answer: &Response) {
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.headers().contains_key("retry-after"), "{:?}", answer.headers());
}

/// All that were taken end well. Of hundreds that end in one moment many may wait for a connection to the database for longer than anybody
/// should, on a machine that has other work: they are told to come again, and they are not all.
async fn end_well(slow: Vec<JoinHandle<String>>) {
    let (all, mut well) = (slow.len(), 0);
    for slow in slow {
        let said = slow.await.expect("an answer");
        let comes_again = said.starts_with("HTTP/1.1 503") && said.to_ascii_lowercase().contains("\r\nretry-after: ");
        let done = said.starts_with("HTTP/1.1 20");
        assert!(done || comes_again, "{said}");
        well += usize::from(done);
    }
    let least = if Kind::of_this_process() == Kind::Postgres { all / 8 } else { all };
    assert!(well >= least, "{well} of {all} ended well");
}

/// A socket of a client with an address of its own, by which clients are told apart.
fn socket_of(client: usize) -> TcpSocket {
    let [high, low] = [client / 200, client % 200 + 1].map(|part| u8::try_from(part).expect("few clients"));
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 1, high, low], 0).into()).expect("an address of this machine");
    socket
}

/// A request of a client whose body comes up to `most`, then a byte now and then until it is told to end; its answer. In a task of its own, since
/// nothing that the story does may keep it from its pace.
fn slow_sender(
    (client, port): (usize, u16),
    head: &str,
    body: Vec<u8>,
    most: usize,
    end: &watch::Receiver<bool>,
) -> JoinHandle<String> {
    let kind = if head.starts_with("PUT") { "application/json" } else { "application/octet-stream" };
    let head = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        Server::key(),
        body.len()
    );
    let mut end = end.clone();
    tokio::spawn(async move {
        let mut wire = socket_of(client).connect(([127, 0, 0, 1], port).into()).await.expect("a connection");
        let sending = async {
            wire.write_all(head.as_bytes()).await?;
            let (most, mut rest) = body.split_at(most);
            wire.write_all(most).await?;
            while tokio::time::timeout(PACE, end.wait_for(|end| *end)).await.is_err() && rest.len() > 1 {
                wire.write_all(&rest[..1]).await?;
                rest = &rest[1..];
            }
            wire.write_all(rest).await
        };
        let sent = sending.await;
        let mut said = Vec::new();
        let heard = wire.read_to_end(&mut said).await;
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(sent.is_ok(), "it is closed before its end: {sent:?} {heard:?} {said}");
        said
    })
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
}

/// A reader who takes a little now and then until it is told to end, and then reads all; what it has read. Where its connection ends before,
/// it asks again.
fn slow_reader((client, port): (usize, u16), path: &str, end: &watch::Receiver<bool>) -> JoinHandle<Vec<u8>> {
    let (request, mut end) = (get(path), end.clone());
    tokio::spawn(async move {
        loop {
            // A window as small as the system allows, so that what is not read does not lie in its buffers.
            let socket = socket_of(client);
            socket.set_recv_buffer_size(4 << 10).expect("a buffer");
            let mut wire = socket.connect(([127, 0, 0, 1], port).into()).await.expect("a connection");
            wire.write_all(request.as_bytes()).await.expect("it is heard");
            let mut read = Vec::new();
            while tokio::time::timeout(PACE, end.wait_for(|end| *end)).await.is_err() && takes_some(&wire, &mut read) {}
            if *end.borrow() {
                wire.read_to_end(&mut read).await.expect("the rest");
                return read;
            }
        }
    })
}

/// Takes a little of what has come; whether the connection goes on. So small a window opens again when all that came is taken.
fn takes_some(wire: &TcpStream, read: &mut Vec<u8>) -> bool {
    let mut little = [0; 4 << 10];
    for _ in 0..8 {
        match wire.try_read(&mut little) {
            Ok(0) => return false,
            Ok(some) => read.extend_from_slice(&little[..some]),
            Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_beyond_what_it_takes_are_told_to_come_again_and_the_others_end_well() {
    let host = Watched::start().await;
    let server = &host.server;
    let kept = server.upload(noise(20_000, 1)).await;
    let before = server.peak_memory();
    let (end, ended) = watch::channel(false);
    let bytes = noise((1 << 20) + 64, 2);
    let mut slow = Vec::new();
    for n in 0..UPLOADS {
        let mut bytes = bytes.clone();
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        let head = "POST /v1/runs/run-1/assets";
        slow.push(slow_sender((n, server.port()), head, bytes, 1 << 20, &ended));
    }
    host.full("upload", UPLOADS).await;
    let octets = |request: RequestBuilder| request.header("content-type", "application/octet-stream");
    let more = noise(20_000, 3);
    let upload = || octets(server.request(Method::POST, "/v1/runs/run-1/assets")).body(more.clone());

    assert_eq!(host.flood(4 * UPLOADS, upload).await, 0, "all places are taken");
    let full = server.peak_memory();
    assert_eq!(host.flood(UPLOADS, upload).await, 0, "all places are taken");
    let flooded = server.peak_memory();

    assert!(full - before < UPLOADS_BYTES, "{} MiB for {UPLOADS} uploads", (full - before) >> 20);
    assert!(flooded - full < FLOOD_BYTES, "{} MiB for those that were turned away", (flooded - full) >> 20);
    // Nobody else waits for uploads.
    assert_eq!(server.opens(url(&kept)).await, 200);
    let revoke = server.request(Method::POST, "/v1/urls/revoke").json(&json!({"assetId": kept["asset"]["assetId"]}));
    assert_eq!(revoke.send().await.expect("an answer").status(), 200);
    assert_eq!(server.opens(&server.url("/readyz")).await, 200);
    end.send_replace(true);
    end_well(slow).await;
    server.upload(noise(20_000, 4)).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_beyond_what_it_sends_are_told_to_come_again_and_memory_is_bounded() {
    let host = Watched::start().await;
    let server = &host.server;
    let bytes = noise(8 << 20, 1);
    let kept = server.upload(bytes.clone()).await;
    let path = url(&kept).trim_start_matches(&server.url("")).to_owned();
    assert_eq!(server.opens(url(&kept)).await, 200);
    let before = server.peak_memory();
    let (end, ended) = watch::channel(false);
    let mut slow: Vec<_> = (0..READS).map(|n| slow_reader((n, server.port()), &path, &ended)).collect();
    host.full("read", READS).await;
    let read = || server.request(Method::GET, url(&kept));

    assert_eq!(host.flood(3 * READS, read).await, 0, "all places are taken");
    let full = server.peak_memory();
    assert_eq!(host.flood(READS, read).await, 0, "all places are taken");
    let flooded = server.peak_memory();

    assert!(full - before < READS_BYTES, "{} MiB for {READS} readers", (full - before) >> 20);
    assert!(flooded - full < FLOOD_BYTES, "{} MiB for those that were turned away", (flooded - full) >> 20);
    // Nobody else waits for readers.
    let more = server.upload(noise(20_000, 2)).await;
    assert_eq!(server.opens(&server.url("/readyz")).await, 200);
    // Most go away, and a few read to the end.
    slow.drain(4..).for_each(|slow| slow.abort());
    end.send_replace(true);
    for slow in slow {
        let read = slow.await.expect("an answer");
        assert!(read.starts_with(b"HTTP/1.1 200") && read.ends_with(&bytes));
    }
    eventually(async || host.taken("read").await < READS).await;
    assert_eq!(server.opens(url(&more)).await, 200);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_bodies_that_do_not_end_keep_no_upload_and_no_reader_out() {
    let host = Watched::start().await;
    let server = &host.server;
    let kept = server.upload(noise(20_000, 1)).await;
    let (end, ended) = watch::channel(false);
    let body = format!("{{{}}}", " ".repeat(64)).into_bytes();
    let slow = |n: usize| {
        let head = format!("PUT /v1/runs/slow-{n}");
        slow_sender((n, server.port()), &head, body.clone(), 1, &ended)
    };
    let slow: Vec<_> = (0..BODIES).map(slow).collect();
    host.full("body", BODIES).await;

    let put = || server.request(Method::PUT, "/v1/runs/run-2").json(&json!({}));
    assert_eq!(host.flood(4 * BODIES, put).await, 0, "all places are taken");

    assert_eq!(server.opens(url(&kept)).await, 200);
    server.upload(noise(20_000, 2)).await;
    end.send_replace(true);
    end_well(slow).await;
    assert_eq!(put().send().await.expect("an answer").status(), 200, "there is a place again");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_takes_all_it_gets_keeps_nobody_else_out() {
    let host = Watched::start().await;
    let server = &host.server;
    let kept = server.upload(noise(8 << 20, 1)).await;
    let path = url(&kept).trim_start_matches(&server.url("")).to_owned();
    let (end, ended) = watch::channel(false);
    let slow: Vec<_> = (0..READS / 2).map(|_| slow_reader((1, server.port()), &path, &ended)).collect();
    host.full("read", READS / 2).await;

    let mut another = socket_of(1).connect(([127, 0, 0, 1], server.port()).into()).await.expect("a connection");
    another.write_all(get(&path).as_bytes()).await.expect("it is heard");
    let mut said = String::new();
    another.read_to_string(&mut said).await.expect("an answer");

    assert!(said.starts_with("HTTP/1.1 503") && said.to_ascii_lowercase().contains("\r\nretry-after: "), "{said}");
    let read = || server.request(Method::GET, url(&kept));
    assert_eq!(host.flood(8, read).await, 8, "whoever comes from elsewhere is served");
    end.send_replace(true);
    slow.iter().for_each(JoinHandle::abort);
    host.stop().await;
}
