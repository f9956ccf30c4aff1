//! Calls that meet each other, on real threads.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::task::{JoinHandle, spawn};

use super::Subject;
use super::stage::{MANY, Owner, claim, day, run_id, stored};
use crate::audit::AuditKind;
use crate::index::{Claimed, Erasure, Published};
use crate::record::{AssetState, HoldOn};
use crate::retention::Until;

/// How often each race is run: most of what can go wrong shows within a few.
const ROUNDS: i64 = 20;

async fn all<T: Send + 'static>(running: Vec<JoinHandle<T>>) -> Vec<T> {
    join_all(running).await.into_iter().map(|done| done.expect("a call returns")).collect()
}

pub(super) async fn two_publications_of_equal_bytes_share_one_blob(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for round in 0..ROUNDS {
        let bytes = format!("bytes {round}");
        let mut running = Vec::new();
        for _ in 0..4 {
            let (owner, asset) = (owner.clone(), owner.staged(Some("run-1"), &bytes, day(0)).await);
            running.push(spawn(async move { owner.publish(asset, day(0)).await }));
        }

        let published = all(running).await;

        let own = published.iter().filter(|one| matches!(one, Published::Stored(_))).count();
        assert_eq!(own, 1, "{published:?}");
        let held = owner.shareable(&bytes).await.expect("somebody holds it");
        assert!(published.into_iter().all(|one| stored(one).record.blob == held));
        assert_eq!(owner.blob(held).await.map(|row| row.holders), Some(4));
    }
}

pub(super) async fn a_publication_never_holds_a_doomed_blob(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for round in 0..ROUNDS {
        // The first asset ends, its blob is condemned and doomed, and all the while the same bytes are published anew.
        let now = day(10 * round);
        let bytes = format!("bytes {round}");
        let first = owner.upload(None, &bytes, now).await.record;
        let ending = {
            let owner = owner.clone();
            spawn(async move {
                owner.delete(first.id, now).await;
                owner.remove_doomed(now).await
            })
        };
        let mut running = Vec::new();
        for _ in 0..3 {
            let (owner, asset) = (owner.clone(), owner.staged(None, &bytes, now).await);
            running.push(spawn(async move { stored(owner.publish(asset, now).await) }));
        }

        let published = all(running).await;
        let removed = ending.await.expect("the end comes to an end");

        for view in published {
            let blob = view.record.blob;
            assert!(!removed.contains(&blob), "round {round}: bytes that a live asset holds were removed");
            let row = owner.blob(blob).await.expect("a held blob has a row");
            assert!(!row.doomed && row.holders > 0, "{row:?}");
        }
    }
}

pub(super) async fn a_claim_has_one_winner(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for round in 0..ROUNDS {
        let running = (0..8u8).map(|holder| {
            let (index, tenant) = (Arc::clone(&index), owner.tenant.clone());
            let claim = claim(&format!("key {round}"), holder, day(0));
            spawn(async move { index.claim(&tenant, claim, day(0)).await.expect("an answer") })
        });

        let answers = all(running.collect()).await;

        assert_eq!(answers.iter().filter(|answer| **answer == Claimed::Yours).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| **answer == Claimed::InFlight).count(), 7, "{answers:?}");
    }
}

pub(super) async fn two_sweeps_end_each_asset_once(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for run in ["run-1", "run-2"] {
        for n in 0..10 {
            owner.upload(Some(run), &format!("{run} {n}"), day(0)).await;
        }
    }
    let ids: Vec<_> = index.assets(None, MANY).await.expect("a list").into_iter().map(|record| record.id).collect();
    owner.refer("run-1", &ids, day(0)).await;
    let sweep = || {
        let owner = owner.clone();
        spawn(async move { owner.sweep_by(3, day(40)).await.expired })
    };

    let mut expired = all(vec![sweep(), sweep(), sweep()]).await.concat();

    expired.sort();
    assert_eq!(expired, ids);
    let events = owner.log().await.into_iter().filter(|row| row.event.kind == AuditKind::Expire).count();
    assert_eq!(events, ids.len());
    assert_eq!(index.doom(Timestamp::MIN, MANY, day(100)).await.expect("the doomed").len(), ids.len());
}

/// The kinds of a tenant's events, in the order in which they happened.
async fn kinds(owner: &Owner) -> Vec<AuditKind> {
    owner.log().await.into_iter().map(|row| row.event.kind).collect()
}

/// No event of the one kind comes behind one of the other.
fn never_after(kinds: &[AuditKind], late: AuditKind, early: AuditKind) -> bool {
    let first = kinds.iter().position(|kind| *kind == early);
    first.is_none_or(|first| !kinds[first..].contains(&late))
}

pub(super) async fn a_fork_keeps_whatever_its_parent_had_left(index: Subject) {
    for round in 0..ROUNDS {
        let owner = Owner::of(&index, &format!("tenant-{round}"));
        let mut ids = Vec::new();
        for n in 0..6 {
            ids.push(owner.upload(Some("parent"), &format!("bytes {n}"), day(0)).await.record.id);
        }
        ids.sort();
        let sweep = {
            let owner = owner.clone();
            spawn(async move { owner.sweep_by(1, day(40)).await.expired })
        };
        let fork = {
            let owner = owner.clone();
            spawn(async move {
                tokio::time::sleep(Duration::from_micros(100 * round.unsigned_abs())).await;
                owner.fork("child", "parent", day(40)).await
            })
        };

        let ended = sweep.await.expect("a call returns");

        assert_eq!(fork.await.expect("a call returns"), Ok(ids.clone()), "tombstones too");
        assert!(never_after(&kinds(&owner).await, AuditKind::Expire, AuditKind::Floor), "{ended:?}");
        for id in ids {
            let view = owner.view(id).await;
            assert_eq!(view.references, [run_id("child"), run_id("parent")]);
            assert_eq!(view.record.is_live(), !ended.contains(&id));
            assert_eq!(view.floor.until, Until::Endless);
        }
    }
}

pub(super) async fn nothing_ends_after_a_hold_was_placed(index: Subject) {
    for round in 0..ROUNDS {
        let owner = Owner::of(&index, &format!("tenant-{round}"));
        for n in 0..6 {
            owner.upload(Some("run-1"), &format!("bytes {n}"), day(0)).await;
        }
        let alone = owner.upload(None, "alone", day(39)).await.record.id;
        let sweep = {
            let owner = owner.clone();
            spawn(async move { owner.sweep_by(1, day(40)).await })
        };
        let holds = {
            let owner = owner.clone();
            spawn(async move {
                tokio::time::sleep(Duration::from_micros(100 * round.unsigned_abs())).await;
                owner.hold(&HoldOn::Run(run_id("run-1")), "audit", day(40)).await;
                let live = owner.lives(alone).await;
                owner.hold(&HoldOn::Asset(alone), "audit", day(40)).await;
                live
            })
        };

        sweep.await.expect("a call returns");
        let was_live = holds.await.expect("a call returns");

        let ended_after = owner.log().await.into_iter().skip_while(|row| row.event.kind != AuditKind::Hold);
        let ended_after = ended_after.filter(|row| row.event.kind == AuditKind::Expire);
        let ended_after: Vec<_> = ended_after.filter_map(|row| row.event.asset_id).collect();
        assert!(ended_after.iter().all(|id| *id == alone), "{ended_after:?}");
        assert!(was_live || !owner.lives(alone).await, "the dead stay dead");
        let left = owner.sweep_by(3, day(5_000)).await;
        assert_eq!((left.expired, left.dropped), (vec![], vec![]), "whatever is left is kept");
    }
}

pub(super) async fn a_publication_of_erased_bytes_has_its_own(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for round in 0..ROUNDS {
        let bytes = format!("bytes {round}");
        let first = owner.upload(None, &bytes, day(0)).await.record;
        let mut running = Vec::new();
        for _ in 0..3 {
            let (owner, asset) = (owner.clone(), owner.staged(None, &bytes, day(0)).await);
            running.push(spawn(async move { stored(owner.publish(asset, day(0)).await) }));
        }
        let erasure = {
            let owner = owner.clone();
            spawn(async move {
                let Erasure::Done(record) = owner.erase(first.id, day(0)).await else {
                    unreachable!("nothing holds it")
                };
                owner.remove_doomed(day(0)).await;
                record
            })
        };

        let published = all(running).await;
        let record = erasure.await.expect("a call returns");

        let AssetState::Erased { bytes_removed, .. } = record.state else { unreachable!("{record:?}") };
        assert_eq!(owner.blob(first.blob).await.is_none(), bytes_removed, "what was said of the bytes is so");
        for view in published {
            let row = owner.blob(view.record.blob).await.expect("a held blob has a row");
            assert!(!row.doomed && row.holders > 0, "{row:?}");
        }
    }
}

pub(super) async fn nothing_stays_in_an_erased_run(index: Subject) {
    for round in 0..ROUNDS {
        let owner = Owner::of(&index, &format!("tenant-{round}"));
        owner.upload(Some("run-1"), "bytes", day(0)).await;
        let other = owner.upload_asking(None, "other bytes", day(90), day(0)).await.record.id;
        let mut running = Vec::new();
        for n in 0..4 {
            let (owner, asset) = (owner.clone(), owner.staged(Some("run-1"), &format!("bytes {n}"), day(0)).await);
            running.push(spawn(async move { owner.publish(asset, day(0)).await }));
        }
        let erasure = {
            let owner = owner.clone();
            spawn(async move {
                owner.erase_run("run-1", day(0)).await;
                owner.sweep_by(1, day(0)).await
            })
        };
        let fork = {
            let owner = owner.clone();
            spawn(async move { owner.fork("child", "run-1", day(0)).await })
        };

        let published = all(running).await;
        erasure.await.expect("a call returns");
        let forked = fork.await.expect("a call returns");

        let kept = forked.unwrap_or_default();
        for one in published {
            if let Published::Stored(view) | Published::Shared(view) = one {
                let id = view.record.id;
                assert_eq!(owner.lives(id).await, kept.contains(&id), "only a fork keeps what the run had");
            } else {
                assert_eq!(one, Published::RunErased);
            }
        }
        assert!(owner.lives(other).await);
        assert_eq!(owner.sweep_by(1, day(0)).await.erased, vec![]);
    }
}

pub(super) async fn a_call_that_nobody_waits_for_is_whole(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for round in 0..ROUNDS {
        let asset = owner.staged(Some("run-1"), &format!("bytes {round}"), day(0)).await;
        let (id, blob) = (asset.record.id, asset.record.blob);
        let call = {
            let owner = owner.clone();
            spawn(async move { owner.publish(asset, day(0)).await })
        };
        tokio::time::sleep(Duration::from_micros(20 * round.unsigned_abs())).await;
        call.abort();
        let _ = call.await;
        // Whatever was queued before this is done before it.
        owner.announce(day(0)).await;

        let row = owner.blob(blob).await.expect("an upload, or a held blob");
        match owner.find(id).await {
            Some(record) => {
                assert_eq!((record.blob, row.holders), (blob, 1));
                assert_eq!(owner.view(id).await.reference_count, 1);
            }
            None => assert_eq!((row.bytes, row.holders), (None, 0)),
        }
    }
}
