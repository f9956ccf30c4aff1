//! JSON bodies: bounded in bytes and depth, read once, every refusal with its place and without its content.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, http::header, web};
use bytes::BytesMut;
use futures_util::StreamExt;
use serde::de::{DeserializeOwned, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::error::Category;
use serde_json::{Map, Value};

use super::extract::{other_tenant, parts, printable};
use crate::access::Principal;
use crate::error::ApiError;

/// The longest JSON body that carries no media.
pub const MAX_JSON: usize = 1 << 20;

/// The deepest JSON.
const MAX_DEPTH: usize = 64;

/// Reads a JSON body into `T`, which refuses members that it does not know. A body that names another tenant is refused first.
pub async fn json<T: DeserializeOwned>(
    request: &HttpRequest,
    payload: web::Payload,
    caller: &Principal,
) -> Result<T, ApiError> {
    json_up_to(request, payload, caller, MAX_JSON).await
}

/// The same of a body that may carry media, and is longer: it is held while it is read, and takes of the memory that there is for such
/// bodies ([`crate::app::held`]) until the request is over.
pub async fn json_up_to<T: DeserializeOwned>(
    request: &HttpRequest,
    payload: web::Payload,
    caller: &Principal,
    most: usize,
) -> Result<T, ApiError> {
    let bytes = read(request, payload, most).await?;
    let Object { members, tenants, twice } = serde_json::from_slice(&bytes).map_err(|error| unread(&error))?;
    if tenants.iter().any(|named| !named.is_null() && named.as_str() != Some(caller.tenant.as_str())) {
        return Err(other_tenant(request, caller));
    }
    if let Some(name) = twice {
        return Err(ApiError::validation(format!("member {} appears twice", printable(&name))));
    }
    typed(Value::Object(members))
}

/// Reads a JSON object of at most so many bytes as it is, whatever tenants and members it names.
pub async fn open_object(
    request: &HttpRequest,
    payload: web::Payload,
    most: usize,
) -> Result<Map<String, Value>, ApiError> {
    let bytes = read(request, payload, most).await?;
    serde_json::from_slice(&bytes).map_err(|error| unread(&error))
}

/// What a JSON value says; a member that is not what it should be is named.
pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(value).map_err(|error| refusal(&error))
}

/// The bytes of a JSON body that is not too long, not too deep, and not wrapped.
async fn read(request: &HttpRequest, payload: web::Payload, most: usize) -> Result<BytesMut, ApiError> {
    must_be_json(request)?;
    uncoded(request)?;
    let bytes = collect(request, payload, most).await?;
    check_depth(&bytes)?;
    Ok(bytes)
}

fn unread(error: &serde_json::Error) -> ApiError {
    match error.classify() {
        Category::Data => ApiError::validation("the body is not a JSON object"),
        _ => ApiError::validation(format!("the body is not JSON: line {}, column {}", error.line(), error.column())),
    }
}

/// Whether there is no body at all.
pub fn is_absent(request: &HttpRequest) -> bool {
    let headers = request.headers();
    !headers.contains_key(header::TRANSFER_ENCODING)
        && headers.get(header::CONTENT_LENGTH).is_none_or(|length| length.as_bytes() == b"0")
}

/// Refuses a body that does not say that it is JSON.
pub fn must_be_json(request: &HttpRequest) -> Result<(), ApiError> {
    let declared = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if is_json(declared) {
        return Ok(());
    }
    let refused = ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "the body has to be application/json",
    );
    Err(refused.with("declared", declared.map(printable)).with("detected", Value::Null))
}

/// Reads one of an enumeration's words. By itself serde also takes `{"open": null}` for `"open"`.
pub fn word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(String::deserialize(deserializer)?.into_deserializer())
}

/// The same, or `null`.
pub fn word_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let word = Option::<String>::deserialize(deserializer)?;
    word.map(|word| T::deserialize(word.into_deserializer())).transpose()
}

/// Refuses a body in a content coding: none is undone here, and nobody means a compressed stream when saying `image/png`.
pub fn uncoded(request: &HttpRequest) -> Result<(), ApiError> {
    let mut codings = request.headers().get_all(header::CONTENT_ENCODING);
    if codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let refused = ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "the body has to come without a Content-Encoding",
    );
    Err(refused.header("accept-encoding", "identity".to_owned()))
}

/// An answer in JSON that nobody keeps.
pub fn answer(status: StatusCode, body: &impl Serialize) -> HttpResponse {
    HttpResponse::build(status).insert_header((header::CACHE_CONTROL, "no-store")).json(body)
}

/// An object's members, all that it says of the tenant, and the name of a member that stands there twice.
struct Object {
    members: Map<String, Value>,
    tenants: Vec<Value>,
    twice: Option<String>,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Object, A::Error> {
        let mut object = Object { members: Map::new(), tenants: Vec::new(), twice: None };
        let mut met = HashSet::new();
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if !met.insert(name.clone()) {
                object.twice = Some(name.clone());
            }
            if matches!(&*name, "tenant" | "tenantId") {
                object.tenants.push(value);
            } else {
                object.members.insert(name, value);
            }
        }
        Ok(object)
    }
}

fn is_json(declared: Option<&str>) -> bool {
    let declared = declared.and_then(|declared| declared.parse::<mime::Mime>().ok());
    declared.is_some_and(|mime| mime.essence_str() == "application/json")
}

/// What is as long as any JSON body may be is held without asking; what is longer, only while there is memory for it.
async fn collect(request: &HttpRequest, mut payload: web::Payload, most: usize) -> Result<BytesMut, ApiError> {
    let (mut bytes, mut hold) = (BytesMut::new(), parts(request).held.begin());
    while let Some(chunk) = tokio::time::timeout(PATIENCE, payload.next()).await.map_err(|_| stopped())? {
        let chunk = chunk.map_err(|_| cut_off())?;
        let length = bytes.len() + chunk.len();
        if length > most {
            return Err(ApiError::too_large(most as u64));
        }
        if !hold.grow(length.saturating_sub(MAX_JSON.max(bytes.len())) as u64) {
            return Err(ApiError::busy());
        }
        bytes.extend_from_slice(&chunk);
    }
    request.extensions_mut().insert(hold);
    Ok(bytes)
}

/// A sender that says nothing for so long has gone, whatever its connection looks like: half of what an idempotency claim lives on.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// 400: the connection stands, and nothing comes.
pub fn stopped() -> ApiError {
    ApiError::validation("the body stopped coming")
}

/// 400: the connection ended before the body did.
pub fn cut_off() -> ApiError {
    ApiError::validation("the body ended too soon")
}

/// Refuses what is nested too deep, before anything recurses into it.
fn check_depth(json: &[u8]) -> Result<(), ApiError> {
    let (mut depth, mut in_text, mut escaped) = (0usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(ApiError::validation(format!("the body is nested deeper than {MAX_DEPTH}")));
        }
    }
    Ok(())
}

/// Says where and what was expected; never what was there.
fn refusal(error: &serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let message = error.inner().to_string();
    if let Some(name) = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) {
        return ApiError::validation(format!("unknown member {}", printable(name)));
    }
    if let Some(name) = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next()) {
        return ApiError::validation(format!("{}: is needed", printable(name)));
    }
    let place = error.path().to_string();
    let place = if place == "." { "the body".to_owned() } else { place.chars().take(128).collect() };
    match message.rsplit_once("expected ") {
        Some((_, expected)) => ApiError::validation(format!("{place}: expected {expected}")),
        None => ApiError::validation(format!("{place}: not what it should be")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_texts() {
        let deep = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
        assert!(check_depth(&deep(64)).is_ok());
        assert!(check_depth(&deep(65)).is_err());
        let text = format!(r#"["{}\"{}"]"#, "[".repeat(100), "{".repeat(100));
        assert!(check_depth(text.as_bytes()).is_ok());
    }
}
