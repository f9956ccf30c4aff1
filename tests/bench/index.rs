//! The index: transitions a second from 16 writers, beside 16 threads that only append 300 bytes and `fdatasync`.
//!
//! An upload is two transitions, its announcement and its publication; each is durable before it is answered.

#![expect(clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mediakeep_storage::TenantId;
use mediakeep_storage::index::sled::{SledIndex, SledOptions};
use mediakeep_storage::quota::Quota;
use support::rows::upload;
use support::{median, rounds, seconds};

#[expect(dead_code, reason = "each benchmark uses its part")]
mod support;

const WRITERS: usize = 16;

/// About what a row of the index has.
const ROW: [u8; 300] = [b'x'; 300];

fn main() {
    let folder = support::folder();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let index = SledIndex::open(&folder.path().join("index"), SledOptions::default()).expect("an index");
    let index = Arc::new(index);
    let (mut transitions, mut own_files, mut shared_file) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds() {
        let measured = (publish(&runtime, &index), append(folder.path(), true), append(folder.path(), false));
        // The first round warms up and does not count.
        if round > 0 {
            transitions.push(measured.0);
            own_files.push(measured.1);
            shared_file.push(measured.2);
        }
    }
    let (transitions, own_files, shared_file) = (median(transitions), median(own_files), median(shared_file));
    println!("| {WRITERS} writers, durable | a second | index against it |");
    println!("| --- | --- | --- |");
    println!("| transitions of the index | {transitions:.0} | |");
    println!("| append and fdatasync, a file each | {own_files:.0} | **{:.2}** |", transitions / own_files);
    println!("| append and fdatasync, one file | {shared_file:.0} | **{:.2}** |", transitions / shared_file);
}

/// New assets from every writer; transitions a second.
fn publish(runtime: &tokio::runtime::Runtime, index: &Arc<SledIndex>) -> f64 {
    let (began, end) = beginning_and_end();
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let index = index.clone();
            runtime.spawn(async move {
                let tenant = TenantId::parse("acme").expect("a tenant");
                let mut transitions = 0;
                while Instant::now() < end {
                    upload(&*index, &tenant, Quota::NONE).await;
                    transitions += 2;
                }
                transitions
            })
        })
        .collect();
    let done: u32 = writers.into_iter().map(|writer| runtime.block_on(writer).expect("a writer ends")).sum();
    f64::from(done) / began.elapsed().as_secs_f64()
}

/// Rows appended by every writer, each synced; rows a second.
fn append(folder: &Path, a_file_each: bool) -> f64 {
    let (began, end) = beginning_and_end();
    let done: u32 = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let path = folder.join(format!("appended-{}", if a_file_each { writer } else { WRITERS }));
                scope.spawn(move || {
                    let mut file = File::options().create(true).append(true).open(path).expect("a file");
                    let mut rows = 0;
                    while Instant::now() < end {
                        file.write_all(&ROW).and_then(|()| file.sync_data()).expect("a row is written");
                        rows += 1;
                    }
                    rows
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("a writer ends")).sum()
    });
    f64::from(done) / began.elapsed().as_secs_f64()
}

fn beginning_and_end() -> (Instant, Instant) {
    let began = Instant::now();
    (began, began + Duration::from_secs(seconds() as u64))
}
