//! Connections that go through the test's own hands: a line that can be cut, and a proxy before several servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use url::Url;

use super::process::client;

/// The address of a database through a line that ends, connections and all, when its task is aborted.
pub async fn through_a_line(address: &str) -> (String, JoinHandle<()>) {
    let mut address = Url::parse(address).expect("a URL");
    let database = (address.host_str().expect("a host").to_owned(), address.port().unwrap_or(5432));
    let here = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    address.set_host(Some("127.0.0.1")).expect("it has a host");
    address.set_port(Some(here.local_addr().expect("an address").port())).expect("it has a port");
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
    (address.into(), line)
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
