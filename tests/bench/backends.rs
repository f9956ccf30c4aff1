//! The two indexes side by side, and one replica beside two. Parts: `index` (what 16 callers at a time publish and read of each), `service`
//! (what clients of the whole service get done on each, with the bytes in files), `replicas` (what they get done at one process, and at
//! two over the same database and bucket).
//!
//! The PostgreSQL server is one of its own on the same machine and disk, and waits for the disk as in production. It shares the two cores
//! with its callers, which the embedded index does too. The bucket is served by this process, at a price of many milliseconds for each
//! request: of that part only the ratio says something.

#![expect(clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use mediakeep_storage::index::postgres::{PostgresIndex, PostgresOptions};
use mediakeep_storage::index::sled::{SledIndex, SledOptions};
use mediakeep_storage::quota::Quota;
use mediakeep_storage::testing::{Buckets, DurableServer};
use mediakeep_storage::{AssetId, AssetIndex, TenantId};
use support::fleet::{self, host_on};
use support::host::Host;
use support::rows::{terms, upload};
use support::{median, rounds, seconds, wanted};
use tokio::runtime::Runtime;

#[expect(dead_code, reason = "each benchmark uses its part")]
mod support;

const CALLERS: usize = 16;

/// What is measured of each: uploads (two transitions) of one tenant, without a quota and under one, rows read, rows read with their
/// floor; a second.
const MEASURES: [&str; 4] = ["uploads", "uploads under a quota", "finds", "views"];

/// More than is ever reached.
const QUOTA: Quota = Quota { bytes: Some(1 << 60), assets: Some(1 << 60) };

fn main() {
    for (name, part) in [("index", index as fn()), ("service", service), ("replicas", replicas)] {
        if wanted(name) {
            println!("{name}, begun at a load of {}\n", support::load());
            part();
            println!("ended at a load of {}\n", support::load());
        }
    }
}

/// The service on each index.
fn service() {
    let (folder, other) = (support::folder(), support::folder());
    let server = DurableServer::start().expect("a server");
    let (sled, postgres) = (Host::start(folder.path(), None), host_on(other.path(), server.url(), None));
    compare("the service, a second", ["sled", "PostgreSQL"], [&[&sled], &[&postgres]]);
}

/// One process and two.
fn replicas() {
    let (folder, other) = (support::folder(), support::folder());
    let server = DurableServer::start().expect("a server");
    std::fs::create_dir_all(folder.path().join("blobs")).expect("a bucket");
    let bucket = Buckets::serve(folder.path());
    let one = host_on(folder.path(), server.url(), Some(&bucket));
    // The ring is one file for both, as it is for replicas; it is there once the first of them answers.
    assert_eq!(one.connect().get("/readyz").status, 200);
    std::fs::create_dir_all(other.path().join("keys")).expect("a folder");
    std::fs::copy(folder.path().join("keys/ring.json"), other.path().join("keys/ring.json")).expect("a ring");
    let two = host_on(other.path(), server.url(), Some(&bucket));
    compare("PostgreSQL and a bucket, a second", ["one replica", "two"], [&[&one], &[&one, &two]]);
}

/// Measures both in turns, and prints what they get done.
fn compare(what: &str, [first, second]: [&str; 2], hosts: [&[&Host]; 2]) {
    let mut measured: [[Vec<f64>; 2]; 2] = Default::default();
    for round in 0..=rounds() {
        for (hosts, figures) in hosts.iter().zip(&mut measured) {
            let found = fleet::measure(hosts);
            // The first round warms up and does not count.
            if round > 0 {
                figures.iter_mut().zip(found).for_each(|(figures, found)| figures.push(found));
            }
        }
    }
    println!("| {} clients of {what} | {first} | {second} | {second} against {first} |", fleet::CLIENTS);
    println!("| --- | --- | --- | --- |");
    let [one, other] = measured.map(|figures| figures.map(median));
    for (name, (one, other)) in fleet::MEASURES.iter().zip(one.iter().zip(&other)) {
        println!("| {name} | {one:.0} | {other:.0} | **{:.2}** |", other / one);
    }
    println!();
}

/// The indexes alone.
fn index() {
    let folder = support::folder();
    let runtime = Runtime::new().expect("a runtime");
    let server = DurableServer::start().expect("a server");
    let sled = SledIndex::open(&folder.path().join("index"), SledOptions::default()).expect("an index");
    let postgres = runtime.block_on(PostgresIndex::open(server.url(), PostgresOptions::default()));
    let postgres = Arc::new(postgres.expect("an index"));
    let subjects: [Arc<dyn AssetIndex>; 2] = [Arc::new(sled), postgres.clone()];

    let mut measured: [[Vec<f64>; 4]; 2] = Default::default();
    for round in 0..=rounds() {
        for (subject, figures) in subjects.iter().zip(&mut measured) {
            let found = measure(&runtime, subject);
            // The first round warms up and does not count.
            if round > 0 {
                figures.iter_mut().zip(found).for_each(|(figures, found)| figures.push(found));
            }
        }
    }
    println!("| {CALLERS} callers, a second | sled | PostgreSQL | PostgreSQL against sled |");
    println!("| --- | --- | --- | --- |");
    let [sled, other] = measured.map(|figures| figures.map(median));
    for (name, (sled, other)) in MEASURES.iter().zip(sled.iter().zip(&other)) {
        println!("| {name} | {sled:.0} | {other:.0} | **{:.2}** |", other / sled);
    }
    println!("\n{} transitions were done again on PostgreSQL\n", postgres.retries());
    runtime.block_on(postgres.close());
}

fn measure(runtime: &Runtime, index: &Arc<dyn AssetIndex>) -> [f64; 4] {
    let tenant = TenantId::parse("acme").expect("a tenant");
    let asset = runtime.block_on(upload(&**index, &tenant, Quota::NONE));
    let reads = |full: bool| {
        rate(runtime, index, move |index, tenant| async move {
            let found = match full {
                true => index.view(&tenant, asset, &terms()).await.expect("an answer").is_some(),
                false => index.find(&tenant, asset).await.expect("an answer").is_some(),
            };
            assert!(found);
        })
    };
    let uploads = |quota: Quota| {
        rate(runtime, index, move |index, tenant| async move {
            let _: AssetId = upload(&*index, &tenant, quota).await;
        })
    };
    [uploads(Quota::NONE), uploads(QUOTA), reads(false), reads(true)]
}

/// How often a second all callers together get it done.
fn rate<F>(runtime: &Runtime, index: &Arc<dyn AssetIndex>, act: impl Fn(Arc<dyn AssetIndex>, TenantId) -> F) -> f64
where
    F: Future<Output = ()> + Send + 'static,
{
    let act = Arc::new(act);
    let (began, length) = (Instant::now(), Duration::from_secs(seconds() as u64));
    let done: Vec<u32> = runtime.block_on(futures_util::future::join_all((0..CALLERS).map(|_| {
        let (act, index) = (act.clone(), index.clone());
        async move {
            let tenant = TenantId::parse("acme").expect("a tenant");
            let mut done = 0;
            while began.elapsed() < length {
                // Each call on the runtime's own threads, as the service's requests are.
                tokio::spawn(act(index.clone(), tenant.clone())).await.expect("a call ends");
                done += 1;
            }
            done
        }
    })));
    f64::from(done.into_iter().sum::<u32>()) / began.elapsed().as_secs_f64()
}
