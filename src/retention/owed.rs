//! Recovery records that a crash, or a store that failed, has left unwritten.

use futures_util::future::join_all;
use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::record::Owed;
use mediakeep_storage::{StorageError, TenantId, fault};
use tracing::warn;

use super::{artifacts, holds, runs};
use crate::app::App;
use crate::assets::AssetError;
use crate::assets::library::write_record;
use crate::assets::revocation::put_epoch;

/// So many are read at a time.
const STEP: usize = 256;

/// Tells the index what has been written since it was last told.
pub async fn note_paid(app: &App) -> Result<(), StorageError> {
    let paid = app.paid.take();
    if paid.is_empty() {
        return Ok(());
    }
    app.index.paid(paid).await
}

/// Writes every record that is owed; says how many. One that cannot be written stays owed, and keeps no other waiting.
pub async fn drain(app: &App) -> Result<u64, StorageError> {
    note_paid(app).await?;
    let (mut written, mut after) = (0, None);
    loop {
        let page = app.index.owed(after, STEP).await?;
        let Some((tenant, last)) = page.last() else {
            return Ok(written);
        };
        after = Some((tenant.clone(), last.name()));
        for some in page.chunks(app.blobs.side_by_side()) {
            for done in join_all(some.iter().map(|(tenant, owed)| pay(app, tenant, owed))).await {
                match done {
                    Ok(()) => written += 1,
                    Err(error) => {
                        warn!(error = %error, "a recovery record could not be written; the next sweep tries again: {error}");
                    }
                }
            }
        }
        note_paid(app).await?;
    }
}

async fn pay(app: &App, tenant: &TenantId, owed: &Owed) -> Result<(), AssetError> {
    fault::point("owed.paying");
    match owed {
        Owed::Asset { id, .. } | Owed::Dropped { id } => match app.index.find(tenant, *id).await? {
            Some(record) => write_record(app, &record).await?,
            None => app.blobs.remove_records(tenant, RecordOf::Asset(*id), None).await?,
        },
        Owed::Run { id, .. } => {
            if let Some(record) = app.index.find_run(tenant, id).await? {
                runs::put_recovery_record(app, tenant, &record).await?;
            }
        }
        Owed::Unquoted { run, .. } => runs::forget_references(app, tenant, run).await?,
        Owed::References(record) => {
            app.blobs.put_references(tenant, record).await?;
            // What it tells of may be over by now.
            runs::forget_references(app, tenant, &record.run).await?;
        }
        Owed::Hold { on, id, number } => holds::write_record(app, tenant, on, id, *number).await?,
        Owed::Artifact { run, id, number } => artifacts::write_record(app, tenant, run, id, *number).await?,
        Owed::Epoch(epoch) => put_epoch(app, tenant, *epoch).await?,
    }
    app.paid.note(tenant, owed);
    fault::point("owed.paid");
    Ok(())
}
