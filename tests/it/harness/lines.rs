//! Connections that go through the test's own hands: a line that can be cut, and a proxy before several servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use url::Url;

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

/// A proxy that gives each connection to the next of the servers that takes it; it ends with this value.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Its address is known before the servers are, since they are told of it.
    pub async fn listen() -> (SocketAddr, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        (listener.local_addr().expect("an address"), listener)
    }

    /// Begins to pass connections on.
    pub fn pass_on((address, listener): (SocketAddr, TcpListener), ports: &[u16]) -> Self {
        let (ports, turn): (Arc<[u16]>, _) = (ports.into(), Arc::new(AtomicUsize::new(0)));
        let task = tokio::spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((mut caller, _)) = listener.accept().await {
                let (ports, turn) = (ports.clone(), turn.clone());
                open.spawn(async move {
                    for _ in 0..ports.len() {
                        let port = ports[turn.fetch_add(1, Ordering::Relaxed) % ports.len()];
                        if let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await {
                            let _ = tokio::io::copy_bidirectional(&mut caller, &mut server).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { address, task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}
