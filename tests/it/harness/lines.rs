//! Connections that go through the test's own hands: lines that can be cut, and a proxy before several servers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

/// What happens to a connection.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    /// It ends when so many bytes have been sent over it.
    CutAfter(usize),
    /// What is sent behind so many bytes goes nowhere, and nothing is answered.
    StallAfter(usize),
    /// Its first request is answered with this status, and it ends.
    Refuse(u16),
}

/// A line to a server, with a fate for each of its first connections; later ones have none. It ends with this value.
#[derive(Debug)]
pub struct Line {
    address: SocketAddr,
    sent: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Line {
    pub async fn to(port: u16, fates: &[Fate]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sent, fates) = (Arc::new(AtomicUsize::new(0)), Mutex::new(VecDeque::from(fates.to_vec())));
        let (mut task, counted) = (JoinSet::new(), sent.clone());
        task.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((caller, _)) = listener.accept().await {
                let fate = fates.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let counted = counted.clone();
                open.spawn(async move {
                    // Whatever ends it, both sides see it end.
                    let _ = pass(caller, port, fate, &counted).await;
                });
            }
        });
        Self { address, sent, _task: task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many bytes have reached the server by it.
    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }
}

async fn pass(mut caller: TcpStream, port: u16, fate: Option<Fate>, sent: &AtomicUsize) -> std::io::Result<()> {
    let mut chunk = vec![0; 64 << 10];
    if let Some(Fate::Refuse(status)) = fate {
        let _ = caller.read(&mut chunk).await?;
        let answer = format!("HTTP/1.1 {status} Of a proxy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        caller.write_all(answer.as_bytes()).await?;
        // What is still being sent is read: closing before would take the answer back.
        while caller.read(&mut chunk).await? > 0 {}
        return Ok(());
    }
    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
    let ((mut from_caller, mut to_caller), (mut from_server, mut to_server)) = (caller.split(), server.split());
    let up = async {
        let mut passed = 0;
        loop {
            let read = from_caller.read(&mut chunk).await?;
            let most = match fate {
                Some(Fate::CutAfter(most) | Fate::StallAfter(most)) => most,
                _ => usize::MAX,
            };
            let passes = read.min(most - passed);
            to_server.write_all(&chunk[..passes]).await?;
            passed += passes;
            sent.fetch_add(passes, Ordering::SeqCst);
            if read == 0 || (passed == most && matches!(fate, Some(Fate::CutAfter(_)))) {
                return std::io::Result::Ok(());
            }
        }
    };
    tokio::select! {
        ended = up => ended,
        ended = tokio::io::copy(&mut from_server, &mut to_caller) => ended.map(drop),
    }
}
