//! The load: wrk with one thread, on the core that does not serve.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::host::on_core;
use crate::support::{LOAD_CORE, seconds};

const CONNECTIONS: &str = "8";

/// A machine that others use too is slow at times; that is no failure.
const TIMEOUT: &str = "60s";

/// Prints what is counted, in numbers that need no reading of units.
const DONE: &str = r#"
done = function(summary)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    print(string.format("done %d %d %d %d", summary.requests, summary.duration, failed, summary.bytes))
end
"#;

/// Pieces at random places, made before the load begins.
const RANGES: &str = r#"
init = function(arguments)
    local bytes, length = tonumber(arguments[1]), tonumber(arguments[2])
    math.randomseed(1)
    requests, at = {}, 0
    for n = 1, 4096 do
        local first = math.floor(math.random() * (bytes - length))
        wrk.headers["Range"] = string.format("bytes=%d-%d", first, first + length - 1)
        requests[n] = wrk.format()
    end
end

request = function()
    at = at % 4096 + 1
    return requests[at]
end
"#;

/// What came back.
pub(crate) struct Done {
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    pub(crate) errors: u64,
    /// Of bodies and heads.
    pub(crate) bytes: u64,
}

/// The scripts, in a folder.
pub(crate) struct Wrk {
    whole: PathBuf,
    ranges: PathBuf,
}

impl Wrk {
    pub(crate) fn new(folder: &Path) -> Self {
        let (whole, ranges) = (folder.join("whole.lua"), folder.join("ranges.lua"));
        fs::write(&whole, DONE).expect("a file is written");
        fs::write(&ranges, format!("{RANGES}{DONE}")).expect("a file is written");
        Self { whole, ranges }
    }

    /// Asks for all of it, again and again.
    pub(crate) fn whole(&self, url: &str) -> Done {
        run(&self.whole, url, &[])
    }

    /// Asks for pieces of `length` bytes at random places.
    pub(crate) fn ranges(&self, url: &str, bytes: u64, length: u64) -> Done {
        run(&self.ranges, url, &["--".to_owned(), bytes.to_string(), length.to_string()])
    }
}

fn run(script: &Path, url: &str, arguments: &[String]) -> Done {
    let mut wrk = on_core(Some(LOAD_CORE), "wrk");
    wrk.args(["-t1", "-c", CONNECTIONS, "--timeout", TIMEOUT, &format!("-d{}s", seconds()), "-s"])
        .arg(script)
        .arg(url)
        .args(arguments);
    let output = wrk.output().expect("wrk runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("done "));
    let numbers: Vec<u64> = line.unwrap_or_default().split(' ').filter_map(|number| number.parse().ok()).collect();
    let [requests, micros, errors, bytes] = numbers[..] else {
        unreachable!("wrk prints what it has done, and printed {text:?}");
    };
    Done { requests, seconds: micros as f64 / 1e6, errors, bytes }
}
