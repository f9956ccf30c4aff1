//! Files as they are found in the world: each goes in, and comes out the same.

use std::io::Write;
use std::path::PathBuf;

use ring::digest;
use serde_json::Value;

use crate::harness::Host;

/// One in so many: all kinds are among them, and the test stays short.
const EVERY: usize = 12;

#[tokio::test]
async fn real_files_come_back_as_they_were() {
    let Some(folder) = corpus() else {
        return;
    };
    let host = Host::start().await;
    let owner = host.owner("acme");
    let manifest = std::fs::read(folder.join("dev/manifest.json")).expect("the corpus has a manifest");
    let manifest: Vec<Value> = serde_json::from_slice(&manifest).expect("JSON");
    let (mut files, mut wrong) = (0, Vec::new());
    for entry in manifest.iter().step_by(EVERY) {
        let name = entry["file"].as_str().expect("a name");
        let bytes = std::fs::read(folder.join("dev").join(name)).expect("the corpus has its files");

        let asset = owner.upload(bytes.clone()).await;
        let found = host.stranger().get(&asset.url).await;

        assert_eq!(found.status(), 200, "{name}");
        assert_eq!(found.headers()["content-length"], bytes.len().to_string(), "{name}");
        assert_eq!(found.headers()["x-content-type-options"], "nosniff", "{name}");
        assert_eq!(found.bytes().await.expect("a body"), bytes, "{name}");
        let told = &asset.answer["asset"];
        let hash = digest::digest(&digest::SHA256, &bytes);
        assert_eq!(told["sha256"], data_encoding::HEXLOWER.encode(hash.as_ref()), "{name}");
        if told["kind"] != entry["expected"]["kind"] {
            wrong.push(format!("{name}: {} is {}", told["mimeType"], told["kind"]));
        }
        files += 1;
    }
    assert!(files > 20, "{files}");
    // Which type it is, file by file, is for the tests of the inspection; here it has to be plausible.
    assert!(wrong.len() * 20 <= files, "{wrong:#?}");
    assert_eq!(host.staged_files(), 0);
    assert!(host.verify().await.is_clean());
}

/// The folder of files: `MEDIAKEEP_CORPUS`, or `shared/corpus` beside this repository. Who has none may do without; a CI may not.
fn corpus() -> Option<PathBuf> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var_os("MEDIAKEEP_CORPUS").map_or_else(|| root.join("../shared/corpus"), PathBuf::from);
    if folder.join("dev/manifest.json").is_file() {
        return Some(folder);
    }
    let ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
    assert!(!ci, "there is no corpus at {}: set MEDIAKEEP_CORPUS", folder.display());
    // Past what the test runner captures: a test that did nothing has to be seen.
    let _ = writeln!(std::io::stderr(), "NOT TESTED: there is no corpus at {}; set MEDIAKEEP_CORPUS", folder.display());
    None
}
