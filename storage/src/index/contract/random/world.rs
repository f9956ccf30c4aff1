//! The two that are compared, and what has been done to both.

use std::collections::BTreeSet;
use std::fmt::Debug;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::super::Subject;
use crate::audit::AuditKind;
use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, BlobKey, TenantId};
use crate::index::contract::random::beginning;
use crate::index::contract::random::step::Act;
use crate::index::contract::stage::{MANY, claim, days, event, new_asset, put, run_id, settled};
use crate::index::model::ModelIndex;
use crate::index::{AssetIndex, NewAsset, Published};
use crate::quota::Quota;
use crate::record::{Doomed, UploadIntent};
use crate::retention::{RunUpdate, Terms, after};

/// Asks both the same, and finds that they answer alike.
macro_rules! both {
    ($world:ident, $index:ident => $call:expr) => {{
        let $index = $world.index();
        let answer = $crate::index::contract::random::world::told($call.await);
        let $index: &dyn AssetIndex = &$world.model;
        let right = $crate::index::contract::random::world::told($call.await);
        assert_eq!(answer, right, "the index, and then the model");
        answer
    }};
}

mod compared;
mod ends;
mod runs;
mod urls;

fn told<T>(answer: Result<T, StorageError>) -> T {
    answer.expect("neither index fails")
}

/// An index, the model, and the names that were given to things in both.
pub(super) struct World {
    index: Option<Subject>,
    model: ModelIndex,
    terms: Terms,
    now: Timestamp,
    tenants: [TenantId; 2],
    uploads: Vec<(TenantId, BlobKey)>,
    assets: Vec<(TenantId, AssetId)>,
    doomed: BTreeSet<(TenantId, BlobKey)>,
    named: u8,
}

impl World {
    pub(super) fn new(index: Subject, terms: Terms) -> Self {
        // One name begins with the other: the ranges of keys lie side by side.
        let tenants = ["a", "ab"].map(|name| TenantId::parse(name).expect("a tenant"));
        Self {
            index: Some(index),
            model: ModelIndex::default(),
            terms,
            now: beginning(),
            tenants,
            uploads: Vec::new(),
            assets: Vec::new(),
            doomed: BTreeSet::new(),
            named: 0,
        }
    }

    pub(super) fn pass(&mut self, time: SignedDuration) {
        self.now = after(self.now, time);
    }

    pub(super) fn take_index(&mut self) -> Subject {
        self.index.take().expect("the index is put back before anything is asked of it")
    }

    pub(super) fn put_index(&mut self, index: Subject) {
        self.index = Some(index);
    }

    fn index(&self) -> &dyn AssetIndex {
        self.index.as_deref().expect("the index is put back before anything is asked of it")
    }

    /// A name that nothing has; the next one sorts behind it.
    fn name(&mut self) -> [u8; 16] {
        self.named += 1;
        [self.named; 16]
    }

    pub(super) async fn act(&mut self, act: Act) {
        let now = self.now;
        match act {
            Act::Announce { tenant } => drop(self.announce(tenant).await),
            Act::Alive { upload } => {
                if let Some((tenant, blob)) = pick(&self.uploads, upload) {
                    let intent = UploadIntent { blob, alive_at: now, asset: None };
                    both!(self, index => index.begin_upload(&tenant, intent.clone()));
                }
            }
            Act::Reserve { .. } => self.reserve(act).await,
            Act::Withdraw { upload } => {
                if let Some((tenant, blob)) = pick(&self.uploads, upload) {
                    both!(self, index => index.end_upload(&tenant, blob));
                }
            }
            Act::Upload { tenant, run, bytes, ask_days, claim: with } => {
                let (tenant, blob) = self.announce(tenant).await;
                let mut asset = self.asset(&tenant, run, bytes, blob);
                asset.record.asked_until = ask_days.map(|n| after(now, days(n)));
                asset.settled = with.map(|(name, holder)| settled(&claim(KEYS[name], holder, now), now));
                self.publish(&tenant, asset).await;
            }
            Act::Publish { upload, run, bytes } => {
                if let Some((tenant, blob)) = pick(&self.uploads, upload) {
                    let asset = self.asset(&tenant, run, bytes, blob);
                    self.publish(&tenant, asset).await;
                }
            }
            Act::Claim { tenant, name, holder } => {
                let (tenant, claim) = (self.tenants[tenant].clone(), claim(KEYS[name], holder, now));
                both!(self, index => index.claim(&tenant, claim.clone(), now));
            }
            Act::Renew { tenant, name, holder } => {
                let (tenant, claim) = (self.tenants[tenant].clone(), claim(KEYS[name], holder, now));
                both!(self, index => index.renew_claim(&tenant, &claim));
            }
            Act::Release { tenant, name, holder } => {
                let (tenant, claim) = (self.tenants[tenant].clone(), claim(KEYS[name], holder, now));
                both!(self, index => index.release_claim(&tenant, &claim));
            }
            Act::Amend { .. } | Act::Raise { .. } | Act::Resign { .. } | Act::Revoke { .. } => self.change(act).await,
            Act::Mint { .. } | Act::TakeUse { .. } | Act::RevokeUrls { .. } | Act::RaiseAll { .. } => {
                self.share(act).await
            }
            Act::Run { tenant, run, end, status } => self.update(tenant, run, end, status).await,
            Act::Fork { tenant, run, parent } => {
                let update = RunUpdate { fork_of: Some(run_id(RUNS[parent])), ..put(RUNS[run]) };
                let (tenant, terms, audit) = (self.tenants[tenant].clone(), self.terms, event(AuditKind::Floor, now));
                drop(both!(self, index => index.update_run(&tenant, &update, &terms, audit.clone(), now)));
            }
            Act::Hold { .. } | Act::Lift { .. } => self.hold(act).await,
            Act::Refer { tenant, run, assets, unknown } => self.refer(tenant, run, &assets, unknown).await,
            Act::Artifact { .. } => self.artifact(act).await,
            Act::Settle { limit } => drop(self.settle_one(limit).await),
            Act::Sweep { limit } => self.sweep(limit).await,
            Act::ExpireIfDue { .. } | Act::Delete { .. } | Act::DoomOne { .. } => self.end(act).await,
            Act::Erase { .. } | Act::EraseRun { .. } => self.erase(act).await,
            Act::Doom { silent_hours } => self.doom(after(now, SignedDuration::from_hours(-silent_hours)), now).await,
            Act::Forget { blob } => {
                let named: Vec<_> = self.uploads.iter().chain(&self.doomed).cloned().collect();
                if let Some((tenant, blob)) = pick(&named, blob) {
                    both!(self, index => index.forget(&Doomed { tenant: tenant.clone(), blob, asset: None }));
                }
            }
            // Which ones go first is not said, so either all may go or none is asked for.
            Act::Tidy { limit } => {
                let limit = if limit == 0 { 0 } else { MANY };
                both!(self, index => index.tidy(limit, now));
            }
            Act::Seal { limit } => drop(both!(self, index => index.seal_audit(limit))),
            Act::Grow { days: n } => {
                let terms = &mut self.terms;
                for term in [&mut terms.unreferenced, &mut terms.grace, &mut terms.tombstone_record] {
                    *term += days(n);
                }
            }
            Act::Reopen => {}
        }
    }

    async fn announce(&mut self, tenant: usize) -> (TenantId, BlobKey) {
        let (tenant, blob) = (self.tenants[tenant].clone(), BlobKey::from_bytes(self.name()));
        let asset = Some(AssetId::from_bytes(self.name()));
        let intent = UploadIntent { blob, alive_at: self.now, asset };
        both!(self, index => index.begin_upload(&tenant, intent.clone()));
        self.uploads.push((tenant.clone(), blob));
        (tenant, blob)
    }

    async fn reserve(&mut self, act: Act) {
        let Act::Reserve { upload, bytes, most_bytes, most_assets, begin } = act else { return };
        let quota = Quota { bytes: most_bytes, assets: most_assets };
        let new = (self.tenants[upload % 2].clone(), BlobKey::from_bytes(self.name()));
        let (tenant, blob) = if begin { Some(new) } else { pick(&self.uploads, upload) }
            .unwrap_or_else(|| (self.tenants[upload % 2].clone(), BlobKey::from_bytes([0; 16])));
        let intent = UploadIntent { blob, alive_at: self.now, asset: None };
        if begin || upload % 5 == 0 {
            both!(self, index => index.begin_reserved(&tenant, intent.clone(), bytes, quota));
        } else {
            both!(self, index => index.reserve(&tenant, blob, bytes, quota));
        }
        if begin {
            self.uploads.push((tenant, blob));
        }
    }

    fn asset(&mut self, tenant: &TenantId, run: Option<usize>, bytes: usize, blob: BlobKey) -> NewAsset {
        let mut asset = new_asset(tenant, run.map(|run| RUNS[run]), BYTES[bytes], blob, self.now);
        asset.record.id = AssetId::from_bytes(self.name());
        asset.record.facts = json!({"width": 7, "flags": ["odd"]});
        asset
    }

    async fn publish(&mut self, tenant: &TenantId, asset: NewAsset) {
        let (terms, now) = (self.terms, self.now);
        let published = both!(self, index => index.publish(tenant, asset.clone(), &terms, now));
        if let Published::Stored(view) | Published::Shared(view) = published {
            self.assets.push((tenant.clone(), view.record.id));
        }
    }
}

fn artifact_id(at: usize) -> ArtifactId {
    ArtifactId::parse(ARTIFACTS[at]).expect("an artifact")
}

fn pick<T: Clone + Debug>(from: &[T], at: usize) -> Option<T> {
    from.get(at.checked_rem(from.len())?).cloned()
}

const RUNS: [&str; 3] = ["run", "run-1", "run-2"];
const ARTIFACTS: [&str; 2] = ["artifact", "artifact-1"];
const HOLDS: [&str; 2] = ["hold", "hold-1"];
const BYTES: [&str; 4] = ["some", "other", "more bytes", "and yet others"];
const KEYS: [&str; 3] = ["key", "ke", "y"];
