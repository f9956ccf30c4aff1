//! Artifacts: rows of their runs, and which assets they name.
//!
//! Each putting counts in the run's row, and so locks it first: it meets the walk that ends the run's artifacts, and an erasure, there.

use jiff::Timestamp;

use super::PostgresIndex;
use super::ending::Sweep;
use super::failed::Worked;
use super::looks::put_run_look;
use super::rows::{RunRow, counted, limited, number, run_id, up};
use super::tx::{Tx, read};
use super::{runs, sql};
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, RunId, TenantId};
use crate::index::codec::{corrupt, decode, encode};
use crate::index::{NewArtifact, PutArtifact, artifact_end_event};
use crate::record::{ArtifactRecord, Owed, ReferenceRecord};
use crate::retention::Terms;

/// Writes the artifact, and has its run reference what it names.
pub(super) async fn put(
    tx: &mut Tx,
    tenant: &TenantId,
    new: &NewArtifact,
    terms: &Terms,
    audit: &AuditEvent,
    now: Timestamp,
) -> Worked<PutArtifact> {
    let row = runs::touch(tx, tenant, &new.run, terms, now).await?;
    let last = count(tx, tenant, &new.run, 1).await?;
    let there = runs::there(tx, tenant, &new.assets).await?;
    let unknown = |(position, id): (usize, &AssetId)| (!there.contains_key(id)).then_some(position);
    let unknown: Vec<usize> = new.assets.iter().enumerate().filter_map(unknown).collect();
    if !unknown.is_empty() {
        tx.undo();
        return Ok(PutArtifact::Unknown(unknown));
    }
    if row.is_erased() {
        tx.undo();
        return Ok(PutArtifact::RunErased);
    }
    if !there.is_empty() {
        runs::take_up(tx, tenant, &row, &there, terms, now).await?;
    }
    let before = row_of(tx, tenant, &new.run, &new.id).await?;
    let artifact = new.record(before.as_ref(), last, now);
    write(tx, tenant, before.as_ref(), &artifact).await?;
    see_to_its_end(tx, tenant, &row, terms).await?;
    tx.audit(tenant, audit.clone());
    tx.owe(tenant, Owed::run(&row.record));
    if !artifact.assets.is_empty() {
        tx.owe(tenant, Owed::References(ReferenceRecord::new(&new.run, &artifact.assets, now)));
    }
    tx.owe(tenant, Owed::artifact(&artifact));
    let replaced = before.is_some();
    Ok(PutArtifact::Done { artifact: Box::new(artifact), run: Box::new(row.record), replaced })
}

/// Counts so many changes of the run's artifacts; says the number of the last.
async fn count(tx: &mut Tx, tenant: &TenantId, run: &RunId, changes: usize) -> Worked<u64> {
    let query = sql::ARTIFACTS_COUNT.rows().bind(tenant.as_str()).bind(run.as_str()).bind(limited(changes));
    let (last,): (i64,) = query.fetch_one(tx.on()).await?;
    Ok(counted(last))
}

async fn row_of(tx: &mut Tx, tenant: &TenantId, run: &RunId, id: &ArtifactId) -> Worked<Option<ArtifactRecord>> {
    let query = sql::ARTIFACT_ROW.rows().bind(tenant.as_str()).bind(run.as_str()).bind(id.as_str());
    let row: Option<(Vec<u8>,)> = query.fetch_optional(tx.on()).await?;
    Ok(row.map(|(record,)| decode("artifact", &record)).transpose()?)
}

async fn write(
    tx: &mut Tx,
    tenant: &TenantId,
    before: Option<&ArtifactRecord>,
    artifact: &ArtifactRecord,
) -> Worked<()> {
    let ArtifactRecord { run, id, .. } = artifact;
    if let Some(before) = before.filter(|before| before.assets != artifact.assets) {
        drop_names(tx, tenant, std::slice::from_ref(before)).await?;
    }
    let query = sql::ARTIFACT_PUT.run().bind(tenant.as_str()).bind(run.as_str()).bind(id.as_str());
    query.bind(encode(artifact)).execute(tx.on()).await?;
    if !artifact.assets.is_empty() {
        let assets: Vec<_> = artifact.assets.iter().map(|asset| asset.to_bytes().to_vec()).collect();
        let query = sql::ARTIFACT_NAMES.run().bind(tenant.as_str()).bind(run.as_str()).bind(id.as_str());
        query.bind(assets).execute(tx.on()).await?;
    }
    Ok(())
}

/// These artifacts of one run name nothing any more.
async fn drop_names(tx: &mut Tx, tenant: &TenantId, artifacts: &[ArtifactRecord]) -> Worked<()> {
    let (mut runs, mut ids, mut assets) = (Vec::new(), Vec::new(), Vec::new());
    for artifact in artifacts {
        for asset in &artifact.assets {
            runs.push(artifact.run.to_string());
            ids.push(artifact.id.to_string());
            assets.push(asset.to_bytes().to_vec());
        }
    }
    if !assets.is_empty() {
        let query = sql::ARTIFACT_NAMES_DROP.run().bind(tenant.as_str()).bind(assets);
        query.bind(runs).bind(ids).execute(tx.on()).await?;
    }
    Ok(())
}

/// A run that has been looked at for its end is looked at once more: it has an artifact now, which ends with it.
async fn see_to_its_end(tx: &mut Tx, tenant: &TenantId, row: &RunRow, terms: &Terms) -> Worked<()> {
    match row.stake().keeps(terms).instant() {
        Some(at) if row.look.is_none() => put_run_look(tx, tenant, row, Some(up(at)), None).await,
        _ => Ok(()),
    }
}

/// The artifact, unless its run was erased.
pub(super) async fn find(
    index: &PostgresIndex,
    tenant: &TenantId,
    run: &RunId,
    id: &ArtifactId,
) -> Result<Option<ArtifactRecord>, StorageError> {
    let row: Option<(Vec<u8>,)> = read!(index, on => async {
        let query = sql::ARTIFACT_READ.rows().bind(tenant.as_str()).bind(run.as_str()).bind(id.as_str());
        Ok(query.fetch_optional(on).await?)
    })?;
    row.map(|(record,)| decode("artifact", &record)).transpose()
}

/// The first artifact that names the asset, of a run that was not erased.
pub(super) async fn naming(
    index: &PostgresIndex,
    tenant: &TenantId,
    asset: AssetId,
) -> Result<Option<(RunId, ArtifactId)>, StorageError> {
    let row: Option<(String, String)> = read!(index, on => async {
        let query = sql::ARTIFACT_NAMING.rows().bind(tenant.as_str()).bind(asset.to_bytes());
        Ok(query.fetch_optional(on).await?)
    })?;
    row.map(|(run, id)| Ok((run_id(&run)?, artifact_id(&id)?))).transpose()
}

fn artifact_id(raw: &str) -> Result<ArtifactId, StorageError> {
    ArtifactId::parse(raw).map_err(|error| corrupt(format!("artifact: {error}")))
}

/// Ends artifacts of a run that keeps nothing any more, and whose row is locked; at most so many.
pub(super) async fn end(
    tx: &mut Tx,
    tenant: &TenantId,
    row: &RunRow,
    limit: usize,
    sweep: Sweep<'_>,
) -> Worked<Vec<(ArtifactId, u64)>> {
    let run = &row.record.id;
    let query = sql::ARTIFACTS_OF_RUN.rows().bind(tenant.as_str()).bind(run.as_str()).bind(limited(limit));
    let rows: Vec<(Vec<u8>,)> = query.fetch_all(tx.on()).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ending: Vec<ArtifactRecord> =
        rows.iter().map(|(record,)| decode("artifact", record)).collect::<Result<_, _>>()?;
    let last = count(tx, tenant, run, ending.len()).await?;
    drop_names(tx, tenant, &ending).await?;
    let ids: Vec<_> = ending.iter().map(|artifact| artifact.id.to_string()).collect();
    sql::ARTIFACTS_DROP.run().bind(tenant.as_str()).bind(run.as_str()).bind(ids).execute(tx.on()).await?;
    let mut ended = Vec::with_capacity(ending.len());
    let before = last.saturating_sub(ending.len() as u64);
    for (ArtifactRecord { id, .. }, number) in ending.into_iter().zip(before + 1..) {
        tx.audit(tenant, artifact_end_event(&row.record, &id, sweep.principal, sweep.now));
        tx.owe(tenant, Owed::Artifact { run: run.clone(), id: id.clone(), number });
        ended.push((id, number));
    }
    Ok(ended)
}

/// Writes an artifact that the store has kept, unless it is there. That of an erased run goes from the store too.
pub(super) async fn restore(tx: &mut Tx, tenant: &TenantId, record: &ArtifactRecord, terms: &Terms) -> Worked<()> {
    let row = runs::touch(tx, tenant, &record.run, terms, record.put_at).await?;
    let least = if row.is_erased() { record.number + 1 } else { record.number };
    let query = sql::ARTIFACTS_COUNTED.run().bind(tenant.as_str()).bind(record.run.as_str()).bind(number(least));
    query.execute(tx.on()).await?;
    if row.is_erased() {
        tx.owe(tenant, Owed::Artifact { run: record.run.clone(), id: record.id.clone(), number: least });
        return Ok(());
    }
    if row_of(tx, tenant, &record.run, &record.id).await?.is_none() {
        write(tx, tenant, None, record).await?;
        see_to_its_end(tx, tenant, &row, terms).await?;
    }
    Ok(())
}
