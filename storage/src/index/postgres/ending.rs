//! The end of assets: what is due, what the sweep does about it, and what an owner may.
//!
//! An asset ends because every run that keeps it has ended. So that none of them is extended meanwhile, with the caller told so, their
//! rows are locked for sharing until the asset's end is committed ([`fix_runs`]): that the database can put the two in an order is
//! not enough, it has to be the order in which callers heard of them.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;

use super::failed::Worked;
use super::looks::put_run_look;
use super::rows::{AssetRow, RunRow, asset_id, down, limited, run_end, run_id, up, view};
use super::tx::Tx;
use super::{assets, blobs, runs, sql};
use crate::audit::AuditEvent;
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::{Deleted, Look, LookAt, Settlement, expiry_event};
use crate::record::{AssetRecord, AssetState};
use crate::retention::{RunEnd, Terms, Until, after, floor, tombstone};

/// How long a call waits that found its look in the hands of another: it is about to be done there, and asking at once is idle.
const BUSY: Duration = Duration::from_millis(10);

/// What one call of the sweep goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep<'a> {
    pub(super) terms: &'a Terms,
    pub(super) principal: &'a str,
    pub(super) now: Timestamp,
}

/// The runs that reference an asset, newest reference first.
type Referring = Vec<(RunId, RunEnd)>;

/// Looks at the assets of one look. One that another call is busy with is left to it.
pub(super) async fn settle(tx: &mut Tx, look: &Look, limit: usize, sweep: Sweep<'_>) -> Worked<Settlement> {
    let due = Some(up(look.due));
    let tenant = &look.tenant;
    match &look.at {
        LookAt::Run(id) => match runs::find(tx, sql::RUN_LOCK_FREE, tenant, id).await? {
            Some(row) if row.look == due => settle_run(tx, tenant, row, limit.max(1), sweep).await,
            Some(_) => Ok(moved_on()),
            None => busy().await,
        },
        LookAt::Asset(id) => {
            let query = sql::ASSET_LOCK_FREE.rows().bind(tenant.as_str()).bind(id.to_bytes());
            match query.fetch_optional(tx.on()).await?.map(AssetRow::read).transpose()? {
                Some(row) if row.look == due => settle_asset(tx, row, sweep).await,
                Some(_) => Ok(moved_on()),
                None => busy().await,
            }
        }
    }
}

/// The look has moved or been settled since its caller read it; if anything is left to do, it is due under another time.
fn moved_on() -> Settlement {
    Settlement { done: true, ..Settlement::default() }
}

async fn busy() -> Worked<Settlement> {
    tokio::time::sleep(BUSY).await;
    Ok(moved_on())
}

async fn settle_run(tx: &mut Tx, tenant: &TenantId, row: RunRow, limit: usize, sweep: Sweep<'_>) -> Worked<Settlement> {
    let end = row.end().until();
    let until = end.plus(sweep.terms.grace);
    if !until.is_past(sweep.now) {
        // The end has moved, or the grace has been raised, since the look was placed.
        put_run_look(tx, tenant, &row, until.instant().map(up), None).await?;
        return Ok(moved_on());
    }
    let page = page_of(tx, tenant, &row, limit).await?;
    let done = page.len() < limit;
    let look = row.look.filter(|_| !done);
    let walked = page.last().map(|asset| asset.record.id).or(row.walked).filter(|_| !done);
    put_run_look(tx, tenant, &row, look, walked).await?;

    let (living, dead): (Vec<_>, Vec<_>) = page.into_iter().partition(|asset| asset.record.is_live());
    bury(tx, tenant, dead, end.plus(sweep.terms.tombstone_record), sweep).await?;
    let looked_at = living.len();
    let expired = end_past(tx, tenant, living, sweep).await?;
    Ok(Settlement { kept: looked_at - expired.len(), expired, dropped: Vec::new(), done })
}

async fn page_of(tx: &mut Tx, tenant: &TenantId, run: &RunRow, limit: usize) -> Worked<Vec<AssetRow>> {
    let after = run.walked.map_or(Vec::new(), |id| id.to_bytes().to_vec());
    let query = sql::ASSETS_OF_RUN.rows().bind(tenant.as_str()).bind(run.record.id.as_str());
    let rows = query.bind(after).bind(limited(limit)).fetch_all(tx.on()).await?;
    Ok(rows.into_iter().map(AssetRow::read).collect::<Result<_, _>>()?)
}

/// Expires those of the live assets that nothing keeps; sees to it that the others are seen again in time.
async fn end_past(
    tx: &mut Tx,
    tenant: &TenantId,
    mut living: Vec<AssetRow>,
    sweep: Sweep<'_>,
) -> Worked<Vec<AssetRecord>> {
    let kept = kept_by_others(tx, tenant, &living, sweep).await?;
    living.retain(|asset| !kept.contains(&asset.record.id));
    let referring = referring(tx, tenant, &living).await?;
    let (mut ending, mut looks) = (Vec::new(), Vec::new());
    for asset in living {
        let until = until(&asset, &referring, sweep.terms);
        match until.instant().map(up) {
            _ if until.is_past(sweep.now) => ending.push(asset),
            Some(at) if asset.look.is_none_or(|look| look > at) => {
                looks.push((asset.record.id, asset.look, Some(at)));
            }
            _ => {}
        }
    }
    assets::put_looks(tx, tenant, &looks).await?;
    expire(tx, tenant, ending, &referring, sweep).await
}

/// Those that a run without end keeps, or one whose own walk is yet to come. The newest run comes first and nearly always does, so an
/// asset that a thousand runs share costs a walk one look and not a thousand.
async fn kept_by_others(
    tx: &mut Tx,
    tenant: &TenantId,
    living: &[AssetRow],
    sweep: Sweep<'_>,
) -> Worked<HashSet<AssetId>> {
    if living.is_empty() {
        return Ok(HashSet::new());
    }
    let past = down(after(sweep.now, -sweep.terms.grace));
    let query = sql::REFS_KEEP.rows().bind(tenant.as_str()).bind(names(living)).bind(past);
    let rows: Vec<(Vec<u8>,)> = query.fetch_all(tx.on()).await?;
    Ok(rows.into_iter().map(|(id,)| asset_id(&id)).collect::<Result<_, _>>()?)
}

/// Sees to it that tombstones which a walk came upon go in time: while the run had no end it had no look, and when the run's end has
/// moved their looks may be late. `least` is what this run alone gives them.
async fn bury(tx: &mut Tx, tenant: &TenantId, mut dead: Vec<AssetRow>, least: Until, sweep: Sweep<'_>) -> Worked<()> {
    let soon = least.instant().map(up);
    dead.retain(|asset| asset.look.is_none_or(|look| soon.is_some_and(|soon| look > soon)));
    let referring = referring(tx, tenant, &dead).await?;
    let mut looks = Vec::new();
    for asset in dead {
        if let Some(at) = until(&asset, &referring, sweep.terms).instant().map(up) {
            looks.push((asset.record.id, asset.look, Some(asset.look.map_or(at, |look| look.min(at)))));
        }
    }
    assets::put_looks(tx, tenant, &looks).await
}

async fn settle_asset(tx: &mut Tx, row: AssetRow, sweep: Sweep<'_>) -> Worked<Settlement> {
    let (tenant, id, live) = (row.record.tenant.clone(), row.record.id, row.record.is_live());
    let referring = referring(tx, &tenant, std::slice::from_ref(&row)).await?;
    let until = until(&row, &referring, sweep.terms);
    let mut settlement = moved_on();
    match (live, until.is_past(sweep.now)) {
        (true, true) => settlement.expired = expire(tx, &tenant, vec![row], &referring, sweep).await?,
        (live, false) => {
            assets::put_looks(tx, &tenant, &[(id, row.look, until.instant().map(up))]).await?;
            settlement.kept = usize::from(live);
        }
        (false, true) => {
            fix_runs(tx, &tenant, &[id], &referring).await?;
            assets::put_looks(tx, &tenant, &[(id, row.look, None)]).await?;
            sql::REFS_DROP.run().bind(tenant.as_str()).bind(id.to_bytes()).execute(tx.on()).await?;
            sql::ASSET_DROP.run().bind(tenant.as_str()).bind(id.to_bytes()).execute(tx.on()).await?;
            settlement.dropped.push(id);
        }
    }
    Ok(settlement)
}

/// Expires the asset if it is live and its floor is past.
pub(super) async fn expire_if_due(
    tx: &mut Tx,
    tenant: &TenantId,
    id: AssetId,
    sweep: Sweep<'_>,
) -> Worked<Option<AssetRecord>> {
    let Some(row) = assets::lock(tx, tenant, id).await? else {
        return Ok(None);
    };
    if !row.record.is_live() {
        return Ok(Some(row.record));
    }
    let referring = referring(tx, tenant, std::slice::from_ref(&row)).await?;
    if !until(&row, &referring, sweep.terms).is_past(sweep.now) {
        return Ok(Some(row.record));
    }
    Ok(expire(tx, tenant, vec![row], &referring, sweep).await?.pop())
}

/// Ends the asset on its owner's word, unless something protects it.
pub(super) async fn delete(
    tx: &mut Tx,
    tenant: &TenantId,
    id: AssetId,
    terms: &Terms,
    audit: &AuditEvent,
    now: Timestamp,
) -> Worked<Deleted> {
    let Some(row) = assets::lock(tx, tenant, id).await? else {
        return Ok(Deleted::Unknown);
    };
    if !row.record.is_live() {
        blobs::hurry(tx, tenant, row.record.blob, now).await?;
        return Ok(Deleted::WasGone(row.record));
    }
    let referring = referring(tx, tenant, std::slice::from_ref(&row)).await?;
    let view = view(row.record.clone(), referring.get(&id).cloned().unwrap_or_default(), terms);
    if view.floor.protected.is_some_and(|until| !until.is_past(now)) {
        return Ok(Deleted::Protected(view));
    }
    fix_runs(tx, tenant, &[id], &referring).await?;
    let ended = end(tx, tenant, vec![row], now, terms, now, &referring).await?;
    tx.audit(tenant, audit.clone());
    let gone = ended.into_iter().next().expect("one was ended");
    Ok(Deleted::Gone(gone))
}

async fn expire(
    tx: &mut Tx,
    tenant: &TenantId,
    ending: Vec<AssetRow>,
    referring: &HashMap<AssetId, Referring>,
    sweep: Sweep<'_>,
) -> Worked<Vec<AssetRecord>> {
    if ending.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<_> = ending.iter().map(|asset| asset.record.id).collect();
    fix_runs(tx, tenant, &ids, referring).await?;
    for asset in &ending {
        tx.audit(tenant, expiry_event(&asset.record, sweep.principal, sweep.now));
    }
    let remove_at = after(sweep.now, sweep.terms.tombstone_bytes);
    end(tx, tenant, ending, remove_at, sweep.terms, sweep.now, referring).await
}

/// Ends live assets; their bytes, if nobody else holds them, go at `remove_at`.
async fn end(
    tx: &mut Tx,
    tenant: &TenantId,
    ending: Vec<AssetRow>,
    remove_at: Timestamp,
    terms: &Terms,
    now: Timestamp,
    referring: &HashMap<AssetId, Referring>,
) -> Worked<Vec<AssetRecord>> {
    let held: Vec<_> = ending.iter().map(|asset| asset.record.blob).collect();
    let mut changed = Vec::with_capacity(ending.len());
    for mut asset in ending {
        asset.record.state = AssetState::Expired { at: now };
        asset.record.revision += 1;
        let tombstone = until(&asset, referring, terms).instant().map(up);
        changed.push((asset, tombstone));
    }
    assets::put(tx, tenant, &changed).await?;
    blobs::release(tx, tenant, &held, remove_at).await?;
    Ok(changed.into_iter().map(|(asset, _)| asset.record).collect())
}

/// Keeps the runs that reference these assets as they are until the transition is over. It does not wait for one that another call is
/// changing, but has the transition done again: two that waited for each other would else be a deadlock.
async fn fix_runs(
    tx: &mut Tx,
    tenant: &TenantId,
    ending: &[AssetId],
    referring: &HashMap<AssetId, Referring>,
) -> Worked<()> {
    let of = |id| referring.get(id).into_iter().flatten();
    let runs: HashSet<&str> = ending.iter().flat_map(of).map(|(run, _)| run.as_str()).collect();
    if !runs.is_empty() {
        let runs: Vec<&str> = runs.into_iter().collect();
        sql::RUNS_SHARE.run().bind(tenant.as_str()).bind(runs).execute(tx.on()).await?;
    }
    Ok(())
}

/// Until when the row stays as it is: a live asset until its floor, a dead one until its tombstone goes.
fn until(asset: &AssetRow, referring: &HashMap<AssetId, Referring>, terms: &Terms) -> Until {
    let record = &asset.record;
    let ends = referring.get(&record.id).into_iter().flatten().map(|(_, end)| *end);
    match record.state {
        AssetState::Live => floor(record.created_at, record.asked_until, ends, terms).until,
        AssetState::Expired { at } | AssetState::Erased { at } => tombstone(at, ends, terms),
    }
}

/// The runs that reference each of these assets.
async fn referring(tx: &mut Tx, tenant: &TenantId, assets: &[AssetRow]) -> Worked<HashMap<AssetId, Referring>> {
    let mut referring: HashMap<AssetId, Referring> = HashMap::new();
    if assets.is_empty() {
        return Ok(referring);
    }
    let query = sql::REFS_OF.rows().bind(tenant.as_str()).bind(names(assets));
    let rows: Vec<(Vec<u8>, String, Option<i64>, bool)> = query.fetch_all(tx.on()).await?;
    for (asset, run, at, default) in rows {
        referring.entry(asset_id(&asset)?).or_default().push((run_id(&run)?, run_end(at, default)));
    }
    Ok(referring)
}

fn names(assets: &[AssetRow]) -> Vec<Vec<u8>> {
    assets.iter().map(|asset| asset.record.id.to_bytes().to_vec()).collect()
}
