//! Opening index and store: both that are there, or two new ones; never an empty one beside the other's data.
//!
//! A folder that was not mounted looks like one that was never made. Were an empty one put in its place, the service would answer as if
//! every asset were lost, and take up new ones where nobody looks for them.

use std::path::PathBuf;
use std::sync::Arc;

use mediakeep_storage::blob::{S3Options, StoreOptions};
use mediakeep_storage::index::postgres::{PostgresIndex, PostgresOptions};
use mediakeep_storage::index::sled::{SledIndex, SledOptions};
use mediakeep_storage::{AssetIndex, BlobStore, StorageError};
use url::Url;

use super::StartError;
use crate::config::address::IndexPlace;
use crate::config::units::Size;
use crate::config::{self, ConfigError, Settings};

/// Both stores.
#[derive(Debug)]
pub(super) struct Stores {
    /// What is known.
    pub(super) index: Arc<dyn AssetIndex>,
    /// The bytes.
    pub(super) blobs: BlobStore,
    /// The index again, where it is a database whose connections have to be closed.
    pub(super) database: Option<Arc<PostgresIndex>>,
}

/// Opens both; makes both if neither has anything.
pub(super) async fn open_or_make(settings: &Settings) -> Result<Stores, StartError> {
    if has_index(settings).await? {
        let stores = open_beside_index(settings).await?;
        // What is served has data of its own from now on.
        stores.blobs.is_nobodys_copy().await?;
        return Ok(stores);
    }
    // A replica that starts at the same moment may have made the index meanwhile, and put bytes into the store: look again.
    if !is_store_empty(settings).await? && !has_index(settings).await? {
        return Err(refused(format!(
            "index.url: there is no index at {}, but the store {} has data: mount the index, name the one that belongs to it, or restore it from its backup; to begin anew, move the store's data away",
            settings.index.url, settings.store.url
        )));
    }
    // The store first: whoever finds an index finds its store beside it.
    let blobs = open_blobs(settings)?;
    let (index, database) = open_index(settings).await?;
    Ok(Stores { index, blobs, database })
}

/// Opens both, and makes neither: a command that looks after what is there has nothing to do where nothing is.
pub(super) async fn open_existing(settings: &Settings) -> Result<Stores, StartError> {
    if !has_index(settings).await? {
        return Err(refused(format!(
            "index.url: there is no index at {}: mount it, or name the one that the service uses",
            settings.index.url
        )));
    }
    if store_folder(settings)?.is_some_and(|folder| !folder.is_dir()) {
        return Err(refused(format!(
            "store.url: there is no store at {}: mount it, or name the one that the service uses",
            settings.store.url
        )));
    }
    open_beside_index(settings).await
}

/// Opens the store that is there, and a new index beside it.
pub(super) async fn open_for_rebuild(settings: &Settings) -> Result<Stores, StartError> {
    if is_store_empty(settings).await? {
        return Err(refused(format!(
            "store.url: there is nothing in the store {}: mount it first",
            settings.store.url
        )));
    }
    let (index, database) = open_index(settings).await?;
    if !index.assets(None, 1).await?.is_empty() || !index.blobs(None, 1).await?.is_empty() {
        return Err(refused(format!(
            "--to: the index {} has assets; an index is made anew only where there is none",
            settings.index.url
        )));
    }
    Ok(Stores { index, blobs: open_blobs(settings)?, database })
}

/// The store that is there, and one to copy it to: empty, or begun to be a copy of it.
pub(super) async fn open_to_copy(settings: &Settings, to: &str) -> Result<(BlobStore, BlobStore), StartError> {
    if is_store_empty(settings).await? {
        return Err(refused(format!(
            "store.url: there is nothing in the store {}: mount it first",
            settings.store.url
        )));
    }
    let mut target = settings.clone();
    to.clone_into(&mut target.store.url);
    // Nobody is sent to a copy.
    target.delivery.redirect = false;
    let (from, there) = (address("store.url", &settings.store.url)?, address("--to", to)?);
    let (source_place, target_place) = (place_of(&from), place_of(&there));
    if source_place == target_place {
        return Err(refused("--to: is the store itself".to_owned()));
    }
    if source_place.starts_with(&target_place) || target_place.starts_with(&source_place) {
        return Err(refused("--to: one of the two stores lies in the other: name a place beside it".to_owned()));
    }
    let (source, target) = (open_blobs(settings)?, open_blobs(&target)?);
    if !target.is_copy_of(from.as_str()).await? {
        if !target.is_empty().await? {
            return Err(refused(format!("--to: the store {to} has data of its own; a copy goes where there is none")));
        }
        target.note_copy_of(from.as_str()).await?;
    }
    Ok((source, target))
}

/// Scheme, host, and each step of the path: slashes too many make no other place.
fn place_of(address: &Url) -> Vec<&str> {
    let steps = address.path().split('/').filter(|step| !step.is_empty());
    [address.scheme(), address.host_str().unwrap_or_default()].into_iter().chain(steps).collect()
}

/// Whether there is nothing in either.
pub(super) async fn are_empty(settings: &Settings) -> Result<bool, StartError> {
    Ok(!has_index(settings).await? && is_store_empty(settings).await?)
}

async fn open_beside_index(settings: &Settings) -> Result<Stores, StartError> {
    let (index, database) = open_index(settings).await?;
    if !is_in_memory(settings)? && is_store_empty(settings).await? && holds_bytes(&*index).await? {
        return Err(refused(format!(
            "store.url: the store {} is empty, but the index {} has assets: mount the store or restore it from its backup; to begin anew, take another index",
            settings.store.url, settings.index.url
        )));
    }
    Ok(Stores { index, blobs: open_blobs(settings)?, database })
}

/// Blobs are read in pages of this size until one is found that an asset holds; nearly always the first is.
const PAGE: usize = 1_000;

/// Whether bytes have to be in the store.
async fn holds_bytes(index: &dyn AssetIndex) -> Result<bool, StorageError> {
    let mut after = None;
    loop {
        let page = index.blobs(after, PAGE).await?;
        if page.iter().any(|row| row.holders > 0 && !row.doomed) {
            return Ok(true);
        }
        let Some(last) = page.last() else {
            return Ok(false);
        };
        after = Some((last.tenant.clone(), last.blob));
    }
}

/// Whether there is an index, without making one.
async fn has_index(settings: &Settings) -> Result<bool, StartError> {
    Ok(match index_place(settings)? {
        IndexPlace::Sled(folder) => folder.join("db").exists(),
        IndexPlace::Postgres(url) => PostgresIndex::is_there(url, &PostgresOptions::default()).await?,
    })
}

/// Whether the store has nothing, without making it.
async fn is_store_empty(settings: &Settings) -> Result<bool, StartError> {
    let not_made = store_folder(settings)?.is_some_and(|folder| !folder.is_dir());
    if not_made || is_in_memory(settings)? {
        return Ok(true);
    }
    Ok(open_blobs(settings)?.is_empty().await?)
}

fn open_blobs(settings: &Settings) -> Result<BlobStore, StartError> {
    let store = &settings.store;
    let s3 = &store.s3;
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let s3 = S3Options {
        endpoint: given(&s3.endpoint),
        region: given(&s3.region),
        path_style: s3.path_style,
        allow_http: s3.allow_http,
    };
    let options = StoreOptions { s3, environment: config::store_environment()? };
    let blobs = BlobStore::open(&address("store.url", &store.url)?, &options)?;
    if settings.delivery.redirect && !blobs.signs_urls() {
        let why = "delivery.redirect: no URL of this store works for somebody else (its requests are not signed, or need a session or a customer's key): leave it at false";
        return Err(refused(why.to_owned()));
    }
    let most = settings.limits.max_upload_bytes;
    match blobs.largest() {
        Some(largest) if most.0 > largest => Err(refused(format!(
            "limits.max_upload_bytes: {most} does not fit into the 10,000 parts of an object store's upload: set it to {} or less",
            Size(largest)
        ))),
        _ => Ok(blobs),
    }
}

/// Whether the bytes go with the process.
fn is_in_memory(settings: &Settings) -> Result<bool, StartError> {
    Ok(address("store.url", &settings.store.url)?.scheme() == "memory")
}

/// At the most about so much memory for the embedded index's pages: it grows with what is read and written, so a small index takes little.
/// The rows that are asked for again and again have a cache of their own.
const INDEX_CACHE: u64 = 128 << 20;

type Index = (Arc<dyn AssetIndex>, Option<Arc<PostgresIndex>>);

async fn open_index(settings: &Settings) -> Result<Index, StartError> {
    Ok(match index_place(settings)? {
        IndexPlace::Sled(folder) => {
            let options =
                SledOptions { cache_bytes: INDEX_CACHE, min_free: settings.store.min_free.0, ..SledOptions::default() };
            (Arc::new(SledIndex::open(&folder, options)?), None)
        }
        IndexPlace::Postgres(url) => {
            let index = Arc::new(PostgresIndex::open(url, PostgresOptions::default()).await?);
            (index.clone(), Some(index))
        }
    })
}

fn index_place(settings: &Settings) -> Result<IndexPlace<'_>, StartError> {
    settings.index.url.place().map_err(|why| refused(format!("index.url: {why}")))
}

/// The folder in which the store's data lies, if it is one of this machine.
fn store_folder(settings: &Settings) -> Result<Option<PathBuf>, StartError> {
    let url = address("store.url", &settings.store.url)?;
    Ok((url.scheme() == "file").then(|| url.to_file_path().ok()).flatten().map(|folder| folder.join("t")))
}

fn address(name: &str, raw: &str) -> Result<Url, ConfigError> {
    Url::parse(raw).map_err(|error| ConfigError(format!("{name}: {raw:?} is not an address: {error}")))
}

fn refused(sentence: String) -> StartError {
    StartError::Config(ConfigError(sentence))
}
