//! What the sweep would find, read without changing anything.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::rows::{RunColumns, asset_id, down, kept, limited, run_id, tenant, time, up};
use super::tx::read;
use super::{PostgresIndex, assets, looks, sql};
use crate::error::StorageError;
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::codec::corrupt;
use crate::index::{Look, LookAt, Preview};
use crate::retention::Terms;

/// How many looks, or assets, a count takes at a time.
const STEP: usize = 500;

type LookColumns = (i64, i16, String, Vec<u8>);

/// The looks whose time has come, oldest first.
pub(super) async fn due(index: &PostgresIndex, now: Timestamp, limit: usize) -> Result<Vec<Look>, StorageError> {
    due_after(index, None, now, None, limit).await
}

/// The same from behind one of them, of all tenants or of one.
async fn due_after(
    index: &PostgresIndex,
    of: Option<&TenantId>,
    now: Timestamp,
    after: Option<&Look>,
    limit: usize,
) -> Result<Vec<Look>, StorageError> {
    let (at, kind, owner, name) = match after {
        Some(look) => {
            let (kind, name) = looks::columns(&look.at);
            (up(look.due), kind, look.tenant.as_str(), name)
        }
        None => (i64::MIN, 0, of.map_or("", |tenant| tenant.as_str()), Vec::new()),
    };
    let list = if of.is_some() { sql::LOOKS_OF } else { sql::LOOKS_DUE };
    let rows: Vec<LookColumns> = read!(index, on => async {
        let list = list.rows().bind(down(now)).bind(at).bind(kind).bind(owner).bind(&name);
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

/// How many live assets a sweep would end now, counted up to `limit`.
pub(super) async fn count(
    index: &PostgresIndex,
    limit: usize,
    terms: &Terms,
    now: Timestamp,
) -> Result<usize, StorageError> {
    let mut found = Finding { index, limit, terms, now, found: BTreeMap::new() };
    found.look(None).await?;
    Ok(found.found.len().min(limit))
}

/// What a sweep at `at` would take of the tenant's.
pub(super) async fn preview(
    index: &PostgresIndex,
    owner: &TenantId,
    at: Timestamp,
    behind: Option<AssetId>,
    limit: usize,
    terms: &Terms,
) -> Result<Preview, StorageError> {
    let mut all = Finding { index, limit: usize::MAX, terms, now: at, found: BTreeMap::new() };
    all.look(Some(owner)).await?;
    let found = all.found;
    let names = found.keys().map(|(_, id)| *id).filter(|id| behind.is_none_or(|behind| *id > behind));
    let page: Vec<AssetId> = names.take(limit).collect();
    let mut preview = Preview { assets: Vec::new(), count: found.len() as u64, bytes: found.values().sum() };
    for row in assets::views(index, owner, &page).await? {
        let (record, keeping) = kept(row)?;
        // It may have ended since it was found.
        if record.is_live() {
            preview.assets.push(keeping.view(record, terms));
        }
    }
    Ok(preview)
}

/// The live assets that a sweep would end, with their sizes. Each asset is looked at as it is at one moment.
struct Finding<'a> {
    index: &'a PostgresIndex,
    limit: usize,
    terms: &'a Terms,
    now: Timestamp,
    found: BTreeMap<(TenantId, AssetId), u64>,
}

impl Finding<'_> {
    fn is_full(&self) -> bool {
        self.found.len() >= self.limit
    }

    /// Looks at all that is due, or at what is of that tenant's.
    async fn look(&mut self, of: Option<&TenantId>) -> Result<(), StorageError> {
        let mut last: Option<Look> = None;
        loop {
            let page = due_after(self.index, of, self.now, last.as_ref(), STEP).await?;
            let mut alone: Vec<(TenantId, AssetId)> = Vec::new();
            for look in &page {
                match &look.at {
                    LookAt::Asset(id) => alone.push((look.tenant.clone(), *id)),
                    LookAt::Run(run) => self.run(&look.tenant, run).await?,
                }
            }
            alone.sort_unstable();
            for same in alone.chunk_by(|one, next| one.0 == next.0) {
                let ids: Vec<_> = same.iter().map(|(_, id)| *id).collect();
                self.assets(&same[0].0, &ids).await?;
            }
            last = page.last().cloned();
            if page.len() < STEP || self.is_full() {
                return Ok(());
            }
        }
    }

    /// Looks at what a walk of the run would come upon.
    async fn run(&mut self, tenant: &TenantId, run: &RunId) -> Result<(), StorageError> {
        let row: Option<RunColumns> = read!(self.index, on => async {
            Ok(sql::RUN_READ.rows().bind(tenant.as_str()).bind(run.as_str()).fetch_optional(on).await?)
        })?;
        let mut after = row.and_then(|(_, _, walked, _)| walked).unwrap_or_default();
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
            let (record, keeping) = kept(row)?;
            if record.is_live() && keeping.next(&record.state, self.terms).until().is_past(self.now) && !self.is_full()
            {
                self.found.insert((tenant.clone(), record.id), record.bytes);
            }
        }
        Ok(())
    }
}
