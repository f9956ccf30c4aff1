//! Inline bodies: how base64 may be spelled, and what is refused.

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL, BASE64URL_NOPAD};
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::raw::{self, Wire};
use crate::harness::{Caller, Host, asset, refusal};

#[tokio::test]
async fn every_spelling_of_base64_gives_the_same_bytes() {
    let host = Host::start().await;
    let (owner, bytes) = (host.owner("acme"), noise(1_000, 1));
    let plain = BASE64.encode(&bytes);
    let lines: Vec<&str> = plain.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
    let spellings = [
        plain.clone(),
        BASE64_NOPAD.encode(&bytes),
        BASE64URL.encode(&bytes),
        BASE64URL_NOPAD.encode(&bytes),
        lines.join("\r\n"),
        format!(" \t\n{plain} \r\n"),
        format!("data:image/png;base64,{plain}"),
        format!("DATA:;Base64,{plain}"),
    ];
    for spelling in &spellings {
        for member in ["base64", "contentBase64", "data", "dataBase64"] {
            let asset = asset(owner.inline(&json!({member: spelling})).await).await;
            let found = host.stranger().get(&asset.url).await;
            assert_eq!(found.bytes().await.expect("a body"), bytes, "{member}: {}…", &spelling[..24]);
        }
    }
    assert_eq!(host.stored_blobs().await, 1);
}

#[tokio::test]
async fn what_is_no_base64_is_refused_at_its_place() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for (text, offset) in [
        ("aGVs bG8=", 4),
        ("aGVsbG8*", 7),
        ("+/+/-_-_", 4),
        ("aGVsb", 4),
        ("aGVsbG9=", 6),
        ("aA=A", 3),
        ("aA==aA==", 4),
        ("====", 0),
        ("aGVsé", 4),
        ("data:image/png;base64,aGVs bG8=", 26),
    ] {
        let answer = owner.inline(&json!({"base64": text})).await;
        assert_eq!(answer.status(), 400, "{text}");
        let body = refusal(answer).await;
        assert_eq!(body["error"], "validation_error", "{text}");
        assert_eq!(body["details"], json!({"reason": "invalid_base64", "offset": offset}), "{text}");
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_data_url_declares_its_type_unless_a_member_does() {
    let host = Host::start().await;
    let (owner, text) = (host.owner("acme"), "id;name\n1;Ada\n");
    for (body, declared) in [
        (json!({"data": "data:text/csv;charset=utf-8;base64,aWQ7bmFtZQoxO0FkYQo="}), json!("text/csv")),
        (json!({"data": "data:text/csv;x=y,id%3bname%0A1;Ada%0A"}), json!("text/csv")),
        (json!({"data": "data:,id;name%0a1;Ada%0a"}), Value::Null),
        (json!({"data": "data:text/csv,id;name%0a1;Ada%0a", "mimeType": "text/plain"}), json!("text/plain")),
        (json!({"mimeType": "text/plain", "data": "data:text/csv,id;name%0a1;Ada%0a"}), json!("text/plain")),
    ] {
        let asset = asset(owner.inline(&body).await).await;
        assert_eq!(asset.answer["asset"]["declaredMimeType"], declared, "{body}");
        assert_eq!(host.stranger().get(&asset.url).await.text().await.expect("text"), text, "{body}");
    }
}

#[tokio::test]
async fn escapes_of_json_are_undone_everywhere() {
    let host = Host::start().await;
    let body = r#"{"\u0062ase64": "\u002B\/\u002b\/\r\n", "alt": "\ud83d\ude00 \"a\\b\" \u00e9"}"#;

    let asset = asset(send(&host.owner("acme"), body).await).await;

    assert_eq!(asset.answer["asset"]["alt"], "😀 \"a\\b\" é");
    let found = host.stranger().get(&asset.url).await;
    assert_eq!(found.bytes().await.expect("a body"), b"\xfb\xff\xbf".as_slice());
}

#[tokio::test]
async fn a_body_that_is_no_object_of_ours_is_refused_and_says_why() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    for (body, named) in [
        (r#"{"base64": "AAAA", "colour": "red"}"#, "colour"),
        (r#"{"colour": {"a": [1, {"b": null}]}, "base64": "AAAA"}"#, "colour"),
        (r#"{"base64": "AAAA", "alt": "a", "alt": "a"}"#, "alt"),
        (r#"{"base64": "AAAA", "base64": "AAAA"}"#, "base64"),
        (r#"{"base64": "AAAA", "data": "AAAA"}"#, "data"),
        (r#"{"base64": "AAAA", "url": "https://example.com/a.png"}"#, "url"),
        (r#"{"base64": 7}"#, "base64"),
        (r#"{"base64": "AAAA", "alt": ["a"]}"#, "alt"),
        (r#"{"alt": "no bytes"}"#, "base64"),
        (r#"{"base64": null}"#, "base64"),
        (r#"{"base64": "AAAA""#, "JSON"),
        (r#"{"base64": "AAAA"} {}"#, "JSON"),
        (r#"["AAAA"]"#, "JSON"),
        (r#"base64=AAAA"#, "JSON"),
        (r#"{"base64": "AAAA", "alt": "\ud83d"}"#, "JSON"),
        ("{\"base64\": \"AAAA\", \"alt\": \"a\nb\"}", "JSON"),
        (&deep, "JSON"),
    ] {
        let answer = send(&owner, body).await;
        let shown = &body[..body.len().min(60)];
        assert_eq!(answer.status(), 400, "{shown}");
        let body = refusal(answer).await;
        assert_eq!(body["error"], "validation_error", "{shown}");
        assert!(body["message"].as_str().expect("text").contains(named), "{shown}: {body}");
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn nothing_is_fetched_where_fetching_is_off() {
    let host = Host::start().await;

    let answer = host.owner("acme").inline(&json!({"url": "http://127.0.0.1:9/a.png"})).await;

    assert_eq!(answer.status(), 400);
    assert_eq!(refusal(answer).await["details"]["reason"], "fetch_disabled");
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn null_is_the_same_as_nothing() {
    let host = Host::start().await;
    let body = json!({"base64": BASE64.encode(&png(2, 2)), "alt": null, "url": null, "mimeType": null, "tenant": null});

    let asset = asset(host.owner("acme").inline(&body).await).await;

    assert_eq!(asset.answer["asset"]["alt"], Value::Null);
}

#[tokio::test]
async fn a_body_may_come_one_byte_at_a_time() {
    let host = Host::start().await;
    let body = format!(r#"{{"alt": "\u00e9", "data": "data:image/png;base64,{}"}}"#, BASE64.encode(&png(2, 2)));
    let mut wire = Wire::open(host.address()).await;

    wire.send(&raw::head("acme", "application/json", &format!("Content-Length: {}\r\n", body.len()))).await;
    for byte in body.as_bytes() {
        wire.send(&[*byte]).await;
    }
    let heard = wire.hear(std::time::Duration::from_secs(5)).await;

    assert_eq!(heard.status(), 201, "{}", heard.0);
    let answer: Value = serde_json::from_str(heard.body()).expect("JSON");
    assert_eq!(answer["asset"]["mimeType"], "image/png");
    assert_eq!(answer["asset"]["alt"], "é");
}

async fn send(caller: &Caller<'_>, body: &str) -> reqwest::Response {
    let request = caller.ingest().header("content-type", "application/json; charset=utf-8");
    request.body(body.to_owned()).send().await.expect("an answer")
}
