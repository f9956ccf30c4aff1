//! Recovery records of artifacts.

use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::record::Owed;
use mediakeep_storage::{ArtifactId, RunId, TenantId};
use tracing::warn;

use crate::app::App;
use crate::assets::AssetError;

/// Writes the artifact beside the bytes after the transition of that number, or takes away what is there of it; and looks once more,
/// because whoever put or ended it since may have written before us.
pub async fn write_record(
    app: &App,
    tenant: &TenantId,
    run: &RunId,
    id: &ArtifactId,
    number: u64,
) -> Result<(), AssetError> {
    let of = RecordOf::Artifact(run, id);
    let mut seen = app.index.artifact(tenant, run, id).await?;
    loop {
        match &seen {
            Some(artifact) => {
                let json = serde_json::to_vec(artifact).map_err(|error| AssetError::Internal(error.to_string()))?;
                app.blobs.put_record(tenant, of, artifact.number, json).await?;
                app.blobs.remove_records(tenant, of, Some(artifact.number)).await?;
            }
            // What is put from now on has a higher number than any record that is there.
            None => app.blobs.remove_records(tenant, of, Some(number + 1)).await?,
        }
        let now = app.index.artifact(tenant, run, id).await?;
        if now.as_ref().map(|artifact| artifact.number) == seen.as_ref().map(|artifact| artifact.number) {
            app.paid.note(tenant, &Owed::Artifact { run: run.clone(), id: id.clone(), number });
            return Ok(());
        }
        seen = now;
    }
}

/// Takes away the record of an artifact that ended. Should that fail, it stays owed until the next sweep.
pub async fn forget(app: &App, tenant: &TenantId, run: &RunId, id: &ArtifactId, number: u64) {
    if let Err(error) = write_record(app, tenant, run, id, number).await {
        warn!(run.id = %run, error = %error, "the recovery record of an artifact that ended stays until the next sweep");
    }
}
