//! What the benchmarks share: the real service on a core of its own, a client that costs next to nothing, and figures side by side.
//!
//! A figure of one program says more of the machine than of the program. So whatever is measured runs in turns with what an operator
//! would have instead, on the same disk and cores, and what counts is the ratio of the medians.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio, exit};

use tempfile::TempDir;

pub(crate) mod client;
pub(crate) mod fleet;
pub(crate) mod host;
pub(crate) mod rows;
pub(crate) mod tiny;
pub(crate) mod usage;

/// What is measured runs here, and what loads it on the other: neither takes the other's time.
pub(crate) const SERVER_CORE: &str = "0";
/// See [`SERVER_CORE`].
pub(crate) const LOAD_CORE: &str = "1";

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// Ends the program with a sentence if one of these tools cannot be run.
pub(crate) fn need(tools: &[&str]) {
    for tool in tools {
        // Debian keeps nginx in a folder that not everybody's PATH has.
        if !on_path(tool) && !Path::new("/usr/sbin").join(tool).exists() {
            eprintln!("this benchmark needs {tool}, which is not installed; docs/BENCHMARKS.md says what else");
            exit(2);
        }
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("this benchmark needs two cores: one to serve, one to load");
        exit(2);
    }
}

fn on_path(tool: &str) -> bool {
    let found = Command::new("which").arg(tool).stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// A folder on the disk that is measured: `MEDIAKEEP_BENCH_DIR`, or the build's own.
pub(crate) fn folder() -> TempDir {
    let parent = env::var("MEDIAKEEP_BENCH_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
    TempDir::new_in(parent).expect("a folder to work in")
}

/// How often everything is measured; the median counts.
pub(crate) fn rounds() -> usize {
    number("MEDIAKEEP_BENCH_ROUNDS", 5)
}

/// How many seconds a load lasts.
pub(crate) fn seconds() -> usize {
    number("MEDIAKEEP_BENCH_SECONDS", 3)
}

/// How much else the machine has to do: processes that run or want to, over the last minute.
pub(crate) fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or("unknown").to_owned()
}

/// A whole number above 0 that a variable may set.
pub(crate) fn number(name: &str, default: usize) -> usize {
    match env::var(name) {
        Ok(raw) => raw.parse().ok().filter(|number| *number > 0).expect("a whole number above 0"),
        Err(_) => default,
    }
}

/// Whether a part with this name was asked for: `cargo bench --bench serve -- range`. Without words, all of them.
pub(crate) fn wanted(name: &str) -> bool {
    let mut words = env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    words.peek().is_none() || words.any(|word| name.contains(&word))
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Bytes that no compression and no deduplication takes away, the same for the same seed.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let mut noise: Vec<u8> = words.take(bytes.div_ceil(8)).flatten().collect();
    noise.truncate(bytes);
    noise
}
