//! The process is killed at any moment: what was acknowledged is there afterwards, and what was not leaves nothing behind.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server, files};

/// An upload that was acknowledged: its URL, and of which bytes it is.
type Acknowledged = (String, usize, u64);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_every_crash() {
    let kills = std::env::var("MEDIAKEEP_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(10);
    let acknowledged = killed_again_and_again(kills).await;
    assert!(acknowledged > kills, "{acknowledged} uploads in {kills} lives: too few to tell anything");
}

#[tokio::test]
async fn a_first_start_that_is_cut_off_stands_in_nobodys_way() {
    let place = Place::new();
    for millis in [1, 3, 6, 10, 15, 20, 30, 40, 60, 90] {
        let mut child =
            place.command(&["serve"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process");
        tokio::time::sleep(Duration::from_millis(millis)).await;
        child.kill().expect("a process to kill");
        child.wait().expect("its end");
    }
    let server = place.serve().await;
    let answer = server.request(Method::POST, "/v1/assets").body("hello").send().await.expect("an answer");
    assert_eq!(answer.status(), 201);
    assert!(server.stop().await.success());
    assert_eq!(place.run(&["verify"]).code, 0);
}

#[tokio::test]
async fn an_index_that_was_cut_off_while_it_was_made_is_made_anew() {
    let made = Place::new();
    assert!(made.serve().await.stop().await.success());
    let conf = std::fs::read(made.file("index/conf")).expect("the shape of sled's log");
    for length in [0, 1, 8, 9, conf.len() - 4, conf.len() - 1, conf.len()] {
        let place = Place::new();
        std::fs::create_dir_all(place.file("index/blobs")).expect("a folder");
        place.write("index/conf", &conf[..length]);
        let server = place.serve().await;
        server.upload(noise(100, 1)).await;
        assert!(server.stop().await.success());
        place.must_run(&["verify"]);
    }
}

/// Kills a server so many times while it is being sent to, and looks at what is left; says how many uploads were acknowledged.
async fn killed_again_and_again(kills: usize) -> usize {
    let place = Place::with("[retention]\norphan_grace = \"0s\"\nsweep_interval = \"1s\"");
    let acknowledged = Mutex::new(Vec::new());
    for life in 0..kills {
        let server = place.serve().await;
        let sending = join_all((0..6).map(|sender| send_on(&place, &server, life, sender, &acknowledged)));
        tokio::select! {
            _ = sending => panic!("the senders stop only when the server does: {}", place.log()),
            () = a_life(life, &acknowledged) => {}
        }
        server.kill().await;
        let verified = place.run(&["verify"]);
        assert_eq!(verified.code, 0, "after {life} kills: {verified:?}");
    }
    let acknowledged = acknowledged.into_inner().expect("no panic");

    let server = place.serve().await;
    for (url, length, seed) in &acknowledged {
        let answer = server.request(Method::GET, url).send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "an acknowledged asset is gone: {length} bytes of {seed}");
        assert_eq!(answer.bytes().await.expect("a body"), noise(*length, *seed));
    }
    let assets = assets(&server).await;
    assert!(server.stop().await.success());
    place.index().uploads_fall_silent().await;
    place.must_run(&["sweep"]);
    let verified = place.must_run(&["verify"]);
    assert!(verified.stdout.contains(", 0 without a row"), "{}", verified.stdout);
    let staged = files(&place.file("blobs/staging")).len();
    assert_eq!(staged, 0, "staged files stay behind");
    assert_eq!(
        records(&place),
        assets,
        "each asset has its recovery record, nothing else has one, and none is half written"
    );
    acknowledged.len()
}

/// The assets, by the name of what each has among the recovery records.
async fn assets(server: &Server) -> BTreeSet<String> {
    let (mut all, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let path = format!("/v1/assets?limit=500{cursor}");
        let page: Value =
            server.request(Method::GET, &path).send().await.expect("an answer").json().await.expect("JSON");
        let ids = page["assets"].as_array().expect("a list").iter().filter_map(|asset| asset["assetId"].as_str());
        all.extend(ids.map(|id| format!("{id}/00000000000000000001.json")));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Every file among the recovery records of assets, by the folder that it lies in and its own name.
fn records(place: &Place) -> BTreeSet<String> {
    let tenants =
        std::fs::read_dir(place.file("blobs/t")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let all = tenants.flat_map(|tenant| {
        let folder = tenant.join("r/a");
        let inside = files(&folder).into_iter();
        inside.map(move |file| file.strip_prefix(&folder).expect("it lies inside").display().to_string())
    });
    all.collect()
}

/// Anywhere between the first byte and the middle of everything; two lives of three do not end before they have done something.
async fn a_life(life: usize, acknowledged: &Mutex<Vec<Acknowledged>>) {
    let done = || acknowledged.lock().expect("no panic").len();
    let before = done();
    tokio::time::sleep(Duration::from_millis(40 + (life as u64 * 7919) % 700)).await;
    while !life.is_multiple_of(3) && done() < before + 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Sends one upload after another, in every way there is, until nobody answers.
async fn send_on(place: &Place, server: &Server, life: usize, sender: usize, acknowledged: &Mutex<Vec<Acknowledged>>) {
    for round in 0.. {
        let seed = match round % 3 {
            // The same bytes from everybody, life after life.
            0 => 1,
            _ => (life * 10_000 + sender * 1_000 + round) as u64,
        };
        let length = [300, 70_000, 1_500_000][(sender + round) % 3];
        let bytes = noise(length, seed);
        let run = format!("/v1/runs/run-{sender}/assets");
        let request = server.request(Method::POST, &run);
        let request = match round % 2 {
            0 => request.header("idempotency-key", format!("{life}-{sender}-{round}")),
            _ => request,
        };
        let request = match sender % 2 {
            0 => request
                .json(&json!({"base64": data_encoding::BASE64.encode(&bytes), "mimeType": "application/x-noise"})),
            _ => request.header("content-type", "application/octet-stream").body(bytes),
        };
        let Ok(answer) = request.send().await else {
            return;
        };
        let status = answer.status();
        let Ok(answer) = answer.json::<Value>().await else {
            return;
        };
        // The sweep that runs beside has no grace at all, and yet leaves alone what is on its way.
        assert_eq!(status, 201, "{answer}: {}", place.log());
        let url = answer["url"].as_str().expect("a URL").to_owned();
        acknowledged.lock().expect("no panic").push((url, length, seed));
    }
}
