//! A service over its life: what it reads again, when it refuses to start, how it stops, what it never says.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::process::{Place, client, eventually, url};

#[tokio::test]
async fn a_key_that_was_made_is_pasted_and_works_without_a_restart() {
    let place = Place::new();
    let server = place.serve().await;
    let made = place.must_run(&[
        "access",
        "hash-key",
        "--id",
        "new-1",
        "--tenant",
        "globex",
        "--scopes",
        "assets:write,assets:read",
    ]);
    let key = made.stderr.trim();
    assert!(key.starts_with("mk_new-1_") && !made.stdout.contains(&key[9..]), "{made:?}");
    let list = async || {
        let request = client().get(server.url("/v1/assets")).bearer_auth(key);
        request.send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(list().await, 401);

    place.configure(&made.stdout);
    server.signal(rustix::process::Signal::HUP);
    eventually(async || list().await == 200).await;

    // A file that was changed tells so itself, and one that cannot be used changes nothing.
    place.configure("[nonsense]");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(list().await, 200);
    place.configure("[limits]\nmax_upload_bytes = \"1 MiB\"");
    eventually(async || list().await == 401).await;
    eventually(async || place.log().contains("changes of limits take a restart")).await;
    place.write("mediakeep.toml", "");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(
        server.request(Method::GET, "/v1/assets").send().await.expect("an answer").status(),
        200,
        "an empty file lets nobody out"
    );
    assert!(server.stop().await.success());
    assert!(!place.log().contains(&key[9..]));

    for wrong in [
        ["access", "hash-key", "--id", "No", "--tenant", "acme", "--scopes", "assets:read"],
        ["access", "hash-key", "--id", "yes", "--tenant", "a/b", "--scopes", "assets:read"],
        ["access", "hash-key", "--id", "yes", "--tenant", "acme", "--scopes", "assets:all"],
    ] {
        assert_eq!(place.run(&wrong).code, 2, "{wrong:?}");
    }
    assert_eq!(
        place.run(&["access", "hash-key", "--id", "yes", "--tenant", "acme"]).code,
        2,
        "a key without a scope opens nothing"
    );
}

#[tokio::test]
async fn a_key_of_an_issuer_is_read_again_when_its_file_changes() {
    let place = Place::new();
    let write = |key: &str| {
        let staged = place.write("staged.key", key);
        std::fs::set_permissions(&staged, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        std::fs::rename(staged, place.file("host.key")).expect("a rename");
    };
    let (old, new) = ("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210");
    write(old);
    place.configure(
        "[[access.issuers]]\nissuer = \"https://host\"\naudience = \"mediakeep\"\nalgorithm = \"HS256\"\ntenants = [\"*\"]\nkey_file = \"host.key\"",
    );
    let server = place.serve().await;
    let list = async |key: &str| {
        let request = client().get(server.url("/v1/assets")).bearer_auth(jwt(key));
        request.send().await.expect("an answer").status().as_u16()
    };
    assert_eq!((list(old).await, list(new).await), (200, 401));
    write(new);
    eventually(async || list(new).await == 200).await;
    assert_eq!(list(old).await, 401);
}

/// A token of that issuer for `acme`, good for reading until 2100.
fn jwt(key: &str) -> String {
    use data_encoding::BASE64URL_NOPAD;
    let claims = json!({"iss": "https://host", "aud": "mediakeep", "tenant": "acme", "sub": "x", "scope": "assets:read", "exp": 4_102_444_800_i64});
    let part = |json: Value| BASE64URL_NOPAD.encode(json.to_string().as_bytes());
    let signed = format!("{}.{}", part(json!({"alg": "HS256", "typ": "JWT"})), part(claims));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.as_bytes());
    format!("{signed}.{}", BASE64URL_NOPAD.encode(ring::hmac::sign(&key, signed.as_bytes()).as_ref()))
}

#[tokio::test]
async fn a_service_sweeps_by_itself() {
    let place = Place::with(
        "[retention]\ngrace = \"0s\"\ntombstone_bytes = \"0s\"\nunreferenced = \"1s\"\nsweep_interval = \"1s\"",
    );
    let server = place.serve().await;
    let request = server.request(Method::POST, "/v1/assets").body("hello").send();
    let sent: Value = request.await.expect("an answer").json().await.expect("JSON");
    let id = sent["asset"]["assetId"].as_str().expect("an id");
    eventually(async || {
        let asset = server.request(Method::GET, &format!("/v1/assets/{id}")).send().await.expect("an answer");
        asset.json::<Value>().await.expect("JSON")["state"] == "expired"
    })
    .await;
    eventually(async || place.blobs().is_empty()).await;
}

#[tokio::test]
async fn a_service_that_is_told_to_stop_finishes_what_is_under_way() {
    let place = Place::new();
    let mut server = place.serve().await;
    let bytes = noise(400_000, 3);
    let (sender, pieces) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
    let stream =
        futures_util::stream::unfold(pieces, async |mut pieces| pieces.recv().await.map(|piece| (piece, pieces)));
    let request =
        server.request(Method::POST, "/v1/runs/run-1/assets").header("content-type", "application/octet-stream");
    let sending = tokio::spawn(request.body(reqwest::Body::wrap_stream(stream)).send());
    let mut halves = bytes.chunks(100_000).map(<[u8]>::to_vec);
    sender.send(Ok(halves.next().expect("a piece"))).await.expect("a reader");
    tokio::time::sleep(Duration::from_millis(300)).await;

    server.signal(rustix::process::Signal::TERM);
    tokio::time::sleep(Duration::from_millis(500)).await;
    for piece in halves {
        sender.send(Ok(piece)).await.expect("a reader");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    drop(sender);

    let answer = sending.await.expect("a task").expect("an answer");
    assert_eq!(answer.status(), 201);
    let answer: Value = answer.json().await.expect("JSON");
    assert_eq!(server.ended().await.code(), Some(0));
    let server = place.serve().await;
    let got = server.request(Method::GET, url(&answer)).send().await.expect("an answer").bytes().await.expect("a body");
    assert_eq!(got, bytes);
}

#[tokio::test]
async fn nothing_that_opens_anything_stands_in_a_log() {
    let place = Place::with("[telemetry]\nlog = \"trace\"");
    let server = place.serve().await;
    let answer = server.upload(png(3, 3)).await;
    let id = answer["asset"]["assetId"].as_str().expect("an id");
    let mint = server.request(Method::POST, &format!("/v1/assets/{id}/urls")).json(&json!({"class": "delivery"}));
    let minted: Value = mint.send().await.expect("an answer").json().await.expect("JSON");
    for path in [url(&answer), url(&minted), &format!("{}x", url(&answer)), &format!("{}/name.png?q=1", url(&minted))] {
        server.opens(path).await;
        server.request(Method::HEAD, path).header("range", "bytes=0-1").send().await.expect("an answer");
        server.request(Method::PUT, path).body("x").send().await.expect("an answer");
    }
    let references = json!({"assets": [url(&answer), url(&minted), format!("{}x", url(&minted))]});
    server.request(Method::POST, "/v1/runs/run-2/references").json(&references).send().await.expect("an answer");
    client()
        .get(server.url("/v1/assets"))
        .bearer_auth("mk_acme_wrong-secret-of-somebody")
        .send()
        .await
        .expect("an answer");
    client()
        .get(server.url("/v1/assets"))
        .bearer_auth("eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJ4In0.c2lnbmF0dXJl")
        .send()
        .await
        .expect("an answer");
    place.run(&["put", "absent", "--server", &server.url(""), "--key-file", "absent"]);
    assert!(server.stop().await.success());

    let log = place.log();
    assert!(log.contains("TRACE") && log.contains("stored asset"), "the log was turned up");
    let tokens = [url(&answer), url(&minted)].map(|url| url.rsplit("/a/").next().expect("a token").to_owned());
    let parts = tokens.iter().flat_map(|token| token.split('.').skip(1));
    for secret in parts.chain(["secret-of-the-process-tests", "wrong-secret-of-somebody", "c2lnbmF0dXJl"]) {
        let line = log.lines().find(|line| line.contains(secret)).map(|line| &line[..line.len().min(160)]);
        assert_eq!(line, None, "a secret is in the log");
    }
}
