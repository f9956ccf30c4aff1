//! The store in our place: whom it is left to, for how long, and what it is made to say.

use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png, wav};
use crate::harness::process::{Place, Server, client, ran, url};

/// A service that leaves to its bucket what it may.
async fn redirecting() -> (Place, Server) {
    let place = Place::in_bucket();
    place
        .configure("[delivery]\nredirect = true\n[capabilities]\nmax_delivery = \"30d\"\n[telemetry]\nlog = \"trace\"");
    let server = place.serve().await;
    (place, server)
}

async fn get(server: &Server, url: &str) -> Response {
    server.request(Method::GET, url).send().await.expect("an answer")
}

/// Where a GET of a capability leads.
async fn led(server: &Server, url: &str) -> String {
    let answer = get(server, url).await;
    assert_eq!(answer.status(), 302);
    answer.headers()["location"].to_str().expect("text").to_owned()
}

/// What the store's URL says under that name.
fn said(location: &str, name: &str) -> String {
    let location = url::Url::parse(location).expect("a URL");
    location.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
}

async fn minted(server: &Server, answer: &Value, wish: Value) -> String {
    let id = answer["asset"]["assetId"].as_str().expect("an id");
    let minted = server.request(Method::POST, &format!("/v1/assets/{id}/urls")).json(&wish).send().await;
    let minted = minted.expect("an answer");
    assert_eq!(minted.status(), 201);
    minted.json::<Value>().await.expect("JSON")["url"].as_str().expect("a URL").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passive_media_come_from_the_store_as_what_they_are_in_whole_and_in_part() {
    let (place, server) = redirecting().await;
    let bytes = wav(3);
    let sent = server.request(Method::POST, "/v1/runs/run-1/assets?name=t%C3%B6ne.wav").body(bytes.clone()).send();
    let sent: Value = sent.await.expect("an answer").json().await.expect("JSON");

    let answer = get(&server, url(&sent)).await;

    assert_eq!(answer.status(), 302);
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("access-control-allow-origin", "*"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("content-length", "0"),
    ] {
        assert_eq!(answer.headers()[name], value, "{name}");
    }
    let location = answer.headers()["location"].to_str().expect("text").to_owned();
    assert!(location.starts_with(&place.store().server().endpoint()), "{location}");
    let whole = client().get(&location).send().await.expect("an answer");
    assert_eq!((whole.status(), &whole.headers()["content-type"]), (StatusCode::OK, &"audio/wav".parse().expect("it")));
    let disposition = whole.headers()["content-disposition"].to_str().expect("text");
    assert_eq!(disposition, "inline; filename=\"t_ne.wav\"; filename*=UTF-8''t%C3%B6ne.wav");
    assert!(whole.headers()["cache-control"].to_str().expect("text").starts_with("private, max-age="));
    assert!(whole.bytes().await.expect("bytes") == bytes);
    let part = client().get(&location).header("range", "bytes=-100").send().await.expect("an answer");
    assert_eq!(part.status(), 206);
    assert!(part.bytes().await.expect("bytes")[..] == bytes[bytes.len() - 100..]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_that_follows_has_the_range_that_it_asked_for() {
    let (_place, server) = redirecting().await;
    let sent = server.upload(wav(3)).await;
    let browser = reqwest::Client::builder().no_proxy().build().expect("a client");

    let part = browser.get(url(&sent)).header("range", "bytes=100-199").send().await.expect("an answer");

    assert_eq!(
        (part.status().as_u16(), part.headers()["content-range"].to_str().expect("text")),
        (206, "bytes 100-199/24044")
    );
    assert!(part.bytes().await.expect("bytes")[..] == wav(3)[100..200]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_can_be_added_to_a_stores_url_nor_changed_nor_left_out() {
    let (_place, server) = redirecting().await;
    let sent = server.upload(png(5, 5)).await;
    // What is added to ours means nothing.
    let location = led(&server, &format!("{}?response-content-type=text/html&download=1", url(&sent))).await;
    assert_eq!(said(&location, "response-content-type"), "image/png");
    let type_of = "&response-content-type=image%2Fpng";
    assert!(location.contains(type_of), "{location}");

    for forged in [
        format!("{location}&response-content-type=text%2Fhtml"),
        format!("{location}&response-content-encoding=gzip"),
        format!("{location}&x=y"),
        location.replace(type_of, "&response-content-type=text%2Fhtml"),
        location.replace(type_of, ""),
        location.replace("inline", "attachment"),
        location.replace("X-Amz-Expires=60", "X-Amz-Expires=6000"),
    ] {
        assert_ne!(forged, location);
        assert_eq!(client().get(&forged).send().await.expect("an answer").status(), 403, "{forged}");
    }
    assert_eq!(client().delete(&location).send().await.expect("an answer").status(), 403);
    assert_eq!(client().get(&location).send().await.expect("an answer").status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_our_own_headers_is_answered_from_here() {
    let (_place, server) = redirecting().await;
    for (bytes, mime_type) in [
        (b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>".to_vec(), "image/svg+xml"),
        (b"<!doctype html><script>alert(1)</script>".to_vec(), "text/html"),
        (b"%PDF-1.4\n%%EOF\n".to_vec(), "application/pdf"),
        (noise(1_000, 3), "application/octet-stream"),
        ([png(4, 4), b"<html><script>alert(1)</script>".to_vec()].concat(), "image/png"),
    ] {
        let sent = server.upload(bytes.clone()).await;
        assert_eq!(sent["asset"]["mimeType"], mime_type);
        let answer = get(&server, url(&sent)).await;
        assert_eq!(answer.status(), 200, "{mime_type}");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        assert!(answer.bytes().await.expect("bytes") == bytes, "{mime_type}");
    }
    let sent = server.upload(png(6, 6)).await;
    let download = minted(&server, &sent, json!({"class": "delivery", "disposition": "attachment"})).await;
    let answer = get(&server, &download).await;
    assert_eq!(answer.status(), 200);
    assert!(answer.headers()["content-disposition"].to_str().expect("text").starts_with("attachment"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_bound_urls_counted_links_and_what_speaks_of_our_tags_are_answered_from_here() {
    let (_place, server) = redirecting().await;
    let sent = server.upload(wav(1)).await;
    let id = sent["asset"]["assetId"].as_str().expect("an id");

    let head = server.request(Method::HEAD, url(&sent)).send().await.expect("an answer");
    assert_eq!((head.status(), &head.headers()["content-length"]), (StatusCode::OK, &"8044".parse().expect("it")));
    assert_eq!(get(&server, &format!("/v1/assets/{id}/content")).await.status(), 200);
    let once = minted(&server, &sent, json!({"class": "delivery", "maxUses": 1})).await;
    assert_eq!(
        (get(&server, &once).await.status(), get(&server, &once).await.status()),
        (StatusCode::OK, StatusCode::GONE)
    );

    let tag = &head.headers()["etag"];
    let asked = async |headers: &[(&str, &str)]| {
        let request = server.request(Method::GET, url(&sent));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send().await.expect("an answer").status().as_u16()
    };
    let tag = tag.to_str().expect("text");
    assert_eq!(asked(&[("if-none-match", tag)]).await, 304);
    assert_eq!(asked(&[("if-match", tag)]).await, 200);
    assert_eq!(asked(&[("range", "bytes=0-9"), ("if-range", tag)]).await, 206);
    assert_eq!(asked(&[("range", "bytes=0-9,20-29")]).await, 206);
    assert_eq!(asked(&[("range", "bytes=9000-")]).await, 416);
    assert_eq!(asked(&[("range", "bytes=0-9")]).await, 302);
    // A tag that is not ours may be the store's.
    assert_eq!(asked(&[("if-none-match", "\"x\"")]).await, 302);
    assert_eq!(asked(&[("if-match", "\"x\"")]).await, 302);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_of_thirty_days_leads_each_time_to_a_url_of_a_minute() {
    let (_place, server) = redirecting().await;
    let sent = server.upload(png(7, 7)).await;
    let link = minted(&server, &sent, json!({"class": "delivery", "expiresInSeconds": 30 * 86_400})).await;
    let first = led(&server, &link).await;
    assert_eq!(said(&first, "X-Amz-Expires"), "60");

    // A signature tells the second in which it was made.
    let mut later = first.clone();
    while said(&later, "X-Amz-Date") == said(&first, "X-Amz-Date") {
        tokio::time::sleep(Duration::from_millis(100)).await;
        later = led(&server, &link).await;
    }

    assert_ne!(said(&later, "X-Amz-Signature"), said(&first, "X-Amz-Signature"));
    assert_eq!(said(&later, "X-Amz-Expires"), "60");
    assert_eq!(client().get(&later).send().await.expect("an answer").status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_url_of_the_store_outlives_the_link_that_led_to_it() {
    let (_place, server) = redirecting().await;
    let sent = server.upload(png(8, 8)).await;
    let link = minted(&server, &sent, json!({"class": "delivery", "expiresInSeconds": 5})).await;

    let location = led(&server, &link).await;

    let seconds: u64 = said(&location, "X-Amz-Expires").parse().expect("a number");
    assert!((1..=5).contains(&seconds), "{seconds}");
    while get(&server, &link).await.status() != 410 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The server of the tests takes the last second for a whole one.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client().get(&location).send().await.expect("an answer").status(), 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_opens_nothing_leads_nowhere() {
    let (_place, server) = redirecting().await;
    let (sent, other) = (server.upload(png(9, 9)).await, server.upload(png(9, 8)).await);
    let id = sent["asset"]["assetId"].as_str().expect("an id");
    assert_eq!(get(&server, url(&sent)).await.status(), 302);
    assert_eq!(get(&server, &url(&sent)[..url(&sent).len() - 1]).await.status(), 404);

    let revoke = server.request(Method::POST, "/v1/urls/revoke").json(&json!({"assetId": id})).send().await;
    assert_eq!(revoke.expect("an answer").status(), 200);
    let other_id = other["asset"]["assetId"].as_str().expect("an id");
    let erase = server.request(Method::DELETE, &format!("/v1/assets/{other_id}?erase=true")).send().await;
    assert_eq!(erase.expect("an answer").status(), 200);

    let (revoked, erased) = (get(&server, url(&sent)).await, get(&server, url(&other)).await);
    assert_eq!((revoked.status(), erased.status()), (StatusCode::NOT_FOUND, StatusCode::GONE));
    assert!([revoked, erased].iter().all(|answer| !answer.headers().contains_key("location")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_redirect_leads_stands_in_no_log() {
    let (place, server) = redirecting().await;
    let sent = server.upload(png(3, 9)).await;
    let location = led(&server, url(&sent)).await;
    assert_eq!(client().get(&location).send().await.expect("an answer").status(), 200);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let audit = get(&server, "/v1/audit/events").await.text().await.expect("text");
    assert!(server.stop().await.success());

    let (log, signature) = (place.log(), said(&location, "X-Amz-Signature"));
    assert!(log.contains("/a/{capability}") && audit.contains("\"read\""), "both tell of the read");
    for secret in ["X-Amz-Signature", "X-Amz-Credential", &signature] {
        assert!(!log.contains(secret) && !audit.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn a_store_that_cannot_answer_for_us_stops_the_start_with_a_sentence() {
    let (files, bucket) = (Place::in_files(), Place::in_bucket());
    let more = "[delivery]\nredirect = true";
    let says = |place: &Place, variable: (&str, &str)| {
        let mut command = place.command(&["serve"]);
        command.env(variable.0, variable.1);
        let ran = ran(command);
        assert_eq!((ran.code, ran.stderr.trim_end().lines().count()), (2, 1), "{variable:?}: {ran:?}");
        assert!(ran.stderr.contains("delivery.redirect"), "{}", ran.stderr);
        ran.stderr
    };

    files.configure(more);
    bucket.configure(more);

    for store in ["", "memory:", "gs://bucket", "az://container"] {
        let variable = if store.is_empty() { ("X", "y") } else { ("MEDIAKEEP__STORE__URL", store) };
        let sentence = says(&files, variable);
        assert!(sentence.contains("s3:") && sentence.contains("mediakeep.toml"), "{sentence}");
    }
    for variable in [
        ("AWS_SKIP_SIGNATURE", "true"),
        ("AWS_SSE_CUSTOMER_KEY_BASE64", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    ] {
        assert!(says(&bucket, variable).contains("leave it at false"));
    }
}
