//! The queue of looks: who has an entry, and how entries move.
//!
//! What the sweep relies on is the same as for the index in `sled`: every live asset with a finite floor, and every tombstone with a
//! finite end, is seen at that time or sooner, by a look of its own or by one of a run that references it and has not begun its walk.
//!
//! One thing differs: **a run's look stays where it is when its end moves to later**, and moves when the sweep comes upon it too
//! soon. An unregistered run's end moves with each publication into it, and that would else be two more rows that all of the run's
//! publications write.
//!
//! A held run has no look; when its last hold is lifted it gets one anew, from the beginning. An asset's own look may come while a hold
//! is on it, and then goes; lifting the last hold brings it back. An erased run is looked at once, whatever its end was.

use super::failed::Worked;
use super::rows::{RunRow, down, end_columns, stake, up};
use super::sql;
use super::tx::Tx;
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::LookAt;
use crate::index::codec::encode;
use crate::record::{RunRecord, RunStatus};
use crate::retention::Terms;

/// Entries that go and entries that come, to be written together.
#[derive(Debug, Default)]
pub(super) struct Moves {
    gone: Entries,
    new: Entries,
}

#[derive(Debug, Default)]
struct Entries {
    at: Vec<i64>,
    kind: Vec<i16>,
    tenant: Vec<String>,
    name: Vec<Vec<u8>>,
}

/// The kind and the name of an entry, as columns.
pub(super) fn columns(at: &LookAt) -> (i16, Vec<u8>) {
    match at {
        LookAt::Asset(id) => (0, id.to_bytes().to_vec()),
        LookAt::Run(id) => (1, id.as_str().as_bytes().to_vec()),
    }
}

impl Entries {
    fn push(&mut self, at: i64, tenant: &TenantId, what: &LookAt) {
        let (kind, name) = columns(what);
        self.at.push(at);
        self.kind.push(kind);
        self.tenant.push(tenant.to_string());
        self.name.push(name);
    }
}

impl Moves {
    pub(super) fn add(&mut self, tenant: &TenantId, what: &LookAt, from: Option<i64>, to: Option<i64>) {
        if from == to {
            return;
        }
        if let Some(from) = from {
            self.gone.push(from, tenant, what);
        }
        if let Some(to) = to {
            self.new.push(to, tenant, what);
        }
    }

    pub(super) async fn write(self, tx: &mut Tx) -> Worked<()> {
        let Self { gone, new } = self;
        if gone.at.is_empty() && new.at.is_empty() {
            return Ok(());
        }
        let query = sql::LOOKS_MOVE.run().bind(gone.at).bind(gone.kind).bind(gone.tenant).bind(gone.name);
        query.bind(new.at).bind(new.kind).bind(new.tenant).bind(new.name).execute(tx.on()).await?;
        Ok(())
    }
}

/// Makes the run, unless it is there already; `None`: it is.
pub(super) async fn new_run(
    tx: &mut Tx,
    tenant: &TenantId,
    record: RunRecord,
    terms: &Terms,
) -> Worked<Option<RunRow>> {
    let look = stake(&record, false).keeps(terms).instant().map(up);
    let (end_at, end_default) = end_columns(record.end);
    let (made,): (i64,) = sql::RUN_NEW
        .rows()
        .bind(tenant.as_str())
        .bind(record.id.as_str())
        .bind(record.status == RunStatus::Open)
        .bind(end_at)
        .bind(end_default)
        .bind(look)
        .bind(encode(&record))
        .bind(record.id.as_str().as_bytes())
        .bind(record.erased_at.map(down))
        .fetch_one(tx.on())
        .await?;
    Ok((made == 1).then_some(RunRow { record, look, walked: None, holds: 0 }))
}

/// Writes the run as it is now, seen at its end or sooner.
pub(super) async fn put_run(
    tx: &mut Tx,
    tenant: &TenantId,
    before: RunRow,
    record: RunRecord,
    terms: &Terms,
) -> Worked<RunRow> {
    let stake = stake(&record, before.holds > 0);
    let same_end = before.stake().until() == stake.until();
    let wanted = stake.keeps(terms).instant().map(up);
    let look = match (before.look, wanted) {
        // A run that was looked at for this very end is done: what it references since then has looks of its own.
        (None, _) if same_end => None,
        (Some(sooner), Some(at)) => Some(sooner.min(at)),
        (_, wanted) => wanted,
    };
    let walked = before.walked.filter(|_| same_end && look == before.look);
    write_run(tx, tenant, RunRow { record, walked, ..before }, look).await
}

/// Writes the run, with its look moved to that time.
pub(super) async fn write_run(tx: &mut Tx, tenant: &TenantId, row: RunRow, look: Option<i64>) -> Worked<RunRow> {
    let record = &row.record;
    let (end_at, end_default) = end_columns(record.end);
    sql::RUN_PUT
        .run()
        .bind(tenant.as_str())
        .bind(record.id.as_str())
        .bind(record.status == RunStatus::Open)
        .bind(end_at)
        .bind(end_default)
        .bind(look)
        .bind(row.walked.map(AssetId::to_bytes).as_ref().map(|id| id.as_slice()))
        .bind(encode(record))
        .bind(record.erased_at.map(down))
        .bind(row.holds)
        .execute(tx.on())
        .await?;
    let mut moves = Moves::default();
    moves.add(tenant, &LookAt::Run(record.id.clone()), row.look, look);
    moves.write(tx).await?;
    Ok(RunRow { look, ..row })
}

/// Moves the run's look, and what it has seen.
pub(super) async fn put_run_look(
    tx: &mut Tx,
    tenant: &TenantId,
    row: &RunRow,
    look: Option<i64>,
    walked: Option<AssetId>,
) -> Worked<()> {
    let id: &RunId = &row.record.id;
    let query = sql::RUN_LOOK.run().bind(tenant.as_str()).bind(id.as_str()).bind(look);
    query.bind(walked.map(AssetId::to_bytes).as_ref().map(|id| id.as_slice())).execute(tx.on()).await?;
    let mut moves = Moves::default();
    moves.add(tenant, &LookAt::Run(id.clone()), row.look, look);
    moves.write(tx).await
}
