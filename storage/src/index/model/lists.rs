//! The model's log, and its lists across tenants.

use super::state::{Blob, Life, State};
use crate::audit::{AuditEvent, AuditRow};
use crate::ids::{AssetId, BlobKey, TenantId};
use crate::index::BlobRow;
use crate::record::AssetRecord;

impl State {
    pub(super) fn audit(&mut self, tenant: &TenantId, event: AuditEvent) {
        self.waiting.push((tenant.clone(), event));
    }

    pub(super) fn seal_audit(&mut self, limit: usize) -> usize {
        let limit = limit.min(self.waiting.len());
        let waiting: Vec<_> = self.waiting.drain(..limit).collect();
        for (tenant, event) in waiting {
            let last = self.sealed.iter().rev().find(|(owner, _)| *owner == tenant);
            let (seq, previous) = last.map_or((1, AuditRow::GENESIS), |(_, row)| (row.seq + 1, row.hash));
            let row = AuditRow::seal(&tenant, seq, event, previous);
            self.sealed.push((tenant, row));
        }
        limit
    }

    pub(super) fn audit_rows(&self, tenant: &TenantId, since: u64, limit: usize) -> Vec<AuditRow> {
        let own = self.sealed.iter().filter(|(owner, row)| owner == tenant && row.seq > since);
        own.take(limit).map(|(_, row)| row.clone()).collect()
    }

    pub(super) fn blobs(&self, after: Option<&(TenantId, BlobKey)>, limit: usize) -> Vec<BlobRow> {
        let mut rows: Vec<BlobRow> = self
            .blobs
            .iter()
            .map(|blob| BlobRow {
                tenant: blob.tenant.clone(),
                blob: blob.key,
                bytes: blob.bytes,
                holders: self.holders(blob),
                doomed: matches!(blob.life, Life::Copy(_) | Life::Doomed),
            })
            .filter(|row| after.is_none_or(|after| (&row.tenant, row.blob) > (&after.0, after.1)))
            .collect();
        rows.sort_by(|a, b| (&a.tenant, a.blob).cmp(&(&b.tenant, b.blob)));
        rows.truncate(limit);
        rows
    }

    fn holders(&self, blob: &Blob) -> u64 {
        if blob.life == Life::Part(None) {
            return 1;
        }
        let holds = |record: &&AssetRecord| record.tenant == blob.tenant && record.blob == blob.key && record.is_live();
        self.assets.iter().filter(holds).count() as u64
    }

    pub(super) fn assets(&self, after: Option<&(TenantId, AssetId)>, limit: usize) -> Vec<AssetRecord> {
        let mut found: Vec<&AssetRecord> = self.assets.iter().collect();
        found.retain(|one| after.is_none_or(|after| (&one.tenant, one.id) > (&after.0, after.1)));
        found.sort_by(|a, b| (&a.tenant, a.id).cmp(&(&b.tenant, b.id)));
        found.into_iter().take(limit).cloned().collect()
    }
}
