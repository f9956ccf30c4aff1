//! The isolation check, sent through the service itself: the same routes, guards and handlers as requests from outside.
//!
//! A request of the check carries who it comes from beside its bytes ([`Probe`]), where nothing from the network comes. Which routes there
//! are is read off the OpenAPI document, so a new one that reads is tried without being named here.

use std::collections::BTreeSet;

use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::{Method, StatusCode, header};
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service};
use actix_web::{HttpMessage, HttpRequest, HttpResponse, web};
use mediakeep_storage::{AssetId, AssetView, BlobKey};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::body::{answer, json};
use super::extract::{AuditRead, Caller, Probe, parts};
use super::{guard, openapi, routes};
use crate::access::Principal;
use crate::app::App;
use crate::assets::{AssetError, urls};
use crate::audit::isolation::{self, DEFAULT_SAMPLE, Leak, MAX_SAMPLE, Report};
use crate::audit::signed::signed;
use crate::error::ApiError;

/// How much is tried.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IsolationRequest {
    /// How many assets; 100 if nobody says.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1000, default = 100)]
    sample: Option<usize>,
}

/// Tries the caller's assets against every way in, as a foreign tenant, as nobody, and with forged tokens.
#[utoipa::path(post, operation_id = "check_isolation", path = "/v1/audit/isolation-checks", tag = "audit", request_body = IsolationRequest,
    responses((status = 200, body = openapi::SignedReport), (status = 409, body = openapi::ErrorBody, description = "`check_running`: one at a time")), security(("bearer" = ["audit:read"])))]
pub async fn check(
    caller: Caller<AuditRead>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let (app, principal) = (parts(&request), &caller.principal);
    let wish: IsolationRequest = json(&request, payload, principal).await?;
    let most = wish.sample.unwrap_or(DEFAULT_SAMPLE);
    if !(1..=MAX_SAMPLE).contains(&most) {
        return Err(ApiError::validation(format!("sample: 1 to {MAX_SAMPLE}")));
    }
    let Some(_turn) = app.checks.begin(&principal.tenant) else {
        return Err(ApiError::new(StatusCode::CONFLICT, "check_running", "a check of this tenant is running"));
    };
    let service = init_service(
        actix_web::App::new()
            .app_data(web::Data::from(app.clone()))
            .wrap(from_fn(guard::guard))
            .configure(routes::public),
    )
    .await;
    let mut check = Check::begin(&app, &service).await?;
    let sample = isolation::sample(&app, &principal.tenant, most).await?;
    for view in &sample {
        check.try_asset(view).await?;
    }
    let (attempts, mut leaks) = (check.attempts, check.leaks);
    leaks.sort();
    let report = Report { checked: sample.len(), attempts, leaks, checked_at: app.now() };
    isolation::record(&app, principal, &report).await?;
    let report = signed(&app.live().ring, &report).map_err(|error| AssetError::Internal(error.to_string()))?;
    Ok(answer(StatusCode::OK, &report))
}

/// A way in: a request with places for the ids.
#[derive(Debug, Clone)]
struct Way {
    method: Method,
    path: String,
    body: Option<String>,
}

/// What the places are filled with.
#[derive(Debug, Clone)]
struct Ids {
    asset: String,
    run: String,
    token: String,
    base_url: String,
}

/// An answer without what differs between any two, and without the ids that were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Heard {
    status: StatusCode,
    headers: BTreeSet<(String, Vec<u8>)>,
    body: String,
}

/// A check under way.
struct Check<'a, S> {
    app: &'a App,
    service: &'a S,
    foreigner: Principal,
    ways: Vec<(Way, Heard, Heard)>,
    by_token: Heard,
    by_token_as_foreigner: Heard,
    attempts: usize,
    leaks: Vec<Leak>,
}

impl<'a, S, B> Check<'a, S>
where
    S: Service<actix_http::Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody,
{
    /// Hears what every way in answers for what does not exist.
    async fn begin(app: &'a App, service: &'a S) -> Result<Self, ApiError> {
        let foreigner = isolation::foreigner()?;
        let nothing = Ids {
            asset: AssetId::generate(app.now()).to_string(),
            run: format!("probe-{}", BlobKey::generate()),
            token: "x".repeat(300),
            base_url: app.base_url.clone(),
        };
        let by_token = hear(service, &capability(), &nothing, None).await;
        let by_token_as_foreigner = hear(service, &capability(), &nothing, Some(&foreigner)).await;
        let mut ways = Vec::new();
        for way in all_ways() {
            let foreign = hear(service, &way, &nothing, Some(&foreigner)).await;
            let anonymous = hear(service, &way, &nothing, None).await;
            ways.push((way, foreign, anonymous));
        }
        let (attempts, leaks) = (0, Vec::new());
        Ok(Self { app, service, foreigner, ways, by_token, by_token_as_foreigner, attempts, leaks })
    }

    async fn try_asset(&mut self, view: &AssetView) -> Result<(), ApiError> {
        let url = urls::durable_url(self.app, &view.record)?;
        let token = url.rsplit('/').next().unwrap_or_default().to_owned();
        let ids = |run: &str, token: &str| Ids {
            asset: view.record.id.to_string(),
            run: run.to_owned(),
            token: token.to_owned(),
            base_url: self.app.base_url.clone(),
        };
        let run = view.references.first().map_or("", |run| run.as_str());
        let mut found = Vec::new();
        for (way, foreign, anonymous) in &self.ways {
            if run.is_empty() && way.path.contains("{runId}") {
                continue;
            }
            for (as_whom, principal, expected) in
                [("foreign", Some(&self.foreigner), foreign), ("anonymous", None, anonymous)]
            {
                found.push((
                    way.route(),
                    as_whom.to_owned(),
                    hear(self.service, way, &ids(run, &token), principal).await != *expected,
                ));
            }
        }
        let heard = hear(self.service, &capability(), &ids(run, &token), Some(&self.foreigner)).await;
        found.push((capability().route(), "foreign".into(), heard != self.by_token_as_foreigner));
        let live = self.app.live();
        let forged = isolation::forged(&live.ring, &token, &self.foreigner.tenant);
        for (what, forged) in forged.map_err(|error| AssetError::Internal(error.to_string()))? {
            let heard = hear(self.service, &capability(), &ids(run, &forged), None).await;
            found.push((capability().route(), format!("forged:{what}"), heard != self.by_token));
        }
        self.attempts += found.len();
        let leaks = found.into_iter().filter(|(.., leaks)| *leaks);
        self.leaks.extend(leaks.map(|(route, as_whom, _)| Leak {
            asset_id: view.record.id.to_string(),
            route,
            as_whom,
        }));
        // Whoever else is served by this thread has a turn between two assets.
        tokio::task::yield_now().await;
        Ok(())
    }
}

impl Way {
    fn route(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

impl Ids {
    fn fill(&self, text: &str) -> String {
        let text = text.replace("{assetId}", &self.asset).replace("{runId}", &self.run);
        let text = text.replace("{url}", &format!("{}/a/{}", self.base_url, self.token));
        text.replace("{capability}", &self.token)
    }

    fn take_out(&self, text: &str) -> String {
        let text = text.replace(&self.asset, "{assetId}").replace(&self.token, "{capability}");
        if self.run.is_empty() { text } else { text.replace(&self.run, "{runId}") }
    }
}

fn capability() -> Way {
    Way { method: Method::GET, path: "/a/{capability}".into(), body: None }
}

/// Whatever reads and has an id in its path; lists; and what takes an id in its body, as far as this version has it.
fn all_ways() -> Vec<Way> {
    let document = openapi::document();
    let paths = document["paths"].as_object().into_iter().flatten();
    let mut ways: Vec<Way> = Vec::new();
    for (path, operations) in paths {
        let is_ours = operations["get"]["security"][0].get("bearer").is_some();
        let filled = path.replace("{form}", "envelope").replace("{artifactId}", "probe");
        let ids_only = !filled.replace("{assetId}", "").replace("{runId}", "").contains('{');
        if is_ours && ids_only && !path.starts_with("/v1/audit/") {
            ways.push(Way { method: Method::GET, path: filled, body: None });
        }
    }
    let bodies = [
        ("/v1/assets/{assetId}/urls", json!({"class": "delivery", "expiresInSeconds": 1})),
        ("/v1/urls/mint", json!({"class": "delivery", "expiresInSeconds": 1, "assets": ["{assetId}"]})),
        ("/v1/urls/revoke", json!({"assetId": "{assetId}", "dryRun": true})),
        ("/v1/urls/revoke", json!({"runId": "{runId}", "dryRun": true})),
        ("/v1/urls/introspect", json!({"url": "{url}"})),
        ("/v1/runs/probe/references", json!({"assets": ["{assetId}"]})),
        ("/v1/runs/probe/references", json!({"assets": ["{url}"]})),
        ("/v1/debug-bundles/resolve", json!({"urls": ["{url}"]})),
    ];
    for (path, body) in bodies {
        let known = path.replace("/probe/", "/{runId}/");
        if document["paths"].get(known).is_some() {
            ways.push(Way { method: Method::POST, path: path.into(), body: Some(body.to_string()) });
        }
    }
    ways
}

/// Sends it through the service, as that principal or as nobody.
async fn hear<S, B>(service: &S, way: &Way, ids: &Ids, principal: Option<&Principal>) -> Heard
where
    S: Service<actix_http::Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody,
{
    let mut request = TestRequest::with_uri(&ids.fill(&way.path)).method(way.method.clone());
    if let Some(body) = &way.body {
        let body: Value = serde_json::from_str(&ids.fill(body)).unwrap_or(Value::Null);
        request = request.set_json(body);
    }
    let request = request.to_request();
    request.extensions_mut().insert(Probe(principal.cloned()));
    let (status, headers, body) = match service.call(request).await {
        Ok(answered) => {
            let (status, headers) = (answered.status(), answered.headers().clone());
            (status, headers, to_bytes(answered.into_body()).await.unwrap_or_default())
        }
        Err(error) => (error.as_response_error().status_code(), header::HeaderMap::new(), web::Bytes::new()),
    };
    // A length follows from the body, and that is compared without the ids.
    let ignored = [header::DATE, header::CONTENT_LENGTH, guard::REQUEST_ID];
    let told = headers.iter().filter(|(name, _)| !ignored.contains(name));
    Heard {
        status,
        headers: told.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect(),
        body: ids.take_out(&String::from_utf8_lossy(&body)),
    }
}
