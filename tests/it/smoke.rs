//! The main job, once through everything.

use crate::harness::Host;
use crate::harness::bytes::png;

#[tokio::test]
async fn media_in_a_url_that_opens_it_and_the_bytes_out() {
    let host = Host::start().await;
    let picture = png(40, 30);

    let asset = host.owner("acme").upload(picture.clone()).await;
    let answer = host.stranger().get(&asset.url).await;

    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "image/png");
    assert_eq!(answer.bytes().await.expect("a body"), picture);
    assert_eq!(asset.answer["asset"]["facts"]["width"], 40);
    assert_eq!(asset.answer["asset"]["kind"], "image");
    assert_eq!(asset.answer["envelope"]["type"], "media.image");
    assert!(host.verify().await.is_clean());
}
