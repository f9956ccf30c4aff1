//! What a store can fail with. The edge decides what a caller hears of it.

use std::io;

/// A store did not do what it was asked. Nothing of the transition has happened, unless the variant or its reason says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The store cannot be reached or has stopped working; trying again later may help. If the connection to a shared index broke off
    /// while it was committing, the reason says that the outcome is not known.
    #[error("the {store} is not available: {reason}")]
    Unavailable {
        /// Which one: `index` or `store`.
        store: &'static str,
        /// What it said; for the log, never for a caller.
        reason: String,
    },
    /// The disk under the store is full or nearly so: nothing was written.
    #[error("no space left for the {store}")]
    Full {
        /// Which one: `index` or `store`.
        store: &'static str,
    },
    /// Another process holds the index.
    #[error("another process is using the index at {path}: stop it, or give this one an index of its own")]
    Locked {
        /// The folder.
        path: String,
    },
    /// A record does not decode: a newer version wrote it, or the disk damaged it.
    #[error("a record of the {store} does not read: {reason}")]
    Corrupt {
        /// Which one: `index` or `store`.
        store: &'static str,
        /// Which record, and what is wrong with it.
        reason: String,
    },
    /// The store's address is not one that this build can open.
    #[error("{0}")]
    BadAddress(String),
    /// The bytes are not there.
    #[error("the blob is gone")]
    NoSuchBlob,
}

impl StorageError {
    /// The error for a file that could not be read or written.
    pub fn file(store: &'static str, doing: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { store },
            _ => Self::Unavailable { store, reason: format!("{doing}: {error}") },
        }
    }
}
