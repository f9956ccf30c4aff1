//! What is said of the bytes: names, words, ids, and how long they may be.

use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::form::{self, Form};
use crate::harness::raw;
use crate::harness::{Asset, Host, asset, refusal};

/// Names as they come, what is kept of them, and what a download is called.
const NAMES: [(&str, Option<&str>, &str); 12] = [
    ("signups.png", Some("signups.png"), r#"filename="signups.png""#),
    ("한글.pdf", Some("한글.pdf"), r#"filename="__.pdf"; filename*=UTF-8''%ED%95%9C%EA%B8%80.pdf"#),
    ("a\"b\\c.txt", Some("a\"bc.txt"), r#"filename="a_bc.txt"; filename*=UTF-8''a%22bc.txt"#),
    ("q3 chart (final)#1?.png", Some("q3 chart (final)#1?.png"), r#"filename="q3 chart (final)#1?.png""#),
    ("100%.png", Some("100%.png"), r#"filename="100_.png"; filename*=UTF-8''100%25.png"#),
    ("x\r\nSet-Cookie: a=1.txt", Some("xSet-Cookie: a=1.txt"), r#"filename="xSet-Cookie: a=1.txt""#),
    ("\u{202E}gpj.exe", Some("gpj.exe"), r#"filename="gpj.exe""#),
    ("../../etc/passwd", Some("....etcpasswd"), r#"filename="....etcpasswd""#),
    ("a\0b\u{7f}.txt", Some("ab.txt"), r#"filename="ab.txt""#),
    ("..", None, ""),
    ("", None, ""),
    ("/", None, ""),
];

#[tokio::test]
async fn a_name_loses_what_could_mislead_and_a_download_carries_the_rest() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for (sent, kept, download) in NAMES {
        let inline = json!({"base64": BASE64.encode(b"some words"), "name": sent});
        let inline = asset(owner.inline(&inline).await).await;
        let raw = owner.ingest().query(&[("name", sent)]).body("some words").send().await.expect("an answer");
        let form = asset(owner.form(Form::new().file(b"some words").text("name", sent)).await).await;
        for asset in [inline, asset(raw).await, form] {
            assert_eq!(asset.answer["asset"]["name"], kept.map_or(Value::Null, |kept| json!(kept)), "{sent:?}");
            let answer = host.stranger().get(&asset.url).await;
            let lines: Vec<_> = answer.headers().get_all("content-disposition").iter().collect();
            let expected =
                if download.is_empty() { "attachment".to_owned() } else { format!("attachment; {download}") };
            assert_eq!(lines, [expected.as_str()], "{sent:?}");
            assert!(!answer.headers().contains_key("set-cookie"));
        }
    }
}

#[tokio::test]
async fn a_form_may_name_its_file_in_any_language() {
    let host = Host::start().await;
    for (sent, kept) in [("한글.pdf", "한글.pdf"), ("a\\\"b.txt", "a\"b.txt"), ("C:\\\\temp\\\\a.txt", "C:tempa.txt")]
    {
        let form = Form::new().named_file(sent, "text/plain", b"some words");
        let asset = asset(host.owner("acme").form(form).await).await;
        assert_eq!(asset.answer["asset"]["name"], kept);
    }
}

#[tokio::test]
async fn a_member_as_long_as_it_may_be_is_kept_and_a_longer_one_is_named() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for (name, most, unit) in [
        ("name", 255, "n"),
        ("alt", 1024, "é"),
        ("title", 256, "한"),
        ("nodeId", 128, "é"),
        ("envelopeId", 128, "e"),
        ("correlationId", 128, "한"),
    ] {
        let kept = asset(owner.inline(&json!({"base64": "AAAA", name: unit.repeat(most)})).await).await;
        assert_eq!(kept.answer["asset"][name], unit.repeat(most), "{name}");

        let long = unit.repeat(most + 1);
        let inline = owner.inline(&json!({"base64": "AAAA", name: long})).await;
        let raw = owner.ingest().query(&[(name, &long)]).body("bytes").send().await.expect("an answer");
        let form = owner.form(Form::new().file(b"bytes").text(name, &long)).await;
        for answer in [inline, raw, form] {
            assert_eq!(answer.status(), 400, "{name}");
            let body = refusal(answer).await;
            assert!(body["message"].as_str().expect("text").starts_with(&format!("{name}:")), "{body}");
            assert!(!body.to_string().contains(&long), "what was sent is not repeated");
        }
    }
    let long = format!("{}.pdf", "한".repeat(100));
    let form = Form::new().named_file(&long, "application/pdf", b"bytes");
    let answer = owner.form(form).await;
    assert_eq!(answer.status(), 400);
    assert!(refusal(answer).await["message"].as_str().expect("text").starts_with("name:"));
}

#[tokio::test]
async fn an_id_of_the_hosts_may_hold_anything_but_controls() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for id in ["a/b?c#d", "%00", "..", "urn:x:1 2", "🧪", "\"quoted\"", "<script>"] {
        let ids = json!({"base64": "AAAA", "nodeId": id, "envelopeId": id, "correlationId": id});
        let asset = asset(owner.inline(&ids).await).await;
        for name in ["nodeId", "envelopeId", "correlationId"] {
            assert_eq!(asset.answer["asset"][name], id);
        }
        assert_eq!(asset.answer["envelope"]["envelopeId"], id);
    }
    for id in ["", "a\nb", "\u{7f}", "\u{85}", "a\0"] {
        for name in ["nodeId", "envelopeId", "correlationId"] {
            let answer = owner.inline(&json!({"base64": "AAAA", name: id})).await;
            assert_eq!(answer.status(), 400, "{name} {id:?}");
        }
    }
}

#[tokio::test]
async fn a_member_with_a_fixed_set_of_words_takes_no_other() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for (name, value) in [
        ("source", "robot"),
        ("source", "User"),
        ("source", ""),
        ("delivery", "never"),
        ("delivery", "inline"),
        ("retainUntil", "tomorrow"),
        ("retainUntil", "2001-01-01T00:00:00Z"),
        ("retainUntil", "2040-01-01"),
        ("retainUntil", "2040-13-01T00:00:00Z"),
        ("retainUntil", "99999-01-01T00:00:00Z"),
        ("mimeType", "png"),
        ("mimeType", "image/p ng"),
        ("mimeType", "image/png\r\nx: y"),
    ] {
        let inline = owner.inline(&json!({"base64": "AAAA", name: value})).await;
        let raw = owner.ingest().query(&[(name, value)]).body("bytes").send().await.expect("an answer");
        for answer in [inline, raw] {
            assert_eq!(answer.status(), 400, "{name} {value:?}");
            let body = refusal(answer).await;
            assert!(body["message"].as_str().expect("text").starts_with(&format!("{name}:")), "{body}");
        }
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_time_may_have_an_offset_and_is_told_in_utc() {
    let host = Host::start().await;
    let body = json!({"base64": "AAAA", "retainUntil": "2040-01-01T01:30:00+01:30"});

    let asset = asset(host.owner("acme").inline(&body).await).await;

    assert_eq!(asset.answer["asset"]["retainUntil"], "2040-01-01T00:00:00Z");
    assert_eq!(asset.answer["asset"]["retentionSource"], "ask");
}

#[tokio::test]
async fn a_query_holds_members_once_and_no_others() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for query in ["?colour=red", "?alt=a&alt=b", "?base64=AAAA", "?url=https://example.com/", "?name=a&name=a"] {
        let answer = owner.raw(query, "text/plain", "bytes").await;
        assert_eq!(answer.status(), 400, "{query}");
    }
    // An inline body and a form say everything themselves.
    let body = json!({"base64": "AAAA"}).to_string();
    assert_eq!(owner.raw("?alt=a", "application/json", body).await.status(), 400);
    assert_eq!(owner.raw("?alt=a", form::TYPE, Form::new().file(b"x").end()).await.status(), 400);
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_run_is_named_by_what_runs_are_named_by() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let long = "r".repeat(128);
    for (run, told) in [
        ("run-1", "run-1"),
        ("A.b_c:d~e", "A.b_c:d~e"),
        ("a%3Ab", "a:b"),
        ("%72un", "run"),
        ("...", "..."),
        (&long, &long),
    ] {
        let asset: Asset = owner.upload_to(run, png(2, 2)).await;
        assert_eq!(asset.answer["asset"]["runId"], told);
        assert_eq!(asset.answer["asset"]["references"], json!([told]));
    }
    for run in ["a%2Fb", "a%20b", "%00", "%C3%A9", "a%25b", "a+b", "%2e%2e%2fx", &"r".repeat(129)] {
        let request = owner.request(reqwest::Method::POST, &format!("/v1/runs/{run}/assets"));
        let answer = request.body("bytes").send().await.expect("an answer");
        assert_eq!(answer.status(), 400, "{run}");
        assert!(refusal(answer).await["message"].as_str().expect("text").starts_with("runId"), "{run}");
    }
}

#[tokio::test]
async fn no_path_leads_out_of_its_route() {
    let host = Host::start().await;
    for path in
        ["/v1/runs/../assets", "/v1/runs/./assets", "/v1/runs/%2e%2e/assets", "/v1/runs/%2e/assets", "/v1/runs//assets"]
    {
        let head = String::from_utf8(raw::head("acme", "text/plain", "Content-Length: 5\r\n"));
        let head = head.expect("ASCII").replace("/v1/runs/run-1/assets", path);
        let heard = raw::send(host.address(), &[head.as_bytes(), b"bytes"], Duration::from_secs(3)).await;
        assert!(matches!(heard.status(), 400 | 404), "{path}: {}", heard.0);
    }
    assert!(host.is_bare().await);
}
