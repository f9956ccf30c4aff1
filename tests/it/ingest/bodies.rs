//! One asset, however its bytes are wrapped.

use data_encoding::BASE64;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::form::Form;
use crate::harness::{Host, asset, refusal};

/// Every member that all kinds of body have, for a PNG.
const MEMBERS: [(&str, &str); 8] = [
    ("mimeType", "image/png"),
    ("name", "signups.png"),
    ("alt", "Bar chart of weekly signups & more: 100 %"),
    ("title", "Größe + Lage"),
    ("nodeId", "node/1"),
    ("envelopeId", "env 1"),
    ("correlationId", "corr=1&2"),
    ("source", "user"),
];

#[tokio::test]
async fn three_kinds_of_body_give_the_same_asset() {
    let host = Host::start().await;
    let (owner, picture) = (host.owner("acme"), png(4, 3));
    let mut inline = json!(std::collections::BTreeMap::from(MEMBERS));
    inline["base64"] = json!(BASE64.encode(&picture));
    inline["retainUntil"] = json!("2030-01-01T00:00:00Z");
    let form = MEMBERS.into_iter().fold(Form::new().file(&picture), |form, (name, value)| form.text(name, value));
    let form = form.text("retainUntil", "2030-01-01T00:00:00Z");
    let raw = owner.ingest().query(&MEMBERS).query(&[("retainUntil", "2030-01-01T00:00:00Z")]);

    let one = asset(owner.inline(&inline).await).await;
    let two = asset(owner.form(form).await).await;
    let three = asset(raw.body(picture.clone()).send().await.expect("an answer")).await;

    let told = |answer: &Value| {
        let mut told = answer["asset"].clone();
        told.as_object_mut().expect("an object").remove("assetId").expect("an id");
        told
    };
    assert_eq!(told(&one.answer), told(&two.answer));
    assert_eq!(told(&one.answer), told(&three.answer));
    for (name, value) in MEMBERS.into_iter().filter(|(name, _)| *name != "mimeType") {
        assert_eq!(one.answer["asset"][name], value, "{name}");
    }
    assert_eq!(one.answer["asset"]["declaredMimeType"], "image/png");
    assert_eq!(one.answer["envelope"], {
        let mut same = two.answer["envelope"].clone();
        same["meta"]["ts"] = one.answer["envelope"]["meta"]["ts"].clone();
        same
    });
    for asset in [one, two, three] {
        let found = host.stranger().get(&asset.url).await;
        assert_eq!(found.bytes().await.expect("a body"), picture);
    }
}

#[tokio::test]
async fn no_kind_of_body_may_be_empty() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let typed = |mime_type: &str| owner.ingest().header("content-type", mime_type);
    let requests = [
        ("no JSON", typed("application/json").body("")),
        ("no bytes in JSON", typed("application/json").body(r#"{"base64": ""}"#)),
        ("only white space in JSON", typed("application/json").body(r#"{"base64": " \r\n "}"#)),
        ("an empty data: URL", typed("application/json").body(r#"{"base64": "data:text/plain,"}"#)),
        ("no form", typed("multipart/form-data; boundary=frontier").body("")),
        ("no bytes in a form", typed("multipart/form-data; boundary=frontier").body(Form::new().file(b"").end())),
        ("no bytes", typed("image/png").body("")),
        ("no body at all", owner.ingest()),
        (
            "an empty chunked body",
            owner.ingest().body(reqwest::Body::wrap_stream(futures_util::stream::empty::<Piece>())),
        ),
    ];
    for (what, request) in requests {
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 400, "{what}");
        let body = refusal(answer).await;
        assert_eq!(body["error"], "validation_error", "{what}");
        assert_eq!(body["details"]["reason"], "empty", "{what}: {body}");
    }
    assert!(host.is_bare().await);
}

type Piece = Result<Vec<u8>, std::io::Error>;

#[tokio::test]
async fn a_raw_body_needs_no_length() {
    let host = Host::start().await;
    let pieces = png(9, 9).chunks(7).map(|piece| Piece::Ok(piece.to_vec())).collect::<Vec<_>>();

    let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    let asset = asset(host.owner("acme").raw("", "image/png", body).await).await;

    let found = host.stranger().get(&asset.url).await;
    assert_eq!(found.bytes().await.expect("a body"), png(9, 9));
}

#[tokio::test]
async fn a_json_document_is_kept_as_bytes_when_it_is_sent_as_such() {
    let host = Host::start().await;
    let (owner, document) = (host.owner("acme"), r#"{"base64": "no member of ours"}"#);

    let raw = asset(owner.raw("?mimeType=application/json", "application/octet-stream", document).await).await;
    let form = Form::new().named_file("a.json", "application/json", document.as_bytes());
    let form = asset(owner.form(form).await).await;

    for asset in [raw, form] {
        assert_eq!(asset.answer["asset"]["mimeType"], "application/json");
        assert_eq!(host.stranger().get(&asset.url).await.text().await.expect("text"), document);
    }
}

#[tokio::test]
async fn an_upload_without_a_run_belongs_to_none() {
    let host = Host::start().await;

    let asset = host.owner("acme").upload_loose(png(2, 2)).await;

    let told = &asset.answer["asset"];
    assert_eq!(told["runId"], Value::Null);
    assert_eq!(told["references"], json!([]));
    assert_eq!(told["retentionSource"], "unreferenced");
}

#[tokio::test]
async fn the_answer_says_where_the_asset_stands() {
    let host = Host::start().await;

    let answer = host.owner("acme").raw("", "image/png", png(2, 2)).await;

    let location = answer.headers()["location"].to_str().expect("ASCII").to_owned();
    assert_eq!(answer.headers()["cache-control"], "no-store");
    assert!(answer.headers().contains_key("x-request-id"));
    let asset = asset(answer).await;
    assert_eq!(location, host.url(&format!("/v1/assets/{}", asset.id)));
    assert_eq!(asset.answer["mediaRef"], format!("blob:{}", asset.id));
    assert_eq!(host.owner("acme").show(&asset).await, asset.answer["asset"]);
}

#[tokio::test]
async fn a_compressed_body_is_refused_rather_than_kept_as_something_else() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for path in ["/v1/runs/run-1/assets", "/v1/assets"] {
        let request = owner.request(Method::POST, path).header("content-type", "image/png");
        let answer = request.header("content-encoding", "gzip").body(png(2, 2)).send().await.expect("an answer");

        assert_eq!(answer.status(), 415);
        assert_eq!(answer.headers()["accept-encoding"], "identity");
        assert_eq!(refusal(answer).await["error"], "unsupported_media_type");
    }
    assert!(host.is_bare().await);
}
