//! A store over the network that does not do what it is asked, or says nothing of it.

use super::*;
use crate::testing::{Misdeed, What};

/// A part of an upload.
const PART: usize = 8 << 20;

/// More than two of them.
pub(super) const LARGE: usize = 20 << 20;

pub(super) fn bucket() -> (tempfile::TempDir, Buckets, BlobStore) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("media")).expect("a bucket");
    let server = Buckets::serve(folder.path());
    let address = Url::parse("s3://media").expect("an address");
    let store = BlobStore::open(&address, &server.options()).expect("a store");
    (folder, server, store)
}

pub(super) fn misbehave(server: &Buckets, method: &'static str, names: &'static str, times: usize, what: What) {
    server.misbehave(Misdeed { method, names, times, what });
}

/// Parts of uploads that nobody completed, as the server keeps them.
pub(super) fn parts(folder: &tempfile::TempDir) -> usize {
    let names = std::fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    names.filter(|name| name.to_string_lossy().starts_with(".upload")).count()
}

pub(super) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n % 251) as u8).collect()
}

pub(super) async fn try_put(store: &BlobStore, blob: BlobKey, bytes: &[u8]) -> Result<Sealed, StorageError> {
    let mut staging = store.stage(&acme(), blob);
    for piece in bytes.chunks(1 << 20) {
        if let Err(error) = staging.write(Bytes::copy_from_slice(piece)).await {
            let _ = staging.abort().await;
            return Err(error);
        }
    }
    staging.seal().await
}

pub(super) async fn whole(store: &BlobStore, blob: BlobKey, bytes: usize) -> Result<Vec<u8>, StorageError> {
    let opened = store.open_blob(&acme(), blob, bytes as u64).await?;
    let chunks: Vec<Bytes> = opened.stream_now(0..bytes as u64).await?.try_collect().await?;
    Ok(chunks.concat())
}

#[tokio::test]
async fn a_store_that_refuses_for_a_moment_is_asked_again() {
    let (_folder, server, store) = bucket();
    let blob = BlobKey::generate();
    misbehave(&server, "PUT", "/b/", 2, What::Refuse(503));
    misbehave(&server, "GET", "/b/", 1, What::Refuse(429));
    misbehave(&server, "GET", "/b/", 1, What::Drop);

    try_put(&store, blob, b"bytes").await.expect("put at the third time");
    let read = whole(&store, blob, 5).await.expect("read at the third time");

    assert_eq!(read, b"bytes");
    assert!(server.behaves());
}

#[tokio::test]
async fn a_store_that_goes_on_refusing_is_said_to_be_unavailable() {
    let (_folder, server, store) = bucket();
    misbehave(&server, "PUT", "/b/", 1_000, What::Refuse(503));

    let refused = try_put(&store, BlobKey::generate(), b"bytes").await;

    assert!(matches!(refused, Err(StorageError::Unavailable { store: "store", .. })), "{refused:?}");
    assert!(all(&store).await.is_empty());
}

#[tokio::test]
async fn a_put_whose_answer_is_lost_is_one_object_and_a_success() {
    let (_folder, server, store) = bucket();
    let blob = BlobKey::generate();
    misbehave(&server, "PUT", "/b/", 1, What::LoseAnswer);

    try_put(&store, blob, b"bytes").await.expect("it is there");

    assert_eq!(all(&store).await, [blob]);
    assert!(server.behaves());
}

#[tokio::test]
async fn parts_whose_completion_is_not_heard_of_are_one_object_and_a_success() {
    let (folder, server, store) = bucket();
    let (blob, bytes) = (BlobKey::generate(), pattern(LARGE));
    misbehave(&server, "POST", "uploadId=", 1, What::LoseAnswer);

    let sealed = try_put(&store, blob, &bytes).await.expect("the object is there");

    assert_eq!(sealed, Sealed { bytes: LARGE as u64, sha256: digest_of(&bytes) });
    assert_eq!(all(&store).await, [blob]);
    assert_eq!(whole(&store, blob, LARGE).await.expect("the bytes"), bytes);
    assert_eq!(parts(&folder), 0);
    assert!(server.behaves());
}

#[tokio::test]
async fn parts_that_are_not_completed_are_no_success_and_leave_nothing() {
    let (folder, server, store) = bucket();
    misbehave(&server, "POST", "uploadId=", 1_000, What::Refuse(503));

    let refused = try_put(&store, BlobKey::generate(), &pattern(LARGE)).await;

    assert!(matches!(refused, Err(StorageError::Unavailable { .. })), "{refused:?}");
    assert!(all(&store).await.is_empty());
    assert_eq!(parts(&folder), 0);
}

#[tokio::test]
async fn a_part_that_is_refused_for_good_ends_the_upload_and_leaves_nothing() {
    let (folder, server, store) = bucket();
    misbehave(&server, "PUT", "partNumber=2", 1_000, What::Refuse(403));

    let refused = try_put(&store, BlobKey::generate(), &pattern(LARGE)).await;

    assert!(refused.is_err());
    assert!(all(&store).await.is_empty());
    assert_eq!(parts(&folder), 0);
}

#[tokio::test]
async fn what_a_failed_write_has_lost_is_never_sealed_without_it() {
    let (folder, server, store) = bucket();
    misbehave(&server, "PUT", "partNumber=3", 1_000, What::Refuse(403));
    let mut staging = store.stage(&acme(), BlobKey::generate());
    let mut written = Ok(());
    for _ in 0..8 {
        written = written.and(staging.write(Bytes::from(pattern(PART))).await);
    }

    assert!(written.is_err() && staging.write(Bytes::from(pattern(PART))).await.is_err());
    assert!(staging.seal().await.is_err(), "two parts of eight are no blob");
    assert!(all(&store).await.is_empty());
    assert_eq!(parts(&folder), 0);
}

#[tokio::test]
async fn what_was_lost_with_a_write_that_nobody_waited_for_is_not_sealed_without_it() {
    let (folder, _server, store) = bucket();
    let mut staging = store.stage(&acme(), BlobKey::generate());
    let mut write = Box::pin(staging.write(Bytes::from(pattern(4 * PART))));
    assert!(futures_util::poll!(&mut write).is_pending());
    drop(write);

    assert!(staging.seal().await.is_err());
    assert!(all(&store).await.is_empty());
    assert_eq!(parts(&folder), 0);
}

#[tokio::test]
async fn blobs_of_one_part_more_and_less_are_whole() {
    let (folder, _server, store) = bucket();
    for length in [PART - 1, PART, PART + 1, 2 * PART] {
        let blob = BlobKey::generate();
        let sealed = try_put(&store, blob, &pattern(length)).await.expect("put");
        assert_eq!(sealed, Sealed { bytes: length as u64, sha256: digest_of(&pattern(length)) });
        assert!(whole(&store, blob, length).await.expect("the bytes") == pattern(length), "{length}");
    }
    assert_eq!(parts(&folder), 0);
}

#[tokio::test]
async fn what_is_too_large_to_be_copied_by_the_store_is_copied_in_parts_over_what_is_left_of_it() {
    let (folder, _server, store) = bucket();
    let (fresh, lost) = (BlobKey::generate(), BlobKey::generate());
    try_put(&store, fresh, &pattern(LARGE)).await.expect("put");
    try_put(&store, lost, &pattern(2 * PART)).await.expect("put");

    store.copy_in_parts(&acme(), fresh, lost, LARGE as u64).await.expect("copied");

    assert!(whole(&store, lost, LARGE).await.expect("the bytes") == pattern(LARGE));
    assert_eq!(parts(&folder), 0);
    let gone = store.copy_in_parts(&acme(), BlobKey::generate(), lost, LARGE as u64).await;
    assert!(matches!(gone, Err(StorageError::NoSuchBlob)), "{gone:?}");
    assert!(whole(&store, lost, LARGE).await.expect("the bytes") == pattern(LARGE), "it is as it was");
}

#[tokio::test]
async fn an_upload_whose_process_died_is_aborted_when_its_blob_is_removed() {
    let (folder, _server, store) = bucket();
    let blob = BlobKey::generate();
    let mut staging = store.stage(&acme(), blob);
    staging.write(Bytes::from(pattern(LARGE))).await.expect("room");
    drop(staging);
    assert!(parts(&folder) > 0);

    store.remove(&acme(), blob).await.expect("removed");

    assert_eq!(parts(&folder), 0);
    assert!(
        !folder.path().join("media/staging").exists()
            || std::fs::read_dir(folder.path().join("media/staging")).expect("a folder").next().is_none()
    );
}

#[tokio::test]
async fn a_download_that_breaks_off_goes_on_where_it_stopped() {
    let (_folder, server, store) = bucket();
    let (blob, bytes) = (BlobKey::generate(), pattern(3 << 20));
    try_put(&store, blob, &bytes).await.expect("put");
    misbehave(&server, "GET", "/b/", 1, What::CutAfter(1_000_000));

    let read = whole(&store, blob, bytes.len()).await.expect("the bytes");

    assert!(read == bytes);
    assert!(server.behaves());
}

#[tokio::test]
async fn a_blob_that_the_store_has_lost_is_said_to_be_gone_before_the_first_byte() {
    let (_folder, _server, store) = bucket();

    let opened = store.open_blob(&acme(), BlobKey::generate(), 5).await.expect("nothing is asked yet");

    assert!(matches!(opened.stream_now(0..5).await, Err(StorageError::NoSuchBlob)));
}

#[tokio::test]
async fn a_bucket_of_more_than_a_page_is_listed_to_its_end() {
    let (_folder, _server, store) = bucket();
    let put = (0..1_050).map(|_| async { try_put(&store, BlobKey::generate(), b"bytes").await.map(drop) });
    let put: Vec<_> = futures_util::stream::iter(put).buffer_unordered(16).try_collect().await.expect("put");

    assert_eq!((put.len(), all(&store).await.len()), (1_050, 1_050));
}

#[tokio::test]
async fn a_prefix_may_have_whatever_an_address_may() {
    let (folder, server, _) = bucket();
    let address = Url::parse("s3://media/of%20ours/%C3%BC+x=1&y/~(1)'%25").expect("an address");
    let store = BlobStore::open(&address, &server.options()).expect("a store");
    for length in [5, LARGE] {
        let blob = BlobKey::generate();
        try_put(&store, blob, &pattern(length)).await.expect("put");
        assert!(whole(&store, blob, length).await.expect("the bytes") == pattern(length));
        assert_eq!(all(&store).await, [blob]);
        store.remove(&acme(), blob).await.expect("removed");
    }
    assert_eq!((all(&store).await.len(), parts(&folder)), (0, 0));
}

#[tokio::test]
async fn an_abort_that_was_not_confirmed_is_counted_and_told_to_whoever_asked_for_it() {
    let (folder, server, store) = bucket();
    misbehave(&server, "PUT", "staging/", 1_000, What::Refuse(403));
    misbehave(&server, "DELETE", "uploadId=", 1, What::Refuse(403));
    let blob = BlobKey::generate();
    let mut staging = store.stage(&acme(), blob);
    assert!(staging.write(Bytes::from(pattern(LARGE))).await.is_err());
    assert!(staging.abort().await.is_err(), "and so whoever announced it does not withdraw that");
    assert_eq!((store.unconfirmed_aborts(), parts(&folder) > 0), (1, true));

    let refused = try_put(&store, BlobKey::generate(), &pattern(LARGE)).await;

    assert!(refused.is_err());
    assert_eq!(store.unconfirmed_aborts(), 1, "the second was aborted");
}

#[tokio::test]
async fn an_upload_that_was_begun_while_its_sender_went_away_is_aborted() {
    let (folder, server, store) = bucket();
    misbehave(&server, "POST", "uploads", 1, What::Late(std::time::Duration::from_millis(300)));
    let mut staging = store.stage(&acme(), BlobKey::generate());
    let write = staging.write(Bytes::from(pattern(LARGE)));
    assert!(tokio::time::timeout(std::time::Duration::from_millis(100), write).await.is_err());

    staging.abort().await.expect("aborted");

    assert_eq!(parts(&folder), 0);
    assert!(store.unsealed().try_next().await.expect("a list").is_none());
}

#[test]
fn an_address_with_more_than_bucket_and_prefix_and_plain_http_unasked_are_refused() {
    let address = |text: &str| Url::parse(text).expect("an address");
    for wrong in ["s3://user:hunter2@media/x", "s3://media:9000/x", "s3://media/x?region=eu", "s3:///x", "ftp://media"]
    {
        let refused = BlobStore::open(&address(wrong), &StoreOptions::default()).expect_err(wrong).to_string();
        assert!(!refused.contains("hunter2"), "{refused}");
    }
    let s3 = S3Options { endpoint: Some("http://storage.internal:9000".to_owned()), ..S3Options::default() };
    let plain = StoreOptions { s3, environment: Vec::new() };
    let refused = BlobStore::open(&address("s3://media"), &plain).expect_err("plain HTTP").to_string();
    assert!(refused.contains("allow_http"), "{refused}");
}

/// A store that asks nobody anything, with credentials and what else stands there.
fn signing(address: &str, endpoint: Option<&str>, path_style: Option<bool>, more: &[(&str, &str)]) -> BlobStore {
    let region = Some("eu-central-1".to_owned());
    let s3 = S3Options { endpoint: endpoint.map(str::to_owned), region, path_style, allow_http: Some(true) };
    let credentials = [("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let environment = credentials.iter().chain(more).map(|(name, value)| ((*name).into(), (*value).into())).collect();
    BlobStore::open(&Url::parse(address).expect("an address"), &StoreOptions { s3, environment }).expect("a store")
}

async fn signed(store: &BlobStore, blob: BlobKey) -> String {
    let shown = Shown { content_type: "image/png", disposition: "inline; filename=\"a b\"", cache_control: "no-store" };
    let signed = store.signed_url(&acme(), blob, shown, std::time::Duration::from_secs(9)).await;
    signed.expect("a signature").map(|url| url.as_str().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn a_signed_url_names_the_place_that_the_settings_name_and_no_user_of_it() {
    let blob = BlobKey::generate();
    let path = blob_path(&acme(), blob);
    for (address, endpoint, path_style, place) in [
        ("s3://media/of/ours", Some("http://h:9000"), None, "http://h:9000/media/of/ours/"),
        ("s3://media/of/ours", Some("https://h"), Some(false), "https://media.h/of/ours/"),
        ("s3://media", Some("https://u:p@h/s3/"), None, "https://h/s3/media/"),
        ("s3://media", None, None, "https://media.s3.eu-central-1.amazonaws.com/"),
        ("s3://media", None, Some(true), "https://s3.eu-central-1.amazonaws.com/media/"),
    ] {
        let url = signed(&signing(address, endpoint, path_style, &[("AWS_SESSION_TOKEN", "a+b/c=")]), blob).await;
        assert!(url.starts_with(&format!("{place}{path}?")), "{url}");
        for said in [
            "response-content-type=image%2Fpng",
            "response-content-disposition=inline%3B%20filename%3D%22a%20b%22",
            "X-Amz-Security-Token=a%2Bb%2Fc%3D",
            "X-Amz-Expires=9",
            "%2Feu-central-1%2Fs3%2F",
        ] {
            assert!(url.contains(said), "{said} in {url}");
        }
    }
}

#[tokio::test]
async fn a_store_whose_urls_would_not_work_for_others_signs_none() {
    for more in [("AWS_SKIP_SIGNATURE", "true"), ("AWS_SSE_CUSTOMER_KEY_BASE64", "AAAA")] {
        let store = signing("s3://media", None, None, &[more]);
        assert_eq!((store.signs_urls(), signed(&store, BlobKey::generate()).await), (false, String::new()), "{more:?}");
    }
    let (folder, memory) = (tempfile::tempdir().expect("a folder"), Url::parse("memory:").expect("an address"));
    let files = Url::from_file_path(folder.path()).expect("a path");
    for address in [files, memory] {
        let store = BlobStore::open(&address, &StoreOptions::default()).expect("a store");
        assert_eq!((store.signs_urls(), signed(&store, BlobKey::generate()).await), (false, String::new()));
    }
}
