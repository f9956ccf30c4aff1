//! Every refusal is the same closed object with the same headers, wherever it comes from.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::json;

use crate::harness::bytes::png;
use crate::harness::raw;
use crate::harness::{Host, refusal};

/// A refusal with that status and code, in the one form that refusals have.
async fn expect(what: &str, answer: Response, status: u16, code: &str) {
    assert_eq!(answer.status(), status, "{what}");
    let headers = answer.headers().clone();
    assert_eq!(headers["content-type"], "application/json", "{what}");
    assert_eq!(headers["cache-control"], "no-store", "{what}");
    assert!(!headers["x-request-id"].is_empty(), "{what}");
    assert_eq!(headers.contains_key("www-authenticate"), status == 401, "{what}");
    assert_eq!(headers.contains_key("allow"), status == 405, "{what}");
    assert_eq!(refusal(answer).await["error"], code, "{what}");
}

#[tokio::test]
async fn whatever_is_refused_is_refused_in_one_form() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(2, 2)).await;
    let send = |method: Method, path: &str, body: &str| {
        let request = owner.request(method, path).header("content-type", "application/json").body(body.to_owned());
        async move { request.send().await.expect("an answer") }
    };
    let (post, assets, one) = (Method::POST, "/v1/runs/run-1/assets", format!("/v1/assets/{}", asset.id));
    let deep = format!(r#"{{"a": {}"#, "[".repeat(1_000));

    expect("no route", owner.get("/v1/nothing").await, 404, "not_found").await;
    expect("no route below one", owner.get(&format!("{one}/nothing")).await, 404, "not_found").await;
    expect("a slash too many", owner.get("/v1/assets/").await, 404, "not_found").await;
    expect("no route for nobody", host.stranger().get("/").await, 404, "not_found").await;
    expect("a body without a route", send(Method::PUT, "/v1/nothing", "{}").await, 404, "not_found").await;
    expect("no asset", owner.get("/v1/assets/ast_0").await, 404, "not_found").await;
    expect("no capability", host.stranger().get("/a/x").await, 404, "not_found").await;
    expect("no method", send(Method::PUT, assets, "{}").await, 405, "method_not_allowed").await;
    expect("no such method", send(Method::TRACE, &one, "").await, 405, "method_not_allowed").await;
    let own = Method::from_bytes(b"BREW").expect("a method");
    expect("a method of one's own", send(own, "/healthz", "").await, 405, "method_not_allowed").await;
    expect("nobody", host.stranger().get("/v1/assets").await, 401, "unauthenticated").await;
    expect("bad JSON", send(post.clone(), assets, "{").await, 400, "validation_error").await;
    expect("deep JSON", send(post.clone(), assets, &deep).await, 400, "validation_error").await;
    expect("deep JSON elsewhere", send(Method::PATCH, &one, &deep).await, 400, "validation_error").await;
    expect("no JSON", send(Method::PATCH, &one, "\u{feff}{}").await, 400, "validation_error").await;
    expect("a bad query", owner.get("/v1/assets?limit=x").await, 400, "validation_error").await;
    expect("a broken query", owner.get("/v1/assets?%ff=%zz").await, 400, "validation_error").await;
    expect(
        "a stale tag",
        {
            let request = owner.request(Method::PATCH, &one).header("if-match", "\"0\"").json(&json!({"alt": "x"}));
            request.send().await.expect("an answer")
        },
        412,
        "version_conflict",
    )
    .await;
    expect("a kept asset", owner.delete(&one).await, 409, "retention_active").await;
}

#[tokio::test]
async fn a_wrong_method_hears_which_ones_are_right() {
    let host = Host::start().await;
    let paths: serde_json::Value = host.stranger().get("/v1/openapi.json").await.json().await.expect("JSON");
    let mut asked = 0;
    for (path, methods) in paths["paths"].as_object().expect("paths") {
        let methods: Vec<String> =
            methods.as_object().expect("methods").keys().map(|name| name.to_uppercase()).collect();
        let answer = host.owner("acme").request(Method::TRACE, &path.replace(['{', '}'], "x")).send().await;
        let answer = answer.expect("an answer");
        if answer.status() == 404 {
            // A template that the placeholder does not fit, such as that of the schemas.
            continue;
        }
        assert_eq!(answer.status(), 405, "{path}");
        let allow = answer.headers()["allow"].to_str().expect("ASCII").to_owned();
        let allowed: Vec<&str> = allow.split(", ").collect();
        assert!(methods.iter().all(|method| allowed.contains(&method.as_str())), "{path}: {allow}, not {methods:?}");
        asked += 1;
    }
    assert!(asked > 10, "{asked}");
}

#[tokio::test]
async fn a_refusal_to_head_has_no_body() {
    let host = Host::start().await;
    for (path, status) in [("/v1/nothing", 404), ("/a/x", 404), ("/v1/assets/ast_0/content", 401)] {
        let answer = host.stranger().head(path).await;
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(answer.headers()["cache-control"], "no-store", "{path}");
        assert_eq!(answer.text().await.expect("text"), "", "{path}");
    }
}

#[tokio::test]
async fn no_two_requests_have_the_same_id() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let mut ids = std::collections::HashSet::new();
    for path in ["/v1/assets", "/v1/nothing", "/healthz", "/v1/assets/x", "/v1/assets"] {
        let answer = owner.request(Method::GET, path).header("x-request-id", "chosen").send().await.expect("an answer");
        let id = answer.headers()["x-request-id"].to_str().expect("ASCII").to_owned();
        assert_ne!(id, "chosen");
        assert!(ids.insert(id), "{path}");
    }
}

#[tokio::test]
async fn heads_that_no_client_sends_do_no_harm() {
    let host = Host::start().await;
    let credential = crate::harness::credential("acme", "all");
    let with = |lines: &str| {
        format!(
            "POST /v1/runs/run-1/assets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {credential}\r\n{lines}\r\n\r\nbytes"
        )
    };
    for request in [
        with("Content-Length: 5\r\nContent-Length: 6\r\nConnection: close"),
        with("Content-Length: -5\r\nConnection: close"),
        with("Content-Length: 5x\r\nConnection: close"),
        with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close"),
        with("Transfer-Encoding: gzip\r\nConnection: close"),
        with(&format!("Content-Length: 5\r\nAuthorization: Bearer {credential}\r\nConnection: close")),
        with("Content-Length: 99999999999999999999999999\r\nConnection: close"),
        with("Content-Length: 5\r\nContent-Type: \u{e9}\r\nConnection: close"),
        with("Content-Length: 5\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\nConnection: close"),
    ] {
        let heard = raw::send(host.address(), &[request.as_bytes()], Duration::from_secs(2)).await;
        assert!(matches!(heard.status(), 0 | 400 | 401 | 413 | 501), "{request}\n\n{}", heard.0);
    }
    assert!(host.becomes_bare().await);
    assert_eq!(host.owner("acme").raw("", "text/plain", "bytes").await.status(), 201);
}
