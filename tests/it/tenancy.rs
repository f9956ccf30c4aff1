//! What is another tenant's is as if it were not there: every documented route that has an id in its path, tried.

use mediakeep::access::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{Asset, Caller, Host};

/// An operation of the OpenAPI document with an id in its path.
#[derive(Debug, Clone)]
pub struct Operation {
    pub method: Method,
    pub path: String,
    pub scope: String,
}

/// What a path is filled with.
#[derive(Clone, Copy)]
struct Ids<'a> {
    asset: &'a str,
    run: &'a str,
    hold: &'a str,
    artifact: &'a str,
    upload: &'a str,
}

/// As long as acme's own, lest a length tell.
const UNKNOWN: Ids<'_> = Ids {
    asset: "ast_01jhp3v5x0f7rb6k2m8q4t9wze",
    run: "run-nobodys",
    hold: "hold-9",
    artifact: "artifact-9",
    upload: "0197a3c1d2e4f5061728394a5b6c7d8e",
};
const RUN: &str = "run-of-acme";

/// So many operations of the document have an id in their path. Of a new one [`Operation::ask`] has to know what it takes.
const OPERATIONS: usize = 25;

#[tokio::test]
async fn anothers_id_and_nobodys_are_one_answer_on_every_route() {
    let operations = operations(&Host::start().await).await;
    assert_eq!(operations.len(), OPERATIONS, "{operations:?}");
    for operation in operations {
        // A host of its own each: what one route makes must not hide what another shows.
        let host = Host::start().await;
        let owner = host.owner("acme");
        let (asset, upload) = everything(&owner).await;
        let theirs = Ids { asset: &asset.id, run: RUN, hold: "hold-1", artifact: "artifact-1", upload: &upload };
        let before = seen(&owner, theirs).await;

        let foreign = operation.ask(&host.owner("globex"), theirs).await;
        let unknown = operation.ask(&host.owner("globex"), UNKNOWN).await;

        assert_eq!(foreign.without(theirs), unknown.without(UNKNOWN), "{operation:?}");
        if operation.path.contains("{assetId}") || operation.path.contains("{uploadId}") {
            assert!(foreign.says(404, "not_found"), "{operation:?} {foreign:?}");
            assert_eq!(foreign, unknown, "{operation:?}: it says not even which id it was asked for");
        } else if foreign.status >= 400 {
            assert_eq!((foreign.status, &foreign), (404, &unknown), "{operation:?}");
        }
        assert_eq!(seen(&owner, theirs).await, before, "{operation:?} changed what is acme's");
    }
}

#[tokio::test]
async fn below_ones_own_asset_and_run_anothers_hold_and_artifact_are_nobodys() {
    let mut tried = 0;
    let below = |operation: &Operation| operation.path.contains("{holdId}") || operation.path.contains("{artifactId}");
    for operation in operations(&Host::start().await).await.into_iter().filter(below) {
        let host = Host::start().await;
        let (owner, other) = (host.owner("acme"), host.owner("globex"));
        let (asset, upload) = everything(&owner).await;
        let theirs = Ids { asset: &asset.id, run: RUN, hold: "hold-1", artifact: "artifact-1", upload: &upload };
        let before = seen(&owner, theirs).await;
        // A run of the same name is another tenant's other run.
        let own = other.upload_to(RUN, png(6, 6)).await;

        let foreign = Ids { asset: &own.id, ..theirs };
        let unknown = Ids { asset: &own.id, run: RUN, ..UNKNOWN };
        let (told, nothing) = (operation.ask(&other, foreign).await, operation.ask(&other, unknown).await);

        assert_eq!(told.without(foreign), nothing.without(unknown), "{operation:?}");
        assert_eq!(told.status < 400, operation.method == Method::PUT, "{operation:?} {told:?}");
        assert_eq!(seen(&owner, theirs).await, before, "{operation:?} changed what is acme's");
        tried += 1;
    }
    assert_eq!(tried, 6);
}

#[tokio::test]
async fn a_body_that_names_what_is_anothers_is_a_body_that_names_nothing() {
    let host = Host::start().await;
    let (owner, other) = (host.owner("acme"), host.owner("globex"));
    let asset = owner.upload_to(RUN, png(6, 6)).await;
    let unknown_url = asset.url.replace("/a/", "/a/x");
    let bound = |id: &str| host.url(&format!("/v1/assets/{id}/content"));
    let unknown = ["blob:", ""].map(|prefix| format!("{prefix}{}", UNKNOWN.asset));

    for (path, member, foreign, unknown) in [
        ("/v1/urls/mint", json!({"class": "durable"}), asset.id.clone(), UNKNOWN.asset.to_owned()),
        ("/v1/runs/own/references", json!({}), asset.id.clone(), unknown[1].clone()),
        ("/v1/runs/own/references", json!({}), format!("blob:{}", asset.id), unknown[0].clone()),
        ("/v1/runs/own/references", json!({}), asset.url.clone(), unknown_url),
        ("/v1/runs/own/references", json!({}), bound(&asset.id), bound(UNKNOWN.asset)),
    ] {
        let ask = async |name: &str| {
            let mut body = member.clone();
            body["assets"] = json!([name]);
            Told::of(other.post(path, &body).await).await
        };
        let told = ask(&foreign).await;
        assert_eq!((told.status, &told.json()["details"]), (404, &json!({"unknown": [0]})), "{path}");
        assert_eq!(told, ask(&unknown).await, "{path}");
    }
    assert_eq!(other.get("/v1/runs/own").await.status(), 404, "no run was made");
}

#[tokio::test]
async fn without_a_credential_or_its_scope_nothing_tells_what_exists() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (_, upload) = everything(&owner).await;
    let asset = owner.upload_to(RUN, png(7, 7)).await;
    let own = Ids { asset: &asset.id, run: RUN, hold: "hold-1", artifact: "artifact-1", upload: &upload };

    for operation in operations(&host).await {
        let nobody = operation.ask(&host.stranger(), own).await;
        assert!(nobody.says(401, "unauthenticated"), "{operation:?} {nobody:?}");
        assert_eq!(operation.ask(&host.stranger(), UNKNOWN).await, nobody, "{operation:?}");

        let needed = Scope::parse(&operation.scope).expect("a scope of ours");
        for scope in Scope::ALL.into_iter().filter(|scope| *scope != needed) {
            let caller = host.with_scope("acme", scope);
            let told = operation.ask(&caller, own).await;
            if scope == Scope::ArtifactsRead && operation.path.ends_with("/content") {
                // It opens what an artifact names, and this one no artifact does.
                assert!(told.says(404, "not_found"), "{operation:?} {told:?}");
                assert_eq!(operation.ask(&caller, UNKNOWN).await, told, "{operation:?}");
                continue;
            }
            assert!(told.says(403, "forbidden"), "{operation:?} {scope:?} {told:?}");
            assert!(
                operation.method == Method::HEAD || told.json()["details"] == json!({"scopeRequired": operation.scope}),
                "{operation:?}"
            );
            assert_eq!(operation.ask(&caller, UNKNOWN).await, told, "{operation:?}");
        }
    }
}

#[tokio::test]
async fn tenants_whose_names_differ_in_case_alone_share_nothing() {
    let host = Host::start().await;
    let (lower, upper) = (host.owner("acme"), host.owner("Acme"));
    let one = lower.upload_to(RUN, png(6, 6)).await;
    let two = upper.upload_to(RUN, png(6, 6)).await;

    for (caller, own, foreign) in [(&lower, &one, &two), (&upper, &two, &one)] {
        let listed = Told::of(caller.get("/v1/assets").await).await;
        let listed = listed.json();
        let ids: Vec<&Value> =
            listed["assets"].as_array().expect("a list").iter().map(|asset| &asset["assetId"]).collect();
        assert_eq!(ids, [&json!(own.id)]);
        assert_eq!(caller.get(&format!("/v1/assets/{}", foreign.id)).await.status(), 404);
    }
    assert_eq!(host.stored_blobs().await, 2);
}

#[tokio::test]
async fn a_cursor_is_good_for_nobody_but_the_one_who_was_given_it() {
    let host = Host::start().await;
    let (owner, other) = (host.owner("acme"), host.owner("globex"));
    for size in 1..=3 {
        owner.upload_to(&format!("run-{size}"), png(size, 1)).await;
        owner.upload_to(RUN, png(size, 2)).await;
        other.upload_to(RUN, png(size, 1)).await;
    }

    for path in ["/v1/assets", "/v1/runs", "/v1/runs/run-of-acme/assets", "/v1/runs/run-of-acme/debug-bundle/manifest"]
    {
        let page = Told::of(owner.get(&format!("{path}?limit=1")).await).await.json();
        let cursor = page["nextCursor"].as_str().expect("there is more");
        let next = format!("{path}?limit=1&cursor={cursor}");
        assert_eq!(owner.get(&next).await.status(), 200, "{path}");
        let told = Told::of(other.get(&next).await).await;
        assert_eq!((told.status, told.refusal()), (400, "validation_error".into()), "{path}");
        let elsewhere = if path == "/v1/runs" { "/v1/assets" } else { "/v1/runs" };
        assert_eq!(owner.get(&format!("{elsewhere}?cursor={cursor}")).await.status(), 400, "{path}");
    }
}

/// Every operation of the document that needs a credential and has an id in its path.
async fn operations(host: &Host) -> Vec<Operation> {
    let document = Told::of(host.stranger().get("/v1/openapi.json").await).await.json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("operations") {
            let Some(scope) = operation["security"][0]["bearer"][0].as_str() else {
                continue;
            };
            if path.contains('{') {
                let method = method.to_uppercase().parse().expect("a method");
                operations.push(Operation { method, path: path.clone(), scope: scope.to_owned() });
            }
        }
    }
    operations
}

impl Operation {
    /// Sends a request that would be good if the ids were the caller's.
    async fn ask(&self, caller: &Caller<'_>, ids: Ids<'_>) -> Told {
        let filled = self.path.replace("{assetId}", ids.asset).replace("{runId}", ids.run);
        let filled = filled.replace("{holdId}", ids.hold).replace("{artifactId}", ids.artifact);
        let filled = filled.replace("{uploadId}", ids.upload).replace("{form}", "envelope");
        assert!(!filled.contains('{'), "{filled}");
        let request = caller.request(self.method.clone(), &filled);
        let request = match self.body(ids.asset) {
            Some(body) => request.json(&body),
            None if self.path.contains("{uploadId}") => {
                let request = request.header("tus-resumable", "1.0.0").header("upload-offset", "0");
                let request = request.header("x-http-method-override", "PATCH");
                match self.method {
                    Method::PATCH | Method::POST => {
                        request.header("content-type", "application/offset+octet-stream").body("mine now")
                    }
                    _ => request,
                }
            }
            None => request,
        };
        Told::of(request.send().await.expect("an answer")).await
    }

    /// A body for the operation. One that is missing here is refused before anything is looked up, and its test says so.
    pub fn body(&self, asset: &str) -> Option<Value> {
        match (self.method.as_str(), self.path.as_str()) {
            ("GET" | "HEAD" | "DELETE", _) => None,
            ("PATCH", "/v1/assets/{assetId}") => Some(json!({"alt": "mine now"})),
            ("POST", "/v1/assets/{assetId}/urls") => Some(json!({"class": "durable"})),
            ("POST", "/v1/runs/{runId}/assets") => Some(json!({"base64": "aGVsbG8="})),
            ("POST", "/v1/runs/{runId}/references") => Some(json!({"assets": [asset]})),
            ("PUT", path) if path.ends_with("/artifacts/{artifactId}") => Some(json!({"parts": [{"assetId": asset}]})),
            ("PUT", path) if path.ends_with("/holds/{holdId}") => Some(json!({"reason": "mine now"})),
            ("POST", "/v1/runs/{runId}/erase") => Some(json!({})),
            ("PUT", "/v1/runs/{runId}") => Some(json!({"logRetentionSeconds": 60, "status": "closed"})),
            _ => None,
        }
    }
}

impl Told {
    /// Whether this is that refusal; a HEAD has nothing but its status.
    fn says(&self, status: u16, code: &str) -> bool {
        self.status == status && (self.body.is_empty() || self.refusal() == code)
    }

    /// The answer with the ids that were asked with taken out, and those that an ingest makes: a caller may hear what it said itself.
    fn without(&self, ids: Ids<'_>) -> (u16, Vec<String>, String) {
        let mut body = String::from_utf8_lossy(&self.body).into_owned();
        for (id, name) in
            [(ids.run, "{runId}"), (ids.asset, "{assetId}"), (ids.hold, "{holdId}"), (ids.artifact, "{artifactId}")]
        {
            body = body.replace(id, name);
        }
        if self.status == 201 {
            let made = self.json();
            for name in ["/asset/assetId", "/url"].iter().filter_map(|name| made.pointer(name)?.as_str()) {
                body = body.replace(name, "{made}");
            }
        }
        (self.status, self.headers.keys().cloned().collect(), body)
    }
}

/// An asset in [`RUN`], a hold on each of them, an artifact, and an upload in parts of which some has come: its id.
async fn everything(owner: &Caller<'_>) -> (Asset, String) {
    let asset = owner.upload_to(RUN, png(6, 6)).await;
    for on in [format!("/v1/assets/{}", asset.id), format!("/v1/runs/{RUN}")] {
        let placed = owner.put(&format!("{on}/holds/hold-1"), &json!({"reason": "an audit"})).await;
        assert_eq!(placed.status(), 200, "{on}");
    }
    let parts = json!({"parts": [{"assetId": asset.id}]});
    assert_eq!(owner.put(&format!("/v1/runs/{RUN}/artifacts/artifact-1"), &parts).await.status(), 201);
    let begun =
        owner.request(Method::POST, "/v1/uploads").header("tus-resumable", "1.0.0").header("upload-length", "8");
    let begun = Told::of(begun.send().await.expect("an answer")).await;
    assert_eq!(begun.status, 201, "{begun:?}");
    let upload = begun.header("location").rsplit('/').next().expect("an id").to_owned();
    assert_eq!(upload.len(), UNKNOWN.upload.len(), "{upload}");
    (asset, upload)
}

/// All that the owner sees of these.
async fn seen(owner: &Caller<'_>, ids: Ids<'_>) -> Vec<Told> {
    let mut seen = Vec::new();
    let upload = owner.request(Method::HEAD, &format!("/v1/uploads/{}", ids.upload)).header("tus-resumable", "1.0.0");
    seen.push(Told::of(upload.send().await.expect("an answer")).await);
    for path in [
        format!("/v1/assets/{}", ids.asset),
        format!("/v1/assets/{}/content", ids.asset),
        format!("/v1/assets/{}/retention", ids.asset),
        format!("/v1/runs/{RUN}/artifacts/{}", ids.artifact),
        format!("/v1/runs/{RUN}"),
        format!("/v1/runs/{RUN}/debug-bundle/manifest"),
        "/v1/runs".to_owned(),
        "/v1/assets".to_owned(),
    ] {
        seen.push(Told::of(owner.get(&path).await).await);
    }
    assert!(seen.iter().all(|told| told.status == 200 && told.header("cache-control") == "no-store"));
    seen
}
