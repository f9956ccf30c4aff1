//! The isolation check, sent through the service itself: the same routes, guards and handlers as requests from outside.
//!
//! A request of the check carries who it comes from beside its bytes ([`Probe`]), where nothing from the network comes. Which routes there
//! are is read off the OpenAPI document, so a new one that reads is tried without being named here.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::{Method, StatusCode, header};
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service};
use actix_web::{HttpMessage, HttpRequest, HttpResponse, web};
use mediakeep_storage::{AssetId, AssetView, BlobKey};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::body::{answer, is_absent, json};
use super::extract::{AuditRead, Caller, Probe, parts};
use super::{guard, openapi, routes};
use crate::access::Principal;
use crate::app::App;
use crate::assets::{AssetError, urls};
use crate::audit::isolation::{self, DEFAULT_SAMPLE, Leak, MAX_SAMPLE, Report};
use crate::audit::signed::signed;
use crate::error::ApiError;
use ways::{Ids, Way};

mod ways;

/// How much is tried.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IsolationRequest {
    /// How many assets; 100 if nobody says.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1000, default = 100)]
    sample: Option<usize>,
}

/// Tries the caller's assets against every way in, as a foreign tenant, as nobody, and with forged tokens.
#[utoipa::path(post, operation_id = "check_isolation", path = "/v1/audit/isolation-checks", tag = "audit", request_body = Option<IsolationRequest>,
    responses((status = 200, body = openapi::SignedReport), (status = 409, body = openapi::ErrorBody, description = "`check_running`: one at a time")), security(("bearer" = ["audit:read"])))]
pub async fn check(
    caller: Caller<AuditRead>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let (app, principal) = (parts(&request), &caller.principal);
    let wish: IsolationRequest = match is_absent(&request) {
        true => IsolationRequest::default(),
        false => json(&request, payload, principal).await?,
    };
    let most = wish.sample.unwrap_or(DEFAULT_SAMPLE);
    if !(1..=MAX_SAMPLE).contains(&most) {
        return Err(ApiError::validation(format!("sample: 1 to {MAX_SAMPLE}")));
    }
    let running = || ApiError::new(StatusCode::CONFLICT, "check_running", "a check of this tenant is running");
    let _turn = app.checks.begin(&principal.tenant).ok_or_else(running)?;
    // Another process that shares the index may be at it.
    let lease = isolation::Lease::take(&app, &principal.tenant).await?.ok_or_else(running)?;
    let report = report(&app, principal, most).await;
    lease.end().await;
    let report = signed(&app.live().ring, &report?).map_err(|error| AssetError::Internal(error.to_string()))?;
    Ok(answer(StatusCode::OK, &report))
}

async fn report(app: &Arc<App>, principal: &Principal, most: usize) -> Result<Report, ApiError> {
    let service = init_service(
        actix_web::App::new()
            .app_data(web::Data::from(Arc::clone(app)))
            .wrap(from_fn(guard::guard))
            .configure(routes::public),
    )
    .await;
    let mut check = Check::begin(app, &service).await?;
    let sample = isolation::sample(app, &principal.tenant, most).await?;
    for view in &sample {
        check.try_asset(view).await?;
    }
    let (attempts, mut leaks) = (check.attempts, check.leaks);
    leaks.sort();
    let report = Report { checked: sample.len(), attempts, leaks, checked_at: app.now() };
    isolation::record(app, principal, &report).await?;
    Ok(report)
}

/// An answer without what differs between any two.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Heard {
    status: StatusCode,
    headers: BTreeSet<(String, Vec<u8>)>,
    body: web::Bytes,
}

/// A way in, and what it answers for what does not exist.
#[derive(Debug)]
struct Expected {
    way: Way,
    foreign: Heard,
    anonymous: Heard,
}

/// A check under way.
struct Check<'a, S> {
    app: &'a App,
    service: &'a S,
    foreigner: Principal,
    ways: Rc<[Expected]>,
    attempts: usize,
    leaks: Vec<Leak>,
}

/// Who sends an attempt, as the report says it.
struct Sender<'p> {
    as_whom: String,
    principal: Option<&'p Principal>,
}

impl<'a, S, B> Check<'a, S>
where
    S: Service<actix_http::Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody + 'static,
{
    /// Hears what every way in answers for what does not exist.
    async fn begin(app: &'a App, service: &'a S) -> Result<Self, ApiError> {
        let foreigner = isolation::foreigner()?;
        let nothing = Ids {
            asset: AssetId::generate(app.now()).to_string(),
            run: format!("probe-{}", BlobKey::generate()),
            artifact: format!("probe-{}", BlobKey::generate()),
            token: "x".repeat(300),
            base_url: app.base_url.clone(),
            is_kept: true,
        };
        let mut ways = Vec::new();
        for way in ways::all() {
            let foreign = hear(service, &way, &nothing, Some(&foreigner)).await?;
            let anonymous = hear(service, &way, &nothing, None).await?;
            ways.push(Expected { way, foreign, anonymous });
        }
        Ok(Self { app, service, foreigner, ways: ways.into(), attempts: 0, leaks: Vec::new() })
    }

    async fn try_asset(&mut self, view: &AssetView) -> Result<(), ApiError> {
        let url = urls::durable_url(self.app, view)?;
        // If an artifact names the asset, its run is the one that is tried.
        let named = self.app.index.artifact_naming(&view.record.tenant, view.record.id).await?;
        let (run, artifact) = match named {
            Some((run, artifact)) => (run.to_string(), artifact.to_string()),
            None => (view.references.first().map(ToString::to_string).unwrap_or_default(), "probe".to_owned()),
        };
        let own = Ids {
            asset: view.record.id.to_string(),
            run,
            artifact,
            token: url.rsplit('/').next().unwrap_or_default().to_owned(),
            base_url: self.app.base_url.clone(),
            is_kept: isolation::outlives_the_check(view, self.app.now()),
        };
        let (ways, foreigner) = (Rc::clone(&self.ways), self.foreigner.clone());
        let foreign = Sender { as_whom: "foreign".into(), principal: Some(&foreigner) };
        let anonymous = Sender { as_whom: "anonymous".into(), principal: None };
        for Expected { way, foreign: to_foreigner, anonymous: to_nobody } in
            ways.iter().filter(|it| it.way.is_for(&own))
        {
            self.attempt(way, &own, &foreign, to_foreigner).await?;
            // Whoever has the token needs nothing else: that is no leak.
            if !way.is_by_token() {
                self.attempt(way, &own, &anonymous, to_nobody).await?;
            }
        }
        let forged = isolation::forged(&self.app.live().ring, &own.token, &foreigner.tenant);
        let forged = forged.map_err(|error| AssetError::Internal(error.to_string()))?;
        for Expected { way, anonymous: to_nobody, .. } in ways.iter().filter(|it| it.way.is_by_token()) {
            for (what, token) in &forged {
                let sender = Sender { as_whom: format!("forged:{what}"), principal: None };
                self.attempt(way, &Ids { token: token.clone(), ..own.clone() }, &sender, to_nobody).await?;
            }
        }
        for stored in isolation::stored(self.app, view, &foreigner.tenant).await? {
            self.attempts += 1;
            if let Err(leak) = stored {
                self.leaks.push(leak);
            }
        }
        // Whoever else is served by this thread has a turn between two assets.
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn attempt(&mut self, way: &Way, ids: &Ids, sender: &Sender<'_>, expected: &Heard) -> Result<(), ApiError> {
        self.attempts += 1;
        if hear(self.service, way, ids, sender.principal).await? != *expected {
            let (asset_id, as_whom) = (ids.asset.clone(), sender.as_whom.clone());
            self.leaks.push(Leak { asset_id, route: way.route(), as_whom });
        }
        Ok(())
    }
}

/// Sends it through the service, as that principal or as nobody. A service that cannot answer now shows nothing, so there is no report.
async fn hear<S, B>(service: &S, way: &Way, ids: &Ids, principal: Option<&Principal>) -> Result<Heard, ApiError>
where
    S: Service<actix_http::Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody + 'static,
{
    let mut request = TestRequest::with_uri(&ids.fill(&way.path)).method(way.method.clone());
    if let Some(body) = &way.body {
        let body: Value = serde_json::from_str(&ids.fill(body)).unwrap_or(Value::Null);
        request = request.set_json(body);
    }
    let request = request.to_request();
    request.extensions_mut().insert(Probe(principal.cloned()));
    let response = match service.call(request).await {
        Ok(answered) => answered.into_parts().1.map_into_boxed_body(),
        Err(error) => error.error_response(),
    };
    let (status, headers) = (response.status(), response.headers().clone());
    if status.is_server_error() {
        let message = "a request of the check could not be answered";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", message).retry_after(2));
    }
    let ignored = [header::DATE, guard::REQUEST_ID];
    let told = headers.iter().filter(|(name, _)| !ignored.contains(name));
    let headers = told.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    // What was opened is a leak, whatever the bytes are: they need not be read.
    let opened = status.is_success() && way.method == Method::GET && !way.is_list();
    let body = if opened { web::Bytes::new() } else { to_bytes(response.into_body()).await.unwrap_or_default() };
    Ok(Heard { status, headers, body })
}
