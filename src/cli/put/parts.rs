//! A file in parts, by tus 1.0.0: whatever happens on the way, the server is asked how far it is, and the rest is sent.

use std::io::SeekFrom;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::BASE64;
use futures_util::{StreamExt, stream};
use indicatif::ProgressBar;
use mediakeep_storage::{Digest, UploadId};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use ring::digest;
use serde_json::{Value, json};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::memory::Memory;
use super::patience::Patience;
use super::{Sender, Unsent, answer, cause, name_of, progress_bar, refused, text, unreachable};

/// So many bytes go in one request, and are held for it: a crash of the server costs no more, and many a proxy takes no more.
const PIECE: u64 = 16 << 20;

/// The first piece behind an interruption: whoever wrote before may not be done, and then what is sent is sent in vain.
const FIRST_AGAIN: u64 = 1 << 20;

/// The bar moves by so many.
const CHUNK: usize = 256 << 10;

/// What a server answers that has no such route, or a proxy that does not let us ask.
const KNOWS_NONE: [StatusCode; 3] =
    [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];

/// No request takes longer: not the slowest line for one piece, nor the server for reading a large upload once at its end.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15 * 60);

/// Sends the file; answers as a single request would, as far as the key may know it.
pub(super) async fn send(sender: &Sender, path: &Path, length: u64) -> Result<Value, Unsent> {
    let sha256 = digest_of(path).await?;
    let memory = Memory::of(sender, name_of(path), sha256);
    let bar = progress_bar(length, path);
    let file = File::open(path).await?;
    let mut sending = Sending { sender, file, length, bar, patience: Patience::default() };
    let sent = sending.run(&memory, &metadata(sender, name_of(path), sha256)).await;
    sending.bar.finish_and_clear();
    // What the server has refused, it refuses again: whoever puts the file once more begins anew.
    if matches!(sent, Ok(_) | Err(Unsent::Refused(_))) {
        memory.forget();
    }
    let asset = sent?;
    Ok(sender.told_of(&asset).await)
}

impl Sender {
    /// Whether the server knows uploads in parts. One that is not there is told of at once.
    pub(super) async fn takes_parts(&self) -> Result<bool, Unsent> {
        let mut patience = Patience::default();
        loop {
            let failed = match self.tus(Method::OPTIONS, "v1/uploads")?.send().await {
                Ok(heard) if heard.status().is_success() => {
                    return Ok(heard.headers().get("tus-version").is_some_and(|said| said == "1.0.0"));
                }
                Ok(heard) if KNOWS_NONE.contains(&heard.status()) => return Ok(false),
                Ok(heard) => later(heard).await?,
                Err(error) if error.is_connect() => return Err(unreachable(&error)),
                Err(error) => Later::by(&error),
            };
            failed.wait(&mut patience).await?;
        }
    }

    fn tus(&self, method: Method, path: &str) -> Result<RequestBuilder, Unsent> {
        let request = self.client.request(method, self.url(path)?).bearer_auth(&self.key);
        Ok(request.header("tus-resumable", "1.0.0").timeout(ANSWERED_WITHIN))
    }

    /// The asset and a URL of it: the durable one, or the one that wants a credential if the key may not have another.
    async fn told_of(&self, asset: &str) -> Value {
        let ask = async |request: RequestBuilder| {
            let request = request.bearer_auth(&self.key).timeout(Duration::from_secs(60));
            answer(request.send().await.map_err(|error| unreachable(&error))?).await
        };
        let (Ok(shown), Ok(urls), Ok(bound)) = (
            self.url(&format!("v1/assets/{asset}")),
            self.url(&format!("v1/assets/{asset}/urls")),
            self.url(&format!("v1/assets/{asset}/content")),
        ) else {
            return json!({"asset": {"assetId": asset}});
        };
        let shown = ask(self.client.get(shown)).await.unwrap_or_else(|_| json!({"assetId": asset}));
        let minted = ask(self.client.post(urls).json(&json!({"class": "durable"}))).await.unwrap_or_default();
        let url = minted.get("url").cloned().unwrap_or_else(|| bound.as_str().into());
        json!({"asset": shown, "url": url})
    }
}

/// A file on its way.
struct Sending<'s> {
    sender: &'s Sender,
    file: File,
    length: u64,
    bar: ProgressBar,
    patience: Patience,
}

/// What came of a request.
enum Told {
    /// So many bytes are there.
    Offset(u64),
    /// All are there, and this asset is what was made of them.
    Asset(String),
    /// There is no such upload, or no more.
    Gone,
    /// Nothing now.
    Later(Later),
}

impl Sending<'_> {
    /// Goes on with what was begun, or begins; returns the asset's id.
    async fn run(&mut self, memory: &Memory, metadata: &str) -> Result<String, Unsent> {
        if let Some(begun) = memory.recall()
            && let Some(asset) = self.bring(begun, None).await?
        {
            return Ok(asset);
        }
        let upload = self.begin(metadata).await?;
        if let Err(error) = memory.keep(upload) {
            eprintln!("put again after a break, it will begin anew: {error}");
        }
        let brought = self.bring(upload, Some(0)).await?;
        brought.ok_or_else(|| Unsent::Refused("the server has given the upload up".to_owned()))
    }

    async fn begin(&mut self, metadata: &str) -> Result<UploadId, Unsent> {
        loop {
            let request = self.sender.tus(Method::POST, "v1/uploads")?;
            let request = request.header("upload-length", self.length).header("upload-metadata", metadata);
            let failed = match request.header(CONTENT_LENGTH, 0).send().await {
                Ok(heard) if heard.status().is_success() => return named(heard.headers()),
                Ok(heard) => later(heard).await?,
                Err(error) => Later::by(&error),
            };
            failed.wait(&mut self.patience).await?;
        }
    }

    /// Brings what is missing; `None` when there is no such upload. `from` is where it goes on, if that is known.
    async fn bring(&mut self, upload: UploadId, from: Option<u64>) -> Result<Option<String>, Unsent> {
        let path = format!("v1/uploads/{upload}");
        let (mut from, mut furthest) = (from, from);
        let mut most = PIECE;
        loop {
            let told = match from {
                Some(at) if at < self.length => self.append(&path, at, std::mem::replace(&mut most, PIECE)).await?,
                _ => {
                    most = FIRST_AGAIN;
                    self.look(&path).await?
                }
            };
            from = match told {
                Told::Asset(asset) => return Ok(Some(asset)),
                Told::Gone => return Ok(None),
                Told::Offset(at) if at > self.length => {
                    return Err(Unsent::Refused("the server has more bytes than the file".to_owned()));
                }
                Told::Offset(at) if from == Some(at) => {
                    // A part of which nothing arrived, or an end that nothing was made of.
                    Later { why: "nothing moves".to_owned(), told: None }.wait(&mut self.patience).await?;
                    None
                }
                Told::Offset(at) => {
                    self.show(at, furthest.is_none());
                    if furthest < Some(at) {
                        furthest = Some(at);
                        self.patience.regain();
                    }
                    Some(at)
                }
                Told::Later(later) => {
                    later.wait(&mut self.patience).await?;
                    None
                }
            };
        }
    }

    /// Sends the piece that begins there.
    async fn append(&mut self, path: &str, at: u64, most: u64) -> Result<Told, Unsent> {
        let piece = self.piece(at, most).await?;
        let (length, bar) = (piece.len(), self.bar.clone());
        let chunks = (0..length).step_by(CHUNK).map(move |from| piece.slice(from..length.min(from + CHUNK)));
        let body = stream::iter(chunks).map(move |chunk| {
            bar.inc(chunk.len() as u64);
            Ok::<_, std::io::Error>(chunk)
        });
        let request = self.sender.tus(Method::PATCH, path)?.header(CONTENT_TYPE, "application/offset+octet-stream");
        let request = request.header("upload-offset", at).header(CONTENT_LENGTH, length);
        told(request.body(reqwest::Body::wrap_stream(body)).send().await).await
    }

    async fn look(&self, path: &str) -> Result<Told, Unsent> {
        told(self.sender.tus(Method::HEAD, path)?.send().await).await
    }

    async fn piece(&mut self, at: u64, most: u64) -> Result<Bytes, Unsent> {
        let length = most.min(self.length - at);
        self.file.seek(SeekFrom::Start(at)).await?;
        let mut piece = Vec::with_capacity(length as usize);
        (&mut self.file).take(length).read_to_end(&mut piece).await?;
        if piece.len() as u64 != length {
            return Err(std::io::Error::other("it has become shorter while it was sent").into());
        }
        Ok(piece.into())
    }

    /// Has the bar stand where the server is. What was there before counts for no speed.
    fn show(&self, at: u64, is_first: bool) {
        self.bar.set_position(at);
        if is_first {
            self.bar.reset_eta();
        }
    }
}

/// What the answer to a PATCH or a HEAD tells.
async fn told(heard: reqwest::Result<Response>) -> Result<Told, Unsent> {
    let heard = match heard {
        Ok(heard) => heard,
        Err(error) => return Ok(Told::Later(Later::by(&error))),
    };
    let (status, headers) = (heard.status(), heard.headers());
    if status.is_success() {
        if let Some(asset) = word(headers, "mediakeep-asset-id") {
            return Ok(Told::Asset(asset.to_owned()));
        }
        let offset = word(headers, "upload-offset").and_then(|offset| offset.parse().ok());
        return offset.map(Told::Offset).ok_or_else(no_tus);
    }
    match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Ok(Told::Gone),
        _ => later(heard).await.map(Told::Later),
    }
}

/// Why a refusal is not the last word, if it is not.
async fn later(heard: Response) -> Result<Later, Unsent> {
    let status = heard.status();
    let told = word(heard.headers(), RETRY_AFTER.as_str()).and_then(|seconds| seconds.parse().ok());
    let said: Value = heard.json().await.unwrap_or_default();
    let refusal = refused(status, &said);
    // It goes on elsewhere than we thought; a quota does not grow by waiting.
    let moved = text(&said, "/error") == "offset_mismatch";
    let full = text(&said, "/details/reason") == "quota";
    match moved || (is_passing(status) && !full) {
        true => Ok(Later { why: refusal.to_string(), told: told.map(Duration::from_secs) }),
        false => Err(refusal),
    }
}

/// Whether the same request may be answered otherwise in a moment. A disk that is full takes longer than that.
fn is_passing(status: StatusCode) -> bool {
    let unlikely =
        [StatusCode::NOT_IMPLEMENTED, StatusCode::HTTP_VERSION_NOT_SUPPORTED, StatusCode::INSUFFICIENT_STORAGE];
    let waits = [StatusCode::REQUEST_TIMEOUT, StatusCode::LOCKED, StatusCode::TOO_MANY_REQUESTS];
    waits.contains(&status) || (status.is_server_error() && !unlikely.contains(&status))
}

/// A reason to come again.
struct Later {
    why: String,
    told: Option<Duration>,
}

impl Later {
    fn by(error: &reqwest::Error) -> Self {
        Self { why: cause(error), told: None }
    }

    /// Waits, unless it has been too often: then the reason is the answer.
    async fn wait(self, patience: &mut Patience) -> Result<(), Unsent> {
        let wait = patience.next(self.told).ok_or(Unsent::Unreachable(self.why))?;
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

fn no_tus() -> Unsent {
    Unsent::Refused("what answers there does not speak tus".to_owned())
}

fn word<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The upload that an answer names. It is asked for by the address that we were given: the server may be called otherwise from inside.
fn named(headers: &HeaderMap) -> Result<UploadId, Unsent> {
    let name = word(headers, LOCATION.as_str()).and_then(|location| location.rsplit('/').next());
    name.and_then(|name| UploadId::parse(name).ok()).ok_or_else(no_tus)
}

fn metadata(sender: &Sender, name: Option<&str>, sha256: Digest) -> String {
    let (run, sha256) = (sender.run.as_ref().map(ToString::to_string), sha256.to_string());
    let pairs = [("filename", name), ("runId", run.as_deref()), ("sha256", Some(&sha256))];
    let pairs =
        pairs.into_iter().filter_map(|(key, value)| Some(format!("{key} {}", BASE64.encode(value?.as_bytes()))));
    pairs.collect::<Vec<_>>().join(",")
}

/// The file's digest: it names what is sent, and the server refuses anything else.
async fn digest_of(path: &Path) -> Result<Digest, Unsent> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let (mut file, mut hash) = (std::fs::File::open(path)?, digest::Context::new(&digest::SHA256));
        let mut buffer = vec![0; 1 << 20];
        loop {
            match std::io::Read::read(&mut file, &mut buffer)? {
                0 => break,
                read => hash.update(&buffer[..read]),
            }
        }
        Ok(Digest(hash.finish().as_ref().try_into().expect("a digest is always 32 bytes")))
    });
    read.await.map_err(std::io::Error::other)?.map_err(Unsent::Unreadable)
}
