//! Forms: what one is made of, and what is no form.

use std::time::{Duration, Instant};

use ring::digest;
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::form::{self, Form};
use crate::harness::raw::{self, Wire};
use crate::harness::{Host, asset, refusal};

const SOON: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_part_says_what_it_is_unless_a_member_does() {
    let host = Host::start().await;
    let (owner, picture) = (host.owner("acme"), png(2, 2));
    let file = Form::new().named_file("part.png", "image/png; x=y", &picture);
    for (form, name, declared) in [
        (file.clone(), "part.png", "image/png"),
        (file.clone().text("name", "member.png").text("mimeType", "image/jpeg"), "member.png", "image/jpeg"),
        (
            Form::new().text("mimeType", "image/jpeg").text("name", "member.png").named_file(
                "part.png",
                "image/png",
                &picture,
            ),
            "member.png",
            "image/jpeg",
        ),
    ] {
        let asset = asset(owner.form(form).await).await;
        assert_eq!(asset.answer["asset"]["name"], name);
        assert_eq!(asset.answer["asset"]["declaredMimeType"], declared);
    }
}

#[tokio::test]
async fn a_form_may_come_one_byte_at_a_time() {
    let host = Host::start().await;
    let bytes = [b"\r\n--frontie".as_slice(), &noise(300, 5), b"\r\n--\r\n-"].concat();
    let form = Form::new().text("alt", "é").file(&bytes).text("title", "last").end();
    let mut wire = Wire::open(host.address()).await;

    wire.send(&raw::head("acme", form::TYPE, &format!("Content-Length: {}\r\n", form.len()))).await;
    for byte in &form {
        wire.send(&[*byte]).await;
    }
    let heard = wire.hear(Duration::from_secs(5)).await;

    assert_eq!(heard.status(), 201, "{}", heard.0);
    let answer: Value = serde_json::from_str(heard.body()).expect("JSON");
    assert_eq!(answer["asset"]["alt"], "é");
    assert_eq!(answer["asset"]["title"], "last");
    let found = host.stranger().get(answer["url"].as_str().expect("a URL")).await;
    assert_eq!(found.bytes().await.expect("a body"), bytes);
}

#[tokio::test]
async fn a_form_without_its_last_boundary_is_refused_at_once() {
    let host = Host::start().await;
    for body in [
        Form::new().file(b"bytes").open_end(),
        Form::new().file(b"bytes").text("alt", "a").open_end(),
        b"--frontier\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nbytes".to_vec(),
        b"--frontier\r\nContent-Disposition: form-data; na".to_vec(),
        b"--frontier".to_vec(),
        b"-".to_vec(),
    ] {
        let began = Instant::now();
        let answer = host.owner("acme").ingest().header("content-type", form::TYPE).body(body.clone());
        let answer = answer.send().await.expect("an answer");

        assert_eq!(answer.status(), 400, "{}", String::from_utf8_lossy(&body));
        assert_eq!(refusal(answer).await["error"], "validation_error");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn what_is_no_form_of_ours_is_refused() {
    let host = Host::start().await;
    let file = || Form::new().file(b"bytes");
    let many = (0..10_000).fold(file(), |form, n| form.text(&format!("p{n}"), "x"));
    let long_header = format!("Content-Disposition: form-data; name=\"file\"; x=\"{}", "x".repeat(10 << 20));
    for (what, body, named) in [
        ("no file", Form::new().text("alt", "a").end(), "file"),
        ("two files", file().file(b"more").end(), "file"),
        ("an unknown part", file().text("colour", "red").end(), "colour"),
        ("a member twice", file().text("alt", "a").text("alt", "a").end(), "alt"),
        ("a type twice", file().text("mimeType", "image/png").text("mimeType", "image/png").end(), "mimeType"),
        ("a name twice", file().text("name", "a").text("name", "b").end(), "name"),
        ("a URL", Form::new().text("url", "https://example.com/").end(), "url"),
        (
            "a member that is not UTF-8",
            file().part("Content-Disposition: form-data; name=\"alt\"\r\n", b"\xff").end(),
            "alt",
        ),
        ("a part without a name", file().part("Content-Disposition: form-data\r\n", b"x").end(), ""),
        ("a part without headers", file().part("", b"x").end(), ""),
        ("ten thousand parts", many.end(), "parts"),
        ("ten thousand empty files", (0..10_000).fold(Form::new(), |form, _| form.file(b"")).end(), "file"),
        ("a header line without an end", Form::new().part(&long_header, b"x").end(), ""),
        ("a member of a megabyte", file().text("alt", &"x".repeat(1 << 20)).end(), "alt"),
        ("only garbage", noise(200_000, 3), ""),
        ("too much behind its end", [file().end(), vec![b'x'; 1 << 20]].concat(), ""),
    ] {
        let answer = host.owner("acme").ingest().header("content-type", form::TYPE).body(body);
        let answer = answer.send().await.expect("an answer");
        assert_eq!(answer.status(), 400, "{what}");
        let body = refusal(answer).await;
        assert_eq!(body["error"], "validation_error", "{what}");
        assert!(body["message"].as_str().expect("text").contains(named), "{what}: {body}");
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_form_needs_a_boundary() {
    let host = Host::start().await;
    for mime_type in ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=other"] {
        let request = host.owner("acme").ingest().header("content-type", mime_type);
        let answer = request.body(Form::new().file(b"bytes").end()).send().await.expect("an answer");
        assert_eq!(answer.status(), 400, "{mime_type}");
        refusal(answer).await;
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn what_stands_around_a_form_means_nothing() {
    let host = Host::start().await;
    let form = Form::new().named_file("a.txt", "text/plain", b"bytes").end();
    for (before, after) in [("preamble\r\n", ""), ("", "epilogue"), ("\r\n", "\r\nepi\r\n--frontier\r\nlogue")] {
        let body = [before.as_bytes(), &form, after.as_bytes()].concat();
        let answer = host.owner("acme").ingest().header("content-type", form::TYPE).body(body).send().await;
        let asset = asset(answer.expect("an answer")).await;
        assert_eq!(host.stranger().get(&asset.url).await.text().await.expect("text"), "bytes");
    }
}

#[tokio::test]
async fn the_digest_of_a_form_is_that_of_all_its_bytes() {
    let host = Host::start().await;
    let form = Form::new().file(b"bytes").text("alt", "a").end();
    let whole = [form.as_slice(), b"epilogue"].concat();
    let digest = |bytes: &[u8]| {
        let hash = digest::digest(&digest::SHA256, bytes);
        format!("sha-256=:{}:", data_encoding::BASE64.encode(hash.as_ref()))
    };
    let send = |header: String| {
        let request = host.owner("acme").ingest().header("content-type", form::TYPE);
        request.header("content-digest", header).body(whole.clone()).send()
    };

    for wrong in [digest(b"bytes"), digest(&form)] {
        let answer = send(wrong).await.expect("an answer");
        assert_eq!(answer.status(), 400);
        assert_eq!(refusal(answer).await["details"], json!({"reason": "digest_mismatch"}));
        assert!(host.is_bare().await);
    }
    asset(send(digest(&whole)).await.expect("an answer")).await;
}

#[tokio::test]
async fn a_part_is_as_long_as_it_is_whatever_it_says_of_itself() {
    let host = Host::start().await;
    let body = "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\nContent-Length: 2\r\n\r\nhello world\r\n--B--\r\n";

    let request = host.owner("acme").ingest().header("content-type", "multipart/form-data; boundary=B");
    let made = asset(request.body(body).send().await.expect("an answer")).await;

    assert_eq!(made.answer["asset"]["bytes"], 11);
    assert_eq!(host.stranger().get(&made.url).await.text().await.expect("text"), "hello world");
}

#[tokio::test]
async fn a_part_that_is_encoded_is_refused_and_not_stored_as_it_is() {
    let host = Host::start().await;
    let body = "--B\r\nContent-Disposition: form-data; name=\"file\"\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--B--\r\n";

    let request = host.owner("acme").ingest().header("content-type", "multipart/form-data; boundary=B");
    let answer = request.body(body).send().await.expect("an answer");

    assert_eq!(answer.status(), 400);
    assert!(host.becomes_bare().await);
}
