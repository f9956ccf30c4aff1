//! Bytes in: what an upload costs beside the tools that only write and only hash, and how much memory uploads take.
//!
//! `cargo bench --bench ingest -- raw` measures one part alone; the others are `inline`, `memory` and `small`.

#![expect(clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use data_encoding::BASE64;
use mediakeep::http::upload::base64::Decoder;
use support::client::Connection;
use support::host::Host;
use support::usage::{Peak, anonymous_bytes, cpu_seconds};
use support::{GIB, KIB, MIB, median, noise, rounds, seconds, wanted};

#[expect(dead_code, reason = "each benchmark uses its part")]
mod support;

const PATH: &str = "/v1/assets";
const RAW: &str = "application/octet-stream";

fn main() {
    support::need(&["dd", "openssl", "strace"]);
    let parts: [(&str, fn()); 4] = [("raw", raw), ("inline", inline), ("memory", memory), ("small", small)];
    for (_, measure) in parts.iter().filter(|(name, _)| wanted(name)) {
        measure();
    }
}

/// 1 GiB, hashed and durable: through the service, and by `dd conv=fsync` followed by `openssl dgst`.
fn raw() {
    let folder = support::folder();
    let host = Host::start(folder.path(), None);
    let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
    let mut file = File::create(&source).expect("a file");
    write(&mut file, 0, GIB).and_then(|()| file.sync_all()).expect("a source is written");
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for round in 0..=rounds() {
        let tools = timed(|| dd_and_openssl(&source, &copy));
        let service = timed(|| {
            let bytes = |socket: &mut _| write(socket, round as u64 + 1, GIB);
            assert_eq!(host.connect().post_pieces(PATH, RAW, GIB, bytes).status, 201);
        });
        // The first round warms up and does not count.
        if round > 0 {
            theirs.push(tools);
            ours.push(service);
        }
    }
    let (theirs, ours) = (median(theirs), median(ours));
    println!(
        "1 GiB raw, durable and hashed: dd and openssl {:.0} MiB/s, mediakeep {:.0} MiB/s, ratio **{:.2}**",
        1024.0 / theirs,
        1024.0 / ours,
        theirs / ours
    );
}

fn dd_and_openssl(source: &Path, copy: &Path) {
    let (from, to) = (format!("if={}", source.display()), format!("of={}", copy.display()));
    run(Command::new("dd").args([&from, &to, "bs=1M", "conv=fsync"]));
    run(Command::new("openssl").args(["dgst", "-sha256"]).arg(copy));
    fs::remove_file(copy).expect("the copy is there");
}

/// Images of 256 KiB as base64 in JSON: how many, and how much of the work is decoding.
fn inline() {
    let folder = support::folder();
    let host = Host::start(folder.path(), None);
    let mut first = 0;
    for clients in [1, 8] {
        let before = cpu_seconds(&host.process().all());
        let end = Instant::now() + Duration::from_secs(seconds() as u64);
        let (done, took) = many(&host, clients, &|_| Instant::now() > end, |connection, n| {
            let image = BASE64.encode(&noise(first + n, 256 * KIB as usize));
            let body = format!(r#"{{"mimeType":"{RAW}","base64":"{image}"}}"#);
            assert_eq!(connection.post(PATH, "application/json", body.as_bytes()).status, 201);
        });
        first += done;
        let cpu = (cpu_seconds(&host.process().all()) - before) / done as f64;
        println!(
            "256 KiB as base64 in JSON, {clients} at a time: {:.0} a second, CPU {:.2} ms each, of which decoding **{:.0} %**",
            done as f64 / took,
            cpu * 1e3,
            decoding() / cpu * 100.0
        );
    }
}

/// The seconds that decoding alone takes for one image, in pieces such as a body comes in.
fn decoding() -> f64 {
    const PIECE: usize = 16 * 1024;
    let text = BASE64.encode(&noise(1, 256 * KIB as usize));
    let once = || {
        let mut decoder = Decoder::new();
        for piece in text.as_bytes().chunks(PIECE) {
            let mut out = BytesMut::new();
            decoder.push(piece, &mut out).expect("it is base64");
            std::hint::black_box(out);
        }
    };
    median((0..200).map(|_| timed(once)).collect())
}

/// How far the service's own memory grows under one large upload, and under many at a time.
fn memory() {
    let folder = support::folder();
    let host = Host::start(folder.path(), None);
    // What is allocated once is there before it is looked at.
    assert_eq!(host.connect().post(PATH, RAW, &noise(0, 1000)).status, 201);
    for (what, uploads, bytes) in [("one upload of 1 GiB", 1, GIB), ("32 uploads of 100 MiB", 32, 100 * MIB)] {
        let before = anonymous_bytes(host.process().id());
        let peak = Peak::watch(host.process().id());
        many(&host, uploads, &|n| n >= uploads, |connection, n| {
            let answer = connection.post_pieces(PATH, RAW, bytes, |socket| write(socket, bytes + n, bytes));
            assert_eq!(answer.status, 201);
        });
        let grown = peak.stop().saturating_sub(before);
        println!("{what} at a time: the service's own memory grows by **{} MiB** at the most", grown / MIB);
    }
}

/// Many small ones from many clients, end to end, and the system calls behind them.
fn small() {
    const CLIENTS: u64 = 16;
    const COUNT: u64 = 10_000;
    const TRACED: u64 = 500;
    let folder = support::folder();
    let host = Host::start(folder.path(), None);
    let send = |connection: &mut Connection, n| {
        assert_eq!(connection.post(PATH, RAW, &noise(n, 4 * KIB as usize)).status, 201);
    };
    let before = cpu_seconds(&host.process().all());
    let (_, took) = many(&host, CLIENTS, &|n| n >= COUNT, send);
    let cpu = (cpu_seconds(&host.process().all()) - before) / COUNT as f64;
    println!(
        "{COUNT} assets of 4 KiB from {CLIENTS} clients: **{:.0}** a second, CPU {:.2} ms each",
        COUNT as f64 / took,
        cpu * 1e3
    );
    let calls = traced(&host, || {
        many(&host, CLIENTS, &|n| n >= TRACED, |connection, n| send(connection, COUNT + n));
    });
    println!("System calls of {TRACED} more:\n{calls}");
}

/// What the service asks of the kernel meanwhile, and how long it waits for it.
fn traced(host: &Host, meanwhile: impl FnOnce()) -> String {
    let strace = Command::new("strace")
        .args(["-f", "-c", "-w", "-e", "trace=%file,fsync,fdatasync,sync_file_range,write,pwrite64"])
        .args(["-p", &host.process().id().to_string()])
        .stderr(Stdio::piped())
        .spawn()
        .expect("strace starts");
    // It attaches to each of the threads.
    thread::sleep(Duration::from_secs(1));
    meanwhile();
    run(Command::new("kill").args(["-INT", &strace.id().to_string()]));
    let output = strace.wait_with_output().expect("strace ends");
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().filter(|line| !line.starts_with("strace:")).map(|line| format!("    {line}\n")).collect()
}

/// Has so many clients send, each over a connection that is kept, what comes next, until that is the end. Says how many and how long.
fn many(
    host: &Host,
    clients: u64,
    is_end: &(dyn Fn(u64) -> bool + Sync),
    send: impl Fn(&mut Connection, u64) + Sync,
) -> (u64, f64) {
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let took = timed(|| {
        thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    let mut connection = host.connect();
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if is_end(n) {
                            break;
                        }
                        send(&mut connection, n);
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
    });
    (done.into_inner(), took)
}

/// Writes so many bytes, a whole number of MiB: other ones for each seed.
fn write(out: &mut impl Write, seed: u64, bytes: u64) -> io::Result<()> {
    let block = noise(seed, MIB as usize);
    (0..bytes / MIB).try_for_each(|_| out.write_all(&block))
}

fn timed(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

fn run(tool: &mut Command) {
    let done = tool.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(done.is_ok_and(|status| status.success()), "{tool:?} does its work");
}
