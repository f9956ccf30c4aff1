//! The one place where components are built and put together.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use mediakeep_keys::Ring;
use mediakeep_storage::index::postgres::PostgresIndex;
use mediakeep_storage::quota::Quota;
use mediakeep_storage::retention::Terms;
use mediakeep_storage::{AssetIndex, BlobKey, BlobStore, StorageError, TenantId, Timestamp};
use tokio::sync::Semaphore;

use crate::access::Access;
use crate::access::rate::Rates;
use crate::assets::cache::RowCache;
use crate::assets::capability::{Capability, Opened};
use crate::assets::ingest::inspection::{Inspector, Patience};
use crate::assets::ingest::room::Room;
use crate::assets::paid::Paid;
use crate::audit::isolation::Checks;
use crate::audit::{Denials, ReadTrail};
use crate::clock::Clock;
use crate::config::{ConfigError, Settings};
use crate::remote::Remote;
use crate::telemetry::{Metrics, RequestIds};

pub mod daily;
pub mod gate;
pub mod health;
pub mod held;
mod stores;

use daily::Daily;
use gate::Gate;
use health::Health;
use held::Held;
use stores::Stores;

/// Everything that a request needs.
#[derive(Debug)]
pub struct App {
    /// What was set.
    pub settings: Settings,
    /// What time it is.
    pub clock: Clock,
    /// When this process began.
    pub started_at: Timestamp,
    /// What is known.
    pub index: Arc<dyn AssetIndex>,
    /// The bytes.
    pub blobs: BlobStore,
    /// Rows that were asked for a moment ago.
    pub rows: RowCache,
    /// Recovery records that were written a moment ago.
    pub paid: Paid,
    /// What is counted.
    pub metrics: Metrics,
    /// Reads that the audit log will tell of.
    pub reads: ReadTrail,
    /// Refusals that it will tell of.
    pub denials: Denials,
    /// The isolation checks that run.
    pub checks: Checks,
    /// How often who may call.
    pub rates: Rates,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// Names requests.
    pub request_ids: RequestIds,
    /// What uploads were promised of the store's disk.
    pub room: Room,
    /// Whether both stores answer.
    health: Health,
    /// How many requests are worked on at a time.
    pub gate: Gate,
    /// Memory for bodies that are held whole.
    pub held: Held,
    /// Fetches from elsewhere, if that is allowed.
    pub remote: Remote,
    /// When sealed bytes without a row were last looked for.
    pub strays_sought: Daily,
    /// Looks at bytes.
    pub inspector: Inspector,
    /// What every URL begins with, without a slash at the end.
    pub base_url: String,
    stopping: AtomicBool,
    live: RwLock<Arc<Live>>,
    database: Option<Arc<PostgresIndex>>,
    uploads: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
}

/// What may be read again while the service runs.
#[derive(Debug)]
pub struct Live {
    /// The key ring.
    pub ring: Ring,
    /// What it has opened.
    opened: Opened,
    /// Who may call.
    pub access: Access,
    /// The settings as they were read last: of these, those of single tenants count.
    pub settings: Settings,
}

/// Why the parts cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings, or a file that they name.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A store.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl App {
    /// Reads the ring and opens the stores, in this order: whoever names a ring that is not there has made no store. Stores that are
    /// both empty are made; one that is empty beside the other's data is refused.
    pub async fn open(settings: Settings, clock: Clock, base_url: &str) -> Result<Self, StartError> {
        let live = Live::load(&settings)?;
        let stores = stores::open_or_make(&settings).await?;
        Ok(Self::assemble(settings, live, stores, clock, base_url))
    }

    /// The same of stores that are there: a missing one is refused, not made.
    pub async fn open_existing(settings: Settings, clock: Clock, base_url: &str) -> Result<Self, StartError> {
        let live = Live::load(&settings)?;
        let stores = stores::open_existing(&settings).await?;
        Ok(Self::assemble(settings, live, stores, clock, base_url))
    }

    /// The same of a store that is there and an index that has nothing: it is made.
    pub async fn open_for_rebuild(settings: Settings, clock: Clock, base_url: &str) -> Result<Self, StartError> {
        let live = Live::load(&settings)?;
        let stores = stores::open_for_rebuild(&settings).await?;
        Ok(Self::assemble(settings, live, stores, clock, base_url))
    }

    /// The store that is there, and one to copy it to; no index, so that a service may run beside.
    pub async fn open_to_copy(settings: &Settings, to: &str) -> Result<(BlobStore, BlobStore), StartError> {
        stores::open_to_copy(settings, to).await
    }

    fn assemble(settings: Settings, live: Live, stores: Stores, clock: Clock, base_url: &str) -> Self {
        let metrics = Metrics::new();
        Self {
            live: RwLock::new(Arc::new(live)),
            index: stores.index,
            blobs: stores.blobs,
            // Only a database has other processes that change it.
            rows: match &stores.database {
                Some(_) => RowCache::shared(settings.capabilities.revocation_lag.std()),
                None => RowCache::new(),
            },
            room: Room::default(),
            health: Health::default(),
            gate: Gate::new(settings.limits.uploads_per_tenant as usize),
            held: Held::new(settings.limits.max_json_bytes.0),
            remote: Remote::default(),
            strays_sought: Daily::default(),
            inspector: Inspector::new(Patience::default(), metrics.inspections()),
            metrics,
            paid: Paid::default(),
            reads: ReadTrail::default(),
            denials: Denials::default(),
            checks: Checks::default(),
            rates: Rates::new(&settings, &clock),
            trusted_proxies: settings.server.trusted_proxies.iter().filter_map(|proxy| proxy.parse().ok()).collect(),
            request_ids: RequestIds::new(BlobKey::generate().to_string()[..12].to_owned()),
            database: stores.database,
            stopping: AtomicBool::new(false),
            uploads: Mutex::default(),
            base_url: base_url.trim_end_matches('/').to_owned(),
            started_at: clock.now(),
            settings,
            clock,
        }
    }

    /// How many transitions the database has refused because of others beside them, and that were done again.
    pub fn index_retries(&self) -> u64 {
        self.database.as_ref().map_or(0, |database| database.retries())
    }

    /// Whether other processes may have the index too.
    pub fn shares_index(&self) -> bool {
        self.database.is_some()
    }

    /// Ends the connections of an index that has any. Nothing may need the index any more.
    pub async fn close(&self) {
        if let Some(database) = &self.database {
            database.close().await;
        }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Has what runs for long end at its next step.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Whether the service is about to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Ring, callers and tenants as they are now.
    pub fn live(&self) -> Arc<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads ring, callers and tenants anew. If anything is wrong with them, the old ones stay. Names the sections that have changed
    /// and count only at the next start.
    pub fn reload(&self, settings: Settings) -> Result<Vec<&'static str>, ConfigError> {
        let idle = self.settings.fixed_changes(&settings);
        let live = Live::new(load_ring(&settings)?, callers(&settings)?, settings);
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
        Ok(idle)
    }

    /// How long this tenant's things are kept.
    pub fn terms(&self, tenant: &TenantId) -> Terms {
        let live = self.live();
        let own = live.settings.tenant(tenant.as_str()).and_then(|tenant| tenant.default_run_log);
        terms(&self.settings, own.unwrap_or(self.settings.retention.default_run_log))
    }

    /// How long the things of tenants without terms of their own are kept.
    pub fn common_terms(&self) -> Terms {
        terms(&self.settings, self.settings.retention.default_run_log)
    }

    /// Up to how many bytes an envelope of this tenant may carry the bytes themselves.
    pub fn inline_cap(&self, tenant: &TenantId) -> u64 {
        let live = self.live();
        let own = live.settings.tenant(tenant.as_str()).and_then(|tenant| tenant.max_inline_media_bytes);
        own.unwrap_or(self.settings.limits.max_inline_media_bytes).0
    }

    /// How much the tenant may have.
    pub fn quota(&self, tenant: &TenantId) -> Quota {
        let live = self.live();
        let own = live.settings.tenant(tenant.as_str());
        let bytes = own.and_then(|tenant| tenant.tenant_bytes).unwrap_or(self.settings.limits.tenant_bytes).0;
        let assets = own.and_then(|tenant| tenant.tenant_assets).unwrap_or(self.settings.limits.tenant_assets);
        let bound = |most: u64| (most != 0).then_some(most);
        Quota { bytes: bound(bytes), assets: bound(assets) }
    }

    /// Bounds the tenant's uploads at a time.
    pub fn upload_slots(&self, tenant: &TenantId) -> Arc<Semaphore> {
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = uploads
            .entry(tenant.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(self.settings.limits.uploads_per_tenant as usize)));
        slots.clone()
    }
}

impl Live {
    fn load(settings: &Settings) -> Result<Self, ConfigError> {
        let access = Access::from_settings(settings)?;
        Ok(Self::new(load_ring(settings)?, access, settings.clone()))
    }

    fn new(ring: Ring, access: Access, settings: Settings) -> Self {
        Self { ring, opened: Opened::new(), access, settings }
    }

    /// What a capability says, if it is authentic; else the label of a metric, never a word to the caller.
    pub fn open(&self, token: &str) -> Result<Arc<Capability>, &'static str> {
        self.opened.open(&self.ring, token)
    }
}

/// The terms of a tenant whose runs' logs are kept so long by default.
fn terms(settings: &Settings, default_run_log: crate::config::units::Span) -> Terms {
    let retention = &settings.retention;
    Terms {
        default_run_log: default_run_log.0,
        unreferenced: retention.unreferenced.0,
        grace: retention.grace.0,
        tombstone_bytes: retention.tombstone_bytes.0,
        tombstone_record: retention.tombstone_record.0,
    }
}

/// Who may call, of a service: somebody has to. There is no built-in secret, and a file that was caught half written is none either.
pub fn callers(settings: &Settings) -> Result<Access, ConfigError> {
    let access = Access::from_settings(settings)?;
    if access.is_empty() {
        let nobody =
            "nobody could call: configure access.api_keys or access.issuers (`mediakeep access hash-key` makes a key)";
        return Err(ConfigError(nobody.to_owned()));
    }
    Ok(access)
}

/// Makes the first ring, unless there is one; says whether it did. It is made only while index and store are both empty: a ring that is
/// missing beside data is a disaster to be told of, not to be papered over with a new one.
pub async fn first_ring(settings: &Settings) -> Result<bool, StartError> {
    let path = &settings.keys.ring;
    if path.exists() {
        return Ok(false);
    }
    if !stores::are_empty(settings).await? {
        return Err(StartError::Config(ConfigError(format!(
            "there is data, but no key ring at {}: restore it from its backup, since without it every URL that was given out is dead",
            path.display()
        ))));
    }
    let ring = Ring::generate(Timestamp::now().as_second()).map_err(|error| ring_failed(&error))?;
    ring.save_new(path).map_err(|error| ring_failed(&error))?;
    Ok(true)
}

/// Makes a folder that only its owner may enter.
pub fn make_private_folder(folder: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn load_ring(settings: &Settings) -> Result<Ring, ConfigError> {
    Ring::load(&settings.keys.ring).map_err(|error| ring_failed(&error))
}

/// The ring's error with everything that lies behind it.
fn ring_failed(error: &mediakeep_keys::KeyError) -> ConfigError {
    let mut sentence = format!("keys.ring: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        sentence = format!("{sentence}: {inner}");
        cause = inner.source();
    }
    ConfigError(sentence)
}
