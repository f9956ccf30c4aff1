//! Keys that follow one another while everybody goes on asking.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::index::Kind;
use crate::harness::process::{Place, Server, ran, url};

/// Longer than a service takes to see a ring that was replaced.
const LATER: &str = "4s";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_rotated_under_load_and_not_one_request_fails() {
    let place = Place::new();
    let server = place.serve().await;
    let asset = server.upload(png(3, 3)).await;
    let (durable, delivery) = (url(&asset).to_owned(), minted(&server, &asset).await);
    let done = AtomicBool::new(false);
    let reading = async |url: &str| {
        let mut opened = 0;
        while !done.load(Ordering::Relaxed) {
            assert_eq!(server.opens(url).await, 200, "after {opened}");
            opened += 1;
        }
        opened
    };
    let minting = async {
        let mut kids = BTreeSet::new();
        while !done.load(Ordering::Relaxed) {
            let url = minted(&server, &asset).await;
            assert_eq!(server.opens(&url).await, 200, "what was made a moment ago opens");
            kids.insert(kid(&url).to_owned());
        }
        kids
    };
    let rotating = async {
        for _ in 0..4 {
            let before = kid(&minted(&server, &asset).await).to_owned();
            rotate(&place, "0s").await;
            server.signal(Signal::HUP);
            takes_over(&server, &asset, &before).await;
        }
        done.store(true, Ordering::Relaxed);
    };

    let (opened, shared, kids, ()) = tokio::join!(reading(&durable), reading(&delivery), minting, rotating);

    assert!(opened > 20 && shared > 20, "{opened} and {shared} requests: too few to tell anything");
    assert!(kids.len() >= 4, "{kids:?}");
    let again = server.request(Method::POST, &path(&asset)).json(&json!({"class": "durable"})).send().await;
    let again: Value = again.expect("an answer").json().await.expect("JSON");
    assert_eq!(again["url"], asset["url"], "the log's string is the same");
    assert!(server.stop().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_reads_the_ring_later_never_meets_a_key_that_it_does_not_know() {
    let place = Place::on(Kind::Postgres, "");
    let (early, late) = (place.serve().await, place.serve_another().await);
    let asset = early.upload(png(3, 3)).await;
    for _ in 0..2 {
        let before = kid(&minted(&early, &asset).await).to_owned();
        rotate(&place, LATER).await;
        // One is told at once; the other finds out when it looks.
        early.signal(Signal::HUP);
        let began = Instant::now();
        loop {
            let url = minted(&early, &asset).await;
            let there = late.url(url.trim_start_matches(&early.url("")));
            assert_eq!(late.opens(&there).await, 200, "{:?} after the rotation", began.elapsed());
            if kid(&url) != before {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "the new key never signs");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    assert!(early.stop().await.success() && late.stop().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_stays_while_a_delivery_url_that_it_signed_can_live() {
    let place = Place::new();
    place.must_run(&["keys", "rotate"]);
    let server = place.serve().await;
    let sent = server.request(Method::POST, "/v1/assets").body("hello").send().await.expect("an answer");
    let asset: Value = sent.json().await.expect("JSON");
    let delivery = minted(&server, &asset).await;
    let meta = path(&asset).trim_end_matches("/urls").to_owned();
    assert_eq!(server.request(Method::DELETE, &meta).send().await.expect("an answer").status(), 204);
    assert!(server.stop().await.success());
    let old = place.must_run(&["keys", "list"]).stdout.split_whitespace().next().expect("a kid").to_owned();
    assert!(!delivery.is_empty());
    rotate(&place, "0s").await;

    let refused = place.run(&["keys", "retire", &old]);

    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stdout.starts_with(&format!("0 live durable URLs hang on {old}\n")), "{refused:?}");
    assert!(refused.stdout.contains("delivery URLs that it signed may live until "), "{refused:?}");
    assert!(place.must_run(&["keys", "list"]).stdout.contains(&format!("{old}  verifies")));
    place.must_run(&["keys", "retire", &old, "--force"]);
}

/// Makes a new key, which signs after that time.
async fn rotate(place: &Place, after: &str) {
    let mut command = place.command(&["keys", "rotate"]);
    command.env("MEDIAKEEP__KEYS__ACTIVATE_AFTER", after);
    let ran = tokio::task::spawn_blocking(move || ran(command)).await.expect("it does not panic");
    assert_eq!(ran.code, 0, "{ran:?}");
}

async fn takes_over(server: &Server, asset: &Value, before: &str) {
    let began = Instant::now();
    while kid(&minted(server, asset).await) == before {
        assert!(began.elapsed() < Duration::from_secs(60), "the new key never signs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn minted(server: &Server, asset: &Value) -> String {
    let request = server.request(Method::POST, &path(asset)).json(&json!({"class": "delivery"}));
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 201);
    let answer: Value = answer.json().await.expect("JSON");
    url(&answer).to_owned()
}

fn path(asset: &Value) -> String {
    format!("/v1/assets/{}/urls", asset["asset"]["assetId"].as_str().expect("an id"))
}

/// The head of the URL's token, which names its key.
fn kid(url: &str) -> &str {
    url.rsplit("/a/").next().and_then(|token| token.split('.').next()).expect("a token")
}
