//! Who may call what: every documented operation, by everybody, as a table that is agreed on.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use mediakeep::access::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{Asset, Host};
use crate::tenancy::Operation;

const GOLDEN: &str = "tests/golden/roles.txt";

/// What stands above the table.
const HEAD: &str = "\
# The status that each operation of the OpenAPI document answers, by who asks, for an asset and a run of acme's that are there.
# all: acme with every scope; w r m a R h e u: acme with that one (assets:write, assets:read, assets:mint, artifacts:read, runs:write,
# holds:write, assets:erase, audit:read); other: globex with every scope; none: nobody; header, query, body: acme with every scope, which
# names globex there. A dash: the operation takes no JSON body. Written by UPDATE_GOLDEN=1 cargo test --test it roles.
";

/// Who asks.
#[derive(Debug, Clone, Copy)]
enum Role {
    All,
    One(Scope),
    Other,
    Nobody,
    Header,
    Query,
    Body,
}

#[tokio::test]
async fn each_operation_answers_each_role_as_was_agreed() {
    let host = Host::start().await;
    let mut table = format!("{HEAD}\n{:<52}", "operation");
    for role in Role::every() {
        let _ = write!(table, " {:>6}", role.name());
    }
    table.push('\n');

    for (number, (operation, scopes)) in operations(&host).await.into_iter().enumerate() {
        let _ = write!(table, "{:<52}", format!("{} {}", operation.method, operation.path));
        for (column, role) in Role::every().into_iter().enumerate() {
            // Ids of their own: what one role changed must not hide what another may do.
            let run = format!("run-{number}-{column}");
            let asset = host.owner("acme").upload_to(&run, png(6, 6)).await;
            if operation.method == Method::DELETE && operation.path.ends_with("/holds/{holdId}") {
                let (path, reason) = (filled(&operation.path, &asset, &run), json!({"reason": "an audit"}));
                let placed = host.owner("acme").put(&path, &reason).await;
                assert_eq!(placed.status(), 200, "there is a hold to lift");
            }
            if operation.method == Method::GET && operation.path.ends_with("/artifacts/{artifactId}") {
                let (path, parts) = (filled(&operation.path, &asset, &run), json!({"parts": [{"assetId": asset.id}]}));
                assert_eq!(host.owner("acme").put(&path, &parts).await.status(), 201, "there is one to read");
            }
            let answer = ask(&host, &operation, role, &asset, &run).await;
            if !scopes.is_empty() {
                role.must_hear(answer.as_ref(), &scopes, &operation);
            }
            let status = answer.map_or_else(|| "-".to_owned(), |told| told.status.to_string());
            let _ = write!(table, " {status:>6}");
        }
        table.push('\n');
    }

    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(GOLDEN, &table).expect("a place for it");
    }
    let golden = fs::read_to_string(GOLDEN).unwrap_or_default();
    assert!(
        golden == table,
        "who may call what changed: look at it with UPDATE_GOLDEN=1 and git diff {GOLDEN}\n{table}"
    );
}

impl Role {
    fn every() -> Vec<Self> {
        let ones = Scope::ALL.into_iter().map(Self::One);
        let others = [Self::Other, Self::Nobody, Self::Header, Self::Query, Self::Body];
        [Self::All].into_iter().chain(ones).chain(others).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::One(Scope::AssetsWrite) => "w",
            Self::One(Scope::AssetsRead) => "r",
            Self::One(Scope::AssetsMint) => "m",
            Self::One(Scope::ArtifactsRead) => "a",
            Self::One(Scope::RunsWrite) => "R",
            Self::One(Scope::HoldsWrite) => "h",
            Self::One(Scope::AssetsErase) => "e",
            Self::One(Scope::AuditRead) => "u",
            Self::Other => "other",
            Self::Nobody => "none",
            Self::Header => "header",
            Self::Query => "query",
            Self::Body => "body",
        }
    }

    /// What no new table may agree to.
    fn must_hear(self, told: Option<&Told>, needed: &BTreeSet<String>, operation: &Operation) {
        let Some(told) = told else {
            return;
        };
        let (status, names_one) =
            (told.status, ["{assetId}", "{uploadId}"].iter().any(|id| operation.path.contains(id)));
        let right = match self {
            Self::All => ![401, 403, 404].contains(&status),
            Self::One(scope) if !needed.contains(scope.name()) => status == 403,
            Self::One(_) => status != 401,
            Self::Other => status != 403 && (!names_one || status == 404),
            Self::Nobody => status == 401,
            Self::Header | Self::Query | Self::Body => status == 403,
        };
        assert!(right, "{operation:?} answers {self:?} {told:?}");
    }
}

/// Sends the operation a request that is good but for who asks; nothing, if it has no place for what the role forges.
async fn ask(host: &Host, operation: &Operation, role: Role, asset: &Asset, run: &str) -> Option<Told> {
    let caller = match role {
        Role::One(scope) => host.with_scope("acme", scope),
        Role::Other => host.owner("globex"),
        Role::Nobody => host.stranger(),
        _ => host.owner("acme"),
    };
    let mut path = filled(&operation.path, asset, run);
    if path.contains("{uploadId}") {
        let begin = host.owner("acme").request(Method::POST, "/v1/uploads").header("tus-resumable", "1.0.0");
        let begun = begin.header("upload-length", "5").send().await.expect("an answer");
        let url = begun.headers()["location"].to_str().expect("text").to_owned();
        path = path.replace("{uploadId}", url.rsplit('/').next().expect("an id"));
    }
    let mut body = body(operation, asset, run);
    match role {
        Role::Query => path += "?tenant=globex",
        Role::Body => body.as_mut()?["tenantId"] = json!("globex"),
        _ => {}
    }
    let mut request = caller.request(operation.method.clone(), &path);
    if let Role::Header = role {
        request = request.header("x-tenant-id", "globex");
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    if operation.path.starts_with("/v1/uploads") {
        request = match operation.path.as_str() {
            "/v1/uploads" => request.header("upload-length", "5"),
            _ => request.header("x-http-method-override", "HEAD").header("upload-offset", "0"),
        };
        request = request.header("tus-resumable", "1.0.0");
        if operation.method == Method::PATCH {
            request = request.header("content-type", "application/offset+octet-stream");
        }
    }
    Some(Told::of(request.send().await.expect("an answer")).await)
}

fn filled(path: &str, asset: &Asset, run: &str) -> String {
    let token = asset.url.rsplit_once("/a/").expect("a capability URL").1;
    let places = [
        ("{assetId}", &*asset.id),
        ("{runId}", run),
        ("{holdId}", "hold-1"),
        ("{artifactId}", "artifact-1"),
        ("{form}", "envelope"),
        ("{capability}", token),
        ("{filename}", "name.png"),
        ("{kind}", "media.image"),
        ("{aliasOrType}", "png"),
    ];
    let filled = places.into_iter().fold(path.to_owned(), |path, (place, value)| path.replace(place, value));
    assert!(!filled.replace("{uploadId}", "").contains('{'), "say what {path} is filled with");
    filled
}

fn body(operation: &Operation, asset: &Asset, run: &str) -> Option<Value> {
    match (operation.method.as_str(), operation.path.as_str()) {
        ("POST", "/v1/assets") => Some(json!({"base64": "aGVsbG8="})),
        ("POST", "/v1/urls/mint") => Some(json!({"class": "durable", "assets": [asset.id]})),
        // By the asset it takes a second scope, which is another story's.
        ("POST", "/v1/urls/revoke") => Some(json!({"label": "press"})),
        ("POST", "/v1/urls/introspect") => Some(json!({"url": asset.url})),
        ("POST", "/v1/audit/isolation-checks") => Some(json!({"sample": 1})),
        ("POST", "/v1/model-capabilities/evaluate") => Some(json!({
            "nodeId": "n", "required": [], "substitutionSupported": false,
            "active": {"provider": "p", "model": "m", "capabilities": []},
        })),
        ("POST", "/v1/schemas/lint") => Some(json!({"type": "object"})),
        ("POST", "/v1/debug-bundles/scrub" | "/v1/debug-bundles/check") => {
            Some(json!({"bundleVersion": "1.0", "run": {"runId": run}, "events": [{"payload": {"url": asset.url}}]}))
        }
        ("POST", "/v1/debug-bundles/resolve") => Some(json!({"urls": [asset.url]})),
        ("POST", "/v1/content-parts/normalize") => Some(json!({
            "runId": run, "messages": [{"role": "user", "content": [{"type": "text", "text": "a word"}]}],
        })),
        // It takes none: one that comes all the same is not looked at.
        ("POST", "/v1/runs/{runId}/erase") => None,
        _ => operation.body(&asset.id),
    }
}

/// Every operation, with the scopes that open it; none where nobody is asked who they are.
async fn operations(host: &Host) -> Vec<(Operation, BTreeSet<String>)> {
    let document = Told::of(host.stranger().get("/v1/openapi.json").await).await.json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let security = operation["security"].as_array().expect("said, be it that nobody is asked");
            let scopes = security.iter().filter_map(|one| one["bearer"][0].as_str().map(str::to_owned));
            let scopes: BTreeSet<String> = scopes.collect();
            let method: Method = method.to_uppercase().parse().expect("a method");
            let scope = scopes.first().cloned().unwrap_or_default();
            operations.push((Operation { method, path: path.clone(), scope }, scopes));
        }
    }
    assert!(operations.len() > 30, "{} operations", operations.len());
    operations
}
