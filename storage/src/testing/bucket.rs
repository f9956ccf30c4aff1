//! An S3 server of the tests' own, in this process: its buckets are the folders in a folder.
//!
//! What it holds can be looked at, broken and taken away as files, as the bytes of a local store can.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue, IF_NONE_MATCH};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpError, HttpResponse};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::misdeed::{self, Misdeed, Script, What};
use crate::blob::{S3Options, StoreOptions};

/// Who may ask it; the second is as secret as a test's secrets are.
const ACCESS_KEY: &str = "AKIATESTS";
const SECRET_KEY: &str = "secret-of-tests";

/// A running server; it ends with this value.
#[derive(Debug)]
pub struct Buckets {
    address: SocketAddr,
    script: Script,
    stop: Option<oneshot::Sender<()>>,
}

impl Buckets {
    /// Serves the folders in `root` as buckets.
    pub fn serve(root: &Path) -> Self {
        Self::run(root, |service| service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY)))
    }

    /// The same by the XML API of Google Cloud Storage, to whoever asks: of S3 it differs in its credentials and in how conditions are
    /// written.
    pub fn serve_google(root: &Path) -> Self {
        Self::run(root, |_| ())
    }

    fn run(root: &Path, change: impl FnOnce(&mut S3ServiceBuilder)) -> Self {
        let files = s3s_fs::FileSystem::new(root).expect("a folder");
        let mut service = S3ServiceBuilder::new(files);
        change(&mut service);
        let service = service.build();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let script = Script::default();
        let service = Scripted { service, script: script.clone() };
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    () = accept(listener, service) => (),
                    _ = stopped => (),
                }
            });
        });
        Self { address, script, stop: Some(stop) }
    }

    /// Has it do that to the next requests of that kind.
    pub fn misbehave(&self, misdeed: Misdeed) {
        self.script.add(misdeed);
    }

    /// Has it do all that is asked from now on.
    pub fn behave(&self) {
        self.script.end();
    }

    /// Whether it has done all that.
    pub fn behaves(&self) -> bool {
        self.script.is_over()
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a store on one of the buckets needs to know.
    pub fn options(&self) -> StoreOptions {
        let s3 = S3Options {
            endpoint: Some(self.endpoint()),
            region: Some("us-east-1".to_owned()),
            path_style: None,
            allow_http: Some(true),
        };
        StoreOptions { s3, environment: credentials() }
    }

    /// What a process that uses it as Google's has in its environment.
    pub fn google_environment(&self) -> Vec<(String, String)> {
        // A service account that needs no token, as emulators have it.
        let account = format!(
            r#"{{"gcs_base_url":"{}","disable_oauth":true,"client_email":"","private_key":"","private_key_id":""}}"#,
            self.endpoint()
        );
        [("GOOGLE_SERVICE_ACCOUNT_KEY", account.as_str()), ("GOOGLE_ALLOW_HTTP", "true")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec()
    }
}

/// What a process that uses it has in its environment.
pub fn credentials() -> Vec<(String, String)> {
    [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

impl Drop for Buckets {
    fn drop(&mut self) {
        // Its thread may be gone already.
        let _ = self.stop.take().map(|stop| stop.send(()));
    }
}

async fn accept(listener: TcpListener, service: Scripted) {
    while let Ok((socket, _)) = listener.accept().await {
        let service = service.clone();
        tokio::spawn(async move {
            let server = Builder::new(TokioExecutor::new());
            let answers = service_fn(move |request| service.clone().answer(request));
            // A client that goes away in the middle is its own affair.
            let _ = server.serve_connection(TokioIo::new(socket), answers).await;
        });
    }
}

/// The server with what is to happen to its clients.
#[derive(Debug, Clone)]
struct Scripted {
    service: S3Service,
    script: Script,
}

impl Scripted {
    async fn answer(self, request: hyper::Request<Incoming>) -> Result<HttpResponse, HttpError> {
        let mut request = request.map(Body::from);
        if request.headers().get(AUTHORIZATION).is_some_and(|said| said.as_bytes().starts_with(b"Bearer")) {
            request.headers_mut().remove(AUTHORIZATION);
        }
        if request.headers_mut().remove("x-goog-if-generation-match").is_some_and(|generation| generation == "0") {
            request.headers_mut().insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        let what = self.script.next(&request);
        match what {
            Some(What::Refuse(status)) => return Ok(misdeed::refusal(status)),
            Some(What::Drop) => return Err(misdeed::gone()),
            Some(What::Late(time)) => tokio::time::sleep(time).await,
            Some(What::LoseAnswer | What::CutAfter(_) | What::RefuseSome { .. }) | None => (),
        }
        let response = self.service.call(request).await?;
        match what {
            Some(What::LoseAnswer) => Err(misdeed::gone()),
            Some(What::CutAfter(bytes)) => Ok(misdeed::cut(response, bytes)),
            _ => Ok(response),
        }
    }
}
