//! Every setting with its default: what the README's table says, in code.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::address::IndexUrl;
use super::units::{Size, Span};

/// Declares a section: its members, each with its default. A name that is not among them is refused.
macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($(#[$member_doc:meta])* $member:ident: $type:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $($(#[$member_doc])* pub $member: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($member: $default,)* }
            }
        }
    };
}

section! {
    /// All of them.
    Settings {
        /// Where the service listens, and what it is called from outside.
        server: Server = Server::default(),
        /// Where bytes lie.
        store: Store = Store::default(),
        /// Where the index lies.
        index: Index = Index::default(),
        /// The key ring.
        keys: Keys = Keys::default(),
        /// Who may call.
        access: Access = Access::default(),
        /// What is different for single tenants.
        tenants: Vec<Tenant> = Vec::new(),
        /// Bounds.
        limits: Limits = Limits::default(),
        /// Resumable uploads.
        uploads: Uploads = Uploads::default(),
        /// Idempotency keys.
        idempotency: Idempotency = Idempotency::default(),
        /// What is let in.
        ingest: Ingest = Ingest::default(),
        /// How long things are kept.
        retention: Retention = Retention::default(),
        /// The URLs.
        capabilities: Capabilities = Capabilities::default(),
        /// How bytes go out.
        delivery: Delivery = Delivery::default(),
        /// The audit log.
        audit: Audit = Audit::default(),
        /// The guarded fetcher.
        remote: Remote = Remote::default(),
        /// The seams of the public conformance suite.
        conformance: Conformance = Conformance::default(),
        /// What the service says of itself.
        telemetry: Telemetry = Telemetry::default(),
    }
}

section! {
    /// Where the service listens, and what it is called from outside.
    Server {
        /// Address and port; port 0 takes a free one.
        listen: String = "127.0.0.1:8787".into(),
        /// Address and port of the metrics; empty is none.
        admin_listen: String = String::new(),
        /// What every URL begins with; needed unless `listen` is loopback.
        public_base_url: String = String::new(),
        /// Whose `X-Forwarded-For` is believed.
        trusted_proxies: Vec<String> = Vec::new(),
    }
}

section! {
    /// Where bytes lie.
    Store {
        /// `file:`, `memory:`, `s3:`, `gs:` or `az:`.
        url: String = "file:///var/lib/mediakeep/blobs".into(),
        /// Below it writes are refused; of a disk, not of an object store.
        min_free: Size = Size::mib(256),
        /// What the address of an S3 bucket does not say.
        s3: S3 = S3::default(),
    }
}

section! {
    /// An S3 server; what is set here wins over the environment.
    S3 {
        /// Where it is, when it is not Amazon's.
        endpoint: String = String::new(),
        /// What requests are signed for.
        region: String = String::new(),
        /// Whether the bucket stands in the path; if nothing is said, it does with an endpoint.
        path_style: Option<bool> = None,
        /// Whether plain HTTP is allowed.
        allow_http: Option<bool> = None,
    }
}

section! {
    /// Where the index lies.
    Index {
        /// `sled:` and a folder, or `postgres:` and a database.
        url: IndexUrl = "sled:///var/lib/mediakeep/index".into(),
    }
}

section! {
    /// The key ring.
    Keys {
        /// The file.
        ring: PathBuf = "/var/lib/mediakeep/keys/ring.json".into(),
        /// How long a new key only verifies before it signs.
        activate_after: Span = Span::seconds(60),
    }
}

section! {
    /// Who may call.
    #[derive(Eq)]
    Access {
        /// API keys.
        api_keys: Vec<ApiKey> = Vec::new(),
        /// Issuers of JWTs.
        issuers: Vec<Issuer> = Vec::new(),
    }
}

/// An API key: its secret's digest, never the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// The part of the key that may be seen.
    pub id: String,
    /// Whose key it is.
    pub tenant: String,
    /// What it allows.
    pub scopes: Vec<String>,
    /// SHA-256 of the secret part's bytes, in hex.
    pub secret_sha256: String,
    /// From then on it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// It is refused.
    #[serde(default)]
    pub revoked: bool,
}

/// An issuer of JWTs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The `aud` that they must have.
    pub audience: String,
    /// `HS256`, `RS256`, `ES256` or `EdDSA`.
    pub algorithm: String,
    /// The one key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Or a set of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_file: Option<PathBuf>,
    /// The tenants it may speak for; a `*` at the end stands for any rest.
    pub tenants: Vec<String>,
    /// The scopes it may give; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
}

/// What is different for one tenant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tenant {
    /// Which.
    pub id: String,
    /// Its inline cap, not above the advertised one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_inline_media_bytes: Option<Size>,
    /// Its quota in bytes; 0: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_bytes: Option<Size>,
    /// Its quota in assets; 0: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_assets: Option<u64>,
    /// Its ingest policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// How long its runs' logs are kept of which nobody says more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_run_log: Option<Span>,
    /// Nobody gets in, nothing is served; retention goes on.
    pub suspended: bool,
}

section! {
    /// Bounds.
    Limits {
        /// Of one upload.
        max_upload_bytes: Size = Size(2 << 30),
        /// Up to which an envelope may carry the bytes themselves; 0: never.
        max_inline_media_bytes: Size = Size::kib(256),
        /// Of JSON that may carry media.
        max_json_bytes: Size = Size::mib(96),
        /// Bytes of a tenant's live assets and its uploads in progress; 0: any.
        tenant_bytes: Size = Size(0),
        /// Assets of a tenant; 0: any.
        tenant_assets: u64 = 0,
        /// Uploads of one tenant at a time.
        uploads_per_tenant: u32 = 64,
        /// Per credential; 0: any.
        requests_per_second: u32 = 0,
        /// Per address on capability routes; 0: any.
        client_requests_per_second: u32 = 0,
    }
}

section! {
    /// Resumable uploads.
    Uploads {
        /// After its last byte.
        expire: Span = Span::hours(24),
    }
}

section! {
    /// Idempotency keys.
    Idempotency {
        /// How long an answer is kept.
        keep: Span = Span::hours(24),
    }
}

/// What becomes of bytes that are not what was declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// They are stored as what they are.
    Detect,
    /// They are refused.
    RejectMismatch,
}

section! {
    /// What is let in.
    Ingest {
        /// What becomes of bytes that are not what was declared.
        policy: Policy = Policy::Detect,
        /// Types that are refused, as found; `image/*` is a family.
        refuse_types: Vec<String> = Vec::new(),
    }
}

section! {
    /// How long things are kept.
    Retention {
        /// The log of a run of which nobody says more; not under seven days.
        default_run_log: Span = Span::hours(30 * 24),
        /// An upload that no run references.
        unreferenced: Span = Span::hours(24),
        /// Longer than its floor.
        grace: Span = Span::hours(1),
        /// The longest that anybody may ask for; 0: any.
        max: Span = Span::seconds(0),
        /// What a crash left behind.
        orphan_grace: Span = Span::hours(1),
        /// Between two sweeps.
        sweep_interval: Span = Span::seconds(60),
        /// The bytes of an expired asset.
        tombstone_bytes: Span = Span::hours(24),
        /// Its row, after the last run that referenced it has ended.
        tombstone_record: Span = Span::hours(90 * 24),
    }
}

section! {
    /// The URLs.
    Capabilities {
        /// Within which a revocation holds in every process. In the one that was told it holds on the next request.
        revocation_lag: Span = Span::seconds(1),
        /// How far another clock may be ahead of ours; it never lengthens a life.
        clock_skew: Span = Span::seconds(60),
        /// The longest life of a delivery URL.
        max_delivery: Span = Span::hours(7 * 24),
    }
}

section! {
    /// How bytes go out.
    Delivery {
        /// Whether passive media are had from the store itself, by a redirect to a URL that it honours for a minute at most.
        redirect: bool = false,
    }
}

/// Which reads the audit log tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditReads {
    /// Every one; the answer waits for the row.
    Full,
    /// Some, and how many more there were.
    Sampled,
    /// None.
    Off,
}

section! {
    /// The audit log.
    Audit {
        /// Which reads it tells of.
        reads: AuditReads = AuditReads::Sampled,
    }
}

section! {
    /// The guarded fetcher.
    Remote {
        /// Whether anything is fetched.
        enabled: bool = false,
        /// From which ports.
        allow_ports: Vec<u16> = vec![80, 443],
        /// At most so much.
        max_bytes: Size = Size::mib(32),
        /// At most so long.
        timeout: Span = Span::seconds(10),
    }
}

section! {
    /// The seams of the public conformance suite.
    Conformance {
        /// Whether they are there.
        seams: bool = false,
        /// Whose they are.
        tenant: String = "conformance".into(),
    }
}

section! {
    /// What the service says of itself.
    Telemetry {
        /// What is logged: a level, or directives of `tracing`.
        log: String = "info".into(),
    }
}

impl Settings {
    /// What is different for this tenant, if anything is.
    pub fn tenant(&self, id: &str) -> Option<&Tenant> {
        self.tenants.iter().find(|tenant| tenant.id == id)
    }

    /// The sections that differ and are read at a start alone: all but those of keys, callers and tenants.
    pub fn fixed_changes(&self, new: &Self) -> Vec<&'static str> {
        [
            ("server", self.server != new.server),
            ("store", self.store != new.store),
            ("index", self.index != new.index),
            ("limits", self.limits != new.limits),
            ("uploads", self.uploads != new.uploads),
            ("idempotency", self.idempotency != new.idempotency),
            ("ingest", self.ingest != new.ingest),
            ("retention", self.retention != new.retention),
            ("capabilities", self.capabilities != new.capabilities),
            ("delivery", self.delivery != new.delivery),
            ("audit", self.audit != new.audit),
            ("remote", self.remote != new.remote),
            ("conformance", self.conformance != new.conformance),
            ("telemetry", self.telemetry != new.telemetry),
        ]
        .into_iter()
        .filter_map(|(section, changed)| changed.then_some(section))
        .collect()
    }
}
