//! What the transitions of lineage, holds and erasure answer, and what an index is made anew from.

use jiff::Timestamp;

use crate::ids::{AssetId, HoldId};
use crate::record::{AssetRecord, AssetView, Hold, HoldOn, ReferenceRecord, RunRecord, RunView};

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
