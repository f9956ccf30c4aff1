//! The store in our place, where the operator wants it: a capability that has opened leads on to the blob itself, by a URL that the store
//! honours for a minute at most and never longer than the capability.
//!
//! The store sends the type, the disposition and the caching that its URL is signed with, and none of our other headers. So only what a
//! browser cannot be hurt by goes there ([`crate::media::admit::is_safe_bare`]), and only for a request that the store answers as we
//! would: not HEAD, not several ranges, not a condition that speaks of our validators. A URL may be used again until it is over,
//! so a link whose uses are counted never leads to one. Whatever stays is answered from here, as without the setting.

use std::time::Duration;

use actix_web::http::{Method, header};
use actix_web::{HttpRequest, HttpResponse};
use mediakeep_keys::{Class, Disposition};
use mediakeep_storage::Timestamp;
use mediakeep_storage::blob::Shown;

use super::conditional::{self, Outcome};
use super::range::{self, Plan};
use super::serve::{self, Grant};
use crate::app::App;
use crate::assets::fetch;
use crate::audit;
use crate::error::ApiError;

/// The longest that a store's URL is honoured, in seconds: enough to begin with, too short to hand on.
const LONGEST: i64 = 60;

/// The way to the store; `None`: the answer is ours to give.
pub(super) async fn to_store(
    app: &App,
    request: &HttpRequest,
    grant: &Grant<'_>,
) -> Result<Option<HttpResponse>, ApiError> {
    if !app.settings.delivery.redirect || !may_leave(request, grant)? {
        return Ok(None);
    }
    let Some(lifetime) = lifetime(grant, app.now()) else {
        return Ok(None);
    };
    let (record, delivery) = (&grant.row.view.record, &grant.row.delivery);
    let words = [&delivery.content_type, &delivery.disposition].map(|bytes| std::str::from_utf8(bytes));
    let ([Ok(content_type), Ok(disposition)], Ok(cache_control)) = (words, grant.cache_control.to_str()) else {
        return Ok(None);
    };
    let shown = Shown { content_type, disposition, cache_control };
    let Some(url) = app.blobs.signed_url(&record.tenant, record.blob, shown, lifetime).await? else {
        return Ok(None);
    };
    audit::read(app, record, grant.reader).await?;
    let answer = HttpResponse::Found()
        .insert_header((header::LOCATION, url.as_str()))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CONTENT_SECURITY_POLICY, serve::text(&delivery.security_policy)))
        .finish();
    Ok(Some(answer))
}

/// Whether the store can answer this request as it is meant.
fn may_leave(request: &HttpRequest, grant: &Grant<'_>) -> Result<bool, ApiError> {
    let counted = grant.capability.is_none_or(|opened| match opened.claims.class {
        Class::Durable => false,
        Class::Delivery { counted, .. } => counted,
    });
    let is_download = grant.wish == Some(Disposition::Attachment);
    if *request.method() != Method::GET || counted || is_download || !grant.row.delivery.is_safe_bare {
        return Ok(false);
    }
    let (conditions, validators) = (serve::conditions(request), serve::validators(grant.row)?);
    let demands = !conditions.if_match.is_empty() || conditions.if_unmodified_since.is_some();
    Ok(match conditional::evaluate(&conditions, &validators, conditional::Method::Retrieve) {
        Outcome::NotModified => false,
        // The client may have its tag from the store, which is the one to say whether it is right.
        Outcome::PreconditionFailed => true,
        Outcome::Proceed if demands => false,
        Outcome::Proceed => {
            let wanted = serve::wanted_range(request, &validators);
            let by_our_tag = wanted.is_some() && request.headers().contains_key(header::IF_RANGE);
            let plan = range::plan(wanted, grant.row.view.record.bytes);
            !by_our_tag && matches!(plan, Plan::Whole | Plan::Single(_))
        }
    })
}

/// How long the store's URL may be honoured: what is left of the capability, of the asset, and of a minute. Nothing under a second.
fn lifetime(grant: &Grant<'_>, now: Timestamp) -> Option<Duration> {
    let of_url = match grant.capability?.claims.class {
        Class::Durable => LONGEST,
        Class::Delivery { expires_at, .. } => expires_at.saturating_sub(now.as_second()),
    };
    let of_asset = fetch::remaining_life(&grant.row.view, now).unwrap_or(LONGEST);
    let seconds = u64::try_from(LONGEST.min(of_url).min(of_asset)).ok()?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}
