//! The two that are compared, and what has been done to both.

use std::collections::BTreeSet;
use std::fmt::Debug;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::super::Subject;
use super::super::stage::{MANY, claim, day, days, event, hold_id, new_asset, put, run_id, settled, sha256};
use super::super::urls::url as minted;
use super::beginning;
use super::step::{Act, End, On};
use crate::audit::{AuditKind, AuditRow};
use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, BlobKey, TenantId};
use crate::index::model::ModelIndex;
use crate::index::{
    Amendment, AssetIndex, AssetQuery, Look, LookAt, NewArtifact, NewAsset, NewDurable, Published, RunQuery,
};
use crate::quota::Quota;
use crate::record::{AssetRecord, Doomed, Hold, HoldOn, RunStatus, UploadIntent};
use crate::retention::{RunUpdate, Terms, after};

/// Asks both the same, and finds that they answer alike.
macro_rules! both {
    ($world:ident, $index:ident => $call:expr) => {{
        let $index = $world.index();
        let answer = told($call.await);
        let $index: &dyn AssetIndex = &$world.model;
        let right = told($call.await);
        assert_eq!(answer, right, "the index, and then the model");
        answer
    }};
}

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
            Act::Run { tenant, run, end, closes } => self.update(tenant, run, end, closes).await,
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

    async fn change(&mut self, act: Act) {
        let audit = event(AuditKind::Amend, self.now);
        match act {
            Act::Amend { asset, expected } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                let name = Some(Some(format!("at {}", self.now)));
                let change = Amendment { name, expected, ..Amendment::default() };
                both!(self, index => index.amend(&tenant, id, change.clone(), audit.clone()));
            }
            Act::Raise { asset } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                let durable = NewDurable { kid: "k2".into(), issued_at: self.now.as_second() };
                both!(self, index => index.raise_generation(&tenant, id, durable.clone(), audit.clone()));
            }
            Act::Resign { asset } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                let durable = NewDurable { kid: "k3".into(), issued_at: self.now.as_second() };
                both!(self, index => index.resign(&tenant, id, durable.clone(), audit.clone()));
            }
            Act::Revoke { tenant, url, keep_days } => {
                let (tenant, until) = (self.tenants[tenant].clone(), after(self.now, days(keep_days)));
                both!(self, index => index.revoke_url(&tenant, KEYS[url], until, audit.clone()));
            }
            _ => {}
        }
    }

    async fn share(&mut self, act: Act) {
        let (now, audit) = (self.now, event(AuditKind::Mint, self.now));
        match act {
            Act::Mint { asset, url, label, uses, live_days } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                let mut minted = minted(KEYS[url], id, label.map(|label| KEYS[label]), uses);
                minted.record.expires_at = after(now, days(live_days));
                minted.record.keep_until = after(now, days(live_days + 1));
                both!(self, index => index.mint(&tenant, vec![minted.clone()], vec![audit.clone()]));
            }
            Act::TakeUse { tenant, url } => {
                let tenant = self.tenants[tenant].clone();
                both!(self, index => index.take_use(&tenant, KEYS[url]));
            }
            Act::RevokeUrls { tenant } => {
                let (tenant, names) = (self.tenants[tenant].clone(), KEYS.map(str::to_owned));
                both!(self, index => index.revoke_urls(&tenant, &names, audit.clone(), now));
            }
            Act::RaiseAll { asset, epoch } => {
                let Some((tenant, _)) = pick(&self.assets, asset) else { return };
                let durable = NewDurable { kid: "k4".into(), issued_at: now.as_second() };
                let ids: Vec<AssetId> = self.assets.iter().skip(asset % 4).map(|(_, id)| *id).collect();
                both!(self, index => index.raise_generations(&tenant, &ids, durable.clone(), audit.clone()));
                if epoch {
                    both!(self, index => index.raise_epoch(&tenant, audit.clone()));
                }
            }
            _ => {}
        }
    }

    async fn update(&mut self, tenant: usize, run: usize, end: End, closes: bool) {
        let (tenant, terms, now) = (self.tenants[tenant].clone(), self.terms, self.now);
        let mut update = RunUpdate { status: closes.then_some(RunStatus::Closed), ..put(RUNS[run]) };
        match end {
            End::Unsaid => {}
            End::InDays(n) => update.log_retain_until = Some(Some(after(now, days(n)))),
            End::SecondsOfDays(n) => update.log_retention_seconds = Some(n * 86_400),
            End::Never => update.log_retain_until = Some(None),
        }
        let audit = event(AuditKind::Floor, now);
        drop(both!(self, index => index.update_run(&tenant, &update, &terms, audit.clone(), now)));
    }

    async fn refer(&mut self, tenant: usize, run: usize, assets: &[usize], unknown: bool) {
        let (tenant, run, terms, now) = (self.tenants[tenant].clone(), run_id(RUNS[run]), self.terms, self.now);
        // An asset of the other tenant is as unknown as one that nobody has.
        let own: Vec<_> = self.assets.iter().filter(|(owner, _)| unknown || *owner == tenant).cloned().collect();
        let ids: Vec<AssetId> = assets.iter().filter_map(|at| pick(&own, *at)).map(|(_, id)| id).collect();
        let audit = event(AuditKind::Refer, now);
        both!(self, index => index.refer(&tenant, &run, &ids, &terms, audit.clone(), now));
    }

    async fn artifact(&mut self, act: Act) {
        let Act::Artifact { tenant, run, name, assets, unknown } = act else { return };
        let (tenant, terms, now) = (self.tenants[tenant].clone(), self.terms, self.now);
        let own: Vec<_> = self.assets.iter().filter(|(owner, _)| unknown || *owner == tenant).cloned().collect();
        let assets = assets.iter().filter_map(|at| pick(&own, *at)).map(|(_, id)| id).collect();
        let document = json!({"at": now.to_string()});
        let artifact = NewArtifact { run: run_id(RUNS[run]), id: artifact_id(name), document, assets };
        let audit = event(AuditKind::Artifact, now);
        both!(self, index => index.put_artifact(&tenant, &artifact, &terms, audit.clone(), now));
    }

    fn on(&self, on: On) -> Option<(TenantId, HoldOn)> {
        match on {
            On::Asset { asset } => pick(&self.assets, asset).map(|(tenant, id)| (tenant, HoldOn::Asset(id))),
            On::Run { tenant, run } => Some((self.tenants[tenant].clone(), HoldOn::Run(run_id(RUNS[run])))),
        }
    }

    async fn hold(&mut self, act: Act) {
        let (terms, now) = (self.terms, self.now);
        match act {
            Act::Hold { on, name } => {
                let Some((tenant, on)) = self.on(on) else { return };
                let (id, reason) = (hold_id(HOLDS[name]), format!("at {now}"));
                let hold = Hold { id, reason, placed_at: now, principal: "host".into(), number: 0 };
                let audit = event(AuditKind::Hold, now);
                both!(self, index => index.hold(&tenant, &on, hold.clone(), audit.clone()));
            }
            Act::Lift { on, name } => {
                let Some((tenant, on)) = self.on(on) else { return };
                let (id, audit) = (hold_id(HOLDS[name]), event(AuditKind::Lift, now));
                both!(self, index => index.lift(&tenant, &on, &id, &terms, audit.clone()));
            }
            _ => {}
        }
    }

    async fn erase(&mut self, act: Act) {
        let (terms, now, audit) = (self.terms, self.now, event(AuditKind::Erase, self.now));
        match act {
            Act::Erase { asset } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                both!(self, index => index.erase(&tenant, id, &terms, audit.clone(), now));
            }
            Act::EraseRun { tenant, run } => {
                let (tenant, run) = (self.tenants[tenant].clone(), run_id(RUNS[run]));
                both!(self, index => index.erase_run(&tenant, &run, audit.clone(), now));
            }
            _ => {}
        }
    }

    /// Settles the first look that is due for the index, and has the model do the same.
    async fn settle_one(&mut self, limit: usize) -> Option<Look> {
        let (terms, now) = (self.terms, self.now);
        let look = told(self.index().due(now, 1).await).pop()?;
        let settlement = told(self.index().settle(&look, limit, &terms, "sweep", now).await);
        // One walk goes by the order of names, and who is the last to hold a blob depends on it.
        let mut ended: Vec<&AssetRecord> = settlement.expired.iter().chain(&settlement.erased).collect();
        ended.sort_by_key(|record| record.id);
        for record in ended {
            let own = Look { at: LookAt::Asset(record.id), ..look.clone() };
            let same = told(self.model.settle(&own, 1, &terms, "sweep", now).await);
            let same: Vec<_> = same.expired.into_iter().chain(same.erased).collect();
            assert_eq!(same, std::slice::from_ref(record), "what the index ended, and what the model makes of it");
        }
        for id in &settlement.dropped {
            let own = Look { at: LookAt::Asset(*id), ..look.clone() };
            let same = told(self.model.settle(&own, 1, &terms, "sweep", now).await);
            assert_eq!(same.dropped, [*id], "what the index dropped, and what the model makes of it");
        }
        if let LookAt::Run(run) = &look.at {
            let ended = settlement.artifacts.len();
            let same = self.model.end_artifacts(&look.tenant, run, ended, &terms, "sweep", now);
            assert_eq!(same, settlement.artifacts, "which artifacts the index ended, and what the model makes of it");
        }
        Some(look)
    }

    async fn sweep(&mut self, limit: usize) {
        let mut looks = 0;
        while let Some(look) = self.settle_one(limit).await {
            looks += 1;
            assert!(looks < MANY, "there is no end to {look:?}");
        }
        // The model says what is due by the terms that it heard last.
        told(self.model.settle(&nothing(&self.tenants[0]), 1, &self.terms, "sweep", self.now).await);
        assert_eq!(told(self.model.due(self.now, MANY).await), [], "the index is done, and the model is not");
    }

    async fn end(&mut self, act: Act) {
        let (terms, now) = (self.terms, self.now);
        match act {
            Act::ExpireIfDue { asset } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                both!(self, index => index.expire_if_due(&tenant, id, &terms, "host", now));
            }
            Act::Delete { asset } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                let audit = event(AuditKind::Erase, now);
                both!(self, index => index.delete(&tenant, id, &terms, audit.clone(), now));
            }
            Act::DoomOne { asset } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                if let Some(record) = told(self.index().find(&tenant, id).await) {
                    both!(self, index => index.doom_one(&tenant, record.blob, now));
                }
            }
            _ => {}
        }
    }

    async fn doom(&mut self, uploads_before: Timestamp, now: Timestamp) {
        let by_name = |doomed: Vec<Doomed>| -> BTreeSet<_> {
            let named = doomed.len();
            let doomed: BTreeSet<_> = doomed.into_iter().map(|one| (one.tenant, one.blob, one.asset)).collect();
            assert_eq!(doomed.len(), named, "each is named once");
            doomed
        };
        let doomed = by_name(told(self.index().doom(uploads_before, MANY, now).await));
        assert_eq!(doomed, by_name(told(self.model.doom(uploads_before, MANY, now).await)));
        self.doomed = doomed.into_iter().map(|(tenant, blob, _)| (tenant, blob)).collect();
    }

    /// Finds that both say the same of everything that can be read.
    pub(super) async fn compare(&self) {
        let (terms, now) = (self.terms, self.now);
        both!(self, index => index.assets(None, MANY));
        both!(self, index => index.blobs(None, MANY));
        both!(self, index => index.owed(None, MANY));
        for tenant in &self.tenants {
            both!(self, index => index.count_assets(tenant));
            both!(self, index => index.usage(tenant));
            both!(self, index => index.counted_usage(tenant));
            both!(self, index => index.runs(tenant, &RunQuery { limit: MANY, ..RunQuery::default() }));
            both!(self, index => index.page(tenant, &AssetQuery { limit: MANY, ..AssetQuery::default() }, &terms));
            for run in RUNS {
                both!(self, index => index.find_run(tenant, &run_id(run)));
                for name in 0..ARTIFACTS.len() {
                    both!(self, index => index.artifact(tenant, &run_id(run), &artifact_id(name)));
                }
                both!(self, index => index.holds(tenant, &HoldOn::Run(run_id(run)), None, MANY));
                let query = AssetQuery { run: Some(run_id(run)), limit: MANY, ..AssetQuery::default() };
                both!(self, index => index.page(tenant, &query, &terms));
            }
            for (_, id) in self.assets.iter().filter(|(owner, _)| owner == tenant) {
                both!(self, index => index.holds(tenant, &HoldOn::Asset(*id), None, MANY));
                both!(self, index => index.protectors(tenant, *id, 3, &terms, now));
                both!(self, index => index.same_bytes(tenant, *id, None, MANY));
                both!(self, index => index.artifact_naming(tenant, *id));
            }
            for ahead in [0, 4, 40] {
                both!(self, index => index.preview(tenant, after(now, days(ahead)), None, 2, &terms));
            }
            for bytes in BYTES {
                both!(self, index => index.blob_of(tenant, &sha256(bytes)));
            }
            for url in KEYS {
                both!(self, index => index.is_revoked(tenant, url));
                both!(self, index => index.url(tenant, url));
                both!(self, index => index.urls_with(tenant, url, None, MANY));
            }
        }
        for ahead in [0, 1, 2, 3, 5, 8, 13, 40] {
            both!(self, index => index.count_due(MANY, &terms, after(now, days(ahead))));
        }
    }

    /// Sweeps until the end of time, with the holds and without them, and compares the logs.
    pub(super) async fn finish(mut self) {
        self.sweep_on().await;
        let runs = [0, 1].into_iter().flat_map(|tenant| [0, 1, 2].map(|run| On::Run { tenant, run }));
        let assets = (0..self.assets.len()).map(|asset| On::Asset { asset });
        for on in runs.chain(assets).collect::<Vec<_>>() {
            for name in 0..HOLDS.len() {
                self.hold(Act::Lift { on, name }).await;
            }
        }
        self.compare().await;
        self.sweep_on().await;
        self.compare_logs().await;
    }

    async fn sweep_on(&mut self) {
        for ahead in [1, 2, 5, 20, 100] {
            self.now = self.now.max(day(0));
            self.pass(days(ahead));
            self.sweep(3).await;
            self.doom(self.now, self.now).await;
            self.compare().await;
        }
    }

    async fn compare_logs(&self) {
        both!(self, index => index.seal_audit(10 * MANY));
        for tenant in &self.tenants {
            let log = told(self.index().audit_rows(tenant, 0, 10 * MANY).await);
            assert_chained(tenant, &log);
            let right = told(self.model.audit_rows(tenant, 0, 10 * MANY).await);
            assert_eq!(events(&log), events(&right));
        }
    }
}

/// The order of events within one sweep is not said.
fn events(log: &[AuditRow]) -> Vec<String> {
    let mut events: Vec<String> = log.iter().map(|row| format!("{:?}", row.event)).collect();
    events.sort();
    events
}

fn assert_chained(tenant: &TenantId, log: &[AuditRow]) {
    let mut previous = AuditRow::GENESIS;
    for (row, seq) in log.iter().zip(1..) {
        assert!(row.holds(tenant) && row.seq == seq && row.previous == previous, "{row:?}");
        previous = row.hash;
    }
}

/// A look at an asset that is not there.
fn nothing(tenant: &TenantId) -> Look {
    Look { tenant: tenant.clone(), at: LookAt::Asset(AssetId::from_bytes([0; 16])), due: beginning() }
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
