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
pub struct Ids<'a> {
    pub asset: &'a str,
    pub run: &'a str,
}

/// As long as acme's own, lest a length tell.
const UNKNOWN: Ids<'_> = Ids { asset: "ast_01jhp3v5x0f7rb6k2m8q4t9wze", run: "run-nobodys" };
const RUN: &str = "run-of-acme";

#[tokio::test]
async fn anothers_id_and_nobodys_are_one_answer_on_every_route() {
    let mut tried = 0;
    for operation in operations(&Host::start().await).await {
        // A host of its own each: what one route makes must not hide what another shows.
        let host = Host::start().await;
        let owner = host.owner("acme");
        let asset = owner.upload_to(RUN, png(6, 6)).await;
        let before = seen(&owner, &asset).await;
        let theirs = Ids { asset: &asset.id, run: RUN };

        let foreign = operation.ask(&host.owner("globex"), theirs, theirs).await;
        let unknown = operation.ask(&host.owner("globex"), UNKNOWN, UNKNOWN).await;

        assert_eq!(foreign.without(theirs), unknown.without(UNKNOWN), "{operation:?}");
        if operation.path.contains("{assetId}") {
            assert!(foreign.says(404, "not_found"), "{operation:?} {foreign:?}");
            assert_eq!(foreign, unknown, "{operation:?}: it says not even which id it was asked for");
        } else if foreign.status >= 400 {
            assert_eq!((foreign.status, &foreign), (404, &unknown), "{operation:?}");
        }
        assert_eq!(seen(&owner, &asset).await, before, "{operation:?} changed what is acme's");
        tried += 1;
    }
    assert!(tried >= 11, "{tried} operations");
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
    let asset = owner.upload_to(RUN, png(6, 6)).await;
    let own = Ids { asset: &asset.id, run: RUN };

    for operation in operations(&host).await {
        let nobody = operation.ask(&host.stranger(), own, own).await;
        assert!(nobody.says(401, "unauthenticated"), "{operation:?} {nobody:?}");
        assert_eq!(operation.ask(&host.stranger(), UNKNOWN, UNKNOWN).await, nobody, "{operation:?}");

        let needed = Scope::parse(&operation.scope).expect("a scope of ours");
        for scope in Scope::ALL.into_iter().filter(|scope| *scope != needed) {
            let caller = host.with_scope("acme", scope);
            let told = operation.ask(&caller, own, own).await;
            if scope == Scope::ArtifactsRead && operation.path.ends_with("/content") {
                // It opens what an artifact names, and this one no artifact does.
                assert!(told.says(404, "not_found"), "{operation:?} {told:?}");
                assert_eq!(operation.ask(&caller, UNKNOWN, UNKNOWN).await, told, "{operation:?}");
                continue;
            }
            assert!(told.says(403, "forbidden"), "{operation:?} {scope:?} {told:?}");
            assert!(
                operation.method == Method::HEAD || told.json()["details"] == json!({"scopeRequired": operation.scope}),
                "{operation:?}"
            );
            assert_eq!(operation.ask(&caller, UNKNOWN, UNKNOWN).await, told, "{operation:?}");
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
            if path.contains("{assetId}") || path.contains("{runId}") {
                let method = method.to_uppercase().parse().expect("a method");
                operations.push(Operation { method, path: path.clone(), scope: scope.to_owned() });
            }
        }
    }
    operations
}

impl Operation {
    /// Sends a request that would be good if the ids were the caller's.
    async fn ask(&self, caller: &Caller<'_>, path: Ids<'_>, body: Ids<'_>) -> Told {
        let filled = self.path.replace("{assetId}", path.asset).replace("{runId}", path.run);
        let filled = filled.replace("{holdId}", "hold-1").replace("{form}", "envelope");
        let filled = filled.replace("{artifactId}", "artifact-1");
        let request = caller.request(self.method.clone(), &filled);
        let request = match self.body(body) {
            Some(body) => request.json(&body),
            None => request,
        };
        Told::of(request.send().await.expect("an answer")).await
    }

    /// A body for the operation. One that is missing here is refused before anything is looked up, and its test says so.
    pub fn body(&self, ids: Ids<'_>) -> Option<Value> {
        match (self.method.as_str(), self.path.as_str()) {
            ("GET" | "HEAD" | "DELETE", _) => None,
            ("PATCH", "/v1/assets/{assetId}") => Some(json!({"alt": "mine now"})),
            ("POST", "/v1/assets/{assetId}/urls") => Some(json!({"class": "durable"})),
            ("POST", "/v1/runs/{runId}/assets") => Some(json!({"base64": "aGVsbG8="})),
            ("POST", "/v1/runs/{runId}/references") => Some(json!({"assets": [ids.asset]})),
            ("PUT", path) if path.ends_with("/artifacts/{artifactId}") => {
                Some(json!({"parts": [{"assetId": ids.asset}]}))
            }
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
        let mut body = String::from_utf8_lossy(&self.body).replace(ids.run, "{runId}").replace(ids.asset, "{assetId}");
        if self.status == 201 {
            let made = self.json();
            let names = ["/asset/assetId", "/url"].map(|name| made.pointer(name).and_then(Value::as_str).expect(name));
            for name in names {
                body = body.replace(name, "{made}");
            }
        }
        (self.status, self.headers.keys().cloned().collect(), body)
    }
}

/// All that the owner sees of the asset and its run.
async fn seen(owner: &Caller<'_>, asset: &Asset) -> Vec<Told> {
    let mut seen = Vec::new();
    for path in [
        format!("/v1/assets/{}", asset.id),
        format!("/v1/assets/{}/content", asset.id),
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
