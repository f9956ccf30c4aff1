//! Debug bundles: scrubbed, checked, resolved.

use serde_json::{Value, json};

use crate::harness::told::Told;
use crate::harness::{Caller, Host};

mod check;
mod hostile;
mod leaks;
mod memory;
mod resolve;
mod room;
mod scrub;

const SCRUB: &str = "/v1/debug-bundles/scrub";
const CHECK: &str = "/v1/debug-bundles/check";
const MANIFEST: &str = "x-host-mediakeep-mediaAssets";

/// Sends a text that is a bundle.
async fn send(caller: &Caller<'_>, path: &str, bundle: &str) -> Told {
    let request = caller.request(reqwest::Method::POST, path).header("content-type", "application/json");
    Told::of(request.body(bundle.to_owned()).send().await.expect("an answer")).await
}

/// What a scrub answers to a bundle, which has to be a 200.
async fn scrubbed(caller: &Caller<'_>, bundle: &Value) -> Value {
    let told = send(caller, SCRUB, &bundle.to_string()).await;
    assert_eq!(told.status, 200, "{}", String::from_utf8_lossy(&told.body));
    told.json()
}

/// The codes and paths that a check finds.
async fn findings(caller: &Caller<'_>, bundle: &Value) -> Vec<(String, String)> {
    let told = send(caller, CHECK, &bundle.to_string()).await;
    assert_eq!(told.status, 200, "{}", String::from_utf8_lossy(&told.body));
    let answer = told.json();
    let found = answer["findings"].as_array().expect("a list").iter();
    let found: Vec<_> = found.map(|one| (text(&one["code"]), text(&one["path"]))).collect();
    assert_eq!(answer["ok"], json!(found.is_empty()), "{answer}");
    found
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The bundle without the manifest that a scrub adds.
fn without_manifest(bundle: &Value) -> Value {
    let mut bundle = bundle.clone();
    bundle.as_object_mut().expect("an object").remove(MANIFEST).expect("a manifest");
    bundle
}

/// A bundle of the run `run-1` with these outputs of a node.
fn bundle(outputs: &Value) -> Value {
    json!({
        "bundleVersion": "1.0",
        "run": {"runId": "run-1", "workflowId": "w", "status": "completed"},
        "events": [{"sequence": 0, "type": "node.completed", "data": {"outputs": outputs}}],
        "redactionApplied": true,
        "redactionMode": "mask"
    })
}

/// Where those outputs stand.
const OUTPUTS: &str = "/events/0/data/outputs";

async fn host() -> Host {
    Host::start().await
}
