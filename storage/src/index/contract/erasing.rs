//! Erasure of assets and of runs.

use super::Subject;
use super::stage::{MANY, Owner, Swept, claim, day, just_before, run_id, settled, stored, until};
use crate::audit::AuditKind;
use crate::ids::{AssetId, Digest};
use crate::index::{Claimed, Deleted, Erasure, Look, LookAt, Preview, Published, Referred, RunErasure};
use crate::record::{AssetRecord, AssetState, HoldOn, Labels, RunStatus};
use crate::retention::{RunConflict, RunEnd, Until};

/// The row of an erasure that was done.
fn erased(answer: Erasure) -> AssetRecord {
    match answer {
        Erasure::Done(record) => Some(*record),
        _ => None,
    }
    .expect("nothing holds it")
}

fn gone(same_bytes: Vec<AssetId>, bytes_removed: bool) -> AssetState {
    AssetState::Erased { at: day(1), same_bytes, bytes_removed }
}

pub(super) async fn of_an_erased_asset_only_name_type_and_size_are_left(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(9), day(0)).await;
    let mut asset = owner.staged(Some("run-1"), "bytes", day(0)).await;
    asset.record.labels = Labels { name: Some("a.txt".into()), alt: Some("b".into()), title: Some("c".into()) };
    asset.record.declared_mime_type = Some("text/html".into());
    let before = stored(owner.publish(asset, day(0)).await).record;

    let after = erased(owner.erase(before.id, day(1)).await);

    let right = AssetRecord {
        labels: Labels::default(),
        declared_mime_type: None,
        facts: serde_json::json!({}),
        sha256: Digest::ERASED,
        state: gone(vec![], true),
        revision: 2,
        ..before.clone()
    };
    assert_eq!(after, right);
    assert_eq!(owner.find(before.id).await, Some(right.clone()));
    assert_eq!(owner.erase(before.id, day(2)).await, Erasure::Done(Box::new(right)), "again: the same");
    assert_eq!(owner.view(before.id).await.references, [run_id("run-1")]);
    let events = owner.log().await.into_iter().filter(|row| row.event.kind == AuditKind::Erase).count();
    assert_eq!(events, 1);
    assert!(matches!(owner.delete(before.id, day(2)).await, Deleted::WasGone(_)));
    assert_eq!(owner.erase(AssetId::generate(day(0)), day(1)).await, Erasure::Unknown);
    assert_eq!(Owner::of(&index, "acm").erase(before.id, day(1)).await, Erasure::Unknown);
}

pub(super) async fn erased_bytes_are_out_of_reach_at_once(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let first = owner.upload(None, "bytes", day(0)).await.record;

    owner.erase(first.id, day(1)).await;

    assert_eq!(owner.shareable("bytes").await, None);
    let second = owner.upload(None, "bytes", day(1)).await.record;
    assert_ne!(second.blob, first.blob, "nobody takes up what was erased");
    assert!(index.doom_one(&owner.tenant, first.blob, day(1)).await.expect("an answer"));
    assert_eq!(owner.remove_doomed(day(1)).await, vec![first.blob]);
    assert_eq!(owner.blob(second.blob).await.map(|row| row.holders), Some(1));
}

pub(super) async fn an_erased_asset_keeps_neither_its_floor_nor_its_answer(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let (key, other) = (claim("key", 1, day(0)), claim("other", 1, day(0)));
    for one in [&key, &other] {
        index.claim(&owner.tenant, one.clone(), day(0)).await.expect("an answer");
    }
    let mut asset = owner.staged(None, "bytes", day(0)).await;
    asset.settled = Some(settled(&key, day(0)));
    let id = stored(owner.publish(asset, day(0)).await).record.id;
    let mut asset = owner.staged(None, "more bytes", day(0)).await;
    asset.settled = Some(settled(&other, day(0)));
    owner.publish(asset, day(0)).await;

    owner.erase(id, day(0)).await;

    let again = claim("key", 2, day(0));
    assert_eq!(index.claim(&owner.tenant, again, day(0)).await.expect("an answer"), Claimed::Yours);
    let answer = index.claim(&owner.tenant, claim("other", 2, day(0)), day(0)).await.expect("an answer");
    assert!(matches!(answer, Claimed::Settled { .. }), "{answer:?}");
}

pub(super) async fn an_answer_that_another_request_left_since_stays(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let publish = async |holder, at, bytes: &str| {
        let key = claim("key", holder, at);
        assert_eq!(index.claim(&owner.tenant, key.clone(), at).await.expect("an answer"), Claimed::Yours);
        let mut asset = owner.staged(None, bytes, at).await;
        asset.settled = Some(settled(&key, at));
        stored(owner.publish(asset, at).await).record.id
    };
    let first = publish(1, day(0), "bytes").await;
    let second = publish(2, day(2), "more bytes").await;

    owner.erase(first, day(2)).await;

    let answer = index.claim(&owner.tenant, claim("key", 3, day(2)), day(2)).await.expect("an answer");
    assert!(matches!(answer, Claimed::Settled { asset, .. } if asset == second), "{answer:?}");
}

pub(super) async fn bytes_that_another_asset_holds_stay(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let first = owner.upload(None, "bytes", day(0)).await.record;
    let dead = owner.upload(None, "bytes", day(0)).await.record.id;
    let other = owner.upload_asking(None, "bytes", day(50), day(0)).await.record.id;
    Owner::of(&index, "other").upload(None, "bytes", day(0)).await;
    owner.upload(None, "other bytes", day(0)).await;
    owner.delete(dead, day(0)).await;
    let mut same = vec![dead, other];
    same.sort();
    let known = async |id, after| index.same_bytes(&owner.tenant, id, after, MANY).await.expect("a list");
    assert_eq!(known(first.id, None).await, same);
    assert_eq!(known(first.id, Some(same[0])).await, same[1..]);

    assert_eq!(erased(owner.erase(first.id, day(1)).await).state, gone(same, false));

    assert_eq!(known(first.id, None).await, vec![], "what it was is not known any more");
    assert_eq!(known(dead, None).await, vec![other]);
    assert_eq!(owner.blob(first.blob).await.map(|row| row.holders), Some(1));
    assert_eq!(erased(owner.erase(other, day(1)).await).state, gone(vec![dead], true), "a dead asset holds nothing");
    assert!(index.doom_one(&owner.tenant, first.blob, day(1)).await.expect("an answer"));
}

pub(super) async fn bytes_that_a_hold_keeps_for_a_dead_asset_stay(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let first = owner.upload(None, "bytes", day(0)).await.record;
    let dead = owner.upload(None, "bytes", day(0)).await.record.id;
    owner.delete(dead, day(0)).await;
    owner.hold(&HoldOn::Asset(dead), "audit", day(0)).await;

    assert_eq!(erased(owner.erase(first.id, day(1)).await).state, gone(vec![dead], false));

    assert!(!index.doom_one(&owner.tenant, first.blob, day(1)).await.expect("an answer"));
    owner.lift(&HoldOn::Asset(dead), "audit", day(1)).await;
    assert_eq!(erased(owner.erase(dead, day(1)).await).state, gone(vec![], true));
    assert!(index.doom_one(&owner.tenant, first.blob, day(1)).await.expect("an answer"));
}

pub(super) async fn an_expired_asset_is_erased_too(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let dead = owner.upload(None, "bytes", day(0)).await.record;
    owner.sweep(day(1)).await;
    assert_eq!(owner.doom(day(1)).await, vec![]);

    let record = erased(owner.erase(dead.id, day(1)).await);

    assert_eq!((record.state, record.sha256), (gone(vec![], true), Digest::ERASED));
    assert_eq!(owner.remove_doomed(day(1)).await, vec![dead.blob]);
    assert_eq!(owner.sweep(day(90)).await, Swept::default(), "its tombstone counts from its erasure");
    assert_eq!(owner.sweep(day(91)).await.dropped, vec![dead.id]);
}

pub(super) async fn an_erased_run_takes_its_assets_with_it(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(50), day(0)).await;
    owner.run_until("run-2", day(20), day(0)).await;
    let mut alone = Vec::new();
    for n in 0..5 {
        alone.push(owner.upload_asking(Some("run-1"), &format!("bytes {n}"), day(60), day(0)).await.record.id);
    }
    owner.delete(owner.upload(None, "dead", day(0)).await.record.id, day(0)).await;
    let dead = index.assets(None, MANY).await.expect("a list").into_iter().find(|one| !one.is_live()).expect("one").id;
    let shared = owner.upload(Some("run-2"), "shared", day(0)).await.record.id;
    let held = owner.upload(Some("run-1"), "held", day(0)).await.record.id;
    owner.refer("run-1", &[dead, shared], day(0)).await;
    owner.hold(&HoldOn::Asset(held), "audit", day(0)).await;

    let RunErasure::Done(run) = owner.erase_run("run-1", day(1)).await else {
        unreachable!("it is there, and not held")
    };

    assert_eq!((run.erased_at, run.status, run.end), (Some(day(1)), RunStatus::Closed, RunEnd::At(day(1))));
    assert_eq!(owner.erase_run("run-1", day(2)).await, RunErasure::Done(run), "again: the same");
    assert_eq!(owner.erase_run("nobody", day(2)).await, RunErasure::Unknown);
    assert_eq!(owner.view(alone[0]).await.floor.until, Until::At(day(1)));
    let mut swept = owner.sweep_by(2, day(1)).await;
    swept.erased.sort();
    alone.push(dead);
    alone.sort();
    assert_eq!(swept, Swept { erased: alone, ..Swept::default() });
    assert!(owner.lives(shared).await && owner.lives(held).await);
    assert_eq!(owner.view(shared).await.floor.until, Until::At(day(20)), "it loses this run's protection");
    assert_eq!(owner.sweep(day(20)).await.expired, vec![shared], "and ends with the other's");
    owner.lift(&HoldOn::Asset(held), "audit", day(21)).await;
    assert_eq!(owner.sweep(day(21)).await.erased, vec![held], "what the hold had put off");
}

pub(super) async fn an_erased_run_is_settled_by_its_look(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    owner.erase_run("run-1", day(1)).await;

    let look = Look { tenant: owner.tenant.clone(), at: LookAt::Run(run_id("run-1")), due: day(1) };
    let settlement = index.settle(&look, MANY, &owner.terms, "host", day(1)).await.expect("a settlement");

    assert_eq!(settlement.erased.iter().map(|record| record.id).collect::<Vec<_>>(), [id]);
    assert_eq!(owner.find(id).await, settlement.erased.first().cloned());
    let log = owner.log().await;
    let event = &log.last().expect("the log has rows").event;
    assert_eq!((event.kind, event.asset_id, &*event.principal), (AuditKind::Erase, Some(id), "host"));
}

pub(super) async fn a_request_may_erase_what_its_run_left(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    owner.erase_run("run-1", day(1)).await;

    let looked = index.expire_if_due(&owner.tenant, id, &owner.terms, "host", day(1)).await.expect("an answer");

    assert_eq!(looked.map(|record| record.state), Some(gone(vec![], true)));
    assert_eq!(owner.sweep(day(1)).await, Swept::default());
}

pub(super) async fn an_asset_goes_with_the_last_of_its_erased_runs(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    owner.refer("run-2", &[id], day(0)).await;

    owner.erase_run("run-1", day(1)).await;
    assert_eq!(owner.sweep(day(1)).await, Swept::default());
    owner.erase_run("run-2", day(2)).await;

    assert_eq!(owner.sweep(day(2)).await.erased, vec![id]);
}

pub(super) async fn an_erased_run_takes_nothing_more(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.upload(Some("run-1"), "bytes", day(0)).await;
    let other = owner.upload(None, "other", day(0)).await.record.id;
    owner.erase_run("run-1", day(1)).await;
    let log = owner.log().await.len();

    let staged = owner.staged(Some("run-1"), "more bytes", day(1)).await;
    let blob = staged.record.blob;
    assert_eq!(owner.publish(staged, day(1)).await, Published::RunErased);
    assert_eq!(owner.blob(blob).await.map(|row| row.bytes), Some(None), "the upload is still announced");
    assert_eq!(owner.try_refer("run-1", &[other], day(1)).await, Referred::RunErased);
    assert_eq!(owner.update(until("run-1", day(9)), day(1)).await, Err(RunConflict::Erased));
    assert_eq!(owner.fork("child", "run-1", day(1)).await, Err(RunConflict::Erased));

    assert_eq!(index.find_run(&owner.tenant, &run_id("child")).await.expect("an answer"), None);
    assert_eq!(owner.view(other).await.reference_count, 0);
    assert_eq!(owner.log().await.len(), log);
}

pub(super) async fn what_a_fork_took_up_outlives_the_erased_parent(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("parent"), "bytes", day(0)).await.record.id;
    owner.fork("child", "parent", day(0)).await.expect("a fork");

    owner.erase_run("parent", day(1)).await;

    assert_eq!(owner.sweep(day(5_000)).await, Swept::default());
    assert!(owner.lives(id).await);
    assert_eq!(owner.fork("child", "parent", day(2)).await, Ok(vec![]), "it is its fork as before");
}

pub(super) async fn an_erased_tombstone_goes_in_its_time(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.upload(Some("run-1"), "bytes", day(0)).await;
    owner.erase_run("run-1", day(1)).await;
    owner.sweep(day(1)).await;

    assert_eq!(owner.sweep(day(90)).await, Swept::default());
    assert_eq!(owner.sweep(day(91)).await.dropped.len(), 1);
    owner.remove_doomed(day(91)).await;
    assert_eq!(owner.blobs().await, vec![]);
}

pub(super) async fn a_preview_is_what_a_sweep_would_take(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    owner.run_until("run-2", day(9), day(0)).await;
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(owner.upload(Some("run-1"), &format!("bytes {n}"), day(0)).await.record.id);
    }
    let alone = owner.upload(None, "alone", day(0)).await.record.id;
    let held = owner.upload(None, "held", day(0)).await.record.id;
    owner.hold(&HoldOn::Asset(held), "audit", day(0)).await;
    owner.refer("run-2", &ids[..1], day(0)).await;
    let foreign = Owner::of(&index, "other").upload(None, "another tenant's", day(0)).await.record.id;
    let preview =
        async |at, after, limit| index.preview(&owner.tenant, at, after, limit, &owner.terms).await.expect("a preview");

    let mut right = [&ids[1..], &[alone]].concat();
    right.sort();
    let page = preview(day(5), None, 2).await;
    assert_eq!((page.count, page.bytes), (4, 3 * 7 + 5));
    assert_eq!(page.assets, vec![owner.view(right[0]).await, owner.view(right[1]).await]);
    let rest = preview(day(5), Some(right[1]), MANY).await;
    assert_eq!((rest.count, rest.bytes), (4, 3 * 7 + 5), "over all, not over the page");
    assert_eq!(rest.assets.into_iter().map(|view| view.record.id).collect::<Vec<_>>(), right[2..]);
    assert_eq!(preview(just_before(day(1)), None, MANY).await.count, 0);
    right.push(foreign);
    right.sort();
    assert_eq!(owner.sweep(day(5)).await.expired, right);
    assert_eq!(preview(day(5), None, MANY).await, Preview::default());
    assert_eq!(preview(day(9), None, MANY).await.count, 1);
}
