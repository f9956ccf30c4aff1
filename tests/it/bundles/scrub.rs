//! Scrubbing.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use mediakeep::access::Scope;
use serde_json::{Value, json};

use super::{MANIFEST, OUTPUTS, SCRUB, bundle, findings, host, scrubbed, send, text, without_manifest};
use crate::harness::bytes::{noise, png, wav};
use crate::harness::refusal;
use crate::harness::told::Told;

#[tokio::test]
async fn every_form_of_inlined_media_becomes_its_bound_url() {
    let host = host().await;
    let owner = host.owner("acme");
    let picture = png(5, 5);
    let code = BASE64.encode(&picture);
    let forms = json!([
        {"base64": code, "bytes": picture.len(), "mimeType": "image/png"},
        {"mimeType": "image/png", "type": "image", "data": code},
        {"type": "image", "mimeType": "image/png", "dataBase64": BASE64URL_NOPAD.encode(&picture)},
        {"contentBase64": code, "contentType": "image/png"},
        {"raw": code, "mediaType": "image/png", "filename": "a.png"},
        {"mimeType": "image/png", "base64": format!("data:image/png;base64,{code}")},
        {"url": null, "base64": code, "mimeType": "image/png"},
        {"type": "base64", "media_type": "image/png", "data": code},
    ]);

    let answer = scrubbed(&owner, &bundle(&forms)).await;

    let asset = text(&answer.pointer(&format!("/bundle/{MANIFEST}/assets/0/assetId")).cloned().expect("an asset"));
    let url = host.url(&format!("/v1/assets/{asset}/content"));
    assert_eq!(
        answer.pointer(&format!("/bundle{OUTPUTS}")),
        Some(&json!([
            {"url": url, "bytes": picture.len(), "mimeType": "image/png"},
            {"mimeType": "image/png", "type": "image", "url": url},
            {"type": "image", "mimeType": "image/png", "url": url},
            {"url": url, "contentType": "image/png"},
            {"url": url, "mediaType": "image/png", "filename": "a.png"},
            {"mimeType": "image/png", "url": url},
            {"url": url, "base64": null, "mimeType": "image/png"},
            {"type": "base64", "media_type": "image/png", "url": url},
        ]))
    );
    assert_eq!(answer["scrub"], json!({"stored": 1, "rewritten": 8, "findings": []}));
    assert_eq!(Told::of(owner.get(&url).await).await.body, picture);
}

#[tokio::test]
async fn media_need_no_type_beside_them_where_something_else_says_what_they_are() {
    let host = host().await;
    let owner = host.owner("acme");
    let picture = png(5, 5);
    let code = BASE64.encode(&picture);
    let size = picture.len();
    let long = "x".repeat(300);
    let hint = json!({"rendering": {"mimeType": "image/png"}});
    let outputs = json!([
        {"type": "media.image", "payload": {"bytes": size, "base64": code}, "meta": hint},
        {"type": "media.image", "payload": {"base64": code}},
        {"payload": {"contentBase64": code, "url": null, "mimeType": null}, "type": "media.image"},
        {"data": {"raw": code, "mimeType": ""}, "type": "media.file"},
        {"bytes": 70.5e0, "base64": code},
        {"bytes": 1, "data": code},
        {"bytes": 3, "data": "abcd"},
        {"base64": code, "mimeType": null},
        {"data": code, "mimeType": long},
    ]);

    let answer = scrubbed(&owner, &bundle(&outputs)).await;

    let out = answer.pointer(&format!("/bundle{OUTPUTS}")).expect("outputs");
    let url = text(&out[0]["payload"]["url"]);
    assert_eq!(
        out,
        &json!([
            {"type": "media.image", "payload": {"bytes": size, "url": url}, "meta": hint},
            {"type": "media.image", "payload": {"url": url}},
            {"payload": {"contentBase64": null, "url": url, "mimeType": null}, "type": "media.image"},
            {"data": {"url": url, "mimeType": ""}, "type": "media.file"},
            {"bytes": 70.5e0, "url": url},
            {"bytes": 1, "url": url},
            {"bytes": 3, "url": out[6]["url"]},
            {"url": url, "mimeType": null},
            {"url": url, "mimeType": long},
        ])
    );
    assert_eq!(answer["scrub"], json!({"stored": 2, "rewritten": 9, "findings": []}));
    let content = owner.get(&url).await;
    assert_eq!(content.headers()["content-type"], "image/png");
    assert_eq!(Told::of(content).await.body, picture);
    let again = scrubbed(&owner, &answer["bundle"]).await;
    assert_eq!(without_manifest(&again["bundle"]), without_manifest(&answer["bundle"]));
    assert_eq!(again["scrub"]["stored"], 0);
    let found = findings(&owner, &bundle(&outputs)).await;
    let inline = found.iter().filter(|(code, _)| code == "inline_media").count();
    assert_eq!(inline, 9, "{found:?}");
    assert!(found.contains(&("inline_media".into(), format!("{OUTPUTS}/0/payload/base64"))), "{found:?}");
    assert!(found.contains(&("inline_media".into(), format!("{OUTPUTS}/1/payload/base64"))), "{found:?}");
}

#[tokio::test]
async fn a_text_that_is_base64_by_chance_stays() {
    let host = host().await;
    let owner = host.owner("acme");
    let digest = "0".repeat(128);
    let outputs = json!([
        {"data": "abcd"},
        {"raw": digest, "bytes": 184_320},
        {"data": "test", "bytes": 4},
        {"data": "abcd", "mimeType": null},
        {"base64": "abcd"},
        {"payload": {"data": "abcd", "base64": "abcd"}, "type": "node.completed"},
        {"type": "media.image", "other": {"data": "abcd"}},
        {"data": "abcd", "bytes": "3"},
        {"type": "media.image", "payload": [{"data": "abcd"}]},
    ]);
    let answer = scrubbed(&owner, &bundle(&outputs)).await;
    assert_eq!(answer.pointer(&format!("/bundle{OUTPUTS}")), Some(&outputs));
    assert_eq!(answer["scrub"], json!({"stored": 0, "rewritten": 0, "findings": []}));
    assert_eq!(findings(&owner, &bundle(&outputs)).await, []);
}

#[tokio::test]
async fn data_urls_are_found_wherever_they_stand() {
    let host = host().await;
    let owner = host.owner("acme");
    let picture = png(4, 4);
    let code = BASE64.encode(&picture);
    let outputs = json!({
        "whole": format!("data:image/png;base64,{code}"),
        "wrapped": format!("data:image/png;base64,{}\r\n{}", &code[..40], &code[40..]),
        "percent": format!("data:image/png;base64,{}", code.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")),
        "text": "data:text/plain,a%20word",
        "markdown": format!("see ![it](data:image/png;base64,{code}) and <img src=\"data:image/png;base64,{code}\">"),
        "payload": {"deep": [{"deeper": format!("data:image/png;base64,{code}")}]},
        "prose": "data: loading, please wait; data:image/png;base64,...",
        "metadata": "metadata:image/png;base64,AAAA",
    });

    let answer = scrubbed(&owner, &bundle(&outputs)).await;

    let outputs = answer.pointer(&format!("/bundle{OUTPUTS}")).expect("outputs");
    let url = text(&outputs["whole"]);
    assert!(url.starts_with(&host.url("/v1/assets/ast_")), "{url}");
    for same in ["wrapped", "percent"] {
        assert_eq!(text(&outputs[same]), url, "{same}");
    }
    assert_eq!(outputs["payload"]["deep"][0]["deeper"], json!(url));
    assert_eq!(outputs["markdown"], json!(format!("see ![it]({url}) and <img src=\"{url}\">")));
    assert_eq!(Told::of(owner.get(&text(&outputs["text"])).await).await.body, "a word");
    assert_eq!(outputs["prose"], json!("data: loading, please wait; data:image/png;base64,..."));
    assert_eq!(outputs["metadata"], json!("metadata:image/png;base64,AAAA"));
    assert_eq!(answer["scrub"]["stored"], 2);
}

#[tokio::test]
async fn capability_urls_become_bound_ones_also_within_a_text() {
    let host = host().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let foreign = host.owner("globex").upload(png(2, 2)).await;
    let shared = owner.share(&asset, 60).await;
    let outputs = json!({
        "url": asset.url, "named": format!("{}/chart.png", asset.url), "shared": shared,
        "text": format!("[chart]({}), or {}.", asset.url, shared),
        "nested": json!({"url": asset.url}).to_string(),
        asset.url.clone(): 1,
        "foreign": foreign.url,
    });

    let answer = scrubbed(&owner, &bundle(&outputs)).await;

    let bound = host.url(&format!("/v1/assets/{}/content", asset.id));
    let expected = json!({
        "url": bound, "named": bound, "shared": bound,
        "text": format!("[chart]({bound}), or {bound}."),
        "nested": json!({"url": bound}).to_string(),
        bound.clone(): 1,
        "foreign": foreign.url,
    });
    assert_eq!(answer.pointer(&format!("/bundle{OUTPUTS}")), Some(&expected));
    assert_eq!(answer["scrub"]["findings"][0]["code"], "foreign_url");
    assert_eq!(answer["scrub"]["findings"][0]["path"], format!("{OUTPUTS}/foreign"));
}

#[tokio::test]
async fn a_scrubbed_bundle_passes_the_check_and_holds_none_of_the_bytes() {
    let host = host().await;
    let owner = host.owner("acme");
    let asset = owner.upload(png(3, 3)).await;
    let (sound, stuff) = (wav(1), noise(40_000, 3));
    let outputs = json!({
        "a": {"type": "media.audio", "payload": {"base64": BASE64.encode(&sound), "bytes": sound.len(), "mimeType": "audio/wav"}},
        "b": [{"type": "document", "mimeType": "application/octet-stream", "dataBase64": BASE64.encode(&stuff)}],
        "c": format!("![](data:application/octet-stream;base64,{})", BASE64.encode(&stuff)),
        "d": asset.url,
        "e": {"url": asset.url, "base64": BASE64.encode(&sound), "mimeType": "audio/wav"},
    });

    let answer = scrubbed(&owner, &bundle(&outputs)).await;

    assert_eq!(findings(&owner, &answer["bundle"]).await, []);
    let scrubbed = answer["bundle"].to_string();
    for bytes in [&sound, &stuff] {
        // Thirty bytes in the middle, as they are and as base64 writes them wherever they fall.
        let part = &bytes[600..630];
        assert!(!scrubbed.as_bytes().windows(part.len()).any(|window| window == part));
        for skip in 0..3 {
            let code = BASE64.encode(&bytes[600 + skip..627 + skip]);
            assert!(!scrubbed.contains(&code[..32]));
        }
    }
    assert!(!scrubbed.contains("/a/ey"));
    let before = findings(&owner, &bundle(&outputs)).await;
    assert_eq!(before.iter().filter(|(code, _)| code == "inline_media").count(), 4, "{before:?}");
}

#[tokio::test]
async fn a_bundle_scrubbed_again_is_unchanged_but_for_the_manifest_and_equal_bytes_are_one_asset() {
    let host = host().await;
    let owner = host.owner("acme");
    let outputs = json!([{"base64": BASE64.encode(&png(5, 5)), "mimeType": "image/png"}, {"data": "aGVsbG8=", "mimeType": "text/plain"}]);
    let first = scrubbed(&owner, &bundle(&outputs)).await;
    host.advance(std::time::Duration::from_secs(2 * 24 * 3600));

    let again = scrubbed(&owner, &bundle(&outputs)).await;
    let twice = scrubbed(&owner, &first["bundle"]).await;
    let whole = scrubbed(&owner, &first).await;

    assert_eq!(without_manifest(&again["bundle"]), without_manifest(&first["bundle"]));
    assert_eq!(again["scrub"], json!({"stored": 0, "rewritten": 2, "findings": []}));
    assert_eq!(without_manifest(&twice["bundle"]), without_manifest(&first["bundle"]));
    assert_eq!(twice["scrub"], json!({"stored": 0, "rewritten": 0, "findings": []}));
    assert_eq!(without_manifest(&whole["bundle"]), without_manifest(&first["bundle"]));
    let other = scrubbed(&owner, &json!({"run": {"runId": "run-2"}, "events": [outputs]})).await;
    assert_eq!(other["scrub"]["stored"], 2, "another run has assets of its own");
}

#[tokio::test]
async fn two_scrubs_at_a_time_make_one_asset() {
    let host = host().await;
    let owner = host.owner("acme");
    let outputs = bundle(&json!({"base64": BASE64.encode(&noise(300_000, 1)), "mimeType": "image/png"}));

    let (one, two, three) =
        tokio::join!(scrubbed(&owner, &outputs), scrubbed(&owner, &outputs), scrubbed(&owner, &outputs));

    assert_eq!(without_manifest(&one["bundle"]), without_manifest(&two["bundle"]));
    assert_eq!(without_manifest(&one["bundle"]), without_manifest(&three["bundle"]));
    let usage = Told::of(owner.get("/v1/runs/run-1").await).await.json();
    assert_eq!(usage["assets"], 1);
}

#[tokio::test]
async fn what_is_not_media_passes_byte_for_byte() {
    let host = host().await;
    let owner = host.owner("acme");
    let odd = "{ \"run\" : {\"runId\":\"run-1\"},\n\t\"n\":[1.0,1e5,-0,0.10,12345678901234567890123],\"s\":\"\\u00e9\\/\\\"é\\ud83d\\ude00\",\"twice\":1,\"twice\":2,\n \"data\":\"not base64!\",\"mimeType\":\"text/plain\", \"e\" : {} ,\"f\":[ ] }";

    let told = send(&owner, SCRUB, odd).await;

    let body = String::from_utf8_lossy(&told.body).into_owned();
    let kept = &odd[..odd.len() - 1];
    assert!(body.starts_with(&format!("{{\"bundle\":{kept},\"{MANIFEST}\":{{")), "{body}");
}

#[tokio::test]
async fn the_manifest_of_a_scrubbed_bundle_is_that_of_the_run_and_signed() {
    let host = host().await;
    let owner = host.owner("acme");
    owner.upload(png(3, 3)).await;

    let answer = scrubbed(&owner, &bundle(&json!({"base64": "aGVsbG8=", "mimeType": "text/plain"}))).await;

    let manifest = &answer["bundle"][MANIFEST];
    let shown = Told::of(owner.get("/v1/runs/run-1/debug-bundle/manifest").await).await.json();
    assert_eq!(manifest, &shown);
    assert_eq!(manifest["counts"]["assets"], 2);
}

#[tokio::test]
async fn a_scrub_that_may_not_be_is_refused_and_stores_nothing() {
    let host = host().await;
    let owner = host.owner("acme");
    let media = json!({"base64": "aGVsbG8=", "mimeType": "text/plain"});
    let send_json = async |body: Value| send(&owner, SCRUB, &body.to_string()).await;

    let no_run = send_json(json!({"events": [media]})).await;
    assert_eq!((no_run.status, no_run.refusal()), (400, "validation_error".into()));
    let foreign = send_json(json!({"run": {"runId": "run-1"}, "x": media, "tenantId": "globex"})).await;
    assert_eq!((foreign.status, foreign.refusal()), (403, "forbidden".into()));
    let own = send_json(json!({"run": {"runId": "run-9"}, "tenantId": "acme"})).await;
    assert_eq!(own.status, 200);
    let late = r#"{"run":{"runId":"run-1"},"m":{"base64":"aGVsbG8=","mimeType":"a/b"},"x":tru}"#;
    let told = send(&owner, SCRUB, late).await;
    assert_eq!((told.status, &told.json()["details"]["offset"]), (400, &json!(late.len() - 1)));
    let reader = host.with_scope("acme", Scope::AssetsRead);
    let body = refusal(reader.post(SCRUB, &bundle(&media)).await).await;
    assert_eq!(body["details"]["scopeRequired"], "assets:write");
    assert!(host.becomes_bare().await);
}
