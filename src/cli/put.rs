//! `put`: files to a server, as any host would send them.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use futures_util::TryStreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use mediakeep::config::key_from_environment;
use mediakeep_storage::RunId;
use reqwest::Client;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde_json::Value;
use tokio_util::io::ReaderStream;
use url::Url;

use crate::Failure;

#[derive(Debug, Args)]
pub(crate) struct Put {
    /// What to send.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Where to.
    #[arg(long)]
    server: Url,
    /// Into which run; without one the assets wait for a run to reference them.
    #[arg(long)]
    run: Option<String>,
    /// The file with the API key; else MEDIAKEEP_KEY has it.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl Put {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let key = match &self.key_file {
            Some(file) => read_key(file)?,
            None => key_from_environment().ok_or_else(|| {
                Failure::BadUse("name the API key's file with --key-file, or set MEDIAKEEP_KEY".to_owned())
            })?,
        };
        let sender = Sender::new(&self.server, self.run.as_deref(), key)?;
        let mut worst = None;
        for file in &self.files {
            match sender.send(file).await {
                Ok(answer) => println!("{}\n  {}", file.display(), text(&answer, "/url")),
                Err(failure) => {
                    eprintln!("{}: {failure}", file.display());
                    worst = worst.max(Some(failure.rank()));
                }
            }
        }
        match worst {
            None => Ok(()),
            Some(Rank::Refused) => Err(Failure::Found),
            Some(Rank::Unreadable) => Err(Failure::BadUse("not every file could be read".to_owned())),
            Some(Rank::Unreachable) => Err(Failure::Unreachable("not every file was sent".to_owned())),
        }
    }
}

/// Why a file did not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsent {
    /// The server has an answer, and it is no.
    #[error("{0}")]
    Refused(String),
    /// It cannot be read here.
    #[error("cannot read it: {0}")]
    Unreadable(#[from] std::io::Error),
    /// There is no answer.
    #[error("the server does not answer: {0}")]
    Unreachable(String),
}

/// What an exit code goes by: the worst that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Refused,
    Unreadable,
    Unreachable,
}

impl Unsent {
    fn rank(&self) -> Rank {
        match self {
            Self::Refused(_) => Rank::Refused,
            Self::Unreadable(_) => Rank::Unreadable,
            Self::Unreachable(_) => Rank::Unreachable,
        }
    }
}

/// Sends files to one run of one server.
#[derive(Debug)]
pub(crate) struct Sender {
    client: Client,
    url: Url,
    key: String,
}

impl Sender {
    pub(crate) fn new(server: &Url, run: Option<&str>, key: String) -> Result<Self, Failure> {
        // A second provider is refused, and then there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build();
        let path = match run.map(RunId::parse) {
            Some(Ok(run)) => format!("v1/runs/{run}/assets"),
            Some(Err(_)) => {
                let wrong = "--run: 1 to 128 of A-Z a-z 0-9 . _ : ~ -, not . or ..";
                return Err(Failure::BadUse(wrong.to_owned()));
            }
            None => "v1/assets".to_owned(),
        };
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::BadUse("the API key is empty, or holds what no key does".to_owned()));
        }
        let base = format!("{}/", server.as_str().trim_end_matches('/'));
        let url = Url::parse(&base).and_then(|base| base.join(&path));
        Ok(Self {
            client: client.map_err(|error| Failure::BadUse(format!("no HTTP client: {error}")))?,
            url: url.map_err(|error| Failure::BadUse(format!("--server: {error}")))?,
            key,
        })
    }

    /// Sends one file; the server says what it is.
    pub(crate) async fn send(&self, path: &Path) -> Result<Value, Unsent> {
        let file = tokio::fs::File::open(path).await?;
        let length = file.metadata().await?.len();
        let bar = progress_bar(length, path);
        let sent = bar.clone();
        let chunks =
            ReaderStream::with_capacity(file, 256 * 1024).inspect_ok(move |chunk| sent.inc(chunk.len() as u64));
        let mut url = self.url.clone();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            url.query_pairs_mut().append_pair("name", name);
        }
        let request = self
            .client
            .post(url)
            .bearer_auth(&self.key)
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_LENGTH, length)
            .body(reqwest::Body::wrap_stream(chunks));
        let response = request.send().await;
        bar.finish_and_clear();
        let response = response.map_err(|error| Unsent::Unreachable(cause(&error)))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| Unsent::Unreachable(cause(&error)))?;
        // Whatever stands between us and the server may answer with anything.
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        match status.is_success() && answer.is_object() {
            true => Ok(answer),
            false => Err(Unsent::Refused(format!("{status}: {}", text(&answer, "/message")))),
        }
    }
}

/// A text somewhere in an answer.
pub(crate) fn text<'a>(answer: &'a Value, pointer: &str) -> &'a str {
    answer.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// The error without the URL that it would name: a URL may be a capability.
fn cause(error: &reqwest::Error) -> String {
    use std::error::Error;
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn read_key(file: &Path) -> Result<String, Failure> {
    let key = std::fs::read_to_string(file)
        .map_err(|error| Failure::BadUse(format!("--key-file: {}: {error}", file.display())))?;
    Ok(key.trim().to_owned())
}

/// A bar on a terminal, nothing elsewhere.
fn progress_bar(length: u64, path: &Path) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    let bar = ProgressBar::new(length).with_message(path.display().to_string());
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
