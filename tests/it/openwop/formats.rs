//! The fifteen formats, both ways.

use serde_json::{Value, json};

use crate::harness::Host;
use crate::harness::told::Told;

async fn ask(host: &Host, name: &str) -> Told {
    Told::of(host.stranger().get(&format!("/v1/formats/{name}")).await).await
}

#[tokio::test]
async fn a_format_is_found_by_its_alias_and_by_its_type() {
    let host = Host::start().await;
    let list = Told::of(host.stranger().get("/v1/formats").await).await.json();
    let formats = list["formats"].as_array().expect("a list");
    assert_eq!(formats.len(), 15);
    assert!(formats.contains(&json!({"alias": "svg", "mediaType": "image/svg+xml"})));

    for format in formats {
        let (alias, media_type) =
            (format["alias"].as_str().expect("text"), format["mediaType"].as_str().expect("text"));
        let escaped = media_type.replace('/', "%2F").replace('+', "%2B");
        for name in [alias, media_type, &escaped] {
            let told = ask(&host, name).await;
            assert_eq!((told.status, &told.json()), (200, format), "{name}");
        }
    }
}

#[tokio::test]
async fn what_names_no_format_is_not_found() {
    let host = Host::start().await;
    for name in [
        "jpg",
        "PPTX",
        "Application/PDF",
        "text/html;charset=utf-8",
        "text/html%3Bcharset=utf-8",
        "application/",
        "application%2F",
        "%2Fpdf",
        "audio/mpeg",
        "pdf/",
        "pdf/pdf",
        "image/png/x",
        "x-own",
        "..",
        "%00",
    ] {
        let told = ask(&host, name).await;
        assert_eq!((told.status, told.refusal()), (404, "not_found".into()), "{name}");
    }
    let posted: Value = Told::of(host.stranger().post("/v1/formats/image/png", &json!({})).await).await.json();
    assert_eq!(posted["error"], "method_not_allowed");
}
