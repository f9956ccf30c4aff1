//! Whether a model can do what a node needs, and what a host does when it cannot (RFC 0031 §B): a pure function of what the host knows.
//!
//! The order is the protocol's: compare; if something is missing, substitute the declared fallback, once and only as a whole; tell of it;
//! then dispatch or refuse. Nothing is remembered here and no model is called.

use serde::Serialize;
use serde_json::{Value, json};

/// What stands for a provider and a model that nobody is to learn of.
pub const REDACTED: &str = "[REDACTED]";

/// The most identifiers that a node may require.
pub const MAX_REQUIRED: usize = 32;

/// A model and what it can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Whose it is.
    pub provider: String,
    /// Which.
    pub model: String,
    /// Identifiers of what it can do.
    pub capabilities: Vec<String>,
}

/// The model that a node may be given instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// Which.
    pub model: Model,
    /// Whether the host has a credential for its provider.
    pub authenticated: bool,
}

/// A node that is about to be dispatched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Which node.
    pub node_id: String,
    /// What it needs.
    pub required: Vec<String>,
    /// The model that it would be given.
    pub active: Model,
    /// The one that it declares.
    pub fallback: Option<Fallback>,
    /// Whether the host swaps models at all.
    pub substitution_supported: bool,
    /// Whether the log is not to say which model took over.
    pub redact: bool,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    /// It runs as it is.
    Dispatch,
    /// It runs with its fallback.
    Substitute,
    /// It does not run.
    Refuse,
}

/// A decision, and what the run's log has to say of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What becomes of the node.
    pub route: Route,
    /// What the active model lacks, in the order in which it was required.
    pub missing: Vec<String>,
    /// Whether a fallback was tried and found no better.
    pub fallback_attempted: bool,
    /// The event's type and payload; none when nothing was missing.
    pub event: Option<(&'static str, Value)>,
}

/// Decides. The fallback is held against everything that is required, never against what is missing alone, and has no fallback of its own.
pub fn evaluate(dispatch: &Dispatch) -> Verdict {
    let missing = lacks(&dispatch.active, &dispatch.required);
    if missing.is_empty() {
        return Verdict { route: Route::Dispatch, missing, fallback_attempted: false, event: None };
    }
    // A host that does not swap models has tried none.
    let tried = dispatch.fallback.as_ref().filter(|_| dispatch.substitution_supported);
    let able = tried.filter(|it| it.authenticated && lacks(&it.model, &dispatch.required).is_empty());
    let (route, event) = match able {
        Some(fallback) => (Route::Substitute, substituted(dispatch, &fallback.model, &missing)),
        None => (Route::Refuse, insufficient(dispatch, &missing, tried.is_some())),
    };
    Verdict { route, missing, fallback_attempted: tried.is_some() && able.is_none(), event: Some(event) }
}

/// Whether this is how a capability is called: a word of the protocol's, or `x-host-<host>-<key>` of a host's own.
pub fn is_identifier(raw: &str) -> bool {
    // The pattern's second half is a part of its first.
    raw.len() <= 128 && is_provider(raw)
}

/// Whether this is how a provider is called.
pub fn is_provider(raw: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    raw.len() <= 128 && raw.starts_with(|c: char| c.is_ascii_lowercase()) && raw.bytes().all(allowed)
}

fn lacks(model: &Model, required: &[String]) -> Vec<String> {
    required.iter().filter(|needed| !model.capabilities.contains(needed)).cloned().collect()
}

/// Either both names of the fallback are there or neither is, so that a reader sees that something was left out.
fn substituted(dispatch: &Dispatch, fallback: &Model, missing: &[String]) -> (&'static str, Value) {
    let (provider, model) = match dispatch.redact {
        true => (REDACTED, REDACTED),
        false => (fallback.provider.as_str(), fallback.model.as_str()),
    };
    let payload = json!({
        "nodeId": dispatch.node_id,
        "originalProvider": dispatch.active.provider,
        "originalModel": dispatch.active.model,
        "fallbackProvider": provider,
        "fallbackModel": model,
        "missingCapabilities": missing,
    });
    ("model.capability.substituted", payload)
}

/// It names no fallback, so there is nothing to leave out: the active model stood in the request that made the run.
fn insufficient(dispatch: &Dispatch, missing: &[String], attempted: bool) -> (&'static str, Value) {
    let payload = json!({
        "nodeId": dispatch.node_id,
        "provider": dispatch.active.provider,
        "model": dispatch.active.model,
        "missingCapabilities": missing,
        "fallbackAttempted": attempted,
    });
    ("model.capability.insufficient", payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(provider: &str, capabilities: &[&str]) -> Model {
        let capabilities = capabilities.iter().map(|name| (*name).to_owned()).collect();
        Model { provider: provider.to_owned(), model: format!("{provider}-1"), capabilities }
    }

    fn dispatch(active: &[&str], fallback: Option<(&[&str], bool)>) -> Dispatch {
        Dispatch {
            node_id: "draw".to_owned(),
            required: vec!["vision-input".to_owned(), "reasoning".to_owned()],
            active: model("first", active),
            fallback: fallback.map(|(able, authenticated)| Fallback { model: model("second", able), authenticated }),
            substitution_supported: true,
            redact: false,
        }
    }

    #[test]
    fn a_model_that_can_do_it_is_not_talked_about() {
        for fallback in [None, Some((&["vision-input"][..], true))] {
            let verdict = evaluate(&dispatch(&["reasoning", "vision-input", "long-context"], fallback));
            assert_eq!((verdict.route, verdict.event, verdict.missing.len()), (Route::Dispatch, None, 0));
        }
    }

    #[test]
    fn a_fallback_takes_over_only_when_it_can_do_all_of_it() {
        let both: &[&str] = &["reasoning", "vision-input"];
        for (able, authenticated, route) in [
            (both, true, Route::Substitute),
            (both, false, Route::Refuse),
            // It has what the first one lacks, and lacks what the first one has.
            (&["vision-input"], true, Route::Refuse),
            (&[], true, Route::Refuse),
        ] {
            let verdict = evaluate(&dispatch(&["reasoning"], Some((able, authenticated))));
            assert_eq!(verdict.route, route, "{able:?} {authenticated}");
            assert_eq!(verdict.missing, ["vision-input"], "of the active model alone");
            assert_eq!(verdict.fallback_attempted, route == Route::Refuse);
        }
    }

    #[test]
    fn what_was_not_tried_is_not_said_to_have_been() {
        let without = evaluate(&dispatch(&[], None));
        let mut unwilling = dispatch(&[], Some((&["reasoning", "vision-input"], true)));
        unwilling.substitution_supported = false;
        for verdict in [without, evaluate(&unwilling)] {
            assert_eq!((verdict.route, verdict.fallback_attempted), (Route::Refuse, false));
            let (name, payload) = verdict.event.expect("an event");
            assert_eq!((name, &payload["fallbackAttempted"]), ("model.capability.insufficient", &json!(false)));
        }
    }

    #[test]
    fn both_names_of_the_fallback_are_left_out_or_neither_is() {
        let mut asked = dispatch(&[], Some((&["reasoning", "vision-input"], true)));
        let (_, open) = evaluate(&asked).event.expect("an event");
        asked.redact = true;
        let (_, redacted) = evaluate(&asked).event.expect("an event");

        assert_eq!((&open["fallbackProvider"], &open["fallbackModel"]), (&json!("second"), &json!("second-1")));
        assert_eq!((&redacted["fallbackProvider"], &redacted["fallbackModel"]), (&json!(REDACTED), &json!(REDACTED)));
        for kept in ["nodeId", "originalProvider", "originalModel", "missingCapabilities"] {
            assert_eq!(open[kept], redacted[kept], "{kept}");
        }
    }

    #[test]
    fn a_redacted_refusal_still_names_the_active_model() {
        let mut asked = dispatch(&[], None);
        asked.redact = true;
        let (_, payload) = evaluate(&asked).event.expect("an event");
        assert_eq!((&payload["provider"], &payload["model"]), (&json!("first"), &json!("first-1")));
    }

    #[test]
    fn identifiers_are_words_in_lower_case() {
        for good in ["reasoning", "vision-input", "x-host-acme-ocr", "a1"] {
            assert!(is_identifier(good), "{good}");
        }
        for bad in ["", "Reasoning", "1a", "-a", "a_b", "a.b", "vision input", &"a".repeat(129)] {
            assert!(!is_identifier(bad), "{bad}");
        }
    }
}
