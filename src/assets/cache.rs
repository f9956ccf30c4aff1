//! Rows that were asked for a moment ago.
//!
//! An entry is used only while nothing has changed its asset since before the entry was read: every change, once it is in the index
//! and before it is answered, raises the number of the asset's stripe, and an entry knows the number under which its reading began.
//! So a revocation holds on the very next request of this process, whatever a slow reader puts into the cache meanwhile.
//! Where other processes share the index, none of them tells this one what it changed: an entry is used no longer than a revocation may
//! take to hold everywhere.
//! What moves the floors of assets without naming them, such as a run's new end, does the same to all of the tenant's entries.
//!
//! Of many who ask for a row that is not there one reads it, and the others wait for that: a row that a thousand readers want costs the
//! index one look in the time that it is trusted for.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mediakeep_storage::{AssetId, AssetView, TenantId};
use moka::sync::Cache;
use tokio::sync::Mutex;

use super::fetch::Delivery;

/// Rows that were asked for a moment ago.
#[derive(Debug)]
pub struct RowCache {
    entries: Cache<AssetId, Entry>,
    assets: Vec<AtomicU64>,
    tenants: Vec<AtomicU64>,
    /// Whose turn it is to read a row, by the asset's stripe.
    turns: Vec<Mutex<()>>,
    trusted: Option<Duration>,
}

#[derive(Debug, Clone)]
struct Entry {
    read_at: Reading,
    row: Arc<CachedRow>,
}

/// A row, and what it makes of a response.
#[derive(Debug)]
pub struct CachedRow {
    /// The row with its floor.
    pub view: AssetView,
    /// What its responses say.
    pub delivery: Delivery,
}

/// So many rows are some 40 MB at the most.
const ENTRIES: u64 = 16_384;

/// So many stripes: a change invalidates one row in as many that it has nothing to do with.
const STRIPES: usize = 4_096;

/// So long anybody waits for another's reading. An index that takes longer is asked by each, and each hears what it says.
const PATIENCE: Duration = Duration::from_secs(1);

/// A reading that has begun: whatever changes from here on makes its result unfit for the cache.
#[derive(Debug, Clone, Copy)]
struct Reading {
    asset: u64,
    tenant: u64,
    began: Instant,
}

impl RowCache {
    /// An empty one of an index that this process alone changes.
    pub fn new() -> Self {
        let stripes = || (0..STRIPES).map(|_| AtomicU64::new(0)).collect();
        let turns = (0..STRIPES).map(|_| Mutex::new(())).collect();
        Self { entries: Cache::new(ENTRIES), assets: stripes(), tenants: stripes(), turns, trusted: None }
    }

    /// An empty one of an index that other processes change too: what was read is trusted for so long.
    pub fn shared(trusted: Duration) -> Self {
        Self { trusted: Some(trusted), ..Self::new() }
    }

    /// The row, if nothing has changed since it was read; else as `read` says, which is asked by one of those who wait.
    pub async fn get_or_read<E>(
        &self,
        tenant: &TenantId,
        id: AssetId,
        read: impl AsyncFnOnce() -> Result<Option<CachedRow>, E>,
    ) -> Result<Option<Arc<CachedRow>>, E> {
        let mut found = self.get(tenant, id, Instant::now());
        let mut turn = None;
        if found.is_err() && self.trusted != Some(Duration::ZERO) {
            turn = tokio::time::timeout(PATIENCE, self.turns[stripe(id)].lock()).await.ok();
            // Whoever had the turn before has brought it, if it was the same row.
            found = self.get(tenant, id, Instant::now());
        }
        let reading = match found {
            Ok(row) => return Ok(Some(row)),
            Err(reading) => reading,
        };
        let row = read().await?.map(|row| self.put(reading, row));
        drop(turn);
        Ok(row)
    }

    /// The row, if it is there and nothing has changed since; else the permission to bring it.
    fn get(&self, tenant: &TenantId, id: AssetId, now: Instant) -> Result<Arc<CachedRow>, Reading> {
        let now = Reading {
            asset: self.stripe(id).load(Ordering::SeqCst),
            tenant: self.tenant_stripe(tenant).load(Ordering::SeqCst),
            began: now,
        };
        match self.entries.get(&id) {
            Some(entry) if self.holds(entry.read_at, now) && entry.row.view.record.tenant == *tenant => Ok(entry.row),
            _ => Err(now),
        }
    }

    /// Whether what was read then is still true, or true enough.
    fn holds(&self, then: Reading, now: Reading) -> bool {
        let unchanged = then.asset == now.asset && then.tenant == now.tenant;
        unchanged && self.trusted.is_none_or(|trusted| now.began - then.began < trusted)
    }

    /// Keeps a row that was read.
    fn put(&self, reading: Reading, row: CachedRow) -> Arc<CachedRow> {
        let row = Arc::new(row);
        let entry = Entry { read_at: reading, row: row.clone() };
        self.entries.insert(row.view.record.id, entry);
        row
    }

    /// Says that the asset has changed: to be called after the index has the change and before anybody is told.
    pub fn changed(&self, id: AssetId) {
        self.stripe(id).fetch_add(1, Ordering::SeqCst);
    }

    /// Says the same of whichever assets of the tenant: of all of them.
    pub fn floors_changed(&self, tenant: &TenantId) {
        self.tenant_stripe(tenant).fetch_add(1, Ordering::SeqCst);
    }

    fn stripe(&self, id: AssetId) -> &AtomicU64 {
        &self.assets[stripe(id)]
    }

    fn tenant_stripe(&self, tenant: &TenantId) -> &AtomicU64 {
        let mut hasher = DefaultHasher::new();
        tenant.hash(&mut hasher);
        &self.tenants[(hasher.finish() % STRIPES as u64) as usize]
    }
}

fn stripe(id: AssetId) -> usize {
    let bytes = id.to_bytes();
    // The last bytes of a UUIDv7 are chance.
    usize::from(u16::from_be_bytes([bytes[14], bytes[15]])) % STRIPES
}

impl Default for RowCache {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use bytes::Bytes;
    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use mediakeep_storage::record::{AssetState, DurableUrl, Labels, Origin};
    use mediakeep_storage::retention::{Floor, FloorSource, Until};
    use mediakeep_storage::{AssetRecord, BlobKey, Digest, Timestamp};
    use serde_json::json;

    use super::*;

    const LAG: Duration = Duration::from_secs(4);

    fn row() -> CachedRow {
        let record = AssetRecord {
            id: AssetId::parse("ast_01jc0000000000000000000000").expect("an asset"),
            tenant: TenantId::parse("acme").expect("a tenant"),
            run: None,
            kind: "other".into(),
            mime_type: "application/octet-stream".into(),
            declared_mime_type: None,
            bytes: 1,
            sha256: Digest([1; 32]),
            blob: BlobKey::generate(),
            facts: json!({}),
            labels: Labels::default(),
            origin: Origin::default(),
            created_at: Timestamp::UNIX_EPOCH,
            asked_until: None,
            durable: DurableUrl { kid: "k".into(), issued_at: 0, generation: 0 },
            state: AssetState::Live,
            revision: 1,
        };
        let floor = Floor { until: Until::Endless, source: FloorSource::Run, protected: None };
        let view = AssetView { record, floor, references: vec![], reference_count: 0, epoch: 0, holds: vec![] };
        let none = Bytes::new;
        let delivery = Delivery {
            content_type: none(),
            etag: none(),
            last_modified: none(),
            repr_digest: none(),
            security_policy: none(),
            disposition: none(),
            attachment: none(),
            is_safe_bare: false,
        };
        CachedRow { view, delivery }
    }

    /// Whether the cache gives a row at `asked` whose reading began at `read`.
    fn gives(cache: &RowCache, read: Instant, asked: Instant) -> bool {
        let row = row();
        let (tenant, id) = (row.view.record.tenant.clone(), row.view.record.id);
        cache.entries.invalidate_all();
        let reading = cache.get(&tenant, id, read).expect_err("nothing is there");
        cache.put(reading, row);
        cache.get(&tenant, id, asked).is_ok()
    }

    #[test]
    fn where_others_change_the_index_a_row_is_trusted_for_the_lag_and_no_longer() {
        let (cache, read) = (RowCache::shared(LAG), Instant::now());
        for (after, trusted) in [
            (Duration::ZERO, true),
            (LAG - Duration::from_nanos(1), true),
            (LAG, false),
            (LAG + Duration::from_secs(3600), false),
        ] {
            assert_eq!(gives(&cache, read, read + after), trusted, "{after:?}");
        }
    }

    #[test]
    fn where_nobody_else_changes_the_index_a_row_is_trusted_until_it_changes() {
        let (cache, read) = (RowCache::new(), Instant::now());
        assert!(gives(&cache, read, read + Duration::from_secs(3600)));

        let row = row();
        let (tenant, id) = (&row.view.record.tenant, row.view.record.id);
        for change in [&|| cache.changed(id), &|| cache.floors_changed(tenant)] as [&dyn Fn(); 2] {
            assert!(gives(&cache, read, read));
            change();
            assert!(cache.get(tenant, id, read).is_err());
        }
    }

    #[test]
    fn a_row_whose_reading_began_before_a_change_is_never_given() {
        let (cache, row, now) = (RowCache::new(), row(), Instant::now());
        let (tenant, id) = (row.view.record.tenant.clone(), row.view.record.id);
        let reading = cache.get(&tenant, id, now).expect_err("nothing is there");

        cache.changed(id);
        cache.put(reading, row);

        assert!(cache.get(&tenant, id, now).is_err());
    }

    #[tokio::test]
    async fn of_many_who_want_a_row_one_reads_it() {
        for (cache, right) in
            [(RowCache::new(), 1), (RowCache::shared(LAG), 1), (RowCache::shared(Duration::ZERO), 300)]
        {
            let (tenant, id, looks) = (TenantId::parse("acme").expect("a tenant"), row().view.record.id, Cell::new(0));
            let read = async || {
                looks.set(looks.get() + 1);
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(Some(row()))
            };

            let all = (0..300).map(async |_| cache.get_or_read(&tenant, id, read).await);
            let all = join_all(all).await;

            assert!(all.iter().all(|found| matches!(found, Ok(Some(_)))));
            assert_eq!(looks.get(), right);
        }
    }

    #[tokio::test]
    async fn a_reading_that_fails_or_whose_reader_goes_away_is_begun_by_the_next() {
        let (cache, tenant, id) = (RowCache::new(), TenantId::parse("acme").expect("a tenant"), row().view.record.id);
        let failed = cache.get_or_read(&tenant, id, async || Err("the index is gone")).await;
        assert_eq!(failed.err(), Some("the index is gone"));
        let leaves = cache.get_or_read(&tenant, id, async || {
            std::future::pending::<()>().await;
            Ok::<_, Infallible>(None)
        });
        assert!(leaves.now_or_never().is_none());

        let found = cache.get_or_read(&tenant, id, async || Ok::<_, Infallible>(Some(row()))).await;

        assert!(matches!(found, Ok(Some(_))));
    }
}
