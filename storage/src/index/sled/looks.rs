//! The queue of looks: who has an entry, and how entries move.
//!
//! What the sweep relies on: **every live asset with a finite floor is seen at that floor or sooner**, by a look of its own or by one
//! of a run that references it and has not begun its walk. Whoever sees it too soon gives it a look of its own, or leaves it to a look
//! that is yet to come. A walk that has begun may already be past the asset, so it counts for nothing that is added now; that is
//! decided by the run's row and not by the clock, because the sweep's `now` may be ahead of the caller's.
//!
//! A **held** run has no look; when its last hold is lifted it gets one anew, from the beginning. An asset's own look may come while a
//! hold is on it, and then goes; lifting the last hold brings it back. An **erased** run is looked at once, whatever its end was.
//!
//! The same holds for **every tombstone with a finite end**. One that a run without end keeps has no look: the run gets one when it
//! gets an end, and its walk comes upon the tombstone.
//!
//! Terms that grow are caught up with when a look comes too soon. Terms that shrink hold for the looks that are placed from then on:
//! what was placed by longer ones is looked at late, which keeps things longer and never shorter.

use jiff::Timestamp;

use super::draft::Draft;
use super::keys::Key;
use super::rows::{AssetRow, RunRow};
use crate::ids::TenantId;
use crate::index::LookAt;
use crate::record::RunRecord;
use crate::retention::{Stake, Terms};

impl Draft {
    /// Writes the asset, with its look moved to that time.
    pub(super) fn put_asset(&mut self, mut row: AssetRow, look: Option<Timestamp>) {
        let (tenant, id) = (row.record.tenant.clone(), row.record.id);
        self.move_look(&tenant, &LookAt::Asset(id), row.look, look);
        row.look = look;
        self.put(Key::asset(&tenant, id), &row);
    }

    /// Writes the asset, seen at that time or sooner.
    pub(super) fn put_asset_seen_by(&mut self, row: AssetRow, at: Timestamp) {
        let look = row.look.map_or(at, |look| look.min(at));
        self.put_asset(row, Some(look));
    }

    /// Drops the asset's row and its look.
    pub(super) fn drop_asset(&mut self, row: &AssetRow) {
        let (tenant, id) = (&row.record.tenant, row.record.id);
        self.move_look(tenant, &LookAt::Asset(id), row.look, None);
        self.delete(Key::same(tenant, &row.record.sha256, id));
        self.delete(Key::asset(tenant, id));
    }

    /// Writes the run as it is now. If its end is another one, or its look is yet to come, the look goes to the end.
    pub(super) fn put_run(
        &mut self,
        tenant: &TenantId,
        before: Option<RunRow>,
        record: RunRecord,
        terms: &Terms,
    ) -> RunRow {
        let holds = before.as_ref().map_or(0, |row| row.holds);
        let stake = Stake::of(&record, holds > 0);
        let same_end = before.as_ref().is_some_and(|row| row.stake().until() == stake.until());
        let (was, walked) = before.map_or((None, None), |row| (row.look, row.walked));
        // A run that was looked at for this very end is done: what it references since then has looks of its own.
        let look = if same_end && was.is_none() { None } else { stake.keeps(terms).instant() };
        let walked = walked.filter(|_| same_end && look == was);
        self.put_run_look(tenant, RunRow { record, look: was, walked, holds }, look)
    }

    /// Writes the run, with its look moved to that time.
    pub(super) fn put_run_look(&mut self, tenant: &TenantId, mut row: RunRow, look: Option<Timestamp>) -> RunRow {
        let id = &row.record.id;
        self.move_look(tenant, &LookAt::Run(id.clone()), row.look, look);
        row.look = look;
        self.put(Key::run(tenant, id), &row);
        row
    }

    fn move_look(&mut self, tenant: &TenantId, at: &LookAt, from: Option<Timestamp>, to: Option<Timestamp>) {
        if from == to {
            return;
        }
        if let Some(from) = from {
            self.delete(Key::look(from, tenant, at));
        }
        if let Some(to) = to {
            self.mark_new(Key::look(to, tenant, at));
        }
    }
}
