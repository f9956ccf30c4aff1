//! What the model counts: everything, every time.

use super::state::{Life, State};
use crate::ids::{BlobKey, TenantId};
use crate::quota::{Quota, Reserved, Usage};
use crate::record::UploadIntent;

impl State {
    pub(super) fn usage(&self, tenant: &TenantId) -> Usage {
        let live = self.assets.iter().filter(|record| record.tenant == *tenant && record.is_live());
        let counts = |owner: &TenantId, key| self.is_uploading(owner, key) || self.is_open_in_parts(owner, key);
        let reserved = self.reserved.iter().filter(|(owner, key, _)| owner == tenant && counts(owner, *key));
        Usage {
            bytes: live.clone().map(|record| record.bytes).sum(),
            assets: live.count() as u64,
            reserved_bytes: reserved.clone().map(|(.., bytes)| bytes).sum(),
            reserved_assets: reserved.count() as u64,
        }
    }

    pub(super) fn begin_reserved(
        &mut self,
        tenant: &TenantId,
        intent: &UploadIntent,
        bytes: u64,
        quota: Quota,
    ) -> Reserved {
        let is_new = !self.blobs.iter().any(|blob| blob.tenant == *tenant && blob.key == intent.blob);
        if !is_new && !self.is_uploading(tenant, intent.blob) {
            return Reserved::UploadLost;
        }
        let before = if is_new { None } else { self.reservation(tenant, intent.blob) };
        if !quota.allows(&self.usage(tenant), before, bytes) {
            return Reserved::OverQuota;
        }
        self.begin_upload(tenant, intent);
        self.put_reservation(tenant, intent.blob, bytes.max(before.unwrap_or(0)));
        Reserved::Done
    }

    pub(super) fn reserve(&mut self, tenant: &TenantId, key: BlobKey, bytes: u64, quota: Quota) -> Reserved {
        if !self.is_uploading(tenant, key) {
            return Reserved::UploadLost;
        }
        let before = self.reservation(tenant, key);
        if !quota.allows(&self.usage(tenant), before, bytes) {
            return Reserved::OverQuota;
        }
        self.put_reservation(tenant, key, bytes.max(before.unwrap_or(0)));
        Reserved::Done
    }

    fn is_uploading(&self, tenant: &TenantId, key: BlobKey) -> bool {
        let own = |blob: &&super::state::Blob| blob.tenant == *tenant && blob.key == key;
        self.blobs.iter().find(own).is_some_and(|blob| matches!(blob.life, Life::Uploading(_)))
    }

    pub(super) fn reservation(&self, tenant: &TenantId, key: BlobKey) -> Option<u64> {
        self.reserved.iter().find(|(owner, blob, _)| owner == tenant && *blob == key).map(|(.., bytes)| *bytes)
    }

    pub(super) fn put_reservation(&mut self, tenant: &TenantId, key: BlobKey, bytes: u64) {
        self.reserved.retain(|(owner, blob, _)| owner != tenant || *blob != key);
        self.reserved.push((tenant.clone(), key, bytes));
    }
}
