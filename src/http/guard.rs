//! What stands around every handler: a place among those that are worked on, a request id, a count and a line in the log, an answer when
//! a handler panics, and the rest of a refused body read away so that the refusal arrives.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode, header};
use actix_web::middleware::Next;
use actix_web::{Error, ResponseError};
use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use tracing::{debug, error, info};

use super::extract::{self, parts};
use super::routes::Pattern;
use super::uploads;
use crate::access::client;
use crate::app::App;
use crate::app::gate::{Lane, Place};
use crate::error::ApiError;

/// Of a refused body so much is read away.
const DRAIN_BYTES: usize = 8 << 20;

/// And for so long.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// Of an answer that is in memory so much is handed on at once: the rest is held, and its place with it, until that has gone.
const PIECE: usize = 64 << 10;

/// The header that names a request.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Wraps a request.
pub async fn guard(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let began = Instant::now();
    let app = parts(request.request());
    let id = app.request_ids.next();
    let method = method_label(request.method());
    let body = has_body(&request).then(|| SharedBody::take_from(&mut request));
    let lane = lane(&request, body.is_some());
    let place = lane.and_then(|lane| app.gate.enter(lane, client(&request)));

    // Nobody may hold the request while it is routed; so what ends without a response has no route.
    let outcome = match lane {
        Some(_) if place.is_none() => Ok(Ok(refused(request))),
        _ => answered(request, next).await,
    };
    let mut response = match outcome {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(unrouted(&app, &id, method, refusal(&error), began)),
        Err(_) => {
            error!(request.id = %id, "a handler panicked");
            return Err(unrouted(&app, &id, method, internal(), began));
        }
    };
    let status = response.status();
    if let Some(body) = body
        && !status.is_success()
        && !body.drain().await
    {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    if status == StatusCode::NOT_FOUND {
        extract::asked_in_vain(response.request());
    }
    // actix would match the path anew to say by which pattern it was routed.
    let route: &str = response.request().app_data().map_or("none", |Pattern(pattern)| pattern);
    uploads::say_version(route, response.headers_mut());
    let took = began.elapsed();
    if !extract::is_probe(response.request()) {
        app.metrics.request(route, method, status.as_u16(), took);
        log(&id, method, route, status, took);
    }
    Ok(match place {
        Some(place) => response.map_body(|_, body| BoxBody::new(Placed { body, rest: Bytes::new(), _place: place })),
        None => response,
    })
}

/// In which lane it is; `None` for who asks whether the process is well, and for our own checks.
fn lane(request: &ServiceRequest, has_body: bool) -> Option<Lane> {
    let path = request.path();
    if matches!(path, "/healthz" | "/readyz" | "/metrics") || extract::is_probe(request.request()) {
        return None;
    }
    Some(match has_body {
        false => Lane::Read,
        true if brings_bytes(path) => Lane::Upload,
        true => Lane::Body,
    })
}

/// Whose place it is.
fn client(request: &ServiceRequest) -> u128 {
    extract::client_address(request.request()).map_or(0, client::network)
}

/// Whether what is sent there is kept.
fn brings_bytes(path: &str) -> bool {
    path == "/v1/assets"
        || path == "/v1/debug-bundles/scrub"
        || path.starts_with("/v1/uploads")
        || (path.starts_with("/v1/runs/") && path.ends_with("/assets"))
}

/// What the handler says, or that it panicked.
async fn answered(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> std::thread::Result<Result<ServiceResponse<BoxBody>, Error>> {
    let answered = AssertUnwindSafe(next.call(request)).catch_unwind().await?;
    Ok(answered.map(ServiceResponse::map_into_boxed_body))
}

/// Nothing was looked at, not even who calls.
fn refused(request: ServiceRequest) -> ServiceResponse<BoxBody> {
    request.into_response(ApiError::overloaded().error_response())
}

/// One line a request, by its route and never by its path: a path may be a capability. Successful reads are for whoever turns the log
/// up.
fn log(id: &str, method: &str, route: &str, status: StatusCode, took: Duration) {
    let (status, micros) = (status.as_u16(), u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    if status < 400 && matches!(method, "GET" | "HEAD" | "OPTIONS") {
        debug!(request.id = id, method, route, status, micros, "{method} {route} {status}");
    } else {
        info!(request.id = id, method, route, status, micros, "{method} {route} {status}");
    }
}

/// An answer to a request that came to no route: counted, logged and named like any other.
fn unrouted(app: &App, id: &str, method: &'static str, error: ApiError, began: Instant) -> Error {
    let (status, took) = (error.status(), began.elapsed());
    app.metrics.request("none", method, status.as_u16(), took);
    log(id, method, "none", status, took);
    error.header("x-request-id", id.to_owned()).into()
}

/// What actix itself refuses gets our shape too.
fn refusal(error: &Error) -> ApiError {
    if let Some(ours) = error.as_error::<ApiError>() {
        return ours.clone();
    }
    let status = error.as_response_error().status_code();
    match status {
        StatusCode::NOT_FOUND => ApiError::not_found(),
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(status, "payload_too_large", "the body is too large"),
        status if status.is_client_error() => ApiError::new(status, "validation_error", "the request cannot be read"),
        _ => internal(),
    }
}

fn internal() -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "something went wrong here")
}

fn has_body(request: &ServiceRequest) -> bool {
    let headers = request.headers();
    headers.contains_key(header::TRANSFER_ENCODING)
        || headers.get(header::CONTENT_LENGTH).is_some_and(|length| length.as_bytes() != b"0")
}

/// A bounded set of labels, whatever a client calls its method.
fn method_label(method: &Method) -> &'static str {
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS]
        .iter()
        .zip(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
        .find_map(|(known, label)| (known == method).then_some(label))
        .unwrap_or("other")
}

/// An answer on its way, and its place, which is free when the last of it is handed on.
struct Placed {
    body: BoxBody,
    rest: Bytes,
    _place: Place,
}

impl MessageBody for Placed {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_next(context)) {
                Some(Ok(bytes)) => self.rest = bytes,
                end => return Poll::Ready(end),
            }
        }
        // A chunk of a blob goes as it is.
        let piece = if self.rest.len() <= 2 * PIECE { self.rest.len() } else { PIECE };
        Poll::Ready(Some(Ok(self.rest.split_to(piece))))
    }
}

/// A body that the handler reads and that we can still read when it has stopped.
#[derive(Clone)]
struct SharedBody(Rc<RefCell<Payload>>);

impl SharedBody {
    fn take_from(request: &mut ServiceRequest) -> Self {
        let body = Self(Rc::new(RefCell::new(std::mem::replace(request.parts_mut().1, Payload::None))));
        request.set_payload(Payload::Stream { payload: Box::pin(body.clone()) });
        body
    }

    /// Reads the rest away, within bounds; says whether that was all.
    async fn drain(mut self) -> bool {
        let reading = async {
            let mut left = DRAIN_BYTES;
            while let Some(chunk) = self.next().await {
                let Ok(chunk) = chunk else {
                    return false;
                };
                match left.checked_sub(chunk.len()) {
                    Some(rest) => left = rest,
                    None => return false,
                }
            }
            true
        };
        tokio::time::timeout(DRAIN_TIME, reading).await.unwrap_or(false)
    }
}

impl Stream for SharedBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.borrow_mut().poll_next_unpin(context)
    }
}
