//! The ways in that an isolation check tries: whatever reads, and what changes something in a form that changes nothing if it gets through.
//!
//! Left out, because there is no harmless form of it: erasing (`DELETE …?erase=true`, `POST …/erase`), placing a hold, and ingest, which
//! makes something of the caller's own whatever the run. What would end an asset is only sent for one whose floor lies ahead, so that
//! it is refused even by a service that takes the stranger for the owner.

use actix_web::http::Method;
use serde_json::{Value, json};

use super::super::openapi;

/// Lists that must not hold anything of another tenant.
const LISTS: [&str; 2] = ["/v1/assets", "/v1/runs"];

/// A way in: a request with places for the ids.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<String>,
    /// Whether it would end the asset if nothing kept it.
    ends: bool,
}

/// What the places are filled with.
#[derive(Debug, Clone)]
pub(super) struct Ids {
    pub(super) asset: String,
    pub(super) run: String,
    pub(super) artifact: String,
    pub(super) token: String,
    pub(super) base_url: String,
    /// Whether the asset's floor lies so far ahead that nothing ends it meanwhile.
    pub(super) is_kept: bool,
}

impl Way {
    fn reading(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), body: None, ends: false }
    }

    pub(super) fn route(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(super) fn is_by_token(&self) -> bool {
        self.path.starts_with("/a/")
    }

    /// Whether its answer is compared word for word: a list may be answered with success, and must not hold anything.
    pub(super) fn is_list(&self) -> bool {
        LISTS.contains(&self.path.as_str())
    }

    /// Whether there is something to fill its places with: an asset need not be of a run. And whether it would do no harm.
    pub(super) fn is_for(&self, ids: &Ids) -> bool {
        let names_a_run = [Some(&self.path), self.body.as_ref()].into_iter().flatten().any(|it| it.contains("{runId}"));
        (!ids.run.is_empty() || !names_a_run) && (ids.is_kept || !self.ends)
    }
}

impl Ids {
    pub(super) fn fill(&self, text: &str) -> String {
        let text = text.replace("{assetId}", &self.asset).replace("{runId}", &self.run);
        let text = text.replace("{artifactId}", &self.artifact);
        let text = text.replace("{url}", &format!("{}/a/{}", self.base_url, self.token));
        text.replace("{capability}", &self.token)
    }
}

/// Capabilities; whatever reads and has an id in its path, by GET and by HEAD; lists; what takes an id in its body; and what changes
/// something: as far as this version has it.
pub(super) fn all() -> Vec<Way> {
    let document = openapi::document();
    let paths = document["paths"].as_object().into_iter().flatten();
    let mut ways = Vec::new();
    let mut read = |path: &str| {
        ways.extend([Method::GET, Method::HEAD].map(|method| Way::reading(method, path)));
    };
    read("/a/{capability}");
    for (path, operations) in paths {
        let is_ours = operations["get"]["security"][0].get("bearer").is_some();
        let filled = path.replace("{form}", "envelope");
        let names_one = path.contains("{assetId}") || path.contains("{runId}");
        let ids = ["{assetId}", "{runId}", "{artifactId}"];
        let ids_only = !ids.into_iter().fold(filled.clone(), |path, id| path.replace(id, "")).contains('{');
        if is_ours && ids_only && (names_one || LISTS.contains(&path.as_str())) {
            read(&filled);
        }
    }
    for (method, path, body) in with_bodies() {
        if knows(&document, &method, path) {
            ways.push(Way { method, path: path.into(), body: Some(body.to_string()), ends: false });
        }
    }
    for path in ["/v1/assets/{assetId}", "/v1/assets/{assetId}/holds/probe", "/v1/runs/{runId}/holds/probe"] {
        if knows(&document, &Method::DELETE, path) {
            // Of a hold that nobody placed there is nothing to lift.
            let ends = !path.ends_with("/probe");
            ways.push(Way { ends, ..Way::reading(Method::DELETE, path) });
        }
    }
    ways
}

fn with_bodies() -> Vec<(Method, &'static str, Value)> {
    vec![
        (Method::POST, "/v1/assets/{assetId}/urls", json!({"class": "delivery", "expiresInSeconds": 1})),
        (Method::POST, "/v1/urls/mint", json!({"class": "delivery", "expiresInSeconds": 1, "assets": ["{assetId}"]})),
        (Method::POST, "/v1/urls/revoke", json!({"assetId": "{assetId}", "dryRun": true})),
        (Method::POST, "/v1/urls/revoke", json!({"runId": "{runId}", "dryRun": true})),
        (Method::POST, "/v1/urls/introspect", json!({"url": "{url}"})),
        (Method::POST, "/v1/runs/probe/references", json!({"assets": ["{assetId}"]})),
        (Method::POST, "/v1/runs/probe/references", json!({"assets": ["{url}"]})),
        (Method::PUT, "/v1/runs/probe/artifacts/probe", json!({"parts": [{"assetId": "{assetId}"}]})),
        (Method::POST, "/v1/debug-bundles/resolve", json!({"urls": ["{url}"]})),
        // Whose asset it is can be told from whether it is found.
        (Method::POST, "/v1/debug-bundles/check", json!({"run": {"runId": "probe"}, "parts": [part()]})),
        (Method::POST, "/v1/content-parts/normalize", {
            json!({"runId": "probe", "modalities": ["image"], "messages": [{"role": "user", "content": [part()]}]})
        }),
        // Nothing is changed, so that whoever gets through has changed nothing.
        (Method::PATCH, "/v1/assets/{assetId}", json!({})),
        // A child of its own, of a parent that is not.
        (Method::PUT, "/v1/runs/probe", json!({"forkOf": "{runId}"})),
    ]
}

/// A part of a message that names the asset.
fn part() -> Value {
    json!({"type": "image", "mimeType": "image/png", "mediaRef": "blob:{assetId}"})
}

/// Whether this version has the operation. Runs, artifacts and holds of the check's own are called `probe`.
fn knows(document: &Value, method: &Method, path: &str) -> bool {
    let known = path.replace("/runs/probe", "/runs/{runId}").replace("/holds/probe", "/holds/{holdId}");
    let known = known.replace("/artifacts/probe", "/artifacts/{artifactId}");
    document["paths"].get(known).and_then(|it| it.get(method.as_str().to_ascii_lowercase())).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_this_version_has_of_the_ways_with_a_body_is_tried() {
        let tried: Vec<String> = all().iter().map(Way::route).collect();

        for (method, path, _) in with_bodies() {
            assert!(tried.contains(&format!("{method} {path}")), "{method} {path}");
        }
        for path in ["/v1/content-parts/normalize", "/v1/debug-bundles/check"] {
            assert!(tried.contains(&format!("POST {path}")), "{path}");
        }
    }
}
