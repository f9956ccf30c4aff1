//! What the log and the refusals never say.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::BASE64;
use reqwest::Method;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

use crate::harness::bytes::png;
use crate::harness::form::Form;
use crate::harness::{Host, asset, credential};

/// Every line and span of every crate but the tests' own client, at every level.
#[derive(Clone, Default)]
struct Everything(Arc<Mutex<String>>);

impl Everything {
    fn add(&self, target: &str, record: impl FnOnce(&mut dyn Visit)) {
        // The client says what it sends; the service is what is listened to.
        if ["hyper", "reqwest", "h2", "rustls"].iter().any(|client| target.starts_with(client)) {
            return;
        }
        let mut line = Line(format!("{target}:"));
        record(&mut line);
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&line.0);
        text.push('\n');
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl<S: tracing::Subscriber> Layer<S> for Everything {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        self.add(event.metadata().target(), |line| event.record(line));
    }

    fn on_new_span(&self, span: &tracing::span::Attributes<'_>, _: &tracing::span::Id, _: Context<'_, S>) {
        self.add(span.metadata().target(), |line| span.record(line));
    }
}

#[tokio::test]
async fn no_line_and_no_refusal_holds_a_credential_a_capability_or_a_word_of_the_body() {
    let log = Everything::default();
    // The service's threads are not this one: only a log for all of them hears them.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(log.clone()));
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

    let log = log.text();
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
        assert!(lines_with(&log, hidden).next().is_none(), "{what}: {:?}", lines_with(&log, hidden).next());
    }
    // An unknown member is named, so that its sender can find it; nothing else of a body is.
    let named = refusals.matches(word).count();
    assert_eq!(named, 1, "{refusals}");
    assert!(!refusals.contains(&folder) && !refusals.contains("globex"), "{refusals}");
    for hidden in [word, name] {
        assert!(lines_with(&log, hidden).next().is_none(), "{:?}", lines_with(&log, hidden).next());
    }
}

fn lines_with<'a>(log: &'a str, hidden: &'a str) -> impl Iterator<Item = &'a str> {
    log.lines().filter(move |line| line.contains(hidden)).map(|line| &line[..line.len().min(200)])
}
