//! An asset as what a speech synthesizer answers (RFC 0105).

use mediakeep_storage::AssetRecord;
use serde_json::{Value, json};

use super::envelope::Carried;
use crate::media::Facts;

/// Whether the answer may carry the bytes themselves, given the inline cap. The voice chunks of the same protocol are measured in
/// characters of base64, so the audio they make up is too: what passes here passes in both.
pub fn may_inline(record: &AssetRecord, cap: u64) -> bool {
    let characters = record.bytes.div_ceil(3).saturating_mul(4);
    cap > 0 && characters <= cap
}

/// The answer, if the asset is audio: `url` or `base64`, the type that the bytes are of, how long they play if that is known, and the voice
/// as it was asked for.
pub fn speech(record: &AssetRecord, carried: Carried<'_>, voice: &str) -> Option<Value> {
    if record.kind != "audio" {
        return None;
    }
    let mut audio = match carried {
        Carried::Url(url) => json!({"url": url}),
        Carried::Base64(text) => json!({"base64": text}),
    };
    audio["mimeType"] = json!(record.mime_type);
    audio["voiceId"] = json!(voice);
    let facts: Facts = serde_json::from_value(record.facts.clone()).unwrap_or_default();
    if let Some(seconds) = facts.duration_seconds {
        audio["durationSeconds"] = json!(seconds);
    }
    Some(json!({"audio": audio}))
}
