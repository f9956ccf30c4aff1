//! Clients of tus that others wrote: tuspy, of the Python package registry, and tus-js-client, of npm's.

use std::path::Path;
use std::process::{Command, Stdio};

use reqwest::Method;

use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server};
use crate::harness::{node, python};

const TUSPY: &str = "1.1.0";
const TUS_JS: &str = "4.3.1";

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
    let program = tokio::task::spawn_blocking(|| python::installed("tuspy", TUSPY, "tuspy", "python"));
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

    assert!(made_of(&server, &url).await == bytes);
    assert!(server.stop().await.success());
}

/// The bytes of the asset that was made of the upload.
async fn made_of(server: &Server, url: &str) -> Vec<u8> {
    let path = url.trim_start_matches(&server.url("")).to_owned();
    let seen = server.request(Method::HEAD, &path).header("tus-resumable", "1.0.0").send().await.expect("an answer");
    let asset = seen.headers()["mediakeep-asset-id"].to_str().expect("text").to_owned();
    let content = server.request(Method::GET, &format!("/v1/assets/{asset}/content")).send().await.expect("an answer");
    content.bytes().await.expect("bytes").into()
}

/// Uploads a file, or goes on with what it finds of an earlier upload of that file; ends without a word after some byte. Says its URL.
const JS: &str = "
const tus = require('tus-js-client');
const [endpoint, key, path, memory, stop, parallel] = process.argv.slice(1);
const upload = new tus.Upload(require('fs').createReadStream(path), {
  endpoint,
  headers: { Authorization: `Bearer ${key}` },
  metadata: { filename: 'noise.bin', runId: 'run-1' },
  chunkSize: parallel ? Infinity : 65536,
  parallelUploads: Number(parallel || 1),
  urlStorage: new tus.FileUrlStorage(memory),
  onChunkComplete(_, accepted) { if (stop && accepted >= stop) process.exit(0); },
  onError(error) { console.error(error.message); process.exit(1); },
  onSuccess() { console.log(upload.url); },
});
upload.findPreviousUploads().then((earlier) => {
  if (earlier.length > 0) upload.resumeFromPreviousUpload(earlier[0]);
  upload.start();
});
";

async fn tus_js(server: &Server, file: &Path, stop: &'static str, parallel: &'static str) -> String {
    let (endpoint, file) = (server.url("/v1/uploads"), file.to_owned());
    let run = tokio::task::spawn_blocking(move || {
        let mut command = node::with("tus-js-client", TUS_JS);
        command.args(["-e", JS, "--", &endpoint, &Server::key()]).arg(&file).arg(file.with_extension("urls"));
        command.args([stop, parallel]).stdin(Stdio::null()).env("NO_PROXY", "*").output()
    });
    let output = run.await.expect("it does not panic").expect("node");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tus_js_client_finds_the_upload_that_it_broke_off_and_goes_on_with_it() {
    let place = Place::new();
    let bytes = noise(500_000, 2);
    let file = place.write("noise.bin", &bytes);
    let server = place.serve().await;
    assert_eq!(tus_js(&server, &file, "200000", "").await, "", "it broke off");
    server.kill().await;

    let server = place.serve().await;
    let begun = creations(&place);
    let url = tus_js(&server, &file, "", "").await;

    assert_eq!((begun, creations(&place)), (1, 1), "it began no other upload");
    assert!(made_of(&server, &url).await == bytes);
    assert!(server.stop().await.success());
}

fn creations(place: &Place) -> usize {
    place.log().lines().filter(|line| line.contains("POST /v1/uploads 201")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tus_js_client_sends_pieces_side_by_side_and_has_them_joined() {
    let place = Place::new();
    let bytes = noise(500_000, 3);
    let file = place.write("noise.bin", &bytes);
    let server = place.serve().await;

    let url = tus_js(&server, &file, "", "3").await;

    assert!(made_of(&server, &url).await == bytes);
    assert!(server.stop().await.success());
}
