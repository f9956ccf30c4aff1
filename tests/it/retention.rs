//! How long an asset lives, and what ends it.

use std::path::Path;
use std::time::Duration;

use mediakeep::config::units::Span;
use mediakeep_storage::Timestamp;
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::{Asset, Caller, Host, refusal};

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// An instant so long after the host's now, as JSON has it.
pub(crate) fn later(host: &Host, by: Duration) -> String {
    (host.now() + by).to_string()
}

/// Says until when the run's log is kept.
pub(crate) async fn keep(owner: &Caller<'_>, run: &str, until: &str) {
    let answer = owner.put(&format!("/v1/runs/{run}"), &json!({"logRetainUntil": until})).await;
    assert_eq!(answer.status(), 200);
}

async fn refer(owner: &Caller<'_>, run: &str, asset: &Asset) {
    let answer = owner.post(&format!("/v1/runs/{run}/references"), &json!({"assets": [asset.id]})).await;
    assert_eq!(answer.status(), 200);
}

async fn state(owner: &Caller<'_>, asset: &Asset) -> String {
    owner.show(asset).await["state"].as_str().expect("a state").to_owned()
}

#[tokio::test]
async fn the_latest_of_all_that_need_it_keeps_an_asset() {
    let host = Host::with(|settings| settings.retention.grace = Span::hours(1)).await;
    let owner = host.owner("acme");
    let hour = Duration::from_secs(3600);
    let asset = owner.upload_loose(png(2, 2)).await;
    let floor = async |asset: &Asset| {
        let shown = owner.show(asset).await;
        (shown["retainUntil"].as_str().map(str::to_owned), shown["retentionSource"].clone())
    };
    assert_eq!(floor(&asset).await, (Some(later(&host, DAY + hour)), json!("unreferenced")));

    keep(&owner, "run-1", &later(&host, 2 * DAY)).await;
    refer(&owner, "run-1", &asset).await;
    assert_eq!(floor(&asset).await, (Some(later(&host, 2 * DAY + hour)), json!("run")));

    refer(&owner, "run-2", &asset).await;
    assert_eq!(floor(&asset).await, (Some(later(&host, 30 * DAY + hour)), json!("default")));

    keep(&owner, "run-2", &later(&host, DAY)).await;
    assert_eq!(floor(&asset).await, (Some(later(&host, 2 * DAY + hour)), json!("run")));

    assert_eq!(owner.put("/v1/runs/run-3", &json!({})).await.status(), 200);
    refer(&owner, "run-3", &asset).await;
    assert_eq!(floor(&asset).await, (None, json!("run")));

    let ask = json!({"base64": "aGVsbG8=", "retainUntil": later(&host, 5 * DAY)});
    let asked = crate::harness::asset(owner.post("/v1/assets", &ask).await).await;
    assert_eq!(floor(&asked).await, (Some(later(&host, 5 * DAY + hour)), json!("ask")));
    refer(&owner, "run-1", &asked).await;
    assert_eq!(floor(&asked).await, (Some(later(&host, 5 * DAY + hour)), json!("ask")));
}

#[tokio::test]
async fn an_upload_into_a_run_whose_log_has_ended_is_taken_and_is_gone_with_the_next_look() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let end = later(&host, DAY);
    keep(&owner, "run-1", &end).await;
    host.advance(2 * DAY);

    let late = owner.upload(png(3, 3)).await;
    assert_eq!(
        (&late.answer["asset"]["state"], &late.answer["asset"]["retentionSource"]),
        (&json!("live"), &json!("run"))
    );
    let until: Timestamp = late.answer["asset"]["retainUntil"].as_str().and_then(|at| at.parse().ok()).expect("a time");
    assert!(until < host.now(), "the answer says that its time is past");

    let answer = host.stranger().get(&late.url).await;
    assert_eq!(answer.status(), 410);
    assert_eq!(refusal(answer).await["details"]["reason"], "asset_expired");
    assert_eq!(state(&owner, &late).await, "expired");
}

#[tokio::test]
async fn an_asset_lives_to_the_last_moment_of_its_floor_and_no_longer() {
    let host = Host::with(|settings| settings.retention.grace = Span::hours(1)).await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    keep(&owner, "run-1", &later(&host, 5 * DAY)).await;

    host.advance(5 * DAY + Duration::from_secs(3600) - Duration::from_millis(1));
    assert_eq!(host.sweep().await.expired, 0);
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
    host.advance(Duration::from_millis(1));
    assert_eq!(host.sweep().await.expired, 1);

    assert_eq!(host.stranger().get(&asset.url).await.status(), 410);
    assert_eq!(state(&owner, &asset).await, "expired");
    assert_eq!(host.sweep().await.expired, 0);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn what_is_past_its_floor_ends_at_the_next_request_too_and_says_what_it_was() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = png(7, 5);
    let asset = owner.upload(bytes.clone()).await;
    keep(&owner, "run-1", &later(&host, 2 * DAY)).await;
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);

    host.advance(2 * DAY);
    let at = host.now().to_string();
    let gone = host.stranger().get(&asset.url).await;

    assert_eq!(gone.status(), 410);
    let gone = refusal(gone).await;
    let details = json!({
        "reason": "asset_expired", "at": at, "bytes": bytes.len(), "mimeType": "image/png",
        "sha256": asset.answer["asset"]["sha256"],
    });
    assert_eq!((&gone["error"], &gone["details"]), (&json!("not_found"), &details));
    let bound = owner.get(&format!("/v1/assets/{}/content", asset.id)).await;
    assert_eq!(bound.status(), 410);
    assert_eq!(refusal(bound).await["details"], details);
    let shown = owner.show(&asset).await;
    assert_eq!((&shown["state"], &shown["sha256"]), (&json!("expired"), &asset.answer["asset"]["sha256"]));
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn a_longer_end_that_comes_in_time_saves_what_was_about_to_go() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    keep(&owner, "run-1", &later(&host, 2 * DAY)).await;
    host.advance(2 * DAY);

    keep(&owner, "run-1", &later(&host, DAY)).await;

    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
    assert_eq!(host.sweep().await.expired, 0);
    assert_eq!(state(&owner, &asset).await, "live");
}

#[tokio::test]
async fn a_longer_grace_counts_for_what_is_there_already() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(png(3, 3)).await;
    keep(&host.owner("acme"), "run-1", &later(&host, 2 * DAY)).await;
    let end = later(&host, 3 * DAY);

    let host = host.restart_with(|settings| settings.retention.grace = Span::hours(24)).await;
    assert_eq!(host.owner("acme").show(&asset).await["retainUntil"], end);
    host.advance(3 * DAY - Duration::from_millis(1));
    assert_eq!(host.sweep().await.expired, 0);
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
    host.advance(Duration::from_millis(1));
    assert_eq!(host.sweep().await.expired, 1);
}

#[tokio::test]
async fn inside_the_floor_not_even_its_owner_ends_an_asset() {
    let host = Host::with(|settings| settings.retention.grace = Span::hours(1)).await;
    let owner = host.owner("acme");
    let bytes = png(3, 3);
    let asset = owner.upload(bytes.clone()).await;
    keep(&owner, "run-1", &later(&host, 2 * DAY)).await;
    let path = format!("/v1/assets/{}", asset.id);

    let kept = owner.delete(&path).await;
    assert_eq!(kept.status(), 409);
    let kept = refusal(kept).await;
    assert_eq!(kept["error"], "retention_active");
    assert_eq!(kept["details"]["retainUntil"], later(&host, 2 * DAY + Duration::from_secs(3600)));
    let (end, floor) = (later(&host, 2 * DAY), later(&host, 2 * DAY + Duration::from_secs(3600)));
    let because = json!([{"run": "run-1", "until": end}, {"grace": 3600, "until": floor}]);
    assert_eq!(kept["details"]["because"], because);
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);

    host.advance(2 * DAY + Duration::from_secs(3600));
    assert_eq!(owner.delete(&path).await.status(), 204);
    assert_eq!(host.stored_blobs().await, 0, "the bytes go at once");
    assert_eq!(owner.delete(&path).await.status(), 204);
    assert_eq!(state(&owner, &asset).await, "expired");
    assert_eq!(host.stranger().get(&asset.url).await.status(), 410);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn a_run_without_end_protects_its_assets_without_end() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    assert_eq!(owner.put("/v1/runs/run-1", &json!({})).await.status(), 200);
    let asset = owner.upload(png(3, 3)).await;
    host.advance(20_000 * DAY);

    let kept = owner.delete(&format!("/v1/assets/{}", asset.id)).await;
    assert_eq!(kept.status(), 409);
    let kept = refusal(kept).await;
    assert_eq!(kept["details"].get("retainUntil"), Some(&Value::Null));
    assert_eq!(kept["details"]["because"], json!([{"run": "run-1", "until": null}]));
    assert_eq!(host.sweep().await.expired, 0);
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
}

#[tokio::test]
async fn what_no_run_references_may_be_ended_at_any_time_unless_its_sender_asked_for_more() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let loose = owner.upload_loose(noise(900, 1)).await;
    let ask = json!({"base64": "aGVsbG8=", "retainUntil": later(&host, 2 * DAY)});
    let asked = crate::harness::asset(owner.post("/v1/assets", &ask).await).await;

    assert_eq!(owner.delete(&format!("/v1/assets/{}", loose.id)).await.status(), 204);
    let kept = owner.delete(&format!("/v1/assets/{}", asked.id)).await;

    assert_eq!(kept.status(), 409);
    let until = later(&host, 2 * DAY);
    assert_eq!(refusal(kept).await["details"]["because"], json!([{"ask": until, "until": until}]));
    assert_eq!(owner.delete("/v1/assets/ast_nonsense").await.status(), 404);
    assert_eq!(host.owner("globex").delete(&format!("/v1/assets/{}", loose.id)).await.status(), 404);
}

#[tokio::test]
async fn a_url_of_day_one_opens_on_the_last_day_whatever_happened_to_the_service() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let pictures = [png(3, 3), png(5, 4), png(6, 6)];
    let mut log = Vec::new();
    for picture in &pictures {
        log.push(owner.upload(picture.clone()).await.answer.to_string());
    }
    keep(&owner, "run-1", &later(&host, 60 * DAY)).await;

    host.advance(20 * DAY);
    rotate(host.folder(), host.now());
    let host = host.restart().await;
    host.advance(40 * DAY - Duration::from_millis(1));
    host.sweep().await;
    let host = host.restart().await;

    for (event, picture) in log.iter().zip(&pictures) {
        let event: Value = serde_json::from_str(event).expect("JSON");
        let url = event["url"].as_str().expect("a URL");
        let answer = host.stranger().get(url).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.bytes().await.expect("a body"), *picture);
    }
    let replayed = host.owner("acme").upload(pictures[0].clone()).await;
    assert_eq!(host.stranger().get(&replayed.url).await.status(), 200);
    assert_ne!(
        kid(&replayed.url),
        kid(serde_json::from_str::<Value>(&log[0]).expect("JSON")["url"].as_str().expect("a URL"))
    );

    host.advance(Duration::from_millis(1));
    let event: Value = serde_json::from_str(&log[2]).expect("JSON");
    let gone = refusal(host.stranger().get(event["url"].as_str().expect("a URL")).await).await;
    assert_eq!(
        (&gone["details"]["reason"], &gone["details"]["sha256"]),
        (&json!("asset_expired"), &event["asset"]["sha256"])
    );
}

/// Another key signs from now on.
fn rotate(folder: &Path, now: Timestamp) {
    let path = folder.join("keys/ring.json");
    let ring = mediakeep_keys::Ring::load(&path).expect("a ring");
    ring.rotate(now.as_second(), 0).expect("a key").save(&path).expect("a file");
}

/// The head of the URL's token, which names its key.
fn kid(url: &str) -> &str {
    url.rsplit("/a/").next().and_then(|token| token.split('.').next()).expect("a token")
}
