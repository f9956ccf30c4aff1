//! Index against store, both ways: a row without its bytes is a loss, bytes without a row are pending.
//!
//! Sizes are compared, digests are not. Blobs that are doomed or still being uploaded may be there or not.

use std::collections::HashSet;

use futures_util::TryStreamExt;
use mediakeep_storage::{BlobKey, StorageError, TenantId};

use crate::app::App;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Blobs that were looked at.
    pub blobs: u64,
    /// Rows whose bytes are not there.
    pub missing: Vec<(TenantId, BlobKey)>,
    /// Rows whose bytes are of another size.
    pub wrong_size: Vec<(TenantId, BlobKey)>,
    /// Live assets whose blob has no row, or is on its way out.
    pub unheld: Vec<(TenantId, BlobKey)>,
    /// Bytes without a row: an upload that was cut off, or strays.
    pub pending: u64,
}

impl Findings {
    /// Whether nothing is lost.
    pub fn is_clean(&self) -> bool {
        self.missing.is_empty() && self.wrong_size.is_empty() && self.unheld.is_empty()
    }
}

/// Rows are read in pages of this size.
const PAGE: usize = 1_000;

/// Compares the index with the store, both ways.
pub async fn verify(app: &App) -> Result<Findings, StorageError> {
    let mut findings = Findings::default();
    let (mut named, mut held) = (HashSet::new(), HashSet::new());
    let mut after = None;
    loop {
        let rows = app.index.blobs(after.clone(), PAGE).await?;
        let Some(last) = rows.last() else {
            break;
        };
        after = Some((last.tenant.clone(), last.blob));
        for row in rows {
            findings.blobs += 1;
            let name = (row.tenant.clone(), row.blob);
            if let (Some(bytes), false) = (row.bytes, row.doomed) {
                match app.blobs.size(&row.tenant, row.blob).await? {
                    None => findings.missing.push(name.clone()),
                    Some(found) if found != bytes => findings.wrong_size.push(name.clone()),
                    Some(_) => {}
                }
                held.insert(name.clone());
            }
            named.insert(name);
        }
    }
    findings.unheld = unheld(app, &held).await?;
    let mut stored = app.blobs.blobs();
    while let Some(blob) = stored.try_next().await? {
        if !named.contains(&(blob.tenant, blob.blob)) {
            findings.pending += 1;
        }
    }
    Ok(findings)
}

/// Blobs of live assets that no row holds.
async fn unheld(app: &App, held: &HashSet<(TenantId, BlobKey)>) -> Result<Vec<(TenantId, BlobKey)>, StorageError> {
    let (mut unheld, mut after) = (Vec::new(), None);
    loop {
        let records = app.index.assets(after.clone(), PAGE).await?;
        let Some(last) = records.last() else {
            return Ok(unheld);
        };
        after = Some((last.tenant.clone(), last.id));
        let lost = records.iter().filter(|record| record.is_live()).map(|record| (record.tenant.clone(), record.blob));
        unheld.extend(lost.filter(|name| !held.contains(name)));
    }
}
