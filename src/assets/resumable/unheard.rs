//! An upload of whose name nobody has heard yet.

use std::sync::Arc;
use std::time::Duration;

use mediakeep_storage::{TenantId, UploadId};
use tracing::warn;

use super::{Held, Refusal};
use crate::app::App;
use crate::assets::AssetError;

/// A lease that nobody renews lapses in less: so often, and so long each time, is it asked for.
const TRIES: u32 = 90;
const PAUSE: Duration = Duration::from_secs(1);

/// Ends its upload, lest it keep bytes and quota for a sender who cannot go on with it: unless that one is told, also when nobody waits for
/// the answer any more.
#[derive(Debug)]
pub struct Unheard {
    of: Option<(Arc<App>, TenantId, UploadId)>,
}

impl Unheard {
    /// Of an upload that has just been begun.
    pub fn of(app: &Arc<App>, tenant: &TenantId, id: UploadId) -> Self {
        Self { of: Some((app.clone(), tenant.clone(), id)) }
    }

    /// Its sender is told now.
    pub fn is_heard(mut self) {
        self.of = None;
    }

    /// Ends it; what was made of it stays.
    pub async fn end(mut self) {
        if let Some((app, tenant, id)) = self.of.take() {
            end(&app, &tenant, id).await;
        }
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if let (Some((app, tenant, id)), Ok(runtime)) = (self.of.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { end(&app, &tenant, id).await });
        }
    }
}

async fn end(app: &Arc<App>, tenant: &TenantId, id: UploadId) {
    for _ in 0..TRIES {
        let ended = match Held::take(app, tenant, id).await {
            Ok(held) => held.end().await,
            Err(error) => Err(error),
        };
        match ended {
            // Whoever wrote has not come to its end yet.
            Err(AssetError::Resumable(Refusal::Locked)) => tokio::time::sleep(PAUSE).await,
            Ok(()) | Err(AssetError::NotFound) => return,
            Err(error) => {
                warn!(error = %error, "upload {id}, of which its sender has not heard, was not ended; it expires: {error}");
                return;
            }
        }
    }
}
