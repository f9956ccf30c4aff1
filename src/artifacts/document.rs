//! What a host puts as an artifact, and the document that is kept of it.

use std::collections::HashMap;

use mediakeep_storage::AssetId;
use serde_json::{Map, Value, json};

use crate::assets::AssetError;

/// The most parts: as many as a run's references that one request may add.
pub const MAX_PARTS: usize = 1_000;

/// The longest description, in characters: a page of prose. What is longer is a part.
pub const MAX_DESCRIPTION: usize = 4_096;

/// The largest document without the bytes that its parts bring along: as much as any other JSON. What is larger is an asset.
pub const MAX_DOCUMENT: u64 = 1 << 20;

/// The longest name of a type.
const MAX_TYPE: usize = 256;

/// How long a media type may be, as A2A has it.
const MEDIA_TYPE: std::ops::RangeInclusive<usize> = 3..=255;

/// An artifact as it is to be put.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    /// What people call it.
    pub name: Option<String>,
    /// What it is, in words.
    pub description: Option<String>,
    /// The type that its host has registered.
    pub artifact_type_id: Option<String>,
    /// Of that type's schema.
    pub schema_version: Option<u64>,
    /// What it consists of.
    pub parts: Vec<Part>,
}

/// A part of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// An asset; `None` is a name that is no asset's.
    Asset {
        /// Which.
        asset: Option<AssetId>,
        /// What it is called here.
        filename: Option<String>,
    },
    /// Words.
    Text(String),
    /// Any JSON.
    Data(Value),
    /// Bytes, in base64: they become an asset.
    Raw {
        /// The bytes.
        base64: String,
        /// What they are said to be.
        media_type: String,
        /// What they are called.
        filename: Option<String>,
    },
}

impl Wish {
    /// Looks at everything that can be wrong with it by itself but for its base64; the first that is not what it should be is named.
    pub fn check(&self) -> Result<(), AssetError> {
        let invalid = |what: String| Err(AssetError::Invalid(what));
        if self.description.as_ref().is_some_and(|words| words.chars().count() > MAX_DESCRIPTION) {
            return invalid(format!("description: longer than {MAX_DESCRIPTION} characters"));
        }
        if self.artifact_type_id.as_deref().is_some_and(|name| !is_type_id(name)) {
            return invalid("artifactTypeId: words joined by dots, such as vendor.example.report".to_owned());
        }
        if self.parts.is_empty() || self.parts.len() > MAX_PARTS {
            return invalid(format!("parts: 1 to {MAX_PARTS}"));
        }
        for (at, part) in self.parts.iter().enumerate() {
            if let Part::Raw { media_type, .. } = part
                && !MEDIA_TYPE.contains(&media_type.len())
            {
                return invalid(format!("parts/{at}/mediaType: not a media type"));
            }
        }
        Ok(())
    }

    /// Refuses what is too large to be kept.
    pub(super) fn fits(&self) -> Result<(), AssetError> {
        let nothing = AssetId::from_bytes([0; 16]);
        let stored = (0..self.parts.len()).map(|at| (at, nothing)).collect();
        let length = self.document(&stored).0.to_string().len() as u64;
        if length > MAX_DOCUMENT { Err(AssetError::TooLarge { limit: MAX_DOCUMENT }) } else { Ok(()) }
    }

    /// The parts that name an asset, each with its position.
    pub(super) fn named(&self) -> impl Iterator<Item = (usize, Option<AssetId>)> {
        self.parts.iter().enumerate().filter_map(|(at, part)| match part {
            Part::Asset { asset, .. } => Some((at, *asset)),
            _ => None,
        })
    }

    /// What is kept: its members as they were put, but for bytes, in whose place the assets stand that they became. With it the assets that it
    /// names, and at which part each of them stands.
    pub(super) fn document(&self, stored: &HashMap<usize, AssetId>) -> (Value, Vec<AssetId>, Vec<usize>) {
        let (mut assets, mut at) = (Vec::new(), Vec::new());
        let mut parts = Vec::with_capacity(self.parts.len());
        for (position, part) in self.parts.iter().enumerate() {
            let (asset, filename) = match part {
                Part::Text(text) => {
                    parts.push(json!({"text": text}));
                    continue;
                }
                Part::Data(data) => {
                    parts.push(json!({"data": data}));
                    continue;
                }
                Part::Asset { asset, filename } => (*asset, filename),
                Part::Raw { filename, .. } => (stored.get(&position).copied(), filename),
            };
            let Some(asset) = asset else {
                continue;
            };
            assets.push(asset);
            at.push(position);
            let mut part = json!({"assetId": asset});
            if let Some(filename) = filename {
                part["filename"] = json!(filename);
            }
            parts.push(part);
        }
        let mut document = Map::new();
        let mut say = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                document.insert(name.to_owned(), value);
            }
        };
        say("name", self.name.as_deref().map(Value::from));
        say("description", self.description.as_deref().map(Value::from));
        say("artifactTypeId", self.artifact_type_id.as_deref().map(Value::from));
        say("schemaVersion", self.schema_version.map(Value::from));
        say("parts", Some(Value::Array(parts)));
        (Value::Object(document), assets, at)
    }
}

/// A name of the protocol's kind `typeId`: a word in lower case, and behind dots at least one more, which may have capitals inside.
fn is_type_id(name: &str) -> bool {
    let is_rest = |byte: u8, capitals: bool| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'_' | b'-')
            || capitals && byte.is_ascii_uppercase()
    };
    let is_word = |word: &str, capitals: bool| {
        word.starts_with(|first: char| first.is_ascii_lowercase()) && word.bytes().all(|byte| is_rest(byte, capitals))
    };
    let mut words = name.split('.');
    let first = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    name.len() <= MAX_TYPE && is_word(first, false) && !rest.is_empty() && rest.iter().all(|word| is_word(word, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_a_namespace() {
        for name in ["vendor.example.report", "core.ai.callPrompt", "a.b", "vendor.acme.my_tools.echo", "a-b_1.c9"] {
            assert!(is_type_id(name), "{name}");
        }
        let long = format!("a.{}", "b".repeat(255));
        for name in ["", "report", "a.", ".a", "a..b", "Vendor.x", "a.B", "a.1", "1.a", "a b.c", "a.b/c", &long] {
            assert!(!is_type_id(name), "{name}");
        }
    }

    #[test]
    fn what_is_kept_is_what_was_put_with_assets_in_the_place_of_bytes() {
        let id = AssetId::from_bytes([1; 16]);
        let stored = AssetId::from_bytes([2; 16]);
        let wish = Wish {
            name: Some("Report".into()),
            schema_version: Some(0),
            parts: vec![
                Part::Text("words".into()),
                Part::Raw { base64: "AA==".into(), media_type: "a/b".into(), filename: Some("a.bin".into()) },
                Part::Data(Value::Null),
                Part::Asset { asset: Some(id), filename: None },
            ],
            ..Wish::default()
        };

        let (document, assets, at) = wish.document(&HashMap::from([(1, stored)]));

        let parts =
            json!([{"text": "words"}, {"assetId": stored, "filename": "a.bin"}, {"data": null}, {"assetId": id}]);
        assert_eq!(document, json!({"name": "Report", "schemaVersion": 0, "parts": parts}));
        assert_eq!((assets, at), (vec![stored, id], vec![1, 3]));
    }

    #[test]
    fn what_is_too_large_is_no_document() {
        let wish = |length: usize| Wish { parts: vec![Part::Text("x".repeat(length))], ..Wish::default() };

        assert!(wish((1 << 20) - 100).fits().is_ok());
        assert!(matches!(wish(1 << 20).fits(), Err(AssetError::TooLarge { limit: MAX_DOCUMENT })));
    }
}
