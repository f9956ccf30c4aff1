//! From one store to another.

use reqwest::Method;

use crate::harness::bytes::noise;
use crate::harness::process::{Place, files, url};
use crate::harness::store::{Kind, Store};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_of_files_moves_to_a_bucket_beside_the_service_and_every_url_still_opens() {
    let place = Place::in_files();
    let bucket = Bucket::new();
    let server = place.serve().await;
    let mut sent = vec![server.upload(noise(9 << 20, 1)).await, server.upload(noise(1_000, 2)).await];

    let first = bucket.copy(&place);
    assert!(first.contains("2 blobs copied"), "{first}");
    // What comes and goes meanwhile is seen to the next time.
    sent.push(server.upload(noise(1_000, 3)).await);
    let erased = sent.remove(1);
    let path = format!("/v1/assets/{}?erase=true", erased["asset"]["assetId"].as_str().expect("an id"));
    assert_eq!(server.request(Method::DELETE, &path).send().await.expect("an answer").status(), 200);
    assert!(server.stop().await.success());
    let second = bucket.copy(&place);
    assert!(second.contains("1 blobs copied") && second.contains("1 were there already"), "{second}");
    assert_eq!(bucket.blobs(), 2, "what was erased is in no copy");

    let mut command = place.command(&["serve"]);
    bucket.name(&mut command);
    std::fs::rename(place.file("blobs"), place.file("old")).expect("a rename");
    let server = place.start(command).await;
    for answer in &sent {
        assert_eq!(server.opens(url(answer)).await, 200);
    }
    assert_eq!(server.opens(url(&erased)).await, 410);
    server.upload(noise(1_000, 4)).await;
    assert!(server.stop().await.success());

    // The copy has data of its own now, which a copy of the old store would take away.
    std::fs::rename(place.file("old"), place.file("blobs")).expect("a rename");
    let again = bucket.try_copy(&place);
    assert_eq!(again.code, 2, "{again:?}");
    assert_eq!(bucket.blobs(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_not_those_of_their_record_are_named_and_not_copied() {
    let place = Place::in_files();
    let bucket = Bucket::new();
    let server = place.serve().await;
    server.upload(noise(1_000, 1)).await;
    assert!(server.stop().await.success());
    for blob in place.blobs() {
        std::fs::write(blob, noise(1_000, 2)).expect("a file");
    }

    let ran = bucket.try_copy(&place);

    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("another digest"), "{ran:?}");
    assert_eq!(bucket.blobs(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_goes_neither_onto_itself_nor_over_data_of_somebody_elses() {
    let (place, other) = (Place::in_files(), Place::in_files());
    for place in [&place, &other] {
        let server = place.serve().await;
        server.upload(noise(1_000, 1)).await;
        assert!(server.stop().await.success());
    }
    let (here, there) = (place.path().display(), other.path().display());
    for to in [
        format!("file://{there}/blobs"),
        format!("file://{here}/blobs"),
        format!("file://{here}//blobs/"),
        format!("file://{here}/blobs/t/copy"),
        format!("file://{here}"),
        "memory".to_owned(),
        "ftp://x".to_owned(),
    ] {
        let ran = place.run(&["copy", "--to", &to]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{ran:?}");
    }
    assert_eq!((place.blobs().len(), other.blobs().len()), (1, 1));
    assert!(!place.file("blobs/t/copy").exists() && !place.file("copy-of").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_was_killed_is_made_again_by_the_same_command() {
    let place = Place::in_files();
    let server = place.serve().await;
    server.upload(noise(3 << 20, 1)).await;
    assert!(server.stop().await.success());
    let to = format!("file://{}", place.file("copied").display());
    place.must_run(&["copy", "--to", &to]);
    // As it is while a blob is being written.
    let blob = files(&place.file("copied/t"))
        .into_iter()
        .find(|file| file.ancestors().nth(2).is_some_and(|at| at.ends_with("b")));
    let blob = blob.expect("a blob");
    let tenant =
        blob.ancestors().nth(3).and_then(|folder| folder.file_name()).expect("a tenant").to_string_lossy().into_owned();
    let half = format!("copied/staging/{tenant}.{}", blob.file_name().expect("a key").to_string_lossy());
    std::fs::remove_file(&blob).expect("it was there");
    place.write(&half, noise(1 << 20, 1));

    let again = place.must_run(&["copy", "--to", &to]);

    assert!(again.stdout.contains("1 blobs copied"), "{again:?}");
    assert!(std::fs::read(&blob).expect("a blob") == noise(3 << 20, 1));
    assert!(!place.file(&half).exists());
}

/// A bucket to copy to.
struct Bucket {
    folder: tempfile::TempDir,
    store: Store,
}

impl Bucket {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(Kind::Bucket, folder.path());
        Self { folder, store }
    }

    /// Has a command use the server, and the bucket as the service's store.
    fn name(&self, command: &mut std::process::Command) {
        self.reach(command);
        command.env("MEDIAKEEP__STORE__URL", self.store.url());
    }

    fn reach(&self, command: &mut std::process::Command) {
        let s3 = self.store.s3();
        command.env("MEDIAKEEP__STORE__S3__ENDPOINT", s3.endpoint).env("MEDIAKEEP__STORE__S3__ALLOW_HTTP", "true");
    }

    fn try_copy(&self, place: &Place) -> crate::harness::process::Ran {
        let mut command = place.command(&["copy", "--to", self.store.url()]);
        self.reach(&mut command);
        crate::harness::process::ran(command)
    }

    fn copy(&self, place: &Place) -> String {
        let ran = self.try_copy(place);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout
    }

    fn blobs(&self) -> usize {
        let all = files(&self.folder.path().join("blobs/t")).into_iter();
        all.filter(|file| file.ancestors().nth(2).is_some_and(|folder| folder.ends_with("b"))).count()
    }
}
