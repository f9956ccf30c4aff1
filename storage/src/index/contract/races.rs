//! Calls that meet each other, on real threads.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::task::{JoinHandle, spawn};

use super::Subject;
use super::stage::{MANY, Owner, claim, day, stored};
use crate::audit::AuditKind;
use crate::index::{Claimed, Published};

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
