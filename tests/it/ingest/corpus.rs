//! Files as encoders make them: each is found to be what it is, and comes out as it went in.

use std::path::{Path, PathBuf};

use ring::digest;
use serde_json::Value;

use crate::harness::{Asset, Host};

/// Of a large collection one in so many: all kinds are among them, and the test stays short.
const EVERY: usize = 12;

#[tokio::test]
async fn files_of_our_own_are_what_they_are_and_come_back_as_they_were() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let host = Host::start().await;
    let right = entries(&folder.join("media.json"));
    assert!(right.len() > 20, "{}", right.len());

    for right in &right {
        let name = right["file"].as_str().expect("a name");
        let told = there_and_back(&host, &folder.join("media").join(name)).await.answer["asset"].clone();

        for member in ["mimeType", "kind"] {
            assert_eq!(told[member], right[member], "{name}: {member}");
        }
        for fact in ["width", "height", "orientation", "frames", "channels", "sampleRate"] {
            assert!(right.get(fact).is_none_or(|right| told["facts"][fact] == *right), "{name}: {fact} of {told}");
        }
        if let Some(seconds) = right.get("durationSeconds").and_then(Value::as_f64) {
            let told = told["facts"]["durationSeconds"].as_f64().expect(name);
            let tolerance = right["durationTolerance"].as_f64().expect("a tolerance");
            assert!((told - seconds).abs() <= tolerance, "{name}: {told} s, not {seconds} s");
        }
    }
    assert!(host.verify().await.is_clean());
}

/// Other projects' files, whose licences keep them out of this repository: `MEDIAKEEP_CORPUS` names a folder of them.
#[tokio::test]
async fn a_collection_that_is_named_comes_back_as_it_was() {
    let Some(folder) = std::env::var_os("MEDIAKEEP_CORPUS").map(PathBuf::from) else {
        return;
    };
    let host = Host::start().await;
    let (mut files, mut wrong) = (0, Vec::new());
    for right in entries(&folder.join("dev/manifest.json")).iter().step_by(EVERY) {
        let name = right["file"].as_str().expect("a name");
        let told = there_and_back(&host, &folder.join("dev").join(name)).await.answer["asset"].clone();
        let kind = right["expected"]["kind"].as_str().map(|kind| if kind == "unknown" { "other" } else { kind });
        if told["kind"].as_str() != kind {
            wrong.push(format!("{name}: {} is {}", told["mimeType"], told["kind"]));
        }
        files += 1;
    }
    assert!(files > 20, "{files}");
    assert!(wrong.len() * 20 <= files, "{wrong:#?}");
    assert_eq!(host.staged_files(), 0);
    assert!(host.verify().await.is_clean());
}

async fn there_and_back(host: &Host, path: &Path) -> Asset {
    let bytes = std::fs::read(path).expect("a file");
    let asset = host.owner("acme").upload(bytes.clone()).await;
    let found = host.stranger().get(&asset.url).await;

    assert_eq!(found.status(), 200, "{}", path.display());
    assert_eq!(found.headers()["content-length"], bytes.len().to_string(), "{}", path.display());
    assert_eq!(found.headers()["x-content-type-options"], "nosniff", "{}", path.display());
    assert_eq!(found.bytes().await.expect("a body"), bytes, "{}", path.display());
    let hash = digest::digest(&digest::SHA256, &bytes);
    assert_eq!(asset.answer["asset"]["sha256"], data_encoding::HEXLOWER.encode(hash.as_ref()), "{}", path.display());
    asset
}

fn entries(manifest: &Path) -> Vec<Value> {
    let text = std::fs::read(manifest).unwrap_or_else(|error| unreachable!("{}: {error}", manifest.display()));
    serde_json::from_slice(&text).expect("JSON")
}
