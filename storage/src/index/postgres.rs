//! The index in PostgreSQL, which many replicas share.
//!
//! # How it keeps the contract
//!
//! - **Atomic**: each transition is one `SERIALIZABLE` transaction (`tx`), done again as a whole when the database refuses it for what
//!   others did beside it. The exceptions, the sealing of the audit log, the taking of a use
//!   and the reserving of room under a quota, go by one row's lock and say why.
//! - **Durable**: `COMMIT` is answered once the write-ahead log is on disk (`synchronous_commit = on`), and a call returns `Ok` only
//!   after that answer. If the connection is lost between the two, the call says [`StorageError::Unavailable`] and that it is not known
//!   what happened. A server that runs with `fsync` or `full_page_writes` off is named in the log when the index is opened.
//! - **Visible**: whatever a call has returned `Ok` for, every later call on every replica sees: nothing is cached here, and no read
//!   goes to a standby. What is read of several rows (an asset with its floor, a page with theirs) is one statement, which sees one
//!   moment.
//! - **Abandoned calls**: a caller that no longer waits leaves its transition undone, or, once `COMMIT` is sent, whole.
//!
//! # How replicas keep out of each other's way
//!
//! Rows are made by inserting, not by looking first; what is found by time (looks, uploads, condemned blobs, keys to tidy) stands in
//! tables of its own, so that changing a row touches no index and with it no page that another transaction has read. Sequential scans
//! are turned off in each session: on a table of a few rows the planner prefers them, and under `SERIALIZABLE` a scan counts as having
//! read all of the table, so that every two transitions of a young index would conflict.
//!
//! Publications that are refused take turns with those of the same run or bytes (`turns`): hundreds at once, of equal bytes or into one run
//! that nobody has registered, would else try in vain until their patience ends.
//!
//! Locks are taken in this order: a tenant's sum of use, upload in parts, claim, run, asset, upload, blob. What cannot keep to it (the end of an asset looks at its runs last, and
//! an erasure at the answer of its request) does not wait for a lock but begins again. Sweeps skip what another one has locked, and
//! share the work so; bytes are removed by the one that has locked the row of that turn (`mk_turns`).
//!
//! That the database can put two transitions in an order is not enough where a caller was told of one of them. What must have been
//! first for whoever heard of it meets the other in a row:
//!
//! - **An end and a longer run, or a hold on the run**: the end, an erasure and the dropping of a tombstone lock the asset's runs for
//!   sharing. A hold on the asset is counted in the row that they write.
//! - **A hold and the removal of a dead asset's bytes**: who takes a blob out of reach has locked it, and the runs of the dead that had
//!   it for sharing. A hold on a dead asset, and a reference to one by a held run, write the blob's row as it is.
//! - **A fork and its parent's erasure or walk**: the fork locks its parent for sharing. What it takes up it reads and does not lock,
//!   as a reference does: an end of it has read the references, and of the two only one happens.
//! - **An artifact that is put, and an end or the erasure of its run**: each putting counts in the run's row, which the walk that ends the
//!   run's artifacts has locked, and the erasure writes.
//! - **The erasure of a run and a publication into it**: the publication only reads the run's row, because thousands a minute go into
//!   one. The erasure reads the run's references, so the database lets only one of the two happen.
//!
//! Holds are counted in the rows of what they are on: where there are none, nothing asks for them.
//!
//! # The rows
//!
//! `storage/migrations` has the tables. Columns hold what a query or a transition looks at; the rest of a record is its JSON behind one
//! byte for its version, the same that the index in `sled` keeps, in a column `record`. To read one in psql:
//!
//! ```sql
//! SELECT convert_from(substr(record, 2), 'UTF8')::json FROM mk_assets WHERE tenant = 'acme' LIMIT 1;
//! ```
//!
//! Times are microseconds since 1970 (`to_timestamp(at / 1e6)`), rounded so that nothing ends before its record says. Words from
//! outside (idempotency keys, URL ids, types) are bytes, because PostgreSQL's text does not hold every string. Names of tenants and runs
//! are compared byte by byte (`COLLATE "C"`).
//!
//! Only plain SQL is used, which wire-compatible databases run too: no extension, no advisory lock, no procedure, no notification.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::PgPool;
use tokio::runtime::Handle;

use self::turns::Turns;
use crate::error::StorageError;
mod artifacts;
mod assets;
mod blobs;
mod calls;
mod connect;
mod due;
mod ending;
mod erasing;
mod failed;
mod holds;
mod ingest;
mod looks;
mod owed;
mod removal;
mod restore;
mod resumable;
mod rows;
mod runs;
mod sql;
#[cfg(test)]
mod tests;
mod turns;
mod tx;
mod upkeep;
mod urls;
mod usage;

/// How the database is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    /// How many connections this process may have. A call holds one only while its transaction runs, so a few serve many requests;
    /// all replicas together have to stay below the server's own `max_connections`.
    pub max_connections: u32,
    /// How long a call waits for a connection, or for a new one to be made.
    pub acquire_timeout: Duration,
    /// How long the server works on one statement.
    pub statement_timeout: Duration,
    /// How long a statement waits for a row that another transaction has locked.
    pub lock_timeout: Duration,
}

impl Default for PostgresOptions {
    /// 16 connections, of which six replicas fit into a server as it is delivered; 5 s for a connection and for a lock, 15 s for a
    /// statement: a request that waits longer has been given up by most callers.
    fn default() -> Self {
        Self {
            max_connections: 16,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(15),
            lock_timeout: Duration::from_secs(5),
        }
    }
}

/// An [`AssetIndex`](super::AssetIndex) in a PostgreSQL database.
pub struct PostgresIndex {
    pool: PgPool,
    /// Where connections are made and waited on: they belong to the runtime in which they were made, and end with it. Callers may have
    /// runtimes of their own that end sooner.
    home: Handle,
    options: PostgresOptions,
    retries: AtomicU64,
    turns: Turns,
}

impl PostgresIndex {
    /// Connects, and brings the schema up to date, one replica at a time.
    ///
    /// [`StorageError::BadAddress`] if that is no URL of a database, or if a newer build has made the schema;
    /// [`StorageError::Unavailable`] if it cannot be reached. Neither holds the URL.
    pub async fn open(url: &str, options: PostgresOptions) -> Result<Self, StorageError> {
        let pool = connect::open(url, &options).await?;
        Ok(Self { pool, home: Handle::current(), options, retries: AtomicU64::new(0), turns: Turns::default() })
    }

    /// Whether the database has an index already; makes nothing.
    pub async fn is_there(url: &str, options: &PostgresOptions) -> Result<bool, StorageError> {
        connect::is_there(url, options).await
    }

    /// Ends its connections in good order, once the calls that use them have returned.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// How often a transition was done again because of what others did at the same time.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for PostgresIndex {
    /// Nothing of where the database is: its address holds a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresIndex")
            .field("options", &self.options)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
