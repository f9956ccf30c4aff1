//! A server for as long as this process lives.
//!
//! Nothing is dropped when a test process ends, and nothing of it runs when it is killed. So the server belongs to a script that reads
//! from a pipe of this process: whatever becomes of us, the pipe is closed, and the script takes the server and its data away.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use url::Url;

use super::programs;

/// Between looking for a free port and listening on it another process may take it, once or twice.
const ATTEMPTS: usize = 4;

/// Whether the server waits for its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disk {
    /// It does not: no test pulls its plug.
    Idle,
    /// It does, as in production: what it costs is measured.
    Durable,
}

impl Disk {
    fn fsync(self) -> &'static str {
        match self {
            Self::Idle => "off",
            Self::Durable => "on",
        }
    }
}

/// A server that runs. Dropped, or with its process, it ends.
#[derive(Debug)]
pub(super) struct Server {
    /// Where it is, for somebody who may do everything.
    pub(super) url: Url,
    /// Where its data lies.
    #[cfg_attr(not(test), expect(dead_code, reason = "told in a failure, and looked at by the tests of this module"))]
    folder: PathBuf,
    /// The script ends the server when this end of the pipe is closed.
    _held: ChildStdin,
}

impl Server {
    /// Starts it; the error is a sentence.
    pub(super) fn start(disk: Disk) -> Result<Self, String> {
        let programs = programs::folder()?;
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            match Self::start_once(&programs, disk) {
                Ok(server) => return Ok(server),
                Err(why) => said = why,
            }
        }
        Err(format!("the server of {} does not start: {said}", programs.display()))
    }

    fn start_once(programs: &Path, disk: Disk) -> Result<Self, String> {
        let port = free_port().map_err(|error| format!("no port is free: {error}"))?;
        let mut script = Command::new("sh")
            .args(["-c", include_str!("server.sh"), "server"])
            .arg(programs)
            .args([&*port.to_string(), disk.fsync()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the tests: the script has to outlive them by a moment.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("sh: {error}"))?;
        let (Some(held), Some(out), Some(mut err)) = (script.stdin.take(), script.stdout.take(), script.stderr.take())
        else {
            return Err("sh has no pipes".to_owned());
        };
        let mut folder = String::new();
        let heard = BufReader::new(out).read_line(&mut folder);
        if heard.is_ok_and(|bytes| bytes > 0) {
            let url = Url::parse(&format!("postgres://postgres@127.0.0.1:{port}/postgres"));
            let url = url.map_err(|error| error.to_string())?;
            return Ok(Self { url, folder: folder.trim().into(), _held: held });
        }
        let mut said = String::new();
        let _ = err.read_to_string(&mut said);
        let _ = script.wait();
        Err(said)
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_server_is_gone_with_its_data_once_its_pipe_is_closed() {
        let server = Server::start(Disk::Idle).expect("a server");
        let address = server.url.socket_addrs(|| None).expect("an address")[0];
        let folder = server.folder.clone();
        assert!(folder.join("data").is_dir());
        TcpStream::connect(address).expect("it listens");

        drop(server);

        let began = Instant::now();
        while folder.exists() || TcpStream::connect(address).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(60), "it is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
