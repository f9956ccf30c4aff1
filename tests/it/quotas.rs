//! How much a tenant may have, and what counts.

use std::time::Duration;

use data_encoding::BASE64;
use futures_util::future::join_all;
use mediakeep::config::settings::Tenant;
use mediakeep::config::units::Size;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::noise;
use crate::harness::form::{self, Form};
use crate::harness::raw::{self, Wire};
use crate::harness::{Caller, Host, asset, refusal};

pub async fn of_bytes(most: u64) -> Host {
    Host::with(|settings| settings.limits.tenant_bytes = Size(most)).await
}

async fn of_assets(most: u64) -> Host {
    Host::with(|settings| settings.limits.tenant_assets = most).await
}

async fn usage(caller: &Caller<'_>) -> Value {
    let answer = caller.get("/v1/usage").await;
    assert_eq!(answer.status(), 200);
    answer.json().await.expect("JSON")
}

/// Bytes, assets, reserved bytes.
pub async fn used(caller: &Caller<'_>) -> (u64, u64, u64) {
    let usage = usage(caller).await;
    let number = |name: &str| usage[name].as_u64().expect("a number");
    (number("bytes"), number("assets"), number("reservedBytes"))
}

pub async fn over_quota(answer: reqwest::Response) {
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after"], "60");
    let body = refusal(answer).await;
    assert_eq!((&body["error"], &body["details"]), (&json!("rate_limited"), &json!({"reason": "quota"})));
}

pub async fn send(caller: &Caller<'_>, bytes: Vec<u8>) -> reqwest::Response {
    caller.raw("", "application/octet-stream", bytes).await
}

#[tokio::test]
async fn a_tenant_is_told_what_it_uses_and_what_it_may() {
    let host = Host::with(|settings| {
        settings.limits.tenant_bytes = Size(1_000);
        let own = |id: &str, bytes, assets| Tenant {
            id: id.into(),
            tenant_bytes: bytes,
            tenant_assets: assets,
            ..Tenant::default()
        };
        settings.tenants = vec![own("globex", Some(Size(0)), Some(7)), own("Acme", Some(Size(5)), None)];
    })
    .await;
    let owner = host.owner("acme");
    owner.upload(noise(100, 1)).await;

    let told = json!({"bytes": 100, "assets": 1, "reservedBytes": 0, "quota": {"bytes": 1_000, "assets": null}});
    assert_eq!(usage(&owner).await, told);
    let told = json!({"bytes": 0, "assets": 0, "reservedBytes": 0, "quota": {"bytes": null, "assets": 7}});
    assert_eq!(usage(&host.owner("globex")).await, told, "what others use is not seen, and its own quota is its own");
    assert_eq!(usage(&host.owner("Acme")).await["quota"], json!({"bytes": 5, "assets": null}));
    assert_eq!(host.owner("globex").upload(noise(2_000, 1)).await.answer["asset"]["bytes"], 2_000);
    over_quota(send(&host.owner("Acme"), noise(6, 1)).await).await;
    let writer = host.with_scope("acme", mediakeep::access::Scope::AssetsWrite);
    assert_eq!(writer.get("/v1/usage").await.status(), 403);
    assert_eq!(host.stranger().get("/v1/usage").await.status(), 401);
}

/// How many kinds of body there are, each with a length and without.
const KINDS: usize = 6;

/// Sends the bytes in that kind of body, into no run.
async fn send_in(owner: &Caller<'_>, kind: usize, bytes: &[u8]) -> reqwest::Response {
    let (mime_type, body) = match kind / 2 {
        0 => ("application/octet-stream", bytes.to_vec()),
        1 => (form::TYPE, Form::new().file(bytes).end()),
        _ => ("application/json", json!({"base64": BASE64.encode(bytes)}).to_string().into_bytes()),
    };
    let body = if kind.is_multiple_of(2) { body.into() } else { chunked(&body) };
    let request = owner.request(Method::POST, "/v1/assets").header("content-type", mime_type).body(body);
    request.send().await.expect("an answer")
}

fn chunked(body: &[u8]) -> reqwest::Body {
    let pieces = body.chunks(8_192).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>();
    reqwest::Body::wrap_stream(futures_util::stream::iter(pieces))
}

#[tokio::test]
async fn the_last_byte_of_a_quota_is_given_in_every_kind_of_body_and_not_one_more() {
    const MOST: usize = 3_000_000;
    let host = of_bytes(MOST as u64).await;
    let owner = host.owner("acme");
    for kind in 0..KINDS {
        over_quota(send_in(&owner, kind, &noise(MOST + 1, 1)).await).await;
        assert_eq!(used(&owner).await, (0, 0, 0));
        assert!(host.is_bare().await, "{kind}");
    }
    for kind in 0..KINDS {
        let kept = asset(send_in(&owner, kind, &noise(MOST, 2)).await).await;
        assert_eq!(used(&owner).await, (MOST as u64, 1, 0), "{kind}");
        for kind in 0..KINDS {
            over_quota(send_in(&owner, kind, b"x").await).await;
        }
        assert_eq!(owner.delete(&format!("/v1/assets/{}", kept.id)).await.status(), 204);
    }
}

#[tokio::test]
async fn of_many_at_the_edge_of_a_quota_exactly_so_many_get_in() {
    for host in [of_bytes(10_500).await, of_assets(10).await] {
        let owner = host.owner("acme");
        let answers = join_all((0..30).map(|seed| send(&owner, noise(1_000, seed)))).await;

        let stored = answers.iter().filter(|answer| answer.status() == 201).count();
        let refused = answers.iter().filter(|answer| answer.status() == 429).count();
        assert_eq!((stored, refused), (10, 20));
        assert_eq!(used(&owner).await, (10_000, 10, 0));
        assert!(host.verify().await.is_clean());
    }
}

#[tokio::test]
async fn an_upload_in_progress_counts_and_gives_back_what_it_had_when_it_stops() {
    let host = of_bytes(100).await;
    let owner = host.owner("acme");
    for head in ["Content-Length: 60\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut wire = Wire::open(host.address()).await;
        wire.send(&raw::head("acme", "text/plain", head)).await;
        let piece = noise(55, 1);
        wire.send(&if head.starts_with('C') { piece } else { raw::chunk(&piece) }).await;
        let least = if head.starts_with('C') { 60 } else { 55 };
        reserved(&owner, least).await;

        over_quota(send(&owner, noise(50, 2)).await).await;
        let beside = asset(send(&owner, noise(40, 3)).await).await.id;
        drop(wire);

        reserved(&owner, 0).await;
        let behind = asset(send(&owner, noise(60, 4)).await).await.id;
        assert_eq!(used(&owner).await, (100, 2, 0));
        for asset in [beside, behind] {
            let erased = owner.delete(&format!("/v1/assets/{asset}?erase=true")).await;
            assert!(erased.status().is_success(), "{}", erased.status());
        }
        assert_eq!(used(&owner).await, (0, 0, 0));
    }
}

/// Waits until so many bytes are reserved.
async fn reserved(owner: &Caller<'_>, bytes: u64) {
    for _ in 0..1_000 {
        if used(owner).await.2 == bytes {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    unreachable!("{bytes} bytes are to be reserved, and {:?} are used", used(owner).await);
}

#[tokio::test]
async fn a_refusal_after_the_last_byte_gives_back_too() {
    let host = of_bytes(100).await;
    let owner = host.owner("acme");
    for _ in 0..3 {
        let wrong = owner.raw(&format!("?sha256={}", "0".repeat(64)), "text/plain", noise(90, 1)).await;
        assert_eq!(wrong.status(), 400);
        let wrong = owner.inline(&json!({"base64": BASE64.encode(&noise(90, 1)), "unheard": "of"})).await;
        assert_eq!(wrong.status(), 400);
    }
    assert_eq!(used(&owner).await, (0, 0, 0));
    assert_eq!(send(&owner, noise(100, 1)).await.status(), 201);
}

#[tokio::test]
async fn equal_bytes_count_twice_so_that_nobody_sees_what_was_there() {
    let host = of_bytes(250).await;
    let owner = host.owner("acme");
    owner.upload(noise(100, 1)).await;
    let fresh = used(&owner).await;
    owner.upload(noise(100, 1)).await;

    assert_eq!((fresh, used(&owner).await), ((100, 1, 0), (200, 2, 0)));
    assert_eq!(host.stored_blobs().await, 1);
    over_quota(send(&owner, noise(100, 1)).await).await;
}

#[tokio::test]
async fn whatever_ends_leaves_room_at_once() {
    let host = of_assets(4).await;
    let owner = host.owner("acme");
    let [deleted, erased] = [owner.upload_loose(noise(10, 1)).await, owner.upload_loose(noise(10, 2)).await];
    owner.upload_to("run-2", noise(10, 3)).await;
    owner.upload_loose(noise(10, 4)).await;
    over_quota(send(&owner, noise(10, 5)).await).await;

    assert_eq!(owner.delete(&format!("/v1/assets/{}", deleted.id)).await.status(), 204);
    assert_eq!(used(&owner).await, (30, 3, 0));
    let gone = owner.delete(&format!("/v1/assets/{}?erase=true", erased.id)).await;
    assert!(gone.status().is_success());
    assert_eq!(used(&owner).await, (20, 2, 0));
    assert_eq!(owner.post("/v1/runs/run-2/erase", &json!({})).await.status(), 200);
    assert_eq!(used(&owner).await, (10, 1, 0));
    host.advance(Duration::from_secs(86_401));
    assert_eq!(host.sweep().await.expired, 1);
    assert_eq!(used(&owner).await, (0, 0, 0));
    for seed in 6..10 {
        assert_eq!(send(&owner, noise(10, seed)).await.status(), 201);
    }
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_answered_though_the_quota_is_full() {
    let host = of_assets(1).await;
    let owner = host.owner("acme");
    let request = |key: &str| owner.ingest().header("idempotency-key", key).body(noise(10, 1)).send();

    let first = asset(request("first").await.expect("an answer")).await;
    over_quota(request("second").await.expect("an answer")).await;
    let again = request("first").await.expect("an answer");
    assert_eq!(again.headers()["openwop-idempotent-replay"], "true");
    assert_eq!(asset(again).await.id, first.id);

    // The refused one has left its key free.
    assert!(owner.delete(&format!("/v1/assets/{}?erase=true", first.id)).await.status().is_success());
    assert_eq!(request("second").await.expect("an answer").status(), 201);
}

#[tokio::test]
async fn a_quota_that_is_lowered_takes_nothing_away() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let kept = owner.upload(noise(100, 1)).await;
    host.reload(|settings| {
        let tenant_bytes = Some(Size(50));
        settings.tenants = vec![Tenant { id: "acme".into(), tenant_bytes, ..Tenant::default() }];
    });

    over_quota(send(&owner, noise(1, 2)).await).await;
    host.sweep().await;
    assert_eq!(owner.get(&kept.url).await.status(), 200);
    assert_eq!(usage(&owner).await["quota"]["bytes"], 50);
    assert_eq!(used(&owner).await, (100, 1, 0));
}

#[tokio::test]
async fn retention_goes_on_for_a_tenant_that_is_suspended() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.upload_loose(noise(100, 1)).await;
    let suspend = |suspended| {
        host.reload(|settings| settings.tenants = vec![Tenant { id: "acme".into(), suspended, ..Tenant::default() }]);
    };
    suspend(true);
    assert_eq!(owner.get("/v1/usage").await.status(), 403);

    host.advance(Duration::from_secs(86_401));
    assert_eq!(host.sweep().await.expired, 1);

    suspend(false);
    assert_eq!(used(&owner).await, (0, 0, 0));
}
