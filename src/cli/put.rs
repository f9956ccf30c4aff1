//! `put`: files to a server, as any host would send them; large ones in parts, so that what breaks off goes on.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use futures_util::TryStreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use mediakeep::config::key_from_environment;
use mediakeep_storage::RunId;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use tokio_util::io::ReaderStream;
use url::Url;

use crate::Failure;

mod memory;
mod parts;
mod patience;

/// What is longer is sent in parts. Below, the round trips cost more than sending it again would.
const IN_PARTS: u64 = 16 << 20;

/// How long a connection may take to be made, and how long nothing of what was sent may be heard of by the other side.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
#[command(long_about = "Send files to a server.\n\n\
    What is longer than 16 MiB goes in parts: whatever breaks off goes on where it was, and so does the same file when it is put again into \
    the same run of the same server after this program was killed, for as long as the server keeps what it has (uploads.expire there). \
    What is begun is remembered in $XDG_STATE_HOME/mediakeep (~/.local/state/mediakeep) until it is done, without the key.")]
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
#[derive(Clone)]
pub(crate) struct Sender {
    client: Client,
    base: Url,
    run: Option<RunId>,
    key: String,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("run", &self.run).finish_non_exhaustive()
    }
}

impl Sender {
    pub(crate) fn new(server: &Url, run: Option<&str>, key: String) -> Result<Self, Failure> {
        // A second provider is refused, and then there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .no_proxy()
            .connect_timeout(CONNECT)
            .tcp_keepalive(SILENCE / 2)
            .tcp_keepalive_interval(SILENCE / 6)
            .tcp_keepalive_retries(3)
            .tcp_user_timeout(SILENCE)
            .build();
        let wrong = || Failure::BadUse("--run: 1 to 128 of A-Z a-z 0-9 . _ : ~ -, not . or ..".to_owned());
        let run = run.map(RunId::parse).transpose().map_err(|_| wrong())?;
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::BadUse("the API key is empty, or holds what no key does".to_owned()));
        }
        let base = Url::parse(&format!("{}/", server.as_str().trim_end_matches('/')));
        let base = base.and_then(|base| base.join("v1/").map(|_| base));
        Ok(Self {
            client: client.map_err(|error| Failure::BadUse(format!("no HTTP client: {error}")))?,
            base: base.map_err(|error| Failure::BadUse(format!("--server: {error}")))?,
            run,
            key,
        })
    }

    /// Sends one file; the server says what it is.
    pub(crate) async fn send(&self, path: &Path) -> Result<Value, Unsent> {
        let length = tokio::fs::metadata(path).await?.len();
        if length > IN_PARTS && self.takes_parts().await? {
            return parts::send(self, path, length).await;
        }
        self.send_whole(path).await
    }

    /// Sends it in one request.
    async fn send_whole(&self, path: &Path) -> Result<Value, Unsent> {
        let file = tokio::fs::File::open(path).await?;
        let length = file.metadata().await?.len();
        let bar = progress_bar(length, path);
        let sent = bar.clone();
        let chunks =
            ReaderStream::with_capacity(file, 256 * 1024).inspect_ok(move |chunk| sent.inc(chunk.len() as u64));
        let mut url = match &self.run {
            Some(run) => self.url(&format!("v1/runs/{run}/assets"))?,
            None => self.url("v1/assets")?,
        };
        if let Some(name) = name_of(path) {
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
        answer(response.map_err(|error| unreachable(&error))?).await
    }

    fn url(&self, path: &str) -> Result<Url, Unsent> {
        self.base.join(path).map_err(|error| Unsent::Refused(error.to_string()))
    }
}

/// What the server says, if it is no refusal.
async fn answer(response: Response) -> Result<Value, Unsent> {
    let status = response.status();
    let body = response.bytes().await.map_err(|error| unreachable(&error))?;
    // Whatever stands between us and the server may answer with anything.
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    match status.is_success() && answer.is_object() {
        true => Ok(answer),
        false => Err(refused(status, &answer)),
    }
}

fn refused(status: StatusCode, answer: &Value) -> Unsent {
    Unsent::Refused(format!("{status}: {}", text(answer, "/message")))
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name().and_then(|name| name.to_str())
}

/// A text somewhere in an answer.
pub(crate) fn text<'a>(answer: &'a Value, pointer: &str) -> &'a str {
    answer.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn unreachable(error: &reqwest::Error) -> Unsent {
    Unsent::Unreachable(cause(error))
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
