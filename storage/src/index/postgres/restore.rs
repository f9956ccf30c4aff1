//! An index that is made anew from what the store has kept.

use jiff::Timestamp;

use super::failed::Worked;
use super::looks::new_run;
use super::rows::{AssetRow, up};
use super::tx::Tx;
use super::{artifacts, assets, blobs, holds, ingest, owed, runs, sql, urls};
use crate::ids::TenantId;
use crate::index::Restored;
use crate::record::{AssetRecord, AssetState, HoldOn};
use crate::retention::{Terms, after};

/// Writes them as if their transitions had happened; what is there already stays.
pub(super) async fn restore(
    tx: &mut Tx,
    tenant: &TenantId,
    what: &[Restored],
    terms: &Terms,
    now: Timestamp,
) -> Worked<()> {
    for one in what {
        restore_one(tx, tenant, one, terms, now).await?;
    }
    Ok(())
}

async fn restore_one(tx: &mut Tx, tenant: &TenantId, what: &Restored, terms: &Terms, now: Timestamp) -> Worked<()> {
    match what {
        Restored::Run(record) => new_run(tx, tenant, record.clone(), terms).await.map(drop),
        Restored::Asset { record, has_bytes } => {
            let record = AssetRecord { tenant: tenant.clone(), ..record.as_ref().clone() };
            if assets::lock(tx, tenant, record.id).await?.is_some() {
                return Ok(());
            }
            restore_asset(tx, record, *has_bytes, terms, now).await
        }
        Restored::References(quoted) => {
            let row = runs::touch(tx, tenant, &quoted.run, terms, quoted.at).await?;
            let there = runs::there(tx, tenant, &quoted.assets).await?;
            runs::take_up(tx, tenant, &row, &there, terms, now).await
        }
        Restored::Hold { on, hold } => {
            owed::raise_hold_number(tx, tenant, hold.number).await?;
            match on {
                HoldOn::Asset(id) => {
                    if let Some(row) = assets::lock(tx, tenant, *id).await? {
                        holds::put_on_asset(tx, row, hold).await?;
                    }
                }
                HoldOn::Run(id) => {
                    if let Some(row) = runs::find(tx, sql::RUN_LOCK, tenant, id).await? {
                        holds::put_on_run(tx, tenant, row, hold).await?;
                    }
                }
            }
            Ok(())
        }
        Restored::Artifact(record) => artifacts::restore(tx, tenant, record, terms).await,
        Restored::Epoch(epoch) => urls::restore_epoch(tx, tenant, *epoch).await,
        Restored::Revoked { url_id, keep_until } => assets::note_revoked(tx, tenant, url_id, *keep_until).await,
    }
}

async fn restore_asset(tx: &mut Tx, record: AssetRecord, has_bytes: bool, terms: &Terms, now: Timestamp) -> Worked<()> {
    match record.state {
        AssetState::Live => blobs::restore_live(tx, &record).await?,
        AssetState::Expired { .. } if has_bytes => {
            blobs::restore_dead(tx, &record, after(now, terms.tombstone_bytes)).await?;
        }
        AssetState::Erased { .. } if has_bytes => blobs::restore_dead(tx, &record, now).await?,
        _ => {}
    }
    // Made if nothing has kept its row. One that was erased stays as it is.
    let run = match &record.run {
        Some(run) => Some(runs::touch(tx, &record.tenant, run, terms, record.created_at).await?),
        None => None,
    };
    if record.is_live() {
        return ingest::insert_live(tx, record, None, run.as_ref(), terms, now).await.map(drop);
    }
    let next = ingest::new_keeping(tx, &record, run.as_ref()).await?.next(&record.state, terms);
    let look = next.until().instant().map(up);
    ingest::insert(tx, &AssetRow { record, look, holds: 0, claim: None }).await.map(drop)
}
