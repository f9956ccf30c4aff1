//! The route table.

use std::future::ready;

use actix_web::dev::{AppService, HttpServiceFactory};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder};

use super::{
    artifacts, assets, audit, bundles, content, extract, isolation, manifest, meta, openapi, openwop, retention,
    revocation, runs, serve, upload, uploads, urls, usage,
};
use crate::error::ApiError;

/// Where the seams of the public conformance suite are, if they are there.
const SEAMS: &str = "/v1/host/sample";

/// An upload in parts.
const UPLOAD: &str = "/v1/uploads/{uploadId}";

/// Every route that callers from outside have.
pub fn public(config: &mut ServiceConfig) {
    config
        .app_data(extract::query_config())
        .service(
            web::scope("/a")
                .app_data(Pattern("/a/{capability}"))
                .wrap(from_fn(serve::for_every_page))
                .default_service(web::to(by_capability)),
        )
        .service(at("/v1/assets").get(assets::list).post(upload::ingest))
        .service(at("/v1/assets/{assetId}").get(assets::show).patch(assets::amend).delete(assets::delete))
        .service(at("/v1/assets/{assetId}/content").get(serve::bound))
        .service(at("/v1/assets/{assetId}/as/{form}").get(openwop::projections::show))
        .service(at("/v1/assets/{assetId}/urls").post(urls::mint))
        .service(at("/v1/assets/{assetId}/retention").get(retention::show))
        .service(at("/v1/assets/{assetId}/holds/{holdId}").put(retention::hold_asset).delete(retention::lift_asset))
        .service(at("/v1/retention/preview").get(retention::preview))
        .service(at("/v1/usage").get(usage::show))
        .service(at("/v1/urls/mint").post(urls::mint_batch))
        .service(at("/v1/urls/revoke").post(revocation::revoke))
        .service(at("/v1/urls/introspect").post(revocation::introspect))
        .service(at("/v1/runs").get(runs::list))
        .service(at("/v1/runs/{runId}").get(runs::show).put(runs::put))
        .service(at("/v1/runs/{runId}/assets").get(assets::list_of_run).post(upload::ingest_into_run))
        .service(at("/v1/runs/{runId}/references").post(runs::refer))
        .service(at("/v1/runs/{runId}/holds/{holdId}").put(retention::hold_run).delete(retention::lift_run))
        .service(at("/v1/runs/{runId}/artifacts/{artifactId}").get(artifacts::show).put(artifacts::put))
        .service(at("/v1/runs/{runId}/erase").post(retention::erase_run))
        .service(at("/v1/runs/{runId}/debug-bundle/manifest").get(manifest::show))
        .service(at("/v1/debug-bundles/scrub").post(bundles::scrub))
        .service(at("/v1/debug-bundles/check").post(bundles::check))
        .service(at("/v1/debug-bundles/resolve").post(bundles::resolve))
        .service(at("/v1/uploads").post(uploads::create).options(uploads::options))
        .service(at(UPLOAD).patch(uploads::append).delete(uploads::end).head(uploads::show).post(uploads::overridden))
        .service(at("/v1/content-parts/normalize").post(content::normalize))
        .service(at("/v1/audit/events").get(audit::events))
        .service(at("/v1/audit/checkpoint").get(audit::checkpoint))
        .service(at("/v1/audit/isolation-checks").post(isolation::check))
        .service(at("/.well-known/mediakeep-audit-keys").get(audit::keys))
        .service(at("/v1/openwop/host-fragment").get(openwop::host::fragment))
        .service(at("/v1/formats").get(openwop::formats::list))
        .service(at("/v1/formats/{aliasOrType}").get(openwop::formats::show))
        .service(below("/v1/formats/{aliasOrType:.+/.+}", "/v1/formats/{aliasOrType}").get(openwop::formats::show))
        .service(at("/v1/model-capabilities/evaluate").post(openwop::model::evaluate))
        .service(at("/v1/schemas/lint").post(openwop::model::lint))
        .service(web::scope(SEAMS).app_data(Pattern(SEAMS)).default_service(web::to(openwop::seams::answer_seam)))
        .service(at("/v1/openapi.json").get(openapi::show))
        .service(at("/.well-known/openwop").get(meta::discovery))
        .service(at("/schemas/envelopes/{kind}.schema.json").get(meta::schema))
        .service(at("/healthz").get(meta::healthz))
        .service(at("/readyz").get(meta::readyz))
        .default_service(web::to(no_such_route));
}

/// The routes of the operator's own address.
pub fn admin(config: &mut ServiceConfig) {
    config
        .service(at("/metrics").get(meta::metrics))
        .service(at("/healthz").get(meta::healthz))
        .service(at("/readyz").get(meta::readyz))
        .default_service(web::to(no_such_route));
}

/// Everything behind `/a/`: a token, and perhaps a name for people behind it. A scope is found by its prefix; a resource's pattern would
/// be a regular expression that walks along the token, which took more than a quarter of the time of a small answer.
async fn by_capability(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    if !extract::is_probe(&request) {
        extract::parts(&request).rates.client(|| extract::client_address(&request))?;
    }
    match *request.method() {
        Method::GET | Method::HEAD => serve::capability(request).await,
        Method::OPTIONS => Ok(serve::preflight().await),
        ref other => Err(no_such_method(other, "GET, HEAD, OPTIONS")),
    }
}

/// The pattern that a request was routed by, for metrics and the log: the path itself may be a capability.
#[derive(Debug, Clone, Copy)]
pub struct Pattern(pub &'static str);

/// A resource that has no method yet.
fn at(path: &'static str) -> At {
    At { resource: web::resource(path).app_data(Pattern(path)), methods: Vec::new() }
}

/// A resource that goes by another's pattern.
fn below(path: &'static str, pattern: &'static str) -> At {
    At { resource: web::resource(path).app_data(Pattern(pattern)), methods: Vec::new() }
}

/// A resource and its methods. What answers GET answers HEAD, and any other method hears in `Allow` which there are.
struct At {
    resource: Resource,
    methods: Vec<Method>,
}

impl At {
    fn get<A: FromRequest + 'static, H: Handler<A, Output: Responder + 'static>>(self, handler: H) -> Self {
        self.answer(Method::GET, handler.clone()).answer(Method::HEAD, handler)
    }

    fn post<A: FromRequest + 'static, H: Handler<A, Output: Responder + 'static>>(self, handler: H) -> Self {
        self.answer(Method::POST, handler)
    }

    fn put<A: FromRequest + 'static, H: Handler<A, Output: Responder + 'static>>(self, handler: H) -> Self {
        self.answer(Method::PUT, handler)
    }

    fn patch<A: FromRequest + 'static, H: Handler<A, Output: Responder + 'static>>(self, handler: H) -> Self {
        self.answer(Method::PATCH, handler)
    }

    fn head<A: FromRequest + 'static, H: Handler<A, Output: Responder + 'static>>(self, handler: H) -> Self {
        self.answer(Method::HEAD, handler)
    }

    fn options<A: FromRequest + 'static, H: Handler<A, Output: Responder + 'static>>(self, handler: H) -> Self {
        self.answer(Method::OPTIONS, handler)
    }

    fn delete<A: FromRequest + 'static, H: Handler<A, Output: Responder + 'static>>(self, handler: H) -> Self {
        self.answer(Method::DELETE, handler)
    }

    fn answer<A: FromRequest + 'static, H: Handler<A, Output: Responder + 'static>>(
        mut self,
        method: Method,
        handler: H,
    ) -> Self {
        self.methods.push(method.clone());
        Self { resource: self.resource.route(web::method(method).to(handler)), ..self }
    }
}

impl HttpServiceFactory for At {
    fn register(self, config: &mut AppService) {
        let allow = self.methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        let refuse =
            move |request: HttpRequest| ready(Err::<HttpResponse, _>(no_such_method(request.method(), &allow)));
        self.resource.default_service(web::to(refuse)).register(config);
    }
}

async fn no_such_route() -> Result<&'static str, ApiError> {
    Err(ApiError::not_found())
}

fn no_such_method(method: &Method, allow: &str) -> ApiError {
    let message = format!("this resource does not know {}", extract::printable(method.as_str()));
    let refusal = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
    refusal.header("allow", allow.to_owned())
}
