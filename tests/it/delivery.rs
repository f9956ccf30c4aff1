//! What stands around the bytes when they go out, on both routes.

use std::time::Duration;

use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::index::Deleted;
use mediakeep_storage::{AssetId, AuditEvent, TenantId};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png, wav};
use crate::harness::told::Told;
use crate::harness::{Asset, Caller, Host, asset, refusal};

const POLICY: &str = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox";
const EXPOSED: &str = "Accept-Ranges, Content-Range, Content-Length, Content-Disposition, ETag, Repr-Digest";

/// A PDF with nothing odd about it.
const PDF: &[u8] = b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [] /Count 0 >>\nendobj\ntrailer\n<< /Root 1 0 R >>\nstartxref\n0\n%%EOF\n";

#[tokio::test]
async fn both_routes_send_the_headers_of_the_contract() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let picture = png(9, 7);
    let asset = owner.upload(picture.clone()).await;
    let delivery = owner.share(&asset, 60).await;

    for (caller, url, caching) in [
        (host.stranger(), asset.url.clone(), "private, max-age=300"),
        (host.stranger(), delivery, "private, max-age=0, must-revalidate"),
        (owner.clone(), bound(&asset), "no-store"),
    ] {
        let told = Told::of(caller.get(&url).await).await;
        assert_eq!((told.status, &told.body[..]), (200, &picture[..]));
        for (name, value) in [
            ("content-type", "image/png"),
            ("content-length", &*picture.len().to_string()),
            ("content-disposition", "inline"),
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("accept-ranges", "bytes"),
            ("cache-control", caching),
            ("repr-digest", &*digest_of(&picture)),
            ("last-modified", "Fri, 15 Jan 2027 08:00:00 GMT"),
            ("transfer-encoding", ""),
            ("content-encoding", ""),
        ] {
            assert_eq!(told.header(name), value, "{name} of {caching}");
        }
        let ranged = caller.request(Method::GET, &url).header("range", "bytes=0-1");
        let mut part = Told::of(ranged.send().await.expect("an answer")).await.headers;
        assert!(part.remove("content-range").is_some());
        part.insert("content-length".into(), vec![picture.len().to_string()]);
        assert_eq!(part, told.headers, "a part has them too");
        let tag = told.header("etag");
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2, "{tag}");
    }
}

#[tokio::test]
async fn any_page_may_read_what_a_capability_answers_and_no_page_with_credentials() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(9, 7)).await;
    let over = owner.share(&asset, 1).await;
    host.advance(Duration::from_secs(1));
    let stranger = host.stranger();
    let url = &asset.url;

    for (answer, status) in [
        (stranger.get(url).await, 200),
        (stranger.head(url).await, 200),
        (stranger.request(Method::GET, url).header("range", "bytes=0-1").send().await.expect("an answer"), 206),
        (stranger.request(Method::GET, url).header("range", "bytes=-0").send().await.expect("an answer"), 416),
        (stranger.request(Method::GET, url).header("if-match", "\"x\"").send().await.expect("an answer"), 412),
        (stranger.request(Method::GET, url).header("if-none-match", "*").send().await.expect("an answer"), 304),
        (stranger.get(&over).await, 410),
        (stranger.get("/a/nothing").await, 404),
        (stranger.post(url, &json!({})).await, 405),
        (stranger.request(Method::OPTIONS, url).send().await.expect("an answer"), 204),
    ] {
        let told = Told::of(answer).await;
        assert_eq!(told.status, status);
        for (name, value) in [
            ("access-control-allow-origin", "*"),
            ("access-control-expose-headers", EXPOSED),
            ("cross-origin-resource-policy", "cross-origin"),
            ("access-control-allow-credentials", ""),
        ] {
            assert_eq!(told.header(name), value, "{name} of a {status}");
        }
    }
    let bound = Told::of(
        owner
            .request(Method::GET, &bound(&asset))
            .header("origin", "https://evil.example")
            .send()
            .await
            .expect("an answer"),
    )
    .await;
    assert_eq!(bound.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn a_page_is_told_what_it_may_send_without_a_look_at_the_token() {
    let host = Host::start().await;
    let url = host.owner("acme").upload(png(2, 2)).await.url;

    let mut told = Vec::new();
    for url in [url.as_str(), "/a/nothing", "/a/nothing/with/a name", "/a/"] {
        let request = host.stranger().request(Method::OPTIONS, url).header("origin", "https://page.example");
        told.push(Told::of(request.send().await.expect("an answer")).await);
    }

    assert_eq!((told[0].status, told[0].body.len()), (204, 0));
    assert_eq!(told[0].header("access-control-allow-methods"), "GET, HEAD, OPTIONS");
    assert_eq!(told[0].header("access-control-allow-headers"), "Range, If-Range, If-None-Match, If-Modified-Since");
    assert!(told.iter().all(|other| *other == told[0]), "{told:?}");
}

#[tokio::test]
async fn only_passive_media_and_clean_pdfs_are_shown_whatever_is_asked() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let plain = POLICY.strip_suffix("; sandbox").expect("it is sandboxed");
    let with_tail = [PDF, b"something more"].concat();
    let with_script = String::from_utf8_lossy(PDF).replace("/Kids", "/OpenAction 3 0 R /Kids").into_bytes();
    let cut = PDF[..PDF.len() - 8].to_vec();

    for (what, bytes, content_type, disposition, policy) in [
        ("png", png(2, 2), "image/png", "inline", POLICY),
        ("wav", wav(1), "audio/wav", "inline", POLICY),
        ("pdf", PDF.to_vec(), "application/pdf", "inline", plain),
        ("pdf with a tail", with_tail, "application/pdf", "attachment", POLICY),
        ("pdf that acts", with_script, "application/pdf", "attachment", POLICY),
        ("pdf without its end", cut, "application/pdf", "attachment", POLICY),
        (
            "html",
            b"<!DOCTYPE html><script>alert(1)</script>".to_vec(),
            "text/html; charset=utf-8",
            "attachment",
            POLICY,
        ),
        (
            "svg",
            b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>".to_vec(),
            "image/svg+xml; charset=utf-8",
            "attachment",
            POLICY,
        ),
        ("xml", b"<?xml version=\"1.0\"?><a/>".to_vec(), "application/xml; charset=utf-8", "attachment", POLICY),
        ("text", "f\u{fc}r alle\n".as_bytes().to_vec(), "text/plain; charset=utf-8", "attachment", POLICY),
        ("noise", noise(500, 3), "application/octet-stream", "attachment", POLICY),
    ] {
        let asset = owner.upload(bytes).await;
        let wished = |wish: &str| json!({"class": "delivery", "disposition": wish});
        let inline = minted(&owner, &asset, &wished("inline")).await;
        let attachment = minted(&owner, &asset, &wished("attachment")).await;

        for (url, expected) in [(&asset.url, disposition), (&inline, disposition), (&attachment, "attachment")] {
            let told = Told::of(host.stranger().get(url).await).await;
            assert_eq!(
                told.header("content-type").split("; charset").next(),
                content_type.split("; charset").next(),
                "{what}"
            );
            assert_eq!(told.header("content-type"), content_type, "{what}");
            assert_eq!(told.header("content-disposition"), expected, "{what}");
            assert_eq!(told.header("content-security-policy"), policy, "{what}");
            assert_eq!(told.header("x-content-type-options"), "nosniff", "{what}");
        }
    }
}

#[tokio::test]
async fn a_name_travels_in_one_header_and_cannot_make_another() {
    let host = Host::start().await;
    let owner = host.owner("acme");

    for (name, expected) in [
        ("signups.png", "inline; filename=\"signups.png\""),
        ("q3 chart (final)#1?.png", "inline; filename=\"q3 chart (final)#1?.png\""),
        ("100%.png", "inline; filename=\"100_.png\"; filename*=UTF-8''100%25.png"),
        ("\u{fc} \u{d55c}.png", "inline; filename=\"_ _.png\"; filename*=UTF-8''%C3%BC%20%ED%95%9C.png"),
        ("a\"b\\c.png", "inline; filename=\"a_bc.png\"; filename*=UTF-8''a%22bc.png"),
        ("x\r\nSet-Cookie: a=1.png", "inline; filename=\"xSet-Cookie: a=1.png\""),
        ("\u{202e}gnp.exe", "inline; filename=\"gnp.exe\""),
        ("../../etc/passwd", "inline; filename=\"....etcpasswd\""),
    ] {
        let asset = named(&owner, png(3, 3), name).await;
        assert!(!asset.url.contains("png"), "no name stands in a URL");

        let told = Told::of(host.stranger().get(&asset.url).await).await;
        assert_eq!(told.header("content-disposition"), expected, "{name:?}");
        assert_eq!(told.header("set-cookie"), "");
    }
}

#[tokio::test]
async fn what_a_client_appends_changes_nothing() {
    let host = Host::start().await;
    let url = named(&host.owner("acme"), png(3, 3), "right.png").await.url;
    let plain = Told::of(host.stranger().get(&url).await).await;

    for appended in [
        "/wrong.html",
        "/..%2f..%2fetc%2fpasswd",
        "/a/deep/er/name.png",
        "/",
        "?response-content-type=text/html&response-content-disposition=inline",
        "?download=x.html&tenant=globex&tenantId=globex",
        "/q3%20chart%20(final)%231%3F.png?x=1",
    ] {
        let told = Told::of(host.stranger().get(&format!("{url}{appended}")).await).await;
        assert_eq!(told, plain, "{appended}");
    }
    for spelling in [url.replace('.', "%2E"), url.replace("/a/e", "/a/%65")] {
        assert_eq!(Told::of(host.stranger().get(&spelling).await).await, plain, "{spelling}");
    }
}

#[tokio::test]
async fn bytes_go_out_as_they_are_whatever_encoding_is_offered() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let text = "the same words over and over\n".repeat(50_000).into_bytes();
    let asset = owner.upload(text.clone()).await;

    for (caller, url) in [(host.stranger(), asset.url.clone()), (owner.clone(), bound(&asset))] {
        let request = caller
            .request(Method::GET, &url)
            .header("accept-encoding", "gzip, br, zstd, deflate")
            .header("accept", "image/png;q=1, */*;q=0");
        let told = Told::of(request.send().await.expect("an answer")).await;
        assert_eq!((told.status, told.header("content-encoding"), told.header("vary")), (200, "", ""));
        assert_eq!(told.header("content-length"), text.len().to_string());
        assert_eq!(told.header("transfer-encoding"), "");
        assert!(told.body == text);
    }
}

#[tokio::test]
async fn head_says_what_get_says_without_the_bytes() {
    let host = Host::start().await;
    let owner = host.owner("acme");

    for bytes in [noise(1_000, 1), noise(1_000_000, 2)] {
        let asset = owner.upload(bytes).await;
        let delivery = owner.share(&asset, 60).await;
        for (caller, url) in
            [(host.stranger(), asset.url.clone()), (host.stranger(), delivery), (owner.clone(), bound(&asset))]
        {
            let got = Told::of(caller.get(&url).await).await;
            let head = Told::of(caller.head(&url).await).await;
            assert_eq!((head.status, &head.headers, head.body.len()), (got.status, &got.headers, 0));

            let ranged = caller.request(Method::HEAD, &url).header("range", "bytes=0-1");
            assert_eq!(Told::of(ranged.send().await.expect("an answer")).await, head);
        }
    }
}

#[tokio::test]
async fn nobody_keeps_bytes_for_longer_than_their_asset_lives() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(4, 4)).await;
    let max_age = async || Told::of(host.stranger().get(&asset.url).await).await.header("cache-control").to_owned();

    assert_eq!(max_age().await, "private, max-age=300");
    owner.put("/v1/runs/run-1", &json!({"status": "closed", "logRetentionSeconds": 400})).await;
    assert_eq!(max_age().await, "private, max-age=300");
    host.advance(Duration::from_millis(280_500));
    assert_eq!(max_age().await, "private, max-age=119");
    host.advance(Duration::from_secs(119));
    assert_eq!(max_age().await, "private, max-age=0");
    host.advance(Duration::from_millis(500));
    assert_eq!(host.stranger().get(&asset.url).await.status(), 410);
}

fn bound(asset: &Asset) -> String {
    format!("/v1/assets/{}/content", asset.id)
}

async fn named(owner: &Caller<'_>, bytes: Vec<u8>, name: &str) -> Asset {
    let request = owner.request(Method::POST, "/v1/runs/run-1/assets").query(&[("name", name)]);
    asset(request.header("content-type", "image/png").body(bytes).send().await.expect("an answer")).await
}

async fn minted(owner: &Caller<'_>, asset: &Asset, wish: &Value) -> String {
    let told = Told::of(owner.post(&format!("/v1/assets/{}/urls", asset.id), wish).await).await;
    told.json()["url"].as_str().expect("a URL").to_owned()
}

fn digest_of(bytes: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, bytes);
    format!("sha-256=:{}:", data_encoding::BASE64.encode(hash.as_ref()))
}

#[tokio::test]
async fn an_asset_that_ends_while_it_is_asked_for_is_over() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload_loose(noise(200_000, 7)).await;
    assert_eq!(host.stranger().head(&asset.url).await.status(), 200, "its row is in the cache from now on");
    // Between the reading of the row and the opening of the bytes somebody else deletes the asset.
    let (app, tenant) = (host.app(), TenantId::parse("acme").expect("a tenant"));
    let id = AssetId::parse(&asset.id).expect("an id");
    let audit = AuditEvent::new(AuditKind::Expire, "test", host.now()).asset(id);
    let deleted = app.index.delete(&tenant, id, &app.terms(&tenant), audit, host.now()).await.expect("an index");
    let Deleted::Gone(record) = deleted else { panic!("{deleted:?}") };
    app.blobs.remove(&tenant, record.blob).await.expect("a store");

    let gone = host.stranger().get(&asset.url).await;

    assert_eq!(gone.status(), 410);
    assert_eq!(refusal(gone).await["details"]["reason"], "asset_expired");
}

#[tokio::test]
async fn an_asset_that_has_lost_its_bytes_is_not_served_now() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(noise(200_000, 7)).await;
    let (app, tenant) = (host.app(), TenantId::parse("acme").expect("a tenant"));
    let id = AssetId::parse(&asset.id).expect("an id");
    let record = app.index.find(&tenant, id).await.expect("an index").expect("a row");
    app.blobs.remove(&tenant, record.blob).await.expect("a store");

    let lost = host.stranger().get(&asset.url).await;

    assert_eq!(lost.status(), 503);
    assert_eq!(refusal(lost).await["error"], "service_unavailable");
}
