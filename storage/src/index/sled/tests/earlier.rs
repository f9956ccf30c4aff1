//! What earlier versions have written.

use super::super::packed::Row;
use super::super::rows;
use super::*;
use crate::ids::{BlobKey, RunId};
use crate::index::{Ends, Runs};
use crate::quota::{Counted, Quota, Usage};
use crate::record::UploadIntent;

#[tokio::test]
async fn a_use_that_an_earlier_version_did_not_keep_is_counted() {
    let folder = TempDir::new().expect("a folder");
    let ids = contract::two_assets_of_equal_bytes(Arc::new(open(&folder))).await;
    let raw = raw(&folder);
    let kept = raw.remove(Key::of(Space::Usage, &tenant()).as_bytes()).expect("a row is removed");
    assert!(kept.is_some(), "else this test shows nothing");
    drop(raw);

    let index = open_again(&folder);
    let usage = index.usage(&tenant()).await.expect("a count");
    assert_eq!((usage.bytes, usage.assets), (10, 2));
    let audit = AuditEvent::new(AuditKind::Erase, "host", Timestamp::UNIX_EPOCH);
    index.erase(&tenant(), ids[0], &contract::terms(), audit, Timestamp::UNIX_EPOCH).await.expect("an erasure");
    let usage = index.usage(&tenant()).await.expect("a sum");
    assert_eq!((usage.bytes, usage.assets), (5, 1));
}

/// The row as a version wrote it that did not know these members, nor any way but JSON.
fn as_an_earlier_version_wrote_it<T: Row + serde::Serialize>(raw: &[u8], unknown: &[&str]) -> Vec<u8> {
    fn forget(row: &mut serde_json::Value, unknown: &[&str]) {
        let Some(members) = row.as_object_mut() else {
            return;
        };
        unknown.iter().for_each(|name| drop(members.remove(*name)));
        members.values_mut().for_each(|member| forget(member, unknown));
    }
    let mut row = serde_json::to_value(T::read("row", raw).expect("our own row reads")).expect("a row is JSON");
    forget(&mut row, unknown);
    [&[1], row.to_string().as_bytes()].concat()
}

/// sled alone, on what the index has left.
fn raw(folder: &TempDir) -> ::sled::Db {
    std::iter::repeat_with(|| ::sled::open(folder.path())).find_map(Result::ok).expect("an endless iterator")
}

fn open_again(folder: &TempDir) -> SledIndex {
    std::iter::repeat_with(|| SledIndex::open(folder.path(), SledOptions::default()))
        .find_map(Result::ok)
        .expect("an endless iterator")
}

/// Writes all rows of a space as they were.
fn take_back<T: Row + serde::Serialize>(db: &::sled::Db, space: Space, unknown: &[&str]) {
    for row in db.scan_prefix(Key::space(space).as_bytes()).collect::<Vec<_>>() {
        let (key, raw) = row.expect("a row");
        db.insert(key, as_an_earlier_version_wrote_it::<T>(&raw, unknown)).expect("a row is written");
    }
}

#[tokio::test]
async fn a_reservation_of_an_earlier_version_counts_until_its_upload_ends() {
    let folder = TempDir::new().expect("a folder");
    let index = open(&folder);
    let blob = BlobKey::generate();
    let intent = UploadIntent { blob, alive_at: Timestamp::UNIX_EPOCH, asset: None };
    index.begin_reserved(&tenant(), intent, 10, Quota::NONE).await.expect("a reservation");
    drop(index);
    let earlier = raw(&folder);
    take_back::<rows::BlobEntry>(&earlier, Space::Blobs, &["reserved"]);
    take_back::<rows::Sum>(&earlier, Space::Usage, &["reserved_bytes", "reserved_assets"]);
    let mut reserved = Key::blob(&tenant(), blob).into_bytes();
    reserved[0] = Space::Reserved as u8;
    earlier.insert(reserved, &10u64.to_be_bytes()).expect("a row is written");
    drop(earlier);

    for _ in 0..2 {
        let usage = open_again(&folder).usage(&tenant()).await.expect("a sum");
        assert_eq!((usage.reserved_bytes, usage.reserved_assets), (10, 1));
    }
    let index = open(&folder);
    index.end_upload(&tenant(), blob).await.expect("a withdrawal");
    let usage = index.counted_usage(&tenant()).await.expect("a count");
    assert_eq!(usage, Counted { kept: Usage::default(), counted: Usage::default() });
    assert!(index.core.rows().scan(&Key::space(Space::Reserved)).next().is_none());
}

#[tokio::test]
async fn an_index_of_the_first_layout_is_brought_up_to_date() {
    let folder = TempDir::new().expect("a folder");
    let ids = contract::two_assets_of_equal_bytes(Arc::new(open(&folder))).await;
    let first = raw(&folder);
    let unknown = ["claim", "holds", "fork_of", "erased_at"];
    take_back::<rows::AssetRow>(&first, Space::Assets, &unknown);
    take_back::<rows::RunRow>(&first, Space::Runs, &unknown);
    for row in first.scan_prefix(Key::space(Space::Same).as_bytes()).collect::<Vec<_>>() {
        first.remove(row.expect("a row").0).expect("a row is removed");
    }
    first.insert(Key::space(Space::Meta).as_bytes(), &[1]).expect("a row is written");
    drop(first);

    for _ in 0..2 {
        let index = open_again(&folder);
        let same = index.same_bytes(&tenant(), ids[0], None, 9).await.expect("a list");
        assert_eq!(same, [ids[1]]);
        let run = RunId::parse("run-1").expect("a run");
        let run = index.find_run(&tenant(), &run).await.expect("an answer").expect("the run has a row");
        assert_eq!((run.fork_of, run.erased_at), (None, None));
    }
}
