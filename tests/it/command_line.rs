//! The command line, as it is typed: what each command does, says, and leaves as its exit code.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::process::{Place, Server, eventually, free_port, ran, url};

#[test]
fn help_lists_what_there_is() {
    let place = Place::new();
    let help = place.must_run(&["--help"]).stdout;
    for command in [
        "quickstart",
        "serve",
        "put",
        "sweep",
        "verify",
        "index",
        "copy",
        "keys",
        "audit",
        "access",
        "openapi",
        "settings",
    ] {
        assert!(help.contains(&format!("  {command} ")), "{command} in {help}");
    }
    assert!(place.must_run(&["--version"]).stdout.starts_with("mediakeep "));
    for wrong in [
        &["nonsense"][..],
        &[],
        &["put"],
        &["keys"],
        &["keys", "retire"],
        &["serve", "--nonsense"],
        &["verify", "--shallow"],
    ] {
        assert_eq!(place.run(wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn the_openapi_document_needs_no_configuration() {
    let place = Place::new();
    std::fs::remove_file(place.file("mediakeep.toml")).expect("a file");
    let document: Value = serde_json::from_str(&place.must_run(&["openapi"]).stdout).expect("JSON");
    assert_eq!(document["openapi"].as_str().map(|version| &version[..3]), Some("3.1"));
    assert!(document["paths"]["/v1/runs/{runId}"]["put"].is_object());
}

#[tokio::test]
async fn files_are_put_and_what_could_not_be_is_told() {
    let place = Place::new();
    let server = place.serve().await;
    let base = server.url("");
    let (key, wrong) = (place.write("key", format!("{}\n", Server::key())), place.write("wrong", "mk_acme_wrong"));
    let (key, wrong) = (key.to_str().expect("a path"), wrong.to_str().expect("a path"));
    place.write("one ü#?.png", png(6, 4));
    place.write("two.bin", noise(3_000_000, 1));
    place.write("empty", "");

    let sent =
        place.must_run(&["put", "one ü#?.png", "two.bin", "--server", &base, "--run", "run-7", "--key-file", key]);
    let urls: Vec<&str> = sent.stdout.split_whitespace().filter(|word| word.starts_with("http")).collect();
    assert_eq!(urls.len(), 2, "{sent:?}");
    let got = server.request(Method::GET, urls[1]).send().await.expect("an answer").bytes().await.expect("a body");
    assert_eq!(got, noise(3_000_000, 1));
    let list: Value = server
        .request(Method::GET, "/v1/runs/run-7/assets")
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(
        (&list["assets"][0]["name"], &list["assets"][0]["mimeType"]),
        (&json!("one ü#?.png"), &json!("image/png"))
    );

    let mut from_environment = place.command(&["put", "two.bin", "--server", &format!("{base}/")]);
    from_environment.env("MEDIAKEEP_KEY", Server::key());
    assert_eq!(ran(from_environment).code, 0);

    let nowhere = format!("http://127.0.0.1:{}", free_port());
    for (code, arguments) in [
        (1, vec!["empty", "--server", &base, "--key-file", key]),
        (1, vec!["two.bin", "--server", &base, "--key-file", wrong]),
        (2, vec!["absent", "--server", &base, "--key-file", key]),
        (2, vec!["two.bin", "--server", &base]),
        (2, vec!["two.bin", "--server", &base, "--key-file", "absent"]),
        (2, vec!["two.bin", "--server", &base, "--key-file", "empty"]),
        (2, vec!["two.bin", "--server", &base, "--run", "a/b", "--key-file", key]),
        (2, vec!["two.bin", "--server", "nonsense", "--key-file", key]),
        (3, vec!["two.bin", "--server", &nowhere, "--key-file", key]),
    ] {
        let ran = place.run(&[vec!["put"], arguments.clone()].concat());
        assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
        assert!(!ran.stderr.is_empty() && !ran.stderr.contains("secret-of"), "{ran:?}");
    }
    let some = place.run(&["put", "empty", "two.bin", "--server", &base, "--key-file", key]);
    assert_eq!((some.code, some.stdout.lines().count()), (1, 2), "the good one arrives: {some:?}");
    assert!(server.stop().await.success());
}

#[tokio::test]
async fn a_sweep_says_what_it_would_end_and_ends_it() {
    let place = Place::with(
        "[retention]\ngrace = \"0s\"\ntombstone_bytes = \"0s\"\nunreferenced = \"1s\"\nsweep_interval = \"1h\"",
    );
    let server = place.serve().await;
    let request = server.request(Method::POST, "/v1/assets").body("hello").send();
    assert_eq!(request.await.expect("an answer").status(), 201);
    let kept = server.upload(png(3, 3)).await;
    assert!(server.stop().await.success());
    tokio::time::sleep(Duration::from_millis(1100)).await;

    for _ in 0..2 {
        assert_eq!(place.must_run(&["sweep", "--dry-run"]).stdout, "1 assets would expire\n");
    }
    let report: Value = serde_json::from_str(&place.must_run(&["sweep"]).stdout).expect("JSON");
    assert_eq!(
        (&report["expired"], &report["expiredBytes"], &report["removedBlobs"]),
        (&json!(1), &json!(5), &json!(1))
    );
    let again: Value = serde_json::from_str(&place.must_run(&["sweep"]).stdout).expect("JSON");
    assert_eq!((&again["expired"], &again["removedBlobs"]), (&json!(0), &json!(0)));
    assert_eq!(place.must_run(&["sweep", "--dry-run"]).stdout, "0 assets would expire\n");
    let server = place.serve().await;
    assert_eq!(server.opens(url(&kept)).await, 200);
}

#[tokio::test]
async fn verify_finds_what_is_lost_and_counts_what_is_pending() {
    let place = Place::new();
    let server = place.serve().await;
    for length in [1_000, 2_000, 3_000] {
        server.upload(noise(length, 1)).await;
    }
    assert!(server.stop().await.success());
    let verify = |code: i32, says: &[&str]| {
        let ran = place.run(&["verify"]);
        assert_eq!(ran.code, code, "{ran:?}");
        says.iter().for_each(|word| assert!(ran.stdout.contains(word), "{word}: {ran:?}"));
    };
    verify(0, &["3 blobs compared, 0 without a row"]);

    let kept = blob(&place, 3_000);
    let name = kept.file_name().and_then(|name| name.to_str()).expect("a name");
    let stray =
        kept.with_file_name(format!("{}{}", &name[..name.len() - 2], if name.ends_with("00") { "11" } else { "00" }));
    std::fs::copy(&kept, &stray).expect("a copy");
    place.write("blobs/staging/stray", "half an upload");
    let stray = stray.file_name().and_then(|name| name.to_str()).expect("a name");
    verify(0, &["3 blobs compared, 1 without a row", &format!("acme {stray}: bytes without a row")]);

    std::fs::write(blob(&place, 2_000), noise(1_999, 1)).expect("a shorter file");
    verify(1, &["the bytes have another size", "acme"]);
    std::fs::remove_file(blob(&place, 1_000)).expect("a file");
    verify(1, &["the bytes have another size", "the bytes are missing"]);
    std::fs::write(blob(&place, 1_999), noise(2_000, 1)).expect("the file");
    verify(1, &["the bytes are missing"]);
    // A sweep gives up neither: the stray is young, and what is missing may be found again.
    place.must_run(&["sweep"]);
    verify(1, &["the bytes are missing", &format!("acme {stray}: bytes without a row")]);
    verify(1, &["the bytes are missing", &format!("acme {stray}: bytes without a row")]);
}

#[tokio::test]
async fn verify_reads_every_byte_when_it_is_asked_to() {
    let place = Place::new();
    let server = place.serve().await;
    for length in [1_000, 200_000] {
        server.upload(noise(length, 1)).await;
    }
    assert!(server.stop().await.success());
    assert_eq!(place.run(&["verify", "--deep"]).code, 0);

    let large = blob(&place, 200_000);
    let mut bytes = std::fs::read(&large).expect("the file");
    bytes[150_000] ^= 1;
    std::fs::write(&large, bytes).expect("one bit turned");

    assert_eq!(place.run(&["verify"]).code, 0, "the size is right");
    let ran = place.run(&["verify", "--deep"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("the bytes have another digest"), "{ran:?}");
    assert_eq!(ran.stdout.lines().count(), 2, "one line for the blob and one for the whole: {ran:?}");
}

/// The one blob of that length.
fn blob(place: &Place, length: u64) -> PathBuf {
    let found = place.blobs().into_iter().find(|file| std::fs::metadata(file).is_ok_and(|meta| meta.len() == length));
    found.expect("a blob")
}

#[tokio::test]
async fn a_key_is_rotated_while_the_service_runs_and_retired_when_nothing_hangs_on_it() {
    let place = Place::with("");
    let text = std::fs::read_to_string(place.file("mediakeep.toml")).expect("a file");
    place.write("mediakeep.toml", text.replace("[[access", "activate_after = \"0s\"\n[[access"));
    let first = place.must_run(&["keys", "rotate"]).stdout;
    assert_eq!(first.lines().count(), 1, "{first}");
    assert_eq!(place.must_run(&["keys", "list"]).stdout, first);
    let old = first.split_whitespace().next().expect("a kid").to_owned();
    let server = place.serve().await;
    let before = server.upload(png(3, 3)).await;

    let listed = place.must_run(&["keys", "rotate"]).stdout;
    assert!(listed.contains(&format!("{old}  verifies")) && listed.contains("  signs  "), "{listed}");
    server.signal(rustix::process::Signal::HUP);
    eventually(async || kid(url(&server.upload(png(5, 5)).await)) != kid(url(&before))).await;
    assert_eq!(server.opens(url(&before)).await, 200);
    let id = before["asset"]["assetId"].as_str().expect("an id");
    let mint = async |server: &Server, class: &str| -> Value {
        let request = server.request(Method::POST, &format!("/v1/assets/{id}/urls")).json(&json!({"class": class}));
        request.send().await.expect("an answer").json().await.expect("JSON")
    };
    let delivery = mint(&server, "delivery").await;
    assert_ne!(kid(url(&delivery)), kid(url(&before)));
    assert!(server.stop().await.success());

    let refused = place.run(&["keys", "retire", &old]);
    assert_eq!(refused.code, 1);
    assert!(refused.stdout.contains(" live durable URLs hang on "), "{refused:?}");
    let ring = std::fs::read(place.file("keys/ring.json")).expect("a ring");
    let forced = place.must_run(&["keys", "retire", &old, "--force"]);
    assert!(forced.stdout.contains("is retired"), "{forced:?}");
    assert_ne!(std::fs::read(place.file("keys/ring.json")).expect("a ring"), ring);
    assert!(!place.must_run(&["keys", "list"]).stdout.contains(&old));
    for wrong in [old.as_str(), "nonsense"] {
        assert_eq!(place.run(&["keys", "retire", wrong]).code, 2, "{wrong}");
    }
    let signing = place.must_run(&["keys", "list"]).stdout.split_whitespace().next().expect("a kid").to_owned();
    assert_eq!(place.run(&["keys", "retire", &signing, "--force"]).code, 2, "the key that signs stays");

    let server = place.serve().await;
    assert_eq!(server.opens(url(&before)).await, 404);
    assert_eq!(server.opens(url(&delivery)).await, 200, "another key signed it");
    let minted = mint(&server, "durable").await;
    assert_ne!(minted["url"], before["url"]);
    assert_eq!(server.opens(url(&minted)).await, 200);
}

/// The head of the URL's token, which names its key.
fn kid(url: &str) -> &str {
    url.rsplit("/a/").next().and_then(|token| token.split('.').next()).expect("a token")
}
