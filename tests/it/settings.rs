//! Settings that cannot be stop the start, in one sentence that says which and where; settings that can be are what they say.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::harness::bytes::png;
use crate::harness::process::{Place, free_port, ran, url};

/// Starts a service that must not start, and returns the one sentence it says.
fn refused(place: &Place, name: &str) -> String {
    let ran = place.run(&["serve"]);
    assert_eq!(ran.code, 2, "{name}: {ran:?}");
    assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{name}: {}", ran.stderr);
    assert!(ran.stderr.starts_with("mediakeep: "), "{name}: {}", ran.stderr);
    ran.stderr
}

#[tokio::test]
async fn a_setting_that_cannot_be_stops_the_start_with_its_name_and_its_file() {
    let place = Place::new();
    let key = |more: &str| {
        format!(
            "[[access.api_keys]]\nid = \"two\"\ntenant = \"acme\"\nscopes = []\nsecret_sha256 = \"{}\"\n{more}",
            "0".repeat(64)
        )
    };
    let hs256 = "[[access.issuers]]\nissuer = \"https://host\"\naudience = \"mediakeep\"\nalgorithm = \"HS256\"\ntenants = [\"*\"]\n";
    for (name, more) in [
        ("nonsense", "[nonsense]\nx = 1".to_owned()),
        ("grase", "[retention]\ngrase = \"1h\"".to_owned()),
        ("secret", key("secret = \"x\"")),
        ("retention.grace", "[retention]\ngrace = \"12\"".to_owned()),
        ("retention.grace", "[retention]\ngrace = 12".to_owned()),
        ("retention.grace", "[retention]\ngrace = \"-1h\"".to_owned()),
        ("retention.grace", "[retention]\ngrace = \"soon\"".to_owned()),
        ("retention.grace", "[retention]\ngrace = true".to_owned()),
        ("retention.unreferenced", "[retention]\nunreferenced = \"18446744073709551615s\"".to_owned()),
        ("retention.tombstone_record", "[retention]\ntombstone_record = \"20000 years\"".to_owned()),
        ("retention.max", "[retention]\nmax = -1".to_owned()),
        ("limits.max_upload_bytes", "[limits]\nmax_upload_bytes = \"12\"".to_owned()),
        ("limits.max_upload_bytes", "[limits]\nmax_upload_bytes = \"0\"".to_owned()),
        ("limits.max_upload_bytes", "[limits]\nmax_upload_bytes = \"2 parsecs\"".to_owned()),
        ("limits.max_json_bytes", "[limits]\nmax_json_bytes = \"0\"".to_owned()),
        ("limits.uploads_per_tenant", "[limits]\nuploads_per_tenant = -1".to_owned()),
        ("retention.default_run_log", "[retention]\ndefault_run_log = \"6d\"".to_owned()),
        ("retention.default_run_log", "[retention]\ndefault_run_log = \"0\"".to_owned()),
        ("retention.default_run_log", "[retention]\ndefault_run_log = \"1e18s\"".to_owned()),
        ("retention.sweep_interval", "[retention]\nsweep_interval = \"0s\"".to_owned()),
        ("idempotency.keep", "[idempotency]\nkeep = \"23h\"".to_owned()),
        ("capabilities.max_delivery", "[capabilities]\nmax_delivery = \"0s\"".to_owned()),
        ("ingest.policy", "[ingest]\npolicy = \"whatever\"".to_owned()),
        ("telemetry.log", "[telemetry]\nlog = \"a=b=c\"".to_owned()),
        ("remote.timeout", "[remote]\ntimeout = \"0s\"".to_owned()),
        ("remote.allow_ports", "[remote]\nallow_ports = [65536]".to_owned()),
        ("conformance.tenant", "[conformance]\ntenant = '.hidden'".to_owned()),
        ("uploads.expire", "[uploads]\nexpire = \"0s\"".to_owned()),
        ("limits.tenant_bytes", "[limits]\ntenant_bytes = 5".to_owned()),
        ("limits.tenant_assets", "[limits]\ntenant_assets = \"5\"".to_owned()),
        ("tenants", "[[tenants]]\nid = \".hidden\"".to_owned()),
        ("tenants", "[[tenants]]\nid = \"acme\"\ndefault_run_log = \"1d\"".to_owned()),
        ("tenants", "[[tenants]]\nid = \"acme\"\ndefault_run_log = \"0\"".to_owned()),
        ("tenants", "[[tenants]]\nid = \"acme\"\ndefault_run_log = \"-8d\"".to_owned()),
        ("tenants", "[[tenants]]\nid = \"acme\"\ndefault_run_log = \"20000 years\"".to_owned()),
        ("tenants", "[[tenants]]\nid = \"acme\"\nmax_inline_media_bytes = \"1 GiB\"".to_owned()),
        ("tenants", "[[tenants]]\nid = \"acme\"\n[[tenants]]\nid = \"acme\"\nsuspended = true".to_owned()),
    ] {
        place.configure(&more);
        let sentence = refused(&place, name);
        assert!(sentence.contains(name) && sentence.contains("mediakeep.toml"), "{name}: {sentence}");
    }
    for (name, more) in [
        ("access.api_keys", key("").replace("two", "acme")),
        ("access.api_keys", key("").replace("two", "Upper")),
        ("access.api_keys", key("").replace("scopes = []", "scopes = [\"assets:all\"]")),
        ("access.api_keys", key("").replace(&"0".repeat(64), "abc")),
        ("access.api_keys", key("").replace("\"acme\"", "\"../acme\"")),
        ("access.issuers", hs256.to_owned()),
        ("access.issuers", format!("{hs256}key_file = \"absent.key\"")),
        ("access.issuers", hs256.replace("HS256", "none")),
    ] {
        place.configure(&more);
        let sentence = refused(&place, name);
        assert!(sentence.contains(name), "{name}: {sentence}");
    }
    place.write("mediakeep.toml", "[server\nlisten = 1");
    assert!(refused(&place, "not TOML").contains("mediakeep.toml"));
    assert!(!place.file("blobs").exists() && !place.index().is_made().await, "nothing was made on the way");
}

#[test]
fn a_variable_that_cannot_be_stops_the_start_with_its_name() {
    let place = Place::new();
    for (name, value) in [
        ("MEDIAKEEP__RETENTION__GRASE", "1h"),
        ("MEDIAKEEP__NONSENSE", "1"),
        ("MEDIAKEEP__RETENTION__GRACE", "12"),
        ("MEDIAKEEP__RETENTION__DEFAULT_RUN_LOG", "1d"),
        ("MEDIAKEEP__SERVER__LISTEN", "0.0.0.0:0"),
        ("MEDIAKEEP__SERVER__LISTEN", "localhost"),
        ("MEDIAKEEP__SERVER__PUBLIC_BASE_URL", "media.example.com"),
        ("MEDIAKEEP__SERVER__PUBLIC_BASE_URL", "https://media.example.com/?x=1"),
        ("MEDIAKEEP__SERVER__PUBLIC_BASE_URL", "https://us3r@media.example.com"),
        ("MEDIAKEEP__SERVER__PUBLIC_BASE_URL", "https://:pa55word@media.example.com"),
    ] {
        let mut command = place.command(&["serve"]);
        command.env(name, value);
        let ran = ran(command);
        assert_eq!(ran.code, 2, "{name}={value}: {ran:?}");
        assert!(
            ran.stderr.contains(name) || ran.stderr.to_uppercase().contains(&name[name.rfind("__").unwrap_or(0) + 2..]),
            "{ran:?}"
        );
        assert!(ran.stderr.to_lowercase().contains("mediakeep__"), "the source: {}", ran.stderr);
        assert!(!ran.stderr.contains("us3r") && !ran.stderr.contains("pa55word"), "{}", ran.stderr);
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn a_variable_wins_over_the_file_and_both_over_the_default() {
    let place = Place::with("[retention]\ngrace = \"2h\"\nunreferenced = \"3h\"");
    let mut command = place.command(&["settings"]);
    command.env("MEDIAKEEP__RETENTION__GRACE", "4h").env("MEDIAKEEP__STORE__MIN_FREE", "1 GiB");
    let shown = ran(command).stdout;
    for line in ["grace = \"4h\"", "unreferenced = \"3h\"", "tombstone_bytes = \"1d\"", "min_free = \"1 GiB\""] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
}

#[test]
fn the_settings_that_are_printed_are_a_file_with_the_same_settings() {
    let place = Place::with(
        "expires = \"2031-01-01T00:00:00Z\"\n[[tenants]]\nid = \"acme\"\ndefault_run_log = \"8d\"\npolicy = \"reject-mismatch\"\n\
         [retention]\ngrace = \"1s 500ms\"\nmax = \"400d\"\n[limits]\nmax_upload_bytes = \"1234567 B\"\n[ingest]\nrefuse_types = [\"image/*\"]",
    );
    let printed = place.must_run(&["settings"]).stdout;
    let again = place.write("printed.toml", &printed);

    let reprinted = place.must_run(&["--config", again.to_str().expect("a path"), "settings"]).stdout;

    assert_eq!(reprinted, printed);
    for line in ["grace = \"1s 500ms\"", "expires = \"2031-01-01T00:00:00Z\"", "max_upload_bytes = \"1234567 B\""] {
        assert!(printed.contains(line), "{line} in {printed}");
    }
}

#[test]
fn a_file_that_is_named_has_to_exist() {
    let place = Place::new();
    let ran = place.run(&["--config", "absent.toml", "settings"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("absent.toml"), "{}", ran.stderr);
}

#[test]
fn keys_that_others_can_read_are_refused() {
    let place = Place::new();
    place.must_run(&["keys", "rotate"]);
    let ring = place.file("keys/ring.json");
    std::fs::set_permissions(&ring, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    let sentence = refused(&place, "ring");
    assert!(
        sentence.contains("keys.ring") && sentence.contains("ring.json") && sentence.contains("chmod 600"),
        "{sentence}"
    );

    std::fs::set_permissions(&ring, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let key = place.write("host.key", "k".repeat(32));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).expect("a mode");
    place.configure("[[access.issuers]]\nissuer = \"https://host\"\naudience = \"mediakeep\"\nalgorithm = \"HS256\"\ntenants = [\"*\"]\nkey_file = \"host.key\"");
    let sentence = refused(&place, "issuer");
    assert!(sentence.contains("access.issuers") && sentence.contains("host.key"), "{sentence}");
}

#[test]
fn nobody_who_could_call_is_no_service() {
    let place = Place::new();
    let text = std::fs::read_to_string(place.file("mediakeep.toml")).expect("a file");
    place.write("mediakeep.toml", text.split("[[access").next().expect("the rest"));
    let sentence = refused(&place, "nobody");
    assert!(sentence.contains("access.api_keys") && sentence.contains("hash-key"), "{sentence}");
    assert!(!place.file("keys").exists(), "a service that never was has no ring");
}

#[tokio::test]
async fn a_ring_that_is_missing_beside_data_is_told_of_and_not_replaced() {
    let mut place = Place::new();
    let server = place.serve().await;
    let answer = server.request(reqwest::Method::POST, "/v1/runs/run-1/assets").body("hello").send().await;
    assert_eq!(answer.expect("an answer").status(), 201);
    assert!(server.stop().await.success());
    std::fs::rename(place.file("keys/ring.json"), place.file("kept.json")).expect("a rename");

    for command in [&["serve"][..], &["keys", "rotate"], &["verify"], &["sweep"], &["keys", "list"]] {
        let ran = place.run(command);
        assert_eq!(ran.code, 2, "{command:?}: {ran:?}");
        assert!(ran.stderr.contains("ring.json"), "{command:?}: {}", ran.stderr);
        assert!(!place.file("keys/ring.json").exists(), "{command:?}");
    }
    // Also when one of the two stores is lost.
    place.lose_index();
    assert_eq!(place.run(&["serve"]).code, 2);
    place.find_index();
    std::fs::rename(place.file("kept.json"), place.file("keys/ring.json")).expect("a rename");
    assert!(place.serve().await.stop().await.success());
}

#[tokio::test]
async fn an_index_or_a_store_that_is_missing_beside_the_others_data_is_told_of_and_not_replaced() {
    let mut place = Place::new();
    let server = place.serve().await;
    let sent = server.upload(png(3, 3)).await;
    assert!(server.stop().await.success());

    place.lose_index();
    refused_without(&place, "index", "index.url");
    assert!(!place.index().is_made().await);
    place.find_index();

    std::fs::rename(place.file("blobs"), place.file("kept")).expect("a rename");
    refused_without(&place, "blobs", "store.url");
    std::fs::rename(place.file("kept"), place.file("blobs")).expect("a rename");

    let server = place.serve().await;
    assert_eq!(server.opens(url(&sent)).await, 200);
}

/// Every command refuses, names the setting, and makes nothing in the folder that is missing.
fn refused_without(place: &Place, missing: &str, setting: &str) {
    // A place where nothing is mounted may be there, or not.
    for mount_point in [false, true] {
        if mount_point {
            std::fs::create_dir(place.file(missing)).expect("a folder");
        }
        for command in [&["serve"][..], &["verify"], &["sweep"], &["keys", "retire", "k", "--force"]] {
            let ran = place.run(command);
            assert_eq!(ran.code, 2, "{missing} {command:?}: {ran:?}");
            assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{missing} {command:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(setting) && ran.stderr.contains("mount"), "{missing}: {}", ran.stderr);
            let made = std::fs::read_dir(place.file(missing)).map_or(0, Iterator::count);
            assert_eq!(made, 0, "{missing} {command:?}");
        }
    }
    std::fs::remove_dir(place.file(missing)).expect("an empty folder");
}

#[tokio::test]
async fn a_command_that_looks_after_stores_makes_none() {
    let place = Place::new();
    place.must_run(&["keys", "rotate"]);
    for command in [&["verify"][..], &["sweep"], &["sweep", "--dry-run"], &["keys", "retire", "k"]] {
        let ran = place.run(command);
        assert_eq!(ran.code, 2, "{command:?}: {ran:?}");
        assert!(ran.stderr.contains("there is no index"), "{command:?}: {}", ran.stderr);
    }
    assert!(!place.index().is_made().await && !place.file("blobs").exists());
}

#[tokio::test]
async fn a_store_in_memory_begins_empty_beside_an_index_that_stays() {
    let place = Place::new();
    let serve = async || {
        let mut command = place.command(&["serve"]);
        command.env("MEDIAKEEP__STORE__URL", "memory:");
        place.start(command).await
    };
    let server = serve().await;
    server.upload(png(3, 3)).await;
    assert!(server.stop().await.success());

    assert!(serve().await.stop().await.success());
}

#[tokio::test]
async fn a_second_process_on_one_index_is_told_so_within_a_second() {
    let place = Place::new();
    let server = place.serve().await;
    let other = free_port();
    for arguments in
        [&["serve"][..], &["sweep"], &["sweep", "--dry-run"], &["verify"], &["keys", "retire", "k", "--force"]]
    {
        let mut command = place.command(arguments);
        command.env("MEDIAKEEP__SERVER__LISTEN", format!("127.0.0.1:{other}"));
        let ran = ran(command);
        assert_eq!(ran.code, 3, "{arguments:?}: {ran:?}");
        assert!(
            ran.stderr.contains("another process") && ran.stderr.contains("stop it"),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert!(ran.took < Duration::from_secs(5), "{arguments:?}: {:?}", ran.took);
    }
    assert!(server.stop().await.success());
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let place = Place::new();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", place.port())).expect("the port");
    let sentence = refused(&place, "port");
    assert!(sentence.contains("server.listen") && sentence.contains(&place.port().to_string()), "{sentence}");
}
