//! What is left of uploads that are over, and the end of those that nobody went on with.

use mediakeep_storage::record::Doomed;
use mediakeep_storage::{StorageError, TenantId, Timestamp, UploadId};
use tracing::{info, warn};

use crate::app::App;
use crate::retention::sweep::remove_at_once;

/// So many parts are condemned at a time, and so many uploads looked at.
const STEP: usize = 256;

/// Looks at every upload that is due; says how many had expired.
pub async fn sweep(app: &App, now: Timestamp) -> Result<u64, StorageError> {
    let mut expired = 0;
    loop {
        let due = app.index.due_resumables(now, STEP).await?;
        let seen = due.len();
        for (tenant, id) in due {
            if app.is_stopping() {
                return Ok(expired);
            }
            if step_by_step(app, &tenant, id, now).await? {
                info!(tenant.id = %tenant, "upload {id} expired: nobody went on with it");
                expired += 1;
            }
        }
        // What is due again at the same instant waits for the next sweep.
        if seen < STEP {
            return Ok(expired);
        }
    }
}

/// Removes what an upload that is over has left; what cannot be removed, a sweep removes.
pub(super) async fn clear(app: &App, tenant: &TenantId, id: UploadId) {
    if let Err(error) = step_by_step(app, tenant, id, app.now()).await {
        warn!(error = %error, "the parts of upload {id} wait for the next sweep: {error}");
    }
}

async fn step_by_step(app: &App, tenant: &TenantId, id: UploadId, now: Timestamp) -> Result<bool, StorageError> {
    let mut expired = false;
    loop {
        let step = app.index.clear_resumable(tenant, id, STEP, now).await?;
        expired |= step.expired;
        for blob in step.condemned {
            remove_at_once(app, &Doomed { tenant: tenant.clone(), blob, asset: None }).await?;
        }
        if !step.more {
            return Ok(expired);
        }
    }
}
