//! What is never asked: a proxy that the environment names, and anybody at all unless a caller wants it.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mediakeep::remote::Net;
use serde_json::json;

use super::{HERE, Names, elsewhere, host, ingest, ok};
use crate::harness::told::Told;

/// Says to this test that it runs by itself, in an environment that names proxies.
const ALONE: &str = "MEDIAKEEP_STORY_ALONE";

#[tokio::test]
async fn no_proxy_of_the_environment_is_asked() {
    if std::env::var_os(ALONE).is_some() {
        return fetch_with_a_proxy_around().await;
    }
    let (proxy, asked, _) = elsewhere(|_| ok("text/plain", b"by the proxy")).await;
    let mut alone = Command::new(std::env::current_exe().expect("this program"));
    alone.args(["--exact", "--nocapture", "remote::unasked::no_proxy_of_the_environment_is_asked"]);
    alone.env(ALONE, "1");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        alone.env(name, format!("http://{proxy}")).env(name.to_lowercase(), format!("http://{proxy}"));
    }
    // The story's own requests go to this address, and the fetcher's to a name.
    alone.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let told = tokio::task::spawn_blocking(move || alone.output()).await.expect("it does not panic").expect("an end");
    let said = [told.stdout, told.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(told.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(asked.load(Ordering::SeqCst), 0, "{said}");
}

/// Any client that heeds the environment asks the proxy; the fetcher goes to the name's own address.
async fn fetch_with_a_proxy_around() {
    let (address, asked, _) = elsewhere(|_| ok("text/plain", b"by itself")).await;
    let host = host(address.port(), vec![vec![HERE]], true).await;
    let owner = host.owner("acme");
    let told = ingest(&owner, &format!("http://pictures.test:{}/", address.port())).await;
    assert_eq!(told.status, 201, "{}", String::from_utf8_lossy(&told.body));
    let id = told.json()["asset"]["assetId"].as_str().expect("an id").to_owned();
    assert_eq!(Told::of(owner.get(&format!("/v1/assets/{id}/content")).await).await.body, "by itself");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn nobody_is_asked_unless_a_caller_wants_it() {
    let (address, asked, _) = elsewhere(|_| ok("text/plain", b"elsewhere")).await;
    let host = host(address.port(), vec![vec![HERE]], true).await;
    let names = Arc::new(Names(vec![vec![HERE]], AtomicUsize::new(0)));
    host.app().remote.see(Net { resolver: names.clone(), allows: |_| true });
    let owner = host.owner("acme");
    let url = format!("http://pictures.test:{}/a.png", address.port());
    let part = json!({"type": "image", "mimeType": "image/png", "url": url});
    let messages = json!([{"role": "user", "content": [part]}]);

    for fetch in [json!(null), json!(false)] {
        let body = json!({"runId": "run-1", "messages": messages, "modalities": ["image"], "fetch": fetch});
        let told = Told::of(owner.post("/v1/content-parts/normalize", &body).await).await;
        assert_eq!((told.status, &told.json()["messages"]), (200, &messages));
    }
    let bundle = json!({"run": {"runId": "run-1"}, "parts": [part], "payload": {"bytes": 9, "url": url}, "see": url});
    let scrubbed = Told::of(owner.post("/v1/debug-bundles/scrub", &bundle).await).await;
    assert_eq!((scrubbed.status, &scrubbed.json()["bundle"]["parts"]), (200, &bundle["parts"]));
    assert_eq!(Told::of(owner.post("/v1/debug-bundles/check", &bundle).await).await.status, 200);
    let resolved = Told::of(owner.post("/v1/debug-bundles/resolve", &json!({"urls": [url]})).await).await;
    assert_eq!(resolved.json()["results"][0]["state"], "unknown");
    let artifact = |part| json!({"artifactTypeId": "acme.report", "parts": [part]});
    let path = "/v1/runs/run-1/artifacts/report";
    assert_eq!(owner.put(path, &artifact(json!({"data": {"url": url}}))).await.status(), 201);
    assert_eq!(owner.put(path, &artifact(json!({"url": url}))).await.status(), 400);
    let capability = json!({
        "nodeId": "n", "required": [], "substitutionSupported": false, "messages": messages,
        "active": {"provider": "p", "model": "m", "capabilities": []},
    });
    assert_eq!(owner.post("/v1/model-capabilities/evaluate", &capability).await.status(), 200);

    assert_eq!((asked.load(Ordering::SeqCst), names.1.load(Ordering::SeqCst)), (0, 0));
    // Only then.
    let body = json!({"runId": "run-1", "messages": messages, "modalities": ["image"], "fetch": true});
    assert_eq!(owner.post("/v1/content-parts/normalize", &body).await.status(), 200);
    assert_eq!((asked.load(Ordering::SeqCst), names.1.load(Ordering::SeqCst)), (1, 1));
}
