//! What the index keeps of an asset, a run, an upload.
//!
//! Records are written behind a version byte, as JSON (`index::codec`) or, in the embedded index, without names (`index::sled::packed`).
//! A member that a later version adds has a default, so old records decode for ever.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AssetId, BlobKey, Digest, HoldId, RunId, TenantId};
use crate::retention::{Floor, RunEnd};

pub use self::artifact::ArtifactRecord;
pub use self::owed::Owed;
pub use self::url::{MintedUrl, RevokedUrls, Taken, UrlRecord, UrlView};

mod artifact;
mod owed;
mod url;

/// One asset, as its tenant's row has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssetRecord {
    /// Its name.
    pub id: AssetId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The run that emitted it; none for an upload outside of runs.
    pub run: Option<RunId>,
    /// The family: `image`, `audio`, `video`, `document`, `text`, `archive`, `other`.
    pub kind: String,
    /// What the bytes are.
    pub mime_type: String,
    /// What the sender said they are.
    pub declared_mime_type: Option<String>,
    /// How many there are.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: Digest,
    /// Where they lie.
    pub blob: BlobKey,
    /// What else was found in them; the service's own shape.
    pub facts: Value,
    /// Words for people, which may be changed.
    pub labels: Labels,
    /// What the host's log calls the place the asset came from.
    pub origin: Origin,
    /// When it was stored.
    pub created_at: Timestamp,
    /// How long its sender asked for it to be kept.
    pub asked_until: Option<Timestamp>,
    /// What its durable URL is made of.
    pub durable: DurableUrl,
    /// Where it is in its life.
    pub state: AssetState,
    /// Counts the changes of this row, from 1.
    pub revision: u64,
}

/// Words for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// A file name.
    pub name: Option<String>,
    /// Alternative text.
    pub alt: Option<String>,
    /// A caption.
    pub title: Option<String>,
}

/// What the host's log calls the place the asset came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The node that emitted it.
    pub node_id: Option<String>,
    /// The envelope that carries it.
    pub envelope_id: Option<String>,
    /// The envelope's correlation.
    pub correlation_id: Option<String>,
    /// Who made it: `ai-generation`, `user`, `system`.
    pub source: String,
}

/// From these the durable URL is made anew, the same string every time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableUrl {
    /// The ring key that signs it.
    pub kid: String,
    /// When it was first made, in seconds since 1970.
    pub issued_at: i64,
    /// Raised by a revocation; a URL of an older generation opens nothing.
    pub generation: u32,
}

/// Where an asset is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AssetState {
    /// It is kept and served.
    Live,
    /// Its time has passed; the row says so until the tombstone goes.
    Expired {
        /// Since when.
        at: Timestamp,
    },
    /// It was erased; nothing of it is left but its name, type and size.
    Erased {
        /// Since when.
        at: Timestamp,
        /// Which other assets had the same bytes then; at most [`AssetState::SAME_BYTES`].
        #[serde(default)]
        same_bytes: Vec<AssetId>,
        /// Whether the bytes went with it: no other asset held them, and no hold kept them.
        #[serde(default)]
        bytes_removed: bool,
    },
}

impl AssetState {
    /// How many assets with the same bytes an erasure names.
    pub const SAME_BYTES: usize = 100;

    /// `live`, `expired` or `erased`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Expired { .. } => "expired",
            Self::Erased { .. } => "erased",
        }
    }
}

impl AssetRecord {
    /// Whether it is kept and served.
    pub fn is_live(&self) -> bool {
        self.state == AssetState::Live
    }

    /// What is left of it once it is erased: nothing that its bytes, or whoever sent them, said.
    pub fn erased(&self, at: Timestamp, same_bytes: Vec<AssetId>, bytes_removed: bool) -> Self {
        Self {
            declared_mime_type: None,
            sha256: Digest::ERASED,
            facts: Value::Object(serde_json::Map::new()),
            labels: Labels::default(),
            state: AssetState::Erased { at, same_bytes, bytes_removed },
            revision: self.revision + 1,
            ..self.clone()
        }
    }
}

/// An asset, and what the rest of the index says of it at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct AssetView {
    /// The row.
    pub record: AssetRecord,
    /// How long it is kept, and because of what.
    pub floor: Floor,
    /// The newest of the runs that reference it, newest first; at most [`AssetView::REFERENCES`].
    pub references: Vec<RunId>,
    /// How many reference it.
    pub reference_count: u64,
    /// How often all of the tenant's URLs were revoked at once.
    pub epoch: u32,
    /// Its own holds in the order of their names, then those of the runs that reference it, each named once; at most [`AssetView::HOLDS`].
    pub holds: Vec<HoldId>,
}

impl AssetView {
    /// How many holds a view lists.
    pub const HOLDS: usize = 100;

    /// How many references a view lists.
    pub const REFERENCES: usize = 100;

    /// The generation that its URLs are of: one of an older generation opens nothing. Every URL is made and opened by this, and both
    /// of its parts only grow, so that none ever opens again.
    pub fn generation(&self) -> u32 {
        self.record.durable.generation.saturating_add(self.epoch)
    }

    /// The id of its durable URL, by which the audit log names it.
    pub fn url_id(&self) -> String {
        format!("{}.{}", self.record.id, self.generation())
    }
}

/// One run, as the registry has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its name.
    pub id: RunId,
    /// Whether the host has registered it; else it is known only by its references.
    pub registered: bool,
    /// Whether its log still grows.
    pub status: RunStatus,
    /// When its log ends.
    pub end: RunEnd,
    /// For an open run: how long after its closing the log is kept, in seconds.
    pub retention_after_close: Option<i64>,
    /// The run that it is a fork of.
    #[serde(default)]
    pub fork_of: Option<RunId>,
    /// The host's workflow.
    pub workflow_id: Option<String>,
    /// When it was first heard of.
    pub created_at: Timestamp,
    /// Since when it is erased; closed for good from then on.
    #[serde(default)]
    pub erased_at: Option<Timestamp>,
    /// Counts the changes of this row, from 1.
    pub revision: u64,
}

/// Whether a run's log still grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It does.
    Open,
    /// It does not.
    Closed,
}

/// A run, and what it references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunView {
    /// The row.
    pub record: RunRecord,
    /// How many assets it references, in every state.
    pub assets: u64,
    /// How many bytes the live ones have.
    pub bytes: u64,
}

/// Keeps an asset, or everything that a run references, until it is lifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Its name.
    pub id: HoldId,
    /// Why, in the words of whoever placed it.
    pub reason: String,
    /// Since when.
    pub placed_at: Timestamp,
    /// By whom it was placed, or given its present reason.
    pub principal: String,
    /// The index counts the placings and liftings of each tenant: of two records of one hold the higher number counts, whatever the
    /// clocks said.
    #[serde(default)]
    pub number: u64,
}

/// The recovery record of a hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldRecord {
    /// The hold.
    #[serde(flatten)]
    pub hold: Hold,
    /// What it is on; older records leave that to the names of their folders.
    #[serde(default)]
    pub on: Option<HoldOn>,
}

/// What a hold is on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldOn {
    /// One asset.
    Asset(AssetId),
    /// A run, and so every asset that it references or will.
    Run(RunId),
}

/// What a run's log began to quote in one step: written beside the bytes, so that the store alone can make the index anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceRecord {
    /// The run.
    pub run: RunId,
    /// What it references, in the order of their names.
    pub assets: Vec<AssetId>,
    /// Since when.
    pub at: Timestamp,
}

impl ReferenceRecord {
    /// The same assets in whatever order, or named twice, make the same record.
    pub fn new(run: &RunId, assets: &[AssetId], at: Timestamp) -> Self {
        let assets: BTreeSet<AssetId> = assets.iter().copied().collect();
        Self { run: run.clone(), assets: assets.into_iter().collect(), at }
    }
}

/// An upload in progress: written before its bytes are sealed, so that whatever a crash leaves behind has a row that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadIntent {
    /// Where the bytes will lie.
    pub blob: BlobKey,
    /// When the upload last showed life.
    pub alive_at: Timestamp,
    /// The asset that is to be made of it: whatever was written of that asset goes with the upload, if it never becomes one.
    #[serde(default)]
    pub asset: Option<AssetId>,
}

/// A blob whose bytes are to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doomed {
    /// Whose it is.
    pub tenant: TenantId,
    /// Where it lies.
    pub blob: BlobKey,
    /// For an upload that came to nothing: the asset that was to be made of it, whose recovery record may be there.
    pub asset: Option<AssetId>,
}

/// A claim on an idempotency key: the tenant's route and run are part of the name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Route, run and key, joined so that no two differ and meet.
    pub name: String,
    /// Which request holds it: random.
    pub holder: [u8; 16],
    /// An unfinished claim lapses at this instant unless it is renewed.
    pub lapses_at: Timestamp,
}

/// What a finished request leaves under its idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// The claim that the request held.
    pub claim: Claim,
    /// Of the asset's bytes and the request's members.
    pub fingerprint: Digest,
    /// How long the answer is kept.
    pub keep_until: Timestamp,
}
