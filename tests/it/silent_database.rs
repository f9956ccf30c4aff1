//! A database that says nothing, or is busy with somebody else: every request is answered in the end, nothing is half done, and the first
//! request after it is answered as if nothing had been.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};

use crate::harness::bytes::noise;
use crate::harness::index::Kind;
use crate::harness::lines::Line;
use crate::harness::process::{Place, Server, eventually, url};
use crate::harness::raw::Wire;

/// Nobody waits longer than this; what the service says itself is far below.
const PATIENCE: Duration = Duration::from_secs(100);

/// So many of each kind ask at once: more than there are connections.
const EACH: u64 = 6;

/// One of everything that needs the index; the bodies of answers, each with its status.
async fn everything(server: &Server, asset: &Value, round: u64) -> Vec<(String, StatusCode, bool)> {
    let id = asset["asset"]["assetId"].as_str().expect("an id");
    let asks = (0..EACH).flat_map(|n| {
        let octets = |request: reqwest::RequestBuilder| request.header("content-type", "application/octet-stream");
        let seed = 1_000 + 100 * round + n;
        let upload = || octets(server.request(Method::POST, "/v1/runs/run-1/assets")).body(noise(20_000, seed));
        [
            ("upload", upload()),
            ("upload with a key", upload().header("idempotency-key", format!("key-{round}-{n}"))),
            ("run", server.request(Method::PUT, &format!("/v1/runs/run-{round}-{n}")).json(&json!({}))),
            ("metadata", server.request(Method::GET, &format!("/v1/assets/{id}"))),
            ("list", server.request(Method::GET, "/v1/assets")),
            (
                "mint",
                server.request(Method::POST, &format!("/v1/assets/{id}/urls")).json(&json!({"class": "delivery"})),
            ),
        ]
    });
    let answers = asks.map(async |(name, request)| {
        let answer = request.timeout(PATIENCE).send().await;
        let answer = answer.unwrap_or_else(|error| unreachable!("{name} is answered: {error}"));
        let (status, again) = (answer.status(), answer.headers().contains_key("retry-after"));
        (format!("{name}: {}", answer.text().await.expect("text")), status, again)
    });
    join_all(answers).await
}

fn all_come_again(told: &[(String, StatusCode, bool)]) {
    for (said, status, again) in told {
        assert!(*status == StatusCode::SERVICE_UNAVAILABLE && *again, "{status}: {said}");
    }
}

/// Waits until the service says whether it is ready, of which it tells for a second what it has seen.
async fn says(server: &Server, status: u16, words: &str) {
    eventually(async || {
        let answer = server.request(Method::GET, &server.url("/readyz")).timeout(PATIENCE).send().await;
        let answer = answer.expect("an answer in time");
        answer.status() == status && answer.text().await.expect("text").contains(words)
    })
    .await;
}

fn all_are_done(told: &[(String, StatusCode, bool)]) {
    for (said, status, _) in told {
        assert!(status.is_success(), "{status}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_says_nothing_is_told_of_in_time_and_used_again_at_once() {
    let place = Place::on(Kind::Postgres, "");
    let line = Line::to(place.index().url()).await;
    let mut command = place.command(&["serve"]);
    command.env("MEDIAKEEP__INDEX__URL", line.address());
    let server = place.start(command).await;
    let asset = server.upload(noise(20_000, 1)).await;
    all_are_done(&everything(&server, &asset, 0).await);
    // Some are in the middle of their bytes.
    let mut wires = Vec::new();
    for _ in 0..4 {
        let mut wire = Wire::open(([127, 0, 0, 1], server.port()).into()).await;
        wire.send(&head(40_000)).await;
        wire.send(&noise(20_000, 2)).await;
        wires.push(wire);
    }
    eventually(async || server.opens(url(&asset)).await == 200).await;

    line.hold();
    // Some go away while they wait.
    let gone = (0..EACH).map(async |n| {
        let request = Client::new().post(server.url("/v1/runs/run-1/assets")).bearer_auth(Server::key());
        let _ = request.body(noise(20_000, 500 + n)).timeout(Duration::from_millis(300)).send().await;
    });
    let in_the_middle = join_all(wires.into_iter().map(async |mut wire| {
        wire.send(&noise(20_000, 3)).await;
        wire.hear(PATIENCE).await
    }));
    let down = says(&server, 503, r#""reason":"index""#);
    let (told, middle, _, ()) = tokio::join!(everything(&server, &asset, 1), in_the_middle, join_all(gone), down);

    all_come_again(&told);
    for heard in middle {
        assert!(heard.status() == 503 && heard.0.to_lowercase().contains("retry-after"), "{}", heard.0);
    }
    line.release();
    all_are_done(&everything(&server, &asset, 2).await);
    says(&server, 200, "ready").await;
    assert!(server.stop().await.success());
    place.must_run(&["verify", "--deep"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_all_wait_for_somebody_else_are_told_of_in_time_and_used_again_at_once() {
    let place = Place::on(Kind::Postgres, "");
    let server = place.serve().await;
    let asset = server.upload(noise(20_000, 1)).await;
    let mut other = PgConnection::connect(place.index().url()).await.expect("the database answers");
    other.execute("BEGIN; LOCK TABLE mk_assets, mk_runs, mk_blobs, mk_schema").await.expect("a lock");

    let (told, ()) = tokio::join!(everything(&server, &asset, 1), says(&server, 503, r#""reason":"index""#));

    all_come_again(&told);
    other.execute("ROLLBACK").await.expect("the lock is gone");
    all_are_done(&everything(&server, &asset, 2).await);
    says(&server, 200, "ready").await;
    other.close().await.expect("a goodbye");
    assert!(server.stop().await.success());
    place.must_run(&["verify", "--deep"]);
}

/// The head of an upload of so many bytes.
fn head(length: usize) -> Vec<u8> {
    format!(
        "POST /v1/runs/run-1/assets HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n",
        Server::key()
    )
    .into_bytes()
}
