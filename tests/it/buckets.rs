//! Bytes in a bucket: of a server that somebody else wrote, and of one that fails us.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use mediakeep_storage::testing::{Misdeed, What};
use reqwest::Method;
use serde_json::Value;

use crate::harness::beside::Beside;
use crate::harness::bytes::noise;
use crate::harness::process::{Place, client, eventually, free_port, url};
use crate::harness::python;
use crate::harness::store::Store;

mod azure;
mod google;

/// The second server, of the Python package registry; it has nothing in common with the first but the protocol.
const MOTO: &str = "5.2.5";

/// More than two parts of an upload.
const LARGE: usize = 20 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_s3_server_keeps_what_was_acknowledged_and_gives_up_what_has_ended() {
    let moto = Moto::start().await;
    let place = Place::at(Store::elsewhere("s3://media/of/ours", moto.endpoint()));
    let server = place.serve().await;
    let bytes = noise(LARGE, 1);
    let (large, small) = (server.upload(bytes.clone()).await, server.upload(noise(1_000, 2)).await);

    let part = server
        .request(Method::GET, url(&large))
        .header("range", "bytes=8388600-8388619")
        .send()
        .await
        .expect("an answer");
    assert_eq!(part.status(), 206);
    assert_eq!(part.bytes().await.expect("a part")[..], bytes[8_388_600..8_388_620]);
    assert!(server.stop().await.success());

    place.must_run(&["verify", "--deep"]);
    let anew = format!("sled://{}", place.file("anew").display());
    place.must_run(&["index", "rebuild", "--to", &anew]);
    let mut command = place.command(&["serve"]);
    command.env("MEDIAKEEP__INDEX__URL", &anew);
    let server = place.start(command).await;
    let whole = server.request(Method::GET, url(&large)).send().await.expect("an answer");
    assert!(whole.bytes().await.expect("the bytes") == bytes);
    assert_eq!(moto.objects("of/ours/").await, 2);

    let erased = erase(&server, &large).await;
    assert_eq!(erased["bytesRemoved"], true);
    assert_eq!(moto.objects("of/ours/").await, 1);
    assert_eq!((server.opens(url(&large)).await, server.opens(url(&small)).await), (410, 200));
    assert!(server.stop().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_out_of_order_is_a_503_and_works_again_when_it_does() {
    let place = Place::in_bucket();
    let server = place.serve().await;
    let kept = server.upload(noise(200_000, 1)).await;
    let out_of_order = |times| {
        for method in ["PUT", "GET", "HEAD"] {
            place.store().server().misbehave(Misdeed { method, names: "/blobs", times, what: What::Refuse(503) });
        }
    };

    out_of_order(1_000);
    let read = server.request(Method::GET, url(&kept)).send().await.expect("an answer");
    let taken = server.request(Method::POST, "/v1/assets").body(noise(1_000, 2)).send().await.expect("an answer");
    // What was seen of the store before is told for a second.
    eventually(async || server.opens(&server.url("/readyz")).await == 503).await;

    for answer in [read, taken] {
        assert_eq!(answer.status(), 503);
        assert!(answer.headers().contains_key("retry-after"));
    }
    place.store().server().behave();
    assert_eq!(server.opens(url(&kept)).await, 200);
    server.upload(noise(1_000, 2)).await;
    assert!(server.stop().await.success());
    place.must_run(&["verify", "--deep"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_without_its_credentials_stops_the_start_with_a_sentence() {
    let place = Place::in_bucket();
    let mut command = place.command(&["serve"]);
    command.env_remove("AWS_SECRET_ACCESS_KEY");

    let ran = crate::harness::process::ran(command);

    assert_ne!(ran.code, 0);
    assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{}", ran.stderr);
}

/// What has to be true of a bucket of any kind. `known_to` gives a command what the store's own tools read from the environment.
async fn keeps_and_gives_up(place: &Place, known_to: impl Fn(Command) -> Command) {
    let server = place.start(known_to(place.command(&["serve"]))).await;
    let bytes = noise(LARGE, 1);
    let (large, small) = (server.upload(bytes.clone()).await, server.upload(noise(1_000, 2)).await);

    let part = server.request(Method::GET, url(&large)).header("range", "bytes=8388600-8388619");
    let part = part.send().await.expect("an answer");
    assert_eq!(part.status(), 206);
    assert_eq!(part.bytes().await.expect("a part")[..], bytes[8_388_600..8_388_620]);
    assert!(server.stop().await.success());
    for command in [&["verify", "--deep"][..], &["sweep"]] {
        let ran = crate::harness::process::ran(known_to(place.command(command)));
        assert_eq!(ran.code, 0, "{ran:?}");
    }

    let server = place.start(known_to(place.command(&["serve"]))).await;
    assert_eq!(erase(&server, &large).await["bytesRemoved"], true);
    assert_eq!((server.opens(url(&large)).await, server.opens(url(&small)).await), (410, 200));
    assert!(server.stop().await.success());
    let ran = crate::harness::process::ran(known_to(place.command(&["verify", "--deep"])));
    assert!(ran.code == 0 && ran.stdout.contains("1 blobs compared, 0 without a row"), "{ran:?}");
}

async fn erase(server: &crate::harness::process::Server, answer: &Value) -> Value {
    let id = answer["asset"]["assetId"].as_str().expect("an id");
    let erased =
        server.request(Method::DELETE, &format!("/v1/assets/{id}?erase=true")).send().await.expect("an answer");
    assert_eq!(erased.status(), 200);
    erased.json().await.expect("JSON")
}

/// A running server with one bucket.
struct Moto {
    port: u16,
    server: Beside,
}

impl Moto {
    async fn start() -> Self {
        let program = tokio::task::spawn_blocking(|| python::installed("moto", MOTO, "moto[s3,server]", "moto_server"));
        let program = program.await.expect("it does not panic");
        let moto = Self::serve(&program, free_port());
        let began = Instant::now();
        while client().put(format!("{}/media", moto.endpoint())).send().await.is_err() {
            let said = moto.server.complaints();
            assert!(began.elapsed() < Duration::from_secs(120), "moto does not answer: {said}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        moto
    }

    fn serve(program: &Path, port: u16) -> Self {
        let mut command = Command::new(program);
        Self { server: Beside::start(command.args(["--host", "127.0.0.1", "--port", &port.to_string()])), port }
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// How many blobs lie under that prefix.
    async fn objects(&self, prefix: &str) -> usize {
        let list = format!("{}/media?list-type=2&prefix={prefix}", self.endpoint());
        let list = client().get(list).send().await.expect("an answer").text().await.expect("a list");
        list.split("<Key>").skip(1).filter(|key| key.split('<').next().is_some_and(|key| key.contains("/b/"))).count()
    }
}
