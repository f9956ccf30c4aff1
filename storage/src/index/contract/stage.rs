//! What the stories share: days, terms, and a tenant who uploads and sweeps.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use ring::digest;
use serde_json::json;

use super::Subject;
use crate::audit::{AuditEvent, AuditKind, AuditRow};
use crate::ids::{AssetId, BlobKey, Digest, HoldId, RunId, TenantId};
use crate::index::{BlobRow, Deleted, Erasure, NewAsset, Placed, Published, Referred, RunErasure, Updated};
use crate::record::{
    AssetRecord, AssetState, AssetView, Claim, Doomed, DurableUrl, Hold, HoldOn, Labels, Origin, RunStatus, RunView,
    Settled, UploadIntent,
};
use crate::retention::{RunConflict, RunUpdate, Terms};

/// How many things one call of the sweep takes up in most stories: more than there are.
pub(super) const MANY: usize = 1_000;

/// Noon of no day in particular, and so many days later.
pub(super) fn day(n: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + n * 86_400).expect("a time in range")
}

/// The last moment before that day.
pub(super) fn just_before(at: Timestamp) -> Timestamp {
    at.checked_sub(SignedDuration::from_millis(1)).expect("a time in range")
}

pub(super) fn days(n: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * n)
}

/// Thirty days for a run's log, one for an unreferenced upload, two for an expired asset's bytes, ninety for its tombstone.
pub(super) fn terms() -> Terms {
    Terms {
        default_run_log: days(30),
        unreferenced: days(1),
        grace: SignedDuration::ZERO,
        tombstone_bytes: days(2),
        tombstone_record: days(90),
    }
}

pub(super) fn run_id(name: &str) -> RunId {
    RunId::parse(name).expect("a run")
}

pub(super) fn hold_id(name: &str) -> HoldId {
    HoldId::parse(name).expect("a hold")
}

pub(super) fn sha256(bytes: &str) -> Digest {
    let hash = digest::digest(&digest::SHA256, bytes.as_bytes());
    Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes"))
}

pub(super) fn event(kind: AuditKind, at: Timestamp) -> AuditEvent {
    AuditEvent::new(kind, "host", at)
}

/// A claim that lapses a minute after `at`.
pub(super) fn claim(name: &str, holder: u8, at: Timestamp) -> Claim {
    let lapses_at = at.checked_add(SignedDuration::from_secs(60)).expect("a time in range");
    Claim { name: name.into(), holder: [holder; 16], lapses_at }
}

/// The answer that a claim's request leaves for a day.
pub(super) fn settled(claim: &Claim, at: Timestamp) -> Settled {
    let keep_until = at.checked_add(days(1)).expect("a time in range");
    Settled { claim: claim.clone(), fingerprint: sha256("the request"), keep_until }
}

/// A put that names nothing but the run.
pub(super) fn put(run: &str) -> RunUpdate {
    RunUpdate {
        id: run_id(run),
        log_retain_until: None,
        log_retention_seconds: None,
        status: None,
        fork_of: None,
        workflow_id: None,
    }
}

pub(super) fn until(run: &str, end: Timestamp) -> RunUpdate {
    RunUpdate { log_retain_until: Some(Some(end)), ..put(run) }
}

pub(super) fn closed(update: RunUpdate) -> RunUpdate {
    RunUpdate { status: Some(RunStatus::Closed), ..update }
}

/// An asset of these bytes that is uploaded into that blob.
pub(super) fn new_asset(tenant: &TenantId, run: Option<&str>, bytes: &str, blob: BlobKey, at: Timestamp) -> NewAsset {
    let id = AssetId::generate(at);
    NewAsset {
        record: AssetRecord {
            id,
            tenant: tenant.clone(),
            run: run.map(run_id),
            kind: "text".into(),
            mime_type: "text/plain".into(),
            declared_mime_type: None,
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
            blob,
            facts: json!({"wellFormed": true}),
            labels: Labels::default(),
            origin: Origin { source: "user".into(), ..Origin::default() },
            created_at: at,
            asked_until: None,
            durable: DurableUrl { kid: "k1".into(), issued_at: at.as_second(), generation: 0 },
            state: AssetState::Live,
            revision: 1,
        },
        settled: None,
        recorded: None,
        discard_at: at.checked_add(days(1)).expect("a time in range"),
        audit: event(AuditKind::Ingest, at).asset(id),
    }
}

/// A tenant of the index.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) index: Subject,
    pub(super) tenant: TenantId,
    pub(super) terms: Terms,
}

/// What a sweep did.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Swept {
    pub(super) expired: Vec<AssetId>,
    pub(super) erased: Vec<AssetId>,
    pub(super) dropped: Vec<AssetId>,
}

impl Owner {
    pub(super) fn of(index: &Subject, tenant: &str) -> Self {
        Self { index: Arc::clone(index), tenant: TenantId::parse(tenant).expect("a tenant"), terms: terms() }
    }

    pub(super) fn with_terms(&self, terms: Terms) -> Self {
        Self { terms, ..self.clone() }
    }

    pub(super) async fn announce(&self, at: Timestamp) -> BlobKey {
        let blob = BlobKey::generate();
        self.alive(blob, at).await;
        blob
    }

    pub(super) async fn alive(&self, blob: BlobKey, at: Timestamp) {
        let intent = UploadIntent { blob, alive_at: at, asset: None };
        self.index.begin_upload(&self.tenant, intent).await.expect("an announcement");
    }

    pub(super) async fn publish(&self, asset: NewAsset, at: Timestamp) -> Published {
        self.index.publish(&self.tenant, asset, &self.terms, at).await.expect("an answer to a publication")
    }

    /// An announced asset, ready to be published.
    pub(super) async fn staged(&self, run: Option<&str>, bytes: &str, at: Timestamp) -> NewAsset {
        let blob = self.announce(at).await;
        new_asset(&self.tenant, run, bytes, blob, at)
    }

    /// Uploads these bytes, as a whole.
    pub(super) async fn upload(&self, run: Option<&str>, bytes: &str, at: Timestamp) -> AssetView {
        let asset = self.staged(run, bytes, at).await;
        stored(self.publish(asset, at).await)
    }

    /// The same, kept on the sender's wish until that time.
    pub(super) async fn upload_asking(
        &self,
        run: Option<&str>,
        bytes: &str,
        ask: Timestamp,
        at: Timestamp,
    ) -> AssetView {
        let mut asset = self.staged(run, bytes, at).await;
        asset.record.asked_until = Some(ask);
        stored(self.publish(asset, at).await)
    }

    pub(super) async fn update(&self, update: RunUpdate, at: Timestamp) -> Result<RunView, RunConflict> {
        let audit = event(AuditKind::Floor, at).run(&update.id);
        self.try_update(&update, audit, at).await.map(|updated| updated.view)
    }

    async fn try_update(&self, update: &RunUpdate, audit: AuditEvent, at: Timestamp) -> Result<Updated, RunConflict> {
        self.index.update_run(&self.tenant, update, &self.terms, audit, at).await.expect("an answer to an update")
    }

    /// Makes the one run a fork of the other; says what it took up.
    pub(super) async fn fork(&self, run: &str, of: &str, at: Timestamp) -> Result<Vec<AssetId>, RunConflict> {
        let update = RunUpdate { fork_of: Some(run_id(of)), ..put(run) };
        let audit = event(AuditKind::Floor, at).run(&update.id);
        self.try_update(&update, audit, at).await.map(|updated| updated.inherited)
    }

    pub(super) async fn place(&self, on: &HoldOn, id: &str, at: Timestamp) -> Placed {
        let hold = Hold {
            id: hold_id(id),
            reason: format!("because of {id}"),
            placed_at: at,
            principal: "auditor".into(),
            number: 0,
        };
        self.index.hold(&self.tenant, on, hold, event(AuditKind::Hold, at)).await.expect("an answer to a hold")
    }

    /// Places a hold on something that is there.
    pub(super) async fn hold(&self, on: &HoldOn, id: &str, at: Timestamp) {
        let placed = self.place(on, id, at).await;
        assert!(matches!(placed, Placed::Done(_)), "{placed:?}");
    }

    pub(super) async fn lift(&self, on: &HoldOn, id: &str, at: Timestamp) -> bool {
        let id = hold_id(id);
        let audit = event(AuditKind::Lift, at);
        self.index.lift(&self.tenant, on, &id, &self.terms, audit).await.expect("an answer to a lift").is_some()
    }

    pub(super) async fn erase(&self, id: AssetId, at: Timestamp) -> Erasure {
        let audit = event(AuditKind::Erase, at).asset(id);
        self.index.erase(&self.tenant, id, &self.terms, audit, at).await.expect("an answer to an erasure")
    }

    pub(super) async fn erase_run(&self, run: &str, at: Timestamp) -> RunErasure {
        let audit = event(AuditKind::Erase, at).run(&run_id(run));
        self.index.erase_run(&self.tenant, &run_id(run), audit, at).await.expect("an answer to an erasure")
    }

    /// Registers the run, or moves its end.
    pub(super) async fn run_until(&self, run: &str, end: Timestamp, at: Timestamp) {
        self.update(until(run, end), at).await.expect("a later end");
    }

    pub(super) async fn try_refer(&self, run: &str, assets: &[AssetId], at: Timestamp) -> Referred {
        let (run, audit) = (run_id(run), event(AuditKind::Refer, at).run(&run_id(run)));
        self.index.refer(&self.tenant, &run, assets, &self.terms, audit, at).await.expect("an answer to a reference")
    }

    pub(super) async fn refer(&self, run: &str, assets: &[AssetId], at: Timestamp) {
        let referred = self.try_refer(run, assets, at).await;
        assert!(matches!(referred, Referred::All(_)), "{referred:?}");
    }

    pub(super) async fn delete(&self, id: AssetId, at: Timestamp) -> Deleted {
        let audit = event(AuditKind::Erase, at).asset(id);
        self.index.delete(&self.tenant, id, &self.terms, audit, at).await.expect("an answer to a deletion")
    }

    pub(super) async fn find(&self, id: AssetId) -> Option<AssetRecord> {
        self.index.find(&self.tenant, id).await.expect("a row, or none")
    }

    pub(super) async fn lives(&self, id: AssetId) -> bool {
        self.find(id).await.is_some_and(|record| record.is_live())
    }

    pub(super) async fn view(&self, id: AssetId) -> AssetView {
        let view = self.index.view(&self.tenant, id, &self.terms).await.expect("a view, or none");
        view.expect("the asset has a row")
    }

    /// Settles what is due until nothing is, at most `limit` assets a call.
    pub(super) async fn sweep_by(&self, limit: usize, now: Timestamp) -> Swept {
        let mut swept = Swept::default();
        for _ in 0..10 * MANY {
            let due = self.index.due(now, MANY).await.expect("what is due");
            assert!(due.is_sorted_by_key(|look| look.due), "oldest first: {due:?}");
            let Some(look) = due.into_iter().next() else {
                return swept;
            };
            assert!(look.due <= now, "{look:?} is not due at {now}");
            let settlement = self.index.settle(&look, limit, &self.terms, "sweep", now).await.expect("a settlement");
            let changed = settlement.expired.len() + settlement.erased.len() + settlement.dropped.len();
            assert!(changed <= limit, "{settlement:?}");
            swept.expired.extend(settlement.expired.iter().map(|record| record.id));
            swept.erased.extend(settlement.erased.iter().map(|record| record.id));
            swept.dropped.extend(settlement.dropped);
        }
        unreachable!("there is no end to what is due at {now}")
    }

    /// Settles what is due until nothing is; says what ended, in the order of names.
    pub(super) async fn sweep(&self, now: Timestamp) -> Swept {
        let mut swept = self.sweep_by(MANY, now).await;
        swept.expired.sort();
        swept.erased.sort();
        swept.dropped.sort();
        swept
    }

    /// Removes the bytes of what is doomed, as far as the index can tell.
    pub(super) async fn remove_doomed(&self, now: Timestamp) -> Vec<BlobKey> {
        let doomed = self.doom(now).await;
        for one in &doomed {
            self.index.forget(one).await.expect("a doomed blob is forgotten");
        }
        doomed.into_iter().map(|one| one.blob).collect()
    }

    /// What is doomed at that time, uploads of any age left alone.
    pub(super) async fn doom(&self, now: Timestamp) -> Vec<Doomed> {
        self.index.doom(Timestamp::MIN, MANY, now).await.expect("the doomed")
    }

    pub(super) async fn blobs(&self) -> Vec<BlobRow> {
        self.index.blobs(None, MANY).await.expect("the blobs")
    }

    /// The blob's row.
    pub(super) async fn blob(&self, blob: BlobKey) -> Option<BlobRow> {
        self.blobs().await.into_iter().find(|row| row.tenant == self.tenant && row.blob == blob)
    }

    pub(super) async fn shareable(&self, bytes: &str) -> Option<BlobKey> {
        self.index.blob_of(&self.tenant, &sha256(bytes)).await.expect("a blob, or none")
    }

    /// The tenant's whole log, sealed.
    pub(super) async fn log(&self) -> Vec<AuditRow> {
        while self.index.seal_audit(MANY).await.expect("a sealed log") > 0 {}
        self.index.audit_rows(&self.tenant, 0, MANY).await.expect("the log")
    }
}

/// The asset of a publication that made one.
pub(super) fn stored(published: Published) -> AssetView {
    match published {
        Published::Stored(view) | Published::Shared(view) => Some(view),
        Published::ClaimLost | Published::UploadLost | Published::RunErased => None,
    }
    .expect("the publication makes an asset")
}
