//! Index against store, both ways: a row without its bytes is a loss, bytes without a row are pending.
//!
//! Sizes are always compared. Digests are compared on demand: it costs a reading of everything. Blobs that are doomed or still being
//! uploaded may be there or not.
//!
//! A service may go on beside it, and what is looked at one after the other is not of one moment: an asset may end, or come, between two
//! looks. So whatever looks like a loss is looked up once more, and named only if its rows still say that the bytes are there: rows go
//! before bytes do and come after them, so bytes that were not there then are lost.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures_util::TryStreamExt;
use mediakeep_storage::blob::Stored;
use mediakeep_storage::quota::Counted;
use mediakeep_storage::{AssetRecord, BlobKey, Digest, StorageError, TenantId};
use ring::digest::{Context, SHA256};

use super::{leftovers, strays};
use crate::app::App;

/// How closely the bytes are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Their number is compared.
    Sizes,
    /// Every byte is read, and the digest compared.
    Digests,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Blobs that were looked at.
    pub blobs: u64,
    /// Rows whose bytes are not there.
    pub missing: Vec<(TenantId, BlobKey)>,
    /// Rows whose bytes are of another size.
    pub wrong_size: Vec<(TenantId, BlobKey)>,
    /// Rows whose bytes are others than were stored.
    pub wrong_digest: Vec<(TenantId, BlobKey)>,
    /// Live assets whose blob has no row, or is on its way out.
    pub unheld: Vec<(TenantId, BlobKey)>,
    /// Tenants whose sum of use is not what their rows come to.
    pub miscounted: Vec<(TenantId, Counted)>,
    /// Bytes without a row: an upload that was cut off, or strays.
    pub pending: Vec<(TenantId, BlobKey)>,
    /// Those of them that a recovery record names: an index that is made anew would have them.
    pub recorded: Vec<(TenantId, BlobKey)>,
}

impl Findings {
    /// Whether nothing is lost.
    pub fn is_clean(&self) -> bool {
        let blobs = [&self.missing, &self.wrong_size, &self.wrong_digest, &self.unheld];
        blobs.into_iter().all(|found| found.is_empty()) && self.miscounted.is_empty()
    }
}

/// Rows are read in pages of this size.
const PAGE: usize = 1_000;

/// Compares the index with the store, both ways.
pub async fn verify(app: &App, depth: Depth) -> Result<Findings, StorageError> {
    let mut findings = Findings::default();
    let sizes = Sizes::of_rows(app, &mut findings).await?;
    let mut read = HashSet::new();
    let mut tenants: BTreeSet<TenantId> = sizes.named.iter().map(|(tenant, _)| tenant.clone()).collect();
    let mut after = None;
    loop {
        let records = app.index.assets(after.clone(), PAGE).await?;
        let Some(last) = records.last() else {
            break;
        };
        after = Some((last.tenant.clone(), last.id));
        tenants.extend(records.iter().map(|record| record.tenant.clone()));
        for record in records.iter().filter(|record| record.is_live()) {
            let name = (record.tenant.clone(), record.blob);
            if !sizes.held.contains(&name) {
                if !is_held(app, &name).await? && still_lives(app, record).await? {
                    findings.unheld.push(name);
                }
            } else if depth == Depth::Digests && sizes.right.contains(&name) && read.insert(name.clone()) {
                let found = digest(app, record).await?;
                if found == Some(record.sha256) || !is_held(app, &name).await? {
                    continue;
                }
                let damaged = if found.is_some() { &mut findings.wrong_digest } else { &mut findings.missing };
                damaged.push(name);
            }
        }
    }
    findings.miscounted = miscounted(app, tenants).await?;
    let mut stored = app.blobs.blobs();
    while let Some(Stored { tenant, blob, .. }) = stored.try_next().await? {
        let name = (tenant, blob);
        if !sizes.named.contains(&name) && is_stray(app, &name).await? {
            findings.pending.push(name);
        }
    }
    findings.recorded = recorded(app, &findings.pending).await?;
    Ok(findings)
}

/// Those of the blobs without a row that a recovery record names.
async fn recorded(app: &App, pending: &[(TenantId, BlobKey)]) -> Result<Vec<(TenantId, BlobKey)>, StorageError> {
    let mut of_tenants = BTreeMap::<TenantId, Vec<BlobKey>>::new();
    for (tenant, blob) in pending {
        of_tenants.entry(tenant.clone()).or_default().push(*blob);
    }
    let mut found = Vec::new();
    for (tenant, blobs) in of_tenants {
        let named = strays::sort(app, &tenant, blobs).await?.named;
        found.extend(named.into_iter().map(|blob| (tenant.clone(), blob)));
    }
    Ok(found)
}

/// Whether the blob has no row and is there all the same: of one that has gone since it was listed the bytes went first.
async fn is_stray(app: &App, (tenant, blob): &(TenantId, BlobKey)) -> Result<bool, StorageError> {
    Ok(leftovers::row(&*app.index, tenant, *blob).await?.is_none() && app.blobs.size(tenant, *blob).await?.is_some())
}

/// Whether the index says now that the blob's bytes are there.
async fn is_held(app: &App, (tenant, blob): &(TenantId, BlobKey)) -> Result<bool, StorageError> {
    let row = leftovers::row(&*app.index, tenant, *blob).await?;
    Ok(row.is_some_and(|row| row.bytes.is_some() && !row.doomed))
}

/// Whether the asset lives on, of the same blob.
async fn still_lives(app: &App, before: &AssetRecord) -> Result<bool, StorageError> {
    let now = app.index.find(&before.tenant, before.id).await?;
    Ok(now.is_some_and(|now| now.is_live() && now.blob == before.blob))
}

/// Those of the tenants whose sum of use is wrong.
async fn miscounted(app: &App, tenants: BTreeSet<TenantId>) -> Result<Vec<(TenantId, Counted)>, StorageError> {
    let mut found = Vec::new();
    for tenant in tenants {
        let counted = app.index.counted_usage(&tenant).await?;
        if counted.kept != counted.counted {
            found.push((tenant, counted));
        }
    }
    Ok(found)
}

/// The blobs that the index names, and what a look at their sizes has found.
#[derive(Debug, Default)]
struct Sizes {
    named: HashSet<(TenantId, BlobKey)>,
    held: HashSet<(TenantId, BlobKey)>,
    right: HashSet<(TenantId, BlobKey)>,
}

impl Sizes {
    async fn of_rows(app: &App, findings: &mut Findings) -> Result<Self, StorageError> {
        let mut sizes = Self::default();
        let mut after = None;
        loop {
            let rows = app.index.blobs(after.clone(), PAGE).await?;
            let Some(last) = rows.last() else {
                return Ok(sizes);
            };
            after = Some((last.tenant.clone(), last.blob));
            for row in rows {
                findings.blobs += 1;
                let name = (row.tenant.clone(), row.blob);
                if let (Some(bytes), false) = (row.bytes, row.doomed) {
                    let found = app.blobs.size(&row.tenant, row.blob).await?;
                    if found == Some(bytes) {
                        sizes.right.insert(name.clone());
                    } else if is_held(app, &name).await? {
                        let lost = if found.is_some() { &mut findings.wrong_size } else { &mut findings.missing };
                        lost.push(name.clone());
                    }
                    sizes.held.insert(name.clone());
                }
                sizes.named.insert(name);
            }
        }
    }
}

/// The digest of the asset's bytes as they lie in the store now; `None` if they have gone meanwhile.
pub(super) async fn digest(app: &App, record: &AssetRecord) -> Result<Option<Digest>, StorageError> {
    let blob = match app.blobs.open_blob(&record.tenant, record.blob, record.bytes).await {
        Ok(blob) => blob,
        Err(_) if app.blobs.size(&record.tenant, record.blob).await?.is_none() => return Ok(None),
        Err(error) => return Err(error),
    };
    let (mut hash, mut bytes) = (Context::new(&SHA256), blob.stream(0..record.bytes));
    loop {
        match bytes.try_next().await {
            Ok(Some(chunk)) => hash.update(&chunk),
            Ok(None) => return Ok(hash.finish().as_ref().try_into().ok().map(Digest)),
            Err(_) if app.blobs.size(&record.tenant, record.blob).await?.is_none() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}
