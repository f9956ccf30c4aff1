//! An asset as one part of something larger: a message to a model (RFC 0091), an A2A artifact (RFC 0205), a trigger's attachment (RFC 0099).

use mediakeep_storage::AssetRecord;
use serde_json::{Map, Value, json};

/// How a content part leads to its bytes: exactly one way.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// By the host's own opaque handle.
    MediaRef,
    /// By this URL.
    Url(&'a str),
    /// By themselves, in base64.
    Data(&'a str),
}

/// How an A2A part leads to its bytes.
#[derive(Debug, Clone, Copy)]
pub enum A2a<'a> {
    /// By a URL that asks for a credential of the tenant: one that opened for its holder alone would leak beyond `artifacts:read`.
    Bound(&'a str),
    /// By themselves, in base64.
    Raw(&'a str),
}

/// The longest `mediaType` of an A2A part, in characters.
const MAX_MEDIA_TYPE: usize = 255;

/// The handle by which a host and this service name the asset to each other: `blob:` and its id.
pub fn media_ref(record: &AssetRecord) -> String {
    format!("blob:{}", record.id)
}

/// The `type` of the content part that the asset is. A video is none: no modality has it.
pub fn modality(record: &AssetRecord) -> Option<&'static str> {
    match record.kind.as_str() {
        "image" => Some("image"),
        "audio" => Some("audio"),
        "video" => None,
        _ => Some("document"),
    }
}

/// The content part of a message to a model, if there is a part of this kind.
pub fn content_part(record: &AssetRecord, source: Source<'_>) -> Option<Value> {
    let (member, value) = match source {
        Source::MediaRef => ("mediaRef", media_ref(record)),
        Source::Url(url) => ("url", url.to_owned()),
        Source::Data(text) => ("data", text.to_owned()),
    };
    Some(json!({"type": modality(record)?, "mimeType": record.mime_type, member: value}))
}

/// The part of an A2A 1.0.1 artifact.
pub fn a2a_part(record: &AssetRecord, carried: A2a<'_>) -> Value {
    let (member, value) = match carried {
        A2a::Bound(url) => ("url", url),
        A2a::Raw(text) => ("raw", text),
    };
    let mut part = json!({member: value});
    if record.mime_type.len() <= MAX_MEDIA_TYPE {
        part["mediaType"] = json!(record.mime_type);
    }
    named(part, record)
}

/// The reference that a trigger's event has instead of an attachment: a handle, never an address.
pub fn attachment_ref(record: &AssetRecord) -> Value {
    let reference = json!({"ref": media_ref(record), "mediaType": record.mime_type, "bytes": record.bytes});
    named(reference, record)
}

/// The same with the asset's file name, if it has one.
fn named(mut part: Value, record: &AssetRecord) -> Value {
    if let (Some(part), Some(name)) = (part.as_object_mut(), &record.labels.name) {
        Map::insert(part, "filename".to_owned(), json!(name));
    }
    part
}
