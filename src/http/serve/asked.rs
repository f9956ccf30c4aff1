//! What a request says besides whose bytes it wants: which of them, and under which conditions.

use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderValue};

use crate::assets::cache::CachedRow;
use crate::error::ApiError;
use crate::http::conditional::{Conditions, EntityTag, Validators, if_range};

/// The one range of the request that counts: HEAD has none, two lines are none, and a stale `If-Range` sends everything.
pub(in crate::http) fn wanted_range<'a>(request: &'a HttpRequest, validators: &Validators) -> Option<&'a str> {
    let mut lines = request.headers().get_all(header::RANGE);
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return None;
    };
    let mut proofs = request.headers().get_all(header::IF_RANGE);
    let fresh = match (proofs.next(), proofs.next()) {
        (None, _) => true,
        (Some(proof), None) => if_range(proof.as_bytes(), validators),
        (Some(_), Some(_)) => false,
    };
    if fresh { line.to_str().ok() } else { None }
}

pub(in crate::http) fn validators(row: &CachedRow) -> Result<Validators, ApiError> {
    let etag = EntityTag::parse(&row.delivery.etag).ok_or_else(ApiError::not_found)?;
    Ok(Validators { etag, last_modified: Some(row.view.record.created_at) })
}

/// A request's conditions, as they were sent.
pub(in crate::http) fn conditions(request: &HttpRequest) -> Conditions<'_> {
    let headers = request.headers();
    let only = |name| {
        let mut lines = headers.get_all(name);
        lines.next().filter(|_| lines.next().is_none()).map(HeaderValue::as_bytes)
    };
    Conditions {
        if_match: headers.get_all(header::IF_MATCH).map(HeaderValue::as_bytes).collect(),
        if_none_match: headers.get_all(header::IF_NONE_MATCH).map(HeaderValue::as_bytes).collect(),
        if_modified_since: only(header::IF_MODIFIED_SINCE),
        if_unmodified_since: only(header::IF_UNMODIFIED_SINCE),
    }
}
