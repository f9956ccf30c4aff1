//! Every kind of store does the same.

use futures_util::TryStreamExt;

use super::*;
use crate::ids::RunId;
use crate::record::ReferenceRecord;
use crate::testing::Buckets;

mod copies;
mod google;
mod remote;
mod whole;

/// A store of each kind, and what it lives as long as.
fn stores() -> Vec<(Home, BlobStore)> {
    let ((folder, local), buckets) = (in_files(), tempfile::tempdir().expect("a folder"));
    std::fs::create_dir(buckets.path().join("media")).expect("a bucket");
    let server = Buckets::serve(buckets.path());
    let bucket = Url::parse("s3://media/in/here").expect("an address");
    let remote = BlobStore::open(&bucket, &server.options()).expect("a store in a bucket");
    vec![(Home::Folder(folder), local), (Home::Memory, in_memory()), (Home::Bucket(buckets, server), remote)]
}

#[expect(dead_code, reason = "a home is there to be held")]
enum Home {
    Folder(tempfile::TempDir),
    Memory,
    Bucket(tempfile::TempDir, Buckets),
}

impl Home {
    /// Nothing that is still being written lies there.
    fn has_no_litter(&self) {
        let left = |folder: &std::path::Path| {
            let names = std::fs::read_dir(folder).into_iter().flatten();
            names.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>()
        };
        match self {
            Self::Folder(folder) => assert!(left(&folder.path().join("staging")).is_empty()),
            Self::Memory => (),
            Self::Bucket(folder, _) => {
                assert!(left(&folder.path().join("media/in/here/staging")).is_empty());
                // Parts of uploads lie beside the buckets.
                let parts = left(folder.path());
                assert!(!parts.iter().any(|name| name.to_string_lossy().starts_with(".upload")), "{parts:?}");
            }
        }
    }
}

fn in_files() -> (tempfile::TempDir, BlobStore) {
    let folder = tempfile::tempdir().expect("a folder");
    let address = Url::from_directory_path(folder.path()).expect("an absolute path");
    let store = BlobStore::open(&address, &StoreOptions::default()).expect("a local store");
    (folder, store)
}

fn in_memory() -> BlobStore {
    let address = Url::parse("memory:").expect("an address");
    BlobStore::open(&address, &StoreOptions::default()).expect("a store in memory")
}

fn acme() -> TenantId {
    TenantId::parse("acme").expect("a tenant")
}

async fn put(store: &BlobStore, blob: BlobKey, bytes: &[u8], chunk: usize) -> Sealed {
    let mut staging = store.stage(&acme(), blob);
    for piece in bytes.chunks(chunk) {
        staging.write(Bytes::copy_from_slice(piece)).await.expect("room");
    }
    staging.seal().await.expect("sealed")
}

async fn all(store: &BlobStore) -> Vec<BlobKey> {
    store.blobs().map_ok(|stored| stored.blob).try_collect().await.expect("a list")
}

#[tokio::test]
async fn what_was_sealed_comes_back() {
    for (_home, store) in stores() {
        let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
        let blob = BlobKey::generate();

        let sealed = put(&store, blob, &bytes, 70_001).await;

        let hash = digest_of(&bytes);
        assert_eq!(sealed, Sealed { bytes: bytes.len() as u64, sha256: hash });
        let opened = store.open_blob(&acme(), blob, sealed.bytes).await.expect("a blob");
        let whole: Vec<Bytes> = opened.stream(0..sealed.bytes).try_collect().await.expect("the bytes");
        assert_eq!(whole.concat(), bytes);
        let part = opened.read(1_000_000..1_000_017).await.expect("a range");
        assert_eq!(part[..], bytes[1_000_000..1_000_017]);
        assert_eq!(all(&store).await, [blob]);
    }
}

#[tokio::test]
async fn an_aborted_blob_leaves_nothing() {
    for (home, store) in stores() {
        let blob = BlobKey::generate();
        let mut staging = store.stage(&acme(), blob);
        staging.write(Bytes::from(vec![1; 20 * 1024 * 1024])).await.expect("room");

        staging.abort().await.expect("aborted");

        assert!(all(&store).await.is_empty());
        home.has_no_litter();
    }
}

#[tokio::test]
async fn removing_takes_staged_and_sealed_bytes_and_may_be_repeated() {
    for (home, store) in stores() {
        let (sealed, staged) = (BlobKey::generate(), BlobKey::generate());
        put(&store, sealed, b"sealed", 6).await;
        let mut staging = store.stage(&acme(), staged);
        staging.write(Bytes::from(vec![1; 2 * 1024 * 1024])).await.expect("room");
        drop(staging);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;

        for blob in [sealed, staged, sealed] {
            store.remove(&acme(), blob).await.expect("removed");
        }

        assert!(all(&store).await.is_empty());
        home.has_no_litter();
    }
}

#[tokio::test]
async fn a_blob_that_is_too_short_ends_in_an_error() {
    for (_home, store) in stores() {
        let blob = BlobKey::generate();
        put(&store, blob, b"short", 5).await;

        // Files say so at once, an object store when it is read.
        let Ok(opened) = store.open_blob(&acme(), blob, 500).await else {
            continue;
        };
        let read: Result<Vec<Bytes>, _> = opened.stream(0..500).try_collect().await;

        assert!(read.is_err());
    }
}

#[tokio::test]
async fn bytes_that_were_lost_are_put_again_and_the_fresh_ones_may_go() {
    for (home, store) in stores() {
        for left in [None, Some(b"0123")] {
            let (lost, fresh) = (BlobKey::generate(), BlobKey::generate());
            if let Some(left) = left {
                put(&store, lost, left, 4).await;
            }
            put(&store, fresh, b"0123456789", 4).await;

            store.put_again(&acme(), fresh, lost).await.expect("put again");
            store.remove(&acme(), fresh).await.expect("removed");

            let opened = store.open_blob(&acme(), lost, 10).await.expect("a blob");
            assert_eq!(opened.read(0..10).await.expect("the bytes")[..], b"0123456789"[..]);
            assert_eq!(all(&store).await, [lost]);
            store.remove(&acme(), lost).await.expect("removed");
        }
        home.has_no_litter();
    }
}

#[tokio::test]
async fn a_reader_reads_and_seeks() {
    use std::io::{Read, Seek, SeekFrom};
    for (_home, store) in stores() {
        let blob = BlobKey::generate();
        put(&store, blob, b"0123456789", 3).await;
        let opened = store.open_blob(&acme(), blob, 10).await.expect("a blob");

        let mut reader = opened.reader();
        let text = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            reader.seek(SeekFrom::End(-4))?;
            reader.read_to_string(&mut text)?;
            std::io::Result::Ok(text)
        });

        assert_eq!(text.await.expect("no panic").expect("the bytes"), "6789");
    }
}

#[tokio::test]
async fn of_recovery_records_the_newest_counts() {
    for (_home, store) in stores() {
        let run = RunId::parse("Run:1").expect("a run");
        let of = RecordOf::Run(&run);
        for revision in [1, 10, 9] {
            let json = format!("{revision}").into_bytes();
            store.put_record(&acme(), of, revision, json).await.expect("written");
        }

        let newest = store.newest_record(&acme(), of).await.expect("a record");
        assert_eq!(newest.as_deref(), Some(&b"10"[..]));
        assert!(all(&store).await.is_empty(), "a record is no blob");

        store.remove_records(&acme(), of, None).await.expect("removed");
        assert_eq!(store.newest_record(&acme(), of).await.expect("no record"), None);
    }
}

#[tokio::test]
async fn what_a_crash_left_half_written_goes_with_the_next_write_of_the_same_thing() {
    let (folder, store) = in_files();
    let folder = folder.path();
    let run = RunId::parse("run-1").expect("a run");
    let (of, at) = (RecordOf::Run(&run), folder.join("t").join(acme().prefix()).join("r/r").join(text_prefix("run-1")));
    let left = |names: &[&str]| {
        std::fs::create_dir_all(&at).expect("a folder");
        names.iter().for_each(|name| std::fs::write(at.join(name), b"{\"half").expect("a file"));
    };
    let there = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&at).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        names
    };
    let [one, two, three] = [1, 2, 3].map(|revision| format!("{revision:020}.json"));
    left(&[&format!("{one}#1"), &format!("{two}#1"), &format!("{two}#2"), &format!("{three}#1")]);

    store.put_record(&acme(), of, 2, b"{}".to_vec()).await.expect("written");
    store.remove_records(&acme(), of, Some(2)).await.expect("removed");

    assert_eq!(there(), [&*two, &*format!("{three}#1")], "what a later write is at stays");
}

#[tokio::test]
async fn two_who_write_one_record_at_once_both_do() {
    let (folder, store) = in_files();
    let run = RunId::parse("run-1").expect("a run");
    let writing = (0..200).map(|_| async {
        store.put_record(&acme(), RecordOf::Run(&run), 1, vec![b'1'; 2_000]).await?;
        store.remove_records(&acme(), RecordOf::Run(&run), Some(1)).await
    });
    for written in futures_util::future::join_all(writing).await {
        written.expect("written, whoever else did");
    }
    let newest = store.newest_record(&acme(), RecordOf::Run(&run)).await.expect("a store");
    assert_eq!(newest.map(|record| record.len()), Some(2_000));
    drop(folder);
}

#[tokio::test]
async fn what_a_run_quotes_is_recorded_once() {
    for (_home, store) in stores() {
        let run = RunId::parse("Run:1").expect("a run");
        let at = Timestamp::from_second(1_800_000_000).expect("a time in range");
        let [one, other] = [crate::AssetId::generate(at), crate::AssetId::generate(at)];
        for assets in [vec![one], vec![one, other], vec![one]] {
            let record = ReferenceRecord { run: run.clone(), assets, at };
            store.put_references(&acme(), &record).await.expect("written");
        }

        let mut records = store.references(&acme(), &run).await.expect("the records");
        records.sort_by_key(|record| record.assets.len());
        let assets: Vec<_> = records.into_iter().map(|record| record.assets).collect();
        assert_eq!(assets, [vec![one], vec![one, other]]);
        let nothing = store.references(&acme(), &RunId::parse("run:1").expect("a run")).await;
        assert_eq!(nothing.expect("an answer"), []);
    }
}

fn digest_of(bytes: &[u8]) -> Digest {
    let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
    Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes"))
}
