//! The asset object, as every route shows it.

use mediakeep_storage::record::AssetState;
use mediakeep_storage::retention::FloorSource;
use mediakeep_storage::{AssetView, Timestamp};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// An asset.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Asset)]
pub struct AssetJson {
    /// `ast_` and 26 characters.
    pub asset_id: String,
    /// The run that emitted it.
    pub run_id: Option<String>,
    /// `image`, `audio`, `video`, `document`, `text`, `archive` or `other`.
    pub kind: String,
    /// What the bytes are.
    pub mime_type: String,
    /// What they were said to be.
    pub declared_mime_type: Option<String>,
    /// How many there are.
    pub bytes: u64,
    /// Their SHA-256, in hex. An erased asset has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// A file name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Option<String>>,
    /// Alternative text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alt: Option<Option<String>>,
    /// A caption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Option<String>>,
    /// The node that emitted it.
    pub node_id: Option<String>,
    /// The envelope that carries it.
    pub envelope_id: Option<String>,
    /// That envelope's correlation.
    pub correlation_id: Option<String>,
    /// What was found in the bytes: `wellFormed`, sizes, durations, `provenance`, `flags`.
    #[schema(value_type = Object)]
    pub facts: Value,
    /// Always `untrusted`: nobody has vouched for the bytes.
    pub content_trust: &'static str,
    /// `ai-generation`, `user` or `system`.
    pub source: String,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Until when it is kept, grace included; `null` is without end.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub retain_until: Option<Timestamp>,
    /// Because of what: `run`, `default`, `ask`, `hold` or `unreferenced`.
    #[schema(value_type = String)]
    pub retention_source: FloorSource,
    /// `live`, `expired` or `erased`.
    pub state: &'static str,
    /// The newest 100 of the runs that reference it.
    pub references: Vec<String>,
    /// How many do.
    pub reference_count: u64,
    /// The names of the holds on it and on the runs that reference it; at most 100.
    pub holds: Vec<String>,
}

impl AssetJson {
    /// The asset, as its tenant may see it.
    pub fn of(view: &AssetView) -> Self {
        let record = &view.record;
        let erased = matches!(record.state, AssetState::Erased { .. });
        let kept = |text: &Option<String>| (!erased).then(|| text.clone());
        Self {
            asset_id: record.id.to_string(),
            run_id: record.run.as_ref().map(ToString::to_string),
            kind: record.kind.clone(),
            mime_type: record.mime_type.clone(),
            declared_mime_type: record.declared_mime_type.clone(),
            bytes: record.bytes,
            sha256: (!erased).then(|| record.sha256.to_string()),
            name: kept(&record.labels.name),
            alt: kept(&record.labels.alt),
            title: kept(&record.labels.title),
            node_id: record.origin.node_id.clone(),
            envelope_id: record.origin.envelope_id.clone(),
            correlation_id: record.origin.correlation_id.clone(),
            facts: record.facts.clone(),
            content_trust: "untrusted",
            source: record.origin.source.clone(),
            created_at: record.created_at,
            retain_until: view.floor.until.instant(),
            retention_source: view.floor.source,
            state: record.state.name(),
            references: view.references.iter().map(ToString::to_string).collect(),
            reference_count: view.reference_count,
            holds: view.holds.iter().map(ToString::to_string).collect(),
        }
    }
}
