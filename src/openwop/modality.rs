//! What messages to a model hold besides text, and what that asks of the model (RFC 0091 §A, RFC 0031 §C): pure functions of the messages.
//!
//! The gate stands before everything else: a part of a modality that is not allowed is refused, never dropped, whatever else is wrong with
//! it. A model that answers about a picture that it has not seen is worse than a refusal.

use std::collections::BTreeSet;

use serde_json::Value;

/// A part that may not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Where it stands, as a JSON pointer into the messages.
    pub at: String,
    /// Its modality; none if it is no modality at all.
    pub modality: Option<&'static str>,
}

/// Why messages cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A part of a modality that is not allowed.
    #[error("{}: a part of this kind is not supported here", .0.at)]
    Unsupported(Unsupported),
    /// No message, no content, no part.
    #[error("{at}: {expected}")]
    Malformed {
        /// Where, as a JSON pointer into the messages.
        at: String,
        /// What should be there.
        expected: &'static str,
    },
}

/// Every modality beside text.
const ALL: [&str; 3] = ["audio", "document", "image"];

/// The modality of a part of that type: RFC names, and the one that the public suite sends.
pub fn of_type(name: &str) -> Option<&'static str> {
    match name {
        "text" => Some("text"),
        "image" => Some("image"),
        "audio" => Some("audio"),
        "document" | "file" => Some("document"),
        _ => None,
    }
}

/// The modalities that the messages have, in the order of their names; refuses the first part whose own is neither text nor allowed.
pub fn gate(messages: &[Value], allowed: &[&str]) -> Result<BTreeSet<&'static str>, Unfit> {
    let mut met = BTreeSet::new();
    for (position, message) in messages.iter().enumerate() {
        note(message.get("content"), &format!("/{position}/content"), allowed, &mut met)?;
    }
    Ok(met)
}

/// The modalities of messages that were let through, or will be: every one is allowed, and a message may be without content, as one is
/// that calls a tool.
pub fn of_messages(messages: &[Value]) -> Result<BTreeSet<&'static str>, Unfit> {
    let mut met = BTreeSet::new();
    for (position, message) in messages.iter().enumerate() {
        let Some(message) = message.as_object() else {
            return Err(Unfit::Malformed { at: format!("/{position}"), expected: "a message, which is an object" });
        };
        if let Some(content) = message.get("content").filter(|content| !content.is_null()) {
            note(Some(content), &format!("/{position}/content"), &ALL, &mut met)?;
        }
    }
    Ok(met)
}

/// What a model has to be able to do for these modalities. Documents ask for nothing that has a name.
pub fn requirements(modalities: &BTreeSet<&'static str>) -> Vec<&'static str> {
    [("audio", "audio-input"), ("image", "vision-input")]
        .into_iter()
        .filter(|(modality, _)| modalities.contains(modality))
        .map(|(_, identifier)| identifier)
        .collect()
}

fn note(content: Option<&Value>, at: &str, allowed: &[&str], met: &mut BTreeSet<&'static str>) -> Result<(), Unfit> {
    match content {
        Some(Value::String(_)) => {
            met.insert("text");
        }
        Some(Value::Array(parts)) => {
            for (place, part) in parts.iter().enumerate() {
                met.insert(part_modality(part, format!("{at}/{place}"), allowed)?);
            }
        }
        _ => return Err(Unfit::Malformed { at: at.to_owned(), expected: "a string or a list of parts" }),
    }
    Ok(())
}

fn part_modality(part: &Value, at: String, allowed: &[&str]) -> Result<&'static str, Unfit> {
    let Some(name) = part.get("type").and_then(Value::as_str) else {
        return Err(Unfit::Malformed { at, expected: "a part with a type" });
    };
    match of_type(name) {
        Some(modality) if modality == "text" || allowed.contains(&modality) => Ok(modality),
        modality => Err(Unfit::Unsupported(Unsupported { at, modality })),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gated(content: &Value, allowed: &[&str]) -> Result<Vec<&'static str>, Unfit> {
        let met = gate(&[json!({"role": "user", "content": content})], allowed)?;
        Ok(met.into_iter().collect())
    }

    #[test]
    fn text_is_always_allowed() {
        assert_eq!(gated(&json!("hello"), &[]), Ok(vec!["text"]));
        assert_eq!(gated(&json!([{"type": "text", "text": "hello"}]), &["image"]), Ok(vec!["text"]));
        assert_eq!(gate(&[], &[]), Ok(BTreeSet::new()));
    }

    #[test]
    fn what_is_not_allowed_is_refused_whatever_else_is_wrong_with_it() {
        let content = json!([{"type": "text"}, {"type": "image"}, {"type": "audio", "dataBase64": "!", "url": 1}]);
        let refused = Unfit::Unsupported(Unsupported { at: "/0/content/2".to_owned(), modality: Some("audio") });
        assert_eq!(gated(&content, &["image"]), Err(refused));
        assert_eq!(gated(&content, &["image", "audio"]), Ok(vec!["audio", "image", "text"]));
    }

    #[test]
    fn what_is_no_modality_is_never_allowed() {
        let refused = Unfit::Unsupported(Unsupported { at: "/0/content/0".to_owned(), modality: None });
        assert_eq!(gated(&json!([{"type": "video"}]), &["video", "image"]), Err(refused));
    }

    #[test]
    fn a_file_is_a_document() {
        assert_eq!(gated(&json!([{"type": "file"}]), &["document"]), Ok(vec!["document"]));
        assert!(gated(&json!([{"type": "file"}]), &["image"]).is_err());
    }

    #[test]
    fn what_is_no_content_is_said_to_be_none() {
        for content in [json!(null), json!(7), json!({}), json!(["text"]), json!([{"type": 1}]), json!([{}])] {
            assert!(matches!(gated(&content, &["image"]), Err(Unfit::Malformed { .. })), "{content}");
        }
    }

    #[test]
    fn pictures_and_sounds_ask_something_of_the_model() {
        let of = |modalities: &[&'static str]| requirements(&modalities.iter().copied().collect());
        assert_eq!(of(&["text", "document"]), [""; 0]);
        assert_eq!(of(&["image", "text"]), ["vision-input"]);
        assert_eq!(of(&["image", "audio", "document"]), ["audio-input", "vision-input"]);
    }
}
