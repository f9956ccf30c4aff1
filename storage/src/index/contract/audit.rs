//! The log.

use super::Subject;
use super::stage::{MANY, Owner, day, event, run_id};
use crate::audit::{AuditKind, AuditRow};

/// The rows hang together from the first on, and each is of this tenant.
fn assert_chained(owner: &Owner, rows: &[AuditRow]) {
    let (mut seq, mut previous) = (0, AuditRow::GENESIS);
    for row in rows {
        assert!(row.holds(&owner.tenant), "{row:?}");
        assert_eq!((row.seq, row.previous), (seq + 1, previous));
        (seq, previous) = (row.seq, row.hash);
    }
}

fn kinds(rows: &[AuditRow]) -> Vec<AuditKind> {
    rows.iter().map(|row| row.event.kind).collect()
}

pub(super) async fn each_transition_leaves_its_event(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    owner.run_until("run-1", day(5), day(0)).await;
    owner.refer("run-1", &[id], day(0)).await;
    owner.delete(id, day(5)).await;
    let other = vec![event(AuditKind::Denied, day(5)), event(AuditKind::Key, day(5))];
    index.record(&owner.tenant, other).await.expect("a record");

    let log = owner.log().await;

    let right = {
        use AuditKind::{Denied, Erase, Floor, Ingest, Key, Refer};
        [Ingest, Floor, Refer, Erase, Denied, Key]
    };
    assert_eq!(kinds(&log), right);
    assert_eq!((log[0].event.asset_id, log[2].event.run_id.clone()), (Some(id), Some(run_id("run-1"))));
    assert_chained(&owner, &log);
}

pub(super) async fn each_tenant_has_a_chain_of_its_own(index: Subject) {
    let owners = ["acme", "acm", "b"].map(|name| Owner::of(&index, name));
    for n in 0..4 {
        for owner in &owners {
            owner.upload(None, &format!("bytes {n}"), day(0)).await;
        }
    }

    for owner in &owners {
        let log = owner.log().await;
        assert_eq!(log.len(), 4);
        assert_chained(owner, &log);
    }
}

pub(super) async fn sealing_goes_on_where_it_stopped(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let note =
        async |n: i64| index.record(&owner.tenant, vec![event(AuditKind::Read, day(n))]).await.expect("a record");
    let seal = async |limit| index.seal_audit(limit).await.expect("a count");
    for n in 0..5 {
        note(n).await;
    }
    assert_eq!(index.audit_rows(&owner.tenant, 0, MANY).await.expect("the log"), vec![], "not before it is sealed");

    assert_eq!(seal(3).await, 3);
    note(5).await;
    assert_eq!(seal(MANY).await, 3);
    assert_eq!(seal(MANY).await, 0);
    note(6).await;

    let log = owner.log().await;
    let times: Vec<_> = log.iter().map(|row| row.event.at).collect();
    assert_eq!(times, (0..7).map(day).collect::<Vec<_>>(), "in the order of writing");
    assert_chained(&owner, &log);
    assert_eq!(index.audit_rows(&owner.tenant, 2, 3).await.expect("the log"), log[2..5]);
    assert_eq!(index.audit_rows(&owner.tenant, 7, 3).await.expect("the log"), vec![]);
}

pub(super) async fn an_asset_ends_with_an_event(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let record = owner.upload(None, "bytes", day(0)).await.record;
    owner.sweep(day(1)).await;

    let last = owner.log().await.pop().expect("two events").event;
    assert_eq!((last.kind, last.asset_id, last.at), (AuditKind::Expire, Some(record.id), day(1)));
    assert_eq!(last.principal, "sweep");
    let details = last.details.expect("what ended");
    assert_eq!(details["bytes"], 5);
    assert!(!details.to_string().contains(&record.sha256.to_string()), "the log outlives an erasure");
}
