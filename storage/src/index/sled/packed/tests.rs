use std::fmt::Debug;

use proptest::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::*;
use crate::audit::{AuditEvent, AuditKind, AuditRow};
use crate::ids::{AssetId, BlobKey, Digest, RunId, TenantId};
use crate::index::sled::rows::{AssetRow, BlobEntry, BlobState, RunRow, Sum, WaitingRow};
use crate::record::{AssetRecord, AssetState, DurableUrl, Labels, Origin, RunRecord, RunStatus};
use crate::retention::RunEnd;

fn times() -> impl Strategy<Value = Timestamp> {
    let (least, most) = (Timestamp::MIN.as_nanosecond(), Timestamp::MAX.as_nanosecond());
    prop_oneof![Just(least), Just(-1), Just(0), Just(most), least..=most]
        .prop_map(|nanos| Timestamp::from_nanosecond(nanos).expect("a time in range"))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("x".repeat(200)), ".{0,9}"]
}

fn ids() -> impl Strategy<Value = AssetId> {
    any::<[u8; 16]>().prop_map(AssetId::from_bytes)
}

fn digests() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest)
}

fn runs() -> impl Strategy<Value = RunId> {
    "[a-z~:]{1,9}".prop_map(|run| RunId::parse(&run).expect("a run"))
}

fn tenants() -> impl Strategy<Value = TenantId> {
    "[A-Za-z0-9]{1,64}".prop_map(|tenant| TenantId::parse(&tenant).expect("a tenant"))
}

fn facts() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({"width": 1, "text": "ä\""})),
        Just(json!(null)),
        Just(json!("")),
        Just(json!([1.5]))
    ]
}

fn states() -> impl Strategy<Value = AssetState> {
    prop_oneof![
        Just(AssetState::Live),
        times().prop_map(|at| AssetState::Expired { at }),
        (times(), proptest::collection::vec(ids(), 0..3), any::<bool>())
            .prop_map(|(at, same_bytes, bytes_removed)| AssetState::Erased { at, same_bytes, bytes_removed }),
    ]
}

type Maybe = Option<String>;

fn maybe() -> impl Strategy<Value = Maybe> {
    proptest::option::of(text())
}

prop_compose! {
    fn assets()(
        (id, tenant, run, sha256) in (ids(), tenants(), proptest::option::of(runs()), digests()),
        (kind, mime_type, declared, same) in (text(), text(), maybe(), any::<bool>()),
        (bytes, blob, facts, revision) in (any::<u64>(), any::<[u8; 16]>(), facts(), any::<u64>()),
        labels in [maybe(), maybe(), maybe()],
        origin in ([maybe(), maybe(), maybe()], text()),
        (created_at, asked_until, look) in (times(), proptest::option::of(times()), proptest::option::of(times())),
        durable in (text(), any::<i64>(), any::<u32>()),
        (state, claim, holds) in (states(), maybe(), any::<u32>()),
    ) -> AssetRow {
        let [name, alt, title] = labels;
        let ([node_id, envelope_id, correlation_id], source) = origin;
        let (kid, issued_at, generation) = durable;
        let declared_mime_type = if same { Some(mime_type.clone()) } else { declared };
        let record = AssetRecord {
            id, tenant, run, kind, mime_type, declared_mime_type, bytes, sha256, facts, created_at, asked_until, state, revision,
            blob: BlobKey::from_bytes(blob),
            labels: Labels { name, alt, title },
            origin: Origin { node_id, envelope_id, correlation_id, source },
            durable: DurableUrl { kid, issued_at, generation },
        };
        AssetRow { record, look, claim, holds }
    }
}

fn blobs() -> impl Strategy<Value = BlobEntry> {
    let state = prop_oneof![
        (times(), any::<Option<u64>>()).prop_map(|(alive_at, reserved)| BlobState::Announced { alive_at, reserved }),
        any::<u64>().prop_map(|holders| BlobState::Held { holders }),
        times().prop_map(|remove_at| BlobState::Condemned { remove_at }),
        times().prop_map(|remove_at| BlobState::Discarded { remove_at }),
        Just(BlobState::Doomed),
    ];
    (state, any::<Option<u64>>(), proptest::option::of(digests()), proptest::option::of(ids()))
        .prop_map(|(state, bytes, sha256, asset)| BlobEntry { state, bytes, sha256, asset })
}

prop_compose! {
    fn run_rows()(
        (id, registered, closed, revision) in (runs(), any::<bool>(), any::<bool>(), any::<u64>()),
        end in prop_oneof![
            Just(RunEnd::Open),
            Just(RunEnd::Forever),
            times().prop_map(RunEnd::At),
            times().prop_map(RunEnd::Default),
        ],
        (retention_after_close, fork_of, workflow_id) in (any::<Option<i64>>(), proptest::option::of(runs()), maybe()),
        (created_at, erased_at) in (times(), proptest::option::of(times())),
        (look, walked, holds) in (proptest::option::of(times()), proptest::option::of(ids()), any::<u32>()),
    ) -> RunRow {
        let status = if closed { RunStatus::Closed } else { RunStatus::Open };
        let record = RunRecord {
            id, registered, status, end, retention_after_close, fork_of, workflow_id, created_at, erased_at, revision,
        };
        RunRow { record, look, walked, holds }
    }
}

prop_compose! {
    fn events()(
        (at, kind, principal) in (times(), prop_oneof![Just(AuditKind::Ingest), Just(AuditKind::Check)], text()),
        (asset_id, run_id) in (proptest::option::of(ids()), proptest::option::of(runs())),
        (url_id, details) in (maybe(), proptest::option::of(facts().prop_filter("JSON has no such option", |it| !it.is_null()))),
    ) -> AuditEvent {
        AuditEvent { at, kind, principal, asset_id, run_id, url_id, details }
    }
}

/// Reads back, also as version 1 has it, and no part of it reads as a whole.
fn reads_back<T: Row + Serialize + PartialEq + Debug>(row: &T) {
    let mut raw = Vec::new();
    row.write(&mut raw);
    assert_eq!(T::read("row", &raw).expect("our own row reads"), *row);
    assert_eq!(T::read("row", &codec::encode(row)).expect("an old row reads"), *row);
    for cut in 1..raw.len() {
        assert!(T::read("row", &raw[..cut]).is_err(), "{cut} bytes of {raw:?}");
    }
    raw.push(0);
    assert!(T::read("row", &raw).is_err(), "more than a row");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_read_back_as_they_were_written(
        asset in assets(),
        blob in blobs(),
        run in run_rows(),
        sum in any::<[u64; 4]>(),
        (tenant, event, seq) in (tenants(), events(), any::<u64>()),
    ) {
        let [bytes, assets, reserved_bytes, reserved_assets] = sum;
        reads_back(&asset);
        reads_back(&blob);
        reads_back(&run);
        reads_back(&Sum { bytes, assets, reserved_bytes, reserved_assets });
        reads_back(&AuditRow::seal(&tenant, seq, event.clone(), Digest([7; 32])));
        reads_back(&WaitingRow { tenant, event });
    }

    #[test]
    fn whatever_is_on_the_disk_reads_or_is_refused(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
        let raw = [&[PACKED], raw.as_slice()].concat();
        let _ = (AssetRow::read("row", &raw), BlobEntry::read("row", &raw), RunRow::read("row", &raw));
        let _ = (Sum::read("row", &raw), WaitingRow::read("row", &raw), AuditRow::read("row", &raw));
    }
}

#[test]
fn a_row_from_the_future_is_refused_with_its_name() {
    let refused = Sum::read("usage", &[PACKED + 1, 0, 0, 0, 0]).expect_err("no such version yet");
    assert!(refused.to_string().contains("usage: written as version 3"), "{refused}");
}
