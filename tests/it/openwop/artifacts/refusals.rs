//! What is no artifact: refused with its place, before anything is stored.

use serde_json::{Value, json};

use super::{REPORT, put, read};
use crate::harness::bytes::png;
use crate::harness::{Host, refusal};

#[tokio::test]
async fn whatever_is_not_of_its_shape_is_named() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let raw = |more: Value| {
        let mut part = json!({"raw": "aGVsbG8=", "mediaType": "text/plain"});
        part.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"parts": [part]})
    };
    let text = json!([{"text": "words"}]);
    let mut deep = json!(1);
    for _ in 0..62 {
        deep = json!([deep]);
    }
    for (artifact, place) in [
        (json!({}), "parts"),
        (json!({"parts": []}), "parts"),
        (json!({"parts": vec![json!({"text": "x"}); 1_001]}), "parts"),
        (json!({"parts": text, "kind": "x"}), "kind"),
        (json!({"parts": text, "extensions": []}), "extensions"),
        (json!({"parts": text, "name": "x".repeat(256)}), "name"),
        (json!({"parts": text, "description": "x".repeat(4_097)}), "description"),
        (json!({"parts": text, "artifactTypeId": "report"}), "artifactTypeId"),
        (json!({"parts": text, "artifactTypeId": "Vendor.report"}), "artifactTypeId"),
        (json!({"parts": text, "schemaVersion": -1}), "schemaVersion"),
        (json!({"parts": text, "schemaVersion": 1.5}), "schemaVersion"),
        (json!({"parts": text, "schemaVersion": "1"}), "schemaVersion"),
        (json!({"parts": [{}]}), "parts/0"),
        (json!({"parts": [{"text": "a"}, {"text": "a", "data": null}]}), "parts/1"),
        (json!({"parts": [{"text": null}]}), "parts/0"),
        (json!({"parts": [{"text": 1}]}), "parts[0].text"),
        (json!({"parts": [{"text": "a", "filename": "b"}]}), "parts/0"),
        (json!({"parts": [{"text": "a", "mediaType": "text/plain"}]}), "parts/0"),
        (json!({"parts": [{"kind": "text", "text": "a"}]}), "kind"),
        (json!({"parts": [{"url": "https://elsewhere.example/x"}]}), "url"),
        (json!({"parts": [{"data": 1, "mediaType": "application/json"}]}), "parts/0"),
        (json!({"parts": [{"raw": "aGVsbG8="}]}), "parts/0"),
        (raw(json!({"mediaType": "no type"})), "parts/0/mediaType"),
        (raw(json!({"mediaType": format!("a/{}", "b".repeat(254))})), "parts/0/mediaType"),
        (raw(json!({"filename": "x".repeat(256)})), "parts/0/filename"),
        (raw(json!({"assetId": "ast_01jhp3v5x0f7rb6k2m8q4t9wze"})), "parts/0"),
        (json!({"parts": [{"data": deep}]}), "deeper than 64"),
    ] {
        let told = put(&owner, REPORT, &artifact).await;
        assert_eq!(told.status, 400, "{artifact}: {told:?}");
        assert_eq!(told.refusal(), "validation_error", "{artifact}");
        let message = told.json()["message"].as_str().expect("a sentence").to_owned();
        assert!(message.contains(place), "{artifact}: {message}");
    }
    assert!(host.is_bare().await);
    assert_eq!(read(&owner, REPORT, "").await.status, 404);
}

#[tokio::test]
async fn the_bounds_are_inclusive() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let artifact = json!({
        "name": "x".repeat(255), "description": "\u{e4}".repeat(4_096), "schemaVersion": u64::MAX,
        "artifactTypeId": format!("a.{}", "b".repeat(254)), "parts": vec![json!({"text": "x"}); 1_000],
    });
    assert_eq!(put(&owner, REPORT, &artifact).await.status, 201);
    let largest = json!({"parts": [{"text": "x".repeat((1 << 20) - 30)}]});
    assert_eq!(put(&owner, REPORT, &largest).await.status, 200);
    let larger = json!({"parts": [{"text": "x".repeat(1 << 20)}]});
    let told = put(&owner, REPORT, &larger).await;
    assert_eq!((told.status, &told.json()["details"]), (413, &json!({"limit": 1 << 20})), "what is larger is an asset");
    let bytes = data_encoding::BASE64.encode(&vec![b'x'; 2 << 20]);
    let raw = json!({"parts": [{"raw": bytes, "mediaType": "text/plain"}]});
    assert_eq!(put(&owner, REPORT, &raw).await.status, 200, "bytes are not a part of the document");
}

#[tokio::test]
async fn base64_is_read_as_an_ingest_reads_it() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let with = |raw: &str| json!({"parts": [{"text": "x"}, {"raw": raw, "mediaType": "text/plain"}]});
    for good in ["aGVsbG8=", "aGVsbG8", " aGVs\r\nbG8=\n", "-_-_", "+/+/"] {
        assert!([200, 201].contains(&put(&owner, REPORT, &with(good)).await.status), "{good:?}");
    }
    for (bad, offset) in [("aGVs bG8=", 4), ("+/+/-_-_", 4), ("aGVsbG9=", 6), ("data:text/plain;base64,aGVsbG8=", 4)] {
        let told = put(&owner, REPORT, &with(bad)).await;
        assert_eq!((told.status, told.refusal()), (400, "validation_error: invalid_base64".into()), "{bad:?}");
        let details = json!({"reason": "invalid_base64", "offset": offset, "path": "/parts/1/raw"});
        assert_eq!(told.json()["details"], details, "{bad:?}");
    }
    let empty = put(&owner, REPORT, &with(" \n")).await;
    assert_eq!((empty.status, empty.refusal()), (400, "validation_error: empty".into()));
}

#[tokio::test]
async fn what_is_not_there_is_told_by_its_position_alone() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let own = owner.upload_loose(png(1, 1)).await;
    let foreign = host.owner("globex").upload(png(2, 2)).await;
    let asset = |id: &str| json!({"assetId": id});
    let raw = json!({"raw": "aGVsbG8=", "mediaType": "text/plain"});
    let parts = json!([raw, asset(&own.id), asset(&foreign.id), asset("ast_01jhp3v5x0f7rb6k2m8q4t9wze"), asset("x")]);

    let told = put(&owner, REPORT, &json!({"parts": parts})).await;

    assert_eq!((told.status, told.json()["details"].clone()), (404, json!({"unknown": [2, 3, 4]})));
    assert_eq!(owner.get("/v1/runs/run-1").await.status(), 404, "nothing was made, and nothing stored");
    assert_eq!(owner.show(&own).await["references"], json!([]));
}

#[tokio::test]
async fn a_wrong_request_is_refused_as_anywhere() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let artifact = json!({"parts": [{"text": "x"}]});
    for path in ["/v1/runs/run-1/artifacts/a%20b", "/v1/runs/run-1/artifacts/%C3%A4", "/v1/runs/a%20b/artifacts/x"] {
        assert_eq!(put(&owner, path, &artifact).await.status, 400, "{path}");
    }
    let long = format!("/v1/runs/run-1/artifacts/{}", "a".repeat(258));
    assert_eq!(put(&owner, &long, &artifact).await.status, 400);
    assert_eq!(put(&owner, &format!("{REPORT}?more=1"), &artifact).await.status, 400);
    let foreign = json!({"tenantId": "globex", "unknown": 1, "parts": []});
    assert_eq!(put(&owner, REPORT, &foreign).await.status, 403, "looked at before anything else");
    let plain = owner.request(reqwest::Method::PUT, REPORT).header("content-type", "text/plain").body("{}");
    assert_eq!(plain.send().await.expect("an answer").status(), 415);
    let method = owner.delete(REPORT).await;
    assert_eq!((method.status().as_u16(), method.headers()["allow"].to_str().expect("words")), (405, "GET, HEAD, PUT"));
    assert_eq!(refusal(method).await["error"], "method_not_allowed");
}
