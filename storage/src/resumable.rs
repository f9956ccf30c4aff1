//! Uploads that come in parts and may be gone on with: what is kept of one, and what may happen to it.
//!
//! An upload has one row, and one for each part of its bytes, which lies in a blob of its own. Whoever writes holds the upload's *lease*:
//! one at a time, however many ask at however many replicas. A lease that was not renewed lapses, so a writer that died keeps nobody
//! out for long. A part is appended where the last one ended, or not at all.
//!
//! # The life of an upload
//!
//! *Open*: parts come. What is reserved of the tenant's quota for it stays reserved, as one asset, from the transition that makes the
//! row to the one that ends or finishes it. *Finished*: the asset that was made of it is named until the row goes; the transition that
//! publishes the asset is the one that finishes the upload, so that no crash makes two of one, and what was reserved becomes what
//! is used. *Ended*: it was given up or has expired, or another upload was joined of it; nobody finds it any more.
//!
//! The parts of what is no longer open are nobody's: they are condemned in steps, because there may be many, and the row of an upload
//! that has ended goes with the last of them.
//!
//! This page's functions are pure: every index moves its rows by them, so that they agree on what may follow what.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AssetId, BlobKey, UploadId};

/// An upload that comes in parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumable {
    /// Its name.
    pub id: UploadId,
    /// How many bytes it is to have; `None` as long as nobody has said.
    pub length: Option<u64>,
    /// How many it has.
    pub offset: u64,
    /// What its bytes are for.
    pub purpose: Purpose,
    /// What its sender said of it; the service's own shape.
    pub said: Value,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it ends by itself, unless more bytes come.
    pub expires_at: Timestamp,
    /// When a sweep looks at it next.
    pub look_at: Timestamp,
    /// Who writes.
    pub lease: Option<Lease>,
    /// Where it is in its life.
    pub state: ResumableState,
}

/// What the bytes of an upload are for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// An asset is made of them.
    Asset,
    /// They are a piece of a later upload's.
    Piece,
    /// They are those of these pieces, one behind the other; none come of its own.
    Joined(Vec<UploadId>),
}

/// Where an upload is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ResumableState {
    /// Bytes may come.
    Open,
    /// This asset was made of it.
    Finished {
        /// Which.
        asset: AssetId,
    },
    /// It is over, and its parts go.
    Ended,
}

/// The right to write, for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Which request has it: random.
    pub holder: [u8; 16],
    /// Until when, unless it is renewed.
    pub until: Timestamp,
}

/// Bytes of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Where in the upload they begin.
    pub offset: u64,
    /// How many they are.
    pub bytes: u64,
    /// Where they lie.
    pub blob: BlobKey,
}

/// What became of a wish to begin an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// It is there.
    Done,
    /// The quota leaves less than that.
    OverQuota,
    /// The tenant has as many in progress as it may.
    TooMany,
}

/// What became of a wish for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leased {
    /// It is the asker's; this is the upload.
    Yours(Box<Resumable>),
    /// Somebody else has it.
    Taken,
    /// There is no such upload.
    Unknown,
}

/// How long an upload is kept, as of its last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptFor {
    /// When it ends by itself.
    pub expires_at: Timestamp,
    /// When a sweep may take it: not sooner than that.
    pub look_at: Timestamp,
}

/// Who makes an asset of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joining {
    /// Of this one.
    pub upload: UploadId,
    /// Who has its lease.
    pub holder: [u8; 16],
}

/// What a step of clearing did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleared {
    /// These blobs are condemned now.
    pub condemned: Vec<BlobKey>,
    /// Whether more are left for the next step.
    pub more: bool,
    /// Whether this step found the upload past its time.
    pub expired: bool,
}

/// What a look at an upload comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It goes on as it is.
    Stays,
    /// It is looked at later: this is its row.
    Later(Resumable),
    /// Its parts go: this is its row, and whether it was open until now.
    Over(Resumable, bool),
}

impl Resumable {
    /// Whether nobody finds it any more.
    pub fn has_ended(&self) -> bool {
        self.state == ResumableState::Ended
    }

    /// Whether all of its bytes are there, and nothing was made of them yet.
    pub fn is_complete(&self) -> bool {
        self.state == ResumableState::Open && (self.length == Some(self.offset) || !self.pieces().is_empty())
    }

    /// What was made of it.
    pub fn asset(&self) -> Option<AssetId> {
        match self.state {
            ResumableState::Finished { asset } => Some(asset),
            _ => None,
        }
    }

    /// The pieces that it is joined of; none for any other.
    pub fn pieces(&self) -> &[UploadId] {
        match &self.purpose {
            Purpose::Joined(pieces) => pieces,
            _ => &[],
        }
    }

    /// Whether it is a piece that has all of its bytes.
    pub(crate) fn is_ready_piece(&self) -> bool {
        self.purpose == Purpose::Piece && self.is_complete()
    }

    /// Whether somebody else may write at that time.
    fn is_taken(&self, holder: [u8; 16], now: Timestamp) -> bool {
        self.lease.is_some_and(|lease| lease.holder != holder && lease.until > now)
    }

    /// Whether this request may write: it has the lease, or had it and nobody has taken it since.
    pub(crate) fn is_held_by(&self, holder: [u8; 16]) -> bool {
        self.lease.is_some_and(|lease| lease.holder == holder)
    }

    /// With the lease; `None` if somebody else has it.
    pub(crate) fn leased(&self, lease: Lease, now: Timestamp) -> Option<Self> {
        if self.is_taken(lease.holder, now) {
            return None;
        }
        let until = match self.lease {
            Some(before) if before.holder == lease.holder => before.until.max(lease.until),
            _ => lease.until,
        };
        Some(Self { lease: Some(Lease { until, ..lease }), ..self.clone() })
    }

    /// Without the lease; `None` if it is not this request's.
    pub(crate) fn released(&self, holder: [u8; 16]) -> Option<Self> {
        self.is_held_by(holder).then(|| Self { lease: None, ..self.clone() })
    }

    /// With a length, if one is said; `None` if it cannot have it.
    pub(crate) fn with_length(&self, holder: [u8; 16], length: Option<u64>) -> Option<Self> {
        let right = match (self.length, length) {
            (Some(known), Some(said)) => known == said,
            (None, Some(said)) => said >= self.offset,
            (_, None) => true,
        };
        let open = self.state == ResumableState::Open && self.is_held_by(holder);
        (open && right).then(|| Self { length: self.length.or(length), ..self.clone() })
    }

    /// With the part behind its last byte; `None` if it does not belong there.
    pub(crate) fn appended(&self, holder: [u8; 16], part: &Part, kept: KeptFor) -> Option<Self> {
        let end = part.offset.checked_add(part.bytes)?;
        let fits = self.length.is_none_or(|length| end <= length) && self.pieces().is_empty();
        let open = self.state == ResumableState::Open && self.is_held_by(holder);
        let KeptFor { expires_at, look_at } = kept;
        (open && fits && part.offset == self.offset && part.bytes > 0).then(|| Self {
            offset: end,
            expires_at,
            look_at,
            ..self.clone()
        })
    }

    /// As the upload that the asset was made of; `None` if it is not this request's to finish.
    pub(crate) fn finished(&self, holder: [u8; 16], asset: AssetId, now: Timestamp) -> Option<Self> {
        let right = self.is_complete() && self.purpose != Purpose::Piece && self.is_held_by(holder);
        right.then(|| Self {
            offset: self.length.unwrap_or(self.offset),
            lease: None,
            look_at: now,
            state: ResumableState::Finished { asset },
            ..self.clone()
        })
    }

    /// As one that has ended, to be cleared at once.
    pub(crate) fn ended(&self, now: Timestamp) -> Self {
        Self { lease: None, look_at: now, state: ResumableState::Ended, ..self.clone() }
    }

    /// What a look at it comes to.
    pub(crate) fn seen(&self, now: Timestamp) -> Seen {
        match (self.state, self.lease) {
            (ResumableState::Open, _) if self.look_at > now => Seen::Stays,
            (ResumableState::Open, Some(lease)) if lease.until > now => {
                Seen::Later(Self { look_at: lease.until, ..self.clone() })
            }
            (ResumableState::Open, _) => Seen::Over(self.ended(now), true),
            _ => Seen::Over(self.clone(), false),
        }
    }

    /// The row once its last part is gone; `None`: it goes too.
    pub(crate) fn cleared(&self, now: Timestamp) -> Option<Self> {
        let stays = self.asset().is_some() && self.expires_at > now;
        stays.then(|| Self { look_at: self.expires_at, ..self.clone() })
    }
}
