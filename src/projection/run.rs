//! The run object, as every route shows it.

use mediakeep_storage::Timestamp;
use mediakeep_storage::record::{RunStatus, RunView};
use mediakeep_storage::retention::FloorSource;
use serde::Serialize;
use utoipa::ToSchema;

/// A run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Run)]
pub struct RunJson {
    /// Its name.
    pub run_id: String,
    /// `open` or `closed`.
    #[schema(value_type = String)]
    pub status: RunStatus,
    /// When its log ends; `null` is without end.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub log_retain_until: Option<Timestamp>,
    /// `run`: the host said so, or said nothing and keeps it without end; `default`: nobody said.
    #[schema(value_type = String)]
    pub retention_source: FloorSource,
    /// The run that it was forked from.
    pub fork_of: Option<String>,
    /// The host's workflow.
    pub workflow_id: Option<String>,
    /// How many assets its log quotes, in every state.
    pub assets: u64,
    /// How many bytes the live ones have.
    pub bytes: u64,
    /// When it was first heard of.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

impl RunJson {
    /// The run, as its tenant may see it.
    pub fn of(view: &RunView) -> Self {
        let record = &view.record;
        Self {
            run_id: record.id.to_string(),
            status: record.status,
            log_retain_until: record.end.until().instant(),
            retention_source: record.end.source(),
            fork_of: record.fork_of.as_ref().map(ToString::to_string),
            workflow_id: record.workflow_id.clone(),
            assets: view.assets,
            bytes: view.bytes,
            created_at: record.created_at,
        }
    }
}
