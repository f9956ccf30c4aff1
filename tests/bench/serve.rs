//! Bytes out: the service against nginx with `secure_link` and `sendfile`, which is what an operator would put up instead.
//!
//! Both serve the same files from the page cache, each with one worker on the same core, and take turns under the same load from the
//! other core. `cargo bench --bench serve -- ranges` measures one row alone.

#![expect(clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use nginx::Nginx;
use support::host::{Host, Process};
use support::usage::{Peak, cpu_seconds};
use support::{GIB, KIB, MIB, SERVER_CORE, median, noise, rounds, wanted};
use wrk::{Done, Wrk};

mod nginx;
#[expect(dead_code, reason = "each benchmark uses its part")]
mod support;
mod wrk;

/// A size, and how a reader asks for it.
struct Case {
    name: &'static str,
    bytes: u64,
    /// Random pieces of this size, rather than the whole.
    range: Option<u64>,
}

const CASES: [Case; 5] = [
    Case { name: "1 KiB", bytes: KIB, range: None },
    Case { name: "64 KiB", bytes: 64 * KIB, range: None },
    Case { name: "1 MiB", bytes: MIB, range: None },
    Case { name: "32 MiB", bytes: 32 * MIB, range: None },
    Case { name: "64 KiB ranges of 1 GiB", bytes: GIB, range: Some(64 * KIB) },
];

fn main() {
    support::need(&["nginx", "wrk", "openssl", "taskset"]);
    let folder = support::folder();
    let host = Host::start(folder.path(), Some(SERVER_CORE));
    let nginx = Nginx::start(folder.path(), host.blobs(), SERVER_CORE);
    let wrk = Wrk::new(folder.path());

    println!(
        "| GET | requests/s, nginx | mediakeep | ratio | CPU µs a request, nginx | mediakeep | ratio | anonymous MiB |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for case in CASES.iter().filter(|case| wanted(case.name)) {
        let path = upload(&host, case);
        let ours = Contestant { process: host.process(), url: host.url(&path) };
        let file = host.blob_of_size(case.bytes);
        let theirs = Contestant { process: nginx.process(), url: nginx.url(&file, case.range.is_some()) };
        compare(case, &wrk, &ours, &theirs);
    }
}

fn upload(host: &Host, case: &Case) -> String {
    use std::io::Write;
    let block = noise(case.bytes, case.bytes.min(MIB) as usize);
    let blocks = case.bytes / block.len() as u64;
    let answer = host.connect().post_pieces("/v1/assets", "application/octet-stream", case.bytes, |socket| {
        (0..blocks).try_for_each(|_| socket.write_all(&block))
    });
    answer.capability()
}

/// A server, and where it has the bytes.
struct Contestant<'p> {
    process: &'p Process,
    url: String,
}

/// What one turn showed.
struct Turn {
    rate: f64,
    cpu_micros: f64,
}

fn compare(case: &Case, wrk: &Wrk, ours: &Contestant<'_>, theirs: &Contestant<'_>) {
    let (mut our_turns, mut their_turns) = (Vec::new(), Vec::new());
    let peak = Peak::watch(ours.process.id());
    // The first turn of each warms up and does not count.
    for round in 0..=rounds() {
        let (theirs, ours) = (turn(case, wrk, theirs), turn(case, wrk, ours));
        if round > 0 {
            their_turns.push(theirs);
            our_turns.push(ours);
        }
    }
    let anonymous = peak.stop() as f64 / MIB as f64;
    let middle = |turns: &[Turn], what: fn(&Turn) -> f64| median(turns.iter().map(what).collect());
    let rates = (middle(&their_turns, |turn| turn.rate), middle(&our_turns, |turn| turn.rate));
    let cpus = (middle(&their_turns, |turn| turn.cpu_micros), middle(&our_turns, |turn| turn.cpu_micros));
    println!(
        "| {} | {:.0} | {:.0} | **{:.2}** | {:.1} | {:.1} | **{:.2}** | {anonymous:.0} |",
        case.name,
        rates.0,
        rates.1,
        rates.1 / rates.0,
        cpus.0,
        cpus.1,
        cpus.1 / cpus.0,
    );
}

fn turn(case: &Case, wrk: &Wrk, contestant: &Contestant<'_>) -> Turn {
    let processes = contestant.process.all();
    let before = cpu_seconds(&processes);
    let Done { requests, seconds, errors, bytes } = match case.range {
        None => wrk.whole(&contestant.url),
        Some(range) => wrk.ranges(&contestant.url, case.bytes, range),
    };
    let cpu = cpu_seconds(&processes) - before;
    assert_eq!(errors, 0, "requests that failed, of {requests} for {}", case.name);
    assert!(bytes / requests >= case.range.unwrap_or(case.bytes), "every answer has its bytes");
    Turn { rate: requests as f64 / seconds, cpu_micros: cpu * 1e6 / requests as f64 }
}
