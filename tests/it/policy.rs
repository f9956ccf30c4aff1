//! How long things are kept is for the operator to say, once and clearly: no slip of it ends much at once.

use std::time::Duration;

use mediakeep::config::settings::Tenant;
use mediakeep::config::units::Span;
use mediakeep_storage::Timestamp;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::process::{Place, Server, eventually};
use crate::harness::{Caller, Host};
use crate::retention::{DAY, later};

/// Every length of time among the settings, and whether it may be nothing.
const LENGTHS: [(&str, &str, bool); 14] = [
    ("keys", "activate_after", true),
    ("uploads", "expire", false),
    ("idempotency", "keep", false),
    ("retention", "default_run_log", false),
    ("retention", "unreferenced", true),
    ("retention", "grace", true),
    ("retention", "max", true),
    ("retention", "orphan_grace", true),
    ("retention", "sweep_interval", false),
    ("retention", "tombstone_bytes", true),
    ("retention", "tombstone_record", true),
    ("capabilities", "revocation_lag", false),
    ("capabilities", "clock_skew", true),
    ("capabilities", "max_delivery", false),
];

/// As a file has them: what is negative, has no unit, is no length, or is longer than anybody means.
const WRONG: [&str; 15] = [
    "\"-1s\"",
    "\"-1\"",
    "-1",
    "\"12\"",
    "12",
    "1.5",
    "true",
    "\"\"",
    "\"soon\"",
    "\"1e18s\"",
    "\"NaN s\"",
    "[\"1s\"]",
    "\"365251d\"",
    "\"18446744073709551615s\"",
    "\"99999999999999999999d\"",
];

#[test]
fn a_length_of_time_that_cannot_be_is_refused_by_name_whichever_it_is() {
    let place = Place::new();
    let printed = place.must_run(&["settings"]).stdout;
    let known = LENGTHS.iter().map(|(section, key, _)| format!("{section}.{key}"));
    let mut known: Vec<_> = known.chain(["remote.timeout".to_owned()]).collect();
    known.sort();
    assert_eq!(lengths(&printed), known, "one that is not tried here");

    for (section, key, may_be_nothing) in LENGTHS.into_iter().chain([("remote", "timeout", false)]) {
        let said = |value: &str| {
            let header = format!("[{section}]\n");
            place.configure("");
            let file = std::fs::read_to_string(place.file("mediakeep.toml")).expect("a file");
            // A section stands there once, and may be there already.
            let file = if file.contains(&header) { file } else { file + &header };
            place.write("mediakeep.toml", file.replace(&header, &format!("{header}{key} = {value}\n")));
            place.run(&["settings"])
        };
        for value in WRONG {
            let refused = said(value);
            assert_eq!(refused.code, 2, "{section}.{key} = {value}: {refused:?}");
            assert!(refused.stderr.contains(&format!("{section}.{key}")), "{value}: {}", refused.stderr);
        }
        let nothing = said("\"0s\"");
        assert_eq!(nothing.code, if may_be_nothing { 0 } else { 2 }, "{section}.{key} = 0s: {nothing:?}");
    }
    for value in WRONG.into_iter().chain(["\"0s\"", "\"6d 23h\""]) {
        place.configure(&format!("[[tenants]]\nid = \"acme\"\ndefault_run_log = {value}"));
        let refused = place.run(&["settings"]);
        assert_eq!(refused.code, 2, "tenants: {value}: {refused:?}");
        assert!(refused.stderr.contains("tenants"), "{value}: {}", refused.stderr);
    }
}

/// The names of the settings whose values are lengths of time.
fn lengths(printed: &str) -> Vec<String> {
    let (mut section, mut found) = ("", Vec::new());
    for line in printed.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((key, value)) = line.split_once(" = ") {
            let value = value.trim_matches('"');
            let unit = value.trim_start_matches(|c: char| c.is_ascii_digit());
            if unit.len() < value.len() && matches!(unit, "s" | "m" | "h" | "d") {
                found.push(format!("{section}.{key}"));
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn the_longest_that_may_be_said_overflows_nothing() {
    let longest = Span::hours(24 * 365_250);
    let host = Host::with(|settings| {
        let retention = &mut settings.retention;
        retention.default_run_log = longest;
        retention.unreferenced = longest;
        retention.grace = longest;
        retention.orphan_grace = longest;
        retention.tombstone_bytes = longest;
        retention.tombstone_record = longest;
        settings.tenants.push(Tenant { id: "globex".into(), default_run_log: Some(longest), ..Tenant::default() });
    })
    .await;
    for tenant in ["acme", "globex"] {
        let owner = host.owner(tenant);
        let (asset, loose) = (owner.upload(png(2, 2)).await, owner.upload_loose(png(3, 3)).await);
        let end = json!({"status": "closed", "logRetainUntil": "9999-12-30T00:00:00Z"});
        assert_eq!(owner.put("/v1/runs/run-1", &end).await.status(), 200);
        let huge = json!({"status": "closed", "logRetentionSeconds": 250_000_000_000_i64});
        assert_eq!(owner.put("/v1/runs/run-2", &huge).await.status(), 200);
        assert_eq!(owner.get(&format!("/v1/assets/{}/retention", asset.id)).await.status(), 200);
        assert_eq!(owner.get("/v1/retention/preview?at=9999-12-30T00:00:00Z").await.status(), 200);
        assert_eq!(owner.delete(&format!("/v1/assets/{}", loose.id)).await.status(), 204);
        host.advance(400 * DAY);
        host.sweep().await;
        assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
        assert_eq!(host.stranger().get(&loose.url).await.status(), 410);
    }
}

#[tokio::test]
async fn a_default_of_a_tenants_own_counts_once_it_is_read_and_shortens_nothing() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let ends = async |owner: &Caller<'_>, run: &str| {
        let shown: Value = owner.get(&format!("/v1/runs/{run}")).await.json().await.expect("JSON");
        shown["logRetainUntil"].clone()
    };
    owner.upload_to("before", png(2, 2)).await;
    assert_eq!(owner.put("/v1/runs/open", &json!({})).await.status(), 200);
    let before = json!(later(&host, 30 * DAY));

    host.reload(|settings| {
        settings.tenants.push(Tenant {
            id: "acme".into(),
            default_run_log: Some(Span::hours(8 * 24)),
            ..Tenant::default()
        });
    });
    host.advance(DAY);
    for run in ["before", "after"] {
        owner.upload_to(run, png(2, 2)).await;
    }
    host.owner("globex").upload_to("after", png(2, 2)).await;
    assert_eq!(owner.put("/v1/runs/open", &json!({"status": "closed"})).await.status(), 200);

    assert_eq!(ends(&owner, "before").await, before, "what was promised stays");
    for run in ["after", "open"] {
        assert_eq!(ends(&owner, run).await, json!(later(&host, 8 * DAY)), "{run}");
    }
    assert_eq!(ends(&host.owner("globex"), "after").await, json!(later(&host, 30 * DAY)));
    host.reload(|_| {});
    owner.upload_to("after", png(2, 2)).await;
    assert_eq!(ends(&owner, "after").await, json!(later(&host, 30 * DAY)), "and without it the common one counts");
}

#[tokio::test]
async fn terms_that_have_become_shorter_end_what_they_end_with_the_first_sweep_and_nothing_else() {
    let host = Host::with(|settings| settings.retention.grace = Span::hours(24)).await;
    let owner = host.owner("acme");
    let loose = owner.upload_loose(png(2, 2)).await;
    let (held, quoted) = (owner.upload_loose(png(2, 3)).await, owner.upload_loose(png(2, 4)).await);
    let asked = json!({"base64": "aGVsbG8=", "retainUntil": later(&host, 9 * DAY)});
    let asked = crate::harness::asset(owner.post("/v1/assets", &asked).await).await;
    let ended = owner.upload_to("ended", png(2, 5)).await;
    crate::retention::keep(&owner, "ended", &later(&host, DAY / 2)).await;
    let kept = owner.upload_to("kept", png(2, 6)).await;
    let hold = owner.put(&format!("/v1/assets/{}/holds/audit", held.id), &json!({"reason": "an audit"})).await;
    assert_eq!(hold.status(), 200);
    let references = owner.post("/v1/runs/kept/references", &json!({"assets": [quoted.id]})).await;
    assert_eq!(references.status(), 200);
    host.advance(DAY);

    // With the grace none of them is past its floor before tomorrow.
    assert_eq!(host.sweep().await.expired, 0);
    let host = host
        .restart_with(|settings| {
            settings.retention.grace = Span::seconds(0);
            settings.retention.unreferenced = Span::hours(1);
        })
        .await;
    assert_eq!(mediakeep::retention::late::count(host.app()).await.expect("a count"), 2);
    assert_eq!(host.sweep().await.expired, 2);

    let owner = host.owner("acme");
    for (asset, state) in [
        (&loose, "expired"),
        (&ended, "expired"),
        (&held, "live"),
        (&quoted, "live"),
        (&asked, "live"),
        (&kept, "live"),
    ] {
        assert_eq!(owner.show(asset).await["state"], state, "{}", asset.id);
    }
    assert_eq!(mediakeep::retention::late::count(host.app()).await.expect("a count"), 0);
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn settings_that_would_end_more_than_a_thousand_at_once_take_effect_only_when_their_number_is_accepted() {
    let with = |unreferenced: &str, sweep: &str| {
        format!("[retention]\ngrace = \"0s\"\nunreferenced = \"{unreferenced}\"\nsweep_interval = \"{sweep}\"")
    };
    let place = Place::with(&with("1d", "1s"));
    let server = place.serve().await;
    upload_loose(&server, 1_000).await;

    // A slip in the file of a service that runs: it is read, and what it says of retention waits for a restart.
    place.configure(&with("1s", "1h"));
    server.signal(Signal::HUP);
    eventually(async || place.log().contains("changes of retention take a restart")).await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(expired(&server).await, 0, "two sweeps later");
    assert!(server.stop().await.success());

    assert_eq!(would_expire(&place), 1_000);
    let server = place.serve().await;
    upload_loose(&server, 1).await;
    assert!(server.stop().await.success());
    tokio::time::sleep(Duration::from_millis(1_100)).await;

    // Though under the terms of their day they are not to be looked at before tomorrow.
    assert_eq!(would_expire(&place), 1_001);
    let refused = place.run(&["serve"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let said = &refused.stderr;
    assert!(said.contains("1001 assets") && said.contains("--accept-expiry 1001"), "{said}");
    for wrong in ["0", "1000", "-1", "-1001", "1e4", "1001.0", "all", "", "99999999999999999999999"] {
        assert_eq!(place.run(&["serve", &format!("--accept-expiry={wrong}")]).code, 2, "{wrong}");
    }
    for accepted in ["1001", "5000"] {
        let server = place.start(place.command(&["serve", "--accept-expiry", accepted])).await;
        assert_eq!(expired(&server).await, 0, "the first sweep is yet to come");
        assert!(server.stop().await.success());
    }

    place.configure(&with("1d", "1h"));
    assert_eq!(would_expire(&place), 0);
    let server = place.start(place.command(&["serve", "--accept-expiry", "7"])).await;
    assert_eq!(expired(&server).await, 0);
    assert!(server.stop().await.success());

    place.configure(&with("1s", "1s"));
    let server = place.start(place.command(&["serve", "--accept-expiry", "1001"])).await;
    eventually(async || expired(&server).await == 500 && live(&server).await == 0).await;
    assert!(server.stop().await.success());
    assert_eq!(would_expire(&place), 0);
}

#[tokio::test]
async fn what_was_due_anyway_never_stops_a_start_however_much_it_is() {
    let with = |unreferenced: &str, sweep: &str| {
        format!("[retention]\ngrace = \"0s\"\nunreferenced = \"{unreferenced}\"\nsweep_interval = \"{sweep}\"")
    };
    let place = Place::with(&with("1d", "1s"));
    let server = place.serve().await;
    upload(&server, "/v1/runs/run-1/assets", 1_001).await;
    upload_loose(&server, 5).await;
    assert!(server.stop().await.success());
    // From here on nobody sweeps for a minute after a start.
    place.configure(&with("1d", "1h"));
    let server = place.serve().await;
    let end = Timestamp::now() + Duration::from_secs(8);
    let until = json!({"logRetainUntil": end.to_string()});
    let kept = server.request(Method::PUT, "/v1/runs/run-1").json(&until).send().await.expect("an answer");
    assert_eq!(kept.status(), 200);
    assert!(server.stop().await.success());
    while Timestamp::now() <= end {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    // The run ended while the service was down.
    assert_eq!(would_expire(&place), 1_001);
    let server = place.serve().await;
    assert_eq!(expired(&server).await, 0, "the first sweep is yet to come");
    assert!(server.stop().await.success());

    // Beside so many, shorter terms end a few.
    place.configure(&with("1s", "1h"));
    assert_eq!(would_expire(&place), 1_006);
    assert!(place.serve().await.stop().await.success());

    place.configure(&with("1s", "1s"));
    let server = place.serve().await;
    eventually(async || expired(&server).await > 0).await;
    assert!(server.stop().await.success());
}

async fn upload_loose(server: &Server, count: u64) {
    upload(server, "/v1/assets", count).await;
}

async fn upload(server: &Server, path: &str, count: u64) {
    let senders = count.min(8);
    let sending = (0..senders).map(async |sender| {
        for n in (sender..count).step_by(usize::try_from(senders).expect("a few")) {
            let sent = server.request(Method::POST, path).body(noise(20, n % 5)).send().await;
            assert_eq!(sent.expect("an answer").status(), 201);
        }
    });
    futures_util::future::join_all(sending).await;
}

/// How many have expired, up to a page of them.
async fn expired(server: &Server) -> usize {
    listed(server, "expired").await
}

async fn live(server: &Server) -> usize {
    listed(server, "live").await
}

async fn listed(server: &Server, state: &str) -> usize {
    let path = format!("/v1/assets?limit=500&state={state}");
    let page = server.request(Method::GET, &path).send().await.expect("an answer");
    page.json::<Value>().await.expect("JSON")["assets"].as_array().expect("a list").len()
}

fn would_expire(place: &Place) -> usize {
    let said = place.must_run(&["sweep", "--dry-run"]).stdout;
    said.split(' ').next().and_then(|count| count.parse().ok()).expect("a number")
}
