//! Runs and their references.

use super::Subject;
use super::stage::{MANY, Owner, closed, day, put, run_id, until};
use crate::ids::AssetId;
use crate::index::{Referred, RunQuery};
use crate::record::{RunStatus, RunView};
use crate::retention::{RunConflict, RunEnd, RunUpdate};

async fn run(owner: &Owner, name: &str) -> Option<RunView> {
    owner.index.run(&owner.tenant, &run_id(name)).await.expect("a run, or none")
}

async fn end(owner: &Owner, name: &str) -> RunEnd {
    run(owner, name).await.expect("the run has a row").record.end
}

pub(super) async fn a_run_that_nobody_registered_is_kept_from_its_last_reference(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("run-1"), "one", day(0)).await.record.id;
    assert_eq!(end(&owner, "run-1").await, RunEnd::Default(day(30)));

    owner.upload(Some("run-1"), "two", day(5)).await;
    assert_eq!(end(&owner, "run-1").await, RunEnd::Default(day(35)));
    owner.refer("run-1", &[id], day(6)).await;
    assert_eq!(end(&owner, "run-1").await, RunEnd::Default(day(36)));
    owner.refer("run-1", &[id], day(4)).await;
    assert_eq!(end(&owner, "run-1").await, RunEnd::Default(day(36)), "an end never moves back by itself");

    owner.run_until("run-1", day(10), day(7)).await;
    owner.upload(Some("run-1"), "three", day(8)).await;
    assert_eq!(end(&owner, "run-1").await, RunEnd::At(day(10)), "what the host said stands");
}

pub(super) async fn a_registered_run_without_an_end_keeps_its_assets(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.update(put("run-1"), day(0)).await.expect("a new run");
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;

    assert_eq!(owner.sweep(day(100_000)).await.expired, vec![]);
    assert!(owner.lives(id).await);
}

pub(super) async fn a_run_that_is_opened_again_keeps_its_assets_until_it_is_closed_again(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    owner.update(closed(put("run-1")), day(0)).await.expect("a run");
    let opened = RunUpdate { status: Some(RunStatus::Open), ..put("run-1") };
    owner.update(opened, day(1)).await.expect("a run");

    assert_eq!(owner.sweep(day(90)).await.expired, vec![]);
    owner.update(closed(put("run-1")), day(90)).await.expect("a run");
    assert_eq!(end(&owner, "run-1").await, RunEnd::Default(day(120)));
    assert_eq!(owner.sweep(day(119)).await.expired, vec![]);
    assert_eq!(owner.sweep(day(121)).await.expired, vec![id]);
}

pub(super) async fn a_refused_update_changes_nothing(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(9), day(0)).await;
    let before = run(&owner, "run-1").await;
    let events = owner.log().await;

    let refused = owner.update(closed(until("run-1", day(8))), day(1)).await;

    assert_eq!(refused, Err(RunConflict::Floor { current: Some(day(9)) }));
    assert_eq!(run(&owner, "run-1").await, before);
    assert_eq!(owner.log().await, events);
}

pub(super) async fn a_run_counts_what_it_references(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.upload(Some("run-1"), "four", day(0)).await;
    let dead = owner.upload(None, "to be deleted", day(0)).await.record.id;
    let shared = owner.upload(None, "four", day(0)).await.record.id;
    owner.delete(dead, day(0)).await;
    owner.refer("run-1", &[dead, shared], day(0)).await;

    let view = owner.update(put("run-1"), day(0)).await.expect("an update");

    assert_eq!((view.assets, view.bytes), (3, 8));
    assert_eq!(run(&owner, "run-1").await, Some(view));
    assert_eq!(run(&owner, "run-2").await, None);
}

pub(super) async fn runs_are_listed_by_name(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for name in ["b", "a-1", "a", "c"] {
        owner.update(put(name), day(0)).await.expect("a new run");
    }
    owner.update(closed(put("b")), day(1)).await.expect("an update");
    Owner::of(&index, "acm").update(put("d"), day(0)).await.expect("a new run");
    let list = async |status, after: Option<&str>, limit| {
        let query = RunQuery { status, after: after.map(run_id), limit };
        let views = index.runs(&owner.tenant, &query).await.expect("a list");
        views.into_iter().map(|view| view.record.id.to_string()).collect::<Vec<_>>()
    };

    assert_eq!(list(None, None, MANY).await, ["a", "a-1", "b", "c"]);
    assert_eq!(list(None, Some("a"), 2).await, ["a-1", "b"]);
    assert_eq!(list(Some(RunStatus::Open), Some("a-1"), MANY).await, ["c"]);
    assert_eq!(list(Some(RunStatus::Closed), None, MANY).await, ["b"]);
}

pub(super) async fn all_assets_are_referenced_or_none(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let known = owner.upload(None, "bytes", day(0)).await.record.id;
    let foreign = Owner::of(&index, "other").upload(None, "bytes", day(0)).await.record.id;
    let unknown = AssetId::generate(day(0));

    let referred = owner.try_refer("run-1", &[foreign, known, unknown], day(0)).await;

    assert_eq!(referred, Referred::Unknown(vec![0, 2]));
    assert_eq!(run(&owner, "run-1").await, None);
    assert_eq!(owner.view(known).await.reference_count, 0);
    assert_eq!(owner.log().await.len(), 1, "only the upload");
}

pub(super) async fn a_reference_that_is_there_stays_one(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let one = owner.upload(Some("run-1"), "one", day(0)).await.record.id;
    let two = owner.upload(None, "two", day(0)).await.record.id;

    owner.refer("run-2", &[one, two, one], day(1)).await;
    owner.refer("run-1", &[one, two], day(2)).await;

    let view = owner.view(one).await;
    assert_eq!(view.references, vec![run_id("run-2"), run_id("run-1")], "the first time is the one that counts");
    assert_eq!(owner.view(two).await.references, vec![run_id("run-1"), run_id("run-2")]);
    assert_eq!(run(&owner, "run-1").await.map(|view| view.assets), Some(2));
}
