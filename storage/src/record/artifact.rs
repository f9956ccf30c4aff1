//! Artifacts of runs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ArtifactId, AssetId, RunId};

/// One artifact, as its run has it. It lives as long as the run keeps anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtifactRecord {
    /// Its name within the run.
    pub id: ArtifactId,
    /// The run.
    pub run: RunId,
    /// What it says; the service's own shape.
    pub document: Value,
    /// The assets that it names, each once, in the order of their names.
    pub assets: Vec<AssetId>,
    /// When it was first put.
    pub created_at: Timestamp,
    /// When it was put last.
    pub put_at: Timestamp,
    /// The index counts what happens to each run's artifacts: of two records of one artifact the higher number counts, whatever the
    /// clocks said, and whatever came and went between them.
    pub number: u64,
}
