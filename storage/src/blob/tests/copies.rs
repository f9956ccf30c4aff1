//! Stores that are copied to others.

use super::*;
use crate::blob::Copied;

/// A store with a blob of three million bytes.
async fn source() -> (BlobStore, Stored) {
    let (from, blob) = (in_memory(), BlobKey::generate());
    put(&from, blob, &vec![7; 3_000_000], 100_000).await;
    let stored: Vec<Stored> = from.blobs_of(&acme()).try_collect().await.expect("a list");
    (from, stored[0].clone())
}

#[tokio::test]
async fn a_copy_that_was_cut_off_is_taken_back_and_made_again() {
    for (home, to) in stores() {
        let (from, stored) = source().await;
        // The process died while it wrote: nobody aborted.
        let mut staging = to.stage(&acme(), stored.blob);
        for _ in 0..20 {
            staging.write(Bytes::from(vec![9; 1 << 20])).await.expect("room");
        }
        while to.unsealed().try_next().await.expect("a list").is_none() {
            tokio::task::yield_now().await;
        }
        drop(staging);

        to.forget_halves().await.expect("taken back");

        assert!(matches!(from.copy_blob(&to, &stored).await, Ok(Copied::Now(_))));
        assert_eq!(to.size(&acme(), stored.blob).await.expect("an answer"), Some(3_000_000));
        home.has_no_litter();
    }
}

#[tokio::test]
async fn a_record_that_was_written_anew_is_copied_anew() {
    let run = RunId::parse("run-1").expect("a run");
    for (_home, to) in stores() {
        let (from, _) = source().await;
        for json in ["one", "two"] {
            from.put_record(&acme(), RecordOf::Run(&run), 1, json.into()).await.expect("written");
            assert_eq!(from.copy_records(&to, &acme()).await.expect("copied"), 1);
            let copied = to.newest_record(&acme(), RecordOf::Run(&run)).await.expect("a record");
            assert_eq!(copied.as_deref(), Some(json.as_bytes()));
        }
    }
}

#[tokio::test]
async fn what_is_no_copy_makes_way_for_one() {
    for (_home, to) in stores() {
        let (from, stored) = source().await;
        put(&to, stored.blob, b"another", 7).await;

        assert!(matches!(from.copy_blob(&to, &stored).await, Ok(Copied::Now(_))));
        assert_eq!(to.size(&acme(), stored.blob).await.expect("an answer"), Some(stored.bytes));
    }
}
