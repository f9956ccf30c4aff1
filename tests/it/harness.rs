//! A host, its callers, and what they send.
//!
//! [`Host`] is the real service on port 0 with its stores in a folder (and a database) of its own, gone afterwards. Its clock stands still until a test
//! turns it. [`Caller`] is somebody with a credential, or nobody; what a caller may do is in how it was made.

use std::sync::Arc;
use std::time::Duration;

use mediakeep::access::{Scope, hash_secret};
use mediakeep::app::App;
use mediakeep::clock::Clock;
use mediakeep::config::Settings;
use mediakeep::config::settings::ApiKey;
use mediakeep::config::units::{Size, Span};
use mediakeep::retention::{rebuild, sweep, verify};
use mediakeep::server::{self, Running};
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::index::NewDurable;
use mediakeep_storage::testing::Buckets;
use mediakeep_storage::{AssetId, AuditEvent, TenantId, Timestamp};
use reqwest::Client;
use tempfile::TempDir;

use index::{Home, Kind};
use store::Store;

pub use caller::{Asset, Caller, asset, refusal};

pub mod beside;
pub mod bytes;
pub mod caller;
pub mod fates;
pub mod form;
pub mod index;
pub mod lines;
pub mod log;
pub mod node;
pub mod once;
pub mod process;
pub mod python;
pub mod raw;
pub mod store;
pub mod tamper;
pub mod told;

/// The instant at which every test begins.
pub const BEGINNING: i64 = 1_800_000_000;

/// Tenants that have keys: every caller of theirs has one of these scopes' names behind the tenant's.
const TENANTS: [&str; 3] = ["acme", "globex", "Acme"];

/// A running service.
pub struct Host {
    running: Running,
    clock: Clock,
    settings: Settings,
    client: Client,
    folder: Arc<TempDir>,
    store: Store,
    index: Home,
}

impl Host {
    /// With the settings that tests start from.
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// With settings of the test's own.
    pub async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let index = Home::new(Kind::of_this_process(), folder.path()).await;
        let store = Store::new(store::Kind::of_this_process(), folder.path());
        let mut settings = settings(&folder, &store);
        settings.index.url = index.url().into();
        change(&mut settings);
        let at = Timestamp::from_second(BEGINNING).expect("a time in range");
        Self::serve(settings, Clock::manual(at), folder, store, index).await
    }

    async fn serve(settings: Settings, clock: Clock, folder: Arc<TempDir>, store: Store, index: Home) -> Self {
        let running = server::start(settings.clone(), clock.clone(), None).await.expect("the service starts");
        // A second provider is refused, and then there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
        Self { running, clock, settings, client, folder, store, index }
    }

    /// Another service over the same stores, whose clock stands ahead of this one's. The index has to be one that several may have.
    pub async fn replica(&self, ahead: Duration) -> Running {
        let mut settings = self.settings.clone();
        settings.server.listen = "127.0.0.1:0".into();
        let clock = Clock::manual(self.now());
        clock.advance(ahead);
        server::start(settings, clock, None).await.expect("the service starts")
    }

    /// Stops the service in good order and starts it on the same stores.
    pub async fn restart(self) -> Self {
        self.restart_with(|_| {}).await
    }

    /// The same with changed settings.
    pub async fn restart_with(self, change: impl FnOnce(&mut Settings)) -> Self {
        let Self { running, clock, mut settings, folder, store, index, .. } = self;
        // URLs that were given out before have to hold: the port stays.
        settings.server.listen = running.address.to_string();
        running.stop().await;
        change(&mut settings);
        Self::serve(settings, clock, folder, store, index).await
    }

    /// Stops the service, throws its index away, and starts it on one that was made anew from the store.
    pub async fn rebuilt(self, kind: Kind) -> (Self, rebuild::Report) {
        let Self { running, clock, mut settings, folder, store, .. } = self;
        settings.server.listen = running.address.to_string();
        let base_url = running.app.base_url.clone();
        running.stop().await;
        let fresh = (1..).map(|n| folder.path().join(format!("anew-{n}"))).find(|path| !path.exists());
        let index = Home::new(kind, &fresh.expect("there are numbers enough")).await;
        settings.index.url = index.url().into();
        let opened = Box::pin(App::open_for_rebuild(settings.clone(), clock.clone(), &base_url)).await;
        let app = opened.expect("an empty place");
        let report = Box::pin(rebuild::rebuild(&app)).await.expect("a store that answers");
        app.close().await;
        drop(app);
        (Box::pin(Self::serve(settings, clock, folder, store, index)).await, report)
    }

    /// The service's parts, for a look behind the scenes.
    pub fn app(&self) -> &Arc<App> {
        &self.running.app
    }

    /// The folder that everything lies in.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The server of its bucket.
    pub fn bucket(&self) -> &Buckets {
        self.store.server()
    }

    /// Files of uploads in parts that its bucket has neither completed nor aborted.
    pub fn parts_in_bucket(&self) -> usize {
        let names =
            std::fs::read_dir(self.folder()).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".upload")).count()
    }

    /// `host:port`.
    pub fn address(&self) -> std::net::SocketAddr {
        self.running.address
    }

    /// A path of the operator's own address as a URL.
    pub fn admin_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.running.admin_address.expect("admin_listen is set"))
    }

    /// A path of this service as a URL.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.running.address)
    }

    /// Turns the clock on.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// The time on the host's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Has the service read its settings again, changed.
    pub fn reload(&self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.settings.clone();
        change(&mut settings);
        self.app().reload(settings).expect("settings that can be used");
    }

    /// Revokes the durable URL of an asset of a tenant.
    pub async fn raise_generation(&self, tenant: &str, asset: &Asset) {
        let (tenant, id) = (TenantId::parse(tenant).expect("a tenant"), AssetId::parse(&asset.id).expect("an id"));
        let kid = self.app().live().ring.signing_kid(self.now().as_second()).to_owned();
        let durable = NewDurable { kid, issued_at: self.now().as_second() };
        let audit = AuditEvent::new(AuditKind::Revoke, "test", self.now()).asset(id);
        let raised = self.app().index.raise_generation(&tenant, id, durable, audit).await.expect("an index");
        assert!(raised.is_some(), "there is such an asset");
        self.app().rows.changed(id);
    }

    /// One sweep, as the background would do it.
    pub async fn sweep(&self) -> sweep::Report {
        sweep::sweep(self.app()).await.expect("a sweep")
    }

    /// Index against store.
    pub async fn verify(&self) -> verify::Findings {
        verify::verify(self.app(), verify::Depth::Sizes).await.expect("a comparison")
    }

    /// Files in the store's staging folder.
    pub fn staged_files(&self) -> usize {
        files(&self.folder().join("blobs/staging"))
    }

    /// Blobs in the store.
    pub async fn stored_blobs(&self) -> usize {
        use futures_util::TryStreamExt;
        let blobs: Vec<_> = self.app().blobs.blobs().try_collect().await.expect("a list");
        blobs.len()
    }

    /// Recovery records in the store, of every kind.
    pub fn recovery_records(&self) -> usize {
        let tenants = self.folder().join("blobs/t");
        // Of a bucket the folder is there once something lies in it.
        let tenants = std::fs::read_dir(tenants).into_iter().flatten().map(|entry| entry.expect("an entry").path());
        tenants.map(|tenant| files(&tenant.join("r"))).sum()
    }

    /// Waits until an upload has been announced.
    pub async fn upload_begins(&self) {
        for _ in 0..5_000 {
            if !self.app().index.blobs(None, 1).await.expect("an index").is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        unreachable!("an upload that was sent is announced within ten seconds");
    }

    /// Whether no asset, blob, recovery record, staged file or announced upload is there: what has to be true when an ingest was refused.
    pub async fn is_bare(&self) -> bool {
        let rows = self.app().index.blobs(None, 10).await.expect("an index");
        let assets = self.app().index.assets(None, 10).await.expect("an index");
        let files = self.staged_files() + self.recovery_records();
        rows.is_empty() && assets.is_empty() && files == 0 && self.stored_blobs().await == 0
    }

    /// The same, once what a client that went away has left behind is cleaned up.
    pub async fn becomes_bare(&self) -> bool {
        for _ in 0..100 {
            if self.is_bare().await {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    /// Somebody of a tenant with every scope.
    pub fn owner(&self, tenant: &str) -> Caller<'_> {
        self.caller(Some(credential(tenant, "all")))
    }

    /// Somebody of a tenant with one scope.
    pub fn with_scope(&self, tenant: &str, scope: Scope) -> Caller<'_> {
        self.caller(Some(credential(tenant, &key_part(scope))))
    }

    /// Somebody with this credential.
    pub fn bearer(&self, credential: &str) -> Caller<'_> {
        self.caller(Some(credential.to_owned()))
    }

    /// Nobody in particular.
    pub fn stranger(&self) -> Caller<'_> {
        self.caller(None)
    }

    fn caller(&self, credential: Option<String>) -> Caller<'_> {
        Caller { host: self, credential }
    }
}

/// How many files there are in and below this folder.
pub fn files(folder: &std::path::Path) -> usize {
    let Ok(children) = std::fs::read_dir(folder) else {
        return 0;
    };
    let children = children.map(|entry| entry.expect("an entry").path());
    children.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

/// The key of a tenant that allows what its name says.
pub fn credential(tenant: &str, what: &str) -> String {
    let (id, secret) = (key_id(tenant, what), secret(tenant, what));
    format!("mk_{id}_{secret}")
}

fn settings(folder: &TempDir, store: &Store) -> Settings {
    let mut settings = Settings::default();
    settings.server.listen = "127.0.0.1:0".into();
    settings.server.public_base_url = String::new();
    settings.store.url = store.url().to_owned();
    settings.store.s3 = store.s3();
    settings.store.min_free = Size(0);
    settings.keys.ring = folder.path().join("keys/ring.json");
    // The background is the test's to run.
    settings.retention.sweep_interval = Span::hours(24 * 365);
    settings.retention.grace = Span::seconds(0);
    for tenant in TENANTS {
        let all = Scope::ALL
            .into_iter()
            .map(|scope| (key_part(scope), vec![scope]))
            .chain([("all".into(), Scope::ALL.to_vec())]);
        settings.access.api_keys.extend(all.map(|(what, scopes)| ApiKey {
            id: key_id(tenant, &what),
            tenant: tenant.to_owned(),
            scopes: scopes.into_iter().map(|scope| scope.name().to_owned()).collect(),
            secret_sha256: hash_secret(&secret(tenant, &what)),
            expires: None,
            revoked: false,
        }));
    }
    settings
}

fn key_part(scope: Scope) -> String {
    scope.name().replace(':', "-")
}

fn key_id(tenant: &str, what: &str) -> String {
    // Key ids have no upper case.
    let tenant = if tenant == "Acme" { "upper-acme" } else { tenant };
    format!("{tenant}-{what}")
}

/// Known to the tests alone, and to nobody who could call a real service.
fn secret(tenant: &str, what: &str) -> String {
    format!("secret-of-{tenant}-{what}")
}
