//! Forks, holds and erasures that meet publications and sweeps, at two replicas of one index.

use std::time::Duration;

use tokio::task::spawn;

use super::races::{ROUNDS, Replicas, all, owners, owners_of};
use super::stage::{Owner, day, put, run_id, stored};
use crate::audit::AuditKind;
use crate::index::{Erasure, Published};
use crate::record::{AssetState, HoldOn};
use crate::retention::{RunConflict, Until};

/// The kinds of a tenant's events, in the order in which they happened.
async fn kinds(owner: &Owner) -> Vec<AuditKind> {
    owner.log().await.into_iter().map(|row| row.event.kind).collect()
}

/// No event of the one kind comes behind one of the other.
fn never_after(kinds: &[AuditKind], late: AuditKind, early: AuditKind) -> bool {
    let first = kinds.iter().position(|kind| *kind == early);
    first.is_none_or(|first| !kinds[first..].contains(&late))
}

pub(super) async fn a_fork_keeps_whatever_its_parent_had_left(replicas: Replicas) {
    for round in 0..ROUNDS {
        let [owner, other] = owners_of(&replicas, &format!("tenant-{round}"));
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
            let owner = other.clone();
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

pub(super) async fn two_runs_do_not_become_forks_of_each_other(replicas: Replicas) {
    let owners = owners(&replicas);
    // Few rounds: a database may take a second to see that the two wait for each other.
    for round in 0..3 {
        let runs = ["one", "two"].map(|name| format!("{name}-{round}"));
        for run in &runs {
            owners[0].update(put(run), day(0)).await.expect("a new run");
        }
        let forking = [(0, 1), (1, 0)].map(|(child, parent)| {
            let (owner, child, parent) = (owners[child].clone(), runs[child].clone(), runs[parent].clone());
            spawn(async move { owner.fork(&child, &parent, day(0)).await })
        });

        let forked = all(forking.into()).await;

        assert!(forked.contains(&Ok(vec![])) && forked.contains(&Err(RunConflict::Cycle)), "{forked:?}");
    }
}

pub(super) async fn nothing_ends_after_a_hold_was_placed(replicas: Replicas) {
    for round in 0..ROUNDS {
        let [owner, other] = owners_of(&replicas, &format!("tenant-{round}"));
        for n in 0..6 {
            owner.upload(Some("run-1"), &format!("bytes {n}"), day(0)).await;
        }
        let alone = owner.upload(None, "alone", day(39)).await.record.id;
        let sweep = {
            let owner = owner.clone();
            spawn(async move { owner.sweep_by(1, day(40)).await })
        };
        let holds = {
            let owner = other.clone();
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

pub(super) async fn bytes_that_were_there_when_a_hold_was_placed_stay(replicas: Replicas) {
    let [owner, other] = owners(&replicas);
    for round in 0..ROUNDS {
        let run = format!("run-{round}");
        owner.run_until(&run, day(1), day(0)).await;
        let dead = owner.upload(Some(&run), &format!("bytes {round}"), day(0)).await.record;
        owner.sweep(day(1)).await;
        let dooming = {
            let owner = owner.clone();
            spawn(async move { owner.doom(day(50)).await })
        };
        let holding = {
            let (owner, on) = (other.clone(), [HoldOn::Asset(dead.id), HoldOn::Run(run_id(&run))]);
            spawn(async move {
                owner.hold(&on[usize::from(round % 2 == 0)], "audit", day(50)).await;
                // Whoever placed the hold has heard that it stands: bytes that are there now are kept.
                owner.blob(dead.blob).await.expect("a blob has a row").doomed
            })
        };

        dooming.await.expect("a call returns");
        let then = holding.await.expect("a call returns");

        assert_eq!(other.blob(dead.blob).await.map(|row| row.doomed), Some(then), "round {round}");
    }
}

pub(super) async fn a_publication_of_erased_bytes_has_its_own(replicas: Replicas) {
    let [owner, other] = owners(&replicas);
    for round in 0..ROUNDS {
        let bytes = format!("bytes {round}");
        let first = owner.upload(None, &bytes, day(0)).await.record;
        let mut running = Vec::new();
        for owner in [&owner, &other, &owner] {
            let (owner, asset) = (owner.clone(), owner.staged(None, &bytes, day(0)).await);
            running.push(spawn(async move { stored(owner.publish(asset, day(0)).await) }));
        }
        let erasure = {
            let owner = other.clone();
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

pub(super) async fn nothing_stays_in_an_erased_run(replicas: Replicas) {
    for round in 0..ROUNDS {
        let [owner, other] = owners_of(&replicas, &format!("tenant-{round}"));
        owner.upload(Some("run-1"), "bytes", day(0)).await;
        let apart = owner.upload_asking(None, "other bytes", day(90), day(0)).await.record.id;
        let mut running = Vec::new();
        for (n, owner) in [&owner, &other, &owner, &other].into_iter().enumerate() {
            let (owner, asset) = (owner.clone(), owner.staged(Some("run-1"), &format!("bytes {n}"), day(0)).await);
            running.push(spawn(async move { owner.publish(asset, day(0)).await }));
        }
        let erasure = {
            let owner = other.clone();
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
        let kinds = kinds(&owner).await;
        assert!(never_after(&kinds, AuditKind::Ingest, AuditKind::Erase), "nothing comes into it behind its erasure");
        assert!(never_after(&kinds, AuditKind::Floor, AuditKind::Erase), "nor is a fork made of it");
        assert!(owner.lives(apart).await);
        assert_eq!(owner.sweep_by(1, day(0)).await.erased, vec![]);
    }
}
