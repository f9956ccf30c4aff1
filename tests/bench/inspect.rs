//! Looking at bytes: how often the answer is right, beside `file` and plain `infer`, and what an answer costs.
//!
//! `MEDIAKEEP_CORPUS` names a folder whose `dev/manifest.json` has the right answers and whose `hostile/files` are out to hurt; files of 5 MiB
//! that are nothing but a format's smallest pieces are made here (`tiny`). Ends with an error where one file of at most 5 MiB takes more than
//! `MOST_CPU` or `MOST_MEMORY`.

#![expect(clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use mediakeep::media::{Declared, identify, second_opinion};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use support::tiny::{self, Tiny};

#[expect(dead_code, reason = "each benchmark uses its part")]
mod support;

/// What one file may cost. Larger ones are measured, and not judged.
const JUDGED: u64 = 5 << 20;
const MOST_CPU: Duration = Duration::from_millis(50);
const MOST_MEMORY: u64 = 32 << 20;

/// The least of so many runs counts: what a machine does meanwhile only adds.
const RUNS: usize = 3;

/// So many of the dearest are named.
const SHOWN: usize = 8;

fn main() -> ExitCode {
    let folder = tempfile::tempdir().expect("a folder");
    let mut paths: Vec<PathBuf> = tiny::files().iter().map(|file| write(file, folder.path())).collect();
    match std::env::var_os("MEDIAKEEP_CORPUS").map(PathBuf::from) {
        Some(corpus) => {
            accuracy(&corpus.join("dev"));
            paths.extend(["dev/files", "hostile/files"].iter().flat_map(|folder| files(&corpus.join(folder))));
        }
        None => println!("MEDIAKEEP_CORPUS names no folder of media: only what is made here is looked at"),
    }
    // What one file takes is no more than what all of them took at any time (proc(5): the high-water mark).
    let before = memory("VmRSS:");
    let costs: Vec<Cost> = paths.into_iter().map(Cost::of).collect();
    report(costs, memory("VmHWM:").saturating_sub(before))
}

fn write(file: &Tiny, folder: &Path) -> PathBuf {
    let path = folder.join(file.name);
    file.write(&path).expect("a file is written");
    path
}

/// One row per kind: how many of the types each tool has right, under whatever name.
fn accuracy(set: &Path) {
    let manifest = fs::read(set.join("manifest.json")).expect("a manifest");
    let entries: Vec<Value> = serde_json::from_slice(&manifest).expect("JSON");
    let tools: [(&str, Tool); 3] = [("mediakeep", by_us), ("file --mime-type", by_file), ("infer", by_infer)];
    let mut table: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    let mut spent = [Duration::ZERO; 3];
    for entry in &entries {
        let path = set.join(entry["file"].as_str().expect("a name"));
        let right = right(entry);
        for kind in [entry["expected"]["kind"].as_str().unwrap_or("other"), "~ all"] {
            table.entry(kind.to_owned()).or_default()[3] += 1;
        }
        for (column, (_, tool)) in tools.iter().enumerate() {
            let start = Instant::now();
            let answer = tool(&path);
            spent[column] += start.elapsed();
            let hit = right.contains(&canonical(&answer));
            for kind in [entry["expected"]["kind"].as_str().unwrap_or("other"), "~ all"] {
                table.entry(kind.to_owned()).or_default()[column] += usize::from(hit);
            }
        }
    }
    println!("| kind | files | {} | {} | {} |\n| --- | --- | --- | --- | --- |", tools[0].0, tools[1].0, tools[2].0);
    for (kind, [ours, file, infer, all]) in &table {
        let share = |hits: &usize| format!("{:.1} %", 100.0 * *hits as f64 / *all as f64);
        println!(
            "| {} | {all} | {} | {} | {} |",
            kind.trim_start_matches("~ "),
            share(ours),
            share(file),
            share(infer)
        );
    }
    let each = |time: Duration| format!("{} µs", time.as_micros() / entries.len().max(1) as u128);
    println!("| time per file | | {} | {} (a process each) | {} |\n", each(spent[0]), each(spent[1]), each(spent[2]));
}

type Tool = fn(&Path) -> String;

fn by_us(path: &Path) -> String {
    let mut file = File::open(path).expect("a file");
    let size = file.metadata().expect("a size").len();
    identify(&mut file, size, None).mime_type
}

fn by_file(path: &Path) -> String {
    let answer =
        Command::new("file").args(["--brief", "--mime-type", "--"]).arg(path).output().expect("`file` is there");
    String::from_utf8_lossy(&answer.stdout).trim().to_owned()
}

fn by_infer(path: &Path) -> String {
    infer::get_from_path(path).ok().flatten().map_or(String::new(), |kind| kind.mime_type().to_owned())
}

/// All names that are right, in our spelling.
fn right(entry: &Value) -> Vec<String> {
    let also = entry["alsoAccept"].as_array().into_iter().flatten();
    also.chain([&entry["expected"]["mimeType"]]).filter_map(Value::as_str).map(canonical).collect()
}

fn canonical(name: &str) -> String {
    Declared::parse(name).ok().flatten().map_or(String::new(), |declared| declared.as_str().to_owned())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| unreachable!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a file").path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// What looking at one file took, libraries included.
struct Cost {
    path: PathBuf,
    size: u64,
    cpu: Duration,
}

impl Cost {
    fn of(path: PathBuf) -> Self {
        let size = fs::metadata(&path).expect("a size").len();
        let mut cost = Self { path, size, cpu: Duration::MAX };
        for _ in 0..RUNS {
            let mut file = File::open(&cost.path).expect("a file");
            let start = on_cpu();
            let found = identify(&mut file, size, None);
            if found.wants_second_opinion(size) {
                second_opinion(&mut file, size, found);
            }
            cost.cpu = cost.cpu.min(on_cpu().saturating_sub(start));
        }
        cost
    }
}

/// This thread's time on a processor.
fn on_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.try_into().unwrap_or(0))
}

/// A line of this process's memory, in bytes.
fn memory(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
}

fn report(mut costs: Vec<Cost>, memory: u64) -> ExitCode {
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.cpu));
    let total: Duration = costs.iter().map(|cost| cost.cpu).sum();
    let each = total.as_micros() / costs.len().max(1) as u128;
    println!(
        "{} files, {each} µs of a processor each, at most {:.1} MiB more memory; the dearest:",
        costs.len(),
        mib(memory)
    );
    println!("| file | bytes | CPU, ms |\n| --- | --- | --- |");
    for cost in costs.iter().take(SHOWN) {
        let name = cost.path.file_name().unwrap_or_default().to_string_lossy();
        println!("| {name} | {} | {:.2} |", cost.size, cost.cpu.as_secs_f64() * 1e3);
    }
    let over = costs.iter().filter(|cost| cost.size <= JUDGED && cost.cpu > MOST_CPU);
    let over: Vec<&Path> = over.map(|cost| cost.path.as_path()).collect();
    if over.is_empty() && memory <= MOST_MEMORY {
        return ExitCode::SUCCESS;
    }
    println!("beyond {MOST_CPU:?} or {:.0} MiB: {over:#?}", mib(MOST_MEMORY));
    ExitCode::FAILURE
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}
