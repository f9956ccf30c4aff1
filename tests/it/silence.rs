//! What the log never says.

use std::io;
use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{Host, credential};

/// Looks through every line of the process's log, at its most talkative, for what must not stand there; keeps the lines that it finds.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Heard>>);

#[derive(Default)]
struct Heard {
    lines: usize,
    secrets: Vec<String>,
    found: Vec<String>,
}

#[tokio::test]
async fn no_line_of_the_log_holds_what_opens_anything() {
    let listener = Listener::default();
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(listener.clone()).finish();
    tracing::subscriber::set_global_default(log).expect("nobody else listens");
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(11, 13)).await;
    let delivery = owner.share(&asset, 60).await;
    let token = |url: &str| url.rsplit_once("/a/").expect("a capability URL").1.to_owned();
    let forged = format!("{}x", token(&delivery));
    let secrets =
        [token(&asset.url), token(&delivery), credential("acme", "all"), "secret-of-acme-all".into(), "payroll".into()];
    listener.0.lock().expect("a lock").secrets = secrets.to_vec();

    for url in
        [&asset.url, &delivery, &format!("/a/{forged}/payroll.png"), &format!("{}/payroll.png?x=payroll", asset.url)]
    {
        host.stranger().get(url).await;
        host.owner("globex").get(url).await;
        host.stranger().request(Method::GET, url).header("range", "bytes=-0").send().await.expect("an answer");
        host.stranger().post(url, &json!({"payroll": 1})).await;
    }
    owner.post("/v1/runs/run-1/references", &json!({"assets": [asset.url, delivery, forged]})).await;
    owner.post("/v1/assets", &json!({"base64": "payroll", "name": "payroll"})).await;
    host.bearer(&format!("{}x", credential("acme", "all"))).get("/v1/assets").await;
    host.app().index.seal_audit(1_000).await.expect("an index");
    remove_files(&host.folder().join("blobs/t"));
    let told = Told::of(host.stranger().get(&asset.url).await).await;
    assert_eq!(told.status, 500);
    drop(host.restart().await);

    let heard = listener.0.lock().expect("a lock");
    assert!(heard.lines > 10, "it listened to {} lines", heard.lines);
    assert_eq!(heard.found, Vec::<String>::new());
}

fn remove_files(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            remove_files(&entry.path());
        } else {
            std::fs::remove_file(entry.path()).expect("it is ours");
        }
    }
}

impl io::Write for Listener {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let mut heard = self.0.lock().map_err(|_| io::Error::other("a listener panicked"))?;
        heard.lines += 1;
        if heard.secrets.iter().any(|secret| text.contains(secret)) {
            heard.found.push(text.into_owned());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Listener {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
