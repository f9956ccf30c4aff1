//! An S3 server of the tests' own, in this process: its buckets are the folders in a folder.
//!
//! What it holds can be looked at, broken and taken away as files, as the bytes of a local store can.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::blob::{S3Options, StoreOptions};

/// Who may ask it; the second is as secret as a test's secrets are.
const ACCESS_KEY: &str = "AKIATESTS";
const SECRET_KEY: &str = "secret-of-tests";

/// A running server; it ends with this value.
#[derive(Debug)]
pub struct Buckets {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
}

impl Buckets {
    /// Serves the folders in `root` as buckets.
    pub fn serve(root: &Path) -> Self {
        let files = s3s_fs::FileSystem::new(root).expect("a folder");
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = service.build();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
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
        Self { address, stop: Some(stop) }
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

async fn accept(listener: TcpListener, service: S3Service) {
    while let Ok((socket, _)) = listener.accept().await {
        let service = service.clone();
        tokio::spawn(async move {
            let server = Builder::new(TokioExecutor::new());
            // A client that goes away in the middle is its own affair.
            let _ = server.serve_connection(TokioIo::new(socket), service).await;
        });
    }
}
