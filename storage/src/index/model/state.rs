//! What the model remembers, and how an upload comes into it.

use jiff::Timestamp;

use crate::audit::{AuditEvent, AuditRow};
use crate::ids::{AssetId, BlobKey, Digest, RunId, TenantId};
use crate::index::{Claimed, NewAsset, Published};
use crate::record::{ArtifactRecord, AssetRecord, Claim, Hold, HoldOn, MintedUrl, Owed, RunRecord, UploadIntent};
use crate::retention::Terms;

/// Everything, in the order in which it came.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) assets: Vec<AssetRecord>,
    pub(super) runs: Vec<(TenantId, RunRecord)>,
    pub(super) references: Vec<Reference>,
    pub(super) artifacts: Vec<(TenantId, ArtifactRecord)>,
    /// The last number of each run's artifacts.
    pub(super) artifact_numbers: Vec<(TenantId, RunId, u64)>,
    pub(super) holds: Vec<(TenantId, HoldOn, Hold)>,
    pub(super) blobs: Vec<Blob>,
    pub(super) claims: Vec<Kept>,
    pub(super) revoked: Vec<(TenantId, String, Timestamp)>,
    pub(super) urls: Vec<(TenantId, MintedUrl)>,
    /// A tenant for each time that all of its URLs were revoked.
    pub(super) epochs: Vec<TenantId>,
    /// What was reserved for an upload; it counts as long as the upload goes on.
    pub(super) reserved: Vec<(TenantId, BlobKey, u64)>,
    pub(super) owed: Vec<(TenantId, Owed)>,
    /// The last number of each tenant's holds.
    pub(super) hold_numbers: Vec<(TenantId, u64)>,
    pub(super) waiting: Vec<(TenantId, AuditEvent)>,
    pub(super) sealed: Vec<(TenantId, AuditRow)>,
    /// Uploads in parts.
    pub(super) in_parts: Vec<super::resumable::InParts>,
    /// The terms that were last heard of: what is due is asked for without any.
    pub(super) terms: Option<Terms>,
}

/// The run references the asset.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reference {
    pub(super) tenant: TenantId,
    pub(super) run: RunId,
    pub(super) asset: AssetId,
}

/// A blob; its holders are the live assets that name it.
#[derive(Debug, Clone)]
pub(super) struct Blob {
    pub(super) tenant: TenantId,
    pub(super) key: BlobKey,
    pub(super) bytes: Option<u64>,
    pub(super) life: Life,
    /// What the upload was to become, as long as it has not.
    pub(super) asset: Option<AssetId>,
}

/// Where a blob is in its life.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Life {
    Uploading(Timestamp),
    /// Assets hold it, or held it and it goes at that time.
    Shareable(Digest, Option<Timestamp>),
    Copy(Timestamp),
    /// An upload holds it as one of its parts, or did and it goes at that time.
    Part(Option<Timestamp>),
    Doomed,
}

/// An idempotency key, and who has it.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    tenant: TenantId,
    claim: Claim,
    answer: Option<(AssetId, Digest, Timestamp)>,
}

impl Kept {
    /// Whether this is the answer of the request that made the asset.
    pub(super) fn answers_for(&self, tenant: &TenantId, id: AssetId) -> bool {
        self.tenant == *tenant && self.answer.is_some_and(|(asset, _, _)| asset == id)
    }

    pub(super) fn until(&self) -> Timestamp {
        self.answer.map_or(self.claim.lapses_at, |(_, _, until)| until)
    }
}

impl State {
    fn claim_at(&self, tenant: &TenantId, name: &str) -> Option<usize> {
        self.claims.iter().position(|kept| kept.tenant == *tenant && kept.claim.name == name)
    }

    /// The unanswered claim on that name by that holder.
    fn held(&self, tenant: &TenantId, claim: &Claim) -> Option<usize> {
        let at = self.claim_at(tenant, &claim.name)?;
        let kept = &self.claims[at];
        (kept.claim.holder == claim.holder && kept.answer.is_none()).then_some(at)
    }

    pub(super) fn claim(&mut self, tenant: &TenantId, claim: Claim, now: Timestamp) -> Claimed {
        if let Some(at) = self.claim_at(tenant, &claim.name) {
            let kept = &self.claims[at];
            let alive = kept.until() > now;
            match kept.answer {
                Some((asset, fingerprint, _)) if alive => return Claimed::Settled { asset, fingerprint },
                None if alive && kept.claim.holder != claim.holder => return Claimed::InFlight,
                _ => drop(self.claims.remove(at)),
            }
        }
        self.claims.push(Kept { tenant: tenant.clone(), claim, answer: None });
        Claimed::Yours
    }

    pub(super) fn renew_claim(&mut self, tenant: &TenantId, claim: &Claim) -> bool {
        let Some(at) = self.held(tenant, claim) else {
            return false;
        };
        let held = &mut self.claims[at].claim;
        held.lapses_at = held.lapses_at.max(claim.lapses_at);
        true
    }

    pub(super) fn release_claim(&mut self, tenant: &TenantId, claim: &Claim) {
        if let Some(at) = self.held(tenant, claim) {
            self.claims.remove(at);
        }
    }

    pub(super) fn blob_mut(&mut self, tenant: &TenantId, key: BlobKey) -> Option<&mut Blob> {
        self.blobs.iter_mut().find(|blob| blob.tenant == *tenant && blob.key == key)
    }

    pub(super) fn begin_upload(&mut self, tenant: &TenantId, intent: &UploadIntent) {
        match self.blob_mut(tenant, intent.blob) {
            Some(Blob { life: Life::Uploading(alive_at), asset, .. }) => {
                *alive_at = intent.alive_at.max(*alive_at);
                *asset = asset.or(intent.asset);
            }
            Some(_) => {}
            None => {
                self.reserved.retain(|(owner, key, _)| owner != tenant || *key != intent.blob);
                let life = Life::Uploading(intent.alive_at);
                self.blobs.push(Blob {
                    tenant: tenant.clone(),
                    key: intent.blob,
                    bytes: None,
                    life,
                    asset: intent.asset,
                });
            }
        }
    }

    pub(super) fn end_upload(&mut self, tenant: &TenantId, key: BlobKey) {
        self.blobs.retain(|blob| blob.tenant != *tenant || blob.key != key || !matches!(blob.life, Life::Uploading(_)));
    }

    pub(super) fn blob_of(&self, tenant: &TenantId, sha256: &Digest) -> Option<BlobKey> {
        let shareable = |blob: &&Blob| matches!(blob.life, Life::Shareable(digest, _) if digest == *sha256);
        self.blobs.iter().filter(|blob| blob.tenant == *tenant).find(shareable).map(|blob| blob.key)
    }

    pub(super) fn publish(&mut self, tenant: &TenantId, new: NewAsset, terms: &Terms, now: Timestamp) -> Published {
        self.terms = Some(*terms);
        if new.record.run.as_ref().is_some_and(|run| self.is_erased(tenant, run)) {
            return Published::RunErased;
        }
        let claim = new.settled.as_ref().map(|settled| self.held(tenant, &settled.claim));
        let claim = claim.map(|held| held.filter(|at| self.claims[*at].until() > now));
        if claim == Some(None) {
            return Published::ClaimLost;
        }
        let mut record = new.record;
        let shared = self.blob_of(tenant, &record.sha256);
        let (bytes, sha256) = (record.bytes, record.sha256);
        match self.blob_mut(tenant, record.blob) {
            Some(blob) if matches!(blob.life, Life::Uploading(_)) => {
                blob.bytes = Some(bytes);
                blob.asset = None;
                blob.life = match shared {
                    Some(_) => Life::Copy(new.discard_at),
                    None => Life::Shareable(sha256, None),
                };
            }
            _ => return Published::UploadLost,
        }
        if let Some(key) = shared {
            record.blob = key;
            if let Some(blob) = self.blob_mut(tenant, key) {
                blob.life = Life::Shareable(sha256, None);
            }
        }
        if let (Some(Some(at)), Some(settled)) = (claim, new.settled) {
            self.claims[at].answer = Some((record.id, settled.fingerprint, settled.keep_until));
        }
        if let Some(run) = &record.run {
            self.touch(tenant, run, terms, now);
            self.references.push(Reference { tenant: tenant.clone(), run: run.clone(), asset: record.id });
        }
        if new.recorded.is_some_and(|blob| blob != record.blob) {
            self.owe(tenant, Owed::asset(&record));
        }
        self.assets.push(record.clone());
        let view = self.view(&record, terms);
        self.audit(tenant, new.audit.url(view.url_id()));
        if shared.is_some() { Published::Shared(view) } else { Published::Stored(view) }
    }
}
