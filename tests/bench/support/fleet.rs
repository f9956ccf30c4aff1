//! Many clients of one service or of several over the same stores, and how much they get done.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mediakeep::config::settings::S3;
use mediakeep_storage::testing::Buckets;

use super::client::Connection;
use super::host::Host;
use super::{noise, seconds};

/// So many at a time.
pub(crate) const CLIENTS: usize = 8;

/// What each upload sends.
const BYTES: usize = 4_096;

/// Assets that are read in turns.
const READ: usize = 200;

/// What is measured: uploads of [`BYTES`] into a run of each client's own, and reads by capability of [`READ`] assets in turns; a second.
pub(crate) const MEASURES: [&str; 2] = ["uploads of 4 KiB", "GETs of 4 KiB by capability"];

/// What these hosts together get done.
pub(crate) fn measure(hosts: &[&Host]) -> [f64; 2] {
    static SEED: AtomicUsize = AtomicUsize::new(0);
    let fresh = || noise(SEED.fetch_add(1, Ordering::Relaxed) as u64, BYTES);
    let mut first = hosts[0].connect();
    let paths: Vec<String> = (0..READ)
        .map(|_| first.post("/v1/runs/read/assets", "application/octet-stream", &fresh()).capability())
        .collect();
    let uploads = rate(hosts, |connection, client, _| {
        let sent = connection.post(&format!("/v1/runs/run-{client}/assets"), "application/octet-stream", &fresh());
        assert_eq!(sent.status, 201, "{}", String::from_utf8_lossy(&sent.body));
    });
    let reads = rate(hosts, |connection, client, round| {
        let read = connection.get(&paths[(client * 31 + round) % paths.len()]);
        assert_eq!((read.status, read.body.len()), (200, BYTES));
    });
    [uploads, reads]
}

/// How often a second all clients together get it done; they are spread over the hosts.
fn rate(hosts: &[&Host], act: impl Fn(&mut Connection, usize, usize) + Sync) -> f64 {
    let (began, length, done) = (Instant::now(), Duration::from_secs(seconds() as u64), AtomicUsize::new(0));
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (act, done, mut connection) = (&act, &done, hosts[client % hosts.len()].connect());
            scope.spawn(move || {
                let mut round = 0;
                while began.elapsed() < length {
                    act(&mut connection, client, round);
                    round += 1;
                }
                done.fetch_add(round, Ordering::Relaxed);
            });
        }
    });
    done.into_inner() as f64 / began.elapsed().as_secs_f64()
}

/// A host over that database, with its bytes in files, or in a bucket that others may share.
pub(crate) fn host_on(folder: &Path, database: &str, bucket: Option<&Buckets>) -> Host {
    Host::start_with(folder, None, |settings| {
        settings.index.url = database.into();
        if let Some(bucket) = bucket {
            settings.store.url = "s3://blobs".into();
            settings.store.s3 =
                S3 { endpoint: bucket.endpoint(), region: "us-east-1".into(), allow_http: Some(true), ..S3::default() };
        }
    })
}
