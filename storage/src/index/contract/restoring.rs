//! An index that is made anew from what another one tells.

use std::sync::Arc;

use super::Subject;
use super::stage::{MANY, Owner, closed, day, event, put, run_id};
use crate::audit::AuditKind;
use crate::ids::{AssetId, Digest};
use crate::index::model::ModelIndex;
use crate::index::{AssetIndex, Restored, RunQuery};
use crate::record::{AssetRecord, AssetState, HoldOn, Owed, ReferenceRecord};
use crate::retention::RunUpdate;

/// Everything that can happen to a tenant.
async fn a_life(owner: &Owner) {
    owner.run_until("run-1", day(5), day(0)).await;
    owner.update(put("open"), day(0)).await.expect("a new run");
    let first = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    owner.upload_asking(None, "bytes", day(9), day(0)).await;
    owner.upload(Some("nobody-registered-it"), "more bytes", day(1)).await;
    owner.upload(Some("open"), "of an open run", day(1)).await;
    let dead = owner.upload(None, "dead", day(1)).await.record.id;
    owner.delete(dead, day(1)).await;
    let gone = owner.upload(Some("open"), "gone", day(1)).await.record.id;
    owner.erase(gone, day(1)).await;
    owner.upload(Some("erased"), "of an erased run", day(1)).await;
    owner.fork("child", "run-1", day(2)).await.expect("a fork");
    owner.refer("open", &[first, dead], day(2)).await;
    let child = RunUpdate { log_retention_seconds: Some(4 * 86_400), ..closed(put("child")) };
    owner.update(child, day(2)).await.expect("a first end");
    owner.upload_asking(None, "held", day(2), day(2)).await;
    owner.hold(&HoldOn::Asset(first), "audit", day(2)).await;
    owner.run_until("held", day(3), day(2)).await;
    owner.upload(Some("held"), "of a held run", day(2)).await;
    owner.hold(&HoldOn::Run(run_id("held")), "audit", day(2)).await;
    owner.erase_run("erased", day(2)).await;
    owner.artifact("run-1", "report", &[first], day(2)).await;
    owner.artifact("open", "report", &[], day(2)).await;
    let audit = event(AuditKind::Revoke, day(2));
    owner.index.revoke_url(&owner.tenant, "url", day(9), audit.clone()).await.expect("a revocation");
    owner.index.raise_epoch(&owner.tenant, audit).await.expect("an epoch");
}

/// What the store would have kept of it.
async fn records(owner: &Owner) -> Vec<Restored> {
    let query = RunQuery { limit: MANY, ..RunQuery::default() };
    let runs = owner.index.runs(&owner.tenant, &query).await.expect("the runs");
    let assets = owner.index.assets(None, MANY).await.expect("the assets");
    let mut kept: Vec<Restored> = runs.iter().map(|view| Restored::Run(view.record.clone())).collect();
    let mut holds = Vec::new();
    for view in runs {
        holds.push(HoldOn::Run(view.record.id));
    }
    let mut made: Vec<AssetRecord> = assets.clone();
    made.sort_by_key(|record| record.created_at);
    kept.extend(made.into_iter().map(|record| Restored::Asset { record: Box::new(record), has_bytes: false }));
    for record in assets {
        // Oldest first; its own run's came with the asset.
        let of_others =
            owner.view(record.id).await.references.into_iter().rev().filter(|run| Some(run) != record.run.as_ref());
        for run in of_others {
            kept.push(Restored::References(ReferenceRecord { run, assets: vec![record.id], at: day(2) }));
        }
        holds.push(HoldOn::Asset(record.id));
    }
    for run in ["run-1", "open"] {
        kept.push(Restored::Artifact(Box::new(owner.found(run, "report").await.expect("an artifact"))));
    }
    for on in holds {
        for hold in owner.index.holds(&owner.tenant, &on, None, MANY).await.expect("the holds") {
            kept.push(Restored::Hold { on: on.clone(), hold });
        }
    }
    kept.push(Restored::Epoch(1));
    kept.push(Restored::Revoked { url_id: "url".into(), keep_until: day(9) });
    kept
}

async fn restore(owner: &Owner, what: Vec<Restored>) {
    owner.index.restore(&owner.tenant, what, &owner.terms, day(2)).await.expect("it is written");
}

/// Finds that both say the same.
async fn compare(owner: &Owner, right: &Owner, at: i64) {
    let assets = right.index.assets(None, MANY).await.expect("a list");
    assert_eq!(owner.index.assets(None, MANY).await.expect("a list"), assets);
    for record in assets {
        assert_eq!(owner.view(record.id).await, right.view(record.id).await, "on day {at}");
    }
    for run in ["run-1", "open"] {
        assert_eq!(owner.found(run, "report").await, right.found(run, "report").await, "{run} on day {at}");
    }
    let query = RunQuery { limit: MANY, ..RunQuery::default() };
    let runs = right.index.runs(&right.tenant, &query).await.expect("the runs");
    assert_eq!(owner.index.runs(&owner.tenant, &query).await.expect("the runs"), runs);
    for n in 0..12 {
        let due = right.index.count_due(MANY, &right.terms, day(at + n)).await.expect("a count");
        assert_eq!(owner.index.count_due(MANY, &owner.terms, day(at + n)).await.expect("a count"), due);
    }
}

pub(super) async fn an_index_made_anew_is_as_the_old_one(index: Subject) {
    let right = Owner::of(&(Arc::new(ModelIndex::default()) as Arc<dyn AssetIndex>), "acme");
    a_life(&right).await;
    let owner = Owner::of(&index, "acme");

    restore(&owner, records(&right).await).await;

    compare(&owner, &right, 2).await;
    assert!(index.is_revoked(&owner.tenant, "url").await.expect("an answer"));
    for bytes in ["bytes", "more bytes", "held"] {
        assert_eq!(owner.shareable(bytes).await, right.shareable(bytes).await, "{bytes}");
    }
    for at in [2, 3, 6, 9, 31, 40, 200] {
        assert_eq!(owner.sweep(day(at)).await, right.sweep(day(at)).await, "on day {at}");
        compare(&owner, &right, at).await;
    }
    for record in index.assets(None, MANY).await.expect("a list") {
        owner.lift(&HoldOn::Asset(record.id), "audit", day(200)).await;
        right.lift(&HoldOn::Asset(record.id), "audit", day(200)).await;
    }
    assert!(owner.lift(&HoldOn::Run(run_id("held")), "audit", day(200)).await);
    assert!(right.lift(&HoldOn::Run(run_id("held")), "audit", day(200)).await);
    let last = owner.sweep(day(200)).await;
    assert!(!last.expired.is_empty());
    assert_eq!(last, right.sweep(day(200)).await);
}

pub(super) async fn what_is_restored_twice_is_there_once(index: Subject) {
    let right = Owner::of(&(Arc::new(ModelIndex::default()) as Arc<dyn AssetIndex>), "acme");
    a_life(&right).await;
    let owner = Owner::of(&index, "acme");
    let kept = records(&right).await;

    restore(&owner, kept.clone()).await;
    let blobs = owner.blobs().await;
    restore(&owner, kept).await;

    compare(&owner, &right, 2).await;
    assert_eq!(owner.blobs().await, blobs);
    owner.run_until("run-1", day(8), day(3)).await;
}

pub(super) async fn an_artifact_of_an_erased_run_is_not_restored(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let old = Owner::of(&(Arc::new(ModelIndex::default()) as Arc<dyn AssetIndex>), "acme");
    let artifact = old.artifact("run-1", "report", &[], day(0)).await;
    let run = old.index.find_run(&old.tenant, &artifact.run).await.expect("a row").expect("of the run");
    let erased = run.erased(day(1)).expect("it was not erased before");

    restore(&owner, vec![Restored::Run(erased), Restored::Artifact(Box::new(artifact.clone()))]).await;

    assert_eq!(owner.found("run-1", "report").await, None);
    let gone = Owed::Artifact { run: artifact.run, id: artifact.id, number: artifact.number + 1 };
    assert_eq!(index.owed(None, MANY).await.expect("what is owed"), [(owner.tenant.clone(), gone)]);
}

pub(super) async fn erased_bytes_that_are_found_again_go(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let old = Owner::of(&(Arc::new(ModelIndex::default()) as Arc<dyn AssetIndex>), "acme");
    let live = old.upload(None, "live", day(0)).await.record;
    let gone = old.upload(None, "gone", day(0)).await.record;
    let expired = old.upload(None, "expired", day(0)).await.record;
    let dead = AssetRecord { state: AssetState::Expired { at: day(1) }, ..expired.clone() };
    let same = AssetRecord { id: AssetId::generate(day(0)), ..live.clone() };
    let erased = |record: &AssetRecord| record.erased(day(1), vec![], true);

    let restored = [erased(&gone), erased(&same), live.clone(), dead];
    let restored = restored.map(|record| Restored::Asset { record: Box::new(record), has_bytes: true });
    restore(&owner, restored.to_vec()).await;

    assert_eq!(owner.doom(day(2)).await.into_iter().map(|one| one.blob).collect::<Vec<_>>(), [gone.blob]);
    assert_eq!(owner.blob(live.blob).await.map(|row| (row.holders, row.doomed)), Some((1, false)));
    assert_eq!(owner.shareable("live").await, Some(live.blob));
    assert_eq!(owner.shareable("expired").await, Some(expired.blob), "two days for somebody to take it up");
    assert_eq!(owner.find(gone.id).await.map(|record| record.sha256), Some(Digest::ERASED));
    let taken: Vec<_> = owner.remove_doomed(day(4)).await;
    assert!(taken.contains(&expired.blob) && !taken.contains(&live.blob));
}
