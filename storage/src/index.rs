//! The index: what is known of assets, runs, uploads and the past.
//!
//! [`AssetIndex`] is the contract that every backend keeps; the crate page says what atomic, durable and visible mean in it. Each
//! method is one whole transition, named for it, so that every backend has the same races: none. The suite in `contract` runs every
//! transition against each of them, and random sequences of transitions against a model.
//!
//! # The queue of ends
//!
//! A run's end stands in one row, so extending a run is one write however many assets it has. What wakes the sweep is a queue of
//! *looks*: a run is looked at when its log ends, an asset at the end of a term of its own (an unreferenced upload, a sender's wish).
//! A look promises nothing: the floor is computed anew, and an asset that something else keeps is left alone, because whatever keeps
//! it has a look of its own or has no end. A run that moves takes its look with it. So a sweep costs what is due, not what exists.
//! A hold takes a run's look away, and its lifting brings it back; the erasure of a run is a look at once.
//!
//! # What the store is owed
//!
//! The store can make the index anew from the records beside its blobs, so each transition that changes what such a record says *owes*
//! one: [`Owed`](crate::record::Owed) is written in its commit. Whoever has made the transition writes the record and then notes it as paid; what a crash
//! leaves unpaid, the next sweep writes. A publication owes nothing: its record was written before it.
//!
//! # Artifacts
//!
//! An artifact is a document of a run, which names assets. It ends with the run's look: once the walk of a run that is over, or was
//! erased, has come to its last asset, the artifacts go, and whoever puts one into a run that is over already places another look. To
//! readers the artifacts of an erased run are gone at once. A fork takes none up: they are its parent's documents.
//!
//! # Forks
//!
//! A fork is a copy: in the transition that names its parent the child takes up every reference that the parent has at that moment.
//! That costs what the parent references, once, and leaves floors, pages and counts what they are, also for forks of forks.

use jiff::Timestamp;
use serde_json::Value;

use crate::audit::AuditEvent;
use crate::ids::ArtifactId;
use crate::record::{AssetRecord, RunRecord};

pub use self::answers::{
    Amended, Amendment, AssetQuery, BlobRow, Claimed, Deleted, Erasure, Look, LookAt, NewArtifact, NewAsset,
    NewDurable, Placed, Preview, Published, PutArtifact, Referred, Restored, RunErasure, RunQuery, Settlement, Updated,
};
pub use self::removal::RemovalTurn;
pub use self::transitions::{Assets, Ends, ResumableUploads, Runs, Upkeep, Uploads, Urls};

mod answers;
mod codec;
#[cfg(any(test, feature = "testing"))]
pub mod contract;
#[cfg(any(test, feature = "testing"))]
pub mod model;
pub mod postgres;
mod removal;
pub mod sled;
mod transitions;

/// What every index does: all of these, and nothing else. `now` is a parameter everywhere: an index has no clock.
pub trait AssetIndex: Uploads + ResumableUploads + Assets + Urls + Runs + Ends + Upkeep {}

impl<T: Uploads + ResumableUploads + Assets + Urls + Runs + Ends + Upkeep> AssetIndex for T {}

/// The audit event of an expiry, the same from every backend.
fn expiry_event(record: &AssetRecord, principal: &str, now: Timestamp) -> AuditEvent {
    // Without its digest: the log is for ever, and the asset may be erased one day.
    let details = Value::from_iter([("bytes", Value::from(record.bytes))]);
    AuditEvent::new(crate::audit::AuditKind::Expire, principal, now).asset(record.id).details(details)
}

/// The audit event of an artifact that goes with its run, the same from every backend.
fn artifact_end_event(run: &RunRecord, id: &ArtifactId, principal: &str, now: Timestamp) -> AuditEvent {
    use crate::audit::AuditKind::{Erase, Expire};
    let details = Value::from_iter([("artifactId", Value::from(id.as_str()))]);
    let kind = if run.erased_at.is_some() { Erase } else { Expire };
    AuditEvent::new(kind, principal, now).run(&run.id).details(details)
}

/// The audit event of an asset that is erased with its runs, the same from every backend. What is erased is not told once more.
fn erasure_event(record: &AssetRecord, principal: &str, now: Timestamp) -> AuditEvent {
    let why = Value::from_iter([("with", Value::from("run"))]);
    AuditEvent::new(crate::audit::AuditKind::Erase, principal, now).asset(record.id).details(why)
}
