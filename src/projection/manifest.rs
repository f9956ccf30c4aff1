//! The media manifest of a run's debug bundle: references to every asset that the run's log quotes, the dead with their state, and
//! never a byte of them.
//!
//! References are bound URLs: a bundle travels, and whoever opens one needs a credential of the tenant.

use mediakeep_storage::{AssetView, RunId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::envelope::kind_of;

/// The manifest's own version.
pub const VERSION: &str = "1.0";

/// A page of the manifest, before it is signed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// `1.0`.
    pub manifest_version: &'static str,
    /// The run.
    pub run_id: String,
    /// When the page was made.
    #[schema(value_type = String, format = DateTime)]
    pub generated_at: Timestamp,
    /// The page's assets.
    pub assets: Vec<Entry>,
    /// Of the whole run.
    pub counts: Counts,
    /// Always false: what does not fit stands on the next page.
    pub truncated: bool,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What the run references in all.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Counts {
    /// Assets, in every state.
    pub assets: u64,
    /// Bytes of the live ones.
    pub bytes: u64,
}

/// One asset of the manifest.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ManifestEntry)]
pub struct Entry {
    /// Its name.
    pub asset_id: String,
    /// `media.image`, `media.audio` or `media.file`.
    pub kind: &'static str,
    /// What the bytes are.
    pub mime_type: String,
    /// How many there are.
    pub bytes: u64,
    /// Their SHA-256. An erased asset has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The bound URL.
    pub url: String,
    /// A file name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Alternative text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
    /// The envelope that carries it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope_id: Option<String>,
    /// The node that emitted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Until when it is kept.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub retain_until: Option<Timestamp>,
    /// `live`, `expired` or `erased`.
    pub state: &'static str,
}

impl Manifest {
    /// A page of the run's manifest. `url` gives the bound URL of an asset.
    pub fn new(
        run: &RunId,
        counts: Counts,
        views: &[AssetView],
        next_cursor: Option<String>,
        url: impl Fn(&AssetView) -> String,
        now: Timestamp,
    ) -> Self {
        Self {
            manifest_version: VERSION,
            run_id: run.to_string(),
            generated_at: now,
            assets: views.iter().map(|view| entry(view, url(view))).collect(),
            counts,
            truncated: false,
            next_cursor,
        }
    }
}

fn entry(view: &AssetView, url: String) -> Entry {
    let asset = super::asset::AssetJson::of(view);
    Entry {
        asset_id: asset.asset_id,
        kind: kind_of(&view.record),
        mime_type: asset.mime_type,
        bytes: asset.bytes,
        sha256: asset.sha256,
        url,
        name: asset.name.flatten(),
        alt: asset.alt.flatten(),
        envelope_id: asset.envelope_id,
        node_id: asset.node_id,
        created_at: asset.created_at,
        retain_until: asset.retain_until,
        state: asset.state,
    }
}
