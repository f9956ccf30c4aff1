//! The registry of runs: what a host may say of how long a run's log is kept.

use std::time::Duration;

use mediakeep::config::units::Span;
use mediakeep_storage::Timestamp;
use reqwest::Response;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::{Caller, Host, refusal};

const DAY: i64 = 86_400;

/// An instant so many seconds after the host's now, as JSON has it.
fn later(host: &Host, seconds: i64) -> String {
    (host.now() + Duration::from_secs(seconds.unsigned_abs())).to_string()
}

async fn put(owner: &Caller<'_>, run: &str, body: Value) -> Response {
    owner.put(&format!("/v1/runs/{run}"), &body).await
}

/// Puts the run, which has to succeed.
async fn set(owner: &Caller<'_>, run: &str, body: Value) -> Value {
    let answer = put(owner, run, body.clone()).await;
    let status = answer.status();
    let answer: Value = answer.json().await.expect("JSON");
    assert_eq!(status, 200, "{body} → {answer}");
    answer
}

#[tokio::test]
async fn a_run_is_what_its_host_says_and_nothing_more() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let now = host.now();

    let made = set(&owner, "run-1", json!({})).await;
    assert_eq!(
        made,
        json!({
            "runId": "run-1", "status": "open", "logRetainUntil": null, "retentionSource": "run", "forkOf": null,
            "workflowId": null, "assets": 0, "bytes": 0, "createdAt": now.to_string(),
        })
    );
    host.advance(Duration::from_secs(5));
    let end = later(&host, 9 * DAY);
    let with_end = set(&owner, "run-1", json!({"logRetainUntil": end, "workflowId": "wf-7"})).await;
    assert_eq!((&with_end["logRetainUntil"], &with_end["workflowId"]), (&json!(end), &json!("wf-7")));
    assert_eq!(with_end["createdAt"], made["createdAt"]);

    let closed = set(&owner, "run-1", json!({"status": "closed"})).await;
    assert_eq!(closed["status"], "closed");
    assert_eq!((&closed["logRetainUntil"], &closed["workflowId"]), (&json!(end), &json!("wf-7")));
    let shown: Value = owner.get("/v1/runs/run-1").await.json().await.expect("JSON");
    assert_eq!(shown, closed);
}

#[tokio::test]
async fn a_run_counts_what_its_log_quotes() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (one, two) = (png(3, 3), png(4, 4));
    owner.upload_to("run-1", one.clone()).await;
    owner.upload_to("run-1", one.clone()).await;
    owner.upload_to("run-1", two.clone()).await;
    owner.upload_to("run-2", two.clone()).await;

    let run: Value = owner.get("/v1/runs/run-1").await.json().await.expect("JSON");
    assert_eq!(run["assets"], 3);
    assert_eq!(run["bytes"], 2 * one.len() + two.len());
    assert_eq!(run["retentionSource"], "default");
}

#[tokio::test]
async fn an_end_that_cannot_be_is_refused_and_changes_nothing() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (now, past) = (host.now().to_string(), (host.now() - Duration::from_secs(1)).to_string());
    let before = set(&owner, "run-1", json!({"logRetainUntil": later(&host, DAY)})).await;

    for body in [
        json!({"logRetentionSeconds": 0}),
        json!({"logRetentionSeconds": -1}),
        json!({"logRetentionSeconds": i64::MIN}),
        json!({"logRetentionSeconds": i64::MAX}),
        json!({"logRetentionSeconds": u64::MAX}),
        json!({"logRetentionSeconds": 1_000_000_000_000_000_000_i64}),
        json!({"logRetentionSeconds": 1e18}),
        json!({"logRetentionSeconds": 1.5}),
        json!({"logRetentionSeconds": "60"}),
        json!({"logRetentionSeconds": true}),
        json!({"logRetainUntil": now}),
        json!({"logRetainUntil": past}),
        json!({"logRetainUntil": "1970-01-01T00:00:00Z"}),
        json!({"logRetainUntil": "tomorrow"}),
        json!({"logRetainUntil": "2030-01-01"}),
        json!({"logRetainUntil": "2030-02-30T00:00:00Z"}),
        json!({"logRetainUntil": "2030-01-01T00:00:00"}),
        json!({"logRetainUntil": "99999-01-01T00:00:00Z"}),
        json!({"logRetainUntil": ""}),
        json!({"logRetainUntil": 1_900_000_000}),
        json!({"logRetainUntil": later(&host, 9 * DAY), "logRetentionSeconds": 60}),
        json!({"logRetainUntil": null, "logRetentionSeconds": 60}),
        json!({"status": "done"}),
        json!({"status": 1}),
        json!({"status": {"open": null}}),
        json!({"workflowId": ""}),
        json!({"workflowId": "a\u{7}b"}),
        json!({"workflowId": "x".repeat(129)}),
        json!({"retainUntil": later(&host, 9 * DAY)}),
        json!([]),
        json!("closed"),
    ] {
        for run in ["run-1", "run-2"] {
            let answer = put(&owner, run, body.clone()).await;
            assert_eq!(answer.status(), 400, "{body}");
            assert_eq!(refusal(answer).await["error"], "validation_error", "{body}");
        }
    }
    let after: Value = owner.get("/v1/runs/run-1").await.json().await.expect("JSON");
    assert_eq!(after, before);
    assert_eq!(owner.get("/v1/runs/run-2").await.status(), 404);
}

#[tokio::test]
async fn a_name_that_is_no_run_id_is_a_400() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let long = "r".repeat(129);
    for run in [".", "..", "a%20b", "a%2Fb", "%C3%BC", "a%00", &long] {
        // A client normalizes dots away, so they go as they are written.
        let answer = put(&owner, &run.replace('.', "%2E"), json!({})).await;
        assert!(matches!(answer.status().as_u16(), 400 | 404), "{run}: {}", answer.status());
    }
    for run in ["A", "a.b_c:d~e-f", &"r".repeat(128)] {
        assert_eq!(put(&owner, run, json!({})).await.status(), 200, "{run}");
    }
}

#[tokio::test]
async fn from_the_first_explicit_end_on_only_a_later_one_counts() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (early, late) = (later(&host, 5 * DAY), later(&host, 9 * DAY));

    set(&owner, "run-1", json!({})).await;
    set(&owner, "run-1", json!({"logRetainUntil": early})).await;
    set(&owner, "run-1", json!({"logRetainUntil": late})).await;
    set(&owner, "run-1", json!({"logRetainUntil": late})).await;
    let refused = put(&owner, "run-1", json!({"logRetainUntil": early, "workflowId": "wf"})).await;

    assert_eq!(refused.status(), 409);
    let refused = refusal(refused).await;
    assert_eq!((&refused["error"], &refused["details"]["current"]), (&json!("retention_floor"), &json!(late)));
    let run: Value = owner.get("/v1/runs/run-1").await.json().await.expect("JSON");
    assert_eq!(
        (&run["logRetainUntil"], &run["workflowId"]),
        (&json!(late), &Value::Null),
        "none of a refused PUT holds"
    );
    let closing = put(&owner, "run-1", json!({"status": "closed", "logRetentionSeconds": DAY})).await;
    assert_eq!(closing.status(), 409);
    let run: Value = owner.get("/v1/runs/run-1").await.json().await.expect("JSON");
    assert_eq!(run["status"], "open");
}

#[tokio::test]
async fn without_end_on_purpose_is_never_lowered() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    set(&owner, "run-1", json!({"logRetainUntil": later(&host, DAY)})).await;
    let endless = set(&owner, "run-1", json!({"logRetainUntil": null})).await;
    assert_eq!(endless["logRetainUntil"], Value::Null);

    let refused = put(&owner, "run-1", json!({"logRetainUntil": later(&host, 900 * DAY)})).await;
    assert_eq!(refused.status(), 409);
    let refused = refusal(refused).await;
    assert_eq!(refused["error"], "retention_floor");
    assert_eq!(refused["details"].get("current"), Some(&Value::Null));
    let closed = set(&owner, "run-1", json!({"status": "closed"})).await;
    assert_eq!((&closed["logRetainUntil"], &closed["retentionSource"]), (&Value::Null, &json!("run")));
}

#[tokio::test]
async fn seconds_count_from_the_closing_of_an_open_run_and_at_once_on_a_closed_one() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let open = set(&owner, "run-1", json!({"logRetentionSeconds": 2 * DAY})).await;
    assert_eq!(open["logRetainUntil"], Value::Null);
    host.advance(Duration::from_secs(60));
    let closed = set(&owner, "run-1", json!({"status": "closed"})).await;
    assert_eq!((&closed["logRetainUntil"], &closed["retentionSource"]), (&json!(later(&host, 2 * DAY)), &json!("run")));

    host.advance(Duration::from_secs(60));
    let longer = set(&owner, "run-1", json!({"logRetentionSeconds": 3 * DAY})).await;
    assert_eq!(longer["logRetainUntil"], later(&host, 3 * DAY));
    let again = set(&owner, "run-1", json!({"status": "closed"})).await;
    assert_eq!(again["logRetainUntil"], longer["logRetainUntil"], "closing a closed run is nothing new");
}

#[tokio::test]
async fn a_run_that_closes_without_an_end_gets_the_default_and_may_still_be_shortened() {
    let host = Host::with(|settings| settings.retention.default_run_log = Span::hours(10 * 24)).await;
    let owner = host.owner("acme");
    set(&owner, "run-1", json!({})).await;
    let closed = set(&owner, "run-1", json!({"status": "closed"})).await;
    assert_eq!(
        (&closed["logRetainUntil"], &closed["retentionSource"]),
        (&json!(later(&host, 10 * DAY)), &json!("default"))
    );

    let shorter = set(&owner, "run-1", json!({"logRetainUntil": later(&host, DAY)})).await;
    assert_eq!((&shorter["logRetainUntil"], &shorter["retentionSource"]), (&json!(later(&host, DAY)), &json!("run")));
    let refused = put(&owner, "run-1", json!({"logRetainUntil": later(&host, DAY - 1)})).await;
    assert_eq!(refused.status(), 409);
}

#[tokio::test]
async fn a_run_that_is_opened_again_keeps_its_media_until_it_is_closed_again() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    set(&owner, "run-1", json!({"status": "closed"})).await;
    host.advance(Duration::from_secs(9 * 86_400));
    let opened = set(&owner, "run-1", json!({"status": "open"})).await;
    assert_eq!((&opened["logRetainUntil"], &opened["retentionSource"]), (&Value::Null, &json!("run")));

    host.advance(Duration::from_secs(90 * 86_400));
    assert_eq!(host.sweep().await.expired, 0);
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
    let closed = set(&owner, "run-1", json!({"status": "closed"})).await;
    assert_eq!(closed["logRetainUntil"], later(&host, 30 * DAY), "counted from this closing");
    host.advance(Duration::from_secs(31 * 86_400));
    assert_eq!(host.sweep().await.expired, 1);
}

#[tokio::test]
async fn the_longest_that_the_operator_keeps_anything_binds_every_wish() {
    let host = Host::with(|settings| settings.retention.max = Span::hours(20 * 24)).await;
    let owner = host.owner("acme");
    for body in [
        json!({"logRetainUntil": later(&host, 20 * DAY + 1)}),
        json!({"logRetentionSeconds": 20 * DAY + 1}),
        json!({"logRetainUntil": null}),
    ] {
        assert_eq!(put(&owner, "run-1", body.clone()).await.status(), 400, "{body}");
    }
    set(&owner, "run-1", json!({"logRetainUntil": later(&host, 20 * DAY)})).await;

    let ask = json!({"base64": "aGVsbG8=", "retainUntil": later(&host, 20 * DAY + 1)});
    assert_eq!(owner.post("/v1/assets", &ask).await.status(), 400);
}

#[tokio::test]
async fn a_finer_time_than_we_keep_is_rounded_up() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let run = set(&owner, "run-1", json!({"logRetainUntil": "2030-01-01T00:00:00.0001Z"})).await;
    assert_eq!(run["logRetainUntil"], "2030-01-01T00:00:00.001Z");
    let offset = set(&owner, "run-2", json!({"logRetainUntil": "2030-01-01T02:00:00+02:00"})).await;
    assert_eq!(offset["logRetainUntil"], "2030-01-01T00:00:00Z");
}

#[tokio::test]
async fn a_run_that_nobody_registered_is_kept_from_its_last_reference() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.upload(png(3, 3)).await;
    host.advance(Duration::from_secs(7 * 86_400));
    owner.upload(png(4, 4)).await;

    let run: Value = owner.get("/v1/runs/run-1").await.json().await.expect("JSON");
    assert_eq!((&run["logRetainUntil"], &run["status"]), (&json!(later(&host, 30 * DAY)), &json!("open")));
    let registered = set(&owner, "run-1", json!({"logRetainUntil": later(&host, DAY)})).await;
    assert_eq!(registered["logRetainUntil"], later(&host, DAY), "the first explicit end may be an earlier one");
}

#[tokio::test]
async fn a_tenant_may_have_a_default_of_its_own() {
    let host = Host::with(|settings| {
        settings.tenants.push(mediakeep::config::settings::Tenant {
            id: "globex".into(),
            default_run_log: Some(Span::hours(8 * 24)),
            ..Default::default()
        });
    })
    .await;
    for (tenant, days) in [("globex", 8), ("acme", 30)] {
        let asset = host.owner(tenant).upload(png(2, 2)).await;
        assert_eq!(asset.answer["asset"]["retainUntil"], later(&host, days * DAY), "{tenant}");
    }
}

#[tokio::test]
async fn a_run_of_that_name_elsewhere_is_another_run() {
    let host = Host::start().await;
    let (acme, globex) = (host.owner("acme"), host.owner("globex"));
    set(&acme, "run-1", json!({"logRetainUntil": null})).await;

    assert_eq!(globex.get("/v1/runs/run-1").await.status(), 404);
    assert_eq!(globex.get("/v1/runs/run-1/assets").await.status(), 404);
    let other = set(&globex, "run-1", json!({"logRetainUntil": later(&host, DAY)})).await;
    assert_eq!(other["logRetainUntil"], later(&host, DAY));
}

#[tokio::test]
async fn who_may_not_is_told_before_anything_is_looked_up() {
    use mediakeep::access::Scope;
    let host = Host::start().await;
    let (writer, reader) = (host.with_scope("acme", Scope::RunsWrite), host.with_scope("acme", Scope::AssetsRead));
    for (caller, status) in [(&host.stranger(), 401), (&reader, 403), (&writer, 200)] {
        assert_eq!(put(caller, "run-1", json!({})).await.status(), status);
    }
    for path in ["/v1/runs", "/v1/runs/run-1", "/v1/runs/absent", "/v1/runs/run-1/assets"] {
        let refused = writer.get(path).await;
        assert_eq!(refused.status(), 403, "{path}");
        assert_eq!(refusal(refused).await["details"]["scopeRequired"], "assets:read");
    }
    assert_eq!(reader.get("/v1/runs/run-1").await.status(), 200);
    assert_eq!(reader.post("/v1/runs/absent/references", &json!({"assets": []})).await.status(), 403);
    assert_eq!(writer.delete("/v1/runs/run-1").await.status(), 405);
    let text = writer.request(reqwest::Method::PUT, "/v1/runs/run-1").body("{}");
    assert_eq!(text.send().await.expect("an answer").status(), 415);
    let long = json!({"workflowId": "x".repeat(2 << 20)});
    assert_eq!(put(&writer, "run-1", long).await.status(), 413);
}

#[tokio::test]
async fn twenty_callers_at_once_leave_the_latest_end() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let ends: Vec<String> = (1..=20).map(|day| later(&host, day * DAY)).collect();
    let puts = ends.iter().rev().map(|end| put(&owner, "run-1", json!({"logRetainUntil": end})));
    let statuses: Vec<u16> =
        futures_util::future::join_all(puts).await.iter().map(|answer| answer.status().as_u16()).collect();

    assert!(statuses.iter().all(|status| matches!(status, 200 | 409)), "{statuses:?}");
    let run: Value = owner.get("/v1/runs/run-1").await.json().await.expect("JSON");
    let end: Timestamp = run["logRetainUntil"].as_str().and_then(|end| end.parse().ok()).expect("an end");
    assert_eq!(end.to_string(), ends[19], "{statuses:?}");
}
