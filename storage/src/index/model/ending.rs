//! How the model ends things: every asset is looked at, every time.

use jiff::Timestamp;

use super::state::{Blob, Life, State};
use crate::audit::AuditEvent;
use crate::ids::{AssetId, BlobKey, TenantId};
use crate::index::{Deleted, Look, LookAt, Settlement, expiry_event};
use crate::record::{AssetRecord, AssetState, Doomed};
use crate::retention::{Terms, Until, after, tombstone};

impl State {
    /// Until when this row stays as it is: a live one until its floor, a dead one until its tombstone goes.
    fn until(&self, record: &AssetRecord, terms: &Terms) -> Until {
        let died_at = match record.state {
            AssetState::Live => return self.floor(record, terms).until,
            AssetState::Expired { at } | AssetState::Erased { at } => at,
        };
        tombstone(died_at, self.runs_of(record).into_iter().map(|run| run.end), terms)
    }

    pub(super) fn due(&self, now: Timestamp, limit: usize) -> Vec<Look> {
        let Some(terms) = &self.terms else {
            return Vec::new();
        };
        let look = |record: &AssetRecord| {
            let until = self.until(record, terms);
            let due = until.instant().filter(|_| until.is_past(now))?;
            Some(Look { tenant: record.tenant.clone(), at: LookAt::Asset(record.id), due })
        };
        let mut looks: Vec<Look> = self.assets.iter().filter_map(look).collect();
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
            let past = self.until(&record, terms).is_past(now);
            let changed = settlement.expired.len() + settlement.dropped.len();
            match (record.is_live(), past) {
                (_, true) if changed >= limit.max(1) => settlement.done = false,
                (true, true) => settlement.expired.push(self.expire(&record, terms, principal, now)),
                (true, false) => settlement.kept += 1,
                (false, true) => {
                    self.references.retain(|one| one.tenant != look.tenant || one.asset != id);
                    self.assets.retain(|one| one.tenant != look.tenant || one.id != id);
                    settlement.dropped.push(id);
                }
                (false, false) => {}
            }
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
        if record.is_live() && self.until(&record, terms).is_past(now) {
            return Some(self.expire(&record, terms, principal, now));
        }
        Some(record)
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
        if !record.is_live() {
            if let Some(Blob { life: Life::Shareable(_, Some(remove_at)), .. }) = self.blob_mut(tenant, record.blob) {
                *remove_at = now.min(*remove_at);
            }
            return Deleted::WasGone(record);
        }
        if self.floor(&record, terms).protected.is_some_and(|until| !until.is_past(now)) {
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
        let held =
            self.assets.iter().any(|one| one.tenant == record.tenant && one.blob == record.blob && one.is_live());
        if let Some(Blob { life: Life::Shareable(_, condemned), .. }) = self.blob_mut(&record.tenant, record.blob)
            && !held
        {
            *condemned = Some(remove_at);
        }
        self.audit(&record.tenant, audit);
        ended
    }

    pub(super) fn doom(&mut self, uploads_before: Timestamp, limit: usize, now: Timestamp) -> Vec<Doomed> {
        let name = |blob: &Blob| Doomed { tenant: blob.tenant.clone(), blob: blob.key, asset: blob.asset };
        let earlier: Vec<Doomed> = self.blobs.iter().filter(|blob| blob.life == Life::Doomed).map(name).collect();
        let mut doomed = Vec::new();
        for blob in &mut self.blobs {
            let due = match blob.life {
                Life::Uploading(alive_at) => alive_at < uploads_before,
                Life::Shareable(_, Some(remove_at)) | Life::Copy(remove_at) => remove_at <= now,
                Life::Shareable(_, None) | Life::Doomed => false,
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

    pub(super) fn doom_one(&mut self, tenant: &TenantId, key: BlobKey, now: Timestamp) -> bool {
        let Some(blob) = self.blob_mut(tenant, key) else {
            return false;
        };
        if matches!(blob.life, Life::Shareable(_, Some(remove_at)) if remove_at <= now) {
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
        let before = self.claims.len() + self.revoked.len();
        let mut left = limit;
        let mut keep = |until: Timestamp| {
            let drops = until <= now && left > 0;
            left -= usize::from(drops);
            !drops
        };
        self.claims.retain(|kept| keep(kept.until()));
        self.revoked.retain(|(_, _, until)| keep(*until));
        before - self.claims.len() - self.revoked.len()
    }

    pub(super) fn count_due(&self, limit: usize, terms: &Terms, now: Timestamp) -> usize {
        let due = |record: &&AssetRecord| record.is_live() && self.floor(record, terms).until.is_past(now);
        self.assets.iter().filter(due).take(limit).count()
    }
}
