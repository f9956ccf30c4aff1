//! What is this index's own: its folder, its lock, its disk. The rest is the contract's to test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;

use super::keys::{Key, Space};
use super::*;
use crate::audit::{AuditEvent, AuditKind};
use crate::ids::TenantId;
use crate::index::contract::{self, Subject};
use crate::index::{Upkeep, Uploads, Urls};

fn event(n: i64) -> AuditEvent {
    AuditEvent::new(AuditKind::Read, "host", Timestamp::from_second(n).expect("a time in range"))
}

fn tenant() -> TenantId {
    TenantId::parse("acme").expect("a tenant")
}

fn open(folder: &TempDir) -> SledIndex {
    SledIndex::open(folder.path(), SledOptions::default()).expect("the folder is free")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sled_keeps_the_contract() {
    let mut folders = Vec::new();
    contract::run_all(|| {
        let folder = TempDir::new().expect("a folder");
        let index = Arc::new(open(&folder));
        folders.push(folder);
        async move { index as Subject }
    })
    .await;
}

#[test]
fn a_second_opener_is_told_at_once() {
    let folder = TempDir::new().expect("a folder");
    let first = open(&folder);
    let began = Instant::now();

    let second = SledIndex::open(folder.path(), SledOptions::default());

    assert!(matches!(second, Err(StorageError::Locked { .. })), "{second:?}");
    assert!(began.elapsed() < Duration::from_secs(1));
    drop(first);
    open(&folder);
}

#[tokio::test]
async fn what_was_answered_is_there_when_the_folder_is_opened_again() {
    let folder = TempDir::new().expect("a folder");
    for n in 0..20 {
        let index = open(&folder);
        index.record(&tenant(), vec![event(n)]).await.expect("a record");
        if n % 3 == 0 {
            index.seal_audit(100).await.expect("a sealed log");
        }
    }

    let index = open(&folder);
    index.seal_audit(100).await.expect("a sealed log");
    let log = index.audit_rows(&tenant(), 0, 100).await.expect("the log");
    let times: Vec<_> = log.iter().map(|row| row.event.at.as_second()).collect();
    assert_eq!(times, (0..20).collect::<Vec<_>>(), "in the order of writing, across openings");
}

#[tokio::test]
async fn a_dropped_index_finishes_what_is_queued() {
    let folder = TempDir::new().expect("a folder");
    let index = open(&folder);
    for n in 0..50 {
        let (tenant, events) = (tenant(), vec![event(n)]);
        let call = index.record(&tenant, events);
        // Polled once, so that it is queued, and then forgotten.
        let _ = tokio::time::timeout(Duration::ZERO, call).await;
    }
    drop(index);

    let index = open(&folder);
    assert_eq!(index.seal_audit(100).await.expect("a sealed log"), 50);
}

#[tokio::test]
async fn without_room_nothing_is_added_and_all_is_read() {
    let folder = TempDir::new().expect("a folder");
    let index = open(&folder);
    index.record(&tenant(), vec![event(0)]).await.expect("a record");
    index.seal_audit(1).await.expect("a sealed log");
    drop(index);

    let options = SledOptions { min_free: u64::MAX, ..SledOptions::default() };
    let index = SledIndex::open(folder.path(), options).expect("the folder is free");
    let full =
        |answer: Result<(), StorageError>| assert!(matches!(answer, Err(StorageError::Full { .. })), "{answer:?}");
    full(index.record(&tenant(), vec![event(1)]).await);
    index.ready().await.expect("what is there can be read");
    assert_eq!(index.seal_audit(1).await.expect("nothing waits"), 0, "what writes nothing needs no room");
    assert_eq!(index.audit_rows(&tenant(), 0, 9).await.expect("the log").len(), 1);
}

#[tokio::test]
async fn making_room_goes_on_when_adding_is_over() {
    let folder = TempDir::new().expect("a folder");
    let free = disk::free_bytes(folder.path()).expect("a number");
    let options = SledOptions { min_free: free.saturating_mul(2), ..SledOptions::default() };
    let index = SledIndex::open(folder.path(), options).expect("the folder is free");
    let audit = event(0);

    let added = index.record(&tenant(), vec![audit.clone()]).await;
    assert!(matches!(added, Err(StorageError::Full { .. })), "{added:?}");
    index.revoke_url(&tenant(), "url", Timestamp::MAX, audit).await.expect("a revocation");
    assert!(index.is_revoked(&tenant(), "url").await.expect("an answer"));
}

#[tokio::test]
async fn rows_larger_than_a_segment_are_kept() {
    let folder = TempDir::new().expect("a folder");
    let index = open(&folder);
    for n in 0..40 {
        let large = event(n).details(json!({"text": "x".repeat(200_000)}));
        index.record(&tenant(), vec![large]).await.expect("a record");
    }
    drop(index);
    let aside = std::fs::read_dir(folder.path().join("blobs")).expect("sled's folder").count();
    assert!(aside > 0, "else this test shows nothing");

    let index = open(&folder);
    assert_eq!(index.seal_audit(100).await.expect("a sealed log"), 40);
    assert_eq!(index.audit_rows(&tenant(), 0, 100).await.expect("the log").len(), 40);
}

#[tokio::test]
async fn after_a_failed_write_nothing_more_is_written() {
    let folder = TempDir::new().expect("a folder");
    let index = open(&folder);
    index.record(&tenant(), vec![event(0)]).await.expect("a record");
    index.core.refuse_writes(&StorageError::Full { store: "index" });

    let refused = index.record(&tenant(), vec![event(1)]).await;
    assert!(matches!(refused, Err(StorageError::Unavailable { .. })), "{refused:?}");
    assert!(index.ready().await.is_err());
    assert_eq!(index.audit_rows(&tenant(), 0, 9).await.expect("reads go on"), vec![]);
    drop(index);

    let index = open(&folder);
    index.ready().await.expect("opened again, it writes again");
    assert_eq!(index.seal_audit(9).await.expect("a sealed log"), 1);
}

#[test]
fn a_layout_from_the_future_is_refused() {
    let folder = TempDir::new().expect("a folder");
    drop(open(&folder));
    let db = ::sled::open(folder.path()).expect("the folder is free");
    db.insert(Key::space(Space::Meta).as_bytes(), &[shared::LAYOUT + 1]).expect("a row");
    drop(db);

    let refused = std::iter::repeat_with(|| SledIndex::open(folder.path(), SledOptions::default()))
        // Our own handle of sled's does not wait for its lock to go.
        .find(|opened| !matches!(opened, Err(StorageError::Locked { .. })))
        .expect("an endless iterator");
    assert!(matches!(refused, Err(StorageError::Corrupt { .. })), "{refused:?}");
}

#[test]
fn sled_answers_as_the_model_does() {
    answers_as_the_model_does(&SledOptions::default(), drop);
}

#[test]
fn sled_answers_as_the_model_does_where_rows_are_in_the_journal_and_in_the_tree() {
    let options = SledOptions { journal_bytes: 6_000, ..SledOptions::default() };
    answers_as_the_model_does(&options, |index| crash(&index));
}

/// `end` ends the index before it is opened again.
fn answers_as_the_model_does(options: &SledOptions, end: impl Fn(Arc<SledIndex>)) {
    type Latest = Option<(TempDir, Arc<SledIndex>)>;
    let latest: std::cell::RefCell<Latest> = std::cell::RefCell::default();
    let open = |folder: TempDir| {
        let index = Arc::new(SledIndex::open(folder.path(), options.clone()).expect("the folder is free"));
        *latest.borrow_mut() = Some((folder, index.clone()));
        index as Subject
    };
    contract::random::run(
        32,
        async || open(TempDir::new().expect("a folder")),
        async |index| {
            drop(index);
            let (folder, index) = latest.take().expect("an index was made before it is opened again");
            end(index);
            open(folder)
        },
    );
}

/// From now on the index brings nothing into the tree, as if its process had ended.
fn crash(index: &SledIndex) {
    index.core.refuse_writes(&StorageError::Full { store: "index" });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sled_keeps_the_contract_while_one_checkpoint_follows_the_other() {
    let mut folders = Vec::new();
    contract::run_all(|| {
        let folder = TempDir::new().expect("a folder");
        let options = SledOptions { journal_bytes: 1, ..SledOptions::default() };
        let index = Arc::new(SledIndex::open(folder.path(), options).expect("the folder is free"));
        folders.push(folder);
        async move { index as Subject }
    })
    .await;
}

#[tokio::test]
async fn rows_that_are_only_in_the_journal_are_there_when_the_folder_is_opened_again() {
    let folder = TempDir::new().expect("a folder");
    for n in 0..6 {
        let index = open(&folder);
        index.record(&tenant(), vec![event(n)]).await.expect("a record");
        if n == 3 {
            index.seal_audit(100).await.expect("a sealed log");
        }
        let in_tree = index.core.base.tree().scan_prefix(Key::space(Space::Waiting).as_bytes()).next();
        assert!(n > 0 || in_tree.is_none(), "nothing goes into the tree before its time");
        crash(&index);
    }

    let index = open(&folder);
    index.seal_audit(100).await.expect("a sealed log");
    let log = index.audit_rows(&tenant(), 0, 100).await.expect("the log");
    assert_eq!(log.iter().map(|row| row.event.at.as_second()).collect::<Vec<_>>(), (0..6).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_index_whose_journal_is_damaged_or_gone_says_so_and_does_not_open() {
    let folder = TempDir::new().expect("a folder");
    let index = open(&folder);
    for n in 0..3 {
        index.record(&tenant(), vec![event(n)]).await.expect("a record");
    }
    crash(&index);
    drop(index);
    let journal = folder.path().join("journal-1");
    let whole = std::fs::read(&journal).expect("the journal");
    let mut damaged = whole.clone();
    damaged[540] ^= 1;
    let refused = || SledIndex::open(folder.path(), SledOptions::default()).expect_err("a journal that lost rows");

    std::fs::write(&journal, damaged).expect("a file");
    assert!(refused().to_string().contains("the journal is damaged: journal-1 at byte 512"), "{}", refused());
    std::fs::write(&journal, whole).expect("a file");
    drop(open(&folder));
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.display().to_string().contains("/journal-") {
            std::fs::remove_file(path).expect("a file");
        }
    }
    assert!(refused().to_string().contains("it ends before record"), "{}", refused());
}

#[tokio::test]
async fn a_dropped_asset_leaves_no_rows_of_its_own() {
    let folder = TempDir::new().expect("a folder");
    let index = Arc::new(open(&folder));
    contract::an_asset_comes_and_goes(index.clone()).await;

    use Space::{
        AssetRuns, Assets, Blobs, Condemned, Digests, Doomed, Holds, Looks, Reserved, RunAssets, Same, Uploads,
    };
    for space in
        [Assets, RunAssets, AssetRuns, Looks, Blobs, Digests, Same, Holds, Uploads, Reserved, Condemned, Doomed]
    {
        let rows: Vec<_> = index.core.rows().scan(&Key::space(space)).collect::<Result<_, _>>().expect("the rows");
        assert!(rows.is_empty(), "{space:?}: {rows:?}");
    }
}

mod earlier;
mod extended;
mod killed;
