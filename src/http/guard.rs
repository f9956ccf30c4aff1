//! What stands around every handler: a request id, a count and a line in the log, an answer when a handler panics, and the rest of a
//! refused body read away so that the refusal arrives.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::Error;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode, header};
use actix_web::middleware::Next;
use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use tracing::{debug, error, info};

use super::extract::{self, parts};
use super::routes::Pattern;
use super::uploads;
use crate::app::App;
use crate::error::ApiError;

/// Of a refused body so much is read away.
const DRAIN_BYTES: usize = 8 << 20;

/// And for so long.
const DRAIN_TIME: Duration = Duration::from_secs(1);

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

    // Nobody may hold the request while it is routed; so what ends without a response has no route.
    let outcome = AssertUnwindSafe(next.call(request)).catch_unwind().await;
    let mut response = match outcome {
        Ok(Ok(response)) => response.map_into_boxed_body(),
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
    Ok(response)
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
