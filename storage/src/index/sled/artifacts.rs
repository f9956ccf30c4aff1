//! Artifacts: rows of their runs, and which assets they name.

use jiff::Timestamp;

use super::draft::{Draft, Rows};
use super::ending::Sweep;
use super::keys::{Key, Parts};
use super::rows::RunRow;
use super::runs::{take_up, touch};
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, RunId, TenantId};
use crate::index::codec::decode;
use crate::index::{NewArtifact, PutArtifact, artifact_end_event};
use crate::record::{ArtifactRecord, Owed, ReferenceRecord};
use crate::retention::Terms;

/// Writes the artifact, and has its run reference what it names.
pub(super) fn put(
    draft: &mut Draft,
    tenant: &TenantId,
    new: &NewArtifact,
    terms: &Terms,
    audit: AuditEvent,
    now: Timestamp,
) -> Result<PutArtifact, StorageError> {
    let mut unknown = Vec::new();
    for (position, id) in new.assets.iter().enumerate() {
        if draft.rows().get(&Key::asset(tenant, *id))?.is_none() {
            unknown.push(position);
        }
    }
    if !unknown.is_empty() {
        return Ok(PutArtifact::Unknown(unknown));
    }
    if draft.rows().run(tenant, &new.run)?.is_some_and(|row| row.is_erased()) {
        return Ok(PutArtifact::RunErased);
    }
    let row = touch(draft, tenant, &new.run, terms, now)?;
    take_up(draft, tenant, &row, &new.assets, terms, now)?;
    let number = draft.next_artifact(tenant, &new.run)?;
    let before = draft.rows().artifact(tenant, &new.run, &new.id)?;
    let artifact = new.record(before.as_ref(), number, now);
    write(draft, tenant, before.as_ref(), &artifact);
    let row = see_to_its_end(draft, tenant, row, terms);
    draft.audit(tenant, audit);
    draft.owe(tenant, Owed::run(&row.record));
    if !artifact.assets.is_empty() {
        draft.owe(tenant, Owed::References(ReferenceRecord::new(&new.run, &artifact.assets, now)));
    }
    draft.owe(tenant, Owed::artifact(&artifact));
    let replaced = before.is_some();
    Ok(PutArtifact::Done { artifact: Box::new(artifact), run: Box::new(row.record), replaced })
}

fn write(draft: &mut Draft, tenant: &TenantId, before: Option<&ArtifactRecord>, artifact: &ArtifactRecord) {
    let ArtifactRecord { run, id, .. } = artifact;
    for asset in before.into_iter().flat_map(|before| &before.assets).filter(|one| !artifact.assets.contains(one)) {
        draft.delete(Key::asset_artifact(tenant, *asset, run, id));
    }
    for asset in &artifact.assets {
        draft.mark(Key::asset_artifact(tenant, *asset, run, id));
    }
    draft.put(Key::artifact(tenant, run, id), artifact);
}

/// A run that has been looked at for its end is looked at once more: it has an artifact now, which ends with it.
fn see_to_its_end(draft: &mut Draft, tenant: &TenantId, row: RunRow, terms: &Terms) -> RunRow {
    match row.stake().keeps(terms).instant() {
        Some(at) if row.look.is_none() => draft.put_run_look(tenant, row, Some(at)),
        _ => row,
    }
}

/// The artifact, unless its run was erased.
pub(super) fn find(
    rows: Rows<'_>,
    tenant: &TenantId,
    run: &RunId,
    id: &ArtifactId,
) -> Result<Option<ArtifactRecord>, StorageError> {
    match rows.run(tenant, run)? {
        Some(row) if !row.is_erased() => rows.artifact(tenant, run, id),
        _ => Ok(None),
    }
}

/// The first artifact that names the asset, of a run that was not erased.
pub(super) fn naming(
    rows: Rows<'_>,
    tenant: &TenantId,
    asset: AssetId,
) -> Result<Option<(RunId, ArtifactId)>, StorageError> {
    let prefix = Key::artifacts_naming(tenant, asset);
    let length = prefix.as_bytes().len();
    for row in rows.scan(&prefix) {
        let (key, _) = row?;
        // What is behind the prefix reads as the parts of a key do, which begin behind a space of one byte.
        let mut parts = Parts::of(&key[length - 1..]);
        let (run, id): (RunId, ArtifactId) = (parts.name()?, parts.name()?);
        if !rows.referencing(tenant, &run)?.is_erased() {
            return Ok(Some((run, id)));
        }
    }
    Ok(None)
}

/// Ends artifacts of a run that keeps nothing any more; at most so many.
pub(super) fn end(
    draft: &mut Draft,
    tenant: &TenantId,
    row: &RunRow,
    limit: usize,
    sweep: Sweep<'_>,
) -> Result<Vec<(ArtifactId, u64)>, StorageError> {
    let run = &row.record.id;
    let ending = draft.rows().scan(&Key::artifacts_of(tenant, run)).take(limit);
    let ending: Vec<ArtifactRecord> = ending.map(|row| decode("artifact", &row?.1)).collect::<Result<_, _>>()?;
    let mut ended = Vec::with_capacity(ending.len());
    for ArtifactRecord { id, assets, .. } in ending {
        let number = draft.next_artifact(tenant, run)?;
        for asset in assets {
            draft.delete(Key::asset_artifact(tenant, asset, run, &id));
        }
        draft.delete(Key::artifact(tenant, run, &id));
        draft.audit(tenant, artifact_end_event(&row.record, &id, sweep.principal, sweep.now));
        draft.owe(tenant, Owed::Artifact { run: run.clone(), id: id.clone(), number });
        ended.push((id, number));
    }
    Ok(ended)
}

/// Writes an artifact that the store has kept, unless it is there. That of an erased run goes from the store too.
pub(super) fn restore(
    draft: &mut Draft,
    tenant: &TenantId,
    record: &ArtifactRecord,
    row: RunRow,
    terms: &Terms,
) -> Result<(), StorageError> {
    let ArtifactRecord { run, id, number, .. } = record;
    if row.is_erased() {
        let number = number + 1;
        draft.raise_artifact_number(tenant, run, number)?;
        draft.owe(tenant, Owed::Artifact { run: run.clone(), id: id.clone(), number });
        return Ok(());
    }
    draft.raise_artifact_number(tenant, run, *number)?;
    if draft.rows().artifact(tenant, run, id)?.is_none() {
        write(draft, tenant, None, record);
        see_to_its_end(draft, tenant, row, terms);
    }
    Ok(())
}

impl Rows<'_> {
    fn artifact(self, tenant: &TenantId, run: &RunId, id: &ArtifactId) -> Result<Option<ArtifactRecord>, StorageError> {
        self.read("artifact", &Key::artifact(tenant, run, id))
    }
}

impl Draft {
    /// The next number of the run's artifacts.
    fn next_artifact(&mut self, tenant: &TenantId, run: &RunId) -> Result<u64, StorageError> {
        let next = self.artifact_number(tenant, run)? + 1;
        self.put(Key::artifact_number(tenant, run), &next);
        Ok(next)
    }

    /// No number up to this one is given again.
    fn raise_artifact_number(&mut self, tenant: &TenantId, run: &RunId, least: u64) -> Result<(), StorageError> {
        if self.artifact_number(tenant, run)? < least {
            self.put(Key::artifact_number(tenant, run), &least);
        }
        Ok(())
    }

    fn artifact_number(&self, tenant: &TenantId, run: &RunId) -> Result<u64, StorageError> {
        Ok(self.rows().read("number of an artifact", &Key::artifact_number(tenant, run))?.unwrap_or(0))
    }
}
