//! What the sweep would find, read without changing anything.

use std::collections::HashSet;

use jiff::Timestamp;

use super::rows::{RunColumns, asset_id, down, kept, limited, run_id, tenant, time, up, view};
use super::tx::read;
use super::{PostgresIndex, assets, looks, sql};
use crate::error::StorageError;
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::codec::corrupt;
use crate::index::{Look, LookAt};
use crate::retention::Terms;

/// How many looks, or assets, a count takes at a time.
const STEP: usize = 500;

type LookColumns = (i64, i16, String, Vec<u8>);

/// The looks whose time has come, oldest first.
pub(super) async fn due(index: &PostgresIndex, now: Timestamp, limit: usize) -> Result<Vec<Look>, StorageError> {
    due_after(index, now, None, limit).await
}

async fn due_after(
    index: &PostgresIndex,
    now: Timestamp,
    after: Option<&Look>,
    limit: usize,
) -> Result<Vec<Look>, StorageError> {
    let (at, kind, owner, name) = match after {
        Some(look) => {
            let (kind, name) = looks::columns(&look.at);
            (up(look.due), kind, look.tenant.as_str(), name)
        }
        None => (i64::MIN, 0, "", Vec::new()),
    };
    let rows: Vec<LookColumns> = read!(index, on => async {
        let list = sql::LOOKS_DUE.rows().bind(down(now)).bind(at).bind(kind).bind(owner).bind(&name);
        Ok(list.bind(limited(limit)).fetch_all(on).await?)
    })?;
    rows.into_iter().map(look).collect()
}

fn look((at, kind, owner, name): LookColumns) -> Result<Look, StorageError> {
    let what = match kind {
        0 => LookAt::Asset(asset_id(&name)?),
        _ => {
            let name = std::str::from_utf8(&name).map_err(|_| corrupt("look: a run's name is not text".into()))?;
            LookAt::Run(run_id(name)?)
        }
    };
    Ok(Look { tenant: tenant(&owner)?, at: what, due: time(at) })
}

/// How many live assets a sweep would expire now, counted up to `limit`. Each asset is looked at as it is at one moment.
pub(super) async fn count(
    index: &PostgresIndex,
    limit: usize,
    terms: &Terms,
    now: Timestamp,
) -> Result<usize, StorageError> {
    let mut count = Count { index, limit, terms, now, found: HashSet::new() };
    let mut last: Option<Look> = None;
    loop {
        let page = due_after(index, now, last.as_ref(), STEP).await?;
        let mut alone: Vec<(TenantId, AssetId)> = Vec::new();
        for look in &page {
            match &look.at {
                LookAt::Asset(id) => alone.push((look.tenant.clone(), *id)),
                LookAt::Run(run) => count.run(&look.tenant, run).await?,
            }
        }
        alone.sort_unstable();
        for same in alone.chunk_by(|one, next| one.0 == next.0) {
            let ids: Vec<_> = same.iter().map(|(_, id)| *id).collect();
            count.assets(&same[0].0, &ids).await?;
        }
        last = page.last().cloned();
        if page.len() < STEP || count.is_full() {
            return Ok(count.found.len().min(limit));
        }
    }
}

struct Count<'a> {
    index: &'a PostgresIndex,
    limit: usize,
    terms: &'a Terms,
    now: Timestamp,
    found: HashSet<(TenantId, AssetId)>,
}

impl Count<'_> {
    fn is_full(&self) -> bool {
        self.found.len() >= self.limit
    }

    /// Counts what a walk of the run would come upon.
    async fn run(&mut self, tenant: &TenantId, run: &RunId) -> Result<(), StorageError> {
        let row: Option<RunColumns> = read!(self.index, on => async {
            Ok(sql::RUN_READ.rows().bind(tenant.as_str()).bind(run.as_str()).fetch_optional(on).await?)
        })?;
        let mut after = row.and_then(|(_, _, walked)| walked).unwrap_or_default();
        while !self.is_full() {
            let page: Vec<(Vec<u8>,)> = read!(self.index, on => async {
                let list = sql::REFS_WALK.rows().bind(tenant.as_str()).bind(run.as_str()).bind(&after);
                Ok(list.bind(limited(STEP)).fetch_all(on).await?)
            })?;
            let ids: Vec<_> = page.iter().map(|(id,)| asset_id(id)).collect::<Result<_, _>>()?;
            self.assets(tenant, &ids).await?;
            match page.into_iter().last() {
                Some((last,)) if ids.len() == STEP => after = last,
                _ => break,
            }
        }
        Ok(())
    }

    async fn assets(&mut self, tenant: &TenantId, ids: &[AssetId]) -> Result<(), StorageError> {
        for row in assets::views(self.index, tenant, ids).await? {
            let (record, runs) = kept(row)?;
            if record.is_live() {
                let view = view(record, runs, self.terms);
                if view.floor.until.is_past(self.now) && !self.is_full() {
                    self.found.insert((tenant.clone(), view.record.id));
                }
            }
        }
        Ok(())
    }
}
