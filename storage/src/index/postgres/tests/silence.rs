//! A database that is there and says nothing, and callers that go away.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// The database's address by way of a line that passes nothing on while it is held.
async fn by_a_line(url: &str) -> (String, Arc<AtomicBool>) {
    let mut address = Url::parse(url).expect("a URL");
    let database = (address.host_str().expect("a host").to_owned(), address.port().expect("a port"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    address.set_port(Some(listener.local_addr().expect("an address").port())).expect("it has a host");
    let held = Arc::new(AtomicBool::new(false));
    let hold = held.clone();
    tokio::spawn(async move {
        while let Ok((here, _)) = listener.accept().await {
            let there = TcpStream::connect(database.clone()).await.expect("the database listens");
            let ((from_here, to_here), (from_there, to_there)) = (here.into_split(), there.into_split());
            for (mut from, mut to) in [(from_here, to_there), (from_there, to_here)] {
                let hold = hold.clone();
                tokio::spawn(async move {
                    let mut bytes = [0; 4_096];
                    while let Ok(said @ 1..) = from.read(&mut bytes).await {
                        while hold.load(Ordering::SeqCst) {
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                        if to.write_all(&bytes[..said]).await.is_err() {
                            break;
                        }
                    }
                });
            }
        }
    });
    (address.into(), held)
}

/// One connection, so that a call without one shows.
async fn index_of_one_connection(address: &str) -> PostgresIndex {
    let options = PostgresOptions {
        max_connections: 1,
        acquire_timeout: Duration::from_secs(2),
        statement_timeout: Duration::from_secs(1),
        ..PostgresOptions::default()
    };
    PostgresIndex::open(address, options).await.expect("the database opens")
}

#[tokio::test]
async fn a_database_that_says_nothing_is_given_up_and_asked_again_on_a_new_connection() {
    let database = testing::database().await;
    let (address, held) = by_a_line(database.url()).await;
    let index = index_of_one_connection(&address).await;
    index.record(&tenant(), vec![event(0)]).await.expect("a record");

    held.store(true, Ordering::SeqCst);
    let read = index.find(&tenant(), AssetId::from_bytes([0; 16])).await;
    let begun = index.record(&tenant(), vec![event(1)]).await;
    held.store(false, Ordering::SeqCst);

    assert!(matches!(read, Err(StorageError::Unavailable { store: "index", .. })), "{read:?}");
    assert!(matches!(begun, Err(StorageError::Unavailable { store: "index", .. })), "{begun:?}");
    index.record(&tenant(), vec![event(2)]).await.expect("a record");
    assert_eq!(index.seal_audit(9).await.expect("a sealed log"), 2, "what was not answered did not happen");
    index.close().await;
}

#[tokio::test]
async fn callers_that_go_away_leave_the_queue_and_what_they_had_begun_is_undone() {
    let database = testing::database().await;
    let (address, held) = by_a_line(database.url()).await;
    let index = index_of_one_connection(&address).await;
    held.store(true, Ordering::SeqCst);
    for n in 0..20 {
        let given_up = tokio::time::timeout(Duration::from_millis(10), index.record(&tenant(), vec![event(n)])).await;
        assert!(given_up.is_err(), "nobody answers");
    }
    held.store(false, Ordering::SeqCst);

    index.record(&tenant(), vec![event(20)]).await.expect("a record");
    assert_eq!(index.seal_audit(99).await.expect("a sealed log"), 1);
    index.close().await;
}
