//! The AI envelope that a host puts into its log: `media.image`, `media.audio` or `media.file` (RFC 0055).
//!
//! The payload has exactly one of `url` and `base64`, always `bytes`, and nothing that its closed schema does not know. Alternative
//! text is the sender's or absent, never invented. Video is a file by URL.

use mediakeep_storage::AssetRecord;
use serde_json::{Map, Value, json};

use crate::media::Facts;

/// The bytes as the payload carries them.
#[derive(Debug, Clone, Copy)]
pub enum Carried<'a> {
    /// By this URL.
    Url(&'a str),
    /// By themselves.
    Base64(&'a str),
}

/// The kinds, as `type` of the envelope and as names of the schemas.
pub const KINDS: [&str; 3] = ["media.image", "media.audio", "media.file"];

/// Which version of the kinds this is.
pub const SCHEMA_VERSION: u32 = 1;

/// The envelope's `type` for an asset.
pub fn kind_of(record: &AssetRecord) -> &'static str {
    match record.kind.as_str() {
        "image" => "media.image",
        "audio" => "media.audio",
        _ => "media.file",
    }
}

/// Whether the envelope may carry the bytes themselves, given the inline cap of decoded bytes, inclusive; 0 is never.
pub fn may_inline(record: &AssetRecord, cap: u64) -> bool {
    cap > 0 && record.bytes <= cap && record.kind != "video"
}

/// The envelope.
pub fn envelope(record: &AssetRecord, carried: Carried<'_>) -> Value {
    let kind = kind_of(record);
    let mut envelope = json!({
        "type": kind,
        "schemaVersion": SCHEMA_VERSION,
        "envelopeId": record.origin.envelope_id.clone().unwrap_or_else(|| format!("env_{}", record.id)),
        "correlationId": record.origin.correlation_id.clone().unwrap_or_else(|| record.id.to_string()),
        "payload": payload(record, kind, carried),
        "meta": {
            "source": record.origin.source,
            "ts": record.created_at,
            "contentTrust": "untrusted",
            "rendering": rendering(record, kind),
        },
    });
    if let Some(node) = &record.origin.node_id {
        envelope["nodeId"] = json!(node);
    }
    envelope
}

fn payload(record: &AssetRecord, kind: &str, carried: Carried<'_>) -> Map<String, Value> {
    let mut payload = Map::new();
    match carried {
        Carried::Url(url) => payload.insert("url".to_owned(), json!(url)),
        Carried::Base64(text) => payload.insert("base64".to_owned(), json!(text)),
    };
    payload.insert("bytes".to_owned(), json!(record.bytes));
    payload.insert("mimeType".to_owned(), json!(record.mime_type));
    if let Some(alt) = &record.labels.alt {
        payload.insert("alt".to_owned(), json!(alt));
    }
    match kind {
        "media.audio" => {
            let facts: Facts = serde_json::from_value(record.facts.clone()).unwrap_or_default();
            if let Some(seconds) = facts.duration_seconds {
                payload.insert("durationSeconds".to_owned(), json!(seconds));
            }
        }
        "media.file" => {
            if let Some(name) = &record.labels.name {
                payload.insert("name".to_owned(), json!(name));
            }
        }
        _ => {}
    }
    payload
}

fn rendering(record: &AssetRecord, kind: &str) -> Map<String, Value> {
    let display = kind.trim_start_matches("media.");
    let mut rendering =
        Map::from_iter([("display".to_owned(), json!(display)), ("mimeType".to_owned(), json!(record.mime_type))]);
    for (name, text) in [("alt", &record.labels.alt), ("title", &record.labels.title)] {
        if let Some(text) = text {
            rendering.insert(name.to_owned(), json!(text));
        }
    }
    rendering
}
