//! What went wrong with several processes elsewhere.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Host;
use crate::harness::bytes::noise;
use crate::harness::index::{Home, Kind};
use crate::harness::process::{Place, Server, eventually, url};

const OCTETS: &str = "application/offset+octet-stream";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_with_one_key_at_two_replicas_make_one_asset() {
    let place = Place::shared("");
    let (one, other) = (place.serve().await, place.serve_another().await);
    let send = async |server: &Server, seed: u64| {
        let request = server.request(Method::POST, "/v1/runs/run-1/assets").header("idempotency-key", "key");
        let answer = request.header("content-type", "application/octet-stream").body(noise(20_000, seed)).send().await;
        let answer = answer.expect("an answer");
        let (status, said) = (answer.status().as_u16(), answer.json::<Value>().await.expect("JSON"));
        (status, said["asset"]["assetId"].as_str().map(str::to_owned), said["error"].as_str().map(str::to_owned))
    };
    let both = [&one, &other];

    let told = join_all((0..10).map(|n| send(both[n % 2], 1))).await;

    let made: Vec<_> = told.iter().filter(|(status, ..)| *status == 201).map(|(_, id, _)| id.clone()).collect();
    assert!(!made.is_empty() && made.iter().all(|id| id.is_some() && *id == made[0]), "{told:?}");
    let waits = Some("idempotency_in_flight".to_owned());
    assert!(told.iter().all(|(status, _, error)| *status == 201 || (*status == 409 && *error == waits)), "{told:?}");
    for server in both {
        assert_eq!(send(server, 1).await.1, made[0], "whoever is asked later");
        assert_eq!(send(server, 2).await.2.as_deref(), Some("idempotency_key_mismatch"));
    }
    assert_eq!(super::list(&one).await.len(), 1);
    assert!(one.stop().await.success() && other.stop().await.success());
    place.must_run(&["verify", "--deep"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_those_that_write_one_place_of_an_upload_at_two_replicas_one_wins() {
    let place = Place::shared("");
    let (one, other) = (place.serve().await, place.serve_another().await);
    let begun = one.request(Method::POST, "/v1/uploads").header("upload-length", 60_000);
    let begun = begun.header("tus-resumable", "1.0.0").send().await.expect("an answer");
    let path = begun.headers()["location"].to_str().expect("text").trim_start_matches(&one.url("")).to_owned();
    let append = async |server: &Server, at: usize, bytes: Vec<u8>| {
        let patch = server.request(Method::PATCH, &path).header("content-type", OCTETS).header("upload-offset", at);
        patch.header("tus-resumable", "1.0.0").body(bytes).send().await.expect("an answer").status().as_u16()
    };
    let both = [&one, &other];
    let mut right = Vec::new();
    for at in [0, 30_000] {
        let told = join_all((0..6).map(|n| append(both[n % 2], at, noise(30_000, (at + n) as u64)))).await;
        let won: Vec<usize> = (0..6).filter(|n| told[*n] == 204).collect();
        assert!(won.len() == 1 && told.iter().all(|status| [204, 409, 423].contains(status)), "{told:?}");
        right.extend(noise(30_000, (at + won[0]) as u64));
    }

    let look = other.request(Method::HEAD, &path).header("tus-resumable", "1.0.0").send().await.expect("an answer");
    let asset = look.headers()["mediakeep-asset-id"].to_str().expect("text").to_owned();
    for server in both {
        let content = server.request(Method::GET, &format!("/v1/assets/{asset}/content")).send().await;
        assert!(content.expect("an answer").bytes().await.expect("bytes") == right);
    }
    assert!(one.stop().await.success() && other.stop().await.success());
    place.must_run(&["verify", "--deep"]);
    assert_eq!(place.blobs().len(), 1, "no part is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_replica_erases_no_other_serves_and_what_one_holds_no_other_erases() {
    let place = Place::shared("");
    let (one, other) = (place.serve().await, place.serve_another().await);
    let (held, gone) = (one.upload(noise(20_000, 1)).await, one.upload(noise(20_000, 2)).await);
    let elsewhere = |asset: &Value| other.url(url(asset).trim_start_matches(&one.url("")));
    assert_eq!([other.opens(&elsewhere(&held)).await, other.opens(&elsewhere(&gone)).await], [200, 200]);
    let path = |asset: &Value| format!("/v1/assets/{}", asset["asset"]["assetId"].as_str().expect("an id"));
    let hold = one.request(Method::PUT, &format!("{}/holds/audit", path(&held))).json(&json!({"reason": "audit"}));
    assert_eq!(hold.send().await.expect("an answer").status(), 200);

    let erase = async |server: &Server, asset: &Value| {
        let erased = server.request(Method::DELETE, &format!("{}?erase=true", path(asset))).send().await;
        erased.expect("an answer").status().as_u16()
    };
    assert_eq!(erase(&other, &held).await, 409, "a hold counts wherever it was placed");
    assert_eq!(erase(&one, &gone).await, 200);

    eventually(async || other.opens(&elsewhere(&gone)).await == 410).await;
    let content = other.request(Method::GET, &format!("{}/content", path(&gone))).send().await.expect("an answer");
    assert_eq!(content.status(), 410);
    assert_eq!(other.opens(&elsewhere(&held)).await, 200);
    assert!(one.stop().await.success() && other.stop().await.success());
    place.must_run(&["verify", "--deep"]);
}

#[tokio::test]
async fn a_url_of_a_replica_whose_clock_is_ahead_opens_at_once_and_lives_no_longer() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = Home::new(Kind::Postgres, folder.path()).await;
    let host = Host::with(|settings| settings.index.url = home.url().into()).await;
    let asset = host.owner("acme").upload(noise(1_000, 1)).await;
    for (ahead, opens) in [(20, 200), (90, 404)] {
        let replica = host.replica(Duration::from_secs(ahead)).await;
        let request = host
            .owner("acme")
            .request(Method::POST, &format!("http://{}/v1/assets/{}/urls", replica.address, asset.id));
        let minted =
            request.json(&json!({"class": "delivery", "expiresInSeconds": 10})).send().await.expect("an answer");
        assert_eq!(minted.status(), 201);
        let minted: Value = minted.json().await.expect("JSON");
        let path = url(&minted).split_once("/a/").expect("a capability URL").1.to_owned();
        let here = format!("/a/{path}");

        assert_eq!(host.stranger().get(&here).await.status(), opens, "{ahead} s ahead");

        if opens == 200 {
            host.advance(Duration::from_secs(ahead + 10));
            assert_eq!(host.stranger().get(&here).await.status(), 410, "its end is the one that it was made with");
        }
        replica.stop().await;
    }
}
