//! What a server uses: time of a processor, and memory that is its own.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// What the kernel tells programs, whatever its own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

/// Between two looks at a process's memory.
const LOOK: Duration = Duration::from_millis(20);

/// Seconds of a processor that these processes have used so far, in user and kernel mode.
pub(crate) fn cpu_seconds(processes: &[u32]) -> f64 {
    let ticks: u64 = processes.iter().map(|id| ticks(*id)).sum();
    ticks as f64 / TICKS_PER_SECOND
}

/// utime and stime of /proc/PID/stat: the 14th and the 15th member, where the second may hold blanks in its brackets.
fn ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("the server runs");
    let (_, members) = stat.rsplit_once(')').expect("a name in brackets");
    members.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// How much memory is the process's own: neither files nor what it shares.
pub(crate) fn anonymous_bytes(process: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Watches a process's memory from a thread of its own.
pub(crate) struct Peak {
    done: Arc<AtomicBool>,
    watcher: JoinHandle<u64>,
}

impl Peak {
    pub(crate) fn watch(process: u32) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let until = done.clone();
        let watcher = spawn(move || {
            let mut peak = anonymous_bytes(process);
            while !until.load(Ordering::Relaxed) {
                sleep(LOOK);
                peak = peak.max(anonymous_bytes(process));
            }
            peak
        });
        Self { done, watcher }
    }

    /// The most that was seen.
    pub(crate) fn stop(self) -> u64 {
        self.done.store(true, Ordering::Relaxed);
        self.watcher.join().expect("the watcher only reads a file")
    }
}
