use serde_json::json;

use super::*;

fn codes(schema: &Value) -> Vec<String> {
    lint(schema)
        .expect("a schema of moderate size")
        .into_iter()
        .map(|finding| format!("{} {}", finding.path, finding.code))
        .collect()
}

fn branch(name: &str, word: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string", "enum": [word]}}, "required": [name]})
}

#[test]
fn variants_as_they_should_be_are_fine() {
    let schema = json!({
        "properties": {"steps": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Design"}, branch("kind", "plan")]}}},
        "$defs": {"Design": branch("kind", "design")},
    });
    assert_eq!(codes(&schema), [""; 0]);
}

#[test]
fn one_of_is_found_at_any_depth() {
    let mut schema = json!({"oneOf": [true]});
    let mut path = "/oneOf".to_owned();
    for (keyword, inner) in [
        ("items", false),
        ("properties", true),
        ("$defs", true),
        ("not", false),
        ("additionalProperties", false),
        ("then", false),
    ] {
        schema = if inner { json!({keyword: {"a/b~": schema}}) } else { json!({keyword: schema}) };
        path = if inner { format!("/{keyword}/a~1b~0{path}") } else { format!("/{keyword}{path}") };
        assert_eq!(codes(&schema), [format!("{path} one_of")], "{keyword}");
    }
    let listed = json!({"allOf": [{"prefixItems": [{}, {"oneOf": [{"oneOf": []}]}]}]});
    assert_eq!(codes(&listed), ["/allOf/0/prefixItems/1/oneOf one_of", "/allOf/0/prefixItems/1/oneOf/0/oneOf one_of"]);
}

#[test]
fn a_word_that_only_looks_like_a_keyword_is_none() {
    let schema = json!({
        "properties": {"oneOf": {"type": "string"}, "anyOf": {"type": "object", "const": {"oneOf": []}}},
        "examples": [{"oneOf": []}], "default": {"anyOf": [{}, {}]}, "enum": [{"oneOf": []}],
        "required": ["oneOf"],
    });
    assert_eq!(codes(&schema), [""; 0]);
}

#[test]
fn a_branch_that_cannot_be_told_apart_is_named_with_what_it_lacks() {
    let optional = json!({"properties": {"kind": {"type": "string", "enum": ["a"]}}});
    let two = json!({"properties": {"kind": {"type": "string", "enum": ["a", "b"]}}, "required": ["kind"]});
    let constant = json!({"properties": {"kind": {"const": "a"}}, "required": ["kind"]});
    let untyped = json!({"properties": {"kind": {"enum": ["a"]}}, "required": ["kind"]});
    let by_presence = json!({"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]});
    for (bad, code) in [
        (optional, "discriminator_not_required"),
        (two, "discriminator_not_single"),
        (constant, "discriminator_not_single"),
        (untyped, "discriminator_not_single"),
        (by_presence, "discriminator_missing"),
        (json!({}), "discriminator_missing"),
        (json!(true), "discriminator_missing"),
    ] {
        let found = codes(&json!({"anyOf": [branch("kind", "z"), bad]}));
        assert!(found.contains(&format!("/anyOf/1 {code}")), "{found:?}");
    }
}

#[test]
fn branches_share_the_name_and_differ_in_the_word() {
    let differs = json!({"anyOf": [branch("kind", "a"), branch("type", "b")]});
    assert_eq!(codes(&differs), ["/anyOf/0 discriminator_differs", "/anyOf/1 discriminator_differs"]);
    let repeated = json!({"anyOf": [branch("kind", "a"), branch("kind", "b"), branch("kind", "a")]});
    assert_eq!(codes(&repeated), ["/anyOf/2 discriminator_repeated"]);
}

#[test]
fn a_choice_by_json_type_needs_no_discriminator() {
    for other in [json!({"type": "null"}), json!({"type": ["string", "null"]}), json!({"enum": ["auto"]}), json!(false)]
    {
        assert_eq!(codes(&json!({"anyOf": [{"type": "object"}, other]})), [""; 0], "{other}");
    }
}

#[test]
fn a_reference_to_elsewhere_is_not_judged_and_a_circle_ends() {
    let schema = json!({
        "anyOf": [{"$ref": "https://example.com/a.json"}, {"$ref": "#/$defs/Round"}, {"$ref": "#/$defs/None"}, {"$ref": 7}],
        "$defs": {"Round": {"$ref": "#/$defs/Round"}},
    });
    assert_eq!(codes(&schema), [""; 0]);
}

#[test]
fn the_list_has_an_end() {
    let many: Vec<Value> = vec![json!({"oneOf": []}); MAX_FINDINGS + 5];
    assert_eq!(lint(&json!({"allOf": many})).map(|found| found.len()), Some(MAX_FINDINGS));
}

#[test]
fn of_two_shared_names_the_one_that_tells_the_branches_apart_counts() {
    let branch = |kind: &str, variant: &str| {
        let word = |word: &str| json!({"type": "string", "enum": [word]});
        json!({"properties": {"kind": word(kind), "variant": word(variant)}, "required": ["kind", "variant"]})
    };
    assert_eq!(codes(&json!({"anyOf": [branch("a", "x"), branch("a", "y")]})), [""; 0]);
}

#[test]
fn references_that_make_a_small_schema_vast_are_not_followed_for_ever() {
    let properties: Map<String, Value> = (0..2_000).map(|n| (format!("p{n}"), json!(true))).collect();
    let branches = vec![json!({"$ref": "#/$defs/Wide"}); 2_000];
    let schema = json!({"anyOf": branches, "$defs": {"Wide": {"properties": properties}}});
    assert_eq!(lint(&schema), None);
}
