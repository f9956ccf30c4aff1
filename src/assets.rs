//! The use cases of assets. Bytes enter through [`ingest`] alone and leave through [`fetch`] alone.

use mediakeep_storage::record::{AssetRecord, AssetState};
use mediakeep_storage::{HoldId, RunId, StorageError, Timestamp};
use serde_json::Value;

pub mod cache;
pub mod capability;
pub mod fetch;
pub mod ingest;
pub mod library;
pub mod members;
pub mod once;
pub mod paid;
pub mod instant;
pub mod resumable;
pub mod revocation;
pub mod urls;

/// Why a use case did not do what was asked. The edge decides what the caller hears.
#[derive(Debug, thiserror::Error)]
pub enum AssetError {
    /// There is no such thing for this tenant.
    #[error("no such asset, run or URL")]
    NotFound,
    /// Some of several are not there: at these positions.
    #[error("unknown at {positions:?}")]
    Unknown {
        /// Where.
        positions: Vec<usize>,
    },
    /// No bytes at all.
    #[error("no bytes")]
    Empty,
    /// More bytes than are taken.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// How many are.
        limit: u64,
    },
    /// A digest that was sent along is not that of the bytes.
    #[error("{what} does not match")]
    DigestMismatch {
        /// The header or member.
        what: &'static str,
    },
    /// A member is not what it should be; the text names it.
    #[error("{0}")]
    Invalid(String),
    /// The operator does not take such bytes.
    #[error("{detected} is refused")]
    Refused {
        /// What they were said to be.
        declared: Option<String>,
        /// What they are.
        detected: String,
    },
    /// More than the process can look at in time.
    #[error("more is being looked at than this process can")]
    Overloaded,
    /// Too much at a time.
    #[error("too many uploads at a time")]
    Busy,
    /// The tenant's quota leaves less than that.
    #[error("over the quota")]
    OverQuota,
    /// The idempotency key is in use.
    #[error("a request with this idempotency key is running")]
    IdempotencyInFlight,
    /// The idempotency key was used for something else.
    #[error("the idempotency key was used for another request")]
    IdempotencyMismatch,
    /// It changed since the caller saw it.
    #[error("changed meanwhile")]
    Stale,
    /// Something protects it.
    #[error("protected")]
    Protected {
        /// Until then; `None`: without end.
        retain_until: Option<Timestamp>,
        /// By these.
        because: Value,
    },
    /// The run's log is promised for longer.
    #[error("the log is promised for longer")]
    RunFloor {
        /// Until then; `None`: without end.
        current: Option<Timestamp>,
    },
    /// The run is a fork of another one already.
    #[error("a fork of another run")]
    ForkOf {
        /// Of this one.
        current: RunId,
    },
    /// The run was erased: it takes nothing more.
    #[error("the run was erased")]
    RunErased,
    /// Holds keep it.
    #[error("held")]
    Held {
        /// These, or the first of them.
        holds: Vec<HoldId>,
    },
    /// It is over.
    #[error("over")]
    Gone(Box<Gone>),
    /// The URL is past its time.
    #[error("the URL has expired")]
    UrlExpired,
    /// All uses of the URL are taken.
    #[error("the URL is used up")]
    UrlUsed,
    /// An upload in parts does not go on like that.
    #[error(transparent)]
    Resumable(#[from] resumable::Refusal),
    /// A store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Something that should not be.
    #[error("{0}")]
    Internal(String),
}

/// What is left of an asset that is over.
#[derive(Debug, Clone)]
pub struct Gone {
    /// Since when.
    pub at: Timestamp,
    /// Its row, unless it was erased.
    record: Option<AssetRecord>,
}

impl Gone {
    /// What is left of the asset, if it is over.
    pub fn of(record: &AssetRecord) -> Option<Self> {
        match record.state {
            AssetState::Live => None,
            AssetState::Expired { at } => Some(Self { at, record: Some(record.clone()) }),
            AssetState::Erased { at, .. } => Some(Self { at, record: None }),
        }
    }

    /// `asset_expired` or `asset_erased`.
    pub fn reason(&self) -> &'static str {
        if self.record.is_some() { "asset_expired" } else { "asset_erased" }
    }

    /// What may still be said of the bytes.
    pub fn bytes(&self) -> Option<&AssetRecord> {
        self.record.as_ref()
    }
}

impl From<Gone> for AssetError {
    fn from(gone: Gone) -> Self {
        Self::Gone(Box::new(gone))
    }
}
