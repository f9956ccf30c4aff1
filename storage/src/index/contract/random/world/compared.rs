//! What is compared: all that can be read, at each step and at the end of time.

use super::{ARTIFACTS, BYTES, HOLDS, KEYS, RUNS, World, artifact_id, told};
use crate::audit::AuditRow;
use crate::ids::TenantId;
use crate::index::contract::random::step::{Act, On};
use crate::index::contract::stage::{MANY, day, days, run_id, sha256};
use crate::index::{AssetIndex, AssetQuery, RunQuery, Upkeep};
use crate::record::HoldOn;
use crate::retention::after;

impl World {
    /// Finds that both say the same of everything that can be read.
    pub(in super::super) async fn compare(&self) {
        let (terms, now) = (self.terms, self.now);
        both!(self, index => index.assets(None, MANY));
        both!(self, index => index.blobs(None, MANY));
        both!(self, index => index.owed(None, MANY));
        for tenant in &self.tenants {
            both!(self, index => index.count_assets(tenant));
            both!(self, index => index.usage(tenant));
            both!(self, index => index.counted_usage(tenant));
            both!(self, index => index.runs(tenant, &RunQuery { limit: MANY, ..RunQuery::default() }));
            both!(self, index => index.page(tenant, &AssetQuery { limit: MANY, ..AssetQuery::default() }, &terms));
            for run in RUNS {
                both!(self, index => index.find_run(tenant, &run_id(run)));
                for name in 0..ARTIFACTS.len() {
                    both!(self, index => index.artifact(tenant, &run_id(run), &artifact_id(name)));
                }
                both!(self, index => index.holds(tenant, &HoldOn::Run(run_id(run)), None, MANY));
                let query = AssetQuery { run: Some(run_id(run)), limit: MANY, ..AssetQuery::default() };
                both!(self, index => index.page(tenant, &query, &terms));
            }
            for (_, id) in self.assets.iter().filter(|(owner, _)| owner == tenant) {
                both!(self, index => index.holds(tenant, &HoldOn::Asset(*id), None, MANY));
                both!(self, index => index.protectors(tenant, *id, 3, &terms, now));
                both!(self, index => index.same_bytes(tenant, *id, None, MANY));
                both!(self, index => index.artifact_naming(tenant, *id));
            }
            for ahead in [0, 4, 40] {
                both!(self, index => index.preview(tenant, after(now, days(ahead)), None, 2, &terms));
            }
            for bytes in BYTES {
                both!(self, index => index.blob_of(tenant, &sha256(bytes)));
            }
            for url in KEYS {
                both!(self, index => index.is_revoked(tenant, url));
                both!(self, index => index.url(tenant, url));
                both!(self, index => index.urls_with(tenant, url, None, MANY));
            }
        }
        for ahead in [0, 1, 2, 3, 5, 8, 13, 40] {
            both!(self, index => index.count_due(MANY, &terms, after(now, days(ahead))));
        }
    }

    /// Sweeps until the end of time, with the holds and without them, and compares the logs.
    pub(in super::super) async fn finish(mut self) {
        self.sweep_on().await;
        let runs = [0, 1].into_iter().flat_map(|tenant| [0, 1, 2].map(|run| On::Run { tenant, run }));
        let assets = (0..self.assets.len()).map(|asset| On::Asset { asset });
        for on in runs.chain(assets).collect::<Vec<_>>() {
            for name in 0..HOLDS.len() {
                self.hold(Act::Lift { on, name }).await;
            }
        }
        self.compare().await;
        self.sweep_on().await;
        self.compare_logs().await;
    }

    async fn sweep_on(&mut self) {
        for ahead in [1, 2, 5, 20, 100] {
            self.now = self.now.max(day(0));
            self.pass(days(ahead));
            self.sweep(3).await;
            self.doom(self.now, self.now).await;
            self.compare().await;
        }
    }

    async fn compare_logs(&self) {
        both!(self, index => index.seal_audit(10 * MANY));
        for tenant in &self.tenants {
            let log = told(self.index().audit_rows(tenant, 0, 10 * MANY).await);
            assert_chained(tenant, &log);
            let right = told(self.model.audit_rows(tenant, 0, 10 * MANY).await);
            assert_eq!(events(&log), events(&right));
        }
    }
}

/// The order of events within one sweep is not said.
fn events(log: &[AuditRow]) -> Vec<String> {
    let mut events: Vec<String> = log.iter().map(|row| format!("{:?}", row.event)).collect();
    events.sort();
    events
}

fn assert_chained(tenant: &TenantId, log: &[AuditRow]) {
    let mut previous = AuditRow::GENESIS;
    for (row, seq) in log.iter().zip(1..) {
        assert!(row.holds(tenant) && row.seq == seq && row.previous == previous, "{row:?}");
        previous = row.hash;
    }
}
