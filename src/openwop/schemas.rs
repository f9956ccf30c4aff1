//! JSON Schemas of the three media payloads, written from the facts of RFC 0055: closed, `bytes` required, no `oneOf` anywhere, because
//! some model providers refuse schemas that have one.

use serde_json::{Map, Value, json};

/// The schema of that kind's payload, if there is one.
pub fn payload_schema(kind: &str, base_url: &str) -> Option<Value> {
    let (title, own): (_, &[(&str, Value)]) = match kind {
        "media.image" => ("A picture", &[]),
        "media.audio" => ("A recording", &[("durationSeconds", json!({"type": "number", "minimum": 0}))]),
        "media.file" => ("A file", &[("name", json!({"type": "string", "minLength": 1, "maxLength": 255}))]),
        _ => return None,
    };
    let mut properties = shared_properties();
    properties.extend(own.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())));
    Some(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("{base_url}/schemas/envelopes/{kind}.schema.json"),
        "title": title,
        "type": "object",
        "properties": properties,
        "required": ["bytes"],
        "additionalProperties": false,
    }))
}

fn shared_properties() -> Map<String, Value> {
    Map::from_iter([
        ("bytes".to_owned(), json!({"type": "integer", "minimum": 0, "description": "Size of the decoded asset."})),
        (
            "url".to_owned(),
            json!({"type": "string", "format": "uri", "description": "Where the asset is served. Not beside base64."}),
        ),
        (
            "base64".to_owned(),
            json!({"type": "string", "description": "The asset itself, up to the advertised cap. Not beside url."}),
        ),
        ("mimeType".to_owned(), json!({"type": "string"})),
        ("alt".to_owned(), json!({"type": "string", "maxLength": 1024})),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_schema_holds_a_one_of() {
        for kind in crate::projection::envelope::KINDS {
            let schema = payload_schema(kind, "https://media.example").expect(kind);
            assert!(!schema.to_string().contains("oneOf"), "{kind}");
        }
        assert_eq!(payload_schema("media.video", ""), None);
    }
}
