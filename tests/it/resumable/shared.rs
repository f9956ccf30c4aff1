//! Uploads that begin at one replica and go on at another.

use reqwest::Method;

use super::OCTETS;
use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_on_wherever_its_next_part_comes() {
    let place = Place::shared("");
    let (one, other) = (place.serve().await, place.serve_another().await);
    let bytes = noise(300_000, 1);
    let begun = one.request(Method::POST, "/v1/uploads").header("tus-resumable", "1.0.0");
    let begun = begun.header("upload-length", bytes.len()).send().await;
    let begun = begun.expect("an answer");
    let path = begun.headers()["location"].to_str().expect("text").trim_start_matches(&one.url("")).to_owned();
    let append = async |server: &Server, at: usize, to: usize| {
        let patch = server.request(Method::PATCH, &path).header("content-type", OCTETS).header("upload-offset", at);
        let answer =
            patch.header("tus-resumable", "1.0.0").body(bytes[at..to].to_vec()).send().await.expect("an answer");
        assert_eq!(answer.status(), 204);
        answer.headers().get("mediakeep-asset-id").map(|id| id.to_str().expect("text").to_owned())
    };

    assert_eq!(append(&one, 0, 100_000).await, None);
    assert_eq!(append(&other, 100_000, 200_000).await, None);
    one.kill().await;
    let asset = append(&other, 200_000, 300_000).await.expect("an asset");

    let content = other.request(Method::GET, &format!("/v1/assets/{asset}/content")).send().await.expect("an answer");
    assert!(content.bytes().await.expect("bytes") == bytes);
    assert!(other.stop().await.success());
    place.must_run(&["verify", "--deep"]);
    assert_eq!(place.blobs().len(), 1, "the parts are gone");
}
