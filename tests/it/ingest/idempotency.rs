//! `Idempotency-Key`: a request that is sent again is the same request.

use std::time::Duration;

use data_encoding::BASE64;
use futures_util::future::join_all;
use mediakeep::config::units::{Size, Span};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::form::{self, Form};
use crate::harness::raw::{self, Wire};
use crate::harness::{Asset, Caller, Host, asset, refusal};

const REPLAY: &str = "openwop-idempotent-replay";

async fn send(caller: &Caller<'_>, key: &str, body: &Value) -> Response {
    caller.ingest().header("idempotency-key", key).json(body).send().await.expect("an answer")
}

fn body() -> Value {
    json!({"base64": BASE64.encode(&png(3, 3)), "alt": "a chart"})
}

async fn assets(host: &Host, tenant: &str) -> usize {
    let page: Value = host.owner(tenant).get("/v1/assets").await.json().await.expect("JSON");
    page["assets"].as_array().expect("a list").len()
}

#[tokio::test]
async fn ten_at_once_make_one_asset() {
    let host = Host::start().await;
    let (owner, body) = (host.owner("acme"), body());

    let answers = join_all((0..10).map(|_| send(&owner, "k", &body))).await;

    let mut made: Vec<Asset> = Vec::new();
    let mut first = 0;
    for answer in answers {
        if answer.status() == 409 {
            assert!(answer.headers().contains_key("retry-after"));
            assert_eq!(refusal(answer).await["error"], "idempotency_in_flight");
            continue;
        }
        first += usize::from(!answer.headers().contains_key(REPLAY));
        made.push(asset(answer).await);
    }
    assert_eq!(first, 1);
    assert!(made.iter().all(|asset| asset.id == made[0].id && asset.url == made[0].url));
    assert_eq!(assets(&host, "acme").await, 1);
    assert_eq!(host.stored_blobs().await, 1);
    assert_eq!(host.staged_files(), 0);
}

#[tokio::test]
async fn a_request_that_comes_again_gets_its_answer_again() {
    let host = Host::start().await;
    let first = asset(send(&host.owner("acme"), "k", &body()).await).await;
    host.advance(Duration::from_secs(23 * 3600));

    let again = send(&host.owner("acme"), "k", &body()).await;

    assert_eq!(again.status(), 201);
    assert_eq!(again.headers()[REPLAY], "true");
    assert_eq!(asset(again).await.answer, first.answer);
    assert_eq!(assets(&host, "acme").await, 1);
}

#[tokio::test]
async fn a_request_that_comes_again_after_its_own_time_gets_its_answer_again() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let until = (host.now() + Duration::from_secs(60)).to_string();
    let with = |alt: &str| json!({"base64": BASE64.encode(&png(3, 3)), "alt": alt, "retainUntil": until});
    let raw = |key: &'static str| {
        let request = owner.ingest().query(&[("retainUntil", &until)]).header("content-type", "image/png");
        request.header("idempotency-key", key).body(png(3, 3)).send()
    };
    let inline = asset(send(&owner, "inline", &with("a chart")).await).await;
    let plain = asset(raw("raw").await.expect("an answer")).await;
    host.advance(Duration::from_secs(61));

    let again = [send(&owner, "inline", &with("a chart")).await, raw("raw").await.expect("an answer")];

    for (again, first) in again.into_iter().zip([inline, plain]) {
        assert_eq!(again.headers()[REPLAY], "true");
        assert_eq!(asset(again).await.id, first.id);
    }
    // Whoever asks for something new hears that the time has passed, whatever else is wrong.
    let new = [send(&owner, "new", &with("a chart")).await, raw("other").await.expect("an answer")];
    for answer in new.into_iter().chain([send(&owner, "inline", &with("another chart")).await]) {
        assert_eq!(answer.status(), 400);
        assert_eq!(refusal(answer).await["message"], "retainUntil: that time has passed");
    }
    assert_eq!(host.staged_files(), 0);
}

#[tokio::test]
async fn the_answer_is_that_of_the_asset_as_it_is_now() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let first = asset(send(&owner, "k", &body()).await).await;
    owner.patch(&format!("/v1/assets/{}", first.id), &json!({"alt": "better words"})).await;

    let again = asset(send(&owner, "k", &body()).await).await;

    assert_eq!((&again.id, &again.url), (&first.id, &first.url));
    assert_eq!(again.answer["asset"]["alt"], "better words");
}

#[tokio::test]
async fn a_restart_forgets_no_key() {
    let host = Host::start().await;
    let first = asset(send(&host.owner("acme"), "k", &body()).await).await;

    let host = host.restart().await;
    let again = send(&host.owner("acme"), "k", &body()).await;

    assert_eq!(again.headers()[REPLAY], "true");
    assert_eq!(asset(again).await.answer, first.answer);
}

#[tokio::test]
async fn the_wrapper_of_the_bytes_is_no_difference() {
    let host = Host::start().await;
    let (owner, picture) = (host.owner("acme"), png(3, 3));
    let first = asset(send(&owner, "k", &body()).await).await;

    let keyed = || owner.ingest().header("idempotency-key", "k");
    let form = Form::new().text("alt", "a chart").file(&picture).end();
    let form = keyed().header("content-type", form::TYPE).body(form).send().await.expect("an answer");
    let raw = keyed().query(&[("alt", "a chart")]).body(picture.clone()).send().await.expect("an answer");
    let spelled =
        json!({"data": BASE64.encode(&picture), "alt": "a chart", "delivery": "auto", "source": "ai-generation"});

    for again in [form, raw, send(&owner, "k", &spelled).await] {
        assert_eq!(again.headers()[REPLAY], "true");
        assert_eq!(asset(again).await.id, first.id);
    }
}

#[tokio::test]
async fn another_body_or_member_is_another_request() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    send(&owner, "k", &body()).await;
    let with = |name: &str, value: &str| {
        let mut body = body();
        body[name] = json!(value);
        body
    };
    for (what, other) in [
        ("bytes", json!({"base64": BASE64.encode(&png(4, 4)), "alt": "a chart"})),
        ("no alt", json!({"base64": BASE64.encode(&png(3, 3))})),
        ("alt", with("alt", "another")),
        ("name", with("name", "a.png")),
        ("title", with("title", "t")),
        ("mimeType", with("mimeType", "image/png")),
        ("nodeId", with("nodeId", "n")),
        ("envelopeId", with("envelopeId", "e")),
        ("correlationId", with("correlationId", "c")),
        ("source", with("source", "user")),
        ("retainUntil", with("retainUntil", "2040-01-01T00:00:00Z")),
        ("delivery", with("delivery", "url")),
    ] {
        let answer = send(&owner, "k", &other).await;
        assert_eq!(answer.status(), 409, "{what}");
        let body = refusal(answer).await;
        assert_eq!(body["error"], "idempotency_key_mismatch", "{what}");
    }
    assert_eq!(assets(&host, "acme").await, 1);
    assert_eq!(host.stored_blobs().await, 1);
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_told_before_what_is_in_its_way() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    send(&owner, "settled", &body()).await;
    let mut wire = Wire::open(host.address()).await;
    wire.send(&raw::head("acme", "text/plain", "Content-Length: 10\r\nIdempotency-Key: running\r\n")).await;
    wire.send(b"half ").await;
    tokio::time::sleep(Duration::from_millis(100)).await;

    for key in ["settled", "running"] {
        for (what, wrong) in [
            ("unknown member", json!({"base64": "AAAA", "colour": "red"})),
            ("bad base64", json!({"base64": "A"})),
            ("empty", json!({"base64": ""})),
            ("digest", json!({"base64": BASE64.encode(&png(3, 3)), "alt": "a chart", "sha256": "0".repeat(64)})),
        ] {
            assert_eq!(send(&owner, key, &wrong).await.status(), 400, "{key}: {what}");
        }
    }
    let busy = send(&owner, "running", &body()).await;
    assert_eq!(busy.status(), 409);
    assert_eq!(refusal(busy).await["error"], "idempotency_in_flight");
    wire.send(b"whole").await;
    assert_eq!(wire.hear(Duration::from_secs(3)).await.status(), 201);
    assert_eq!(refusal(send(&owner, "running", &body()).await).await["error"], "idempotency_key_mismatch");
}

#[tokio::test]
async fn a_key_means_something_only_in_its_run_and_tenant() {
    let host = Host::start().await;
    let (owner, body) = (host.owner("acme"), body());
    let first = asset(send(&owner, "k", &body).await).await;

    let elsewhere = |caller: &Caller<'_>, path: &str| {
        caller.request(Method::POST, path).header("idempotency-key", "k").json(&body).send()
    };
    for answer in [
        elsewhere(&owner, "/v1/runs/run-2/assets").await,
        elsewhere(&owner, "/v1/assets").await,
        elsewhere(&host.owner("globex"), "/v1/runs/run-1/assets").await,
        elsewhere(&host.owner("Acme"), "/v1/runs/run-1/assets").await,
    ] {
        let answer = answer.expect("an answer");
        assert!(!answer.headers().contains_key(REPLAY));
        assert_ne!(asset(answer).await.id, first.id);
    }
}

#[tokio::test]
async fn a_request_that_failed_gives_its_key_back_before_it_answers() {
    let host = Host::with(|settings| {
        settings.limits.max_upload_bytes = Size(1_000);
        settings.ingest.refuse_types = vec!["text/html".into()];
    })
    .await;
    let owner = host.owner("acme");
    let large = BASE64.encode(&[0; 1_001]);
    for (what, status, wrong) in [
        ("empty", 400, json!({"base64": ""})),
        ("bad base64", 400, json!({"base64": "AAAAA"})),
        ("unknown member", 400, json!({"base64": "AAAA", "colour": "red"})),
        ("bad member", 400, json!({"base64": "AAAA", "source": "robot"})),
        ("digest", 400, json!({"base64": "AAAA", "sha256": "0".repeat(64)})),
        ("tenant", 403, json!({"base64": "AAAA", "tenant": "globex"})),
        ("too large", 413, json!({"base64": large})),
        ("refused", 415, json!({"base64": BASE64.encode(b"<!DOCTYPE html><html></html>")})),
    ] {
        for round in 0..5 {
            let answer = send(&owner, "k", &wrong).await;
            assert_eq!(answer.status(), status, "{what}, round {round}: {}", refusal(answer).await);
        }
        assert!(host.is_bare().await, "{what}");
    }
    let answer = send(&owner, "k", &body()).await;
    assert!(!answer.headers().contains_key(REPLAY));
    asset(answer).await;
}

#[tokio::test]
async fn a_key_is_free_again_when_its_time_is_over() {
    let host = Host::start().await;
    let first = asset(send(&host.owner("acme"), "k", &body()).await).await;
    host.advance(Duration::from_secs(24 * 3600 + 1));

    let later = send(&host.owner("acme"), "k", &json!({"base64": "AAAA"})).await;

    assert!(!later.headers().contains_key(REPLAY));
    assert_ne!(asset(later).await.id, first.id);
}

#[tokio::test]
async fn an_answer_of_which_nothing_is_left_is_as_if_it_had_never_been_given() {
    let host = Host::with(|settings| settings.retention.tombstone_record = Span::hours(1)).await;
    let owner = host.owner("acme");
    let send = async |body: &Value| {
        let request = owner.request(Method::POST, "/v1/assets").header("idempotency-key", "k").json(body);
        request.send().await.expect("an answer")
    };
    let mut gone = Vec::new();
    for body in [body(), body(), json!({"base64": BASE64.encode(&png(4, 4))})] {
        let answers = join_all((0..4).map(|_| send(&body))).await;
        let first = answers.iter().filter(|answer| answer.status() == 201 && !answer.headers().contains_key(REPLAY));
        assert_eq!(first.count(), 1, "it starts afresh, for one of those who come");
        let again = send(&body).await;
        assert_eq!(again.headers()[REPLAY], "true");
        let made = asset(again).await;
        assert!(!gone.contains(&made.id));

        assert_eq!(owner.delete(&format!("/v1/assets/{}", made.id)).await.status(), 204);
        host.advance(Duration::from_secs(2 * 3600));
        host.sweep().await;
        assert_eq!(owner.get(&format!("/v1/assets/{}", made.id)).await.status(), 404, "its last trace is gone");
        gone.push(made.id);
    }
}

#[tokio::test]
async fn a_key_is_of_plain_characters() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for key in ["", "a b", "a/b", "é", "a,b", &"x".repeat(129)] {
        let answer = send(&owner, key, &body()).await;
        assert_eq!(answer.status(), 400, "{key:?}");
        assert!(refusal(answer).await["message"].as_str().expect("text").starts_with("Idempotency-Key"), "{key:?}");
    }
    let two = owner.ingest().header("idempotency-key", "a").header("idempotency-key", "b").json(&body());
    assert_eq!(two.send().await.expect("an answer").status(), 400);
    assert!(host.is_bare().await);
    for key in ["k", "A-z_0.9~", &"x".repeat(128)] {
        assert_eq!(send(&owner, key, &body()).await.status(), 201, "{key:?}");
    }
}
