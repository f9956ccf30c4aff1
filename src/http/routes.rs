//! The route table.

use actix_web::http::StatusCode;
use actix_web::web::{self, ServiceConfig};
use actix_web::{Resource, Route};

use super::{assets, extract, manifest, meta, openapi, runs, serve, upload, urls};
use crate::error::ApiError;

/// Every route that callers from outside have.
pub fn public(config: &mut ServiceConfig) {
    config
        .app_data(extract::query_config())
        .service(
            resource("/a/{capability}", "GET, HEAD, OPTIONS")
                .route(web::get().to(serve::capability))
                .route(web::head().to(serve::capability))
                .route(options().to(serve::preflight)),
        )
        .service(
            resource("/a/{capability}/{filename:.*}", "GET, HEAD, OPTIONS")
                .route(web::get().to(serve::capability))
                .route(web::head().to(serve::capability))
                .route(options().to(serve::preflight)),
        )
        .service(
            resource("/v1/assets", "POST, GET")
                .route(web::post().to(upload::ingest))
                .route(web::get().to(assets::list)),
        )
        .service(
            resource("/v1/assets/{assetId}", "GET, PATCH, DELETE")
                .route(web::get().to(assets::show))
                .route(web::patch().to(assets::amend))
                .route(web::delete().to(assets::delete)),
        )
        .service(
            resource("/v1/assets/{assetId}/content", "GET, HEAD")
                .route(web::get().to(serve::bound))
                .route(web::head().to(serve::bound)),
        )
        .service(resource("/v1/assets/{assetId}/urls", "POST").route(web::post().to(urls::mint)))
        .service(resource("/v1/urls/mint", "POST").route(web::post().to(urls::mint_batch)))
        .service(resource("/v1/runs", "GET").route(web::get().to(runs::list)))
        .service(
            resource("/v1/runs/{runId}", "PUT, GET").route(web::put().to(runs::put)).route(web::get().to(runs::show)),
        )
        .service(
            resource("/v1/runs/{runId}/assets", "POST, GET")
                .route(web::post().to(upload::ingest_into_run))
                .route(web::get().to(assets::list_of_run)),
        )
        .service(resource("/v1/runs/{runId}/references", "POST").route(web::post().to(runs::refer)))
        .service(resource("/v1/runs/{runId}/debug-bundle/manifest", "GET").route(web::get().to(manifest::show)))
        .service(resource("/v1/openapi.json", "GET").route(web::get().to(openapi::show)))
        .service(resource("/.well-known/openwop", "GET").route(web::get().to(meta::discovery)))
        .service(resource("/schemas/envelopes/{kind}.schema.json", "GET").route(web::get().to(meta::schema)))
        .service(resource("/healthz", "GET").route(web::get().to(meta::healthz)))
        .service(resource("/readyz", "GET").route(web::get().to(meta::readyz)))
        .default_service(web::to(no_such_route));
}

/// The routes of the operator's own address.
pub fn admin(config: &mut ServiceConfig) {
    config
        .service(resource("/metrics", "GET").route(web::get().to(meta::metrics)))
        .service(resource("/healthz", "GET").route(web::get().to(meta::healthz)))
        .service(resource("/readyz", "GET").route(web::get().to(meta::readyz)))
        .default_service(web::to(no_such_route));
}

/// A resource that knows these methods, and says so to whoever comes with another (RFC 9110, section 15.5.6).
fn resource(path: &str, allow: &'static str) -> Resource {
    web::resource(path).default_service(web::to(move || no_such_method(allow)))
}

fn options() -> Route {
    web::method(actix_web::http::Method::OPTIONS)
}

async fn no_such_route() -> Result<&'static str, ApiError> {
    Err(ApiError::not_found())
}

async fn no_such_method(allow: &'static str) -> Result<&'static str, ApiError> {
    let message = format!("this resource knows {allow}");
    let refusal = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message);
    Err(refusal.header("allow", allow.to_owned()))
}
