//! What an auditor reads, keeps, and checks without asking anybody.

use mediakeep::access::Scope;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::process::{Place, Ran};
use crate::harness::told::Told;
use crate::harness::{Caller, Host};

async fn sealed(host: &Host) {
    while host.app().index.seal_audit(1_000).await.expect("sealed") > 0 {}
}

async fn page(caller: &Caller<'_>, query: &str) -> Value {
    let told = Told::of(caller.get(&format!("/v1/audit/events{query}")).await).await;
    assert_eq!((told.status, told.header("cache-control")), (200, "no-store"), "{query}");
    told.json()
}

fn numbers(page: &Value) -> Vec<u64> {
    let events = page["events"].as_array().expect("a list");
    events.iter().map(|event| event["seq"].as_u64().expect("a number")).collect()
}

#[tokio::test]
async fn the_log_is_read_page_by_page_oldest_first_each_row_once() {
    let host = Host::start().await;
    let (owner, auditor) = (host.owner("acme"), host.with_scope("acme", Scope::AuditRead));
    for size in 1..=5 {
        owner.upload(png(size, 1)).await;
    }
    host.owner("globex").upload(png(9, 9)).await;
    sealed(&host).await;

    let all = page(&auditor, "").await;
    assert_eq!((numbers(&all), &all["nextCursor"]), (vec![1, 2, 3, 4, 5], &Value::Null));
    let first = &all["events"][0];
    assert_eq!(
        (&first["type"], &first["principal"], &first["runId"]),
        (&json!("ingest"), &json!("acme-all"), &json!("run-1"))
    );
    assert_eq!((&first["previous"], &all["events"][1]["previous"]), (&json!("0".repeat(64)), &first["hash"]));

    let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = page(&auditor, &query).await;
        seen.extend(numbers(&page));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        query = format!("?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    assert_eq!(numbers(&page(&auditor, "?since=3").await), [4, 5]);
    assert_eq!(numbers(&page(&auditor, "?since=18446744073709551615").await), [0; 0]);
}

#[tokio::test]
async fn the_log_is_filtered_by_what_happened_and_by_asset() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (one, other) = (owner.upload(png(1, 1)).await, owner.upload(png(2, 2)).await);
    owner.share(&one, 60).await;
    owner.share(&other, 60).await;
    sealed(&host).await;

    for (query, expected) in [
        ("type=mint".to_owned(), vec![3, 4]),
        (format!("assetId={}", one.id), vec![1, 3]),
        (format!("type=mint&assetId={}", other.id), vec![4]),
        ("type=erase".into(), vec![]),
        ("assetId=nonsense".into(), vec![]),
        ("assetId=ast_00000000000000000000000000".into(), vec![]),
        ("type=mint&since=3".into(), vec![4]),
    ] {
        assert_eq!(numbers(&page(&owner, &format!("?{query}")).await), expected, "{query}");
    }
    let filtered = page(&owner, "?type=mint&limit=1").await;
    let cursor = filtered["nextCursor"].as_str().expect("there is more");
    assert_eq!(numbers(&page(&owner, &format!("?type=mint&limit=1&cursor={cursor}")).await), [4]);

    for wrong in ["type=nonsense", "type=Mint", "since=-1", "since=x", "limit=0", "limit=501", "cursor=x", "kind=mint"]
    {
        let told = Told::of(owner.get(&format!("/v1/audit/events?{wrong}")).await).await;
        assert_eq!((told.status, told.refusal()), (400, "validation_error".into()), "{wrong}");
    }
    let foreign = host.owner("globex").get(&format!("/v1/audit/events?cursor={cursor}")).await;
    assert_eq!(foreign.status(), 400, "a cursor of another tenant");
}

#[tokio::test]
async fn a_checkpoint_says_where_the_chain_stands_and_is_signed_by_a_published_key() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let checkpoint = async |caller: &Caller<'_>| Told::of(caller.get("/v1/audit/checkpoint").await).await.json();
    let empty = checkpoint(&owner).await;
    assert_eq!((&empty["tenant"], &empty["seq"], &empty["hash"]), (&json!("acme"), &json!(0), &json!("0".repeat(64))));
    assert_eq!(empty["at"], json!(host.now().to_string()));
    assert_eq!(empty["signature"]["alg"], "EdDSA");

    // Numbers on both sides of the halves that the search looks at.
    for size in 1..=9 {
        owner.upload(png(size, 1)).await;
        sealed(&host).await;
        let last = page(&owner, &format!("?since={}", size - 1)).await["events"][0].clone();
        let now = checkpoint(&owner).await;
        assert_eq!((&now["seq"], &now["hash"]), (&json!(size), &last["hash"]));
    }

    let keys = Told::of(host.stranger().get("/.well-known/mediakeep-audit-keys").await).await;
    assert_eq!((keys.status, keys.header("cache-control")), (200, "public, max-age=300"));
    let (keys, mut document) = (mediakeep::audit::signed::keys_of(&keys.json()), checkpoint(&owner).await);
    let proven = mediakeep::audit::signed::proven(&mut document, &keys);
    assert_eq!(proven, Ok(host.app().live().ring.audit_kid()));
    assert_eq!(checkpoint(&host.owner("globex")).await["seq"], 0);
}

/// A place with four rows in its log, its service stopped, and the checkpoint that was made then.
async fn audited() -> Place {
    let place = Place::new();
    let server = place.serve().await;
    for size in 1..=4 {
        server.upload(png(size, 1)).await;
    }
    assert!(server.stop().await.success());
    let server = place.serve().await;
    let told = server.request(reqwest::Method::GET, "/v1/audit/checkpoint").send().await.expect("an answer");
    let told: Value = told.json().await.expect("JSON");
    assert_eq!(told["seq"], 4, "a service that has stopped has given every row its place: {}", place.log());
    place.write("checkpoint.json", told.to_string());
    let keys = server.request(reqwest::Method::GET, "/.well-known/mediakeep-audit-keys").send().await;
    place.write("keys.json", keys.expect("an answer").bytes().await.expect("a body"));
    assert!(server.stop().await.success());
    place
}

fn verify(place: &Place) -> Ran {
    place.run(&["audit", "verify", "--checkpoint", "checkpoint.json"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_was_changed_dropped_or_moved_is_found() {
    let place = audited().await;
    let whole = verify(&place);
    assert_eq!((whole.code, whole.stdout.as_str()), (0, "4 rows of 1 tenants are as they were sealed\n"), "{whole:?}");
    let rows = place.index().audit_rows("acme").await;

    for (what, line, change) in [
        ("changed", "acme 2: the row was changed\n", (|rows| rows[1].1["principal"] = json!("else")) as fn(&mut Rows)),
        ("dropped", "acme 3: the row is missing\n", |rows| drop(rows.remove(2))),
        ("swapped", "acme 1: the row is missing\n", |rows| {
            let (one, two) = (rows[0].1.clone(), rows[1].1.clone());
            (rows[0].1, rows[1].1) = (two, one);
        }),
        ("renumbered", "acme 2: the row was changed\n", |rows| {
            rows.remove(1);
            for (place, row) in rows.iter_mut().enumerate() {
                row.0 = place as u64 + 1;
                row.1["seq"] = json!(place + 1);
            }
        }),
        ("unreadable", "acme 4: the row does not read\n", |rows| rows[3].1["type"] = json!("nothing")),
    ] {
        let mut other = rows.clone();
        change(&mut other);
        place.index().put_audit_rows("acme", &other).await;
        let found = place.run(&["audit", "verify"]);
        assert_eq!((found.code, found.stdout.as_str()), (1, line), "{what}: {found:?}");
    }
    place.index().put_audit_rows("acme", &rows).await;
    assert_eq!(verify(&place).code, 0);
}

type Rows = Vec<(u64, Value)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_was_cut_is_found_by_whoever_kept_a_checkpoint() {
    let place = audited().await;
    let rows = place.index().audit_rows("acme").await;

    place.index().put_audit_rows("acme", &rows[..2]).await;

    assert_eq!(place.run(&["audit", "verify"]).code, 0, "a chain cannot tell of its own end");
    let found = verify(&place);
    assert_eq!(found.code, 1);
    assert!(found.stdout.starts_with("acme 3: the log was cut off") && found.stdout.lines().count() == 1, "{found:?}");

    let mut forged: Value = read(&place, "checkpoint.json");
    forged["seq"] = json!(2);
    place.write("checkpoint.json", forged.to_string());
    let found = verify(&place);
    assert_eq!((found.code, found.stdout.contains("signature")), (1, true), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_document_is_verified_without_the_service() {
    let place = audited().await;
    let report = ["audit", "verify-report", "checkpoint.json"];
    let with_keys = [&report[..], &["--keys", "keys.json"]].concat();
    assert!(place.must_run(&report).stdout.contains("holds"));
    std::fs::rename(place.file("keys"), place.file("lost")).expect("a rename");
    assert!(place.must_run(&with_keys).stdout.contains("holds"), "the ring is not needed");
    assert_eq!(place.run(&report).code, 2);

    let mut changed: Value = read(&place, "checkpoint.json");
    changed["hash"] = json!("1".repeat(64));
    place.write("checkpoint.json", changed.to_string());
    let found = place.run(&with_keys);
    assert_eq!((found.code, found.stdout.lines().count()), (1, 1), "{found:?}");
    place.write("checkpoint.json", "{");
    assert_eq!(place.run(&with_keys).code, 2);
    place.write("keys.json", "{}");
    place.write("checkpoint.json", changed.to_string());
    assert_eq!(place.run(&with_keys).code, 1, "no key, no proof");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_earlier_audit_key_signed_is_proven_until_that_key_is_retired() {
    let place = audited().await;
    let urls = place.must_run(&["keys", "list"]).stdout;
    let old = read(&place, "checkpoint.json")["signature"]["kid"].as_str().expect("a kid").to_owned();

    let listed = place.must_run(&["keys", "rotate", "--audit"]).stdout;

    assert!(listed.lines().count() == 2 && listed.contains(&format!("{old}  verifies")), "{listed}");
    assert_eq!(place.must_run(&["keys", "list"]).stdout, urls, "URLs hang on other keys");
    assert_eq!(verify(&place).code, 0, "the old checkpoint still says where the chain stood");
    let server = place.serve().await;
    let told = async |path: &str| -> Value {
        let answer = server.request(reqwest::Method::GET, path).send().await.expect("an answer");
        answer.json().await.expect("JSON")
    };
    let (new, keys) = (told("/v1/audit/checkpoint").await, told("/.well-known/mediakeep-audit-keys").await);
    assert!(server.stop().await.success());
    assert_ne!(new["signature"]["kid"], json!(old));
    place.write("new.json", new.to_string());
    place.write("keys.json", keys.to_string());
    for document in ["checkpoint.json", "new.json"] {
        place.must_run(&["audit", "verify-report", document]);
        place.must_run(&["audit", "verify-report", document, "--keys", "keys.json"]);
    }

    // Whoever has the old key can sign what they like: the operator says that it counts no more.
    place.must_run(&["keys", "retire", &old]);
    assert_eq!(place.run(&["audit", "verify-report", "checkpoint.json"]).code, 1);
    place.must_run(&["audit", "verify-report", "new.json"]);
    let signing = new["signature"]["kid"].as_str().expect("a kid").to_owned();
    assert_eq!(place.run(&["keys", "retire", &signing]).code, 2, "the key that signs stays");
}

fn read(place: &Place, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(place.file(name)).expect("a file")).expect("JSON")
}
