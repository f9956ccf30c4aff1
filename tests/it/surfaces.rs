//! What anybody may ask, and what only the operator may.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::process::eventually;
use crate::harness::told::Told;
use crate::harness::{Host, credential};

#[tokio::test]
async fn public_documents_are_kept_for_five_minutes_and_not_sent_twice() {
    let host = Host::start().await;
    for (path, content_type) in [
        ("/.well-known/openwop", "application/json"),
        ("/v1/openapi.json", "application/json"),
        ("/schemas/envelopes/media.image.schema.json", "application/schema+json"),
        ("/schemas/envelopes/media.audio.schema.json", "application/schema+json"),
        ("/schemas/envelopes/media.file.schema.json", "application/schema+json"),
        ("/v1/formats", "application/json"),
        ("/v1/formats/image%2Fpng", "application/json"),
    ] {
        let first = Told::of(host.stranger().get(path).await).await;
        assert_eq!((first.status, first.header("content-type")), (200, content_type), "{path}");
        assert_eq!(first.header("cache-control"), "public, max-age=300", "{path}");
        assert_eq!(
            Told::of(host.bearer("mk_garbage").get(path).await).await,
            first,
            "{path}: nobody is asked who he is"
        );

        let request = host.stranger().request(Method::GET, path).header("if-none-match", first.header("etag"));
        let second = Told::of(request.send().await.expect("an answer")).await;
        assert_eq!((second.status, second.body.len(), second.header("etag")), (304, 0, first.header("etag")), "{path}");
        assert_eq!(second.header("cache-control"), "public, max-age=300", "{path}");

        let head = Told::of(host.stranger().head(path).await).await;
        assert_eq!((head.status, &head.headers, head.body.len()), (200, &first.headers, 0), "{path}");
    }
}

#[tokio::test]
async fn discovery_says_what_is_set() {
    let host = Host::with(|settings| {
        settings.limits.max_inline_media_bytes = mediakeep::config::units::Size(1_000);
    })
    .await;

    let document = Told::of(host.stranger().get("/.well-known/openwop").await).await.json();

    assert_eq!(document["aiProviders"]["maxInlineMediaBytes"], 1_000);
    assert_eq!((&document["supportedEnvelopes"], &document["schemaVersions"]), (&json!([]), &json!({})));
    assert!(document["protocolVersion"].is_string() && document["limits"].is_object());
    let own = &document["x-host-mediakeep-mediaAssets"];
    assert_eq!((&own["clockSkewSeconds"], &own["maxDeliverySeconds"]), (&json!(60), &json!(604_800)));
    assert!(!document.to_string().contains("acme"));
}

#[tokio::test]
async fn envelopes_hold_against_the_schemas_that_are_published() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for (kind, bytes) in
        [("media.image", png(3, 3)), ("media.audio", crate::harness::bytes::wav(1)), ("media.file", b"words".to_vec())]
    {
        let path = format!("/schemas/envelopes/{kind}.schema.json");
        let schema = Told::of(host.stranger().get(&path).await).await.json();
        assert!(jsonschema::meta::is_valid(&schema), "{kind}");
        assert_eq!(schema["$id"], host.url(&path));

        let asset = owner.upload(bytes).await;
        assert_eq!(asset.answer["envelope"]["type"], kind);
        let payload = &asset.answer["envelope"]["payload"];
        assert!(jsonschema::is_valid(&schema, payload), "{kind}: {payload}");
    }
    for kind in ["media.video", "media.image.schema.json", "Media.Image", "..", "%00", ""] {
        let told = Told::of(host.stranger().get(&format!("/schemas/envelopes/{kind}.schema.json")).await).await;
        assert_eq!((told.status, told.refusal()), (404, "not_found".into()), "{kind}");
    }
}

#[tokio::test]
async fn what_is_no_route_and_what_is_no_method_hear_so_in_our_shape() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v1/asset",
        "/v1/assets/",
        "/a",
        "/metrics",
        "/debug",
        "/debug/pprof",
        "/v1/metrics",
        "//v1/assets",
        "/v1/assets/x/y",
    ] {
        for caller in [&host.stranger(), &owner] {
            let told = Told::of(caller.get(path).await).await;
            assert_eq!((told.status, told.refusal()), (404, "not_found".into()), "{path}");
            assert_eq!(told.header("content-type"), "application/json", "{path}");
        }
    }
    for (method, path, allow) in [
        ("DELETE", "/v1/assets", "GET, HEAD, POST"),
        ("POST", "/v1/assets/x", "GET, HEAD, PATCH, DELETE"),
        ("PUT", "/v1/assets/x/content", "GET, HEAD"),
        ("GET", "/v1/urls/mint", "POST"),
        ("OPTIONS", "/v1/runs/x", "GET, HEAD, PUT"),
        ("POST", "/a/x", "GET, HEAD, OPTIONS"),
        ("PROPFIND", "/healthz", "GET, HEAD"),
    ] {
        let method: Method = method.parse().expect("a method");
        let told = Told::of(owner.request(method.clone(), path).send().await.expect("an answer")).await;
        assert_eq!((told.status, told.refusal()), (405, "method_not_allowed".into()), "{method} {path}");
        assert_eq!(told.header("allow"), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn whatever_answers_get_answers_head() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    for path in [
        "/healthz",
        "/readyz",
        "/v1/assets",
        &format!("/v1/assets/{}", asset.id),
        "/v1/assets/unknown",
        "/v1/runs",
        "/v1/runs/run-1",
        "/v1/runs/run-1/debug-bundle/manifest",
        "/nothing",
    ] {
        let got = Told::of(owner.get(path).await).await;
        let head = Told::of(owner.head(path).await).await;
        assert_eq!((head.status, &head.headers, head.body.len()), (got.status, &got.headers, 0), "{path}");
    }
}

#[tokio::test]
async fn a_service_whose_store_is_gone_is_alive_and_not_ready() {
    let host = Host::start().await;
    for path in ["/healthz", "/readyz"] {
        let told = Told::of(host.stranger().get(path).await).await;
        assert_eq!((told.status, told.header("cache-control")), (200, "no-store"), "{path}");
    }

    std::fs::rename(host.folder().join("blobs"), host.folder().join("elsewhere")).expect("it is ours");

    assert_eq!(host.stranger().get("/healthz").await.status(), 200);
    let look = async || Told::of(host.stranger().get("/readyz").await).await;
    // What was seen before is told for a second.
    eventually(async || look().await.status != 200).await;
    let told = look().await;
    assert_eq!((told.status, told.refusal()), (503, "service_unavailable: store".into()));
    assert!(!told.header("retry-after").is_empty());
    assert!(!String::from_utf8_lossy(&told.body).contains(&host.folder().display().to_string()));
}

#[tokio::test]
async fn metrics_are_the_operators_and_name_nobody() {
    let host = Host::with(|settings| settings.server.admin_listen = "127.0.0.1:0".into()).await;
    let owner = host.owner("acme");
    let request = owner.request(Method::POST, "/v1/runs/run-secret/assets").query(&[("name", "payroll.png")]);
    let asset = crate::harness::asset(request.body(png(3, 3)).send().await.expect("an answer")).await;
    owner.share(&asset, 60).await;
    host.stranger().get(&asset.url).await;
    host.stranger().get("/a/never-a-token/payroll.png").await;
    owner.get("/v1/tenants/acme/payroll").await;

    let told = Told::of(host.stranger().get(&host.admin_url("/metrics")).await).await;
    assert_eq!(told.status, 200);
    let text = String::from_utf8_lossy(&told.body).into_owned();
    for line in [
        "mediakeep_assets_stored_total{kind=\"image\"} 1",
        "route=\"/a/{capability}\",method=\"GET\",status=\"200\"} 1",
        "mediakeep_capability_refusals_total{reason=\"malformed\"} 1",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let token = asset.url.rsplit_once("/a/").expect("a capability URL").1;
    for secret in ["acme", "payroll", "run-secret", &asset.id, token, "never-a-token", "secret-of"] {
        assert!(!text.contains(secret), "{secret}");
    }
    for caller in [host.stranger(), host.bearer(&credential("acme", "all"))] {
        assert_eq!(caller.get("/metrics").await.status(), 404);
    }
    assert_eq!(host.stranger().get(&host.admin_url("/v1/assets")).await.status(), 404);
    let live: Value = Told::of(host.stranger().get(&host.admin_url("/healthz")).await).await.json();
    assert_eq!(live["status"], "ok");
}
