//! Erasure: privacy wins over floors, and leaves nothing of what was there.

use mediakeep::access::Scope;
use mediakeep::config::units::Span;
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::{AuditEvent, RunId, TenantId};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::{Asset, Caller, Host, refusal};
use crate::retention::{DAY, keep, later};

async fn erase(owner: &Caller<'_>, asset: &Asset, more: &str) -> Value {
    let answer = owner.delete(&format!("/v1/assets/{}?erase=true{more}", asset.id)).await;
    assert_eq!(answer.status(), 200);
    answer.json().await.expect("JSON")
}

async fn erase_run(owner: &Caller<'_>, run: &str) -> Value {
    let answer = owner.post(&format!("/v1/runs/{run}/erase"), &json!({})).await;
    assert_eq!(answer.status(), 200);
    answer.json().await.expect("JSON")
}

#[tokio::test]
async fn an_erased_asset_is_gone_whatever_its_floor() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    keep(&owner, "run-1", &later(&host, 90 * DAY)).await;
    let body = json!({"base64": "c2VjcmV0IGJ5dGVz", "name": "mine.txt", "alt": "words", "mimeType": "text/html"});
    let asset = crate::harness::asset(owner.inline(&body).await).await;
    let sha256 = owner.show(&asset).await["sha256"].as_str().expect("a digest").to_owned();
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);

    let erased = erase(&owner, &asset, "").await;

    let right = json!({"assetId": asset.id, "at": host.now(), "bytesRemoved": true, "sameBytes": []});
    assert_eq!(erased, right);
    assert_eq!(host.stored_blobs().await, 0);
    let shown = owner.show(&asset).await;
    assert_eq!(shown["state"], "erased");
    for member in ["name", "alt", "title", "sha256"] {
        assert_eq!(shown.get(member), None, "{member}");
    }
    let gone = host.stranger().get(&asset.url).await;
    assert_eq!(gone.status(), 410);
    let details = json!({"reason": "asset_erased", "at": erased["at"]});
    assert_eq!(refusal(gone).await["details"], details, "the caller learns when, and nothing of what it was");
    assert_eq!(owner.get(&format!("/v1/assets/{}/content", asset.id)).await.status(), 410);
    host.advance(DAY);
    assert_eq!(erase(&owner, &asset, "").await, right, "again: the same");
    // Neither what the store has kept of it beside the bytes.
    for file in crate::harness::process::files(&host.folder().join("blobs")) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(!text.contains(&sha256) && !text.contains("mine.txt") && !text.contains("words"), "{}", file.display());
    }
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn an_expired_asset_becomes_erased() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_loose(png(2, 2)).await;
    host.advance(DAY);
    host.sweep().await;
    assert_eq!(host.stored_blobs().await, 1);

    assert_eq!(erase(&owner, &asset, "").await["bytesRemoved"], true);

    assert_eq!(owner.show(&asset).await["state"], "erased");
    assert_eq!(host.stored_blobs().await, 0);
}

#[tokio::test]
async fn copies_are_named_and_go_only_when_they_are_meant() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let bytes = png(3, 3);
    let first = owner.upload(bytes.clone()).await;
    let mut copies = vec![owner.upload(bytes.clone()).await, owner.upload_loose(bytes.clone()).await];
    copies.sort_by(|a, b| a.id.cmp(&b.id));
    let other = owner.upload(png(4, 4)).await;
    let foreign = host.owner("globex").upload(bytes.clone()).await;
    let same = json!([copies[0].id, copies[1].id]);

    let erased = erase(&owner, &first, "").await;
    assert_eq!((&erased["bytesRemoved"], &erased["sameBytes"]), (&json!(false), &same));
    assert_eq!(host.stranger().get(&copies[0].url).await.status(), 200);

    let erased = erase(&owner, &first, "&copies=true").await;

    assert_eq!((&erased["bytesRemoved"], &erased["sameBytes"]), (&json!(true), &same));
    for copy in &copies {
        assert_eq!(host.stranger().get(&copy.url).await.status(), 410);
    }
    for kept in [&other, &foreign] {
        assert_eq!(host.stranger().get(&kept.url).await.status(), 200);
    }
    assert_eq!(host.stored_blobs().await, 2);
}

#[tokio::test]
async fn a_held_copy_keeps_all_of_them() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (first, copy) = (owner.upload(png(3, 3)).await, owner.upload(png(3, 3)).await);
    let held = owner.put(&format!("/v1/assets/{}/holds/audit", copy.id), &json!({"reason": "an audit"})).await;
    assert_eq!(held.status(), 200);

    let refused = owner.delete(&format!("/v1/assets/{}?erase=true&copies=true", first.id)).await;

    assert_eq!(refused.status(), 409);
    assert_eq!(refusal(refused).await["details"]["holds"], json!(["audit"]));
    assert_eq!(owner.show(&first).await["state"], "live");
}

#[tokio::test]
async fn the_idempotency_answer_goes_with_the_asset() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let send = async || {
        let request = owner.ingest().header("idempotency-key", "key").header("content-type", "image/png");
        crate::harness::asset(request.body(png(2, 2)).send().await.expect("an answer")).await
    };
    let first = send().await;
    assert_eq!(send().await.id, first.id);

    erase(&owner, &first, "").await;

    assert_ne!(send().await.id, first.id);
}

#[tokio::test]
async fn an_erased_run_takes_what_it_alone_kept_and_nothing_more_comes_to_it() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let mut alone = Vec::new();
    for seed in 0..4 {
        alone.push(owner.upload(noise(200, seed)).await);
    }
    let shared = owner.upload(noise(200, 10)).await;
    let held = owner.upload(noise(200, 11)).await;
    let loose = owner.upload_loose(noise(200, 12)).await;
    keep(&owner, "run-2", &later(&host, DAY)).await;
    let quoted = owner.post("/v1/runs/run-2/references", &json!({"assets": [shared.id]})).await;
    assert_eq!(quoted.status(), 200);
    let hold = owner.put(&format!("/v1/assets/{}/holds/audit", held.id), &json!({"reason": "an audit"})).await;
    assert_eq!(hold.status(), 200);

    let erased = erase_run(&owner, "run-1").await;

    assert_eq!((&erased["erased"], &erased["at"]), (&json!(4), &json!(host.now())));
    let mut kept = vec![
        json!({"assetId": shared.id, "because": [{"run": "run-2", "until": later(&host, DAY)}]}),
        json!({"assetId": held.id, "because": [{"hold": "audit", "until": null}]}),
    ];
    kept.sort_by_key(|one| one["assetId"].to_string());
    assert_eq!(erased["kept"], json!(kept));
    for asset in &alone {
        assert_eq!(host.stranger().get(&asset.url).await.status(), 410);
    }
    assert_eq!(host.stored_blobs().await, 3);
    assert_eq!(erase_run(&owner, "run-1").await, erased, "again: the same");
    let until = json!({"logRetainUntil": later(&host, DAY)});
    for refused in [
        owner.raw("", "image/png", png(2, 2)).await,
        owner.post("/v1/runs/run-1/references", &json!({"assets": [loose.id]})).await,
        owner.put("/v1/runs/run-1", &until).await,
        owner.put("/v1/runs/child", &json!({"forkOf": "run-1"})).await,
        owner.put("/v1/runs/run-1/holds/late", &json!({"reason": "an audit"})).await,
    ] {
        assert_eq!(refused.status(), 409);
        assert_eq!(refusal(refused).await["error"], "run_erased");
    }
    assert_eq!(host.stored_blobs().await, 3, "what was refused left nothing");
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn of_the_many_that_outlive_a_run_a_thousand_are_named() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.upload(noise(64, 1)).await;
    crate::sweep::crowd(&host, "run-1", 1_049).await;
    assert_eq!(owner.put("/v1/runs/child", &json!({"forkOf": "run-1"})).await.status(), 200);

    let erased = erase_run(&owner, "run-1").await;

    assert_eq!((&erased["erased"], &erased["truncated"]), (&json!(0), &json!(true)));
    assert_eq!(erased["kept"].as_array().map(Vec::len), Some(1_000));
    assert_eq!(erased["kept"][999]["because"], json!([{"run": "child", "until": null}]));
    assert_eq!(erase_run(&owner, "child").await, json!({"erased": 1_050, "kept": [], "at": host.now()}));
    assert_eq!(host.stored_blobs().await, 0);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn a_sweep_finishes_the_erasure_that_a_crash_cut_short() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    let tenant = TenantId::parse("acme").expect("a tenant");
    let run = RunId::parse("run-1").expect("a run");
    let audit = AuditEvent::new(AuditKind::Erase, "host", host.now());
    host.app().index.erase_run(&tenant, &run, audit, host.now()).await.expect("an erasure");

    assert_eq!(host.sweep().await.erased, 1);

    assert_eq!(owner.show(&asset).await["state"], "erased");
    assert_eq!(host.stored_blobs().await, 0);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn nothing_is_left_of_a_tenant_of_which_all_was_erased_and_others_have_what_they_had() {
    let host = Host::with(|settings| settings.retention.tombstone_record = Span::hours(24)).await;
    let (owner, other) = (host.owner("acme"), host.owner("globex"));
    let theirs = other.upload(noise(200, 1)).await;
    let before = files_of(&host, "globex");
    for run in ["run-1", "run-2"] {
        owner.upload_to(run, noise(200, 1)).await;
        let named = owner.upload_to(run, noise(300, 2)).await;
        let parts = json!([{"assetId": named.id}, {"raw": "c2VjcmV0", "mediaType": "text/plain"}]);
        let put = owner.put(&format!("/v1/runs/{run}/artifacts/report"), &json!({"parts": parts})).await;
        assert_eq!(put.status(), 201);
    }
    let loose = owner.upload_loose(noise(400, 3)).await;
    let begun = owner.request(Method::POST, "/v1/uploads").header("Tus-Resumable", "1.0.0");
    let begun = begun.header("Upload-Length", "10").header("Content-Type", "application/offset+octet-stream");
    let begun = begun.body("secret").send().await.expect("an answer");
    let begun = begun.headers()["location"].to_str().expect("a URL").to_owned();
    assert!(files_of(&host, "acme").iter().any(|file| file.starts_with("b/")), "its bytes lie here");

    let erased = [erase_run(&owner, "run-1").await, erase_run(&owner, "run-2").await];
    erase(&owner, &loose, "").await;
    let ended = owner.request(Method::DELETE, &begun).header("Tus-Resumable", "1.0.0").send().await;
    assert_eq!(ended.expect("an answer").status(), 204);
    for _ in 0..3 {
        host.sweep().await;
        host.advance(2 * DAY);
    }

    assert_eq!(erased.map(|told| told["erased"].as_u64()), [Some(3), Some(3)]);
    // What the registry remembers, lest an erased run be promised anew: its name, and when it was erased.
    let left = files_of(&host, "acme");
    assert!(left.len() == 2 && left.iter().all(|file| file.starts_with("r/r/")), "{left:?}");
    assert_eq!((files_of(&host, "globex"), host.stored_blobs().await), (before, 1));
    assert_eq!(host.stranger().get(&theirs.url).await.status(), 200);
    let usage: Value = owner.get("/v1/usage").await.json().await.expect("JSON");
    assert_eq!((&usage["bytes"], &usage["assets"]), (&json!(0), &json!(0)), "{usage}");
    assert!(host.verify().await.is_clean());
}

/// What the store has of a tenant, by paths in its folder.
fn files_of(host: &Host, tenant: &str) -> Vec<String> {
    let folder = host.folder().join("blobs/t").join(TenantId::parse(tenant).expect("a tenant").prefix());
    let files = crate::harness::process::files(&folder).into_iter();
    let mut files: Vec<_> = files
        .map(|file| file.strip_prefix(&folder).expect("it lies there").to_str().expect("text").to_owned())
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn erasure_is_for_those_who_may() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    let path = format!("/v1/assets/{}", asset.id);
    let writer = host.with_scope("acme", Scope::AssetsWrite);
    let eraser = host.with_scope("acme", Scope::AssetsErase);

    let refused = writer.delete(&format!("{path}?erase=true")).await;
    assert_eq!(refused.status(), 403);
    assert_eq!(refusal(refused).await["details"]["scopeRequired"], "assets:erase");
    assert_eq!(writer.post("/v1/runs/run-1/erase", &json!({})).await.status(), 403);
    assert_eq!(eraser.delete(&path).await.status(), 403);
    assert_eq!(host.owner("globex").delete(&format!("{path}?erase=true")).await.status(), 404);
    assert_eq!(host.owner("globex").post("/v1/runs/run-1/erase", &json!({})).await.status(), 404);
    for wrong in ["?erase=yes", "?copies=true", "?erase=false&copies=true", "?erase=true&copies=1", "?erase=true&x=1"] {
        assert_eq!(owner.delete(&format!("{path}{wrong}")).await.status(), 400, "{wrong}");
    }
    assert_eq!(owner.show(&asset).await["state"], "live");
    assert_eq!(eraser.delete(&format!("{path}?erase=true")).await.status(), 200);
}
