//! `docs/hosts/rust`, as programs of their own.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::flaky;
use crate::harness::bytes::{noise, png};
use crate::harness::process::{Place, Ran, Server, url};

/// The folder with the examples, built if they are not as they are now.
fn folder() -> &'static Path {
    static BUILT: OnceLock<std::path::PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--locked", "--examples"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        let built = build.stdin(Stdio::null()).output().expect("cargo runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let test = std::env::current_exe().expect("a path");
        test.ancestors().nth(2).expect("the profile's folder").join("examples")
    })
}

/// Runs an example with that on its stdin.
async fn run(name: &str, arguments: &[&str], key: &str, stdin: &str) -> Ran {
    let (program, key, stdin) = (name.to_owned(), key.to_owned(), stdin.to_owned());
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let run = move || {
        let mut command = Command::new(folder().join(program));
        command.args(arguments).env("MEDIAKEEP_KEY", key).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the example starts");
        let mut input = child.stdin.take().expect("a pipe");
        let _ = input.write_all(stdin.as_bytes());
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            took: std::time::Duration::ZERO,
        }
    };
    tokio::task::spawn_blocking(run).await.expect("it does not panic")
}

fn envelope(bytes: &[u8]) -> Value {
    json!({
        "type": "media.image", "schemaVersion": 1, "envelopeId": "env_5d0c", "correlationId": "run_8f3c:draw:1", "nodeId": "draw",
        "payload": {"base64": BASE64.encode(bytes), "bytes": bytes.len(), "mimeType": "image/jpeg", "alt": "A chart"},
        "meta": {"source": "ai-generation", "ts": "2026-06-02T09:15:00Z", "rendering": {"display": "image", "mimeType": "image/jpeg"}},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_envelope_is_offloaded_once_however_often_it_is_sent() {
    let place = Place::new();
    let server = place.serve().await;
    let (service, failed) = flaky::before(([127, 0, 0, 1], place.port()).into()).await;
    let (service, picture) = (format!("http://{service}"), png(3, 3));
    let file = place.write("envelope.json", envelope(&picture).to_string());

    let first = run("offload_envelope", &[&service, "run-1", file.to_str().expect("text")], &Server::key(), "").await;
    let again = run("offload_envelope", &[&service, "run-1"], &Server::key(), &envelope(&picture).to_string()).await;

    assert_eq!((first.code, again.code), (0, 0), "{first:?} {again:?}");
    assert!(failed.load(Ordering::SeqCst) >= 2, "both had to try again");
    assert_eq!(first.stdout, again.stdout);
    let printed: Value = serde_json::from_str(&first.stdout).expect("an envelope");
    let mut expected = envelope(&picture);
    expected["payload"] =
        json!({"url": url(&printed["payload"]), "bytes": picture.len(), "mimeType": "image/png", "alt": "A chart"});
    expected["meta"]["rendering"]["mimeType"] = json!("image/png");
    assert_eq!(printed, expected);
    assert_eq!(server.opens(url(&printed["payload"])).await, 200);
    let run: Value = server
        .request(reqwest::Method::GET, "/v1/runs/run-1")
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(run["assets"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_envelope_that_is_refused_is_told_why_and_one_without_bytes_passes() {
    let place = Place::new();
    let server = place.serve().await;
    let (service, broken) = (server.url(""), envelope(b"").to_string());
    let offload = async |envelope: &str, key: &str| run("offload_envelope", &[&service, "run-1"], key, envelope).await;

    let refused = offload(&broken, &Server::key()).await;
    assert!(refused.code == 1 && refused.stdout.is_empty(), "{refused:?}");
    assert!(refused.stderr.contains("400 validation_error"), "{refused:?}");
    let nobody = offload(&envelope(&png(2, 2)).to_string(), "mk_acme_wrong").await;
    assert!(nobody.code == 1 && nobody.stderr.contains("401 unauthenticated"), "{nobody:?}");
    assert!(!nobody.stderr.contains("mk_acme"), "{nobody:?}");
    let by_url = json!({"type": "media.file", "payload": {"url": "https://x.test/a", "bytes": 1}});
    let passed = offload(&by_url.to_string(), &Server::key()).await;
    assert_eq!(serde_json::from_str::<Value>(&passed.stdout).expect("an envelope"), by_url);
    assert_eq!(offload("{}", &Server::key()).await.code, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bundle_is_exported_only_if_it_may_travel() {
    let place = Place::new();
    let server = place.serve().await;
    let (service, _) = flaky::before(([127, 0, 0, 1], place.port()).into()).await;
    let (service, out) = (format!("http://{service}"), place.file("export.json"));
    let asset = server.upload(noise(500, 1)).await;
    let media = BASE64.encode(&noise(600, 2));
    let export = async |bundle: String| {
        let file = place.write("bundle.json", bundle);
        let paths = [&service, file.to_str().expect("text"), out.to_str().expect("text")];
        run("export_bundle", &paths, &Server::key(), "").await
    };

    let broken = export(format!(
        "{{\"run\":{{\"runId\":\"run-1\"}},\"x\":{{\"base64\":\"{}\",\"mimeType\":\"image/png\"}}}}",
        &media[1..]
    ))
    .await;
    assert!(broken.code == 1 && broken.stderr.contains("malformed at /x/base64"), "{broken:?}");
    assert!(!out.exists(), "what does not pass is not written");

    let good = format!(
        "{{ \"run\": {{\"runId\": \"run-1\"}}, \"n\": 1.50e1,\n \"x\": {{\"base64\": \"{media}\", \"mimeType\": \"image/png\"}}, \"u\": \"{}\" }}",
        url(&asset)
    );
    let exported = export(good.clone()).await;
    assert_eq!(exported.code, 0, "{exported:?}");
    assert!(exported.stderr.contains("2 assets in the manifest, 2 of them live"), "{exported:?}");
    let written = std::fs::read_to_string(&out).expect("a bundle");
    assert!(
        written.starts_with("{ \"run\": {\"runId\": \"run-1\"}, \"n\": 1.50e1,\n \"x\": {\"url\": \"http"),
        "{written}"
    );
    assert!(!written.contains(&media) && !written.contains("/a/ey"), "{written}");
    assert_eq!(export(good).await.code, 0);
    let again = std::fs::read_to_string(&out).expect("a bundle");
    let cut = |text: &str| text.split("x-host-mediakeep-mediaAssets").next().map(str::to_owned);
    assert_eq!(cut(&again), cut(&written), "the same bundle names the same assets");
}
