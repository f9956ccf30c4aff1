//! A soak: many clients of the real service send, quote, fork, end and erase few kinds of bytes for minutes, beside a sweep every second
//! without any grace; and the report counts what was lost, which has to be nothing.

#![expect(clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use mediakeep::config::units::Span;
use support::client::{Answer, Connection};
use support::host::{Host, free_address};
use support::{noise, number};

#[expect(dead_code, reason = "each benchmark uses its part")]
mod support;

const CLIENTS: usize = 8;

/// Kinds of bytes between all clients.
const KINDS: [usize; 6] = [900, 901, 902, 20_000, 20_001, 300_000];

/// What the soak has seen.
#[derive(Default)]
struct Tally {
    events: Mutex<BTreeMap<&'static str, u64>>,
    /// Paths that an open run keeps, each with the kind of its bytes.
    kept: Mutex<Vec<(String, usize)>>,
    losses: Mutex<Vec<String>>,
}

fn main() {
    let minutes = number("MEDIAKEEP_SOAK_MINUTES", 10);
    let folder = support::folder();
    let admin = free_address();
    let host = Host::start_with(folder.path(), None, |settings| {
        settings.server.admin_listen = admin.to_string();
        let retention = &mut settings.retention;
        for term in [
            &mut retention.unreferenced,
            &mut retention.grace,
            &mut retention.orphan_grace,
            &mut retention.tombstone_bytes,
            &mut retention.tombstone_record,
        ] {
            *term = Span::seconds(0);
        }
        retention.unreferenced = Span::seconds(1);
        retention.sweep_interval = Span::seconds(1);
    });
    let load = support::load();
    let (tally, end) = (Tally::default(), Instant::now() + Duration::from_secs(60 * minutes as u64));
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (tally, host) = (&tally, &host);
            scope.spawn(move || soak(&mut host.connect(), client, tally, end));
        }
    });

    let kept = tally.kept.lock().expect("no panic").clone();
    let mut connection = host.connect();
    for (path, kind) in &kept {
        look(&mut connection, path, *kind, &tally);
    }
    let metrics = String::from_utf8(Connection::open(admin, "").get("/metrics").body).expect("text");
    drop(host);
    let swept = [command(folder.path(), &["sweep"]), command(folder.path(), &["sweep"])];
    let verified = command(folder.path(), &["verify", "--deep"]);
    let losses = tally.losses.into_inner().expect("no panic");
    println!(
        "{minutes} minutes, {CLIENTS} clients, {} kinds of bytes, load {load} before and {} after\n",
        KINDS.len(),
        support::load()
    );
    println!("| | |\n| --- | --- |");
    for (event, count) in tally.events.into_inner().expect("no panic") {
        println!("| {event} | {count} |");
    }
    for (name, metric) in [
        ("sweeps", "mediakeep_sweeps_total"),
        ("assets that ended by the sweep or a delete", "mediakeep_assets_expired_total"),
        ("blobs whose bytes were removed by the sweep", "mediakeep_blobs_removed_total"),
    ] {
        println!("| {name} | {} |", value(&metrics, metric));
    }
    println!("| kept and read at the end | {} |", kept.len());
    println!("| **losses** | **{}** |", losses.len());
    println!("\nafter two more sweeps: {}", verified.1.trim());
    for loss in &losses {
        println!("lost: {loss}");
    }
    assert!(losses.is_empty() && swept.iter().all(|(ok, _)| *ok), "{swept:?}");
    assert!(verified.0 && verified.1.contains(", 0 without a row"), "{verified:?}");
}

fn soak(connection: &mut Connection, client: usize, tally: &Tally, end: Instant) {
    let mut round = client;
    while Instant::now() < end {
        let kind = (client + round / 3) % KINDS.len();
        let run = format!("run-{client}-{round}");
        let event = act(connection, round % 7, kind, &run, tally);
        *tally.events.lock().expect("no panic").entry(event).or_default() += 1;
        let some = {
            let kept = tally.kept.lock().expect("no panic");
            kept.get(round * 7919 % kept.len().max(1)).cloned()
        };
        if let Some((path, kind)) = some {
            look(connection, &path, kind, tally);
            *tally.events.lock().expect("no panic").entry("reads of what is kept").or_default() += 1;
        }
        round += 1;
    }
}

/// Sends bytes of a kind, and does something with them.
fn act(connection: &mut Connection, deed: usize, kind: usize, run: &str, tally: &Tally) -> &'static str {
    let into = |run: &str| format!("/v1/runs/{run}/assets");
    let mut send = |path: &str| {
        let sent = connection.post(path, "application/octet-stream", &noise(kind as u64, KINDS[kind]));
        assert_eq!(sent.status, 201, "{}", String::from_utf8_lossy(&sent.body));
        sent
    };
    match deed {
        0 => {
            let sent = send(&into("stays"));
            tally.kept.lock().expect("no panic").push((sent.capability(), kind));
            "uploads that are kept"
        }
        1 => {
            send(&into(run));
            expect(connection.ask("PUT", &run_path(run), r#"{"logRetentionSeconds":1,"status":"closed"}"#), &[200]);
            "runs that end after a second"
        }
        2 => {
            let id = id(&send(&into(run)));
            expect(connection.ask("DELETE", &format!("/v1/assets/{id}?erase=true"), ""), &[200]);
            "erasures of assets"
        }
        3 => {
            send(&into(run));
            expect(connection.ask("POST", &format!("/v1/runs/{run}/erase"), "{}"), &[200]);
            "erasures of runs"
        }
        4 => {
            let id = id(&send("/v1/assets"));
            // Nothing keeps it: a sweep may have been faster.
            expect(connection.ask("DELETE", &format!("/v1/assets/{id}"), ""), &[204, 404]);
            "deletes"
        }
        5 => {
            // Its parent ends, and the fork keeps what it took up.
            let sent = send(&into(run));
            let child = format!("fork-{run}");
            expect(connection.ask("PUT", &run_path(&child), &format!(r#"{{"forkOf":"{run}"}}"#)), &[200]);
            expect(connection.ask("PUT", &run_path(run), r#"{"logRetentionSeconds":1,"status":"closed"}"#), &[200]);
            tally.kept.lock().expect("no panic").push((sent.capability(), kind));
            "forks whose parents end"
        }
        _ => {
            send("/v1/assets");
            "uploads that nothing keeps"
        }
    }
}

fn look(connection: &mut Connection, path: &str, kind: usize, tally: &Tally) {
    let answer = connection.get(path);
    if answer.status != 200 || answer.body != noise(kind as u64, KINDS[kind]) {
        tally.losses.lock().expect("no panic").push(format!(
            "{path}: {} and {} bytes",
            answer.status,
            answer.body.len()
        ));
    }
}

fn run_path(run: &str) -> String {
    format!("/v1/runs/{run}")
}

fn id(sent: &Answer) -> String {
    sent.json()["asset"]["assetId"].as_str().expect("an id").to_owned()
}

#[expect(clippy::needless_pass_by_value, reason = "an answer is looked at once")]
fn expect(answer: Answer, statuses: &[u16]) {
    assert!(statuses.contains(&answer.status), "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
}

/// A counter's value in the metrics' text.
fn value<'a>(metrics: &'a str, name: &str) -> &'a str {
    let line = metrics.lines().find(|line| line.split(['{', ' ']).next() == Some(name));
    line.and_then(|line| line.rsplit(' ').next()).unwrap_or("none")
}

/// Runs a command on the stores that are left; says whether it succeeded, and what it said.
fn command(folder: &std::path::Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mediakeep"));
    command.arg("--config").arg(folder.join("mediakeep.toml")).args(arguments);
    let output = command.output().expect("the program runs");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}
