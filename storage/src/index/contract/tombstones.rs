//! What stays of a dead asset, and for how long.

use super::Subject;
use super::stage::{MANY, Owner, Swept, closed, day, just_before, put, run_id};
use crate::index::AssetQuery;
use crate::record::AssetState;
use crate::retention::RunUpdate;

pub(super) async fn a_tombstone_outlasts_the_last_run_that_mentions_it(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    owner.sweep(day(6)).await;
    // A run that takes it up after its death keeps its tombstone too.
    owner.run_until("run-2", day(20), day(7)).await;
    owner.refer("run-2", &[id], day(7)).await;

    assert_eq!(owner.sweep(just_before(day(110))).await, Swept::default());
    assert!(owner.find(id).await.is_some());
    assert_eq!(owner.sweep(day(110)).await.dropped, vec![id]);
    assert_eq!(owner.find(id).await, None);
}

pub(super) async fn a_tombstone_that_no_run_mentions_counts_from_its_death(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    owner.sweep(day(3)).await;

    assert_eq!(owner.sweep(just_before(day(93))).await, Swept::default());
    assert_eq!(owner.sweep(day(93)).await.dropped, vec![id]);
}

pub(super) async fn an_open_run_keeps_its_tombstones(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    owner.sweep(day(1)).await;
    owner.update(put("run-1"), day(2)).await.expect("a new run");
    owner.refer("run-1", &[id], day(2)).await;
    for n in 0..12 {
        assert_eq!(owner.sweep(day(100 * n)).await, Swept::default());
    }

    let closing = RunUpdate { log_retention_seconds: Some(86_400), ..closed(put("run-1")) };
    owner.update(closing, day(1_200)).await.expect("a first end");

    assert_eq!(owner.sweep(just_before(day(1_291))).await, Swept::default());
    assert_eq!(owner.sweep(day(1_291)).await.dropped, vec![id]);
}

pub(super) async fn a_tombstone_counts_from_the_run_that_takes_it_up(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(2), day(0)).await;
    owner.sweep(day(2)).await;
    let id = owner.upload_asking(None, "bytes", day(50), day(3)).await.record.id;
    owner.sweep(day(50)).await;

    owner.refer("run-1", &[id], day(60)).await;

    assert_eq!(owner.sweep(just_before(day(92))).await, Swept::default());
    assert_eq!(owner.sweep(day(92)).await.dropped, vec![id]);
}

pub(super) async fn a_tombstone_goes_sooner_when_its_run_does(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    owner.sweep(day(1)).await;
    // Nobody registered the run: its end is day 120, and the tombstone's day 210.
    owner.refer("run-1", &[id], day(90)).await;
    assert_eq!(owner.sweep(day(91)).await, Swept::default());

    owner.run_until("run-1", day(100), day(92)).await;

    assert_eq!(owner.sweep(day(100)).await, Swept::default());
    assert_eq!(owner.sweep(just_before(day(190))).await, Swept::default());
    assert_eq!(owner.sweep(day(190)).await.dropped, vec![id]);
}

pub(super) async fn a_dropped_row_leaves_no_references(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    owner.refer("run-2", &[id], day(0)).await;
    owner.sweep(day(30)).await;
    assert_eq!(owner.sweep(day(500)).await.dropped, vec![id]);

    for name in ["run-1", "run-2"] {
        let run = index.run(&owner.tenant, &run_id(name)).await.expect("a run, or none");
        assert_eq!(run.map(|view| view.assets), Some(0));
        let query = AssetQuery { run: Some(run_id(name)), limit: MANY, ..AssetQuery::default() };
        assert_eq!(index.page(&owner.tenant, &query, &owner.terms).await.expect("a page"), vec![]);
    }
    assert_eq!(index.assets(None, MANY).await.expect("a list"), vec![]);
}

pub(super) async fn a_reference_to_the_dead_revives_nothing(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    owner.sweep(day(1)).await;

    owner.run_until("run-1", day(9), day(2)).await;
    owner.refer("run-1", &[id], day(2)).await;

    let view = owner.view(id).await;
    assert_eq!(view.record.state, AssetState::Expired { at: day(1) });
    assert_eq!(view.references, vec![run_id("run-1")]);
    assert_eq!(owner.sweep(day(9)).await, Swept::default(), "the dead do not die again");
}

pub(super) async fn an_asset_comes_and_goes(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    for run in [Some("run-1"), Some("run-2"), None] {
        let id = owner.upload(run, "bytes", day(0)).await.record.id;
        owner.refer("run-1", &[id], day(1)).await;
        owner.refer("run-3", &[id], day(2)).await;
    }
    owner.announce(day(0)).await;
    index.doom(day(1), MANY, day(1)).await.expect("the silent upload");

    for at in [5, 40, 80, 500].map(day) {
        owner.sweep(at).await;
        owner.remove_doomed(at).await;
    }

    assert_eq!(index.assets(None, MANY).await.expect("a list"), vec![]);
    assert_eq!(index.blobs(None, MANY).await.expect("a list"), vec![]);
}
