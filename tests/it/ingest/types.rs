//! What is declared, what is found, and what is done when they differ.

use data_encoding::BASE64;
use image::ImageFormat;
use mediakeep::config::settings::{Policy, Tenant};
use serde_json::{Value, json};

use crate::harness::bytes::{noise, picture, png, wav};
use crate::harness::{Asset, Host, asset, refusal};

fn flags(asset: &Asset) -> Vec<String> {
    let flags = asset.answer.pointer("/asset/facts/flags").and_then(Value::as_array).expect("flags");
    flags.iter().map(|flag| flag.as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn other_names_of_a_type_are_no_mismatch() {
    let host = Host::start().await;
    let jpeg = picture(4, 4, ImageFormat::Jpeg);
    for (bytes, declared, told) in [
        (jpeg.clone(), "image/jpg", "image/jpeg"),
        (jpeg.clone(), "image/pjpeg", "image/jpeg"),
        (jpeg, "IMAGE/JPEG", "image/jpeg"),
        (png(2, 2), "image/png; charset=binary", "image/png"),
        (png(2, 2), "Image/PNG;q=1", "image/png"),
        (wav(1), "audio/x-wav", "audio/wav"),
        (wav(1), "audio/vnd.wave", "audio/wav"),
        (wav(1), "audio/wave", "audio/wav"),
        (b"a,b\n1,2\n".to_vec(), "text/csv; charset=utf-8; header=present", "text/csv"),
    ] {
        let asset = asset(host.owner("acme").raw("", declared, bytes).await).await;
        assert_eq!(asset.answer["asset"]["declaredMimeType"], told, "{declared}");
        assert_eq!(asset.answer["asset"]["mimeType"], told, "{declared}");
        assert!(flags(&asset).is_empty(), "{declared}: {:?}", flags(&asset));
    }
    let long = format!("image/png; note={}", "x".repeat(1_000));
    let asset = asset(host.owner("acme").raw("", &long, png(2, 2)).await).await;
    assert_eq!(asset.answer["asset"]["declaredMimeType"], "image/png");
}

#[tokio::test]
async fn saying_nothing_declares_nothing() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let without = owner.ingest().body(png(2, 2)).send().await.expect("an answer");
    let octets = owner.raw("", "application/octet-stream", png(2, 2)).await;
    let wins = owner.raw("?mimeType=application/octet-stream", "image/jpeg", png(2, 2)).await;
    let inline = owner.inline(&json!({"base64": BASE64.encode(&png(2, 2)), "mimeType": ""})).await;
    for answer in [without, octets, wins, inline] {
        let asset = asset(answer).await;
        assert_eq!(asset.answer["asset"]["declaredMimeType"], Value::Null);
        assert_eq!(asset.answer["asset"]["mimeType"], "image/png");
        assert!(flags(&asset).is_empty());
    }
}

#[tokio::test]
async fn a_mismatch_is_stored_as_what_it_is_and_flagged() {
    let host = Host::start().await;
    for declared in ["audio/mpeg", "text/html", "application/pdf", "image/jpeg"] {
        let asset = asset(host.owner("acme").raw("", declared, png(2, 2)).await).await;
        assert_eq!(asset.answer["asset"]["mimeType"], "image/png");
        assert_eq!(asset.answer["asset"]["declaredMimeType"], declared);
        assert_eq!(flags(&asset), ["declared_mismatch"]);
        let served = host.stranger().get(&asset.url).await;
        assert_eq!(served.headers()["content-type"], "image/png");
    }
    let asset = asset(host.owner("acme").raw("", "image/png", noise(100, 9)).await).await;
    assert_eq!(asset.answer["asset"]["mimeType"], "application/octet-stream");
    assert_eq!(flags(&asset), ["declared_mismatch"]);
}

#[tokio::test]
async fn a_strict_host_refuses_a_mismatch() {
    let host = Host::with(|settings| settings.ingest.policy = Policy::RejectMismatch).await;
    let owner = host.owner("acme");

    let inline = json!({"base64": BASE64.encode(&png(2, 2)), "mimeType": "audio/mp3"});
    for answer in [owner.inline(&inline).await, owner.raw("", "audio/mp3", png(2, 2)).await] {
        assert_eq!(answer.status(), 415);
        let body = refusal(answer).await;
        assert_eq!(body["error"], "unsupported_media_type");
        assert_eq!(body["details"], json!({"declared": "audio/mpeg", "detected": "image/png"}));
    }
    assert!(host.is_bare().await);
    for declared in ["image/png", "application/octet-stream", "image/png; x=y"] {
        assert_eq!(owner.raw("", declared, png(2, 2)).await.status(), 201, "{declared}");
    }
    assert_eq!(owner.raw("", "image/jpg", picture(2, 2, ImageFormat::Jpeg)).await.status(), 201);
}

#[tokio::test]
async fn one_tenant_may_be_stricter_than_the_others() {
    let host = Host::with(|settings| {
        let policy = Some(Policy::RejectMismatch);
        settings.tenants = vec![Tenant { id: "acme".into(), policy, ..Tenant::default() }];
    })
    .await;
    assert_eq!(host.owner("acme").raw("", "audio/mpeg", png(2, 2)).await.status(), 415);
    assert_eq!(host.owner("globex").raw("", "audio/mpeg", png(2, 2)).await.status(), 201);
}

#[tokio::test]
async fn types_that_are_not_wanted_are_refused_whatever_they_are_called() {
    let host = Host::with(|settings| settings.ingest.refuse_types = vec!["text/html".into(), "audio/*".into()]).await;
    let owner = host.owner("acme");
    let page = b"<!DOCTYPE html><html><body>hello</body></html>".to_vec();
    for (bytes, sent, declared, detected) in [
        (page.clone(), "text/html", json!("text/html"), "text/html"),
        (page.clone(), "text/plain", json!("text/plain"), "text/html"),
        (page, "application/octet-stream", Value::Null, "text/html"),
        (wav(1), "image/png", json!("image/png"), "audio/wav"),
    ] {
        let answer = owner.raw("", sent, bytes).await;
        assert_eq!(answer.status(), 415, "{sent}");
        assert_eq!(refusal(answer).await["details"], json!({"declared": declared, "detected": detected}));
    }
    assert!(host.is_bare().await);
    assert_eq!(owner.raw("", "image/png", png(2, 2)).await.status(), 201);
}

#[tokio::test]
async fn broken_media_are_stored_and_said_to_be_broken() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (whole, mut flipped) = (png(40, 30), png(40, 30));
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let jpeg = picture(40, 30, ImageFormat::Jpeg);
    for (what, bytes, mime_type) in [
        ("cut PNG", whole[..whole.len() / 2].to_vec(), "image/png"),
        ("PNG with a wrong checksum", flipped, "image/png"),
        ("PNG without an end", whole[..whole.len() - 12].to_vec(), "image/png"),
        ("cut JPEG", jpeg[..jpeg.len() / 2].to_vec(), "image/jpeg"),
        ("cut WAV", wav(1)[..4_000].to_vec(), "audio/wav"),
        ("cut GIF", picture(40, 30, ImageFormat::Gif)[..60].to_vec(), "image/gif"),
    ] {
        let asset = owner.upload(bytes.clone()).await;
        assert_eq!(asset.answer["asset"]["mimeType"], mime_type, "{what}");
        assert_eq!(asset.answer["asset"]["facts"]["wellFormed"], false, "{what}: {}", asset.answer["asset"]["facts"]);
        assert_eq!(host.stranger().get(&asset.url).await.bytes().await.expect("a body"), bytes, "{what}");
    }
    assert_eq!(owner.upload(whole).await.answer["asset"]["facts"]["wellFormed"], true);
}

#[tokio::test]
async fn a_picture_that_claims_to_be_huge_costs_nothing() {
    let host = Host::start().await;
    let mut bomb = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bomb.extend(100_000u32.to_be_bytes());
    bomb.extend(100_000u32.to_be_bytes());
    bomb.extend(b"\x08\x02\0\0\0\0\0\0\0");

    let asset = host.owner("acme").upload(bomb).await;

    assert_eq!(asset.answer["asset"]["facts"]["width"], 100_000);
    assert_eq!(asset.answer["asset"]["facts"]["wellFormed"], false);
}
