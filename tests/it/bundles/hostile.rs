//! Bundles that are none, and bundles of any shape.

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use super::{CHECK, MANIFEST, SCRUB, host, send, without_manifest};

/// A text of this length is read in a second or two, or, by whoever looks back at all of it each time, in hours.
const LENGTH: usize = 256 << 10;

/// Longer than that, on whatever machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn what_is_no_json_object_is_refused_where_it_ceases_to_be_one() {
    let host = host().await;
    let owner = host.owner("acme");
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(64), "]".repeat(64));
    let number = format!("{{\"a\":{}}}", "1".repeat(5_000));
    for (text, offset) in [
        ("[]", 0),
        ("{\"a\":\"\\ud800\"}", 12),
        ("{\"a\":\"\0\"}", 6),
        ("{\"a\":\"\\u0000\"} x", 15),
        ("{\"a\":01}", 7),
        (deep.as_str(), 68),
        (number.as_str(), 6),
    ] {
        for path in [SCRUB, CHECK] {
            let told = send(&owner, path, text).await;
            assert_eq!((told.status, told.refusal()), (400, "validation_error".into()), "{text:?}");
            let found = told.json()["details"]["offset"].clone();
            assert!(found == json!(offset) || offset == 6 && found.is_u64(), "{text:.40?}: {found}");
        }
    }
}

#[tokio::test]
async fn a_bundle_cut_anywhere_is_refused_and_stores_nothing() {
    let host = host().await;
    let owner = host.owner("acme");
    let whole = r#"{"run":{"runId":"r"},"a":[{"base64":"aGVsbG8=","mimeType":"text/plain"},"\u00e9",-1.5e3,null]}"#;
    for length in 1..whole.len() {
        let told = send(&owner, SCRUB, &whole[..length]).await;
        assert_eq!(told.status, 400, "{}", &whole[..length]);
        assert_eq!(told.json()["details"]["offset"], length);
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn more_than_a_bundle_may_have_is_refused() {
    let host = host().await;
    let owner = host.owner("acme");
    let many = vec!["data:,x"; 10_001];
    let told = send(&owner, SCRUB, &json!({"run": {"runId": "r"}, "many": many}).to_string()).await;
    assert_eq!((told.status, &told.json()["details"]["limit"]), (400, &json!(10_000)));
    let link = host.url("/a/e30.e30.AAAA");
    for (piece, count, limit) in [("data:;base64,AAAA ", 10_001, 10_000), (&*format!("{link},"), 50_001, 50_000)] {
        for bundle in [
            json!({"run": {"runId": "r"}, "t": piece.repeat(count)}),
            json!({"run": {"runId": "r"}, piece.repeat(count): 1}),
        ] {
            let told = send(&owner, SCRUB, &bundle.to_string()).await;
            assert_eq!((told.status, &told.json()["details"]["limit"]), (400, &json!(limit)), "{piece}");
        }
    }
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn no_text_takes_much_longer_than_any_other() {
    let host = host().await;
    let owner = host.owner("acme");
    // Whatever might be looked at again and again.
    for piece in [
        ",",
        ":",
        "%cc",
        "base64%2c",
        "data:",
        "data:,",
        "data:;base64,A ",
        "data:;base64,%",
        "\n",
        "A\n",
        "%25",
        "\\\\",
        "\\u00",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6Im9wZW53b3AtbWVkaWErand0I",
        "https://",
        "/a/",
    ] {
        for before in ["", "data:image/png;base64,AAAA\n", "data:image/png;base64,"] {
            let text = format!("{before}{}", piece.repeat(LENGTH / piece.len()));
            let bundle = json!({"t": text}).to_string();
            let told = tokio::time::timeout(PATIENCE, send(&owner, CHECK, &bundle)).await;
            let told = told.unwrap_or_else(|_| unreachable!("{before}{piece} is still read"));
            assert!(matches!(told.status, 200 | 400), "{piece}");
        }
    }
}

/// Any JSON; some of it looks like media.
fn any_json() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        Just("base64".to_owned()),
        Just("data".to_owned()),
        Just("url".to_owned()),
        Just("mimeType".to_owned()),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[A-Za-z0-9+/]{4,8}".prop_map(Value::from),
        "(data:[a-z/]{0,5}(;base64)?,?)?[A-Za-z0-9+/=, ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|all| Value::Object(Map::from_iter(all))),
        ]
    })
}

#[tokio::test]
async fn scrubbing_twice_is_scrubbing_once_whatever_the_bundle() {
    let host = host().await;
    let owner = host.owner("acme");
    let mut runner = TestRunner::deterministic();
    for _ in 0..100 {
        let any = any_json().new_tree(&mut runner).expect("a value").current();
        let bundle = json!({"run": {"runId": "run-1"}, "any": any});
        let told = send(&owner, SCRUB, &bundle.to_string()).await;
        assert_eq!(told.status, 200, "{bundle}: {}", String::from_utf8_lossy(&told.body));
        let once = told.json();
        let twice = send(&owner, SCRUB, &once["bundle"].to_string()).await.json();
        assert_eq!(without_manifest(&twice["bundle"]), without_manifest(&once["bundle"]), "{bundle}");
        assert_eq!((&twice["scrub"]["stored"], &twice["scrub"]["rewritten"]), (&json!(0), &json!(0)), "{bundle}");
        if once["scrub"]["rewritten"] == 0 {
            let said = String::from_utf8_lossy(&told.body).into_owned();
            let kept = bundle.to_string();
            assert!(said.starts_with(&format!("{{\"bundle\":{},\"{MANIFEST}\"", &kept[..kept.len() - 1])));
        }
        let left = send(&owner, CHECK, &once["bundle"].to_string()).await.json();
        let codes = left["findings"].as_array().expect("a list").iter().map(|one| one["code"].clone());
        assert!(codes.clone().all(|code| code != "inline_media"), "{bundle}: {left}");
    }
}
