//! Several processes over one database and one bucket, and what may happen to them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use tokio::sync::watch;

use crate::harness::bytes::noise;
use crate::harness::lines::{Proxy, through_a_line};
use crate::harness::process::{Place, Server, eventually, url};

mod cases;

/// How many clients there are, and how many uploads each of them makes.
const CLIENTS: u64 = 6;
const UPLOADS: u64 = 8;

/// How long a client tries again before it gives up: the claim of a request that died lapses within a minute.
const PATIENCE: Duration = Duration::from_secs(150);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_of_which_one_dies_and_one_is_cut_off_lose_nothing_and_refuse_nobody_twice() {
    let place = Place::shared("");
    let (address, line) = through_a_line(place.index().url()).await;
    let proxy = Proxy::listen().await;
    let base = format!("http://{}", proxy.0);
    let base = ("MEDIAKEEP__SERVER__PUBLIC_BASE_URL", base.as_str());
    let dies = place.serve_another_with(&[base]).await;
    let stays = place.serve_another_with(&[base]).await;
    let cut_off = place.serve_another_with(&[base, ("MEDIAKEEP__INDEX__URL", &address)]).await;
    let proxy = Proxy::pass_on(proxy, &[dies.port(), stays.port(), cut_off.port()]);

    let (told, _) = watch::channel(Vec::new());
    let clients = (0..CLIENTS).map(async |client| {
        let mut acknowledged = Vec::new();
        for n in 0..UPLOADS {
            let (answer, by) = upload(&proxy, client, n).await;
            told.send_modify(|told| told.push(by));
            acknowledged.push((answer, client * UPLOADS + n));
        }
        acknowledged
    });
    let accidents = async {
        let (first, second) = (process(&dies).await, process(&cut_off).await);
        let before_death = acknowledged_by(&told, &first, 2).await;
        dies.kill().await;
        let before_cut = acknowledged_by(&told, &second, 2).await;
        line.abort();
        [before_death, before_cut]
    };
    let (acknowledged, before) = tokio::join!(join_all(clients), accidents);
    // Every client has another one to make, or has one under way, at each of the accidents.
    let all = (CLIENTS * UPLOADS) as usize;
    assert!(before.iter().all(|told| all - told >= CLIENTS as usize), "{before:?} of {all}: {:?}", told.borrow());
    let acknowledged: Vec<_> = acknowledged.into_iter().flatten().collect();

    for (answer, seed) in &acknowledged {
        let bytes = patiently(|| Client::new().get(url(answer))).await;
        assert!(bytes.bytes().await.expect("the bytes") == noise(20_000, *seed));
    }
    let named: BTreeSet<&str> =
        acknowledged.iter().map(|(answer, _)| answer["asset"]["assetId"].as_str().expect("an id")).collect();
    let listed = list(&stays).await;
    assert_eq!(listed.len() as u64, CLIENTS * UPLOADS, "each key made one asset, however often it was sent");
    assert!(listed.iter().map(String::as_str).eq(named), "and each that was made was told of");
    // It hears of nothing, so it says that it is not ready.
    eventually(async || cut_off.opens(&cut_off.url("/readyz")).await == 503).await;
    assert!(stays.stop().await.success());
    drop(cut_off);
    place.must_run(&["verify", "--deep"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_of_one_replica_opens_on_the_other_and_closes_there_within_the_lag_when_it_is_revoked() {
    let place = Place::shared("");
    let (one, other) = (place.serve().await, place.serve_another().await);
    let sent = one.upload(noise(1_000, 1)).await;
    let minted = format!("/v1/assets/{}/urls", sent["asset"]["assetId"].as_str().expect("an id"));
    let minted = one.request(Method::POST, &minted).body(r#"{"class": "delivery"}"#);
    let minted = minted.header("content-type", "application/json").send().await.expect("an answer");
    let minted: Value = minted.json().await.expect("JSON");
    let elsewhere = other.url(minted["url"].as_str().expect("a URL").trim_start_matches(&one.url("")));
    assert_eq!(other.opens(&elsewhere).await, 200);

    let revoke = format!(r#"{{"urlId": {}}}"#, minted["urlId"]);
    let revoked = one.request(Method::POST, "/v1/urls/revoke").header("content-type", "application/json").body(revoke);
    assert_eq!(revoked.send().await.expect("an answer").status(), 200);

    // The lag is a second; what is told is that it ends, not how fast this machine is.
    eventually(async || other.opens(&elsewhere).await == 404).await;
    assert_eq!(one.opens(minted["url"].as_str().expect("a URL")).await, 404);
    assert!(one.stop().await.success() && other.stop().await.success());
}

/// By what the requests that this process answers are told apart from those of others.
async fn process(server: &Server) -> String {
    process_of(&server.request(Method::GET, "/healthz").send().await.expect("an answer"))
}

fn process_of(answer: &reqwest::Response) -> String {
    let id = answer.headers()["x-request-id"].to_str().expect("text");
    id.split_once('-').expect("the process, and a count").0.to_owned()
}

/// Waits until that process has acknowledged so many, or nobody can any more; how many have been acknowledged in all.
async fn acknowledged_by(told: &watch::Sender<Vec<String>>, process: &str, many: usize) -> usize {
    let enough = |told: &Vec<String>| told.iter().filter(|by| *by == process).count() >= many;
    let over = |told: &Vec<String>| told.len() as u64 == CLIENTS * UPLOADS;
    let mut heard = told.subscribe();
    let told = heard.wait_for(|told| enough(told) || over(told)).await.expect("the sender lives");
    told.len()
}

/// One upload of one client, sent until it is acknowledged, the same key each time; and which process did.
async fn upload(proxy: &Proxy, client: u64, n: u64) -> (Value, String) {
    let seed = client * UPLOADS + n;
    let answer = patiently(|| {
        let request = Client::new().post(proxy.url("/v1/runs/run-1/assets")).bearer_auth(Server::key());
        let request = request.header("content-type", "application/octet-stream");
        request.header("idempotency-key", format!("upload-{seed}")).body(noise(20_000, seed))
    });
    let answer = answer.await;
    let by = process_of(&answer);
    (answer.json().await.expect("JSON"), by)
}

/// The answer of a client that tries again where it is told to or hears nothing.
async fn patiently(request: impl Fn() -> reqwest::RequestBuilder) -> reqwest::Response {
    let began = Instant::now();
    loop {
        let said = match request().timeout(Duration::from_secs(20)).send().await {
            Ok(answer) if answer.status().is_success() => return answer,
            Ok(answer) => {
                let again = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::CONFLICT];
                assert!(again.contains(&answer.status()), "{}", answer.status());
                answer.text().await.unwrap_or_default()
            }
            Err(error) => error.to_string(),
        };
        assert!(began.elapsed() < PATIENCE, "nobody answers: {said}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The ids of all that there is, in the order of their names.
async fn list(server: &Server) -> Vec<String> {
    let page = server.request(Method::GET, "/v1/assets?limit=500").send().await.expect("an answer");
    let page: Value = page.json().await.expect("JSON");
    let assets = page["assets"].as_array().expect("a list").iter();
    let mut ids: Vec<_> = assets.map(|asset| asset["assetId"].as_str().expect("an id").to_owned()).collect();
    ids.sort();
    ids
}
