//! What the store has kept of each tenant, for an index that is made anew.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use jiff::Timestamp;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use ring::digest;
use serde::de::DeserializeOwned;

use super::{BlobStore, artifact_folder, ignore_missing, unavailable};
use crate::error::StorageError;
use crate::ids::{AssetId, HoldId, RunId, TenantId};
use crate::record::{ArtifactRecord, AssetRecord, Hold, HoldOn, ReferenceRecord, RevokedUrls, RunRecord};

/// A tenant's recovery records by name; of each thing the newest.
#[derive(Debug, Default)]
pub struct Kept {
    runs: BTreeMap<String, Path>,
    assets: BTreeMap<String, Path>,
    artifacts: BTreeMap<String, Path>,
    holds: BTreeMap<String, Path>,
    epochs: BTreeMap<String, Path>,
    revoked: Vec<Path>,
    references: Vec<Path>,
    strangers: Vec<Path>,
}

/// A record, or why it does not read.
pub type Reading<T> = Result<T, Unreadable>;

/// A record that does not read: where it lies, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its place in the store.
    pub place: String,
    /// Why.
    pub reason: String,
}

impl BlobStore {
    /// Every tenant that anything was ever kept of.
    pub async fn tenants(&self) -> Result<Vec<TenantId>, StorageError> {
        let listed =
            self.objects.list_with_delimiter(Some(&Path::from("t"))).await.map_err(|error| unavailable(&error))?;
        let names = listed.common_prefixes.iter().filter_map(|prefix| prefix.filename().map(str::to_owned));
        Ok(names.filter_map(|name| TenantId::from_prefix(&name).ok()).collect())
    }

    /// The names of a tenant's records. What is there costs memory: about 200 bytes for each asset.
    pub async fn kept(&self, tenant: &TenantId) -> Result<Kept, StorageError> {
        let mut kept = Kept::default();
        let folder = Path::from_iter(["t", &tenant.prefix(), "r"]);
        let mut listed = self.objects.list(Some(&folder));
        while let Some(found) = listed.try_next().await.map_err(|error| unavailable(&error))? {
            kept.take(found.location);
        }
        Ok(kept)
    }

    /// The rows of its runs.
    pub async fn kept_runs(&self, kept: &Kept) -> Result<Vec<Reading<RunRecord>>, StorageError> {
        self.all(kept.runs.values()).await
    }

    /// The rows of its assets from behind `after`, in the order of their making; at most `limit` of them, with their names.
    pub async fn kept_assets(
        &self,
        kept: &Kept,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Reading<AssetRecord>)>, StorageError> {
        let behind = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        let mut rows = Vec::new();
        for (name, path) in kept.assets.range::<str, _>(behind).take(limit) {
            rows.push((name.clone(), self.read(path).await?));
        }
        Ok(rows)
    }

    /// What its runs' logs quote, in the order in which they began to.
    pub async fn kept_references(&self, kept: &Kept) -> Result<Vec<Reading<ReferenceRecord>>, StorageError> {
        let mut records: Vec<Reading<ReferenceRecord>> = self.all(&kept.references).await?;
        records.sort_by_key(|record| record.as_ref().map_or(Timestamp::MIN, |record| record.at));
        Ok(records)
    }

    /// Its runs' artifacts from behind `after`, in an order of their own; at most `limit` of them, with their places in it.
    pub async fn kept_artifacts(
        &self,
        kept: &Kept,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Reading<ArtifactRecord>)>, StorageError> {
        let behind = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        let mut artifacts = Vec::new();
        for (name, path) in kept.artifacts.range::<str, _>(behind).take(limit) {
            let artifact: Reading<ArtifactRecord> = self.read(path).await?;
            let elsewhere = || Unreadable { place: path.to_string(), reason: "its folder has another name".to_owned() };
            let own = |artifact: &ArtifactRecord| artifact_folder(&artifact.run, &artifact.id) == *name;
            let artifact = artifact.and_then(|artifact| if own(&artifact) { Ok(artifact) } else { Err(elsewhere()) });
            artifacts.push((name.clone(), artifact));
        }
        Ok(artifacts)
    }

    /// Its holds.
    pub async fn kept_holds(&self, kept: &Kept) -> Result<Vec<Reading<(HoldOn, Hold)>>, StorageError> {
        let mut holds = Vec::new();
        for (name, path) in &kept.holds {
            let hold: Reading<Hold> = self.read(path).await?;
            holds.push(hold.and_then(|hold| match held_by(name, &hold.id) {
                Some(on) => Ok((on, hold)),
                None => Err(Unreadable { place: path.to_string(), reason: "its folder has another name".to_owned() }),
            }));
        }
        Ok(holds)
    }

    /// How often all of its URLs were revoked at once.
    pub async fn kept_epochs(&self, kept: &Kept) -> Result<Vec<Reading<u32>>, StorageError> {
        self.all(kept.epochs.values()).await
    }

    /// Its delivery URLs that were revoked by name, as far as that may still matter.
    pub async fn kept_revoked(&self, kept: &Kept) -> Result<Vec<Reading<RevokedUrls>>, StorageError> {
        self.all(&kept.revoked).await
    }

    /// Writes that these delivery URLs are revoked: durable when this returns. Records of an earlier day that say nothing more at `now` go.
    pub async fn put_revoked(
        &self,
        tenant: &TenantId,
        record: &RevokedUrls,
        now: Timestamp,
    ) -> Result<(), StorageError> {
        let Some(until) = record.urls.iter().map(|(_, until)| *until).max() else {
            return Ok(());
        };
        let json = serde_json::to_vec(record).expect("names and times can be written");
        let name = data_encoding::HEXLOWER.encode(digest::digest(&digest::SHA256, &json).as_ref());
        let folder = Path::from_iter(["t", &tenant.prefix(), "r", "v"]);
        self.put_json(&folder.clone().join(day(until)), &format!("{name}.json"), json).await?;
        for path in self.paths_in(&folder).await? {
            if path.parts().nth(4).is_some_and(|kept| kept.as_ref() < day(now).as_str()) {
                ignore_missing(self.objects.delete(&path).await)?;
            }
        }
        Ok(())
    }

    async fn all<T: DeserializeOwned>(
        &self,
        paths: impl IntoIterator<Item = &Path>,
    ) -> Result<Vec<Reading<T>>, StorageError> {
        let mut records = Vec::new();
        for path in paths {
            records.push(self.read(path).await?);
        }
        Ok(records)
    }

    async fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Reading<T>, StorageError> {
        let got = self.objects.get(path).await.map_err(|error| unavailable(&error))?;
        let json = got.bytes().await.map_err(|error| unavailable(&error))?;
        Ok(serde_json::from_slice(&json)
            .map_err(|error| Unreadable { place: path.to_string(), reason: error.to_string() }))
    }
}

impl Kept {
    /// What lies among the records and is none.
    pub fn strangers(&self) -> impl Iterator<Item = &str> {
        self.strangers.iter().map(Path::as_ref)
    }

    fn take(&mut self, path: Path) {
        let parts: Vec<String> = path.parts().map(|part| part.as_ref().to_owned()).collect();
        let [_, _, _, what, name, _] = parts.as_slice() else {
            self.strangers.push(path);
            return;
        };
        let named = match what.as_str() {
            "r" => &mut self.runs,
            "a" if AssetId::parse(name).is_ok() => &mut self.assets,
            "f" => &mut self.artifacts,
            "h" => &mut self.holds,
            "e" => &mut self.epochs,
            "v" => {
                self.revoked.push(path);
                return;
            }
            "q" => {
                self.references.push(path);
                return;
            }
            _ => {
                self.strangers.push(path);
                return;
            }
        };
        let newest = named.entry(name.clone()).or_insert_with(|| path.clone());
        if *newest < path {
            *newest = path;
        }
    }
}

/// The day of that instant as a name that sorts; before 1970 nothing was revoked.
fn day(at: Timestamp) -> String {
    format!("{:010}", at.as_second().max(0) / 86_400)
}

/// What a hold is on, as its record's folder says: the name of an asset or of a run, and the name of the hold.
fn held_by(folder: &str, hold: &HoldId) -> Option<HoldOn> {
    let (on, id) = folder.split_once('.')?;
    if id != super::text_prefix(hold.as_str()) {
        return None;
    }
    if let Ok(asset) = AssetId::parse(on) {
        return Some(HoldOn::Asset(asset));
    }
    let run = data_encoding::BASE32_NOPAD.decode(on.to_ascii_uppercase().as_bytes()).ok()?;
    RunId::parse(std::str::from_utf8(&run).ok()?).ok().map(HoldOn::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_thing_the_newest_record_counts_and_what_is_none_is_named() {
        let asset = "ast_01jc0000000000000000000000";
        let mut kept = Kept::default();
        for path in [
            format!("t/x/r/a/{asset}/00000000000000000009.json"),
            format!("t/x/r/a/{asset}/00000000000000000010.json"),
            format!("t/x/r/a/{asset}/00000000000000000002.json"),
            "t/x/r/a/nonsense/00000000000000000001.json".to_owned(),
            "t/x/r/q/abc/1.json".to_owned(),
            "t/x/r/z/abc/1.json".to_owned(),
            "t/x/r/stray".to_owned(),
        ] {
            kept.take(Path::from(path));
        }

        let newest = kept.assets.get(asset).map(|path| path.filename().unwrap_or_default().to_owned());
        assert_eq!(newest.as_deref(), Some("00000000000000000010.json"));
        assert_eq!((kept.assets.len(), kept.references.len()), (1, 1));
        assert_eq!(kept.strangers().count(), 3);
    }

    #[test]
    fn a_folder_says_what_a_hold_is_on() {
        let (hold, run) = (HoldId::parse("audit-7").expect("a hold"), RunId::parse("run_1").expect("a run"));
        let asset = AssetId::parse("ast_01jc0000000000000000000000").expect("an asset");
        let prefix = super::super::text_prefix;

        let on_asset = format!("{asset}.{}", prefix("audit-7"));
        let on_run = format!("{}.{}", prefix("run_1"), prefix("audit-7"));
        assert_eq!(held_by(&on_asset, &hold), Some(HoldOn::Asset(asset)));
        assert_eq!(held_by(&on_run, &hold), Some(HoldOn::Run(run)));
        assert_eq!(held_by(&format!("{asset}.{}", prefix("other")), &hold), None);
        assert_eq!(held_by("nonsense", &hold), None);
    }
}
