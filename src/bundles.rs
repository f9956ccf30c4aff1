//! Debug bundles: what a host exports of a run, without its media and without anything that opens by itself.
//!
//! A bundle is read once, as it comes (`scan`), by a tokenizer that keeps nothing but what it found and where. To check it that is all.
//! To scrub it, the body lies on the disk meanwhile ([`spool`]): nothing is stored before the last byte was read and was right, and the
//! answer is the same bytes again but for the places that are written anew ([`scrub`]). So number spellings, the order of members, members
//! that stand there twice, escapes and white space come through as they were.
//!
//! Neither the body nor the answer is ever in memory: what is has a bound (one word of 8 KiB, 64 open objects, 10,000 media, 50,000
//! mentions, 1,000 findings). What lies on the disk is bounded as uploads are: a scrub has one of the tenant's places from its first byte
//! to the last of its answer, and writes only where `store.min_free` remains.

use std::io;

use mediakeep_storage::StorageError;

use crate::access::Principal;
use crate::app::App;
use crate::assets::AssetError;

pub mod answer;
mod body;
pub mod check;
mod data_url;
pub mod found;
mod links;
mod nested;
mod object;
mod outer;
pub mod resolve;
mod scan;
pub mod scrub;
pub mod spool;
mod text;
mod word;
mod words;

use found::Found;
use links::Links;
use scan::Scanner;
use spool::Spool;

/// Why a bundle is not taken.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Not JSON, or not one object.
    #[error("the body is not a JSON object: {what} at byte {offset}")]
    Syntax {
        /// The offending byte.
        offset: u64,
        /// What is there.
        what: &'static str,
    },
    /// More of something than one bundle may have.
    #[error("more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The most.
        limit: usize,
    },
    /// It names another tenant.
    #[error("another tenant")]
    ForeignTenant,
    /// It does not say which run it is of.
    #[error("run.runId: is needed, 1 to 128 of A-Z a-z 0-9 . _ : ~ -")]
    NoRun,
    /// Something of the assets.
    #[error(transparent)]
    Asset(#[from] AssetError),
}

impl From<StorageError> for BundleError {
    fn from(error: StorageError) -> Self {
        Self::Asset(error.into())
    }
}

impl From<io::Error> for BundleError {
    fn from(error: io::Error) -> Self {
        let reason = error.to_string();
        Self::Asset(AssetError::Storage(match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StorageError::Full { store: "store" },
            _ => StorageError::Unavailable { store: "store", reason },
        }))
    }
}

/// A bundle that is coming in.
#[derive(Debug)]
pub struct Reading<'a> {
    scanner: Scanner<'a>,
    spool: Option<Spool>,
    read: u64,
    limit: u64,
}

impl<'a> Reading<'a> {
    /// One that is only looked at.
    pub fn to_check(app: &'a App, caller: &'a Principal) -> Self {
        let scanner = Scanner::new(Links { app, tenant: &caller.tenant });
        Self { scanner, spool: None, read: 0, limit: app.settings.limits.max_json_bytes.0 }
    }

    /// One that will be written anew. `length` is how long it says that it is: so much room is kept for it.
    pub async fn to_scrub(app: &'a App, caller: &'a Principal, length: Option<u64>) -> Result<Self, BundleError> {
        let reading = Self::to_check(app, caller);
        let room = length.unwrap_or(0).min(reading.limit);
        Ok(Self { spool: Some(Spool::new(app, &caller.tenant, room).await?), ..reading })
    }

    /// Takes the next piece.
    pub async fn push(&mut self, chunk: &[u8]) -> Result<(), BundleError> {
        self.read += chunk.len() as u64;
        if self.read > self.limit {
            return Err(AssetError::TooLarge { limit: self.limit }.into());
        }
        self.scanner.push(chunk)?;
        if let Some(spool) = &mut self.spool {
            spool.write(chunk).await?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(Found, Option<Spool>), BundleError> {
        Ok((self.scanner.finish()?, self.spool))
    }
}
