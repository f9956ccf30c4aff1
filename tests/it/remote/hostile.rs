//! The other side does what it likes.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mediakeep::config::units::Span;
use mediakeep::remote::address::is_public;
use mediakeep::remote::{Bounded, Net, Resolver};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{HERE, Names, answering, elsewhere, host, ingest, ok, reason, to};
use crate::harness::Host;

#[tokio::test]
async fn a_redirect_to_what_is_not_fetched_is_refused_and_a_relative_one_is_followed() {
    for location in [
        "ftp://x.test/a",
        "file:///etc/passwd",
        "data:text/plain,inside",
        "gopher://x.test:70/_",
        "http://user:word@x.test/",
        "http://x.test:22/",
        "//127.0.0.1:22/",
        "http://localhost/",
        "http:2130706433",
        "http://[::1]:80/",
        "http://[fe80::1%25eth0]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:7f00:1::]/",
        "http://0251.0376.0251.0376/",
    ] {
        let (address, ..) = elsewhere(move |_| to(location)).await;
        let host = host(address.port(), vec![vec![HERE]], false).await;
        // The name is believed; literal addresses are not.
        host.app().remote.see(lax_names());
        let told = ingest(&host.owner("acme"), &format!("http://x.test:{}/", address.port())).await;
        assert_eq!(reason(&told), "fetch_refused", "{location}");
        assert!(host.becomes_bare().await, "{location}");
    }
    for location in ["found", "/found", "?found", "//x.test:PORT/found"] {
        let (address, ..) = answering(move |heard, address| match heard.contains("found") {
            true => ok("text/plain", b"there"),
            false => to(&location.replace("PORT", &address.port().to_string())),
        })
        .await;
        let host = host(address.port(), vec![vec![HERE]], true).await;
        let told = ingest(&host.owner("acme"), &format!("http://x.test:{}/", address.port())).await;
        assert_eq!(told.status, 201, "{location}: {}", told.json());
    }
}

/// Names lead to this machine; of the addresses that stand in URLs none of these is this one.
fn lax_names() -> Net {
    Net {
        resolver: Arc::new(Names(vec![vec![HERE]], 0.into())),
        allows: |address| address == HERE || is_public(address),
    }
}

#[tokio::test]
async fn headers_without_end_and_bytes_that_are_compressed_are_not_taken() {
    let huge = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(4 << 20)).into_bytes();
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(5_000)).into_bytes();
    let coded = |coding: &str| {
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: 4\r\nconnection: close\r\n\r\nabcd")
            .into_bytes()
    };
    let upgrade = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n".to_vec();
    for (what, answer) in [
        ("one long header", huge),
        ("many headers", many),
        ("gzip", coded("gzip")),
        ("two codings", coded("identity, br")),
        ("another protocol", upgrade),
        ("no HTTP", b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()),
    ] {
        let (address, ..) = elsewhere(move |_| answer.clone()).await;
        let host = host(address.port(), vec![vec![HERE]], true).await;
        let told = ingest(&host.owner("acme"), &format!("http://x.test:{}/", address.port())).await;
        assert_eq!(reason(&told), "fetch_failed", "{what}");
        assert!(host.becomes_bare().await, "{what}");
    }
}

#[tokio::test]
async fn a_body_that_drips_ends_with_the_time_and_not_with_its_last_byte() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let drips = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = [0; 4_096];
        let _ = stream.read(&mut head).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n").await;
        let mut dripped = 0;
        while stream.write_all(b"x").await.is_ok() {
            dripped += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        dripped
    });
    let host = host(port, vec![vec![HERE]], true).await;

    let told = ingest(&host.owner("acme"), &format!("http://x.test:{port}/")).await;

    assert_eq!(reason(&told), "fetch_failed");
    assert!(host.becomes_bare().await);
    assert!(drips.await.expect("it ends") < 9_000, "the connection was closed long before the end");
}

#[tokio::test]
async fn a_type_that_is_none_is_passed_over() {
    for mime_type in ["nonsense", "image/png image/jpeg", &format!("image/{}", "x".repeat(400))] {
        let mime_type = mime_type.to_owned();
        let (address, ..) = elsewhere(move |_| ok(&mime_type, b"hello there")).await;
        let host = host(address.port(), vec![vec![HERE]], true).await;
        let told = ingest(&host.owner("acme"), &format!("http://x.test:{}/", address.port())).await;
        assert_eq!(told.status, 201, "{}", told.json());
        assert!(told.json()["asset"]["declaredMimeType"].is_null());
    }
}

#[tokio::test]
async fn whoever_has_no_place_has_nothing_fetched() {
    let (address, count, _) = elsewhere(|_| ok("text/plain", b"hello")).await;
    let host = Host::with(|settings| {
        settings.remote.enabled = true;
        settings.remote.allow_ports = vec![address.port()];
        settings.remote.timeout = Span::seconds(5);
        settings.limits.uploads_per_tenant = 1;
    })
    .await;
    host.app().remote.see(Net { resolver: Arc::new(Names(vec![vec![HERE]], 0.into())), allows: |_| true });
    let slots = host.app().upload_slots(&"acme".parse().expect("a tenant"));
    let held = slots.try_acquire_owned().expect("a place");
    let owner = host.owner("acme");
    let url = format!("http://x.test:{}/", address.port());
    let parts = json!({"runId": "r", "modalities": ["image"], "fetch": true, "messages": [{"content": [
        {"type": "image", "mimeType": "image/png", "url": url}]}]});

    assert_eq!(ingest(&owner, &url).await.status, 429);
    assert_eq!(owner.post("/v1/content-parts/normalize", &parts).await.status(), 429);

    assert_eq!(count.load(Ordering::SeqCst), 0);
    drop(held);
    assert_eq!(owner.post("/v1/content-parts/normalize", &parts).await.status(), 200);
}

/// Counts who asks it, and never answers.
#[derive(Debug, Default)]
struct Silent(AtomicUsize);

impl Resolver for Silent {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().boxed()
    }
}

#[tokio::test]
async fn names_that_nobody_answers_for_take_a_bounded_number_of_look_ups_also_when_they_are_given_up() {
    let silent = Arc::new(Silent::default());
    let bounded = Bounded::new(silent.clone(), 2);
    for _ in 0..5 {
        let given_up = tokio::time::timeout(Duration::from_millis(20), bounded.resolve("x.test")).await;
        assert!(given_up.is_err());
    }
    assert_eq!(silent.0.load(Ordering::SeqCst), 2);
}
