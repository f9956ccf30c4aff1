//! Blobs that are put in one piece, and what may lie where they belong.

use super::remote::{bucket, misbehave, try_put, whole};
use super::*;
use crate::testing::What;

#[tokio::test]
async fn what_lies_at_the_key_of_a_blob_is_not_written_over() {
    let (folder, _server, store) = bucket();
    for (there, ours) in [(&b"older"[..], &b"newer"[..]), (b"old", b"newer"), (b"older", b"new")] {
        let blob = BlobKey::generate();
        let file = folder.path().join("media").join(blob_path(&acme(), blob).as_ref());
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(&file, there).expect("a file");

        let refused = try_put(&store, blob, ours).await;

        assert!(matches!(refused, Err(StorageError::Corrupt { store: "store", .. })), "{refused:?}");
        assert_eq!(std::fs::read(&file).expect("a file"), there);
    }
}

#[tokio::test]
async fn a_put_that_was_lost_on_its_way_is_put_again() {
    let (_folder, server, store) = bucket();
    let blob = BlobKey::generate();
    misbehave(&server, "PUT", "/b/", 2, What::Drop);

    try_put(&store, blob, b"bytes").await.expect("put at the third time");

    assert_eq!(whole(&store, blob, 5).await.expect("the bytes"), b"bytes");
    assert!(server.behaves());
}

#[tokio::test]
async fn a_put_of_which_nothing_can_be_heard_is_no_success() {
    let (_folder, server, store) = bucket();
    misbehave(&server, "PUT", "/b/", 1, What::LoseAnswer);
    misbehave(&server, "GET", "/b/", 1, What::Refuse(403));

    let refused = try_put(&store, BlobKey::generate(), b"bytes").await;

    assert!(matches!(refused, Err(StorageError::Unavailable { store: "store", .. })), "{refused:?}");
    assert!(server.behaves());
}

#[tokio::test]
async fn a_put_that_never_arrives_is_given_up() {
    let (_folder, server, store) = bucket();
    misbehave(&server, "PUT", "/b/", 1_000, What::Drop);

    let refused = try_put(&store, BlobKey::generate(), b"bytes").await;

    assert!(matches!(refused, Err(StorageError::Unavailable { store: "store", .. })), "{refused:?}");
    assert!(all(&store).await.is_empty());
}

#[tokio::test]
async fn a_store_that_knows_no_conditions_is_asked_without() {
    let (_folder, server, _) = bucket();
    let mut options = server.options();
    options.environment.push(("AWS_CONDITIONAL_PUT".to_owned(), "disabled".to_owned()));
    let store = BlobStore::open(&Url::parse("s3://media").expect("an address"), &options).expect("a store");
    let blob = BlobKey::generate();

    for bytes in [b"older", b"newer"] {
        try_put(&store, blob, bytes).await.expect("put over what lies there");
    }

    assert_eq!(whole(&store, blob, 5).await.expect("the bytes"), b"newer");
}

#[tokio::test]
async fn a_store_that_refuses_the_condition_is_asked_without_from_then_on() {
    let (_folder, server, store) = bucket();
    misbehave(&server, "PUT", "/b/", 7, What::Refuse(501));

    let (first, second) = (BlobKey::generate(), BlobKey::generate());
    try_put(&store, first, b"bytes").await.expect("put without");
    assert!(server.behaves(), "the client tries seven times");
    try_put(&store, second, b"older").await.expect("put");
    try_put(&store, second, b"newer").await.expect("put over what lies there");

    assert_eq!(whole(&store, first, 5).await.expect("the bytes"), b"bytes");
    assert_eq!(whole(&store, second, 5).await.expect("the bytes"), b"newer");
}
