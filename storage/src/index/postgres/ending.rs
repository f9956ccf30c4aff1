//! The end of assets: what is due, what the sweep does about it, and what an owner may.
//!
//! An asset ends because every run that keeps it has ended. So that none of them is extended meanwhile, with the caller told so, their
//! rows are locked for sharing until the asset's end is committed ([`fix_runs`]): that the database can put the two in an order is
//! not enough, it has to be the order in which callers heard of them. The same lock keeps holds off a run while an asset of it ends or
//! is erased; a hold on the asset itself is written to the row that its end writes.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;

use super::failed::Worked;
use super::looks::put_run_look;
use super::rows::{AssetRow, Keeping, RunRow, asset_id, down, limited, read_stake, run_id, up};
use super::tx::Tx;
use super::{artifacts, assets, blobs, erasing, runs, sql, usage};
use crate::audit::AuditEvent;
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::{Deleted, Look, LookAt, Settlement, expiry_event};
use crate::record::{AssetRecord, AssetState, Owed};
use crate::retention::{Next, Stake, Terms, Until, after, next};

/// How long a call waits that found its look in the hands of another: it is about to be done there, and asking at once is idle.
const BUSY: Duration = Duration::from_millis(10);

/// What one call of the sweep goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sweep<'a> {
    pub(super) terms: &'a Terms,
    pub(super) principal: &'a str,
    pub(super) now: Timestamp,
}

/// The runs that reference an asset, newest reference first, and what each does for it.
#[derive(Debug, Default)]
pub(super) struct Referring {
    runs: Vec<RunId>,
    stakes: Vec<Stake>,
}

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
    let (end, until) = (row.stake().until(), row.stake().keeps(sweep.terms));
    if !until.is_past(sweep.now) {
        // The end has moved, or the grace has been raised, since the look was placed.
        put_run_look(tx, tenant, &row, until.instant().map(up), None).await?;
        return Ok(moved_on());
    }
    let mut page = page_of(tx, tenant, &row, limit).await?;
    let gone = match page.len() < limit {
        true => artifacts::end(tx, tenant, &row, limit, sweep).await?,
        false => Vec::new(),
    };
    let done = page.len() < limit && gone.len() < limit;
    let look = row.look.filter(|_| !done);
    let walked = page.last().map(|asset| asset.record.id).or(row.walked).filter(|_| !done);
    put_run_look(tx, tenant, &row, look, walked).await?;

    let mut erased = Vec::new();
    if row.is_erased() {
        (erased, page) = erasing::erase_left(tx, tenant, page, sweep).await?;
    }
    let (living, dead): (Vec<_>, Vec<_>) = page.into_iter().partition(|asset| asset.record.is_live());
    bury(tx, tenant, dead, end.plus(sweep.terms.tombstone_record), sweep).await?;
    let looked_at = living.len();
    let expired = end_past(tx, tenant, living, sweep).await?;
    Ok(Settlement { kept: looked_at - expired.len(), expired, erased, artifacts: gone, done, ..moved_on() })
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
    living.retain(|asset| asset.holds == 0);
    let kept = kept_by_others(tx, tenant, &living, sweep).await?;
    living.retain(|asset| !kept.contains(&asset.record.id));
    let referring = referring(tx, tenant, &living).await?;
    let (mut ending, mut looks) = (Vec::new(), Vec::new());
    for asset in living {
        let until = next_of(&asset, &referring, sweep.terms).until();
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

/// Those that a run without end keeps, or a held one, or one whose own walk is yet to come. The newest run comes first and nearly always does, so an
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
    let query = sql::REFS_KEEP.rows().bind(tenant.as_str()).bind(names(living)).bind(past).bind(down(sweep.now));
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
        if let Some(at) = next_of(&asset, &referring, sweep.terms).until().instant().map(up) {
            looks.push((asset.record.id, asset.look, Some(asset.look.map_or(at, |look| look.min(at)))));
        }
    }
    assets::put_looks(tx, tenant, &looks).await
}

async fn settle_asset(tx: &mut Tx, row: AssetRow, sweep: Sweep<'_>) -> Worked<Settlement> {
    let (tenant, id, live) = (row.record.tenant.clone(), row.record.id, row.record.is_live());
    let referring = referring(tx, &tenant, std::slice::from_ref(&row)).await?;
    let next = next_of(&row, &referring, sweep.terms);
    let mut settlement = moved_on();
    if !next.until().is_past(sweep.now) {
        assets::put_looks(tx, &tenant, &[(id, row.look, next.until().instant().map(up))]).await?;
        settlement.kept = usize::from(live);
        return Ok(settlement);
    }
    match next {
        Next::Expire(_) => settlement.expired = expire(tx, &tenant, vec![row], &referring, sweep).await?,
        Next::Erase(_) => {
            settlement.erased = erasing::erase_with_runs(tx, &tenant, vec![row], &referring, sweep).await?
        }
        Next::Drop(_) => {
            fix_runs(tx, &tenant, &[id], &referring).await?;
            settlement.unquoted = drop_row(tx, &row).await?;
            tx.owe(&tenant, Owed::Dropped { id });
            settlement.dropped.push(id);
        }
    }
    Ok(settlement)
}

async fn drop_row(tx: &mut Tx, row: &AssetRow) -> Worked<Vec<(RunId, AssetId)>> {
    let (tenant, id) = (&row.record.tenant, row.record.id);
    assets::put_looks(tx, tenant, &[(id, row.look, None)]).await?;
    let runs: Vec<(String,)> =
        sql::REFS_DROP.rows().bind(tenant.as_str()).bind(id.to_bytes()).fetch_all(tx.on()).await?;
    erasing::drop_same(tx, tenant, std::slice::from_ref(row)).await?;
    sql::ASSET_DROP.run().bind(tenant.as_str()).bind(id.to_bytes()).execute(tx.on()).await?;
    let mut unquoted = Vec::new();
    for (run,) in runs {
        let run = run_id(&run)?;
        tx.owe(tenant, Owed::Unquoted { run: run.clone(), id });
        unquoted.push((run, id));
    }
    unquoted.sort();
    Ok(unquoted)
}

/// Expires the asset if it is live and its floor is past, or erases it if that is what its runs want.
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
    let next = next_of(&row, &referring, sweep.terms);
    if !next.until().is_past(sweep.now) {
        return Ok(Some(row.record));
    }
    let mut ended = match next {
        Next::Erase(_) => erasing::erase_with_runs(tx, tenant, vec![row], &referring, sweep).await?,
        _ => expire(tx, tenant, vec![row], &referring, sweep).await?,
    };
    Ok(ended.pop())
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
    let keeping = assets::keeping(tx, tenant, id).await?;
    if keeping.is_held() && !row.is_erased() {
        return Ok(Deleted::Held(keeping.holds));
    }
    if !row.record.is_live() {
        blobs::hurry(tx, tenant, row.record.blob, now).await?;
        return Ok(Deleted::WasGone(row.record));
    }
    if keeping.floor(terms).protected.is_some_and(|until| !until.is_past(now)) {
        return Ok(Deleted::Protected(keeping.view(row.record, terms)));
    }
    let referring = HashMap::from([(id, Referring::from(keeping))]);
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
    usage::discharge(tx, tenant, &ending).await?;
    let mut changed = Vec::with_capacity(ending.len());
    for mut asset in ending {
        asset.record.state = AssetState::Expired { at: now };
        asset.record.revision += 1;
        tx.owe(tenant, Owed::asset(&asset.record));
        let tombstone = next_of(&asset, referring, terms).until().instant().map(up);
        changed.push((asset, tombstone));
    }
    assets::put(tx, tenant, &changed).await?;
    blobs::release(tx, tenant, &held, remove_at).await?;
    Ok(changed.into_iter().map(|(asset, _)| asset.record).collect())
}

/// Keeps the runs that reference these assets as they are until the transition is over. It does not wait for one that another call is
/// changing, but has the transition done again: two that waited for each other would else be a deadlock.
pub(super) async fn fix_runs(
    tx: &mut Tx,
    tenant: &TenantId,
    ending: &[AssetId],
    referring: &HashMap<AssetId, Referring>,
) -> Worked<()> {
    let of = |id| referring.get(id).into_iter().flat_map(|referring| &referring.runs);
    let runs: HashSet<&str> = ending.iter().flat_map(of).map(|run| run.as_str()).collect();
    if !runs.is_empty() {
        let runs: Vec<&str> = runs.into_iter().collect();
        sql::RUNS_SHARE.run().bind(tenant.as_str()).bind(runs).execute(tx.on()).await?;
    }
    Ok(())
}

/// What comes next in the asset's life.
pub(super) fn next_of(asset: &AssetRow, referring: &HashMap<AssetId, Referring>, terms: &Terms) -> Next {
    let stakes = referring.get(&asset.record.id).map_or(&[][..], |referring| &referring.stakes);
    next(&asset.record.state, asset.own(), stakes, terms)
}

/// The same of one whose runs are yet to be read.
pub(super) async fn comes_next(tx: &mut Tx, asset: &AssetRow, terms: &Terms) -> Worked<Next> {
    let referring = referring(tx, &asset.record.tenant, std::slice::from_ref(asset)).await?;
    Ok(next_of(asset, &referring, terms))
}

type Reference = (Vec<u8>, String, Option<i64>, bool, Option<i64>, bool);

/// The runs that reference each of these assets.
pub(super) async fn referring(
    tx: &mut Tx,
    tenant: &TenantId,
    assets: &[AssetRow],
) -> Worked<HashMap<AssetId, Referring>> {
    let mut referring: HashMap<AssetId, Referring> = HashMap::new();
    if assets.is_empty() {
        return Ok(referring);
    }
    let query = sql::REFS_OF.rows().bind(tenant.as_str()).bind(names(assets));
    let rows: Vec<Reference> = query.fetch_all(tx.on()).await?;
    for (asset, run, at, default, erased_at, held) in rows {
        let of_asset = referring.entry(asset_id(&asset)?).or_default();
        of_asset.runs.push(run_id(&run)?);
        of_asset.stakes.push(read_stake(at, default, erased_at, held));
    }
    Ok(referring)
}

impl From<Keeping> for Referring {
    fn from(keeping: Keeping) -> Self {
        let (runs, stakes) = keeping.into_runs();
        Self { runs, stakes }
    }
}

fn names(assets: &[AssetRow]) -> Vec<Vec<u8>> {
    assets.iter().map(|asset| asset.record.id.to_bytes().to_vec()).collect()
}
