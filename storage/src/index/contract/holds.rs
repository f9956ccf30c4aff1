//! Holds: what they keep, and what happens when they are lifted.

use super::Subject;
use super::stage::{MANY, Owner, Swept, closed, day, event, hold_id, just_before, put, run_id, until};
use crate::audit::AuditKind;
use crate::ids::{AssetId, HoldId, RunId};
use crate::index::{Deleted, Erasure, Placed, RunErasure};
use crate::record::{AssetState, AssetView, Hold, HoldOn};
use crate::retention::{FloorSource, HOLD_RECHECK, Until, after};

fn asset(id: AssetId) -> HoldOn {
    HoldOn::Asset(id)
}

fn run(name: &str) -> HoldOn {
    HoldOn::Run(run_id(name))
}

async fn names(owner: &Owner, on: &HoldOn, after: Option<&HoldId>, limit: usize) -> Vec<String> {
    let holds = owner.index.holds(&owner.tenant, on, after, limit).await.expect("a list");
    holds.into_iter().map(|hold| hold.id.to_string()).collect()
}

pub(super) async fn a_hold_keeps_an_asset_until_the_last_is_lifted(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    owner.hold(&asset(id), "one", day(0)).await;
    owner.hold(&asset(id), "two", day(0)).await;

    let view = owner.view(id).await;
    assert_eq!((view.floor.until, view.floor.source), (Until::Endless, FloorSource::Hold));
    assert_eq!(view.floor.protected, Some(Until::Endless));
    assert_eq!(view.holds, ["one", "two"].map(hold_id));
    assert_eq!(owner.sweep(day(5_000)).await, Swept::default());
    assert!(owner.lift(&asset(id), "one", day(5_000)).await);
    assert!(!owner.lift(&asset(id), "one", day(5_000)).await, "it is lifted once");
    assert_eq!(owner.sweep(day(5_000)).await, Swept::default());

    assert!(owner.lift(&asset(id), "two", day(5_000)).await);

    assert_eq!(owner.view(id).await.holds, []);
    assert_eq!(owner.sweep(day(5_000)).await.expired, vec![id]);
}

pub(super) async fn a_lifted_hold_leaves_the_floor_as_it_was(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload_asking(None, "bytes", day(9), day(0)).await.record.id;
    owner.hold(&asset(id), "audit", day(0)).await;
    owner.sweep(day(4)).await;

    owner.lift(&asset(id), "audit", day(5)).await;

    assert_eq!(owner.view(id).await.floor.until, Until::At(day(9)));
    assert_eq!(owner.sweep(just_before(day(9))).await, Swept::default());
    assert_eq!(owner.sweep(day(9)).await.expired, vec![id]);
}

pub(super) async fn a_hold_on_a_run_keeps_all_that_it_references_or_will(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(3), day(0)).await;
    let early = owner.upload(Some("run-1"), "early", day(0)).await.record.id;
    owner.hold(&run("run-1"), "audit", day(1)).await;
    let late = owner.upload(Some("run-1"), "late", day(5)).await.record.id;
    let taken_up = owner.upload(None, "taken up", day(5)).await.record.id;
    owner.refer("run-1", &[taken_up], day(5)).await;
    owner.run_until("run-1", day(6), day(5)).await;

    assert_eq!(owner.sweep(day(5_000)).await, Swept::default());
    assert_eq!(owner.view(late).await.holds, [hold_id("audit")]);
    assert_eq!(index.count_due(MANY, &owner.terms, day(5_000)).await.expect("a count"), 0);

    owner.lift(&run("run-1"), "audit", day(5_000)).await;

    let mut all = vec![early, late, taken_up];
    all.sort();
    assert_eq!(owner.sweep(day(5_000)).await.expired, all);
}

pub(super) async fn a_hold_that_comes_during_a_sweep_counts(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(owner.upload(Some("run-1"), &format!("bytes {n}"), day(0)).await.record.id);
    }
    let look = index.due(day(5), 1).await.expect("what is due").pop().expect("the run, or one of its assets");
    let first = index.settle(&look, 2, &owner.terms, "sweep", day(5)).await.expect("a settlement").expired;
    assert!(!first.is_empty() && first.len() < ids.len());

    owner.hold(&run("run-1"), "audit", day(5)).await;
    let again = index.settle(&look, 9, &owner.terms, "sweep", day(5)).await.expect("a settlement");
    assert_eq!(again.expired, vec![]);
    owner.lift(&run("run-1"), "audit", day(6)).await;

    ids.retain(|id| first.iter().all(|record| record.id != *id));
    ids.sort();
    assert_eq!(owner.sweep(day(6)).await.expired, ids);
}

pub(super) async fn the_same_hold_again_has_its_new_reason(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    let Placed::Done(first) = owner.place(&asset(id), "audit", day(1)).await else { unreachable!("it is there") };
    let again = Hold { reason: "another".into(), placed_at: day(2), ..first.clone() };
    let audit = event(AuditKind::Hold, day(2));
    let placed = index.hold(&owner.tenant, &asset(id), again, audit).await.expect("an answer");

    let right = Hold { reason: "another".into(), number: 2, ..first };
    assert_eq!(placed, Placed::Done(right.clone()));
    assert_eq!(index.holds(&owner.tenant, &asset(id), None, MANY).await.expect("a list"), [right]);
    assert!(owner.lift(&asset(id), "audit", day(2)).await);
    assert_eq!(owner.sweep(day(2)).await.expired, vec![id], "one lift is enough");
    let events: Vec<_> = owner.log().await.into_iter().map(|row| row.event.kind).collect();
    let placed = AuditKind::Hold;
    assert_eq!(events, [AuditKind::Ingest, placed, placed, AuditKind::Lift, AuditKind::Expire]);
}

pub(super) async fn holds_are_listed_by_name_each_on_its_own_thing(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("run"), "bytes", day(0)).await.record.id;
    owner.refer("run-1", &[id], day(0)).await;
    for name in ["c", "a", "b"] {
        owner.hold(&asset(id), name, day(0)).await;
    }
    owner.hold(&run("run-1"), "a", day(0)).await;
    owner.hold(&run("run-1"), "0", day(0)).await;
    owner.hold(&run("run"), "z", day(0)).await;

    assert_eq!(names(&owner, &asset(id), None, MANY).await, ["a", "b", "c"]);
    assert_eq!(names(&owner, &asset(id), Some(&hold_id("a")), 1).await, ["b"]);
    assert_eq!(names(&owner, &run("run"), None, MANY).await, ["z"], "a name that begins another's has its own");
    assert_eq!(owner.view(id).await.holds, ["a", "b", "c", "0", "z"].map(hold_id), "its own, then those of the newest");
    let stranger = Owner::of(&index, "acm");
    assert_eq!(names(&stranger, &asset(id), None, MANY).await, [""; 0]);
    assert_eq!(stranger.place(&asset(id), "a", day(0)).await, Placed::Unknown);
    assert_eq!(stranger.place(&run("run"), "a", day(0)).await, Placed::Unknown);
    assert!(!stranger.lift(&asset(id), "a", day(0)).await);
}

pub(super) async fn a_view_names_no_more_holds_than_it_says(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    for n in 0..AssetView::HOLDS - 1 {
        owner.hold(&asset(id), &format!("hold-{n:03}"), day(0)).await;
    }
    owner.hold(&run("run-1"), "hold-000", day(0)).await;
    owner.hold(&run("run-1"), "y", day(0)).await;
    owner.hold(&run("run-1"), "z", day(0)).await;

    let named = owner.view(id).await.holds;

    assert_eq!(named.len(), AssetView::HOLDS);
    assert_eq!(named.last(), Some(&hold_id("y")));
}

pub(super) async fn nobody_deletes_or_erases_what_is_held(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(2), day(0)).await;
    let own = owner.upload(None, "own", day(0)).await.record.id;
    let by_run = owner.upload(Some("run-1"), "by its run", day(0)).await.record.id;
    let dead = owner.upload(None, "dead", day(0)).await.record.id;
    owner.delete(dead, day(0)).await;
    owner.hold(&asset(own), "one", day(0)).await;
    owner.hold(&run("run-1"), "two", day(0)).await;
    owner.hold(&asset(dead), "three", day(0)).await;

    for (id, hold) in [(own, "one"), (by_run, "two"), (dead, "three")] {
        let before = owner.find(id).await;
        assert_eq!(owner.delete(id, day(3)).await, Deleted::Held(vec![hold_id(hold)]));
        assert_eq!(owner.erase(id, day(3)).await, Erasure::Held(vec![hold_id(hold)]));
        assert_eq!(owner.find(id).await, before);
    }
    let held = RunErasure::Held(vec![hold_id("two")]);
    assert_eq!(owner.erase_run("run-1", day(3)).await, held);
    let erased = owner.log().await.into_iter().filter(|row| row.event.kind == AuditKind::Erase).count();
    assert_eq!(erased, 1, "only the deletion before the holds");
}

pub(super) async fn a_hold_on_a_dead_asset_keeps_what_is_left(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let dead = owner.upload(None, "bytes", day(0)).await.record;
    owner.sweep(day(1)).await;

    owner.hold(&asset(dead.id), "audit", day(2)).await;

    assert_eq!(owner.doom(day(50)).await, vec![], "its bytes stay for those who look into it");
    assert_eq!(owner.find(dead.id).await.map(|record| record.state), Some(AssetState::Expired { at: day(1) }));
    assert_eq!(owner.sweep(day(5_000)).await, Swept::default(), "and so does its tombstone");
    assert!(!index.doom_one(&owner.tenant, dead.blob, day(5_000)).await.expect("an answer"));

    owner.lift(&asset(dead.id), "audit", day(5_000)).await;

    assert_eq!(owner.remove_doomed(after(day(5_000), HOLD_RECHECK)).await, vec![dead.blob]);
    assert_eq!(owner.sweep(day(5_000)).await.dropped, vec![dead.id]);
}

pub(super) async fn a_hold_on_a_run_keeps_the_bytes_of_its_dead(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(1), day(0)).await;
    let dead = owner.upload(Some("run-1"), "bytes", day(0)).await.record;
    let same = owner.upload_asking(None, "bytes", day(2), day(0)).await.record;
    assert_eq!(owner.sweep(day(2)).await.expired.len(), 2);
    owner.remove_doomed(day(1)).await;

    owner.hold(&run("run-1"), "audit", day(2)).await;

    assert_eq!(owner.doom(day(50)).await, vec![]);
    // The other asset's owner asks for its end, but the bytes are not only its own.
    owner.delete(same.id, day(51)).await;
    assert!(!index.doom_one(&owner.tenant, dead.blob, day(51)).await.expect("an answer"));
    assert_eq!(owner.sweep(day(5_000)).await.dropped, vec![same.id]);
    owner.lift(&run("run-1"), "audit", day(5_000)).await;
    assert_eq!(owner.remove_doomed(after(day(5_000), HOLD_RECHECK)).await, vec![dead.blob]);
    assert_eq!(owner.sweep(day(5_000)).await.dropped, vec![dead.id]);
}

pub(super) async fn bytes_that_were_gone_before_the_hold_stay_gone(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let dead = owner.upload(None, "bytes", day(0)).await.record;
    owner.sweep(day(1)).await;
    assert_eq!(owner.remove_doomed(day(3)).await, vec![dead.blob]);

    owner.hold(&asset(dead.id), "audit", day(3)).await;
    let again = owner.upload(None, "bytes", day(3)).await.record;
    owner.delete(again.id, day(3)).await;

    assert_ne!(again.blob, dead.blob);
    assert_eq!(owner.remove_doomed(day(3)).await, vec![again.blob], "the hold is on the other asset");
}

pub(super) async fn a_hold_keeps_the_tombstones_of_a_run(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(1), day(0)).await;
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    owner.sweep(day(1)).await;
    owner.hold(&run("run-1"), "audit", day(2)).await;
    assert_eq!(owner.sweep(day(500)).await, Swept::default());

    owner.lift(&run("run-1"), "audit", day(500)).await;

    assert_eq!(owner.sweep(day(500)).await.dropped, vec![id]);
}

pub(super) async fn an_open_run_that_was_held_keeps_its_assets(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.update(put("run-1"), day(0)).await.expect("a new run");
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    owner.hold(&run("run-1"), "audit", day(0)).await;
    owner.update(closed(until("run-1", day(4))), day(1)).await.expect("a first end");
    owner.lift(&run("run-1"), "audit", day(2)).await;

    assert_eq!(owner.sweep(just_before(day(4))).await, Swept::default());
    assert_eq!(owner.sweep(day(4)).await.expired, vec![id]);
}

pub(super) async fn nothing_is_held_that_is_not_there(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let gone = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    owner.erase(gone, day(0)).await;
    owner.erase_run("run-1", day(0)).await;
    let unknown: RunId = run_id("nobody");

    assert_eq!(owner.place(&asset(gone), "audit", day(0)).await, Placed::Erased);
    assert_eq!(owner.place(&run("run-1"), "audit", day(0)).await, Placed::Erased);
    assert_eq!(owner.place(&HoldOn::Run(unknown), "audit", day(0)).await, Placed::Unknown);
    assert_eq!(owner.place(&asset(AssetId::generate(day(0))), "audit", day(0)).await, Placed::Unknown);
    assert_eq!(names(&owner, &asset(gone), None, MANY).await, [""; 0]);
}
