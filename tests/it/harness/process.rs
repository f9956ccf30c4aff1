//! The real program, as its users run it: with a settings file in a folder of its own, on a port that was free.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mediakeep::access::hash_secret;
use mediakeep_storage::testing;
use reqwest::{Client, Method, RequestBuilder};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::index::{Home, Kind};
use super::store::{self, Store};

/// The secret of the key that every settings file here lets in.
const SECRET: &str = "secret-of-the-process-tests";

/// No command here has to take longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a settings file, in which the program is run.
pub struct Place {
    folder: TempDir,
    port: u16,
    store: Store,
    index: Home,
    lost: Option<Home>,
}

/// What a command left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Place {
    /// With settings that let one key in.
    pub fn new() -> Self {
        Self::with("")
    }

    /// The same with further lines, or whole sections.
    pub fn with(more: &str) -> Self {
        Self::on(Kind::of_this_process(), more)
    }

    /// The same on that kind of index.
    pub fn on(kind: Kind, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(store::Kind::of_this_process(), folder.path());
        Self::over(store, kind, folder, more)
    }

    /// The same with its bytes in files, whatever this process tells its other stories on.
    pub fn in_files() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(store::Kind::Files, folder.path());
        Self::over(store, Kind::of_this_process(), folder, "")
    }

    /// The same with its bytes in a bucket, whatever this process tells its other stories on.
    pub fn in_bucket() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(store::Kind::Bucket, folder.path());
        Self::over(store, Kind::of_this_process(), folder, "")
    }

    /// With its bytes in a bucket and its index in a database: what any number of processes may share.
    pub fn shared(more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(store::Kind::Bucket, folder.path());
        Self::over(store, Kind::Postgres, folder, more)
    }

    /// The same with its bytes at somebody else's server.
    pub fn at(store: Store) -> Self {
        Self::over(store, Kind::of_this_process(), tempfile::tempdir().expect("a folder"), "")
    }

    fn over(store: Store, kind: Kind, folder: TempDir, more: &str) -> Self {
        let index = Home::create(kind, folder.path());
        let place = Self { folder, port: free_port(), store, index, lost: None };
        place.configure(more);
        place
    }

    /// Writes the settings file anew.
    pub fn configure(&self, more: &str) {
        self.write("mediakeep.toml", format!("{}{more}\n", self.settings()));
    }

    /// The settings that every file here begins with; the last section is that of the one API key.
    fn settings(&self) -> String {
        let (path, port, digest) = (self.path().display(), self.port, hash_secret(SECRET));
        let (store, index) = (self.store.toml(), self.index.url());
        format!(
            "[server]\nlisten = \"127.0.0.1:{port}\"\n\
             {store}\
             [index]\nurl = \"{index}\"\n\
             [keys]\nring = \"{path}/keys/ring.json\"\n\
             [[access.api_keys]]\nid = \"acme\"\ntenant = \"acme\"\nsecret_sha256 = \"{digest}\"\n\
             scopes = [\"assets:write\", \"assets:read\", \"assets:mint\", \"assets:erase\", \"runs:write\", \"holds:write\", \"audit:read\"]\n"
        )
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file of the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn index(&self) -> &Home {
        &self.index
    }

    /// Takes the index away: nothing is mounted where it was, or the address leads to another database.
    pub fn lose_index(&mut self) {
        match self.index.kind() {
            Kind::Sled => std::fs::rename(self.file("index"), self.file("kept")).expect("a rename"),
            Kind::Postgres => {
                let empty = Home::create(Kind::Postgres, self.path());
                self.lost = Some(std::mem::replace(&mut self.index, empty));
            }
        }
    }

    /// Brings it back.
    pub fn find_index(&mut self) {
        match self.lost.take() {
            None => std::fs::rename(self.file("kept"), self.file("index")).expect("a rename"),
            Some(lost) => self.index = lost,
        }
    }

    /// The program with these arguments, in this folder, with nothing of ours in its environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mediakeep"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("MEDIAKEEP") {
                command.env_remove(name);
            }
        }
        command.envs(testing::credentials()).env("XDG_STATE_HOME", self.file("state"));
        command.args(arguments).current_dir(self.path()).env("RUST_BACKTRACE", "0").stdin(Stdio::null());
        if self.lost.is_some() {
            command.env("MEDIAKEEP__INDEX__URL", self.index.url());
        }
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments))
    }

    /// The same, and it has to succeed.
    pub fn must_run(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        ran
    }

    /// Serves, and answers once the service does. What it says is added to the file `log`.
    pub async fn serve(&self) -> Server {
        self.start(self.command(&["serve"])).await
    }

    /// Serves on a second port from the same stores.
    pub async fn serve_another(&self) -> Server {
        self.serve_another_with(&[]).await
    }

    /// The same with settings of its own.
    pub async fn serve_another_with(&self, settings: &[(&str, &str)]) -> Server {
        let port = free_port();
        let mut command = self.command(&["serve"]);
        command.env("MEDIAKEEP__SERVER__LISTEN", format!("127.0.0.1:{port}")).envs(settings.iter().copied());
        self.start_at(port, command).await
    }

    /// Starts a command that serves, and waits until it answers.
    pub async fn start(&self, command: Command) -> Server {
        self.start_at(self.port, command).await
    }

    async fn start_at(&self, port: u16, mut command: Command) -> Server {
        let log =
            || Stdio::from(std::fs::File::options().create(true).append(true).open(self.file("log")).expect("a log"));
        let child = command.stdout(log()).stderr(log()).spawn().expect("the program starts");
        let mut server = Server { child, base: format!("http://127.0.0.1:{port}"), client: client() };
        let began = Instant::now();
        while server.client.get(format!("{}/readyz", server.base)).send().await.is_err() {
            let ended = server.child.try_wait().expect("a child");
            assert!(ended.is_none() && began.elapsed() < PATIENCE, "{ended:?}: {}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server
    }

    /// The blobs in its store.
    pub fn blobs(&self) -> Vec<PathBuf> {
        let all = files(&self.file("blobs/t")).into_iter();
        all.filter(|file| file.ancestors().nth(2).is_some_and(|folder| folder.ends_with("b"))).collect()
    }

    /// Everything that its servers have said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.file("log")).unwrap_or_default()
    }
}

/// Runs a command to its end.
pub fn ran(mut command: Command) -> Ran {
    let began = Instant::now();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let id = child.id();
    let (done, waiting) = std::sync::mpsc::channel();
    // Its output is read while it runs: a program whose pipe is full never ends.
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let output = waiting.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
        waiting.recv().expect("a program that was killed ends")
    });
    let took = began.elapsed();
    let output = output.expect("its output");
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        took,
    }
}

/// A server that runs; it dies with its test.
pub struct Server {
    child: Child,
    base: String,
    client: Client,
}

impl Server {
    /// The credential that the settings let in.
    pub fn key() -> String {
        format!("mk_acme_{SECRET}")
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.base.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
    }

    /// A request to a path with the one credential, or to a whole URL with none.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        if path.starts_with("http") {
            return self.client.request(method, path);
        }
        self.client.request(method, self.url(path)).bearer_auth(Self::key())
    }

    /// Sends bytes into `run-1`, and returns the whole answer.
    pub async fn upload(&self, bytes: Vec<u8>) -> Value {
        let request = self.request(Method::POST, "/v1/runs/run-1/assets");
        let answer = request.header("content-type", "application/octet-stream").body(bytes).send().await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), 201);
        answer.json().await.expect("JSON")
    }

    /// The most memory that it has had so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") * 1024
    }

    /// What a GET on it answers.
    pub async fn opens(&self, url: &str) -> u16 {
        self.request(Method::GET, url).send().await.expect("an answer").status().as_u16()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("a process to tell");
    }

    /// Tells it to stop, and waits until it has.
    pub async fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended().await
    }

    /// As a power cut would.
    pub async fn kill(mut self) {
        self.signal(Signal::KILL);
        self.ended().await;
    }

    /// Waits until it has ended by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "the server does not stop");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that follows nothing and asks no proxy.
pub fn client() -> Client {
    // A second provider is refused, and then there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().expect("a client")
}

/// A port that nobody listens on now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The durable URL in an ingest's answer, or the one in a mint's.
pub fn url(answer: &Value) -> &str {
    answer["url"].as_str().expect("a URL")
}

/// Waits a few seconds for something to come true.
pub async fn eventually(check: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !check().await {
        assert!(began.elapsed() < PATIENCE, "it does not come true");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Every file below the folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    // Of a bucket a folder is there once something lies in it.
    let children = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    children.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
