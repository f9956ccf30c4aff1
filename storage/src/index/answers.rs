//! What the transitions are given beside records, and what they answer.

use jiff::Timestamp;
use serde_json::Value;

use crate::audit::AuditEvent;
use crate::ids::{ArtifactId, AssetId, BlobKey, Digest, HoldId, RunId, TenantId};
use crate::record::{
    ArtifactRecord, AssetRecord, AssetView, Hold, HoldOn, Labels, ReferenceRecord, RunRecord, RunStatus, RunView,
    Settled,
};

/// Who has an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// This request, from now on.
    Yours,
    /// Another one, which has not finished.
    InFlight,
    /// One that finished: it made this asset from a request with this fingerprint.
    Settled {
        /// What it made.
        asset: AssetId,
        /// Of what.
        fingerprint: Digest,
    },
}

/// What `publish` is given.
#[derive(Debug, Clone)]
pub struct NewAsset {
    /// The row as it will stand, but for the blob if the bytes are shared.
    pub record: AssetRecord,
    /// The idempotency answer, if the request had a key.
    pub settled: Option<Settled>,
    /// The blob that its recovery record names, if one was written: should the bytes come to lie in another, a new record is owed.
    pub recorded: Option<BlobKey>,
    /// When the newcomer's copy goes if it turns out not to be needed.
    pub discard_at: Timestamp,
    /// What the log says; the durable URL's id is added, which is known once the asset is there.
    pub audit: AuditEvent,
}

/// What `publish` did.
#[derive(Debug, Clone, PartialEq)]
pub enum Published {
    /// The asset is visible, and holds the bytes that were uploaded for it.
    Stored(AssetView),
    /// The asset is visible, and holds bytes that were there already; the copy is the caller's to remove and forget.
    Shared(AssetView),
    /// The idempotency claim was lost to another request: nothing happened.
    ClaimLost,
    /// The announcement was withdrawn or timed out, so the bytes may be gone: nothing happened.
    UploadLost,
    /// The run was erased: nothing happened.
    RunErased,
}

/// Which assets to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssetQuery {
    /// Only those that this run references.
    pub run: Option<RunId>,
    /// Only this family.
    pub kind: Option<String>,
    /// Only this type.
    pub mime_type: Option<String>,
    /// Only in this state: `live`, `expired` or `erased`.
    pub state: Option<String>,
    /// From behind this one.
    pub after: Option<AssetId>,
    /// At most so many.
    pub limit: usize,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Only in this status.
    pub status: Option<RunStatus>,
    /// From behind this one.
    pub after: Option<RunId>,
    /// At most so many.
    pub limit: usize,
}

/// A change of an asset's words: `Some(None)` clears, `None` leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amendment {
    /// The file name.
    pub name: Option<Option<String>>,
    /// The alternative text.
    pub alt: Option<Option<String>>,
    /// The caption.
    pub title: Option<Option<String>>,
    /// The revision that the caller saw; `None`: whatever it is.
    pub expected: Option<u64>,
}

impl Amendment {
    /// The words after the change.
    pub fn apply(&self, labels: &Labels) -> Labels {
        let pick = |change: &Option<Option<String>>, old: &Option<String>| match change {
            Some(new) => new.clone(),
            None => old.clone(),
        };
        Labels {
            name: pick(&self.name, &labels.name),
            alt: pick(&self.alt, &labels.alt),
            title: pick(&self.title, &labels.title),
        }
    }
}

/// What `amend` did.
#[derive(Debug, Clone, PartialEq)]
pub enum Amended {
    /// The row as it is now.
    Changed(AssetRecord),
    /// Somebody else changed it first.
    Stale,
    /// There is no such asset.
    Unknown,
    /// It is no longer live: its words are not to be changed.
    Dead(AssetRecord),
}

/// What a new durable URL is made of; its generation is the index's to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDurable {
    /// The ring key that signs it.
    pub kid: String,
    /// When, in seconds since 1970.
    pub issued_at: i64,
}

/// What `refer` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Referred {
    /// The run references all of them; this is its row now.
    All(RunRecord),
    /// Nothing happened: at these positions stand unknown assets.
    Unknown(Vec<usize>),
    /// Nothing happened: the run was erased.
    RunErased,
}

/// What `put_artifact` is given.
#[derive(Debug, Clone, PartialEq)]
pub struct NewArtifact {
    /// The run.
    pub run: RunId,
    /// Its name within the run.
    pub id: ArtifactId,
    /// What it says.
    pub document: Value,
    /// The assets that it names, in whatever order and however often.
    pub assets: Vec<AssetId>,
}

impl NewArtifact {
    /// The record, in place of the one that is there.
    pub(super) fn record(&self, before: Option<&ArtifactRecord>, number: u64, now: Timestamp) -> ArtifactRecord {
        ArtifactRecord {
            id: self.id.clone(),
            run: self.run.clone(),
            document: self.document.clone(),
            assets: ReferenceRecord::new(&self.run, &self.assets, now).assets,
            created_at: before.map_or(now, |before| before.created_at),
            put_at: now,
            number,
        }
    }
}

/// What `put_artifact` did.
#[derive(Debug, Clone, PartialEq)]
pub enum PutArtifact {
    /// It stands, and its run references what it names.
    Done {
        /// As it stands.
        artifact: Box<ArtifactRecord>,
        /// The run's row now.
        run: Box<RunRecord>,
        /// Whether another stood there before.
        replaced: bool,
    },
    /// Nothing happened: at these positions stand unknown assets.
    Unknown(Vec<usize>),
    /// Nothing happened: the run was erased.
    RunErased,
}

/// Something to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Whose.
    pub tenant: TenantId,
    /// At what.
    pub at: LookAt,
    /// Since when.
    pub due: Timestamp,
}

/// What a look looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookAt {
    /// Every asset that the run references.
    Run(RunId),
    /// One asset: its floor while it lives, its tombstone afterwards.
    Asset(AssetId),
}

/// What `settle` did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settlement {
    /// These assets ended.
    pub expired: Vec<AssetRecord>,
    /// These were erased with their runs.
    pub erased: Vec<AssetRecord>,
    /// Tombstones of these had their time: their rows are gone.
    pub dropped: Vec<AssetId>,
    /// Runs that referenced one of those, in the order of their names.
    pub unquoted: Vec<(RunId, AssetId)>,
    /// Artifacts of the run that went with it, each with the number of its end.
    pub artifacts: Vec<(ArtifactId, u64)>,
    /// So many live assets were looked at and stay.
    pub kept: usize,
    /// Whether the look is done.
    pub done: bool,
}

/// What `delete` did.
#[derive(Debug, Clone, PartialEq)]
pub enum Deleted {
    /// It has ended.
    Gone(AssetRecord),
    /// It had ended before.
    WasGone(AssetRecord),
    /// Something protects it.
    Protected(AssetView),
    /// These holds are on it, or on runs that reference it; at most [`AssetView::HOLDS`].
    Held(Vec<HoldId>),
    /// There is no such asset.
    Unknown,
}

/// A blob that the index names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobRow {
    /// Whose it is.
    pub tenant: TenantId,
    /// Where it lies.
    pub blob: BlobKey,
    /// How many bytes it has; `None` for an upload in progress.
    pub bytes: Option<u64>,
    /// How many assets hold it.
    pub holders: u64,
    /// Whether its bytes may be gone already.
    pub doomed: bool,
}

/// What `update_run` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    /// The run as it is now.
    pub view: RunView,
    /// What it took up from its parent just now, in the order of names.
    pub inherited: Vec<AssetId>,
}

/// What `hold` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// The hold as it stands.
    Done(Hold),
    /// There is no such asset or run.
    Unknown,
    /// It was erased: nothing is left to be kept.
    Erased,
}

/// What `erase` did.
#[derive(Debug, Clone, PartialEq)]
pub enum Erasure {
    /// It is erased, now or since earlier; if its bytes were to go, its blob is out of reach.
    Done(Box<AssetRecord>),
    /// These holds are on it, or on runs that reference it; at most [`AssetView::HOLDS`].
    Held(Vec<HoldId>),
    /// There is no such asset.
    Unknown,
}

/// What `erase_run` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunErasure {
    /// It is erased, now or since earlier.
    Done(RunRecord),
    /// These holds are on it; at most [`AssetView::HOLDS`].
    Held(Vec<HoldId>),
    /// There is no such run.
    Unknown,
}

/// What a sweep would take.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preview {
    /// A page of it, in the order of names.
    pub assets: Vec<AssetView>,
    /// How many it is in all.
    pub count: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

/// One thing that a store has kept of a tenant.
#[derive(Debug, Clone, PartialEq)]
pub enum Restored {
    /// A run's row.
    Run(RunRecord),
    /// An asset's row.
    Asset {
        /// The row. If it is live, its bytes are there: whoever restores has looked.
        record: Box<AssetRecord>,
        /// Whether its bytes are there, if it is dead: they go at their time, unless another asset holds them.
        has_bytes: bool,
    },
    /// What a run's log quotes.
    References(ReferenceRecord),
    /// A hold.
    Hold {
        /// What it is on.
        on: HoldOn,
        /// The hold.
        hold: Hold,
    },
    /// An artifact; of an erased run, that it is gone is owed instead.
    Artifact(Box<ArtifactRecord>),
    /// How often all of the tenant's URLs were revoked at once; the larger of this and what is there counts.
    Epoch(u32),
    /// A revoked URL.
    Revoked {
        /// Its id.
        url_id: String,
        /// When it would have ended by itself.
        keep_until: Timestamp,
    },
}
