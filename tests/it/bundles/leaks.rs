//! Whatever a bundle holds them in, a scrubbed one has no byte of its media and no capability.

use data_encoding::BASE64;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};

use super::{CHECK, OUTPUTS, SCRUB, bundle, findings, host, scrubbed, send, text};
use crate::harness::bytes::noise;
use crate::harness::told::Told;

/// What `encodeURIComponent` leaves alone, nearly.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Base64 as it is broken over lines.
fn lines(code: &str, width: usize, between: &str) -> String {
    code.as_bytes().chunks(width).map(String::from_utf8_lossy).collect::<Vec<_>>().join(between)
}

fn percent(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Every byte of it, as no encoder has to.
fn all_percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// Whether a piece of the base64 is still there, however its lines are broken.
fn holds(scrubbed: &Value, code: &str) -> bool {
    let rest: String = scrubbed.to_string().chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    let plain: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
    plain.as_bytes().windows(12).any(|part| rest.contains(std::str::from_utf8(part).expect("ASCII")))
}

#[tokio::test]
async fn base64_that_is_broken_over_lines_goes_from_a_text_and_what_stands_around_it_stays() {
    let host = host().await;
    let owner = host.owner("acme");
    // Of these lengths the last line is full, short, and padded in two ways.
    for length in [570, 571, 572, 600, 579] {
        let bytes = noise(length, length as u64);
        let code = BASE64.encode(&bytes);
        let url = |code: &str| format!("data:application/octet-stream;base64,{code}");
        let nested = |value: &str| json!({"deep": json!({"text": value}).to_string()}).to_string();
        let slashes = |value: &str| value.replace('/', "\\/").replace('+', "\\u002B");
        for (before, media, after) in [
            ("see ", url(&lines(&code, 76, "\n")), "\nand then some words"),
            ("see ", url(&lines(&code, 76, "\r\n")), "\r\n\r\nThanks"),
            ("image: >\n  ", url(&lines(&code, 64, "\n    ")), "\nnext: yes"),
            ("<img src='", url(&lines(&code, 60, "\n")), "'/>"),
            ("![x](", url(&lines(&code, 48, "\n")), ") ok"),
            ("\"", url(&lines(&code, 100, "\r\n")), "\" said I"),
            ("https://x.test/?u=", percent(&url(&code)), "&v=1"),
            ("https://x.test/?u=", percent(&url(&lines(&code, 76, "\r\n"))), "&v=1"),
            ("{\"n\":\"", slashes(&url(&code)), "\"}"),
        ] {
            let outputs = json!([format!("{before}{media}{after}"), nested(&format!("{before}{media}{after}"))]);

            let answer = scrubbed(&owner, &bundle(&outputs)).await;

            let kept = answer.pointer(&format!("/bundle{OUTPUTS}")).expect("outputs");
            assert!(!holds(kept, &code), "{length}: {outputs}\n{kept}");
            let said = text(&kept[0]);
            assert!(said.starts_with(before) && said.ends_with(after), "{length}: {outputs}\n{kept}");
            let url = &said[before.len()..said.len() - after.len()];
            let url = percent_decode_str(url).decode_utf8().expect("a URL").into_owned();
            assert_eq!(Told::of(owner.get(&url).await).await.body, bytes, "{length}: {outputs}\n{kept}");
            let inner: Value = serde_json::from_str(&text(&kept[1])).expect("what was JSON still is");
            let inner: Value = serde_json::from_str(&text(&inner["deep"])).expect("what was JSON still is");
            assert!(inner["text"].is_string());
            assert_eq!(findings(&owner, &answer["bundle"]).await, [], "{outputs}");
        }
    }
}

#[tokio::test]
async fn words_after_a_data_url_are_no_part_of_it() {
    let host = host().await;
    let owner = host.owner("acme");
    let bytes = noise(57, 7);
    let code = BASE64.encode(&bytes);
    for after in [
        "\nthanks",
        "\nthanks for that",
        "\n\nRegards",
        "\n/usr/local/share/pictures/of/something",
        "\nhttps://example.com/x",
        " and so on",
        "; next",
        "\n0cc175b9c0f1b6a831c399e269772661",
    ] {
        let text = format!("look: data:image/png;base64,{}{after}", &code[..48]);
        let answer = scrubbed(&owner, &bundle(&json!({"t": text}))).await;
        let said = super::text(answer.pointer(&format!("/bundle{OUTPUTS}/t")).expect("a text"));
        let url = said.strip_prefix("look: ").and_then(|said| said.strip_suffix(after));
        let url = url.unwrap_or_else(|| unreachable!("{after:?} is as it was: {said:?}"));
        assert_eq!(Told::of(owner.get(url).await).await.body, bytes[..36], "{after:?}");
    }
}

#[tokio::test]
async fn capabilities_go_wherever_they_hide() {
    let host = host().await;
    let owner = host.owner("acme");
    let url = owner.upload(noise(40, 1)).await.url;
    let token = url.rsplit('/').next().expect("a token");
    let other = owner.share(&owner.upload(noise(41, 2)).await, 60).await;
    let bound = |url: &str| url.contains("/v1/assets/ast_");
    for hidden in [
        format!("https://x.test/go?next={}&state=1", percent(&url)),
        format!("https://x.test/go?next={}", percent(&percent(&url))),
        format!("https://x.test/go?next={}", percent(&format!("https://y.test/?u={}", percent(&url)))),
        all_percent(&url),
        all_percent(&all_percent(&url)),
        format!("{url},{other}"),
        format!("a={url}&b={other}"),
        format!("{url}?next=https://example.com/"),
        format!("{url}/a%20b.png?x=%20"),
        format!("_{url}_ and *{other}*"),
        url.replace("http://", "HTTP://"),
        url.replace('/', "\\/"),
        url.replace('/', "\\u002f"),
        url.replace('/', "&#x2F;"),
        json!({"a": json!({"b": url.replace('/', "\\/")}).to_string()}).to_string(),
        token.to_owned(),
        format!("Bearer {token}"),
        format!("https://old.address.test/media/a/{token}"),
        format!("/a/{token}"),
        format!("{}/v1/host/sample/assets/{token}", host.url("")),
        vec![url.as_str(); 60].join(","),
        format!("https://x.test/{}?{url}", "long/".repeat(4_000)),
        format!("{}{url}{}", "x".repeat(8_000), "y".repeat(9_000)),
    ] {
        let told = scrubbed(&owner, &bundle(&json!({"u": hidden, hidden.clone(): 1}))).await;

        let mut said = told.to_string();
        for _ in 0..4 {
            for mac in [&url, &other].map(|url| url.rsplit('.').next().expect("a MAC")) {
                assert!(!said.contains(mac), "{hidden}\n{said}");
            }
            said = percent_decode_str(&said).decode_utf8_lossy().into_owned();
        }
        assert!(bound(&said), "{hidden}\n{said}");
        assert_eq!(findings(&owner, &told["bundle"]).await, [], "{hidden}");
        let before = findings(&owner, &bundle(&json!({"u": hidden}))).await;
        assert!(before.iter().any(|(code, _)| code == "capability_url"), "{hidden}: {before:?}");
    }
}

#[tokio::test]
async fn a_capability_within_another_url_is_written_anew_as_it_was_written() {
    let host = host().await;
    let owner = host.owner("acme");
    let asset = owner.upload(noise(40, 1)).await;
    let bound = host.url(&format!("/v1/assets/{}/content", asset.id));
    let component = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
    for wraps in [
        |inner: &str| format!("https://x.test/go?next={inner}&state=1#end"),
        |inner: &str| format!("see https://x.test/{inner}, please"),
    ] {
        for (written, anew) in [
            (component(&asset.url), component(&bound)),
            (component(&component(&asset.url)), component(&component(&bound))),
            (asset.url.clone(), bound.clone()),
        ] {
            let answer = scrubbed(&owner, &bundle(&json!([wraps(&written)]))).await;
            let said = answer.pointer(&format!("/bundle{OUTPUTS}/0")).expect("a text");
            assert_eq!(said, &json!(wraps(&anew)));
        }
    }
}

#[tokio::test]
async fn a_name_that_would_travel_by_a_report_is_not_repeated_in_it() {
    let host = host().await;
    let owner = host.owner("acme");
    let url = owner.upload(noise(40, 1)).await.url;
    let code = BASE64.encode(&noise(40, 2));
    let broken = json!({"mimeType": "image/png", "base64": "no base64!"});
    let mut outputs = json!({});
    for name in [url.clone(), format!("data:image/png;base64,{code}"), format!("data:image/png;base64,{}", &code[..41])]
    {
        outputs[name] = broken.clone();
    }

    for path in [SCRUB, CHECK] {
        let told = send(&owner, path, &bundle(&outputs).to_string()).await.json();
        let report = if path == SCRUB { &told["scrub"] } else { &told };
        assert!(report["findings"].as_array().is_some_and(|all| all.len() >= 3), "{report}");
        let report = report.to_string();
        assert!(!report.contains(url.rsplit('.').next().expect("a MAC")) && !report.contains(&code[..24]), "{report}");
    }
    let before = findings(&owner, &bundle(&outputs)).await;
    assert!(before.iter().any(|(code, path)| code == "inline_media" && path.ends_with("/[REDACTED]")), "{before:?}");
}

#[tokio::test]
async fn base64_that_is_almost_right_is_told_whatever_its_member_is_called() {
    let host = host().await;
    let owner = host.owner("acme");
    let code = BASE64.encode(&noise(300, 3));
    let broken = [code[..code.len() - 3].to_owned(), format!("{}!{}", &code[..200], &code[201..])];
    for code in &broken {
        for name in ["base64", "data", "raw", "dataBase64", "contentBase64"] {
            let outputs = json!({"mimeType": "image/png", name: code});
            let told = scrubbed(&owner, &bundle(&outputs)).await;
            assert_eq!(told["scrub"]["findings"][0]["code"], "malformed", "{outputs}");
            assert_eq!(findings(&owner, &told["bundle"]).await, [("malformed".into(), format!("{OUTPUTS}/{name}"))]);
        }
        let within = json!({"t": format!("see data:image/png;base64,{code} there")});
        let found = findings(&owner, &bundle(&within)).await;
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
