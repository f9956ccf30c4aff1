//! `quickstart`: the main job on one's own files, without any configuration. Everything lies in `./data`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mediakeep::access::{Scope, hash_secret, new_secret};
use mediakeep::app::make_private_folder;
use mediakeep::clock::Clock;
use mediakeep::config::Settings;
use mediakeep::config::settings::ApiKey;
use mediakeep::{server, telemetry};
use serde_json::Value;
use url::Url;

use super::put::{Sender, text};
use super::{sample, serve};
use crate::Failure;

/// The run that the files go into.
const RUN: &str = "quickstart";

pub(crate) async fn run(files: &[PathBuf]) -> Result<(), Failure> {
    let data = std::path::absolute("data")?;
    make_private_folder(&data)?;
    let key = api_key(&data)?;
    telemetry::start_log("warn");
    let running = server::start(settings(&data, &key)?, Clock::System, None).await?;
    let base = format!("http://{}", running.address);
    let server = Url::parse(&base).map_err(|error| Failure::BadUse(error.to_string()))?;
    let sender = Sender::new(server, Some(RUN.to_owned()), key)?;
    let files = if files.is_empty() { write_samples(&data)? } else { files.to_owned() };
    let mut last = None;
    for file in &files {
        match sender.send(file).await {
            Ok(answer) => {
                show(file, &answer);
                last = Some(text(&answer, "/asset/assetId").to_owned());
            }
            Err(Failure::BadUse(sentence) | Failure::Unreachable(sentence)) => {
                eprintln!("{}: {sentence}", file.display())
            }
            Err(Failure::Found) => {}
        }
    }
    show_next_steps(&data, &base, last.as_deref());
    serve::until_told(running).await
}

fn settings(data: &Path, key: &str) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    let folder = |scheme: &str, name: &str| -> Result<String, Failure> {
        let url = Url::from_directory_path(data.join(name))
            .map_err(|()| Failure::BadUse("./data has no usable path".to_owned()))?;
        Ok(url.as_str().trim_end_matches('/').replacen("file:", scheme, 1))
    };
    settings.store.url = folder("file:", "blobs")?;
    settings.index.url = folder("sled:", "index")?;
    settings.keys.ring = data.join("keys").join("ring.json");
    settings.server.admin_listen = "127.0.0.1:8788".to_owned();
    let secret = key.strip_prefix("mk_quickstart_").unwrap_or("");
    settings.access.api_keys.push(ApiKey {
        id: "quickstart".to_owned(),
        tenant: "quickstart".to_owned(),
        scopes: Scope::ALL.into_iter().map(|scope| scope.name().to_owned()).collect(),
        secret_sha256: hash_secret(secret),
        expires: None,
        revoked: false,
    });
    Ok(settings)
}

/// The one API key: made at the first start, read at the next.
fn api_key(data: &Path) -> Result<String, Failure> {
    let path = data.join("api-key");
    match fs::read_to_string(&path) {
        Ok(key) => Ok(key.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = format!("mk_quickstart_{}", new_secret());
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            writeln!(file, "{key}")?;
            Ok(key)
        }
        Err(error) => Err(error.into()),
    }
}

fn write_samples(data: &Path) -> Result<Vec<PathBuf>, Failure> {
    let folder = data.join("samples");
    make_private_folder(&folder)?;
    sample::files()
        .into_iter()
        .map(|(name, bytes)| {
            let path = folder.join(name);
            fs::write(&path, bytes)?;
            Ok(path)
        })
        .collect()
}

fn show(file: &Path, answer: &Value) {
    let fact = |name: &str| answer.pointer(&format!("/asset/facts/{name}")).filter(|fact| !fact.is_null());
    let mut found = vec![text(answer, "/asset/mimeType").to_owned()];
    if let Some(bytes) = answer.pointer("/asset/bytes") {
        found.push(format!("{bytes} bytes"));
    }
    if let (Some(width), Some(height)) = (fact("width"), fact("height")) {
        found.push(format!("{width}×{height}"));
    }
    if let Some(seconds) = fact("durationSeconds") {
        found.push(format!("{seconds} s"));
    }
    println!("{}: {}\n  {}\n", file.display(), found.join(", "), text(answer, "/url"));
}

fn show_next_steps(data: &Path, base: &str, asset: Option<&str>) {
    let key = data.join("api-key");
    let bearer = format!("-H \"Authorization: Bearer $(cat '{}')\"", key.display());
    println!(
        "Serving on {base}, metrics on http://127.0.0.1:8788/metrics; stop with Ctrl-C. Open a URL above in a browser, or:\n"
    );
    println!("  # what the run's log references");
    println!("  curl -s {bearer} {base}/v1/runs/{RUN}/debug-bundle/manifest\n");
    println!("  # one more asset");
    println!(
        "  curl -s {bearer} -H 'Content-Type: application/octet-stream' --data-binary @FILE '{base}/v1/runs/{RUN}/assets?name=FILE'\n"
    );
    println!("  # keep the run's log, and with it its media, for a year");
    println!(
        "  curl -s {bearer} -X PUT -H 'Content-Type: application/json' -d '{{\"status\":\"closed\",\"logRetentionSeconds\":31536000}}' {base}/v1/runs/{RUN}\n"
    );
    if let Some(asset) = asset {
        println!("  # a URL for fifteen minutes");
        println!(
            "  curl -s {bearer} -H 'Content-Type: application/json' -d '{{\"class\":\"delivery\"}}' {base}/v1/assets/{asset}/urls\n"
        );
    }
}
