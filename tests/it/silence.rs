//! What the log never says.

use reqwest::Method;
use serde_json::json;

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{Host, credential};
use crate::harness::{index, log};

#[tokio::test]
async fn no_line_of_the_log_holds_what_opens_anything() {
    let heard = log::listen();
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(11, 13)).await;
    // Nobody has asked for it, so its bytes come from the disk.
    let lost = owner.upload(png(13, 11)).await;
    let delivery = owner.share(&asset, 60).await;
    let token = |url: &str| url.rsplit_once("/a/").expect("a capability URL").1.to_owned();
    let forged = format!("{}x", token(&delivery));
    let secrets = [
        token(&asset.url),
        token(&lost.url),
        token(&delivery),
        credential("acme", "all"),
        "secret-of-acme-all".into(),
        index::PASSWORD.into(),
        "payroll".into(),
    ];

    for url in
        [&asset.url, &delivery, &format!("/a/{forged}/payroll.png"), &format!("{}/payroll.png?x=payroll", asset.url)]
    {
        host.stranger().get(url).await;
        host.owner("globex").get(url).await;
        host.stranger().request(Method::GET, url).header("range", "bytes=-0").send().await.expect("an answer");
        host.stranger().post(url, &json!({"payroll": 1})).await;
    }
    owner.post("/v1/runs/run-1/references", &json!({"assets": [asset.url, delivery, forged]})).await;
    owner.post("/v1/assets", &json!({"base64": "payroll", "name": "payroll"})).await;
    host.bearer(&format!("{}x", credential("acme", "all"))).get("/v1/assets").await;
    host.app().index.seal_audit(1_000).await.expect("an index");
    remove_blobs(&host.folder().join("blobs/t"));
    let told = Told::of(host.stranger().get(&lost.url).await).await;
    assert_eq!(told.status, 503);
    drop(host.restart().await);

    let log = heard.text();
    assert!(log.lines().count() > 10, "it was heard");
    for secret in &secrets {
        assert_eq!(log::lines_with(&log, secret).next(), None);
    }
}

/// Recovery records stay: beside an index with assets a store without anything would not be opened again.
fn remove_blobs(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            remove_blobs(&entry.path());
        } else if entry.path().extension().is_none() {
            std::fs::remove_file(entry.path()).expect("it is ours");
        }
    }
}
