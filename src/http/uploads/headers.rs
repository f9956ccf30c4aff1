//! What the headers of the protocol say.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap};
use mediakeep_storage::resumable::Purpose;

use super::{OCTETS, VERSION, concat};
use crate::app::App;
use crate::assets::resumable::{Said, Wish, must_read};
use crate::error::ApiError;
use crate::http::extract;
use crate::http::upload::idempotency_key;

/// What the headers of a POST wish for.
pub(super) fn wish(app: &App, headers: &HeaderMap) -> Result<Wish, ApiError> {
    let metadata = text(headers, "upload-metadata")?;
    must_read(metadata.as_deref().unwrap_or_default())?;
    let concat = text(headers, "upload-concat")?;
    let purpose = concat::purpose(app, concat.as_deref())?;
    let length = number(headers, "upload-length")?;
    let deferred = match text(headers, "upload-defer-length")?.as_deref() {
        None => false,
        Some("1") => true,
        Some(_) => return Err(ApiError::validation("Upload-Defer-Length: 1, or not there")),
    };
    let said_once = match purpose {
        Purpose::Joined(_) => length.is_none() && !deferred,
        _ => length.is_some() != deferred,
    };
    if !said_once {
        let message =
            "Upload-Length or Upload-Defer-Length: one of them, and none for an upload that is joined of others";
        return Err(ApiError::validation(message));
    }
    Ok(Wish { length, purpose, said: Said { metadata, concat, idempotency_key: idempotency_key(headers)? } })
}

pub(super) fn right_version(request: &HttpRequest) -> Result<(), ApiError> {
    let mut said = request.headers().get_all("tus-resumable").peekable();
    if said.peek().is_some() && said.all(|version| version.as_bytes() == VERSION.as_bytes()) {
        return Ok(());
    }
    let message = "Tus-Resumable: 1.0.0 is the version that is spoken here, and each request has to say so";
    Err(ApiError::new(StatusCode::PRECONDITION_FAILED, "version_conflict", message)
        .header("tus-version", VERSION.to_owned()))
}

pub(super) fn must_be_octets(request: &HttpRequest) -> Result<(), ApiError> {
    let declared = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if declared.is_some_and(|declared| declared.trim().eq_ignore_ascii_case(OCTETS)) {
        return Ok(());
    }
    let message = "the bytes of an upload come as application/offset+octet-stream";
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
        .with("declared", declared.map(extract::printable))
        .with("detected", serde_json::Value::Null))
}

/// A header that stands there at most once.
pub(super) fn text(headers: &HeaderMap, name: &'static str) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(name);
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(_) => Err(ApiError::validation(format!("{name}: not ASCII"))),
        },
        (Some(_), Some(_)) => Err(ApiError::validation(format!("{name}: given twice"))),
    }
}

/// A number of bytes; none that is meant is longer than 19 digits.
pub(super) fn number(headers: &HeaderMap, name: &'static str) -> Result<Option<u64>, ApiError> {
    let Some(text) = text(headers, name)? else {
        return Ok(None);
    };
    let digits = (1..=19).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.map(Some).ok_or_else(|| ApiError::validation(format!("{name}: a number of bytes")))
}
