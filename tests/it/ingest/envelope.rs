//! The envelope that an ingest answers with: what goes into the run's log as it is.

use data_encoding::BASE64;
use mediakeep::config::settings::Tenant;
use mediakeep::config::units::Size;
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png, wav};
use crate::harness::{Asset, Caller, Host, asset};

const CAP: usize = 4_096;

async fn capped() -> Host {
    Host::with(|settings| settings.limits.max_inline_media_bytes = Size(CAP as u64)).await
}

async fn keep(caller: &Caller<'_>, bytes: &[u8], more: &Value) -> Asset {
    let mut body = more.clone();
    body["base64"] = json!(BASE64.encode(bytes));
    asset(caller.inline(&body).await).await
}

/// The payload, which has to carry exactly one of the two, and the right one.
fn payload(asset: &Asset, inline: bool, bytes: &[u8]) -> Value {
    let payload = asset.answer["envelope"]["payload"].clone();
    assert_eq!(payload["bytes"], bytes.len());
    if inline {
        assert_eq!(payload["base64"], BASE64.encode(bytes));
        assert!(payload.get("url").is_none(), "{payload}");
    } else {
        assert_eq!(payload["url"], asset.url);
        assert!(payload.get("base64").is_none());
    }
    payload
}

#[tokio::test]
async fn small_bytes_travel_inside_and_larger_ones_by_url() {
    let host = capped().await;
    for (length, inline) in [(1, true), (CAP - 1, true), (CAP, true), (CAP + 1, false), (CAP * 4, false)] {
        let bytes = noise(length, 1);
        payload(&keep(&host.owner("acme"), &bytes, &json!({})).await, inline, &bytes);
    }
}

#[tokio::test]
async fn whoever_wants_a_url_gets_one() {
    let host = capped().await;
    let bytes = noise(9, 1);
    payload(&keep(&host.owner("acme"), &bytes, &json!({"delivery": "url"})).await, false, &bytes);
    payload(&keep(&host.owner("acme"), &bytes, &json!({"delivery": "auto"})).await, true, &bytes);
    let raw = asset(host.owner("acme").raw("?delivery=url", "text/plain", bytes.clone()).await).await;
    payload(&raw, false, &bytes);
}

#[tokio::test]
async fn a_cap_of_zero_is_never() {
    let host = Host::with(|settings| settings.limits.max_inline_media_bytes = Size(0)).await;
    payload(&keep(&host.owner("acme"), b"x", &json!({})).await, false, b"x");
}

#[tokio::test]
async fn a_tenant_may_have_a_lower_cap() {
    let host = Host::with(|settings| {
        let max_inline_media_bytes = Some(Size(10));
        settings.tenants = vec![Tenant { id: "acme".into(), max_inline_media_bytes, ..Tenant::default() }];
    })
    .await;
    payload(&keep(&host.owner("acme"), &noise(11, 1), &json!({})).await, false, &noise(11, 1));
    payload(&keep(&host.owner("globex"), &noise(11, 1), &json!({})).await, true, &noise(11, 1));
}

#[tokio::test]
async fn a_video_is_a_file_by_url() {
    let host = Host::start().await;
    let movie = movie();

    let asset = keep(&host.owner("acme"), &movie, &json!({"mimeType": "video/mp4", "name": "a.mp4"})).await;

    assert_eq!(asset.answer["asset"]["kind"], "video", "{}", asset.answer["asset"]);
    assert_eq!(asset.answer["envelope"]["type"], "media.file");
    payload(&asset, false, &movie);
}

/// A `moov` with a video track, and nothing to play.
fn movie() -> Vec<u8> {
    fn atom(name: &[u8; 4], content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        [(content.len() as u32 + 8).to_be_bytes().as_slice(), name, &content].concat()
    }
    let handler = atom(b"hdlr", &[&[0; 8], b"vide", &[0; 12], b"video\0"]);
    let header = atom(b"mdhd", &[&[0; 12], &1_000u32.to_be_bytes(), &1_000u32.to_be_bytes(), &[0; 4]]);
    let movie_header = atom(b"mvhd", &[&[0; 12], &1_000u32.to_be_bytes(), &1_000u32.to_be_bytes(), &[0; 80]]);
    let track = atom(b"trak", &[&atom(b"mdia", &[&header, &handler])]);
    [atom(b"ftyp", &[b"isom\0\0\x02\0isommp41"]), atom(b"moov", &[&movie_header, &track]), atom(b"mdat", &[&[0; 9]])]
        .concat()
}

#[tokio::test]
async fn the_hosts_own_ids_are_used_where_it_has_some() {
    let host = Host::start().await;
    let owner = host.owner("acme");

    let plain = keep(&owner, &png(2, 2), &json!({})).await;
    let own = json!({"nodeId": "n", "envelopeId": "e", "correlationId": "c", "source": "user", "alt": "words"});
    let own = keep(&owner, &png(2, 2), &own).await;

    let envelope = &plain.answer["envelope"];
    assert_eq!(envelope["envelopeId"], format!("env_{}", plain.id));
    assert_eq!(envelope["correlationId"], plain.id);
    assert_eq!(envelope["meta"]["source"], "ai-generation");
    assert_eq!(envelope["meta"]["contentTrust"], "untrusted");
    assert!(envelope.get("nodeId").is_none());
    let envelope = &own.answer["envelope"];
    assert_eq!(envelope["envelopeId"], "e");
    assert_eq!(envelope["correlationId"], "c");
    assert_eq!(envelope["nodeId"], "n");
    assert_eq!(envelope["meta"]["source"], "user");
    assert_eq!(envelope["payload"]["alt"], "words");
}

#[tokio::test]
async fn alternative_text_is_never_invented() {
    let host = Host::start().await;
    for members in [json!({"name": "chart.png", "title": "A chart"}), json!({"alt": null})] {
        let asset = keep(&host.owner("acme"), &png(2, 2), &members).await;
        assert!(!asset.answer["envelope"].to_string().contains("\"alt\""), "{}", asset.answer["envelope"]);
        assert_eq!(asset.answer["asset"]["alt"], Value::Null);
    }
}

#[tokio::test]
async fn every_payload_is_valid_against_the_schema_that_we_publish() {
    let host = capped().await;
    let members = json!({"name": "x", "alt": "a".repeat(1024), "title": "t", "nodeId": "n"});
    let mut seen = Vec::new();
    for bytes in [png(2, 2), noise(CAP + 1, 2), wav(1), b"plain words\n".to_vec(), movie(), b"\0".to_vec()] {
        for more in [json!({}), members.clone(), json!({"delivery": "url"})] {
            let asset = keep(&host.owner("acme"), &bytes, &more).await;
            let kind = asset.answer["envelope"]["type"].as_str().expect("a type").to_owned();
            let schema = host.stranger().get(&format!("/schemas/envelopes/{kind}.schema.json")).await;
            assert_eq!(schema.headers()["content-type"], "application/schema+json");
            let schema: Value = schema.json().await.expect("JSON");
            let validator = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");

            let payload = &asset.answer["envelope"]["payload"];
            let errors: Vec<String> = validator.iter_errors(payload).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{kind}: {errors:?}");
            assert!(payload.get("url").is_some() != payload.get("base64").is_some());
            let mut more = payload.clone();
            more["colour"] = json!("red");
            assert!(!validator.is_valid(&more), "{kind} is closed");
            seen.push(kind);
        }
    }
    for kind in ["media.image", "media.audio", "media.file"] {
        assert!(seen.iter().any(|seen| seen == kind), "{kind}");
    }
}

#[tokio::test]
async fn a_url_is_whole_and_names_no_file() {
    let host = Host::with(|settings| settings.server.public_base_url = "https://media.example.com/".into()).await;

    let request = host.owner("acme").ingest().header("x-forwarded-host", "evil.example").header("host", "evil.example");
    let asset =
        asset(request.query(&[("name", "secret-plan.png")]).body(png(2, 2)).send().await.expect("an answer")).await;

    assert!(asset.url.starts_with("https://media.example.com/a/"), "{}", asset.url);
    assert!(!asset.url.contains("secret-plan"));
    assert!(!asset.answer.to_string().contains("evil.example"));
}
