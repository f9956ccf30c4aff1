//! A client of tus that others wrote: tuspy, of the Python package registry.

use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::Method;

use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server};
use crate::harness::python;

const VERSION: &str = "1.1.0";

/// Uploads a file up to some byte, or goes on with an upload to its end; says its URL.
const SCRIPT: &str = "
import sys
from tusclient import client

base, key, path, stop, url = sys.argv[1:6]
tus = client.TusClient(base, headers={'Authorization': 'Bearer ' + key})
more = {'url': url} if url else {'metadata': {'filename': 'noise.bin', 'runId': 'run-1'}}
upload = tus.uploader(path, chunk_size=65536, upload_checksum=True, **more)
upload.upload(stop_at=int(stop) if stop else None)
print(upload.url)
";

async fn tuspy(server: &Server, file: &Path, stop: &str, url: &str) -> String {
    let program = tokio::task::spawn_blocking(|| python::installed("tuspy", VERSION, "tuspy", "python"));
    let mut command = Command::new(program.await.expect("it does not panic"));
    command.args(["-c", SCRIPT, &server.url("/v1/uploads"), &Server::key()]).arg(file).args([stop, url]);
    command.stdin(Stdio::null()).env("NO_PROXY", "*");
    let run = tokio::task::spawn_blocking(move || command.output()).await.expect("it does not panic");
    let output = run.expect("python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tuspy_goes_on_where_a_killed_service_left_it() {
    let place = Place::new();
    let bytes = noise(500_000, 1);
    let file = place.write("noise.bin", &bytes);
    let server = place.serve().await;
    let url = tuspy(&server, &file, "200000", "").await;
    server.kill().await;

    let server = place.serve().await;
    tuspy(&server, &file, "", &url).await;

    let path = url.trim_start_matches(&server.url("")).to_owned();
    let seen = server.request(Method::HEAD, &path).header("tus-resumable", "1.0.0").send().await.expect("an answer");
    let asset = seen.headers()["mediakeep-asset-id"].to_str().expect("text").to_owned();
    let content = server.request(Method::GET, &format!("/v1/assets/{asset}/content")).send().await.expect("an answer");
    assert!(content.bytes().await.expect("bytes") == bytes);
    assert!(server.stop().await.success());
}
