//! Ends, by a sweep and by their owner's word.

use jiff::Timestamp;
use std::collections::BTreeSet;

use super::{RUNS, World, pick, told};
use crate::audit::AuditKind;
use crate::ids::{AssetId, TenantId};
use crate::index::contract::random::beginning;
use crate::index::contract::random::step::Act;
use crate::index::contract::stage::{MANY, event, run_id};
use crate::index::{AssetIndex, Ends, Look, LookAt};
use crate::record::{AssetRecord, Doomed};

impl World {
    pub(super) async fn erase(&mut self, act: Act) {
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
    pub(super) async fn settle_one(&mut self, limit: usize) -> Option<Look> {
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
            let unquoted = settlement.unquoted.iter().filter(|(_, of)| of == id).cloned().collect::<Vec<_>>();
            assert_eq!(same.unquoted, unquoted, "which runs quote it no more");
        }
        if let LookAt::Run(run) = &look.at {
            let ended = settlement.artifacts.len();
            let same = self.model.end_artifacts(&look.tenant, run, ended, &terms, "sweep", now);
            assert_eq!(same, settlement.artifacts, "which artifacts the index ended, and what the model makes of it");
        }
        Some(look)
    }

    pub(super) async fn sweep(&mut self, limit: usize) {
        let mut looks = 0;
        while let Some(look) = self.settle_one(limit).await {
            looks += 1;
            assert!(looks < MANY, "there is no end to {look:?}");
        }
        // The model says what is due by the terms that it heard last.
        told(self.model.settle(&nothing(&self.tenants[0]), 1, &self.terms, "sweep", self.now).await);
        assert_eq!(told(self.model.due(self.now, MANY).await), [], "the index is done, and the model is not");
    }

    pub(super) async fn end(&mut self, act: Act) {
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

    pub(super) async fn doom(&mut self, uploads_before: Timestamp, now: Timestamp) {
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
}

/// A look at an asset that is not there.
fn nothing(tenant: &TenantId) -> Look {
    Look { tenant: tenant.clone(), at: LookAt::Asset(AssetId::from_bytes([0; 16])), due: beginning() }
}
