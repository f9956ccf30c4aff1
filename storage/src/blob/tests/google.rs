//! A bucket by the protocol of Google Cloud Storage.

use super::remote::{LARGE, misbehave, parts, pattern, try_put, whole};
use super::*;
use crate::testing::What;

fn bucket() -> (tempfile::TempDir, Buckets, BlobStore) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("media")).expect("a bucket");
    let server = Buckets::serve_google(folder.path());
    let options = StoreOptions { environment: server.google_environment(), ..StoreOptions::default() };
    let address = Url::parse("gs://media/of/ours").expect("an address");
    let store = BlobStore::open(&address, &options).expect("a store");
    (folder, server, store)
}

#[tokio::test]
async fn blobs_of_one_part_and_of_several_are_kept_listed_and_removed() {
    let (folder, _server, store) = bucket();
    for length in [5, LARGE] {
        let blob = BlobKey::generate();
        let sealed = try_put(&store, blob, &pattern(length)).await.expect("put");
        assert_eq!(sealed, Sealed { bytes: length as u64, sha256: digest_of(&pattern(length)) });
        assert!(whole(&store, blob, length).await.expect("the bytes") == pattern(length));
        assert_eq!(store.size(&acme(), blob).await.expect("an answer"), Some(length as u64));
        assert_eq!(all(&store).await, [blob]);

        store.remove(&acme(), blob).await.expect("removed");

        assert!(all(&store).await.is_empty());
    }
    assert_eq!(parts(&folder), 0);
}

#[tokio::test]
async fn what_lies_at_the_key_of_a_blob_is_not_written_over_and_a_lost_answer_is_looked_into() {
    let (_folder, server, store) = bucket();
    let blob = BlobKey::generate();
    misbehave(&server, "PUT", "%2Fb%2F", 1, What::LoseAnswer);
    try_put(&store, blob, b"older").await.expect("it is there");
    assert!(server.behaves());

    let refused = try_put(&store, blob, b"newer").await;

    assert!(matches!(refused, Err(StorageError::Corrupt { store: "store", .. })), "{refused:?}");
    assert_eq!(whole(&store, blob, 5).await.expect("the bytes"), b"older");
}

#[tokio::test]
async fn an_upload_that_fails_or_whose_process_died_leaves_no_part() {
    let (folder, server, store) = bucket();
    misbehave(&server, "PUT", "partNumber=2", 1_000, What::Refuse(403));
    assert!(try_put(&store, BlobKey::generate(), &pattern(LARGE)).await.is_err());
    assert_eq!(parts(&folder), 0);
    server.behave();

    let blob = BlobKey::generate();
    let mut staging = store.stage(&acme(), blob);
    staging.write(Bytes::from(pattern(LARGE))).await.expect("room");
    drop(staging);
    assert!(parts(&folder) > 0);
    store.remove(&acme(), blob).await.expect("removed");

    assert_eq!(parts(&folder), 0);
}
