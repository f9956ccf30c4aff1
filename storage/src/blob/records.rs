//! Recovery records: small files beside the blobs that say what the index says of them.

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use ring::digest;

use super::{BlobStore, Way, file_error, ignore_missing, unavailable};
use crate::error::StorageError;
use crate::fault;
use crate::ids::{ArtifactId, HoldId, RunId, TenantId};
use crate::record::{HoldOn, ReferenceRecord};

/// What a recovery record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOf<'a> {
    /// An asset's row.
    Asset(crate::AssetId),
    /// A run's row.
    Run(&'a RunId),
    /// A hold.
    Hold(&'a HoldOn, &'a HoldId),
    /// How often all of the tenant's URLs were revoked at once, as a number.
    Epoch,
    /// An artifact of a run.
    Artifact(&'a RunId, &'a ArtifactId),
}

/// What the store has of a run's references.
#[derive(Debug)]
pub struct ReferencesOf {
    folder: Path,
    records: Vec<Path>,
}

/// So often a record is written anew whose half another writer has taken away.
const TRIES: usize = 10;

impl BlobStore {
    /// Writes a recovery record: durable when this returns. Of one thing, the record with the highest `revision` counts.
    pub async fn put_record(
        &self,
        tenant: &TenantId,
        of: RecordOf<'_>,
        revision: u64,
        json: Vec<u8>,
    ) -> Result<(), StorageError> {
        self.put_json(&record_folder(tenant, of), &format!("{revision:020}.json"), json).await
    }

    /// Writes which assets a run references: durable when this returns. Every such record counts, and the same assets again are the same
    /// record, so that repeats leave no more.
    pub async fn put_references(&self, tenant: &TenantId, record: &ReferenceRecord) -> Result<(), StorageError> {
        let named = record.assets.iter().flat_map(|asset| asset.to_bytes()).collect::<Vec<u8>>();
        let name = data_encoding::HEXLOWER.encode(digest::digest(&digest::SHA256, &named).as_ref());
        let json = serde_json::to_vec(record).expect("names and a time can be written");
        self.put_json(&references_folder(tenant, &record.run), &format!("{name}.json"), json).await
    }

    /// What the records say that the run references, in no order.
    pub async fn references(&self, tenant: &TenantId, run: &RunId) -> Result<Vec<ReferenceRecord>, StorageError> {
        let mut records = Vec::new();
        for path in self.paths_in(&references_folder(tenant, run)).await? {
            let got = self.objects.get(&path).await.map_err(|error| unavailable(&error))?;
            let json = got.bytes().await.map_err(|error| unavailable(&error))?;
            records.push(serde_json::from_slice(&json).map_err(|error| {
                let reason = format!("recovery record {path}: {error}");
                StorageError::Corrupt { store: "store", reason }
            })?);
        }
        Ok(records)
    }

    /// What lies here of the run's references at this moment.
    pub async fn list_references(&self, tenant: &TenantId, run: &RunId) -> Result<ReferencesOf, StorageError> {
        let folder = references_folder(tenant, run);
        Ok(ReferencesOf { records: self.paths_in(&folder).await?, folder })
    }

    /// Removes these; what was written since stays.
    pub async fn remove_references(&self, listed: ReferencesOf) -> Result<(), StorageError> {
        for record in &listed.records {
            ignore_missing(self.objects.delete(record).await)?;
        }
        let Way::Files(files) = &self.way else { return Ok(()) };
        // Names of records are of hexadecimal digits.
        files.remove_cut_off_before(listed.folder.as_ref(), "g").await?;
        files.remove_empty_folder(listed.folder.as_ref()).await
    }

    /// The newest recovery record, if there is one.
    pub async fn newest_record(&self, tenant: &TenantId, of: RecordOf<'_>) -> Result<Option<Bytes>, StorageError> {
        let Some(newest) = self.record_paths(tenant, of).await?.into_iter().max() else {
            return Ok(None);
        };
        let got = self.objects.get(&newest).await.map_err(|error| unavailable(&error))?;
        got.bytes().await.map(Some).map_err(|error| unavailable(&error))
    }

    /// Removes the recovery records older than `revision`, or all of them.
    pub async fn remove_records(
        &self,
        tenant: &TenantId,
        of: RecordOf<'_>,
        older_than: Option<u64>,
    ) -> Result<(), StorageError> {
        if fault::fails("records.remove") {
            return Err(StorageError::Unavailable { store: "store", reason: "a test wants it so".to_owned() });
        }
        if let (Way::Files(files), None) = (&self.way, older_than) {
            return files.remove_folder(record_folder(tenant, of).as_ref()).await;
        }
        let keep_from = older_than.map(|revision| record_folder(tenant, of).join(format!("{revision:020}.json")));
        for path in self.record_paths(tenant, of).await? {
            if keep_from.as_ref().is_none_or(|from| path < *from) {
                ignore_missing(self.objects.delete(&path).await)?;
            }
        }
        // What was cut off while it was written is in no list, and says as much as any other.
        match (&self.way, older_than) {
            (Way::Files(files), Some(revision)) => {
                files.remove_cut_off_before(record_folder(tenant, of).as_ref(), &format!("{revision:020}")).await
            }
            _ => Ok(()),
        }
    }

    async fn record_paths(&self, tenant: &TenantId, of: RecordOf<'_>) -> Result<Vec<Path>, StorageError> {
        self.paths_in(&record_folder(tenant, of)).await
    }

    /// Writes the file, and takes away what an earlier write of it has left that was cut off.
    pub(super) async fn put_json(&self, folder: &Path, name: &str, json: Vec<u8>) -> Result<(), StorageError> {
        if let Way::Files(files) = &self.way {
            files.make_folder(folder.as_ref()).await?;
        }
        let (path, payload) = (folder.clone().join(name), PutPayload::from(json));
        let mut put = self.objects.put(&path, payload.clone()).await;
        for _ in 0..TRIES {
            // Another writer of the same record took ours for one that was cut off.
            let Err(error) = &put else { break };
            if file_error(error).is_none_or(|error| error.kind() != std::io::ErrorKind::NotFound) {
                break;
            }
            put = self.objects.put(&path, payload.clone()).await;
        }
        put.map_err(|error| unavailable(&error))?;
        match &self.way {
            Way::Files(files) => files.remove_cut_off(path.as_ref()).await,
            Way::Objects(_) => Ok(()),
        }
    }

    pub(super) async fn paths_in(&self, folder: &Path) -> Result<Vec<Path>, StorageError> {
        let list = self.objects.list(Some(folder)).map_ok(|meta| meta.location);
        list.try_collect().await.map_err(|error| unavailable(&error))
    }
}

fn record_folder(tenant: &TenantId, of: RecordOf<'_>) -> Path {
    let (what, id) = match of {
        RecordOf::Asset(id) => ("a", id.to_string()),
        RecordOf::Run(id) => ("r", text_prefix(id.as_str())),
        RecordOf::Epoch => ("e", "all".to_owned()),
        RecordOf::Artifact(run, id) => ("f", artifact_folder(run, id)),
        RecordOf::Hold(on, id) => ("h", hold_folder(on, id)),
    };
    Path::from_iter(["t", &tenant.prefix(), "r", what, &id])
}

/// The longest name that file systems take, in bytes.
const LONGEST_NAME: usize = 255;

/// Two long names make one that is too long; then a digest stands for them, and the record itself says what it is on.
pub(super) fn hold_folder(on: &HoldOn, id: &HoldId) -> String {
    let held = match on {
        HoldOn::Asset(asset) => asset.to_string(),
        HoldOn::Run(run) => text_prefix(run.as_str()),
    };
    let name = format!("{held}.{}", text_prefix(id.as_str()));
    if name.len() <= LONGEST_NAME {
        return name;
    }
    data_encoding::HEXLOWER.encode(digest::digest(&digest::SHA256, name.as_bytes()).as_ref())
}

/// Both names as they are would be longer than a folder's name may be.
pub(super) fn artifact_folder(run: &RunId, id: &ArtifactId) -> String {
    let names = format!("{run}\n{id}");
    data_encoding::HEXLOWER.encode(digest::digest(&digest::SHA256, names.as_bytes()).as_ref())
}

fn references_folder(tenant: &TenantId, run: &RunId) -> Path {
    Path::from_iter(["t", &tenant.prefix(), "r", "q", &text_prefix(run.as_str())])
}

/// A host's name where upper and lower case may be one.
pub(super) fn text_prefix(name: &str) -> String {
    data_encoding::BASE32_NOPAD.encode(name.as_bytes()).to_ascii_lowercase()
}
