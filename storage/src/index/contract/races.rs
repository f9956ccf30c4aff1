//! Calls that meet each other, on real threads, at two replicas of one index.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::task::{JoinHandle, spawn};

use super::Subject;
use super::stage::{MANY, Owner, claim, day, event, run_id, stored};
use crate::audit::{AuditKind, AuditRow};
use crate::index::{Claimed, Published, Referred};
use crate::record::AssetState;
use crate::retention::Until;

/// How often each race is run: most of what can go wrong shows within a few.
pub(super) const ROUNDS: i64 = 20;

/// Two replicas of one index.
pub(super) type Replicas = [Subject; 2];

/// The tenant of these races, at each of the replicas.
pub(super) fn owners(replicas: &Replicas) -> [Owner; 2] {
    owners_of(replicas, "acme")
}

/// A tenant at each of the replicas.
pub(super) fn owners_of(replicas: &Replicas, tenant: &str) -> [Owner; 2] {
    [Owner::of(&replicas[0], tenant), Owner::of(&replicas[1], tenant)]
}

pub(super) async fn all<T: Send + 'static>(running: Vec<JoinHandle<T>>) -> Vec<T> {
    join_all(running).await.into_iter().map(|done| done.expect("a call returns")).collect()
}

pub(super) async fn what_one_replica_did_the_other_sees(replicas: Replicas) {
    let [one, other] = owners(&replicas);
    for round in 0..ROUNDS {
        let id = one.upload(Some("run-1"), &format!("bytes {round}"), day(0)).await.record.id;
        assert!(other.lives(id).await);
        other.run_until("run-1", day(50 + round), day(0)).await;
        assert_eq!(one.view(id).await.floor.until, Until::At(day(50 + round)));
        other.index.end_upload(&other.tenant, one.announce(day(0)).await).await.expect("a withdrawal");
        assert_eq!(one.blobs().await.len() as i64, round + 1);
    }
}

pub(super) async fn two_publications_of_equal_bytes_share_one_blob(replicas: Replicas) {
    let owners = owners(&replicas);
    for round in 0..ROUNDS {
        let bytes = format!("bytes {round}");
        let mut running = Vec::new();
        for owner in owners.iter().cycle().take(4) {
            let (owner, asset) = (owner.clone(), owner.staged(Some("run-1"), &bytes, day(0)).await);
            running.push(spawn(async move { owner.publish(asset, day(0)).await }));
        }

        let published = all(running).await;

        let own = published.iter().filter(|one| matches!(one, Published::Stored(_))).count();
        assert_eq!(own, 1, "{published:?}");
        let held = owners[0].shareable(&bytes).await.expect("somebody holds it");
        assert!(published.into_iter().all(|one| stored(one).record.blob == held));
        assert_eq!(owners[1].blob(held).await.map(|row| row.holders), Some(4));
    }
}

pub(super) async fn hundreds_of_publications_of_equal_bytes_at_once_all_come_through(replicas: Replicas) {
    const COUNT: usize = 500;
    let owners = owners(&replicas);
    let mut staged = Vec::new();
    for (n, owner) in owners.iter().cycle().take(COUNT).enumerate() {
        // Each is later than the one before, so that the run, which nobody has registered, moves with each.
        let now = day(0).checked_add(Duration::from_millis(n as u64)).expect("a time in range");
        staged.push((owner.clone(), owner.staged(Some("run-1"), "the same", now).await, now));
    }

    let running = staged.into_iter().map(|(owner, asset, now)| spawn(async move { owner.publish(asset, now).await }));
    let published = all(running.collect()).await;

    let own = published.iter().filter(|one| matches!(one, Published::Stored(_))).count();
    assert_eq!((own, published.len()), (1, COUNT));
    let held = owners[0].shareable("the same").await.expect("somebody holds it");
    assert_eq!(owners[1].blob(held).await.map(|row| row.holders), Some(COUNT as u64));
}

pub(super) async fn a_publication_never_holds_a_doomed_blob(replicas: Replicas) {
    let owners = owners(&replicas);
    for round in 0..ROUNDS {
        // The first asset ends, its blob is condemned and doomed, and all the while the same bytes are published anew.
        let now = day(10 * round);
        let bytes = format!("bytes {round}");
        let first = owners[0].upload(None, &bytes, now).await.record;
        let ending = {
            let owner = owners[0].clone();
            spawn(async move {
                owner.delete(first.id, now).await;
                owner.remove_doomed(now).await
            })
        };
        let mut running = Vec::new();
        for owner in owners.iter().cycle().take(3) {
            let (owner, asset) = (owner.clone(), owner.staged(None, &bytes, now).await);
            running.push(spawn(async move { stored(owner.publish(asset, now).await) }));
        }

        let published = all(running).await;
        let removed = ending.await.expect("the end comes to an end");

        for view in published {
            let blob = view.record.blob;
            assert!(!removed.contains(&blob), "round {round}: bytes that a live asset holds were removed");
            let row = owners[1].blob(blob).await.expect("a held blob has a row");
            assert!(!row.doomed && row.holders > 0, "{row:?}");
        }
    }
}

pub(super) async fn a_publication_into_a_run_that_is_swept_ends_once_and_whole(replicas: Replicas) {
    let owners = owners(&replicas);
    for round in 0..ROUNDS {
        let (run, now) = (format!("run-{round}"), day(100 * round));
        owners[0].run_until(&run, now, day(100 * round - 1)).await;
        let old = owners[0].upload(Some(&run), &format!("old {round}"), day(100 * round - 1)).await.record.id;
        let mut running = Vec::new();
        for (n, owner) in owners.iter().cycle().take(4).cloned().enumerate() {
            // One half come by clocks that are behind the sweep's.
            let at = if n < 2 { now } else { day(100 * round - 1) };
            let asset = owner.staged(Some(&run), &format!("bytes {round} {n}"), at).await;
            running.push(spawn(async move { stored(owner.publish(asset, at).await).record.id }));
        }
        let sweeping = owners.clone().map(|owner| spawn(async move { owner.sweep_by(1, now).await.expired }));

        let mut made = all(running).await;
        let mut expired = all(sweeping.into()).await.concat();
        expired.extend(owners[1].sweep_by(1, now).await.expired);

        made.push(old);
        made.sort();
        expired.sort();
        assert_eq!(expired, made, "round {round}");
    }
}

pub(super) async fn one_replica_at_a_time_has_the_turn_to_remove_bytes(replicas: Replicas) {
    let turn = async |replica: usize| replicas[replica].removal_turn().await.expect("an answer");
    let first = turn(0).await.expect("nobody has it");
    assert!(turn(0).await.is_none() && turn(1).await.is_none(), "it is taken");

    drop(first);
    let began = std::time::Instant::now();
    let second = loop {
        if let Some(second) = turn(1).await {
            break second;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "it is never free again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };

    assert!(turn(0).await.is_none(), "it is taken again");
    drop(second);
}

pub(super) async fn a_claim_has_one_winner(replicas: Replicas) {
    for round in 0..ROUNDS {
        let running = (0..8u8).map(|holder| {
            let owner = Owner::of(&replicas[usize::from(holder % 2)], "acme");
            let claim = claim(&format!("key {round}"), holder, day(0));
            spawn(async move { owner.index.claim(&owner.tenant, claim, day(0)).await.expect("an answer") })
        });

        let answers = all(running.collect()).await;

        assert_eq!(answers.iter().filter(|answer| **answer == Claimed::Yours).count(), 1, "{answers:?}");
        assert_eq!(answers.iter().filter(|answer| **answer == Claimed::InFlight).count(), 7, "{answers:?}");
    }
}

pub(super) async fn two_sweeps_end_each_asset_once(replicas: Replicas) {
    let [owner, other] = owners(&replicas);
    let index = &replicas[0];
    for run in ["run-1", "run-2"] {
        for n in 0..10 {
            owner.upload(Some(run), &format!("{run} {n}"), day(0)).await;
        }
    }
    let ids: Vec<_> = index.assets(None, MANY).await.expect("a list").into_iter().map(|record| record.id).collect();
    owner.refer("run-1", &ids, day(0)).await;
    let sweep = |owner: &Owner| {
        let owner = owner.clone();
        spawn(async move { owner.sweep_by(3, day(40)).await.expired })
    };

    let mut expired = all(vec![sweep(&owner), sweep(&other), sweep(&owner)]).await.concat();

    expired.sort();
    assert_eq!(expired, ids);
    let events = owner.log().await.into_iter().filter(|row| row.event.kind == AuditKind::Expire).count();
    assert_eq!(events, ids.len());
    assert_eq!(index.doom(Timestamp::MIN, MANY, day(100)).await.expect("the doomed").len(), ids.len());
}

pub(super) async fn a_reference_and_an_end_are_of_one_mind(replicas: Replicas) {
    let [owner, other] = owners(&replicas);
    owner.run_until("keeps", day(1_000), day(0)).await;
    for round in 0..ROUNDS {
        let id = owner.upload(None, &format!("bytes {round}"), day(0)).await.record.id;
        let referring = {
            let owner = owner.clone();
            spawn(async move { owner.try_refer("keeps", &[id], day(1)).await })
        };
        let ending = spawn({
            let owner = other.clone();
            async move { owner.index.expire_if_due(&owner.tenant, id, &owner.terms, "sweep", day(1)).await }
        });

        assert!(matches!(referring.await.expect("a call returns"), Referred::All(_)));
        let ended = ending.await.expect("a call returns").expect("an answer").expect("the asset has a row");

        // Either it was kept in time, or it had ended and is referenced as a tombstone; its row and its answer say the same.
        assert_eq!(owner.find(id).await, Some(ended.clone()));
        let view = other.view(id).await;
        assert_eq!(view.references, vec![run_id("keeps")]);
        let blob = owner.blob(ended.blob).await.expect("a blob has a row");
        assert_eq!(blob.holders, u64::from(ended.is_live()));
    }
    let live = owner.index.assets(None, MANY).await.expect("a list").into_iter().filter(|one| one.is_live()).count();
    assert_eq!(owner.sweep(day(999)).await.expired, vec![]);
    assert_eq!(owner.sweep(day(1_000)).await.expired.len(), live);
}

pub(super) async fn a_longer_run_and_an_end_are_of_one_mind(replicas: Replicas) {
    let [owner, other] = owners(&replicas);
    for round in 0..ROUNDS {
        let run = format!("run-{round}");
        owner.run_until(&run, day(1), day(0)).await;
        let id = owner.upload(Some(&run), &format!("bytes {round}"), day(0)).await.record.id;
        let extending = spawn({
            let owner = owner.clone();
            async move {
                owner.run_until(&run, day(9), day(1)).await;
                // The run's host has heard that its log is kept: what ends from here on is a broken promise.
                owner.find(id).await.expect("the asset has a row").state
            }
        });
        let ending = spawn({
            let owner = other.clone();
            async move { owner.sweep(day(1)).await.expired }
        });

        let then = extending.await.expect("a call returns");
        let ended = ending.await.expect("a call returns").contains(&id);

        let now = other.find(id).await.expect("the asset has a row").state;
        assert_eq!(then == AssetState::Live, !ended, "round {round}: {then:?}, and then {now:?}");
        assert_eq!(then, now, "round {round}");
    }
}

pub(super) async fn references_by_many_runs_are_all_counted(replicas: Replicas) {
    let owners = owners(&replicas);
    let id = owners[0].upload(None, "bytes", day(0)).await.record.id;
    let referring = (0..8).map(|n| {
        let owner = owners[n % 2].clone();
        spawn(async move { owner.refer(&format!("run-{n}"), &[id], day(0)).await })
    });
    all(referring.collect()).await;

    let view = owners[1].view(id).await;
    assert_eq!(view.reference_count, 8);
    let mut runs = view.references;
    runs.sort();
    assert_eq!(runs, (0..8).map(|n| run_id(&format!("run-{n}"))).collect::<Vec<_>>());
}

pub(super) async fn two_sealers_make_one_chain(replicas: Replicas) {
    let owners = owners(&replicas);
    let writing = owners.clone().map(|owner| {
        spawn(async move {
            for n in 0..ROUNDS {
                let events = vec![event(AuditKind::Read, day(n))];
                owner.index.record(&owner.tenant, events).await.expect("a record");
            }
        })
    });
    let sealing = owners.clone().map(|owner| {
        spawn(async move {
            for _ in 0..ROUNDS {
                owner.index.seal_audit(3).await.expect("a sealed log");
            }
        })
    });
    all(writing.into_iter().chain(sealing).collect()).await;

    let log = owners[0].log().await;
    assert_eq!(log.len() as i64, 2 * ROUNDS);
    let mut previous = AuditRow::GENESIS;
    for (row, seq) in log.iter().zip(1..) {
        assert!(row.holds(&owners[0].tenant) && row.seq == seq && row.previous == previous, "{row:?}");
        previous = row.hash;
    }
}

pub(super) async fn a_call_that_nobody_waits_for_is_whole(replicas: Replicas) {
    let [owner, other] = owners(&replicas);
    for round in 0..ROUNDS {
        let asset = owner.staged(Some("run-1"), &format!("bytes {round}"), day(0)).await;
        let (id, blob) = (asset.record.id, asset.record.blob);
        let call = {
            let owner = owner.clone();
            spawn(async move { owner.publish(asset, day(0)).await })
        };
        tokio::time::sleep(Duration::from_micros(200 * round.unsigned_abs())).await;
        call.abort();
        let _ = call.await;

        // It may still be under way: what is looked at is a moment between two looks that are alike.
        let (found, row, references) = loop {
            let before = other.find(id).await;
            let row = other.blob(blob).await.expect("an upload, or a held blob");
            let view = other.index.view(&other.tenant, id, &other.terms).await.expect("a view, or none");
            if other.find(id).await == before {
                break (before, row, view.map(|view| view.reference_count));
            }
        };
        match found {
            Some(record) => assert_eq!((record.blob, row.holders, references), (blob, 1, Some(1))),
            None => assert_eq!((row.bytes, row.holders, references), (None, 0, None)),
        }
    }
}
