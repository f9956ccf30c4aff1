//! A disk that fills up, under the bytes or under the index: uploads are refused, reads go on, nothing is lost; and when space returns,
//! so do uploads.
//!
//! The disks are small ones in memory, mounted in a namespace that ends with its story, so that nothing stays mounted however it ends.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::Value;

use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server, files, url};

/// Set where mounts are the story's own.
const VARIABLE: &str = "MEDIAKEEP_OWN_MOUNTS";

const MIB: usize = 1 << 20;

/// Nothing has a grace, and nobody sweeps but the story.
const SHORT: &str =
    "[retention]\ngrace = \"0s\"\norphan_grace = \"0s\"\ntombstone_bytes = \"0s\"\nsweep_interval = \"1h\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_full_of_bytes_refuses_uploads_and_takes_them_again_when_space_returns() {
    if !has_own_mounts("full_disk::a_disk_full_of_bytes_refuses_uploads_and_takes_them_again_when_space_returns") {
        return;
    }
    // With a reserve, and down to the last byte.
    for min_free in ["3 MiB", "0"] {
        let place = Place::with(SHORT);
        mount(&place.file("blobs"), 20);
        let server = serve(&place, min_free).await;
        let loose = server.request(Method::POST, "/v1/assets").body(noise(3 * MIB, 999)).send().await;
        let loose: Value = loose.expect("an answer").json().await.expect("JSON");
        let mut kept = Vec::new();
        let refused = loop {
            let seed = kept.len() as u64;
            match upload(&server, noise(MIB, seed)).await {
                (201, answer) => kept.push((url(&answer).to_owned(), MIB, seed)),
                refused => break refused,
            }
        };

        assert_eq!((refused.0, refused.1["error"].as_str()), (507, Some("insufficient_storage")), "{min_free}");
        assert!(kept.len() > 10, "{min_free}: {} uploads on a disk of 20 MiB", kept.len());
        for (status, answer) in join_all((500..508).map(|seed| upload(&server, noise(2 * MIB, seed)))).await {
            assert_eq!(status, 507, "{min_free}: {answer}");
        }
        assert_all_open(&server, &kept).await;
        let asset = format!("/v1/assets/{}", loose["asset"]["assetId"].as_str().expect("an id"));
        assert_eq!(server.request(Method::DELETE, &asset).send().await.expect("an answer").status(), 204, "{min_free}");
        let (status, answer) = upload(&server, noise(MIB, 777)).await;
        assert_eq!(status, 201, "{min_free}: {answer}");
        kept.push((url(&answer).to_owned(), MIB, 777));
        assert_all_open(&server, &kept).await;
        assert!(server.stop().await.success());
        assert_reconciled(&place);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_full_under_the_index_refuses_uploads_and_takes_them_again_when_space_returns() {
    if !has_own_mounts("full_disk::a_disk_full_under_the_index_refuses_uploads_and_takes_them_again_when_space_returns")
    {
        return;
    }
    let place = Place::with(SHORT);
    mount(&place.file("index"), 32);
    let server = serve(&place, "8 MiB").await;
    let mut kept = Vec::new();
    send_many(&server, 0, &mut kept).await;
    let loose = server.request(Method::POST, "/v1/assets").body(noise(3_000, 999)).send().await.expect("an answer");
    let loose: Value = loose.json().await.expect("JSON");

    // Somebody else fills the disk: under the reserve, and then altogether.
    let other = place.file("index/another's");
    leave(&place.file("index"), &other, 6 * MIB);
    let (status, answer) = upload(&server, noise(1_000, 501)).await;
    assert_eq!((status, answer["error"].as_str()), (507, Some("insufficient_storage")));
    let asset = format!("/v1/assets/{}", loose["asset"]["assetId"].as_str().expect("an id"));
    assert_eq!(server.request(Method::DELETE, &asset).send().await.expect("an answer").status(), 204, "it makes room");
    leave(&place.file("index"), &other, 0);
    for (status, answer) in join_all((510..518).map(|seed| upload(&server, noise(1_000, seed)))).await {
        assert_eq!(status, 507, "{answer}");
    }
    assert_all_open(&server, &kept).await;

    std::fs::remove_file(&other).expect("a file to remove");
    send_many(&server, 1, &mut kept).await;
    assert_all_open(&server, &kept).await;
    assert!(server.stop().await.success());
    assert_reconciled(&place);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_whose_disk_fills_to_the_last_byte_reads_on_and_takes_uploads_again_when_space_returns() {
    if !has_own_mounts(
        "full_disk::an_index_whose_disk_fills_to_the_last_byte_reads_on_and_takes_uploads_again_when_space_returns",
    ) {
        return;
    }
    let place = Place::with(SHORT);
    mount(&place.file("index"), 32);
    let server = serve(&place, "0").await;
    let mut kept = Vec::new();
    send_many(&server, 0, &mut kept).await;
    let other = place.file("index/another's");
    leave(&place.file("index"), &other, 0);

    let refused = loop {
        let seed = 1_000 + kept.len() as u64;
        match upload(&server, noise(1_000, seed)).await {
            (201, answer) => kept.push((url(&answer).to_owned(), 1_000, seed)),
            (status, _) => break status,
        }
    };

    assert_eq!(refused, 507);
    assert_all_open(&server, &kept).await;
    for (status, answer) in join_all((510..518).map(|seed| upload(&server, noise(1_000, seed)))).await {
        assert_eq!(status, 507, "{answer}");
    }
    assert_all_open(&server, &kept).await;

    std::fs::remove_file(&other).expect("a file to remove");
    send_many(&server, 1, &mut kept).await;
    leave(&place.file("index"), &other, 0);
    assert!(server.stop().await.success(), "without room for a checkpoint it stops all the same");
    std::fs::remove_file(&other).expect("a file to remove");
    let server = serve(&place, "0").await;
    send_many(&server, 2, &mut kept).await;
    assert_all_open(&server, &kept).await;
    assert!(server.stop().await.success());
    assert_reconciled(&place);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bundle_to_scrub_is_refused_before_it_fills_the_disk_and_frees_what_it_took() {
    if !has_own_mounts("full_disk::a_bundle_to_scrub_is_refused_before_it_fills_the_disk_and_frees_what_it_took") {
        return;
    }
    let place = Place::with(SHORT);
    mount(&place.file("blobs"), 32);
    let server = serve(&place, "8 MiB").await;
    let scrub = async |length: usize| {
        // It does not say how long it is.
        let text = format!("{{\"run\":{{\"runId\":\"run-1\"}},\"t\":\"{}\"}}", "x".repeat(length));
        let pieces =
            text.into_bytes().chunks(MIB).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect::<Vec<_>>();
        let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
        let request =
            server.request(Method::POST, "/v1/debug-bundles/scrub").header("content-type", "application/json");
        request.body(body).send().await.expect("an answer").status().as_u16()
    };

    assert_eq!(scrub(60 * MIB).await, 507);

    assert_eq!(scrub(15 * MIB).await, 200, "what the refused one took is free again");
    assert_eq!(upload(&server, noise(15 * MIB, 1)).await.0, 201, "and what the other took");
    assert!(server.stop().await.success());
    assert_reconciled(&place);
}

async fn serve(place: &Place, min_free: &str) -> Server {
    let mut command = place.command(&["serve"]);
    command.env("MEDIAKEEP__STORE__MIN_FREE", min_free);
    place.start(command).await
}

async fn upload(server: &Server, bytes: Vec<u8>) -> (u16, Value) {
    let request = server.request(Method::POST, "/v1/runs/run-1/assets").body(bytes);
    let answer = request.send().await.expect("an answer");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

/// Forty assets that are kept, eight at a time.
async fn send_many(server: &Server, turn: u64, kept: &mut Vec<(String, usize, u64)>) {
    for group in 0..5 {
        let seeds = (0..8).map(|n| turn * 100 + group * 8 + n);
        let sent = join_all(seeds.map(async |seed| (seed, upload(server, noise(1_000, seed)).await))).await;
        for (seed, (status, answer)) in sent {
            assert_eq!(status, 201, "{answer}");
            kept.push((url(&answer).to_owned(), 1_000, seed));
        }
    }
}

async fn assert_all_open(server: &Server, kept: &[(String, usize, u64)]) {
    for (url, length, seed) in kept {
        let answer = server.request(Method::GET, url).send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{seed} was acknowledged");
        assert!(answer.bytes().await.expect("a body") == noise(*length, *seed), "{seed} is as it was sent");
    }
}

/// After a sweep nothing is lost, and nothing is left of what was refused.
fn assert_reconciled(place: &Place) {
    place.must_run(&["sweep"]);
    let verified = place.must_run(&["verify", "--deep"]);
    assert!(verified.stdout.contains(", 0 without a row"), "{}", verified.stdout);
    assert_eq!(files(&place.file("blobs/staging")).len(), 0, "staged files stay behind");
}

/// Whether this process may mount without anybody seeing it. If not, the story is told in a process that may, to its end.
fn has_own_mounts(story: &str) -> bool {
    if std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let mut unshare = Command::new("unshare");
    unshare.arg("--mount");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let may = unshare.arg("true").output().is_ok_and(|tried| tried.status.success());
    assert!(
        may,
        "this story needs a small disk, and this machine does not let it mount one: run it as root or allow user namespaces; in a container, run with --cap-add SYS_ADMIN"
    );
    let mut told = Command::new("unshare");
    told.args(unshare.get_args().filter(|argument| *argument != "true"));
    told.arg(std::env::current_exe().expect("a path")).args(["--exact", story, "--nocapture"]).env(VARIABLE, "1");
    let told = told.output().expect("unshare runs");
    let said = String::from_utf8_lossy(&told.stdout);
    assert!(
        told.status.success() && said.contains("test result: ok. 1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&told.stderr)
    );
    false
}

/// A disk of so many MiB at this folder.
fn mount(folder: &Path, mib: usize) {
    std::fs::create_dir(folder).expect("a folder");
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "small"]).arg(folder).output();
    let mounted = mounted.expect("mount runs");
    assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
}

/// Grows the file until no more than so many bytes of its disk are free.
fn leave(disk: &Path, file: &Path, bytes: usize) {
    let space = rustix::fs::statvfs(disk).expect("a disk");
    let free = space.f_bavail * space.f_frsize;
    let size = std::fs::metadata(file).map_or(0, |file| file.len());
    let file = File::options().create(true).append(true).open(file).expect("a file");
    let more = free.saturating_sub(bytes as u64);
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), size, more.max(1)).expect("space to take");
}
