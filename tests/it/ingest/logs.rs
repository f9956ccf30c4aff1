//! What the log and the refusals never say.

use std::time::Duration;

use data_encoding::BASE64;
use reqwest::Method;
use serde_json::json;

use crate::harness::bytes::png;
use crate::harness::form::Form;
use crate::harness::log;
use crate::harness::{Host, asset, credential};

#[tokio::test]
async fn no_line_and_no_refusal_holds_a_credential_a_capability_or_a_word_of_the_body() {
    let heard = log::listen();
    let host = Host::with(|settings| settings.ingest.refuse_types = vec!["text/html".into()]).await;
    let owner = host.owner("acme");
    let (word, name) = ("zanzibar-words", "zanzibar-name");
    let mut refusals = String::new();

    let body = json!({"base64": BASE64.encode(&png(7, 7)), "alt": word, "name": name, "nodeId": word});
    let made = asset(owner.ingest().header("idempotency-key", word).json(&body).send().await.expect("an answer")).await;
    let shared = owner.share(&made, 60).await;
    let capabilities: Vec<String> =
        [&made.url, &shared].iter().map(|url| url.rsplit('/').next().expect("a token").to_owned()).collect();
    for url in [&made.url, &shared] {
        assert_eq!(host.stranger().get(url).await.status(), 200);
        assert_eq!(host.stranger().get(&format!("{url}/{name}")).await.status(), 200);
        let torn = &url[..url.len() - 1];
        refusals += &host.stranger().get(torn).await.text().await.expect("text");
        refusals +=
            &host.stranger().request(Method::PUT, url).send().await.expect("an answer").text().await.expect("text");
        refusals += &owner.get(&format!("/v1/assets?cursor={url}")).await.text().await.expect("text");
        refusals += &owner.get(&format!("/v1/nothing?{url}={word}")).await.text().await.expect("text");
        refusals += &host.owner("globex").get(url).await.text().await.expect("text");
    }
    for (mime_type, body) in [
        ("application/json", format!(r#"{{"{word}": "{word}", "base64": "AAAA"}}"#)),
        ("application/json", format!(r#"{{"alt": "{word}", "base64": "{word}!"}}"#)),
        ("application/json", format!(r#"{{"alt": {word}}}"#)),
        ("text/html", format!("<!DOCTYPE html><html>{word}</html>")),
        (word, "bytes".to_owned()),
    ] {
        refusals += &owner.raw("", mime_type, body).await.text().await.expect("text");
    }
    refusals += &owner.form(Form::new().file(b"x").text("source", word)).await.text().await.expect("text");
    refusals += &owner.raw(&format!("?source={word}"), "text/plain", "x").await.text().await.expect("text");
    refusals += &host.bearer(&format!("mk_acme-all_{word}")).get("/v1/assets").await.text().await.expect("text");
    refusals += &host.bearer(&capabilities[0]).get("/v1/assets").await.text().await.expect("text");
    host.advance(Duration::from_secs(61));
    refusals += &host.stranger().get(&shared).await.text().await.expect("text");

    let log = heard.text();
    assert!(log.contains("mediakeep") && log.contains("asset.id"), "the log was heard");
    let secret = credential("acme", "all");
    let secret = secret.rsplit('_').next().expect("a secret");
    let folder = host.folder().display().to_string();
    for (what, hidden) in [
        ("the key's secret", secret),
        ("the durable capability", capabilities[0].as_str()),
        ("the delivery capability", capabilities[1].as_str()),
        ("the first capability's MAC", capabilities[0].rsplit('.').next().expect("a MAC")),
        ("the bytes", &BASE64.encode(&png(7, 7))),
    ] {
        assert!(!refusals.contains(hidden), "{what} in a refusal");
        assert!(log::lines_with(&log, hidden).next().is_none(), "{what}: {:?}", log::lines_with(&log, hidden).next());
    }
    // An unknown member is named, so that its sender can find it; nothing else of a body is.
    let named = refusals.matches(word).count();
    assert_eq!(named, 1, "{refusals}");
    assert!(!refusals.contains(&folder) && !refusals.contains("globex"), "{refusals}");
    for hidden in [word, name] {
        assert!(log::lines_with(&log, hidden).next().is_none(), "{:?}", log::lines_with(&log, hidden).next());
    }
}
