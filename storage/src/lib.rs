//! Bytes and index: where mediakeep keeps media, and what it knows of it.
//!
//! Two stores stand behind the service. [`BlobStore`] holds **bytes**: immutable blobs under random keys, and small recovery
//! records beside them. [`AssetIndex`] holds **what is known**: assets, runs, references, idempotency claims, uploads in
//! progress, condemned blobs and the audit log. This page says what the two promise.
//!
//! # Atomic, durable, visible
//!
//! - **Atomic**: each method of [`AssetIndex`] is one whole transition. It happens entirely or not at all, to a crash as well as to
//!   a reader beside it, and the audit event that it carries is written with it.
//! - **Durable**: when a transition's call returns `Ok`, neither SIGKILL nor a power cut takes it back. When [`blob::Staging::seal`]
//!   returns, the same holds for the bytes and for the folder entries that lead to them.
//! - **Visible**: what a call has returned `Ok` for, every later call sees, in this process and, where replicas share an index, in
//!   every other: nothing is cached below this trait. What the service keeps of rows above it is the service's own, and so is how
//!   long. A reader may see a transition an instant before it is durable; nobody is *told* that it happened before it is.
//! - **Unanswered**: a caller that stops waiting leaves its transition whole or undone, never in part. [`StorageError::Unavailable`]
//!   says that nothing has happened, unless it says that the answer was lost: then the next read tells.
//! - A row is visible only once its bytes are complete and durable; bytes are removed only once no row points at them. A crash can
//!   leave an orphan, never a live asset without bytes.
//!
//! One index is embedded ([`index::sled`]: one process, nothing to install), one is shared ([`index::postgres`]: many replicas). Both
//! pass the same suite, races and random sequences included.
//!
//! # The life of a blob
//!
//! An upload is announced ([`index::Uploads::begin_upload`]) before its bytes are sealed, so that whatever a crash leaves behind has a row
//! that names it. [`index::Uploads::publish`] turns the announcement into an asset; equal bytes of one tenant share the blob that is
//! already there, and the newcomer's copy is put on the list of doomed blobs. When the last asset that holds a blob ends, the blob is
//! condemned to go at a stated time; a new upload of the same bytes before then rescues it. [`index::Ends::doom`] takes what is past
//! its time out of reach of any rescue *before* its bytes are touched, and [`index::Ends::forget`] drops the row *after* they are gone:
//! a crash at any point repeats work and loses nothing.
//!
//! # Deliberately absent
//!
//! No HTTP, no configuration, no environment, no clock: `now` is a parameter, terms of retention are values. No sharing between
//! tenants: every query takes a [`TenantId`] first, and equal bytes of two tenants are two blobs, because a shared one would tell each
//! of them what the other has. The exceptions, which serve the sweep alone, say so.
//!
//! Modules in reading order:

pub mod audit;
pub mod blob;
pub mod error;
pub mod fault;
pub mod ids;
pub mod index;
pub mod quota;
pub mod record;
pub mod resumable;
pub mod retention;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use audit::{AuditEvent, AuditRow};
pub use blob::BlobStore;
pub use error::StorageError;
pub use ids::{ArtifactId, AssetId, BlobKey, Digest, HoldId, RunId, TenantId, UploadId};
pub use index::AssetIndex;
pub use record::{AssetRecord, AssetView, RunRecord};

/// The one clock type of the project: an instant in UTC. The service hands in whole milliseconds.
pub use jiff::Timestamp;
