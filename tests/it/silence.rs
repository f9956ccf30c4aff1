//! What the log never says.

use std::time::Duration;

use actix_web::dev::Service;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service};
use actix_web::{HttpResponse, web};
use mediakeep::access::Scope;
use mediakeep::audit::{self, Due};
use mediakeep::http::guard;
use mediakeep_keys::Ring;
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

#[tokio::test]
async fn whatever_goes_wrong_log_metrics_and_answers_hold_nothing_that_opens_anything() {
    let heard = log::listen();
    let host = Host::with(|settings| settings.server.admin_listen = "127.0.0.1:0".into()).await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(17, 19)).await;
    let delivery = owner.share(&asset, 60).await;
    let token = |url: &str| url.rsplit_once("/a/").expect("a capability URL").1.to_owned();
    let secrets = [
        token(&asset.url),
        token(&delivery),
        credential("acme", "all"),
        "secret-of-acme".into(),
        "secret-of-globex".into(),
    ];
    let meta = format!("/v1/assets/{}", asset.id);
    let mut refused = Vec::new();
    let with_referer = async |path: &str| {
        let request = host.stranger().request(Method::GET, path).header("referer", &asset.url);
        request.header("cookie", token(&delivery)).send().await.expect("an answer")
    };

    // 400: the secret stands where it does not belong.
    refused.push(owner.get(&format!("/v1/assets?{}", token(&delivery))).await);
    refused.push(owner.get(&format!("/v1/assets?cursor={}", token(&delivery))).await);
    refused.push(owner.post("/v1/assets", &json!({"base64": delivery, "name": asset.url})).await);
    refused.push(owner.post("/v1/assets", &json!({token(&delivery): asset.url})).await);
    // 401, 403
    refused.push(host.bearer(&token(&delivery)).get(&meta).await);
    refused.push(host.bearer(&format!("{}x", credential("acme", "all"))).get(&meta).await);
    refused.push(host.with_scope("acme", Scope::AuditRead).get(&meta).await);
    refused.push(owner.get(&format!("{meta}?tenant={}", token(&delivery))).await);
    // 404, 405, 410
    refused.push(with_referer(&format!("/{}", token(&delivery))).await);
    refused.push(host.owner("globex").get(&asset.url).await);
    refused.push(host.stranger().post(&asset.url, &json!({})).await);
    assert_eq!(with_referer(&asset.url).await.status(), 200);
    host.advance(Duration::from_secs(60));
    refused.push(with_referer(&delivery).await);
    // 500: the key that the asset's URL hangs on is lost.
    let other = host.folder().join("other.json");
    Ring::generate(host.now().as_second()).expect("randomness").save_new(&other).expect("a disk");
    host.reload(|settings| settings.keys.ring = other);
    let broken = owner.post(&format!("{meta}/urls"), &json!({"class": "durable"})).await;
    assert_eq!(broken.status(), 500);
    refused.push(broken);
    let told = panicked(&host, &token(&asset.url), &credential("acme", "all")).await;
    assert!(told.contains("internal_error"), "{told}");
    audit::flush(host.app(), Due::All).await.expect("written");
    let metrics = host.stranger().get(&host.admin_url("/metrics")).await.text().await.expect("text");
    assert!(metrics.contains(r#"status="500""#) && metrics.contains("capability_refusals"), "{metrics}");

    let mut all = vec![heard.text(), metrics, told];
    for answer in refused {
        assert!(answer.status().as_u16() >= 400);
        all.push(format!("{:?} {}", answer.headers().clone(), answer.text().await.expect("text")));
    }
    assert!(all[0].contains("a handler panicked"), "it was heard");
    for secret in &secrets {
        for text in &all {
            assert_eq!(log::lines_with(text, secret).next(), None);
        }
    }
}

/// What a handler that panics answers, around it the guard of every handler.
async fn panicked(host: &Host, token: &str, credential: &str) -> String {
    async fn panics() -> HttpResponse {
        unreachable!("on purpose")
    }
    let app = actix_web::App::new().app_data(web::Data::from(host.app().clone())).wrap(from_fn(guard::guard));
    let service = init_service(app.route("/a/{token}", web::get().to(panics))).await;
    let request = TestRequest::with_uri(&format!("/a/{token}")).insert_header(("authorization", credential));
    match service.call(request.to_request()).await {
        Ok(answer) => format!("{:?}", answer.response()),
        Err(error) => format!("{error:?} {error}"),
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
