//! Recovery records that a transition leaves to be written.

use ring::digest;
use serde::{Deserialize, Serialize};

use super::{ArtifactRecord, AssetRecord, HoldOn, ReferenceRecord, RunRecord};
use crate::ids::{ArtifactId, AssetId, Digest, HoldId, RunId};

/// What the store does not say yet of a transition that has happened: written in the same commit, and gone once the record is durable.
///
/// Each transition owes its own, so that whoever pays for one pays for none that came after it: of two writers of one asset's record
/// the slower may be the earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owed {
    /// The asset's row, as it was from this revision on.
    Asset {
        /// Which.
        id: AssetId,
        /// Of this change.
        revision: u64,
    },
    /// That the asset has no row any more, and so no records.
    Dropped {
        /// Which.
        id: AssetId,
    },
    /// The run's row, as it was from this revision on.
    Run {
        /// Which.
        id: RunId,
        /// Of this change.
        revision: u64,
    },
    /// What the run's log began to quote.
    References(ReferenceRecord),
    /// That the run quotes the asset no more, because it has no row any more: what tells of a run's references may go with the last of them.
    Unquoted {
        /// Which run.
        run: RunId,
        /// Which asset.
        id: AssetId,
    },
    /// The hold, or that it was lifted.
    Hold {
        /// What it is on.
        on: HoldOn,
        /// Its name.
        id: HoldId,
        /// The number of the placing or lifting.
        number: u64,
    },
    /// How often all of the tenant's URLs were revoked at once.
    Epoch(u32),
    /// The artifact, or that it is gone.
    Artifact {
        /// Of this run.
        run: RunId,
        /// Its name.
        id: ArtifactId,
        /// The number of the putting or the end.
        number: u64,
    },
}

impl Owed {
    /// Of a change of the asset's row.
    pub fn asset(record: &AssetRecord) -> Self {
        Self::Asset { id: record.id, revision: record.revision }
    }

    /// Of a change of the run's row.
    pub fn run(record: &RunRecord) -> Self {
        Self::Run { id: record.id.clone(), revision: record.revision }
    }

    /// Of an artifact that was put.
    pub fn artifact(record: &ArtifactRecord) -> Self {
        Self::Artifact { run: record.run.clone(), id: record.id.clone(), number: record.number }
    }

    /// Its name among what its tenant owes.
    pub fn name(&self) -> Digest {
        let json = serde_json::to_vec(self).expect("names, numbers and a time can be written");
        let hash = digest::digest(&digest::SHA256, &json);
        Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes"))
    }
}
