//! Bytes that the disk has lost, and that are uploaded once more: every asset that shares them has them again.

use std::fs::{self, File};
use std::path::Path;

use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server, url};

#[tokio::test]
async fn bytes_that_are_gone_come_back_with_an_upload_of_the_same() {
    comes_back(|blob| fs::remove_file(blob).expect("a blob to lose")).await;
}

#[tokio::test]
async fn bytes_that_were_cut_short_come_back_with_an_upload_of_the_same() {
    comes_back(|blob| File::options().write(true).open(blob).and_then(|file| file.set_len(100)).expect("a cut")).await;
}

async fn comes_back(lose: impl Fn(&Path)) {
    let place = Place::new();
    let server = place.serve().await;
    let first = server.upload(noise(70_000, 1)).await;
    let [blob] = place.blobs().try_into().expect("one blob");
    lose(&blob);
    assert_ne!(server.opens(url(&first)).await, 200, "it is lost");

    let second = server.upload(noise(70_000, 1)).await;

    for answer in [&first, &second] {
        assert_eq!(bytes_of(&server, url(answer)).await, noise(70_000, 1));
    }
    assert_eq!(place.blobs(), [blob], "in the place of what was lost, and nowhere else");
    assert!(place.log().contains("the store had lost bytes"), "{}", place.log());
    assert!(server.stop().await.success());
    let verified = place.must_run(&["verify"]);
    assert!(verified.stdout.contains(", 0 without a row"), "{}", verified.stdout);
}

async fn bytes_of(server: &Server, url: &str) -> Vec<u8> {
    let answer = server.request(reqwest::Method::GET, url).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    answer.bytes().await.expect("a body").to_vec()
}
