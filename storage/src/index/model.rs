//! The contract, done the plainest way: lists in memory, read from end to end each time.
//!
//! It shares nothing with the index in `sled` but the trait and the pure functions of `retention`, so that what the two agree on is the
//! contract's and not one program's. It has no queue: what is due is found by computing every floor, which is what a queue of looks
//! has to come to. Nothing is kept when it is dropped.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;

use self::state::State;
use super::{
    Amended, Amendment, AssetIndex, AssetQuery, BlobRow, Claimed, Deleted, Erasure, Look, NewArtifact, NewAsset,
    NewDurable, Placed, Preview, Published, PutArtifact, Referred, Restored, RunErasure, RunQuery, Settlement, Updated,
};
use crate::audit::{AuditEvent, AuditRow};
use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, BlobKey, Digest, HoldId, RunId, TenantId, UploadId};
use crate::quota::{Counted, Quota, Reserved, Usage};
use crate::record::{
    ArtifactRecord, AssetRecord, AssetView, Claim, Doomed, Hold, HoldOn, MintedUrl, Owed, RunRecord, RunView, Taken,
    UploadIntent, UrlView,
};
use crate::resumable::{Cleared, Joining, KeptFor, Lease, Leased, Opened, Part, Resumable};
use crate::retention::{Protector, RunConflict, RunUpdate, Terms, protectors};

mod artifacts;
mod ending;
mod holds;
mod lists;
mod owed;
mod records;
mod restore;
mod resumable;
mod state;
mod urls;
mod usage;

/// An [`AssetIndex`] in memory, for tests.
#[derive(Debug, Default)]
pub struct ModelIndex {
    state: Mutex<State>,
}

impl ModelIndex {
    /// Ends this many artifacts of a run that is over, and nothing else of it: an index that walks runs in pages comes to them last.
    pub(in crate::index) fn end_artifacts(
        &self,
        tenant: &TenantId,
        run: &RunId,
        limit: usize,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Vec<(ArtifactId, u64)> {
        self.state().end_artifacts(tenant, run, limit, terms, principal, now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl AssetIndex for ModelIndex {
    async fn claim(&self, tenant: &TenantId, claim: Claim, now: Timestamp) -> Result<Claimed, StorageError> {
        Ok(self.state().claim(tenant, claim, now))
    }

    async fn renew_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<bool, StorageError> {
        Ok(self.state().renew_claim(tenant, claim))
    }

    async fn release_claim(&self, tenant: &TenantId, claim: &Claim) -> Result<(), StorageError> {
        self.state().release_claim(tenant, claim);
        Ok(())
    }

    async fn begin_upload(&self, tenant: &TenantId, intent: UploadIntent) -> Result<(), StorageError> {
        self.state().begin_upload(tenant, &intent);
        Ok(())
    }

    async fn begin_reserved(
        &self,
        tenant: &TenantId,
        intent: UploadIntent,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        Ok(self.state().begin_reserved(tenant, &intent, bytes, quota))
    }

    async fn reserve(
        &self,
        tenant: &TenantId,
        blob: BlobKey,
        bytes: u64,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        Ok(self.state().reserve(tenant, blob, bytes, quota))
    }

    async fn end_upload(&self, tenant: &TenantId, blob: BlobKey) -> Result<(), StorageError> {
        self.state().end_upload(tenant, blob);
        Ok(())
    }

    async fn blob_of(&self, tenant: &TenantId, sha256: &Digest) -> Result<Option<BlobKey>, StorageError> {
        Ok(self.state().blob_of(tenant, sha256))
    }

    async fn publish(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        Ok(self.state().publish(tenant, asset, terms, now))
    }

    async fn begin_resumable(
        &self,
        tenant: &TenantId,
        upload: Resumable,
        bytes: u64,
        most: u64,
        quota: Quota,
    ) -> Result<Opened, StorageError> {
        Ok(self.state().begin_resumable(tenant, upload, bytes, most, quota))
    }

    async fn resumable(&self, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, StorageError> {
        Ok(self.state().resumable(tenant, id).cloned())
    }

    async fn resumable_parts(
        &self,
        tenant: &TenantId,
        id: UploadId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Part>, StorageError> {
        Ok(self.state().resumable_parts(tenant, id, from, limit))
    }

    async fn lease_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        lease: Lease,
        now: Timestamp,
    ) -> Result<Leased, StorageError> {
        Ok(self.state().lease_resumable(tenant, id, lease, now))
    }

    async fn release_resumable(&self, tenant: &TenantId, id: UploadId, holder: [u8; 16]) -> Result<(), StorageError> {
        self.state().release_resumable(tenant, id, holder);
        Ok(())
    }

    async fn extend_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        bytes: u64,
        length: Option<u64>,
        quota: Quota,
    ) -> Result<Reserved, StorageError> {
        Ok(self.state().extend_resumable(tenant, &upload, bytes, length, quota))
    }

    async fn append_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        part: Part,
        kept: KeptFor,
    ) -> Result<Option<Resumable>, StorageError> {
        Ok(self.state().append_resumable(tenant, &upload, part, kept))
    }

    async fn publish_resumable(
        &self,
        tenant: &TenantId,
        asset: NewAsset,
        upload: Joining,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Published, StorageError> {
        Ok(self.state().publish_resumable(tenant, asset, &upload, terms, now))
    }

    async fn finish_resumable(
        &self,
        tenant: &TenantId,
        upload: Joining,
        asset: AssetId,
        now: Timestamp,
    ) -> Result<bool, StorageError> {
        Ok(self.state().finish_resumable(tenant, &upload, asset, now))
    }

    async fn end_resumable(&self, tenant: &TenantId, upload: Joining, now: Timestamp) -> Result<bool, StorageError> {
        Ok(self.state().end_resumable(tenant, &upload, now))
    }

    async fn due_resumables(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, UploadId)>, StorageError> {
        Ok(self.state().due_resumables(now, limit))
    }

    async fn clear_resumable(
        &self,
        tenant: &TenantId,
        id: UploadId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Cleared, StorageError> {
        Ok(self.state().clear_resumable(tenant, id, limit, now))
    }

    async fn find(&self, tenant: &TenantId, id: AssetId) -> Result<Option<AssetRecord>, StorageError> {
        Ok(self.state().asset(tenant, id).cloned())
    }

    async fn view(&self, tenant: &TenantId, id: AssetId, terms: &Terms) -> Result<Option<AssetView>, StorageError> {
        let state = self.state();
        Ok(state.asset(tenant, id).map(|record| state.view(record, terms)))
    }

    async fn protectors(
        &self,
        tenant: &TenantId,
        id: AssetId,
        limit: usize,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<Vec<Protector>, StorageError> {
        let state = self.state();
        let Some(record) = state.asset(tenant, id) else {
            return Ok(Vec::new());
        };
        let (own, stakes) = state.keepers(record);
        let runs: Vec<_> = state.runs_of(record).into_iter().map(|run| run.id.clone()).zip(stakes).collect();
        Ok(protectors(own, state.holds_for(record), &runs, limit, terms, now))
    }

    async fn page(&self, tenant: &TenantId, query: &AssetQuery, terms: &Terms) -> Result<Vec<AssetView>, StorageError> {
        Ok(self.state().page(tenant, query, terms))
    }

    async fn amend(
        &self,
        tenant: &TenantId,
        id: AssetId,
        change: Amendment,
        audit: AuditEvent,
    ) -> Result<Amended, StorageError> {
        Ok(self.state().amend(tenant, id, &change, audit))
    }

    async fn raise_generation(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError> {
        Ok(self.state().raise_generation(tenant, id, durable, audit))
    }

    async fn raise_generations(
        &self,
        tenant: &TenantId,
        ids: &[AssetId],
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Vec<AssetRecord>, StorageError> {
        Ok(self.state().raise_generations(tenant, ids, &durable, &audit))
    }

    async fn raise_epoch(&self, tenant: &TenantId, audit: AuditEvent) -> Result<u32, StorageError> {
        Ok(self.state().raise_epoch(tenant, audit))
    }

    async fn count_assets(&self, tenant: &TenantId) -> Result<u64, StorageError> {
        Ok(self.state().assets.iter().filter(|record| record.tenant == *tenant).count() as u64)
    }

    async fn resign(
        &self,
        tenant: &TenantId,
        id: AssetId,
        durable: NewDurable,
        audit: AuditEvent,
    ) -> Result<Option<AssetRecord>, StorageError> {
        Ok(self.state().resign(tenant, id, durable, audit))
    }

    async fn mint(&self, tenant: &TenantId, urls: Vec<MintedUrl>, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        self.state().mint(tenant, urls, events);
        Ok(())
    }

    async fn url(&self, tenant: &TenantId, url_id: &str) -> Result<Option<UrlView>, StorageError> {
        Ok(self.state().url(tenant, url_id))
    }

    async fn urls_with(
        &self,
        tenant: &TenantId,
        label: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<UrlView>, StorageError> {
        Ok(self.state().urls_with(tenant, label, after, limit))
    }

    async fn take_use(&self, tenant: &TenantId, url_id: &str) -> Result<Taken, StorageError> {
        Ok(self.state().take_use(tenant, url_id))
    }

    async fn revoke_urls(
        &self,
        tenant: &TenantId,
        url_ids: &[String],
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Vec<MintedUrl>, StorageError> {
        Ok(self.state().revoke_urls(tenant, url_ids, &audit, now))
    }

    async fn revoke_url(
        &self,
        tenant: &TenantId,
        url_id: &str,
        keep_until: Timestamp,
        audit: AuditEvent,
    ) -> Result<(), StorageError> {
        self.state().revoke_url(tenant, url_id, keep_until, audit);
        Ok(())
    }

    async fn is_revoked(&self, tenant: &TenantId, url_id: &str) -> Result<bool, StorageError> {
        Ok(self.state().is_revoked(tenant, url_id))
    }

    async fn update_run(
        &self,
        tenant: &TenantId,
        update: &RunUpdate,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Result<Updated, RunConflict>, StorageError> {
        Ok(self.state().update_run(tenant, update, terms, audit, now))
    }

    async fn run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunView>, StorageError> {
        let state = self.state();
        Ok(state.run(tenant, id).map(|record| state.run_view(tenant, record)))
    }

    async fn find_run(&self, tenant: &TenantId, id: &RunId) -> Result<Option<RunRecord>, StorageError> {
        Ok(self.state().run(tenant, id).cloned())
    }

    async fn runs(&self, tenant: &TenantId, query: &RunQuery) -> Result<Vec<RunView>, StorageError> {
        Ok(self.state().runs(tenant, query))
    }

    async fn refer(
        &self,
        tenant: &TenantId,
        run: &RunId,
        assets: &[AssetId],
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Referred, StorageError> {
        Ok(self.state().refer(tenant, run, assets, terms, audit, now))
    }

    async fn put_artifact(
        &self,
        tenant: &TenantId,
        artifact: &NewArtifact,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<PutArtifact, StorageError> {
        Ok(self.state().put_artifact(tenant, artifact, terms, audit, now))
    }

    async fn artifact(
        &self,
        tenant: &TenantId,
        run: &RunId,
        id: &ArtifactId,
    ) -> Result<Option<ArtifactRecord>, StorageError> {
        Ok(self.state().artifact(tenant, run, id).cloned())
    }

    async fn artifact_naming(
        &self,
        tenant: &TenantId,
        asset: AssetId,
    ) -> Result<Option<(RunId, ArtifactId)>, StorageError> {
        Ok(self.state().artifact_naming(tenant, asset))
    }

    async fn hold(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        hold: Hold,
        audit: AuditEvent,
    ) -> Result<Placed, StorageError> {
        Ok(self.state().hold(tenant, on, hold, audit))
    }

    async fn lift(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        id: &HoldId,
        terms: &Terms,
        audit: AuditEvent,
    ) -> Result<Option<u64>, StorageError> {
        Ok(self.state().lift(tenant, on, id, terms, audit))
    }

    async fn holds(
        &self,
        tenant: &TenantId,
        on: &HoldOn,
        after: Option<&HoldId>,
        limit: usize,
    ) -> Result<Vec<Hold>, StorageError> {
        let mut holds = self.state().holds_on(tenant, on);
        holds.retain(|hold| after.is_none_or(|after| hold.id > *after));
        holds.truncate(limit);
        Ok(holds)
    }

    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Look>, StorageError> {
        Ok(self.state().due(now, limit))
    }

    async fn settle(
        &self,
        look: &Look,
        limit: usize,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Result<Settlement, StorageError> {
        Ok(self.state().settle(look, limit, terms, principal, now))
    }

    async fn expire_if_due(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        principal: &str,
        now: Timestamp,
    ) -> Result<Option<AssetRecord>, StorageError> {
        Ok(self.state().expire_if_due(tenant, id, terms, principal, now))
    }

    async fn delete(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Deleted, StorageError> {
        Ok(self.state().delete(tenant, id, terms, audit, now))
    }

    async fn erase(
        &self,
        tenant: &TenantId,
        id: AssetId,
        terms: &Terms,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<Erasure, StorageError> {
        let mut state = self.state();
        state.terms = Some(*terms);
        Ok(state.erase(tenant, id, audit, now))
    }

    async fn same_bytes(
        &self,
        tenant: &TenantId,
        id: AssetId,
        after: Option<AssetId>,
        limit: usize,
    ) -> Result<Vec<AssetId>, StorageError> {
        Ok(self.state().same_bytes(tenant, id, after, limit))
    }

    async fn erase_run(
        &self,
        tenant: &TenantId,
        run: &RunId,
        audit: AuditEvent,
        now: Timestamp,
    ) -> Result<RunErasure, StorageError> {
        Ok(self.state().erase_run(tenant, run, audit, now))
    }

    async fn doom(&self, uploads_before: Timestamp, limit: usize, now: Timestamp) -> Result<Vec<Doomed>, StorageError> {
        Ok(self.state().doom(uploads_before, limit, now))
    }

    async fn doom_one(&self, tenant: &TenantId, blob: BlobKey, now: Timestamp) -> Result<bool, StorageError> {
        Ok(self.state().doom_one(tenant, blob, now))
    }

    async fn forget(&self, doomed: &Doomed) -> Result<(), StorageError> {
        self.state().forget(doomed);
        Ok(())
    }

    async fn tidy(&self, limit: usize, now: Timestamp) -> Result<usize, StorageError> {
        Ok(self.state().tidy(limit, now))
    }

    async fn owed(
        &self,
        after: Option<(TenantId, Digest)>,
        limit: usize,
    ) -> Result<Vec<(TenantId, Owed)>, StorageError> {
        Ok(self.state().owed(after.as_ref(), limit))
    }

    async fn paid(&self, written: Vec<(TenantId, Digest)>) -> Result<(), StorageError> {
        self.state().paid(&written);
        Ok(())
    }

    async fn record(&self, tenant: &TenantId, events: Vec<AuditEvent>) -> Result<(), StorageError> {
        let mut state = self.state();
        events.into_iter().for_each(|event| state.audit(tenant, event));
        Ok(())
    }

    async fn seal_audit(&self, limit: usize) -> Result<usize, StorageError> {
        Ok(self.state().seal_audit(limit))
    }

    async fn audit_rows(&self, tenant: &TenantId, since: u64, limit: usize) -> Result<Vec<AuditRow>, StorageError> {
        Ok(self.state().audit_rows(tenant, since, limit))
    }

    async fn usage(&self, tenant: &TenantId) -> Result<Usage, StorageError> {
        Ok(self.state().usage(tenant))
    }

    async fn counted_usage(&self, tenant: &TenantId) -> Result<Counted, StorageError> {
        let usage = self.state().usage(tenant);
        Ok(Counted { kept: usage, counted: usage })
    }

    async fn blobs(&self, after: Option<(TenantId, BlobKey)>, limit: usize) -> Result<Vec<BlobRow>, StorageError> {
        Ok(self.state().blobs(after.as_ref(), limit))
    }

    async fn assets(&self, after: Option<(TenantId, AssetId)>, limit: usize) -> Result<Vec<AssetRecord>, StorageError> {
        Ok(self.state().assets(after.as_ref(), limit))
    }

    async fn count_due(&self, limit: usize, terms: &Terms, now: Timestamp) -> Result<usize, StorageError> {
        Ok(self.state().count_due(limit, terms, now))
    }

    async fn preview(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        after: Option<AssetId>,
        limit: usize,
        terms: &Terms,
    ) -> Result<Preview, StorageError> {
        Ok(self.state().preview(tenant, at, after, limit, terms))
    }

    async fn restore(
        &self,
        tenant: &TenantId,
        what: Vec<Restored>,
        terms: &Terms,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        let mut state = self.state();
        what.into_iter().for_each(|one| state.restore(tenant, one, terms, now));
        Ok(())
    }

    async fn ready(&self) -> Result<(), StorageError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::contract;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn the_model_keeps_the_contract() {
        contract::run_all(|| async { Arc::new(ModelIndex::default()) as Arc<dyn AssetIndex> }).await;
    }
}
