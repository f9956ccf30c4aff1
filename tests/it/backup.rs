//! What an operator copies, and what comes of it in another place.

use std::path::Path;
use std::process::Command;

use mediakeep_storage::testing;
use reqwest::Method;
use serde_json::Value;

use crate::harness::bytes::noise;
use crate::harness::process::{Place, eventually, files, ran, url};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ring_database_and_store_copied_beside_the_service_bring_everything_back_elsewhere() {
    let (here, there) = (Place::shared(""), Place::shared(""));
    let server = here.serve().await;
    let sent = server.upload(noise(30_000, 1)).await;

    // In the order of the page for operators: ring, index, store. What comes meanwhile may be in the copy or not.
    copy(&here.file("keys"), &there.file("keys"));
    let dump = here.file("dump.sql");
    must("pg_dump", &["--no-owner", "--file", text(&dump), here.index().url()]);
    server.upload(noise(30_000, 2)).await;
    copy(&here.file("blobs"), &there.file("blobs"));
    server.kill().await;
    must("psql", &["--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--file", text(&dump), there.index().url()]);

    let path = url(&sent).trim_start_matches(&format!("http://127.0.0.1:{}", here.port())).to_owned();
    let server = there.serve().await;
    assert_eq!(server.opens(&server.url(&path)).await, 200);
    // A row shows once it is sealed.
    eventually(async || {
        let audit = server.request(Method::GET, "/v1/audit/events?type=ingest").send().await.expect("an answer");
        let audit: Value = audit.json().await.expect("JSON");
        audit["events"].as_array().expect("rows").len() == 1
    })
    .await;
    assert!(server.stop().await.success());
    let verified = there.must_run(&["verify", "--deep"]);
    assert!(verified.stdout.contains("1 without a row"), "what came behind the index is pending: {}", verified.stdout);
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let place = to.join(file.strip_prefix(from).expect("it is in there"));
        std::fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        std::fs::copy(&file, &place).expect("a copy");
    }
}

fn must(program: &str, arguments: &[&str]) {
    let mut command = Command::new(testing::program(program));
    command.args(arguments);
    let ran = ran(command);
    assert_eq!(ran.code, 0, "{program}: {ran:?}");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}
