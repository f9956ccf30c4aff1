//! The protocol's shapes, and the media scenarios of its public conformance suite told as stories of our own.

use jsonschema::Validator;
use serde_json::Value;

mod artifacts;
mod blobs;
mod formats;
mod host;
mod model;
mod projections;
mod seams;

/// One of the schemas beside these tests, written from the facts of the protocol, with formats on.
fn schema(name: &str) -> Validator {
    let place = format!("{}/tests/schemas/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&place).expect(&place);
    let schema: Value = serde_json::from_str(&text).expect(&place);
    assert!(jsonschema::meta::is_valid(&schema), "{name}");
    jsonschema::options().should_validate_formats(true).build(&schema).expect(name)
}

/// Fails with everything that is wrong with the document.
fn holds_against(name: &str, document: &Value) {
    let faults: Vec<String> = schema(name).iter_errors(document).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{name}: {faults:?} in {document}");
}
