//! One asset in the protocol's shapes.

use data_encoding::BASE64;
use mediakeep::access::Scope;
use mediakeep::config::units::Size;
use serde_json::{Value, json};

use super::{holds_against, schema};
use crate::harness::bytes::{noise, png, wav};
use crate::harness::told::Told;
use crate::harness::{Asset, Caller, Host, asset};

const CAP: u64 = 12_000;

async fn capped() -> Host {
    Host::with(|settings| settings.limits.max_inline_media_bytes = Size(CAP)).await
}

async fn told(caller: &Caller<'_>, asset: &Asset, form: &str) -> Told {
    Told::of(caller.get(&format!("/v1/assets/{}/as/{form}", asset.id)).await).await
}

async fn seen(caller: &Caller<'_>, asset: &Asset, form: &str) -> Value {
    let told = told(caller, asset, form).await;
    assert_eq!((told.status, told.header("cache-control")), (200, "no-store"), "{form}: {}", told.json());
    told.json()
}

async fn refused(caller: &Caller<'_>, asset: &Asset, form: &str) {
    let told = told(caller, asset, form).await;
    assert_eq!((told.status, told.refusal()), (400, "validation_error".into()), "{form}");
}

fn bound(host: &Host, asset: &Asset) -> String {
    host.url(&format!("/v1/assets/{}/content", asset.id))
}

async fn named(caller: &Caller<'_>, bytes: &[u8], name: &str, mime_type: &str) -> Asset {
    let body = json!({"base64": BASE64.encode(bytes), "name": name, "mimeType": mime_type});
    asset(caller.inline(&body).await).await
}

/// An `ftyp` and a `moov` with a video track, and nothing to play.
fn movie() -> Vec<u8> {
    fn atom(name: &[u8; 4], content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        [(content.len() as u32 + 8).to_be_bytes().as_slice(), name, &content].concat()
    }
    let handler = atom(b"hdlr", &[&[0; 8], b"vide", &[0; 12], b"video\0"]);
    let track = atom(b"trak", &[&atom(b"mdia", &[&handler])]);
    [atom(b"ftyp", &[b"isom\0\0\x02\0isommp41"]), atom(b"moov", &[&track]), atom(b"mdat", &[&[0; 9]])].concat()
}

#[tokio::test]
async fn the_envelope_is_the_one_that_the_ingest_answered() {
    let host = capped().await;
    let owner = host.owner("acme");
    for bytes in [png(3, 3), wav(1), noise(CAP as usize, 1), noise(CAP as usize + 1, 2), movie(), b"words".to_vec()] {
        let asset = named(&owner, &bytes, "a.bin", "application/octet-stream").await;
        let envelope = seen(&owner, &asset, "envelope").await;
        assert_eq!(envelope, asset.answer["envelope"]);
        holds_against("ai-envelope", &envelope);
    }
}

#[tokio::test]
async fn who_may_not_mint_gets_the_url_that_asks_for_a_credential() {
    let host = capped().await;
    let owner = host.owner("acme");
    let reader = host.with_scope("acme", Scope::AssetsRead);
    let (large, sound) = (owner.upload(noise(CAP as usize + 1, 1)).await, owner.upload(wav(3)).await);
    for (asset, form, url) in [
        (&large, "envelope", "/payload/url"),
        (&large, "content-part?by=url", "/url"),
        (&sound, "speech?voiceId=host:ana", "/audio/url"),
    ] {
        let capability = seen(&owner, asset, form).await;
        assert_eq!(capability.pointer(url), Some(&json!(asset.url)), "{form}: the string that the log has");
        assert_eq!(host.stranger().get(&asset.url).await.status(), 200);

        let without = seen(&reader, asset, form).await;
        assert_eq!(without.pointer(url), Some(&json!(bound(&host, asset))), "{form}");
        assert!(!without.to_string().contains("/a/"), "{form}");
    }
}

#[tokio::test]
async fn a_capability_that_is_handed_out_stands_in_the_audit_log() {
    let host = capped().await;
    let owner = host.owner("acme");
    let asset = owner.upload(noise(CAP as usize + 1, 1)).await;
    let inlined = owner.upload(png(3, 3)).await;
    let reader = host.with_scope("acme", Scope::AssetsRead);

    seen(&owner, &asset, "envelope").await;
    seen(&reader, &asset, "envelope").await;
    seen(&owner, &inlined, "envelope").await;

    host.app().index.seal_audit(100).await.expect("an index");
    let rows = Told::of(owner.get("/v1/audit/events?type=mint").await).await.json();
    let rows = rows["events"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["assetId"], &rows[0]["principal"]), (&json!(asset.id), &json!("acme-all")));
}

#[tokio::test]
async fn a_content_part_leads_to_its_bytes_one_way() {
    let host = capped().await;
    let owner = host.owner("acme");
    for (bytes, kind) in [
        (png(3, 3), "image"),
        (wav(1), "audio"),
        (b"%PDF-1.4\n%%EOF\n".to_vec(), "document"),
        (b"words\n".to_vec(), "document"),
    ] {
        let asset = owner.upload(bytes.clone()).await;
        let media_ref = json!({"type": kind, "mimeType": asset.answer["asset"]["mimeType"], "mediaRef": format!("blob:{}", asset.id)});
        assert_eq!(seen(&owner, &asset, "content-part").await, media_ref);
        for (by, member, value) in [
            ("mediaRef", "mediaRef", format!("blob:{}", asset.id)),
            ("url", "url", asset.url.clone()),
            ("data", "data", BASE64.encode(&bytes)),
        ] {
            let part = seen(&owner, &asset, &format!("content-part?by={by}")).await;
            holds_against("content-part", &part);
            assert_eq!((&part["type"], &part[member]), (&json!(kind), &json!(value)));
            let mut two = part.clone();
            two[if by == "url" { "mediaRef" } else { "url" }] = json!("https://elsewhere.example/x");
            assert!(!schema("content-part").is_valid(&two));
        }
    }
    for wrong in ["content-part?by=base64", "content-part?by=", "content-part?voiceId=x", "content-part?by=url&by=url"]
    {
        refused(&owner, &owner.upload(png(3, 3)).await, wrong).await;
    }
}

#[tokio::test]
async fn an_a2a_part_carries_the_bound_url_whatever_the_caller_may() {
    let host = capped().await;
    let owner = host.owner("acme");
    let asset = named(&owner, &png(3, 3), "chart.png", "image/png").await;
    let part = json!({"url": bound(&host, &asset), "mediaType": "image/png", "filename": "chart.png"});
    for form in ["a2a-part", "a2a-part?by=url"] {
        assert_eq!(seen(&owner, &asset, form).await, part);
    }
    holds_against("a2a-part", &part);
    let raw = seen(&owner, &asset, "a2a-part?by=raw").await;
    holds_against("a2a-part", &raw);
    assert_eq!(raw, json!({"raw": BASE64.encode(&png(3, 3)), "mediaType": "image/png", "filename": "chart.png"}));

    let url = part["url"].as_str().expect("a URL");
    assert_eq!(owner.get(url).await.status(), 200);
    assert_eq!(host.owner("globex").get(url).await.status(), 404);
    assert_eq!(host.stranger().get(url).await.status(), 401);
}

#[tokio::test]
async fn bytes_travel_inside_only_up_to_the_cap() {
    let host = capped().await;
    let owner = host.owner("acme");
    let (at, above) = (owner.upload(noise(CAP as usize, 1)).await, owner.upload(noise(CAP as usize + 1, 1)).await);
    for form in ["a2a-part?by=raw", "content-part?by=data"] {
        seen(&owner, &at, form).await;
        refused(&owner, &above, form).await;
    }
    let none = Host::with(|settings| settings.limits.max_inline_media_bytes = Size(0)).await;
    let one = none.owner("acme").upload(b"x".to_vec()).await;
    refused(&none.owner("acme"), &one, "a2a-part?by=raw").await;
}

#[tokio::test]
async fn an_attachment_is_a_handle_and_no_address() {
    let host = capped().await;
    let owner = host.owner("acme");
    let asset = named(&owner, &movie(), "a.mp4", "video/mp4").await;
    let reference = seen(&owner, &asset, "attachment-ref").await;
    holds_against("attachment-ref", &reference);
    let bytes = movie().len();
    let expected = json!({"ref": format!("blob:{}", asset.id), "filename": "a.mp4", "mediaType": asset.answer["asset"]["mimeType"], "bytes": bytes});
    assert_eq!(reference, expected);
    assert!(!reference.to_string().contains("http"));
}

#[tokio::test]
async fn speech_has_its_length_its_voice_and_one_of_url_and_base64() {
    let host = capped().await;
    let owner = host.owner("acme");
    for seconds in [1, 2, 3] {
        let asset = named(&owner, &wav(seconds), "a.wav", "audio/mpeg").await;
        let told = seen(&owner, &asset, "speech?voiceId=host:narrator%2F1").await;
        holds_against("speech-result", &told);
        let audio = &told["audio"];
        assert_eq!((&audio["voiceId"], &audio["mimeType"]), (&json!("host:narrator/1"), &json!("audio/wav")));
        assert_eq!(audio["durationSeconds"].as_f64(), Some(f64::from(seconds)));
        assert_eq!(audio.get("base64").is_some(), seconds == 1, "measured in characters of base64");
    }
    let sound = owner.upload(wav(1)).await;
    for wrong in ["speech", "speech?voiceId=", "speech?voiceId=%0A", "speech?voiceId=a&by=url"] {
        refused(&owner, &sound, wrong).await;
    }
}

#[tokio::test]
async fn a_form_that_the_asset_cannot_take_is_refused() {
    let host = capped().await;
    let owner = host.owner("acme");
    let (picture, film) = (owner.upload(png(3, 3)).await, owner.upload(movie()).await);
    assert_eq!(film.answer["asset"]["kind"], "video");
    refused(&owner, &picture, "speech?voiceId=v").await;
    refused(&owner, &film, "content-part").await;
    refused(&owner, &film, "a2a-part?by=raw").await;
    let none = told(&owner, &picture, "picture").await;
    assert_eq!((none.status, none.refusal()), (404, "not_found".into()), "there is no such form");
}

#[tokio::test]
async fn a_dead_asset_takes_no_form() {
    let host = capped().await;
    let owner = host.owner("acme");
    let (ended, erased) = (owner.upload_loose(wav(1)).await, owner.upload_loose(wav(2)).await);
    assert_eq!(owner.delete(&format!("/v1/assets/{}", ended.id)).await.status(), 204);
    assert_eq!(owner.delete(&format!("/v1/assets/{}?erase=true", erased.id)).await.status(), 200);
    for form in ["envelope", "content-part", "a2a-part", "attachment-ref", "speech?voiceId=v"] {
        for (asset, reason) in [(&ended, "asset_expired"), (&erased, "asset_erased")] {
            let told = told(&owner, asset, form).await;
            assert_eq!((told.status, told.refusal()), (410, format!("not_found: {reason}")), "{form}");
        }
    }
}

#[tokio::test]
async fn a_caller_without_the_scope_or_of_another_tenant_sees_no_form() {
    let host = capped().await;
    let asset = host.owner("acme").upload(png(3, 3)).await;
    for form in ["envelope", "content-part?by=data", "a2a-part?by=raw", "attachment-ref", "speech", "nonsense"] {
        assert_eq!(told(&host.stranger(), &asset, form).await.status, 401, "{form}");
        assert_eq!(told(&host.with_scope("acme", Scope::AssetsMint), &asset, form).await.status, 403, "{form}");
        let foreign = told(&host.owner("globex"), &asset, form).await;
        assert_eq!((foreign.status, foreign.refusal()), (404, "not_found".into()), "{form}");
    }
}
