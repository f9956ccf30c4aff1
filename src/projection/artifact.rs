//! An artifact as its host put it, and as an A2A 1.0.1 artifact (RFC 0205 §A).

use std::collections::HashMap;

use mediakeep_storage::record::ArtifactRecord;
use mediakeep_storage::{AssetId, AssetRecord};
use serde_json::{Map, Value, json};

use super::part::{self, A2a};

/// The artifact in its host's own members.
pub fn plain(artifact: &ArtifactRecord) -> Value {
    let mut document = artifact.document.clone();
    document["artifactId"] = json!(artifact.id);
    document
}

/// The artifact in A2A's members; `bound` gives the URL of an asset's content.
///
/// An asset is always a `url` part by its bound URL: one that opened by itself would leak beyond whoever may read artifacts. A part keeps its
/// place when its asset is over; of one whose tombstone is gone too only the URL is left.
pub fn a2a(
    artifact: &ArtifactRecord,
    assets: &HashMap<AssetId, AssetRecord>,
    bound: impl Fn(AssetId) -> String,
) -> Value {
    let document = &artifact.document;
    let parts = document["parts"].as_array().into_iter().flatten().map(|part| part_of(part, assets, &bound));
    let mut told = json!({"artifactId": artifact.id, "parts": parts.collect::<Vec<_>>()});
    for name in ["name", "description"] {
        if let Some(words) = document.get(name) {
            told[name] = words.clone();
        }
    }
    let identity: Map<String, Value> = ["artifactTypeId", "schemaVersion"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), document.get(name)?.clone())))
        .collect();
    if !identity.is_empty() {
        told["metadata"] = json!({"openwop": identity});
    }
    told
}

fn part_of(part: &Value, assets: &HashMap<AssetId, AssetRecord>, bound: &impl Fn(AssetId) -> String) -> Value {
    if let Some(data) = part.get("data") {
        return json!({"data": data, "mediaType": "application/json"});
    }
    let asset = part["assetId"].as_str().and_then(|id| AssetId::parse(id).ok());
    let Some(asset) = asset else {
        return json!({"text": part["text"]});
    };
    let url = bound(asset);
    let mut told = match assets.get(&asset) {
        Some(record) => part::a2a_part(record, A2a::Bound(&url)),
        None => json!({"url": url}),
    };
    if let Some(filename) = part.get("filename") {
        told["filename"] = filename.clone();
    }
    told
}
