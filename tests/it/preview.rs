//! Why an asset is kept, and what a sweep would take.

use std::time::Duration;

use mediakeep::config::units::Span;
use serde_json::{Value, json};

use crate::harness::bytes::noise;
use crate::harness::{Caller, Host};
use crate::retention::{DAY, keep, later};

async fn preview(owner: &Caller<'_>, query: &str) -> Value {
    let answer = owner.get(&format!("/v1/retention/preview{query}")).await;
    assert_eq!(answer.status(), 200);
    answer.json().await.expect("JSON")
}

fn ids(page: &Value) -> Vec<&str> {
    let assets = page["assets"].as_array().expect("a list");
    assets.iter().map(|asset| asset["assetId"].as_str().expect("an id")).collect()
}

#[tokio::test]
async fn whatever_keeps_an_asset_is_named_with_its_end() {
    let host = Host::with(|settings| settings.retention.grace = Span::hours(1)).await;
    let owner = host.owner("acme");
    keep(&owner, "run-1", &later(&host, 2 * DAY)).await;
    keep(&owner, "run-2", &later(&host, 5 * DAY)).await;
    let asset = owner.upload(noise(100, 1)).await;
    let quoted = owner.post("/v1/runs/run-2/references", &json!({"assets": [asset.id]})).await;
    assert_eq!(quoted.status(), 200);
    let shown = async || {
        let answer = owner.get(&format!("/v1/assets/{}/retention", asset.id)).await;
        assert_eq!(answer.status(), 200);
        answer.json::<Value>().await.expect("JSON")
    };
    let floor = later(&host, 5 * DAY + Duration::from_secs(3_600));
    let run = |name: &str, days: u32| json!({"run": name, "until": later(&host, days * DAY)});

    let kept = shown().await;
    let because = json!([run("run-2", 5), run("run-1", 2), {"grace": 3_600, "until": floor}]);
    assert_eq!(kept, json!({"retainUntil": floor, "because": because, "truncated": false}));

    let hold = owner.put("/v1/runs/run-1/holds/audit", &json!({"reason": "an audit"})).await;
    assert_eq!(hold.status(), 200);
    let kept = shown().await;
    let because = json!([{"hold": "audit", "until": null}, run("run-2", 5), run("run-1", 2)]);
    assert_eq!(kept, json!({"retainUntil": null, "because": because, "truncated": false}));
    let unknown = host.owner("globex").get(&format!("/v1/assets/{}/retention", asset.id)).await;
    assert_eq!(unknown.status(), 404);
}

#[tokio::test]
async fn a_preview_is_what_the_sweep_then_takes() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    keep(&owner, "run-1", &later(&host, 2 * DAY)).await;
    let mut due = Vec::new();
    for seed in 0..3 {
        due.push(owner.upload(noise(100, seed)).await.id);
    }
    let held = owner.upload(noise(100, 8)).await;
    let hold = owner.put(&format!("/v1/assets/{}/holds/audit", held.id), &json!({"reason": "an audit"})).await;
    assert_eq!(hold.status(), 200);
    owner.upload_to("run-2", noise(100, 9)).await;
    host.owner("globex").upload_loose(noise(100, 9)).await;
    due.sort();

    assert_eq!(preview(&owner, "").await, json!({"assets": [], "count": 0, "bytes": 0, "nextCursor": null}));
    let at = later(&host, 2 * DAY);
    let first = preview(&owner, &format!("?at={at}&limit=2")).await;
    assert_eq!((&first["count"], &first["bytes"]), (&json!(3), &json!(300)));
    assert_eq!(ids(&first), due[..2]);
    let cursor = first["nextCursor"].as_str().expect("more");
    let rest = preview(&owner, &format!("?at={at}&limit=2&cursor={cursor}")).await;
    assert_eq!((ids(&rest), &rest["count"], &rest["nextCursor"]), (vec![&*due[2]], &json!(3), &Value::Null));

    host.advance(2 * DAY);
    assert_eq!(host.sweep().await.expired, 4, "and the other tenant's");
    assert_eq!(preview(&owner, "").await["count"], 0);
    for wrong in ["?at=tomorrow", "?limit=0", "?cursor=x", "?since=1"] {
        assert_eq!(owner.get(&format!("/v1/retention/preview{wrong}")).await.status(), 400, "{wrong}");
    }
}
