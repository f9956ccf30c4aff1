//! The first minute: the main job on one's own files, without any configuration.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::harness::bytes::png;
use crate::harness::process::{Place, eventually, files, ran};

#[tokio::test]
async fn quickstart_is_the_main_job_without_any_configuration() {
    let place = Place::new();
    std::fs::remove_file(place.file("mediakeep.toml")).expect("a file");
    place.write("chart.png", png(12, 9));
    let quickstart = |files: &[&str]| {
        let mut command = place.command(&[&["quickstart"], files].concat());
        command
            .env("MEDIAKEEP__SERVER__LISTEN", format!("127.0.0.1:{}", place.port()))
            .env("MEDIAKEEP__SERVER__ADMIN_LISTEN", "127.0.0.1:0");
        command
    };
    let server = place.start(quickstart(&["chart.png", "absent.png"])).await;
    eventually(async || place.log().contains("curl")).await;
    let said = place.log();
    let first = word(&said, "/a/");
    assert!(said.contains("chart.png: image/png") && said.contains("12×9") && said.contains("absent.png: "), "{said}");
    let admin = word(&said, "/metrics;");
    assert_eq!(server.opens(admin.trim_end_matches(';')).await, 200);
    assert_eq!(server.opens(&first).await, 200);
    let key = std::fs::read_to_string(place.file("data/api-key")).expect("a key");
    for line in said.lines().filter(|line| line.trim_start().starts_with("curl")) {
        let command = line.replace("@FILE", "@chart.png").replace("name=FILE", "name=chart.png");
        let output = std::process::Command::new("sh")
            .args(["-c", &command])
            .current_dir(place.path())
            .output()
            .expect("a shell");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{command}: {output:?}"));
        assert!(answer.get("error").is_none(), "{command}: {answer}");
    }
    assert!(server.stop().await.success());
    assert!(!said.contains(key.trim()), "the key stays in its file");
    for path in files(&place.file("data"))
        .iter()
        .flat_map(|file| file.ancestors())
        .filter(|path| path.starts_with(place.file("data")))
    {
        let mode = std::fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }

    let server = place.start(quickstart(&[])).await;
    eventually(async || place.log().matches("keep the run").count() == 2).await;
    let said = place.log();
    assert!(said.contains("sunrise.png: image/png") && said.contains("chord.wav: audio/wav"), "{said}");
    assert_eq!(std::fs::read_to_string(place.file("data/api-key")).expect("a key"), key);
    assert_eq!(server.opens(&first).await, 200);
    assert!(server.stop().await.success());

    place.write("data/api-key", "");
    let refused = ran(quickstart(&[]));
    assert_eq!(refused.code, 2, "a key without a secret is none: {refused:?}");
}

/// The first word of the text that holds this.
fn word(text: &str, part: &str) -> String {
    text.split_whitespace().find(|word| word.contains(part)).expect(part).to_owned()
}
