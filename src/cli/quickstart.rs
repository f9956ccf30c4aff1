//! `quickstart`: the main job on one's own files, without any configuration. Everything lies in `./data`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mediakeep::access::{Scope, hash_secret, new_secret};
use mediakeep::app::make_private_folder;
use mediakeep::clock::Clock;
use mediakeep::config::settings::ApiKey;
use mediakeep::config::{self, Settings};
use mediakeep::server::{self, Running};
use mediakeep::telemetry;
use serde_json::Value;
use url::Url;

use super::put::{Sender, text};
use super::{sample, serve};
use crate::Failure;

/// The run that the files go into.
const RUN: &str = "quickstart";

pub(crate) async fn run(config: Option<&Path>, files: &[PathBuf]) -> Result<(), Failure> {
    let data = std::path::absolute("data")?;
    make_private_folder(&data)?;
    let key = api_key(&data)?;
    let mut settings = config::load_over(&defaults(&data)?, config)?;
    settings.access.api_keys.push(key.entry());
    telemetry::start_log(&settings.telemetry.log);
    let running = server::start(settings, Clock::System, None).await?;
    let base = format!("http://{}", running.address);
    let server = Url::parse(&base).map_err(|error| Failure::BadUse(error.to_string()))?;
    let sender = Sender::new(&server, Some(RUN), key.0)?;
    let files = if files.is_empty() { write_samples(&data)? } else { files.to_owned() };
    let mut last = None;
    for file in &files {
        match sender.send(file).await {
            Ok(answer) => {
                show(file, &answer);
                last = Some(text(&answer, "/asset/assetId").to_owned());
            }
            Err(failure) => eprintln!("{}: {failure}", file.display()),
        }
    }
    show_next_steps(&data, &running, last.as_deref());
    serve::until_told(running).await
}

/// Its own in place of the defaults: everything in one folder, metrics beside, and a quiet log.
fn defaults(data: &Path) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    let folder = |scheme: &str, name: &str| -> Result<String, Failure> {
        let url = Url::from_directory_path(data.join(name))
            .map_err(|()| Failure::BadUse("./data has no usable path".to_owned()))?;
        Ok(url.as_str().trim_end_matches('/').replacen("file:", scheme, 1))
    };
    settings.store.url = folder("file:", "blobs")?;
    settings.index.url = folder("sled:", "index")?.into();
    settings.keys.ring = data.join("keys").join("ring.json");
    settings.server.admin_listen = "127.0.0.1:8788".to_owned();
    settings.telemetry.log = "warn".to_owned();
    Ok(settings)
}

/// The one API key.
struct Key(String);

/// What it begins with; its secret follows.
const KEY: &str = "mk_quickstart_";

impl Key {
    /// What the service knows of it.
    fn entry(&self) -> ApiKey {
        ApiKey {
            id: "quickstart".to_owned(),
            tenant: "quickstart".to_owned(),
            scopes: Scope::ALL.into_iter().map(|scope| scope.name().to_owned()).collect(),
            secret_sha256: hash_secret(&self.0[KEY.len()..]),
            expires: None,
            revoked: false,
        }
    }
}

/// The key is made at the first start, and read at the next.
fn api_key(data: &Path) -> Result<Key, Failure> {
    let path = data.join("api-key");
    match fs::read_to_string(&path) {
        // A file that a crash left empty must not become a key without a secret.
        Ok(key) => match key.trim().strip_prefix(KEY) {
            Some(secret) if !secret.is_empty() => Ok(Key(key.trim().to_owned())),
            _ => Err(Failure::BadUse(format!("{} holds no key: remove it, and a new one is made", path.display()))),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = format!("{KEY}{}", new_secret());
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            writeln!(file, "{key}")?;
            file.sync_all()?;
            Ok(Key(key))
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

fn show_next_steps(data: &Path, running: &Running, asset: Option<&str>) {
    let (base, key) = (&running.app.base_url, data.join("api-key"));
    let bearer = format!("-H \"Authorization: Bearer $(cat '{}')\"", key.display());
    let metrics = running.admin_address.map(|admin| format!(", metrics on http://{admin}/metrics"));
    println!(
        "Serving on {base}{}; stop with Ctrl-C. Open a URL above in a browser, or:\n",
        metrics.unwrap_or_default()
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
