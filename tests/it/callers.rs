//! API keys: who gets in, with what, and what the others hear.

use std::time::Duration;

use mediakeep::access::{Scope, hash_secret};
use mediakeep::config::settings::ApiKey;
use reqwest::Method;
use serde_json::json;

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{Host, credential};

#[tokio::test]
async fn whoever_is_nobody_hears_one_401() {
    let host = Host::start().await;
    let right = credential("acme", "all");
    let expected = Told::of(host.stranger().get("/v1/assets").await).await;
    assert_eq!((expected.status, expected.refusal()), (401, "unauthenticated".into()));
    assert_eq!((expected.header("www-authenticate"), expected.header("cache-control")), ("Bearer", "no-store"));

    for credential in [
        "mk_nobody_secret".to_owned(),
        "mk_acme-all_".into(),
        "mk_acme-all".into(),
        "mk_".into(),
        format!("{right}x"),
        right[..right.len() - 1].into(),
        right.replace("acme-all_", "globex-all_"),
        right.to_uppercase(),
        "a.b.c".into(),
        "x".repeat(20_000),
    ] {
        assert_eq!(Told::of(host.bearer(&credential).get("/v1/assets").await).await, expected, "{credential}");
    }
    for header in [right.clone(), format!("Basic {right}"), format!("Bearer{right}"), "Bearer ".into(), "\u{fc}".into()]
    {
        let request = host.stranger().request(Method::GET, "/v1/assets").header("authorization", header.as_bytes());
        assert_eq!(Told::of(request.send().await.expect("an answer")).await, expected, "{header}");
    }
    let twice =
        host.bearer(&right).request(Method::GET, "/v1/assets").header("authorization", format!("Bearer {right}"));
    assert_eq!(Told::of(twice.send().await.expect("an answer")).await, expected, "two credentials");
    let lower = host.stranger().request(Method::GET, "/v1/assets").header("authorization", format!("bearer {right}"));
    assert_eq!(lower.send().await.expect("an answer").status(), 200, "the scheme has no case");
}

#[tokio::test]
async fn a_key_says_that_it_is_over_to_its_holder_alone() {
    let host = Host::with(|settings| {
        settings.access.api_keys.push(key("brief", "2027-01-15T08:01:00Z", false));
        settings.access.api_keys.push(key("revoked", "", true));
    })
    .await;
    let brief = host.bearer("mk_brief_of-brief");

    host.advance(Duration::from_millis(59_999));
    assert_eq!(brief.get("/v1/assets").await.status(), 200);
    host.advance(Duration::from_millis(1));
    for (credential, code) in [
        ("mk_brief_of-brief", "key_expired"),
        ("mk_revoked_of-revoked", "key_revoked"),
        ("mk_brief_wrong", "unauthenticated"),
        ("mk_revoked_wrong", "unauthenticated"),
    ] {
        let told = Told::of(host.bearer(credential).get("/v1/assets").await).await;
        assert_eq!((told.status, told.refusal()), (401, code.into()), "{credential}");
        assert_eq!(told.header("www-authenticate"), "Bearer");
    }
}

#[tokio::test]
async fn each_scope_opens_what_it_names_and_nothing_else() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(png(3, 3)).await;
    let (meta, run) = (format!("/v1/assets/{}", asset.id), "/v1/runs/run-1");
    let (get, post, put, patch, delete) = (Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE);

    for (method, path, body, needed) in [
        (&post, "/v1/assets".to_owned(), json!({"base64": "aGk="}), Scope::AssetsWrite),
        (&post, format!("{run}/assets"), json!({"base64": "aGk="}), Scope::AssetsWrite),
        (&patch, meta.clone(), json!({"alt": "x"}), Scope::AssetsWrite),
        (&get, "/v1/assets".into(), json!({}), Scope::AssetsRead),
        (&get, meta.clone(), json!({}), Scope::AssetsRead),
        (&get, format!("{meta}/content"), json!({}), Scope::AssetsRead),
        (&get, "/v1/runs".into(), json!({}), Scope::AssetsRead),
        (&get, run.into(), json!({}), Scope::AssetsRead),
        (&get, format!("{run}/assets"), json!({}), Scope::AssetsRead),
        (&get, format!("{run}/debug-bundle/manifest"), json!({}), Scope::AssetsRead),
        (&put, format!("{run}/artifacts/report"), json!({"parts": [{"text": "x"}]}), Scope::AssetsWrite),
        (&get, format!("{run}/artifacts/report"), json!({}), Scope::ArtifactsRead),
        (&get, "/v1/audit/events".into(), json!({}), Scope::AuditRead),
        (&post, "/v1/audit/isolation-checks".into(), json!({}), Scope::AuditRead),
        (&get, "/v1/audit/checkpoint".into(), json!({}), Scope::AuditRead),
        (&post, format!("{meta}/urls"), json!({"class": "durable"}), Scope::AssetsMint),
        (&post, "/v1/urls/mint".into(), json!({"class": "durable", "assets": [asset.id]}), Scope::AssetsMint),
        (&post, "/v1/urls/revoke".into(), json!({"label": "press"}), Scope::AssetsMint),
        (&post, "/v1/urls/introspect".into(), json!({"url": asset.url}), Scope::AuditRead),
        (&post, format!("{run}/references"), json!({"assets": [asset.id]}), Scope::RunsWrite),
        (&put, run.into(), json!({"logRetentionSeconds": 60}), Scope::RunsWrite),
        (&delete, meta, json!({}), Scope::AssetsWrite),
    ] {
        for scope in Scope::ALL {
            let caller = host.with_scope("acme", scope);
            let request = caller.request(method.clone(), &path);
            let request = if *method == Method::GET { request } else { request.json(&body) };
            let told = Told::of(request.send().await.expect("an answer")).await;
            if scope == needed {
                assert!(told.status < 300 || told.status == 409, "{method} {path}: {}", told.status);
            } else if scope == Scope::ArtifactsRead && path.ends_with("/content") {
                assert_eq!((told.status, told.refusal()), (404, "not_found".into()), "no artifact names it");
            } else {
                assert_eq!((told.status, told.refusal()), (403, "forbidden".into()), "{method} {path} {scope:?}");
                assert_eq!(told.json()["details"], json!({"scopeRequired": needed.name()}), "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn a_tenant_comes_from_the_credential_alone() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let path = format!("/v1/assets/{}", asset.id);
    let ask = async |path: &str, header: &[&str]| {
        let mut request = owner.request(Method::GET, path);
        for tenant in header {
            request = request.header("x-tenant-id", *tenant);
        }
        Told::of(request.send().await.expect("an answer")).await
    };
    let other = ask(&path, &["globex"]).await;
    assert_eq!((other.status, other.refusal()), (403, "forbidden".into()));
    assert!(!String::from_utf8_lossy(&other.body).contains("globex"));

    for (query, header, status) in [
        ("", &["acme"][..], 200),
        ("?tenant=acme&tenantId=acme", &[], 200),
        ("", &["acme", "globex"], 403),
        ("", &["Acme"], 403),
        ("", &[""], 403),
        ("?tenant=globex", &[], 403),
        ("?tenantId=globex", &[], 403),
        ("?tenant=acme&tenant=globex", &[], 403),
        ("?%74enant=globex", &[], 403),
    ] {
        let told = ask(&format!("{path}{query}"), header).await;
        assert_eq!(told.status, status, "{query} {header:?}");
        assert!(status == 200 || told == other, "{query} {header:?}");
    }
    // Foreign or not, there or not: whoever names another tenant hears the same.
    assert_eq!(ask("/v1/assets/ast_00000000000000000000000000", &["globex"]).await, other);

    for (body, status) in [
        (json!({"class": "durable", "tenant": "acme", "tenantId": "acme"}), 201),
        (json!({"class": "durable", "tenant": "globex"}), 403),
        (json!({"class": "durable", "tenantId": "globex", "unknown": 1}), 403),
        (json!({"class": "durable", "tenantId": ["acme"]}), 403),
        // Nothing is no other tenant.
        (json!({"class": "durable", "tenantId": null}), 201),
    ] {
        assert_eq!(owner.post(&format!("{path}/urls"), &body).await.status(), status, "{body}");
    }
}

#[tokio::test]
async fn no_id_leads_out_of_its_place() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.upload(png(3, 3)).await;

    for id in [
        "..%2f..%2fglobex",
        "%2e%2e%2fx",
        "..",
        "%2e%2e",
        "x%00",
        "%2fetc%2fpasswd",
        "..%5c..%5cx",
        "%23fragment",
        "a%20b",
        "\u{fc}",
    ] {
        for path in [
            format!("/v1/assets/{id}"),
            format!("/v1/assets/{id}/content"),
            format!("/v1/runs/{id}"),
            format!("/v1/runs/{id}/debug-bundle/manifest"),
            format!("/schemas/envelopes/{id}.schema.json"),
        ] {
            let status = owner.get(&path).await.status().as_u16();
            assert!([400, 404].contains(&status), "{path}: {status}");
        }
        let told = Told::of(owner.put(&format!("/v1/runs/{id}"), &json!({})).await).await;
        assert!([400, 404, 405].contains(&told.status), "{id}: {}", told.status);
    }
    let runs = Told::of(owner.get("/v1/runs").await).await;
    assert_eq!(runs.json()["runs"].as_array().map(Vec::len), Some(1), "nothing was made");
}

fn key(id: &str, expires: &str, revoked: bool) -> ApiKey {
    ApiKey {
        id: id.into(),
        tenant: "acme".into(),
        scopes: vec!["assets:read".into()],
        secret_sha256: hash_secret(&format!("of-{id}")),
        expires: expires.parse().ok(),
        revoked,
    }
}
