//! What the store has kept of each tenant, for an index that is made anew.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use futures_util::TryStreamExt;
use jiff::Timestamp;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use ring::digest;
use serde::de::DeserializeOwned;

use super::records::{artifact_folder, hold_folder};
use super::{BlobStore, ignore_missing, unavailable};
use crate::error::StorageError;
use crate::ids::{AssetId, RunId, TenantId};
use crate::record::{ArtifactRecord, AssetRecord, Hold, HoldOn, HoldRecord, ReferenceRecord, RevokedUrls, RunRecord};

mod reading;

/// A tenant's recovery records by name.
#[derive(Debug, Default)]
pub struct Kept {
    runs: BTreeMap<String, Revisions>,
    assets: BTreeMap<String, Revisions>,
    artifacts: BTreeMap<String, Revisions>,
    holds: BTreeMap<String, Revisions>,
    epochs: BTreeMap<String, Revisions>,
    revoked: Vec<Revisions>,
    references: Vec<Revisions>,
    strangers: Vec<Path>,
}

/// The records of one thing.
#[derive(Debug)]
struct Revisions {
    newest: Path,
    /// What a crash has left of those before it, in no order.
    older: Vec<Path>,
}

/// What the records of one thing say: the newest that reads.
///
/// A change is told only when the records before it are gone. So whatever an older one says beside a newer that does not read, nobody was
/// told more; and of what was erased no older one is left before the newest is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading<T> {
    /// What it says.
    pub record: Option<T>,
    /// The newest, if that does not read.
    pub unreadable: Option<Unreadable>,
}

/// A record that does not read: where it lies, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its place in the store.
    pub place: String,
    /// Why.
    pub reason: String,
    /// The older record that counts in its place.
    pub instead: Option<String>,
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
        let mut runs: Vec<Reading<RunRecord>> = self.all(kept.runs.values()).await?;
        for (run, revisions) in runs.iter_mut().zip(kept.runs.values()) {
            run.record.iter_mut().for_each(|run| run.revision = run.revision.max(revisions.number()));
        }
        Ok(runs)
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
        for (name, revisions) in kept.assets.range::<str, _>(behind).take(limit) {
            let mut row: Reading<AssetRecord> = self.read(revisions).await?;
            // The next change is to be newer than all that is there, so that it takes away also what does not read.
            row.record.iter_mut().for_each(|record| record.revision = record.revision.max(revisions.number()));
            rows.push((name.clone(), row));
        }
        Ok(rows)
    }

    /// What its runs' logs quote, in the order in which they began to.
    pub async fn kept_references(&self, kept: &Kept) -> Result<Vec<Reading<ReferenceRecord>>, StorageError> {
        let mut records: Vec<Reading<ReferenceRecord>> = self.all(&kept.references).await?;
        records.sort_by_key(|reading| reading.record.as_ref().map_or(Timestamp::MIN, |record| record.at));
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
        for (name, revisions) in kept.artifacts.range::<str, _>(behind).take(limit) {
            let Reading { record, unreadable } = self.read::<ArtifactRecord>(revisions).await?;
            let own = |artifact: &ArtifactRecord| artifact_folder(&artifact.run, &artifact.id) == *name;
            let misplaced = record.as_ref().is_some_and(|artifact| !own(artifact));
            let misplaced = misplaced.then(|| Unreadable::new(&revisions.newest, "its folder has another name"));
            let record = record
                .filter(own)
                .map(|artifact| ArtifactRecord { number: artifact.number.max(revisions.number()), ..artifact });
            artifacts.push((name.clone(), Reading { record, unreadable: unreadable.or(misplaced) }));
        }
        Ok(artifacts)
    }

    /// Its holds.
    pub async fn kept_holds(&self, kept: &Kept) -> Result<Vec<Reading<(HoldOn, Hold)>>, StorageError> {
        let mut holds = Vec::new();
        for (name, revisions) in &kept.holds {
            let Reading { record, unreadable } = self.read::<HoldRecord>(revisions).await?;
            let on = record.as_ref().and_then(|record| held_by(name, record));
            let record =
                record.map(|HoldRecord { hold, .. }| Hold { number: hold.number.max(revisions.number()), ..hold });
            let misplaced = (record.is_some() && on.is_none())
                .then(|| Unreadable::new(&revisions.newest, "its folder has another name"));
            holds.push(Reading { record: on.zip(record), unreadable: unreadable.or(misplaced) });
        }
        Ok(holds)
    }

    /// How often all of its URLs were revoked at once. The name of a record says it too: no older one counts in its place.
    pub async fn kept_epochs(&self, kept: &Kept) -> Result<Vec<Reading<u32>>, StorageError> {
        let mut epochs = Vec::new();
        for revisions in kept.epochs.values() {
            let Reading { record, unreadable } = self.read::<u32>(revisions).await?;
            let named = u32::try_from(revisions.number()).unwrap_or(u32::MAX);
            epochs.push(Reading { record: record.max(Some(named).filter(|epoch| *epoch > 0)), unreadable });
        }
        Ok(epochs)
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
        things: impl IntoIterator<Item = &Revisions>,
    ) -> Result<Vec<Reading<T>>, StorageError> {
        let mut records = Vec::new();
        for revisions in things {
            records.push(self.read(revisions).await?);
        }
        Ok(records)
    }
}

impl Unreadable {
    fn new(place: &Path, reason: &str) -> Self {
        Self { place: place.to_string(), reason: reason.to_owned(), instead: None }
    }
}

impl Revisions {
    fn of(path: Path) -> Self {
        Self { newest: path, older: Vec::new() }
    }

    fn add(&mut self, path: Path) {
        let older = if self.newest < path { std::mem::replace(&mut self.newest, path) } else { path };
        self.older.push(older);
    }

    /// The newest one's number, which its name is; 0 if that is none.
    fn number(&self) -> u64 {
        self.numbered().unwrap_or(0)
    }

    /// The same; `None` of one among records that each count.
    fn numbered(&self) -> Option<u64> {
        self.newest.filename().and_then(|name| name.strip_suffix(".json"))?.parse().ok()
    }
}

impl Kept {
    /// What lies among the records and is none.
    pub fn strangers(&self) -> impl Iterator<Item = Unreadable> {
        self.strangers.iter().map(|place| Unreadable::new(place, "no record"))
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
                self.revoked.push(Revisions::of(path));
                return;
            }
            "q" => {
                self.references.push(Revisions::of(path));
                return;
            }
            _ => {
                self.strangers.push(path);
                return;
            }
        };
        match named.entry(name.clone()) {
            Entry::Vacant(first) => drop(first.insert(Revisions::of(path))),
            Entry::Occupied(mut known) => known.get_mut().add(path),
        }
    }
}

/// The day of that instant as a name that sorts; before 1970 nothing was revoked.
fn day(at: Timestamp) -> String {
    format!("{:010}", at.as_second().max(0) / 86_400)
}

/// What a hold is on, as its record's folder says: the name of an asset or of a run, and the name of the hold.
fn held_by(folder: &str, record: &HoldRecord) -> Option<HoldOn> {
    let on = record.on.clone().or_else(|| named_by(folder))?;
    (hold_folder(&on, &record.hold.id) == folder).then_some(on)
}

/// What the folder of an older record says.
fn named_by(folder: &str) -> Option<HoldOn> {
    let (on, _) = folder.split_once('.')?;
    if let Ok(asset) = AssetId::parse(on) {
        return Some(HoldOn::Asset(asset));
    }
    let run = data_encoding::BASE32_NOPAD.decode(on.to_ascii_uppercase().as_bytes()).ok()?;
    RunId::parse(std::str::from_utf8(&run).ok()?).ok().map(HoldOn::Run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::HoldId;

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

        let revisions = kept.assets.get(asset).expect("it has records");
        assert_eq!((revisions.number(), revisions.older.len()), (10, 2));
        assert_eq!((kept.assets.len(), kept.references.len()), (1, 1));
        assert_eq!(kept.strangers().count(), 3);
    }

    #[test]
    fn a_folder_says_what_a_hold_is_on() {
        let (hold, run) = (HoldId::parse("audit-7").expect("a hold"), RunId::parse("run_1").expect("a run"));
        let asset = AssetId::parse("ast_01jc0000000000000000000000").expect("an asset");
        let prefix = super::super::text_prefix;

        let held_by = |folder: &str, on: Option<HoldOn>| {
            let (reason, principal) = ("an audit".to_owned(), "auditor".to_owned());
            let hold = Hold { id: hold.clone(), reason, placed_at: Timestamp::MIN, principal, number: 1 };
            held_by(folder, &HoldRecord { hold, on })
        };
        let on_asset = format!("{asset}.{}", prefix("audit-7"));
        let on_run = format!("{}.{}", prefix("run_1"), prefix("audit-7"));
        for on in [None, Some(HoldOn::Asset(asset))] {
            assert_eq!(held_by(&on_asset, on), Some(HoldOn::Asset(asset)));
        }
        assert_eq!(held_by(&on_run, None), Some(HoldOn::Run(run.clone())));
        assert_eq!(held_by(&on_asset, Some(HoldOn::Run(run))), None);
        assert_eq!(held_by(&format!("{asset}.{}", prefix("other")), None), None);
        assert_eq!(held_by("nonsense", None), None);
    }
}
