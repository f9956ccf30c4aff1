//! What a power cut may not take: the system calls of an upload and of a stop, in their order, as `strace` saw them.
//!
//! Nothing that runs can tell a disk that keeps its word from one that does not, so the promise is looked at where it is made: before the
//! answer leaves, everything that it is about has been written, synced and given its name, and the folder of that name synced too.

use std::path::Path;
use std::process::Command;

use crate::harness::bytes::noise;
use crate::harness::process::{Place, eventually};

use self::trace::{Call, Trace};

mod trace;

#[tokio::test]
async fn an_upload_is_durable_before_it_is_answered() {
    need_strace();
    let place = Place::new();
    let server = place.start(traced(&place)).await;
    server.upload(noise(700_000, 1)).await;
    assert!(server.stop().await.success());
    let trace = read(&place).await;

    let answer = trace.first(0, |call| call.name == "sendto" && call.line.contains("HTTP/1.1 201 "));
    let blob = trace.first(0, |call| call.writes(&place, "blobs/staging/"));
    let before = |call: &&Call| call.writes(&place, "index/journal-") && call.began < blob.began;
    let announced = trace.calls.iter().rfind(before).expect("the upload is announced first");
    let journal = name_given(&trace, trace.first(0, |call| call.writes(&place, "index/journal-")));
    assert!(journal.0 < announced.began, "{journal:?} has a durable name before anything is announced there");
    let announced = durable_index(&trace, &place, announced.began - 1);
    assert!(announced.ended < blob.began, "the announcement is durable before there is anything to clean up");
    let sealed = name_given(&trace, blob);
    assert!(sealed.1.contains("/b/"), "{sealed:?}");
    let record = trace.first(sealed.0, |call| call.writes(&place, "blobs/t/") && call.line.contains("/r/a/"));
    let recorded = name_given(&trace, record);
    assert!(recorded.1.ends_with(".json"), "{recorded:?}");
    let published = durable_index(&trace, &place, recorded.0);
    assert!(published.ended < answer.began, "the row is durable before the answer: {answer:?}");
    for made in trace.calls.iter().filter(|call| call.name == "mkdir" && call.succeeded() && call.ended < answer.began)
    {
        let folder = made.quoted(0);
        if folder.starts_with(&*place.file("blobs/t").display().to_string()) {
            let above = Path::new(folder).parent().expect("a folder in the store").display().to_string();
            let synced = trace.first(made.ended, |call| call.syncs(&above));
            assert!(synced.ended < answer.began, "{folder} has a durable name before the answer");
        }
    }
}

/// From the first of the writes to a file: its last write, its sync, its name, the sync of its folder, in this order. Says when that was
/// done, and the name.
fn name_given(trace: &Trace, first: &Call) -> (usize, String) {
    let path = first.path().to_owned();
    let renamed = trace.first(first.ended, |call| call.name.starts_with("rename") && call.quoted(0) == path);
    let last = trace.calls.iter().filter(|call| call.path() == path && call.is_write()).max_by_key(|call| call.ended);
    let last = last.expect("there is a first one");
    assert!(last.ended < renamed.began, "{path} is written no more once it has its name");
    let synced = trace.first(last.ended, |call| call.syncs(&path));
    assert!(synced.ended < renamed.began, "{path} is synced before it gets its name");
    let name = renamed.quoted(1).to_owned();
    let folder = Path::new(&name).parent().expect("a file in a folder").display().to_string();
    (trace.first(renamed.ended, |call| call.syncs(&folder)).ended, name)
}

/// The first write to the index's journal that begins after this, and the sync that covers it.
fn durable_index<'t>(trace: &'t Trace, place: &Place, after: usize) -> &'t Call {
    let written = trace.first(after, |call| call.writes(place, "index/journal-"));
    let path = written.path();
    let synced = trace.first(written.ended, |call| call.name == "fdatasync" && call.path() == path);
    let unfinished = trace.calls.iter().find(|call| call.is_write() && call.path() == path && call.spans(synced.began));
    assert!(unfinished.is_none(), "{unfinished:?} is not covered by {synced:?}");
    synced
}

#[tokio::test]
async fn a_journal_of_the_index_goes_once_what_it_had_is_durable_elsewhere() {
    need_strace();
    let place = Place::new();
    let server = place.start(traced(&place)).await;
    server.upload(noise(1_000, 1)).await;
    assert!(server.stop().await.success());
    let trace = read(&place).await;

    let first = place.file("index/journal-1").display().to_string();
    let removed = trace.first(0, |call| call.name.starts_with("unlink") && call.quoted(0) == first);
    let next = name_given(&trace, trace.first(0, |call| call.writes(&place, "index/journal-2")));
    assert!(next.0 < removed.began, "{next:?} is there before the one before it goes");
    let data = place.file("index/db").display().to_string();
    let last = trace.calls.iter().rfind(|call| call.is_write() && call.path() == data && call.began < removed.began);
    let last = last.expect("the rows go into the tree");
    // sled's own flush is no sync.
    let synced = trace.first(last.ended, |call| call.name == "fdatasync" && call.path() == data);
    assert!(synced.ended < removed.began, "{last:?} is durable before {removed:?}");
}

/// The server under `strace`, which lets the server be our child.
fn traced(place: &Place) -> Command {
    let server = place.command(&["serve"]);
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-y", "-s", "32", "-o", "trace", "-e"]);
    command.arg(
        "trace=write,writev,pwrite64,sendto,fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat",
    );
    command.arg(server.get_program()).args(server.get_args());
    for (name, value) in server.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(place.path());
    command
}

/// The trace, once the tracer has written all of it.
async fn read(place: &Place) -> Trace {
    let text = || std::fs::read_to_string(place.file("trace")).expect("a trace");
    eventually(async || {
        let text = text();
        let process = text.split_whitespace().next().unwrap_or_default().to_owned();
        text.lines().any(|line| line.starts_with(&process) && line.contains("+++ exited with"))
    })
    .await;
    Trace::parse(&text())
}

/// Installs `strace` where that can be done, and says what is missing where it cannot.
fn need_strace() {
    let runs = || Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if runs().is_err() {
        for step in [&["update"][..], &["install", "--yes", "--no-install-recommends", "strace"]] {
            let _ = Command::new("apt-get").args(step).env("DEBIAN_FRONTEND", "noninteractive").output();
        }
    }
    let ran = runs().expect("this test needs strace, and apt-get could not install it: install strace");
    assert!(
        ran.status.success(),
        "this test needs to trace its own child, and this machine does not let it; in a container, run with --cap-add SYS_PTRACE: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
