//! How the model is made anew.

use jiff::Timestamp;

use super::state::{Blob, Life, Reference, State};
use crate::ids::TenantId;
use crate::index::Restored;
use crate::record::{AssetRecord, AssetState, HoldOn};
use crate::retention::{Terms, after};

impl State {
    pub(super) fn restore(&mut self, tenant: &TenantId, what: Restored, terms: &Terms, now: Timestamp) {
        self.terms = Some(*terms);
        match what {
            Restored::Run(record) => {
                if self.run(tenant, &record.id).is_none() {
                    self.put_run(tenant, record);
                }
            }
            Restored::Asset { record, has_bytes } => {
                let record = AssetRecord { tenant: tenant.clone(), ..*record };
                if self.asset(tenant, record.id).is_none() {
                    self.restore_asset(record, has_bytes, after(now, terms.tombstone_bytes), terms, now);
                }
            }
            Restored::References(quoted) => {
                let known: Vec<_> =
                    quoted.assets.iter().copied().filter(|id| self.asset(tenant, *id).is_some()).collect();
                if !self.is_erased(tenant, &quoted.run) {
                    self.touch(tenant, &quoted.run, terms, quoted.at);
                }
                self.add_references(tenant, &quoted.run, &known);
            }
            Restored::Hold { on, hold } => {
                let known = match &on {
                    HoldOn::Asset(id) => self.asset(tenant, *id).is_some(),
                    HoldOn::Run(id) => self.run(tenant, id).is_some(),
                };
                if known {
                    self.raise_hold_number(tenant, hold.number);
                    self.put_hold(tenant, &on, hold);
                }
            }
            Restored::Artifact(record) => self.restore_artifact(tenant, *record, terms),
            Restored::Epoch(epoch) => {
                while self.epoch(tenant) < epoch {
                    self.epochs.push(tenant.clone());
                }
            }
            Restored::Revoked { url_id, keep_until } => self.put_revoked(tenant, &url_id, keep_until),
        }
    }

    fn restore_asset(
        &mut self,
        record: AssetRecord,
        has_bytes: bool,
        remove_at: Timestamp,
        terms: &Terms,
        now: Timestamp,
    ) {
        let tenant = &record.tenant;
        if let Some(run) = &record.run {
            if !self.is_erased(tenant, run) {
                self.touch(tenant, run, terms, record.created_at);
            }
            self.references.push(Reference { tenant: tenant.clone(), run: run.clone(), asset: record.id });
        }
        let life = match record.state {
            AssetState::Live => Some(Life::Shareable(record.sha256, None)),
            AssetState::Expired { .. } if has_bytes => Some(Life::Shareable(record.sha256, Some(remove_at))),
            AssetState::Erased { .. } if has_bytes => Some(Life::Shareable(record.sha256, Some(now))),
            _ => None,
        };
        if let Some(life) = life {
            let bytes = Some(record.bytes);
            match self.blob_mut(tenant, record.blob) {
                // What a live asset holds, it holds; a digest that an erased one has lost, another may bring.
                Some(blob) => match (blob.life, life) {
                    (Life::Shareable(_, None), _) => {}
                    (Life::Shareable(..), Life::Shareable(_, None)) => blob.life = life,
                    (Life::Shareable(_, Some(earlier)), Life::Shareable(digest, Some(at)))
                        if record.state.name() == "expired" =>
                    {
                        blob.life = Life::Shareable(digest, Some(earlier.max(at)));
                    }
                    _ => {}
                },
                None => {
                    let key = record.blob;
                    self.blobs.push(Blob { tenant: tenant.clone(), key, bytes, life, asset: None });
                }
            }
        }
        self.assets.push(record);
    }
}
