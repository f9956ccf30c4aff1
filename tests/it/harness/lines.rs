//! Connections that go through the test's own hands: lines that can be cut, and a proxy before several servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use url::Url;

use super::process::client;

/// The address of a database through a line that ends, connections and all, when its task is aborted.
pub async fn through_a_line(address: &str) -> (String, JoinHandle<()>) {
    let (address, here, database) = between(address).await;
    let line = tokio::spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((mut caller, _)) = here.accept().await {
            let database = database.clone();
            open.spawn(async move {
                let mut there = TcpStream::connect(database).await.expect("the database listens");
                let _ = tokio::io::copy_bidirectional(&mut caller, &mut there).await;
            });
        }
    });
    (address, line)
}

/// The address of a database as it is through a listener of ours; the listener; and where the database is.
async fn between(address: &str) -> (String, TcpListener, (String, u16)) {
    let mut address = Url::parse(address).expect("a URL");
    let database = (address.host_str().expect("a host").to_owned(), address.port().unwrap_or(5432));
    let here = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    address.set_host(Some("127.0.0.1")).expect("it has a host");
    address.set_port(Some(here.local_addr().expect("an address").port())).expect("it has a port");
    (address.into(), here, database)
}

/// A line to a database that can be held: whatever is said on it, either way, waits until it is let go.
#[derive(Debug)]
pub struct Line {
    address: String,
    held: watch::Sender<bool>,
    /// It ends with it.
    _task: JoinSet<()>,
}

impl Line {
    pub async fn to(address: &str) -> Self {
        let (address, here, database) = between(address).await;
        let (held, hold) = watch::channel(false);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((caller, _)) = here.accept().await {
                let there = TcpStream::connect(database.clone()).await.expect("the database listens");
                let ((from_caller, to_caller), (from_there, to_there)) = (caller.into_split(), there.into_split());
                open.spawn(pass(from_caller, to_there, hold.clone()));
                open.spawn(pass(from_there, to_caller, hold.clone()));
            }
        });
        Self { address, held, _task: task }
    }

    /// The database's address through this line.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn hold(&self) {
        self.held.send_replace(true);
    }

    pub fn release(&self) {
        self.held.send_replace(false);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut held: watch::Receiver<bool>) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        let said = from.read(&mut bytes).await.unwrap_or(0);
        // Also an end is something that is said.
        if held.wait_for(|held| !held).await.is_err() || said == 0 || to.write_all(&bytes[..said]).await.is_err() {
            let _ = to.shutdown().await;
            return;
        }
    }
}

/// A proxy that gives each connection to the next of the servers that say that they are ready; it ends with this value.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    /// They end with it.
    _tasks: JoinSet<()>,
}

/// How often servers are asked.
const ASKED_EVERY: Duration = Duration::from_millis(200);

/// A server that takes longer to say so is not ready.
const SAID_WITHIN: Duration = Duration::from_secs(2);

impl Proxy {
    /// Its address is known before the servers are, since they are told of it.
    pub async fn listen() -> (SocketAddr, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        (listener.local_addr().expect("an address"), listener)
    }

    /// Begins to pass connections on.
    pub fn pass_on((address, listener): (SocketAddr, TcpListener), ports: &[u16]) -> Self {
        let ready: Arc<Vec<(u16, AtomicBool)>> = Arc::new(ports.iter().map(|port| (*port, true.into())).collect());
        let mut tasks = JoinSet::new();
        tasks.spawn(ask(ready.clone()));
        tasks.spawn(async move {
            let (mut open, turn) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
            while let Ok((mut caller, _)) = listener.accept().await {
                let (ready, turn) = (ready.clone(), turn.clone());
                open.spawn(async move {
                    for _ in 0..ready.len() {
                        let (port, is_ready) = &ready[turn.fetch_add(1, Ordering::Relaxed) % ready.len()];
                        if !is_ready.load(Ordering::Relaxed) {
                            continue;
                        }
                        if let Ok(mut server) = TcpStream::connect(("127.0.0.1", *port)).await {
                            let _ = tokio::io::copy_bidirectional(&mut caller, &mut server).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { address, _tasks: tasks }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Asks each server, all the time.
async fn ask(servers: Arc<Vec<(u16, AtomicBool)>>) {
    let client = client();
    loop {
        for (port, is_ready) in servers.iter() {
            let asked = client.get(format!("http://127.0.0.1:{port}/readyz")).timeout(SAID_WITHIN).send().await;
            is_ready.store(asked.is_ok_and(|said| said.status().is_success()), Ordering::Relaxed);
        }
        tokio::time::sleep(ASKED_EVERY).await;
    }
}
