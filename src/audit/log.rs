//! Reading the log: its rows, and where its chain stands.

use mediakeep_storage::audit::{AuditKind, AuditRow};
use mediakeep_storage::{AssetId, StorageError, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use super::chain::Place;
use crate::app::App;

/// The most rows that are looked at for one page: a filter that fits few of them costs no more, and the cursor goes on from there.
const MOST_LOOKED_AT: usize = 10_000;

/// Rows are read in steps of this size.
const STEP: usize = 1_000;

/// Which rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Behind this one.
    pub since: u64,
    /// Only of this type.
    pub kind: Option<AuditKind>,
    /// Only those that are about this asset.
    pub asset: Option<AssetId>,
    /// At most so many.
    pub limit: usize,
}

/// Some rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Oldest first.
    pub rows: Vec<AuditRow>,
    /// Behind which row to go on; `None`: there is no more now.
    pub next: Option<u64>,
}

/// Where a chain stands, for an auditor to keep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Whose chain.
    pub tenant: String,
    /// Where it ends.
    #[serde(flatten)]
    pub place: Place,
    /// When it was made.
    pub at: Timestamp,
}

/// The rows that fit, oldest first. A page may hold fewer than there are, or none, and still name where to go on.
pub async fn page(app: &App, tenant: &TenantId, query: &Query) -> Result<Page, StorageError> {
    let (mut rows, mut seen, mut looked_at) = (Vec::new(), query.since, 0);
    loop {
        let step = app.index.audit_rows(tenant, seen, STEP).await?;
        let is_last = step.len() < STEP;
        looked_at += step.len();
        for row in step {
            if rows.len() == query.limit {
                return Ok(Page { rows, next: Some(seen) });
            }
            seen = row.seq;
            if query.fits(&row) {
                rows.push(row);
            }
        }
        if is_last {
            return Ok(Page { rows, next: None });
        }
        if looked_at >= MOST_LOOKED_AT {
            return Ok(Page { rows, next: Some(seen) });
        }
    }
}

impl Query {
    fn fits(&self, row: &AuditRow) -> bool {
        self.kind.is_none_or(|kind| row.event.kind == kind)
            && self.asset.is_none_or(|asset| row.event.asset_id == Some(asset))
    }
}

/// Where the tenant's chain stands now.
pub async fn checkpoint(app: &App, tenant: &TenantId) -> Result<Checkpoint, StorageError> {
    let place = head(app, tenant).await?;
    Ok(Checkpoint { tenant: tenant.to_string(), place, at: app.now() })
}

/// The last row's place. Rows are numbered without gaps, so the last one is found by halving: some forty looks at a log of a million.
async fn head(app: &App, tenant: &TenantId) -> Result<Place, StorageError> {
    let behind = async |seq| Ok::<_, StorageError>(app.index.audit_rows(tenant, seq, 1).await?.pop());
    let Some(first) = behind(0).await? else {
        return Ok(Place::START);
    };
    // The last row known, and a number that none is behind.
    let (mut last, mut beyond) = (first, 1_u64);
    while let Some(row) = behind(beyond).await? {
        last = row;
        beyond = beyond.saturating_mul(2);
    }
    while last.seq < beyond {
        let middle = last.seq + (beyond - last.seq) / 2;
        match behind(middle).await? {
            Some(row) => last = row,
            None => beyond = middle,
        }
    }
    Ok(Place { seq: last.seq, hash: last.hash })
}
