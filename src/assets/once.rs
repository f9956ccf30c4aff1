//! Equal bytes of a run are one asset, whoever stores them for it: a scrub, or an artifact.
//!
//! Those that the run references already are found by their digest, and two requests at a time meet in an idempotency key made of it.
//! What was stored before something failed stays, referenced by the run; whoever comes again finds it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use mediakeep_storage::index::AssetQuery;
use mediakeep_storage::{AssetId, Digest, RunId, TenantId};
use tokio::sync::OwnedSemaphorePermit;

use super::AssetError;
use super::ingest::{Ingest, Start};
use super::library::MAX_PAGE;
use super::members::Members;
use crate::access::Principal;
use crate::app::App;

/// Another request that stores the same bytes is waited for so often, and so long each time.
const WAITS: u32 = 100;
const WAIT: Duration = Duration::from_millis(100);

/// Bytes that were weighed before they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weighed {
    /// How many.
    pub bytes: u64,
    /// Their digest.
    pub sha256: Digest,
}

/// Which of these bytes a living asset of the run has: the oldest of them.
pub async fn known(
    app: &App,
    tenant: &TenantId,
    run: &RunId,
    wanted: impl Iterator<Item = Digest>,
) -> Result<HashMap<Digest, AssetId>, AssetError> {
    let (mut there, mut found) = (BTreeSet::new(), HashMap::new());
    for sha256 in wanted {
        if !there.contains(&sha256) && app.index.blob_of(tenant, &sha256).await?.is_some() {
            there.insert(sha256);
        }
    }
    let live = Some("live".to_owned());
    let mut query = AssetQuery { run: Some(run.clone()), state: live, limit: MAX_PAGE, ..AssetQuery::default() };
    while found.len() < there.len() {
        let page = app.index.page(tenant, &query, &app.terms(tenant)).await?;
        let Some(last) = page.last() else {
            break;
        };
        query.after = Some(last.record.id);
        for view in page.iter().filter(|view| !view.floor.until.is_past(app.now())) {
            if there.contains(&view.record.sha256) {
                found.entry(view.record.sha256).or_insert(view.record.id);
            }
        }
    }
    Ok(found)
}

/// Who stores bytes for a run.
#[derive(Debug)]
pub struct Keeper<'a> {
    /// The parts.
    pub app: &'a Arc<App>,
    /// Whose assets they become.
    pub caller: &'a Principal,
    /// The run.
    pub run: &'a RunId,
    /// The place among the tenant's uploads that the caller has; without one each upload takes its own.
    pub slot: Option<Arc<OwnedSemaphorePermit>>,
}

impl Keeper<'_> {
    /// Stores the bytes that `feed` gives, or finds what another request has just made of the same; says which asset that is, and whether
    /// it was made now.
    pub async fn keep<E: From<AssetError>>(
        &self,
        weighed: Weighed,
        members: &Members,
        mut feed: impl AsyncFnMut(&mut Ingest) -> Result<(), E>,
    ) -> Result<(AssetId, bool), E> {
        // No caller's key has a colon.
        let mut key = Some(format!("scrub:{}", weighed.sha256));
        for _ in 0..WAITS {
            let mut ingest = self.begin(weighed, key.clone()).await?;
            if let Err(error) = feed(&mut ingest).await {
                ingest.abandon().await;
                return Err(error);
            }
            match ingest.finish(members.clone()).await {
                Ok(ingested) if ingested.view.record.is_live() => {
                    return Ok((ingested.view.record.id, !ingested.replayed));
                }
                Err(AssetError::IdempotencyInFlight) => tokio::time::sleep(WAIT).await,
                // What the key made is over, or was said to be something else: then it may be there by now all the same.
                Ok(_) | Err(AssetError::IdempotencyMismatch) => {
                    let wanted = std::iter::once(weighed.sha256);
                    let known = known(self.app, &self.caller.tenant, self.run, wanted).await?;
                    if let Some(asset) = known.get(&weighed.sha256) {
                        return Ok((*asset, false));
                    }
                    key = None;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(AssetError::IdempotencyInFlight.into())
    }

    async fn begin(&self, weighed: Weighed, idempotency_key: Option<String>) -> Result<Ingest, AssetError> {
        let start = Start {
            principal: self.caller.clone(),
            run: Some(self.run.clone()),
            idempotency_key,
            announced: Some(weighed.bytes),
            at_most: Some(weighed.bytes),
            from: None,
        };
        match &self.slot {
            Some(slot) => Ingest::begin_at(self.app, start, slot.clone()).await,
            None => Ingest::begin(self.app, start).await,
        }
    }
}
