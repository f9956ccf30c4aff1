//! Runs, what they reference, their artifacts, and what is held.

use serde_json::json;

use super::{HOLDS, RUNS, World, artifact_id, pick};
use crate::audit::AuditKind;
use crate::ids::{AssetId, TenantId};
use crate::index::contract::random::step::{Act, End, On};
use crate::index::contract::stage::{days, event, hold_id, put, run_id};
use crate::index::{AssetIndex, NewArtifact};
use crate::record::{Hold, HoldOn, RunStatus};
use crate::retention::{RunUpdate, after};

impl World {
    pub(super) async fn update(&mut self, tenant: usize, run: usize, end: End, status: Option<RunStatus>) {
        let (tenant, terms, now) = (self.tenants[tenant].clone(), self.terms, self.now);
        let mut update = RunUpdate { status, ..put(RUNS[run]) };
        match end {
            End::Unsaid => {}
            End::InDays(n) => update.log_retain_until = Some(Some(after(now, days(n)))),
            End::SecondsOfDays(n) => update.log_retention_seconds = Some(n * 86_400),
            End::Never => update.log_retain_until = Some(None),
        }
        let audit = event(AuditKind::Floor, now);
        drop(both!(self, index => index.update_run(&tenant, &update, &terms, audit.clone(), now)));
    }

    pub(super) async fn refer(&mut self, tenant: usize, run: usize, assets: &[usize], unknown: bool) {
        let (tenant, run, terms, now) = (self.tenants[tenant].clone(), run_id(RUNS[run]), self.terms, self.now);
        // An asset of the other tenant is as unknown as one that nobody has.
        let own: Vec<_> = self.assets.iter().filter(|(owner, _)| unknown || *owner == tenant).cloned().collect();
        let ids: Vec<AssetId> = assets.iter().filter_map(|at| pick(&own, *at)).map(|(_, id)| id).collect();
        let audit = event(AuditKind::Refer, now);
        both!(self, index => index.refer(&tenant, &run, &ids, &terms, audit.clone(), now));
    }

    pub(super) async fn artifact(&mut self, act: Act) {
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

    pub(super) async fn hold(&mut self, act: Act) {
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
}
