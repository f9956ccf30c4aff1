//! How the model ends things: every asset is looked at, every time.

use jiff::Timestamp;

use super::state::{Blob, Life, Reference, State};
use crate::audit::AuditEvent;
use crate::ids::{AssetId, BlobKey, TenantId};
use crate::index::{Deleted, Erasure, Look, LookAt, Preview, Settlement, erasure_event, expiry_event};
use crate::record::{AssetRecord, AssetState, Doomed, Owed};
use crate::retention::{HOLD_RECHECK, Next, Terms, after, floor, next};

impl State {
    fn next(&self, record: &AssetRecord, terms: &Terms) -> Next {
        let (own, stakes) = self.keepers(record);
        next(&record.state, own, &stakes, terms)
    }

    pub(super) fn due(&self, now: Timestamp, limit: usize) -> Vec<Look> {
        let Some(terms) = &self.terms else {
            return Vec::new();
        };
        let look = |record: &AssetRecord| {
            let until = self.next(record, terms).until();
            let due = until.instant().filter(|_| until.is_past(now))?;
            Some(Look { tenant: record.tenant.clone(), at: LookAt::Asset(record.id), due })
        };
        let mut looks: Vec<Look> = self.assets.iter().filter_map(look).collect();
        looks.extend(self.artifact_looks(terms, now));
        looks.sort_by_key(|look| look.due);
        looks.truncate(limit);
        looks
    }

    pub(super) fn settle(
        &mut self,
        look: &Look,
        limit: usize,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Settlement {
        self.terms = Some(*terms);
        let seen: Vec<AssetId> = match &look.at {
            LookAt::Asset(id) => vec![*id],
            LookAt::Run(run) => {
                let of_run = self.references.iter().filter(|one| one.tenant == look.tenant && one.run == *run);
                of_run.map(|one| one.asset).collect()
            }
        };
        let mut settlement = Settlement { done: true, ..Settlement::default() };
        for id in seen {
            let Some(record) = self.asset(&look.tenant, id).cloned() else {
                continue;
            };
            let next = self.next(&record, terms);
            if !next.until().is_past(now) {
                settlement.kept += usize::from(record.is_live());
                continue;
            }
            let changed = settlement.expired.len() + settlement.erased.len() + settlement.dropped.len();
            if changed >= limit.max(1) {
                settlement.done = false;
                continue;
            }
            match next {
                Next::Expire(_) => settlement.expired.push(self.expire(&record, terms, principal, now)),
                Next::Erase(_) => {
                    let audit = erasure_event(&record, principal, now);
                    settlement.erased.push(self.wipe(&record, audit, now));
                }
                Next::Drop(_) => {
                    let gone = |one: &Reference| one.tenant == look.tenant && one.asset == id;
                    let mut runs: Vec<_> = self.references.extract_if(.., |one| gone(one)).map(|one| one.run).collect();
                    runs.sort();
                    for run in runs {
                        self.owe(&look.tenant, Owed::Unquoted { run: run.clone(), id });
                        settlement.unquoted.push((run, id));
                    }
                    self.assets.retain(|one| one.tenant != look.tenant || one.id != id);
                    self.owe(&look.tenant, Owed::Dropped { id });
                    settlement.dropped.push(id);
                }
            }
        }
        if let (true, LookAt::Run(run)) = (settlement.done, &look.at) {
            let limit = limit.max(1);
            settlement.artifacts = self.end_artifacts(&look.tenant, run, limit, terms, principal, now);
            settlement.done = settlement.artifacts.len() < limit;
        }
        settlement
    }

    pub(super) fn expire_if_due(
        &mut self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Option<AssetRecord> {
        self.terms = Some(*terms);
        let record = self.asset(tenant, id).cloned()?;
        let next = self.next(&record, terms);
        if !record.is_live() || !next.until().is_past(now) {
            return Some(record);
        }
        Some(match next {
            Next::Erase(_) => {
                let audit = erasure_event(&record, principal, now);
                self.wipe(&record, audit, now)
            }
            _ => self.expire(&record, terms, principal, now),
        })
    }

    pub(super) fn delete(
        &mut self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Deleted {
        self.terms = Some(*terms);
        let Some(record) = self.asset(tenant, id).cloned() else {
            return Deleted::Unknown;
        };
        if !matches!(record.state, AssetState::Erased { .. }) && self.is_held(&record) {
            return Deleted::Held(self.holds_for(&record));
        }
        if !record.is_live() {
            if let Some(Blob { life: Life::Shareable(_, Some(remove_at)), .. }) = self.blob_mut(tenant, record.blob) {
                *remove_at = now.min(*remove_at);
            }
            return Deleted::WasGone(record);
        }
        let (own, stakes) = self.keepers(&record);
        if floor(own, &stakes, terms).protected.is_some_and(|until| !until.is_past(now)) {
            return Deleted::Protected(self.view(&record, terms));
        }
        Deleted::Gone(self.end(&record, now, audit, now))
    }

    fn expire(&mut self, record: &AssetRecord, terms: &Terms, principal: &str, now: Timestamp) -> AssetRecord {
        let audit = expiry_event(record, principal, now);
        self.end(record, after(now, terms.tombstone_bytes), audit, now)
    }

    fn end(&mut self, record: &AssetRecord, remove_at: Timestamp, audit: AuditEvent, now: Timestamp) -> AssetRecord {
        let ended =
            AssetRecord { state: AssetState::Expired { at: now }, revision: record.revision + 1, ..record.clone() };
        if let Some(row) = self.asset_mut(&record.tenant, record.id) {
            *row = ended.clone();
        }
        let held = self.is_held_by_live(&record.tenant, record.blob);
        if let Some(Blob { life: Life::Shareable(_, condemned), .. }) = self.blob_mut(&record.tenant, record.blob)
            && !held
        {
            *condemned = Some(remove_at);
        }
        self.audit(&record.tenant, audit);
        self.owe(&record.tenant, Owed::asset(&ended));
        ended
    }

    pub(super) fn erase(&mut self, tenant: &TenantId, id: AssetId, audit: AuditEvent, now: Timestamp) -> Erasure {
        let Some(record) = self.asset(tenant, id).cloned() else {
            return Erasure::Unknown;
        };
        if matches!(record.state, AssetState::Erased { .. }) {
            return Erasure::Done(Box::new(record));
        }
        if self.is_held(&record) {
            return Erasure::Held(self.holds_for(&record));
        }
        Erasure::Done(Box::new(self.wipe(&record, audit, now)))
    }

    /// Erases an asset that is not yet.
    fn wipe(&mut self, record: &AssetRecord, audit: AuditEvent, now: Timestamp) -> AssetRecord {
        let tenant = &record.tenant;
        let others = self.same_bytes(tenant, record.id, None, AssetState::SAME_BYTES);
        if let Some(row) = self.asset_mut(tenant, record.id) {
            *row = record.erased(now, others.clone(), false);
        }
        let needed = self.is_needed(tenant, record.blob);
        if let Some(blob) = self.blob_mut(tenant, record.blob)
            && matches!(blob.life, Life::Shareable(..))
            && !needed
        {
            blob.life = Life::Doomed;
        }
        let live = self.is_held_by_live(tenant, record.blob);
        if let Some(Blob { life: Life::Shareable(_, condemned), .. }) = self.blob_mut(tenant, record.blob)
            && !live
        {
            *condemned = Some(condemned.map_or(now, |earlier| earlier.min(now)));
        }
        self.claims.retain(|kept| !kept.answers_for(tenant, record.id));
        let erased = record.erased(now, others, !needed);
        if let Some(row) = self.asset_mut(tenant, record.id) {
            *row = erased.clone();
        }
        self.audit(tenant, audit);
        self.owe(tenant, Owed::asset(&erased));
        erased
    }

    fn is_held_by_live(&self, tenant: &TenantId, blob: BlobKey) -> bool {
        self.assets.iter().any(|one| one.tenant == *tenant && one.blob == blob && one.is_live())
    }

    /// Whether a live asset holds the blob, or a hold keeps it for a dead one.
    fn is_needed(&self, tenant: &TenantId, blob: BlobKey) -> bool {
        let needs = |one: &AssetRecord| match one.state {
            AssetState::Live => true,
            AssetState::Expired { .. } => self.is_held(one),
            AssetState::Erased { .. } => false,
        };
        self.assets.iter().any(|one| one.tenant == *tenant && one.blob == blob && needs(one))
    }

    pub(super) fn doom(&mut self, uploads_before: Timestamp, limit: usize, now: Timestamp) -> Vec<Doomed> {
        let name = |blob: &Blob| Doomed { tenant: blob.tenant.clone(), blob: blob.key, asset: blob.asset };
        let earlier: Vec<Doomed> = self.blobs.iter().filter(|blob| blob.life == Life::Doomed).map(name).collect();
        let mut doomed = Vec::new();
        self.put_off_what_is_held(limit, now);
        for blob in &mut self.blobs {
            let due = match blob.life {
                Life::Uploading(alive_at) => alive_at < uploads_before,
                Life::Shareable(_, Some(remove_at)) | Life::Copy(remove_at) | Life::Part(Some(remove_at)) => {
                    remove_at <= now
                }
                Life::Shareable(_, None) | Life::Part(None) | Life::Doomed => false,
            };
            if due && doomed.len() < limit {
                blob.life = Life::Doomed;
                doomed.push(name(blob));
            }
        }
        doomed.extend(earlier);
        doomed.truncate(limit);
        doomed
    }

    fn put_off_what_is_held(&mut self, limit: usize, now: Timestamp) {
        let due = |blob: &&Blob| matches!(blob.life, Life::Shareable(_, Some(remove_at)) if remove_at <= now);
        let kept = self.blobs.iter().filter(due).filter(|blob| self.is_needed(&blob.tenant, blob.key));
        let kept: Vec<(TenantId, BlobKey)> = kept.take(limit).map(|blob| (blob.tenant.clone(), blob.key)).collect();
        for (tenant, key) in kept {
            if let Some(Blob { life: Life::Shareable(_, condemned), .. }) = self.blob_mut(&tenant, key) {
                *condemned = Some(after(now, HOLD_RECHECK));
            }
        }
    }

    pub(super) fn doom_one(&mut self, tenant: &TenantId, key: BlobKey, now: Timestamp) -> bool {
        let needed = self.is_needed(tenant, key);
        let Some(blob) = self.blob_mut(tenant, key) else {
            return false;
        };
        let condemned = |life| match life {
            Life::Shareable(_, remove_at) | Life::Part(remove_at) => remove_at,
            _ => None,
        };
        if !needed && condemned(blob.life).is_some_and(|remove_at| remove_at <= now) {
            blob.life = Life::Doomed;
        }
        blob.life == Life::Doomed
    }

    pub(super) fn forget(&mut self, doomed: &Doomed) {
        let gone = |key: BlobKey, blob: &Blob| {
            blob.tenant == doomed.tenant && blob.key == key && matches!(blob.life, Life::Doomed | Life::Copy(_))
        };
        self.blobs.retain(|blob| !gone(doomed.blob, blob));
    }

    pub(super) fn tidy(&mut self, limit: usize, now: Timestamp) -> usize {
        let count = |state: &Self| state.claims.len() + state.revoked.len() + state.urls.len();
        let before = count(self);
        let mut left = limit;
        let mut keep = |until: Timestamp| {
            let drops = until <= now && left > 0;
            left -= usize::from(drops);
            !drops
        };
        self.claims.retain(|kept| keep(kept.until()));
        self.revoked.retain(|(_, _, until)| keep(*until));
        self.urls.retain(|(_, url)| keep(url.record.keep_until));
        before - count(self)
    }

    pub(super) fn count_due(&self, limit: usize, terms: &Terms, now: Timestamp) -> usize {
        let due = |record: &&AssetRecord| record.is_live() && self.next(record, terms).until().is_past(now);
        self.assets.iter().filter(due).take(limit).count()
    }

    pub(super) fn preview(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        behind: Option<AssetId>,
        limit: usize,
        terms: &Terms,
    ) -> Preview {
        let due = |record: &&AssetRecord| {
            record.tenant == *tenant && record.is_live() && self.next(record, terms).until().is_past(at)
        };
        let mut found: Vec<&AssetRecord> = self.assets.iter().filter(due).collect();
        found.sort_by_key(|record| record.id);
        let page = found.iter().filter(|record| behind.is_none_or(|behind| record.id > behind)).take(limit);
        Preview {
            assets: page.map(|record| self.view(record, terms)).collect(),
            count: found.len() as u64,
            bytes: found.iter().map(|record| record.bytes).sum(),
        }
    }
}
