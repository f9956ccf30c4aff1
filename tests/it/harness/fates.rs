//! A line to a server on which things go wrong.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

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
