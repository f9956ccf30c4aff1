//! The service as it is run: the release binary, with its own settings file, on stores of its own.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use mediakeep::access::{Scope, hash_secret};
use mediakeep::config::Settings;
use mediakeep::config::settings::ApiKey;
use mediakeep::config::units::Span;
use mediakeep_storage::testing;
use rustix::process::{Pid, Signal, kill_process};

use super::client::Connection;

/// Known to the benchmarks alone.
const SECRET: &str = "secret-of-a-benchmark";
const CREDENTIAL: &str = "mk_bench_secret-of-a-benchmark";

/// A running service; it ends with the value.
pub(crate) struct Host {
    process: Process,
    address: SocketAddr,
    blobs: PathBuf,
}

impl Host {
    /// Starts it in this folder, on one core or wherever it likes.
    pub(crate) fn start(folder: &Path, core: Option<&str>) -> Self {
        Self::start_with(folder, core, |_| {})
    }

    /// The same with settings of the benchmark's own.
    pub(crate) fn start_with(folder: &Path, core: Option<&str>, change: impl FnOnce(&mut Settings)) -> Self {
        let address = free_address();
        let blobs = folder.join("blobs");
        let config = folder.join("mediakeep.toml");
        let mut settings = settings(folder, address);
        change(&mut settings);
        let settings = toml::to_string(&settings).expect("settings print");
        fs::write(&config, settings).expect("a file is written");
        let mut command = on_core(core, env!("CARGO_BIN_EXE_mediakeep"));
        // Nobody's but those of the benchmarks' own buckets.
        command.envs(testing::credentials()).arg("serve").arg("--config").arg(&config);
        let process = Process::start(command, address);
        Self { process, address, blobs }
    }

    pub(crate) fn connect(&self) -> Connection {
        connect(self.address)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// The file that holds a blob of this size; there has to be just one.
    pub(crate) fn blob_of_size(&self, bytes: u64) -> PathBuf {
        let mut found = files(&self.blobs.join("t"));
        found.retain(|path| fs::metadata(path).is_ok_and(|file| file.len() == bytes));
        assert_eq!(found.len(), 1, "blobs of {bytes} bytes");
        found.remove(0)
    }

    pub(crate) fn blobs(&self) -> &Path {
        &self.blobs
    }
}

/// A connection of somebody who may do everything.
pub(crate) fn connect(address: SocketAddr) -> Connection {
    Connection::open(address, CREDENTIAL)
}

/// A server's process. It is told to stop when the value is dropped, and waited for.
pub(crate) struct Process(Child);

impl Process {
    /// Starts it, and waits until it takes connections.
    pub(crate) fn start(mut command: Command, address: SocketAddr) -> Self {
        let process = Self(command.stdout(Stdio::null()).spawn().expect("the server starts"));
        for _ in 0..200 {
            if TcpStream::connect(address).is_ok() {
                return process;
            }
            sleep(Duration::from_millis(50));
        }
        drop(process);
        unreachable!("a server takes connections within ten seconds, or says on stderr why it does not");
    }

    /// It and its children.
    pub(crate) fn all(&self) -> Vec<u32> {
        let id = self.0.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        std::iter::once(id).chain(children.split_whitespace().filter_map(|child| child.parse().ok())).collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let id = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            let _ = kill_process(id, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// A command that stays on one core, if one is named.
pub(crate) fn on_core(core: Option<&str>, program: &str) -> Command {
    let Some(core) = core else {
        return Command::new(program);
    };
    let mut command = Command::new("taskset");
    command.args(["-c", core, program]);
    command
}

/// An address that was free a moment ago.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a listener has an address")
}

/// Settings with stores in this folder and one key, for [`connect`].
pub(crate) fn settings(folder: &Path, address: SocketAddr) -> Settings {
    let mut settings = Settings::default();
    settings.server.listen = address.to_string();
    settings.store.url = format!("file://{}/blobs", folder.display());
    settings.index.url = format!("sled://{}/index", folder.display()).into();
    settings.keys.ring = folder.join("keys/ring.json");
    settings.retention.sweep_interval = Span::hours(24);
    settings.access.api_keys.push(ApiKey {
        id: "bench".to_owned(),
        tenant: "bench".to_owned(),
        scopes: Scope::ALL.into_iter().map(|scope| scope.name().to_owned()).collect(),
        secret_sha256: hash_secret(SECRET),
        expires: None,
        revoked: false,
    });
    settings
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
