//! Forks: what a child takes up from its parent, and what keeps it from then on.

use super::Subject;
use super::stage::{MANY, Owner, Swept, closed, day, put, run_id, until};
use crate::ids::AssetId;
use crate::index::AssetQuery;
use crate::record::AssetState;
use crate::retention::{RunConflict, RunUpdate, Until};

async fn page(owner: &Owner, run: &str) -> Vec<AssetId> {
    let query = AssetQuery { run: Some(run_id(run)), limit: MANY, ..AssetQuery::default() };
    let views = owner.index.page(&owner.tenant, &query, &owner.terms).await.expect("a page");
    views.into_iter().map(|view| view.record.id).collect()
}

pub(super) async fn a_fork_takes_up_what_its_parent_references_then(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("parent", day(5), day(0)).await;
    let dead = owner.upload(None, "dead", day(0)).await.record.id;
    owner.delete(dead, day(0)).await;
    let kept = owner.upload(Some("parent"), "kept", day(1)).await.record.id;
    owner.refer("parent", &[dead], day(1)).await;

    let inherited = owner.fork("child", "parent", day(2)).await;
    let later = owner.upload(Some("parent"), "later", day(3)).await.record.id;

    let both = if dead < kept { vec![dead, kept] } else { vec![kept, dead] };
    assert_eq!(inherited, Ok(both.clone()));
    assert_eq!(page(&owner, "child").await, both);
    assert_eq!(owner.view(kept).await.references, [run_id("child"), run_id("parent")], "newest first");
    assert_eq!(owner.find(dead).await.map(|record| record.state), Some(AssetState::Expired { at: day(0) }));
    let run = index.run(&owner.tenant, &run_id("child")).await.expect("an answer").expect("the child has a row");
    assert_eq!((run.assets, run.bytes, run.record.fork_of), (2, 4, Some(run_id("parent"))));
    // The child has no end; the parent's ends what came to it alone.
    assert_eq!(owner.sweep(day(5)).await, Swept { expired: vec![later], ..Swept::default() });
    assert_eq!(owner.view(kept).await.floor.until, Until::Endless);
    assert_eq!(owner.sweep(day(5_000)).await, Swept { dropped: vec![later], ..Swept::default() });
}

pub(super) async fn what_a_fork_took_up_ends_with_it(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("parent", day(3), day(0)).await;
    let one = owner.upload(Some("parent"), "one", day(0)).await.record.id;
    owner.run_until("child", day(8), day(1)).await;
    let own = owner.upload(Some("child"), "own", day(1)).await.record.id;

    assert_eq!(owner.fork("child", "parent", day(2)).await, Ok(vec![one]), "also of a run that was there before");

    assert_eq!(owner.sweep(day(7)).await, Swept::default());
    let mut both = vec![one, own];
    both.sort();
    assert_eq!(owner.sweep(day(8)).await.expired, both);
}

pub(super) async fn what_an_ended_fork_took_up_ends_with_its_parent(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("child", day(1), day(0)).await;
    owner.sweep(day(1)).await;
    owner.run_until("parent", day(4), day(1)).await;
    let id = owner.upload(Some("parent"), "bytes", day(1)).await.record.id;

    owner.fork("child", "parent", day(2)).await.expect("a fork");

    assert_eq!(owner.sweep(day(3)).await, Swept::default());
    assert_eq!(owner.sweep(day(4)).await.expired, vec![id]);
}

pub(super) async fn a_fork_of_a_fork_has_it_all(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("a", day(2), day(0)).await;
    owner.run_until("b", day(3), day(0)).await;
    owner.run_until("c", day(9), day(0)).await;
    let one = owner.upload(Some("a"), "one", day(0)).await.record.id;
    owner.fork("b", "a", day(1)).await.expect("a fork");
    let two = owner.upload(Some("b"), "two", day(1)).await.record.id;
    let mut both = vec![one, two];
    both.sort();

    assert_eq!(owner.fork("c", "b", day(1)).await, Ok(both.clone()));

    assert_eq!(owner.sweep(day(8)).await, Swept::default(), "the parents have ended, and their media are the fork's");
    assert_eq!(owner.sweep(day(9)).await.expired, both);
}

pub(super) async fn the_same_parent_again_changes_nothing(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.update(put("parent"), day(0)).await.expect("a new run");
    owner.fork("child", "parent", day(0)).await.expect("a fork");
    let later = owner.upload(Some("parent"), "later", day(1)).await.record.id;

    assert_eq!(owner.fork("child", "parent", day(2)).await, Ok(vec![]));
    owner.update(closed(put("child")), day(2)).await.expect("an update that names no parent");

    assert_eq!(page(&owner, "child").await, vec![]);
    assert_eq!(owner.view(later).await.references, [run_id("parent")]);
    let child = index.find_run(&owner.tenant, &run_id("child")).await.expect("an answer").expect("it has a row");
    assert_eq!(child.fork_of, Some(run_id("parent")));
}

pub(super) async fn a_fork_that_may_not_be_makes_nothing(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for run in ["a", "b", "c", "other"] {
        owner.update(put(run), day(0)).await.expect("a new run");
    }
    Owner::of(&index, "globex").update(put("foreign"), day(0)).await.expect("a new run");
    owner.upload(Some("other"), "bytes", day(0)).await;
    owner.fork("b", "a", day(0)).await.expect("a fork");
    owner.fork("c", "b", day(0)).await.expect("a fork");
    let log = owner.log().await;

    assert_eq!(owner.fork("new", "nobody", day(1)).await, Err(RunConflict::UnknownParent));
    assert_eq!(owner.fork("new", "foreign", day(1)).await, Err(RunConflict::UnknownParent));
    assert_eq!(owner.fork("new", "new", day(1)).await, Err(RunConflict::Cycle));
    assert_eq!(owner.fork("a", "a", day(1)).await, Err(RunConflict::Cycle));
    assert_eq!(owner.fork("a", "c", day(1)).await, Err(RunConflict::Cycle));
    assert_eq!(owner.fork("b", "other", day(1)).await, Err(RunConflict::ForkOf { current: run_id("a") }));
    // What is refused for its end takes up nothing either.
    owner.run_until("a", day(9), day(1)).await;
    let late = RunUpdate { fork_of: Some(run_id("other")), ..until("a", day(8)) };
    assert_eq!(owner.update(late, day(1)).await, Err(RunConflict::Floor { current: Some(day(9)) }));

    assert_eq!(index.find_run(&owner.tenant, &run_id("new")).await.expect("an answer"), None);
    assert_eq!(page(&owner, "b").await, vec![]);
    assert_eq!(page(&owner, "a").await, vec![]);
    assert_eq!(owner.log().await.len(), log.len() + 1, "only the end of `a`");
}
