//! nginx as an operator would set it up for links that expire: `secure_link` before files, `sendfile`, no log of accesses.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use data_encoding::BASE64URL_NOPAD;

use crate::support::host::{Process, free_address, on_core};

const SECRET: &str = "secret-of-a-benchmark";

/// The year 2100.
const EXPIRES: u64 = 4_102_444_800;

/// A running nginx; it ends with the value.
pub(crate) struct Nginx {
    process: Process,
    address: SocketAddr,
    files: PathBuf,
}

impl Nginx {
    /// Starts it over these files.
    pub(crate) fn start(folder: &Path, files: &Path, core: &str) -> Self {
        let address = free_address();
        let home = folder.join("nginx");
        fs::create_dir(&home).expect("a folder");
        let config = home.join("nginx.conf");
        fs::write(&config, configuration(&home, files, address)).expect("a file is written");
        let mut command = on_core(Some(core), "nginx");
        command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
        command.arg("-c").arg(&config).arg("-p").arg(&home).arg("-e").arg(home.join("error.log"));
        Self { process: Process::start(command, address), address, files: files.to_owned() }
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// A link to that file, under the settings that suit whole files, or those that suit pieces.
    pub(crate) fn url(&self, file: &Path, pieces: bool) -> String {
        let file = file.strip_prefix(&self.files).expect("a file that it serves");
        let path = format!("/{}/{}", if pieces { "pieces" } else { "whole" }, file.display());
        let md5 = md5(format!("{EXPIRES}{path} {SECRET}").as_bytes());
        format!("http://{}{path}?md5={md5}&expires={EXPIRES}", self.address)
    }
}

fn configuration(home: &Path, files: &Path, address: SocketAddr) -> String {
    let home = home.display();
    // With tcp_nopush a whole file's head and first bytes share a packet; but before a piece of a file nginx then waits, 40 ms each time.
    let (whole, pieces) = (location("whole", "on", files), location("pieces", "off", files));
    // Its worker would become a user who may not read the files.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    format!(
        r#"
daemon off; worker_processes 1; pid {home}/pid; {user}
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; tcp_nodelay on;
    keepalive_timeout 75; keepalive_requests 1000000000;
    client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
    default_type application/octet-stream;
    server {{
        listen {address};
        {whole}
        {pieces}
    }}
}}
"#
    )
}

fn location(name: &str, tcp_nopush: &str, files: &Path) -> String {
    let files = files.display();
    format!(
        r#"location /{name}/ {{
            tcp_nopush {tcp_nopush};
            secure_link $arg_md5,$arg_expires;
            secure_link_md5 "$secure_link_expires$uri {SECRET}";
            if ($secure_link = "") {{ return 403; }}
            if ($secure_link = "0") {{ return 410; }}
            alias {files}/;
        }}"#
    )
}

/// MD5 is what `secure_link` has; we have none and ask openssl.
fn md5(bytes: &[u8]) -> String {
    let mut openssl = Command::new("openssl")
        .args(["dgst", "-md5", "-binary"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl runs");
    openssl.stdin.take().expect("a pipe").write_all(bytes).expect("openssl reads");
    BASE64URL_NOPAD.encode(&openssl.wait_with_output().expect("openssl answers").stdout)
}
