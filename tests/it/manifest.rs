//! The media manifest of a run's debug bundle.

use std::collections::BTreeSet;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::harness::Host;
use crate::harness::bytes::{png, wav};
use crate::harness::told::Told;

const PATH: &str = "/v1/runs/run-1/debug-bundle/manifest";

#[tokio::test]
async fn a_manifest_names_what_the_run_quotes_and_carries_none_of_it() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let picture = owner.upload(png(6, 6)).await;
    host.advance(Duration::from_millis(1));
    let sound = owner.upload(wav(1)).await;
    host.advance(Duration::from_millis(1));
    let quoted = owner.upload_to("run-2", png(7, 7)).await;
    owner.upload_to("run-2", png(8, 8)).await;
    owner.post("/v1/runs/run-1/references", &json!({"assets": [quoted.url]})).await;

    let told = Told::of(owner.get(PATH).await).await;

    assert_eq!((told.status, told.header("cache-control")), (200, "no-store"));
    let manifest = told.json();
    assert_eq!((&manifest["manifestVersion"], &manifest["runId"]), (&json!("1.0"), &json!("run-1")));
    assert_eq!((&manifest["truncated"], manifest.get("nextCursor")), (&json!(false), None));
    assert_eq!(manifest["generatedAt"], "2027-01-15T08:00:00.002Z");
    let entries = manifest["assets"].as_array().expect("a list");
    let expected = [(&picture, "media.image"), (&sound, "media.audio"), (&quoted, "media.image")];
    assert_eq!(entries.len(), expected.len());
    let mut sum = 0;
    for (entry, (asset, kind)) in entries.iter().zip(expected) {
        let own = owner.show(asset).await;
        assert_eq!(entry["url"], host.url(&format!("/v1/assets/{}/content", asset.id)));
        assert_eq!(
            (&entry["assetId"], &entry["kind"], &entry["state"]),
            (&json!(asset.id), &json!(kind), &json!("live"))
        );
        for member in ["mimeType", "bytes", "sha256", "createdAt", "retainUntil"] {
            assert_eq!(entry[member], own[member], "{member}");
        }
        sum += own["bytes"].as_u64().expect("a size");
    }
    assert_eq!(manifest["counts"], json!({"assets": 3, "bytes": sum}));
    let text = String::from_utf8_lossy(&told.body);
    assert!(!text.contains("/a/") && !text.contains("base64"), "{text}");
}

#[tokio::test]
async fn a_manifest_is_signed_by_the_rings_audit_key() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.upload(png(6, 6)).await;
    let mut manifest = Told::of(owner.get(PATH).await).await.json();

    let signature = manifest.as_object_mut().and_then(|members| members.remove("signature")).expect("a signature");
    let ring = &host.app().live().ring;
    assert_eq!((&signature["alg"], &signature["kid"]), (&json!("EdDSA"), &json!(ring.audit_kid())));
    let value = BASE64URL_NOPAD.decode(signature["value"].as_str().expect("text").as_bytes()).expect("base64url");
    let key = UnparsedPublicKey::new(&ED25519, ring.audit_public_key().as_bytes());
    // With whole numbers and these names, RFC 8785 is what a sorted map prints.
    let text = manifest.to_string();
    assert!(key.verify(text.as_bytes(), &value).is_ok(), "{text}");

    let changed = text.replace("\"live\"", "\"dead\"");
    assert!(key.verify(changed.as_bytes(), &value).is_err());
}

#[tokio::test]
async fn the_dead_stand_in_the_manifest_with_their_state() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let dead = owner.upload(png(6, 6)).await;
    owner.put("/v1/runs/run-1", &json!({"status": "closed", "logRetentionSeconds": 60})).await;
    host.advance(Duration::from_secs(61));
    host.sweep().await;

    let manifest = Told::of(owner.get(PATH).await).await.json();

    let entry = &manifest["assets"][0];
    assert_eq!((&entry["assetId"], &entry["state"]), (&json!(dead.id), &json!("expired")));
    assert_eq!(entry["sha256"], dead.answer["asset"]["sha256"]);
    assert_eq!(manifest["counts"]["assets"], 1);
}

#[tokio::test]
async fn the_pages_of_a_manifest_hold_each_asset_once() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let mut uploaded = BTreeSet::new();
    for size in 1..=5 {
        uploaded.insert(owner.upload(png(size, 1)).await.id);
    }

    let (mut listed, mut sizes, mut cursor) = (BTreeSet::new(), Vec::new(), String::new());
    loop {
        let page = Told::of(owner.get(&format!("{PATH}?limit=2{cursor}")).await).await.json();
        assert_eq!(page["counts"]["assets"], 5, "counts are of the whole run");
        assert!(page["signature"]["value"].is_string());
        let entries = page["assets"].as_array().expect("a list");
        sizes.push(entries.len());
        listed.extend(entries.iter().filter_map(|entry| entry["assetId"].as_str().map(str::to_owned)));
        let Some(next) = page.get("nextCursor").and_then(Value::as_str) else {
            break;
        };
        cursor = format!("&cursor={next}");
        if sizes.len() == 1 {
            // What comes meanwhile does not push anything out.
            owner.upload_to("run-9", png(9, 9)).await;
        }
    }
    assert_eq!((listed, sizes), (uploaded, vec![2, 2, 1]));
}

#[tokio::test]
async fn a_manifest_of_no_run_and_a_broken_page_are_refused() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    owner.upload(png(6, 6)).await;

    for (path, status, code) in [
        ("/v1/runs/run-7/debug-bundle/manifest", 404, "not_found"),
        (&*format!("{PATH}?limit=0"), 400, "validation_error"),
        (&format!("{PATH}?limit=501"), 400, "validation_error"),
        (&format!("{PATH}?cursor=x"), 400, "validation_error"),
        (&format!("{PATH}?unknown=1"), 400, "validation_error"),
        ("/v1/runs/run%20one/debug-bundle/manifest", 400, "validation_error"),
    ] {
        let told = Told::of(owner.get(path).await).await;
        assert_eq!((told.status, told.refusal()), (status, code.into()), "{path}");
    }
    owner.put("/v1/runs/run-7", &json!({})).await;
    let empty = Told::of(owner.get("/v1/runs/run-7/debug-bundle/manifest").await).await.json();
    assert_eq!((&empty["assets"], &empty["counts"]), (&json!([]), &json!({"assets": 0, "bytes": 0})));
}
