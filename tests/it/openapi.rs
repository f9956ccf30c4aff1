//! The OpenAPI document against the service that it describes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Host;
use crate::harness::bytes::png;
use crate::harness::told::Told;

const GOLDEN: &str = "tests/golden/openapi.json";

#[tokio::test]
async fn the_document_is_the_one_that_was_agreed_on() {
    let document = document(&Host::start().await).await;
    let text = format!("{document:#}\n");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(GOLDEN, &text).expect("a place for it");
    }
    let golden = fs::read_to_string(GOLDEN).unwrap_or_default();
    assert!(golden == text, "the document changed: look at it with UPDATE_GOLDEN=1 and git diff {GOLDEN}");
}

#[tokio::test]
async fn every_operation_says_who_may_call_it_and_what_it_refuses() {
    let document = document(&Host::start().await).await;
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    let scopes: Vec<&str> = mediakeep::access::Scope::ALL.map(|scope| scope.name()).to_vec();
    let mut ids = BTreeSet::new();

    for (name, path, operation) in operations(&document) {
        assert!(ids.insert(operation["operationId"].to_string()), "{name}: its id is taken");
        assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{name}: no summary");
        assert!(operation["tags"].as_array().is_some_and(|tags| tags.len() == 1), "{name}: no tag");
        let responses = operation["responses"].as_object().expect("responses");
        assert!(responses.keys().all(|status| !status.ends_with("XX")), "{name}: {:?}", responses.keys());
        assert!(responses.keys().any(|status| status.starts_with('2')), "{name}");
        let security = operation["security"].as_array().expect("said, be it that nobody is asked");
        let scope = security[0]["bearer"][0].as_str();
        assert!(scope.is_none_or(|scope| scopes.contains(&scope)), "{name}: {scope:?}");
        for (status, needed) in [
            ("401", scope.is_some()),
            ("403", scope.is_some()),
            ("404", ["{assetId}", "{runId}", "{uploadId}"].iter().any(|id| path.contains(id))),
            ("413", operation.get("requestBody").is_some()),
            ("500", true),
            ("503", true),
        ] {
            assert!(!needed || responses.contains_key(status), "{name} may answer {status}");
        }
        for (status, response) in responses {
            let response = resolved(&document, response);
            assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{name} {status}");
            assert!(response["headers"].get("X-Request-Id").is_some(), "{name} {status}");
            if status.starts_with('4') || status.starts_with('5') {
                let schema = &response["content"]["application/json"]["schema"]["$ref"];
                assert!(schema == "#/components/schemas/Error" || name.starts_with("head"), "{name} {status}");
            }
        }
        for place in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            let parameter =
                operation["parameters"].as_array().and_then(|all| all.iter().find(|one| one["name"] == place));
            assert!(
                parameter.is_some_and(|one| one["required"] == true && one["description"].is_string()),
                "{name} {place}"
            );
        }
    }
}

#[tokio::test]
async fn what_is_documented_is_there_and_what_is_there_is_documented() {
    let host = Host::start().await;
    let document = document(&host).await;
    let asset = host.owner("acme").upload(png(5, 5)).await;
    let token = asset.url.rsplit_once("/a/").expect("a capability URL").1;

    let mut documented = BTreeMap::<String, BTreeSet<String>>::new();
    for (name, path, operation) in operations(&document) {
        let method = name.split(' ').next().expect("a method").to_uppercase();
        documented.entry(path.to_owned()).or_default().insert(method.clone());
        let filled = path
            .replace("{assetId}", &asset.id)
            .replace("{runId}", "run-1")
            .replace("{holdId}", "audit")
            .replace("{artifactId}", "report")
            .replace("{capability}", token)
            .replace("{filename}", "name.png")
            .replace("{kind}", "media.image")
            .replace("{uploadId}", "00112233445566778899aabbccddeeff")
            .replace("{form}", "envelope")
            .replace("{aliasOrType}", "pdf");
        assert!(!filled.contains('{'), "say what {path} is filled with");

        let request = host.stranger().request(method.parse::<Method>().expect("a method"), &filled);
        let status = request.send().await.expect("an answer").status().as_u16();
        let is_public = operation["security"][0].get("bearer").is_none();
        let expected = if is_public { (200..300).contains(&status) } else { status == 401 };
        assert!(expected, "{name}: {status}");
        let told = Told::of(
            host.stranger()
                .request(Method::from_bytes(b"BREW").expect("a method"), &filled)
                .send()
                .await
                .expect("an answer"),
        )
        .await;
        assert_eq!((told.status, told.refusal()), (405, "method_not_allowed".into()), "{path}");
        assert!(told.header("allow").split(", ").any(|known| known == method), "{name}: {}", told.header("allow"));
    }
    for (path, methods) in route_table() {
        let known = documented.get(&path).expect(&path);
        assert!(!methods.is_empty(), "{path}: its line in the route table is not read");
        assert!(methods.is_subset(known), "{path}: {methods:?} {known:?}");
    }
}

#[tokio::test]
async fn answers_have_the_shape_that_the_document_gives_them() {
    let host = Host::start().await;
    let document = document(&host).await;
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        assert!(jsonschema::meta::is_valid(schema), "{name} is no JSON Schema");
    }
    let owner = host.owner("acme");
    let asset = owner.upload(png(5, 5)).await;
    let meta = format!("/v1/assets/{}", asset.id);
    let mint = async |wish: Value| Told::of(owner.post(&format!("{meta}/urls"), &wish).await).await.json();

    for (operation, status, answer) in [
        ("post /v1/runs/{runId}/assets", "201", asset.answer.clone()),
        ("get /v1/assets/{assetId}", "200", Told::of(owner.get(&meta).await).await.json()),
        ("get /v1/assets", "200", Told::of(owner.get("/v1/assets").await).await.json()),
        ("put /v1/runs/{runId}", "200", Told::of(owner.put("/v1/runs/run-1", &json!({})).await).await.json()),
        (
            "put /v1/runs/{runId}/holds/{holdId}",
            "200",
            Told::of(owner.put("/v1/runs/run-1/holds/audit", &json!({"reason": "an audit"})).await).await.json(),
        ),
        (
            "get /v1/assets/{assetId}/retention",
            "200",
            Told::of(owner.get(&format!("{meta}/retention")).await).await.json(),
        ),
        ("get /v1/retention/preview", "200", Told::of(owner.get("/v1/retention/preview").await).await.json()),
        ("get /v1/runs", "200", Told::of(owner.get("/v1/runs").await).await.json()),
        ("post /v1/assets/{assetId}/urls", "201", mint(json!({"class": "durable"})).await),
        ("post /v1/assets/{assetId}/urls", "201", mint(json!({"class": "delivery"})).await),
        (
            "get /v1/runs/{runId}/debug-bundle/manifest",
            "200",
            Told::of(owner.get("/v1/runs/run-1/debug-bundle/manifest").await).await.json(),
        ),
        ("get /v1/formats", "200", Told::of(host.stranger().get("/v1/formats").await).await.json()),
        ("get /v1/formats/{aliasOrType}", "200", Told::of(host.stranger().get("/v1/formats/pdf").await).await.json()),
        (
            "post /v1/schemas/lint",
            "200",
            Told::of(owner.post("/v1/schemas/lint", &json!({"oneOf": []})).await).await.json(),
        ),
        ("get /v1/assets/{assetId}", "404", Told::of(owner.get("/v1/assets/x").await).await.json()),
        ("get /v1/assets", "401", Told::of(host.stranger().get("/v1/assets").await).await.json()),
        ("get /v1/assets", "400", Told::of(owner.get("/v1/assets?limit=x").await).await.json()),
    ] {
        let (method, path) = operation.split_once(' ').expect("method and path");
        let response = resolved(&document, &document["paths"][path][method]["responses"][status]);
        let mut schema = response["content"]["application/json"]["schema"].clone();
        assert!(schema.is_object(), "{operation} {status}");
        schema["components"] = document["components"].clone();
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let faults: Vec<String> = validator.iter_errors(&answer).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{operation} {status}: {faults:?} in {answer}");
    }
}

async fn document(host: &Host) -> Value {
    let told = Told::of(host.stranger().get("/v1/openapi.json").await).await;
    assert_eq!((told.status, told.header("content-type")), (200, "application/json"));
    told.json()
}

/// Each operation with its name, `get /path`, and its path.
fn operations(document: &Value) -> Vec<(String, &str, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object()
            .expect("operations")
            .iter()
            .map(move |(method, operation)| (format!("{method} {path}"), path.as_str(), operation))
    });
    operations.collect()
}

fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(place) => document.pointer(place.trim_start_matches('#')).expect(place),
        None => value,
    }
}

/// The public routes and their methods, read off the table in the source. That GET answers HEAD goes without saying.
fn route_table() -> BTreeMap<String, BTreeSet<String>> {
    let source = fs::read_to_string(Path::new("src/http/routes.rs")).expect("the route table");
    let public = source.split("pub fn admin").next().expect("the public routes");
    let mut table = BTreeMap::new();
    for line in public.lines() {
        let Some((path, handlers)) = line.split_once("at(\"").and_then(|(_, rest)| rest.split_once("\")")) else {
            continue;
        };
        let methods = ["get", "post", "put", "patch", "delete"];
        let known = methods.into_iter().filter(|method| handlers.contains(&format!(".{method}(")));
        table.insert(path.to_owned(), known.map(str::to_uppercase).collect());
    }
    assert!(table.len() >= 15, "{table:?}");
    table
}
