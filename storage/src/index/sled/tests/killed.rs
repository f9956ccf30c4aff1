//! SIGKILL, at any moment: what was answered is there, and what is there is whole.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;
use crate::audit::AuditRow;

/// Where the child is told which folder to write to.
const FOLDER: &str = "MEDIAKEEP_TEST_KILLED_FOLDER";
/// And after how much of a journal it is to do checkpoints.
const JOURNAL: &str = "MEDIAKEEP_TEST_KILLED_JOURNAL";

#[tokio::test]
async fn what_was_answered_survives_a_kill() {
    let folder = TempDir::new().expect("a folder");
    let mut answered = 0;
    for round in 0..6 {
        let mut child = Command::new(env::current_exe().expect("this test has a file"))
            .args(["--exact", "--nocapture", "index::sled::tests::killed::a_child_writes_until_it_is_killed"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test runs again");
        let said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut said =
            said.map_while(Result::ok).filter_map(|line| line.strip_prefix("answered ")?.parse::<i64>().ok());
        // Not always after the same number, and mostly in the middle of a group.
        for _ in 0..50 + 37 * round {
            answered = said.next().expect("the child goes on until it is killed");
        }
        child.kill().expect("the child is there to be killed");
        answered = said.last().unwrap_or(answered);
        child.wait().expect("it has ended");

        let log = log(folder.path()).await;
        let times: Vec<_> = log.iter().map(|row| row.event.at.as_second()).collect();
        let last = *times.last().expect("there were answers");
        assert!(last >= answered, "{answered} was answered, and {last} is the last that is there");
        assert_eq!(times, (0..=last).collect::<Vec<_>>(), "each once, and none without those before it");
    }
}

/// The moments of a checkpoint, in their order.
#[cfg(feature = "testing")]
const MOMENTS: [&str; 6] =
    ["journal.made", "journal.begun", "checkpoint.written", "checkpoint.noted", "journal.removed", "checkpoint.ended"];

#[cfg(feature = "testing")]
#[tokio::test]
async fn a_kill_at_any_moment_of_a_checkpoint_takes_nothing() {
    use std::os::unix::process::ExitStatusExt;

    let folder = TempDir::new().expect("a folder");
    let mut before = 0;
    for moment in MOMENTS {
        for named in [None, Some(moment), Some(moment)] {
            let mut child = Command::new(env::current_exe().expect("this test has a file"));
            child
                .args(["--exact", "--nocapture", "index::sled::tests::killed::a_child_writes_until_it_is_killed"])
                .env(FOLDER, folder.path())
                .env(JOURNAL, "20000")
                .stdout(Stdio::piped());
            named.map(|moment| child.env(crate::testing::FAULT_VARIABLE, moment));
            let mut child = child.spawn().expect("this test runs again");
            let mut said = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
            if named.is_none() {
                said.by_ref().filter(|line| line.starts_with("answered ")).nth(30).expect("it goes on");
                child.kill().expect("the child is there to be killed");
            }
            let answered = said.filter_map(|line| line.strip_prefix("answered ")?.parse::<i64>().ok()).last();
            assert_eq!(child.wait().expect("it has ended").signal(), Some(9), "{moment}");

            let times: Vec<_> = log(folder.path()).await.iter().map(|row| row.event.at.as_second()).collect();
            let last = *times.last().expect("there were answers");
            assert!(last >= answered.unwrap_or(before), "{moment}: {last} is the last that is there");
            assert_eq!(times, (0..=last).collect::<Vec<_>>(), "{moment}: each once, and none without those before it");
            before = last;
        }
    }
}

/// No test by itself: it does nothing unless the one above runs it.
#[tokio::test]
async fn a_child_writes_until_it_is_killed() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let first = log(Path::new(&folder)).await.len();
    let journal_bytes = env::var(JOURNAL).map_or(1 << 20, |bytes| bytes.parse().expect("a number"));
    let options = SledOptions { journal_bytes, ..SledOptions::default() };
    let index = SledIndex::open(Path::new(&folder), options).expect("the folder is free");
    let (tenant, other) = (tenant(), TenantId::parse("other").expect("a tenant"));
    for n in i64::try_from(first).expect("a small number").. {
        // One of the two writes two rows, so that half a transition would be seen.
        let (one, two) = futures_util::future::join(
            index.record(&tenant, vec![event(n)]),
            index.record(&other, vec![event(n), event(n)]),
        )
        .await;
        one.and(two).expect("a record");
        let mut out = std::io::stdout().lock();
        writeln!(out, "answered {n}").and_then(|()| out.flush()).expect("the parent reads");
    }
}

async fn log(folder: &Path) -> Vec<AuditRow> {
    let index = SledIndex::open(folder, SledOptions::default()).expect("the folder is free");
    index.seal_audit(1_000_000).await.expect("a sealed log");
    let other = TenantId::parse("other").expect("a tenant");
    let pairs = index.audit_rows(&other, 0, 1_000_000).await.expect("the log");
    assert!(pairs.chunks(2).all(|pair| pair.len() == 2 && pair[0].event == pair[1].event), "half of a transition");
    index.audit_rows(&tenant(), 0, 1_000_000).await.expect("the log")
}
