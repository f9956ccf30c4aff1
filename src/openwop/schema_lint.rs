//! Whether a payload's JSON Schema says its variants as every model provider understands them (RFC 0031 §A).
//!
//! Variants are branches of `anyOf`, each with the same required property whose `enum` has one string. `oneOf` is refused by some
//! providers and dropped by others. A choice in which at most one branch can be an object is told apart by its JSON type, so it needs no
//! such property.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Something that a provider would refuse, drop or misread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LintFinding)]
pub struct Finding {
    /// Where, as a JSON pointer into the schema.
    pub path: String,
    /// `one_of`, `discriminator_missing`, `discriminator_not_required`, `discriminator_not_single`, `discriminator_differs` or
    /// `discriminator_repeated`.
    pub code: &'static str,
    /// What is wrong, in a sentence.
    pub message: &'static str,
}

/// The most findings that are listed.
pub const MAX_FINDINGS: usize = 1000;

/// So many names of properties are looked at. A schema of a megabyte has a tenth of them, unless its references go round and round.
const MAX_LOOKS: usize = 1_000_000;

/// Everything that is wrong, by where it stands; none if it would take too long to say.
pub fn lint(schema: &Value) -> Option<Vec<Finding>> {
    let mut lint = Lint { root: schema, findings: Vec::new(), looks_left: Some(MAX_LOOKS) };
    lint.schema(schema, &mut String::new());
    lint.looks_left?;
    lint.findings.sort_by(|one, other| one.path.cmp(&other.path));
    Some(lint.findings)
}

struct Lint<'a> {
    root: &'a Value,
    findings: Vec<Finding>,
    /// How many names may yet be looked at; none once there were too many.
    looks_left: Option<usize>,
}

/// Keywords whose value is a schema, or a list of them.
const ONE: [&str; 14] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "allOf",
    "prefixItems",
];

/// Keywords whose value has a schema under every name.
const MANY: [&str; 6] = ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

impl<'a> Lint<'a> {
    fn schema(&mut self, schema: &'a Value, at: &mut String) {
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            match keyword.as_str() {
                "oneOf" => {
                    self.found(at, keyword, "one_of", "some providers refuse oneOf and others drop it: use anyOf");
                    self.children(value, keyword, at);
                }
                "anyOf" => {
                    step(at, keyword, |at| self.variants(value, at));
                    self.children(value, keyword, at);
                }
                keyword if ONE.contains(&keyword) => self.children(value, keyword, at),
                keyword if MANY.contains(&keyword) => step(at, keyword, |at| {
                    for (name, schema) in value.as_object().into_iter().flatten() {
                        step(at, name, |at| self.schema(schema, at));
                    }
                }),
                _ => {}
            }
        }
    }

    /// A schema, or each of a list.
    fn children(&mut self, value: &'a Value, keyword: &str, at: &mut String) {
        step(at, keyword, |at| match value {
            Value::Array(schemas) => {
                for (place, schema) in schemas.iter().enumerate() {
                    step(at, &place.to_string(), |at| self.schema(schema, at));
                }
            }
            schema => self.schema(schema, at),
        });
    }

    /// Looks at the branches of an `anyOf` of which two or more can be objects. One that refers to somewhere else counts as one, and cannot
    /// be judged from here.
    fn variants(&mut self, branches: &'a Value, at: &mut String) {
        let branches = branches.as_array().map_or(&[][..], Vec::as_slice);
        let resolved = branches.iter().enumerate().map(|(place, branch)| (place, self.resolved(branch)));
        let objects: Vec<_> = resolved.filter(|(_, branch)| branch.is_none_or(can_be_object)).collect();
        if objects.len() < 2 {
            return;
        }
        let mut known = Vec::new();
        for (place, branch) in objects {
            let Some(branch) = branch else {
                continue;
            };
            let branch = Branch::of(place, branch);
            self.looks_left = self.looks_left.and_then(|left| left.checked_sub(branch.looks()));
            if self.looks_left.is_none() {
                return;
            }
            known.push(branch);
        }
        let shared = shared_discriminator(&known);
        let mut seen = HashSet::new();
        for branch in &known {
            if let Some((code, message)) = branch.fault(shared, &mut seen) {
                self.found(at, &branch.place.to_string(), code, message);
            }
        }
    }

    /// The branch itself, or what it refers to within this schema; none if that is not there.
    fn resolved(&self, branch: &'a Value) -> Option<&'a Value> {
        let mut branch = branch;
        // Longer chains of references are cycles, or as good as one.
        for _ in 0..8 {
            let Some(reference) = branch.get("$ref") else {
                return Some(branch);
            };
            branch = self.root.pointer(reference.as_str()?.strip_prefix('#')?)?;
        }
        None
    }

    fn found(&mut self, at: &mut String, name: &str, code: &'static str, message: &'static str) {
        if self.findings.len() < MAX_FINDINGS {
            step(at, name, |path| self.findings.push(Finding { path: path.clone(), code, message }));
        }
    }
}

/// A branch that can be an object.
struct Branch<'a> {
    place: usize,
    properties: Option<&'a Map<String, Value>>,
    required: HashSet<&'a str>,
    /// Required properties with one word, by their names.
    words: BTreeMap<&'a str, &'a str>,
}

impl<'a> Branch<'a> {
    fn of(place: usize, schema: &'a Value) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let required: HashSet<&str> = required.filter_map(Value::as_str).collect();
        let words = properties
            .into_iter()
            .flatten()
            .filter(|(name, _)| required.contains(name.as_str()))
            .filter_map(|(name, property)| Some((name.as_str(), single_word(property)?)))
            .collect();
        Self { place, properties, required, words }
    }

    /// How many names were looked at.
    fn looks(&self) -> usize {
        1 + self.properties.map_or(0, Map::len) + self.required.len()
    }

    /// What is wrong with it, given what its siblings share and the words of those before it.
    fn fault(&self, shared: Option<&str>, seen: &mut HashSet<&'a str>) -> Option<(&'static str, &'static str)> {
        if self.words.is_empty() {
            return Some(self.why_none());
        }
        let Some(word) = shared.and_then(|shared| self.words.get(shared)) else {
            return Some((
                "discriminator_differs",
                "the branches share no discriminator: call it the same in all of them",
            ));
        };
        let is_new = seen.insert(word);
        (!is_new).then_some(("discriminator_repeated", "another branch has the same word: nobody can tell them apart"))
    }

    /// Of a branch without a discriminator: how near it comes to one.
    fn why_none(&self) -> (&'static str, &'static str) {
        let properties = || self.properties.into_iter().flatten();
        if properties().any(|(_, property)| single_word(property).is_some()) {
            return ("discriminator_not_required", "the property with one word has to be required");
        }
        let is_near = |property: &Value| property.get("const").is_some() || property.get("enum").is_some();
        if properties().any(|(name, property)| self.required.contains(name.as_str()) && is_near(property)) {
            return ("discriminator_not_single", "a discriminator is of type string with an enum of exactly one word");
        }
        ("discriminator_missing", "a branch needs a required property of type string with an enum of one word")
    }
}

/// A property's name that is a discriminator in every branch that has one at all; one whose words differ, if there is one.
fn shared_discriminator<'a>(branches: &[Branch<'a>]) -> Option<&'a str> {
    let with: Vec<_> = branches.iter().filter(|branch| !branch.words.is_empty()).collect();
    // The one with the fewest words bounds how much there is to compare.
    let least = with.iter().min_by_key(|branch| branch.words.len())?;
    let shared = |name: &&str| with.iter().all(|branch| branch.words.contains_key(name));
    let tells_apart = |name: &&str| {
        let mut words = HashSet::new();
        with.iter().all(|branch| branch.words.get(name).is_some_and(|word| words.insert(word)))
    };
    let names = || least.words.keys().copied().filter(shared);
    names().find(tells_apart).or_else(|| names().next())
}

/// Whether a value that fits the schema can be an object, as far as the schema says so itself.
fn can_be_object(schema: &Value) -> bool {
    match schema.get("type") {
        None => schema != &Value::Bool(false) && schema.get("enum").is_none() && schema.get("const").is_none(),
        Some(Value::Array(types)) => types.iter().any(|one| one == "object"),
        Some(one) => one == "object",
    }
}

/// The one word of a property of type string.
fn single_word(property: &Value) -> Option<&str> {
    let is_string = property.get("type").is_some_and(|one| one == "string");
    match property.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::String(word)]) if is_string => Some(word),
        _ => None,
    }
}

/// Does something one step further down.
fn step(at: &mut String, name: &str, look: impl FnOnce(&mut String)) {
    let length = at.len();
    at.push('/');
    at.push_str(&name.replace('~', "~0").replace('/', "~1"));
    look(at);
    at.truncate(length);
}

#[cfg(test)]
mod tests;
