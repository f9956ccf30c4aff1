//! Inline JSON: its bytes are decoded as they come, however long the string that holds them.

use bytes::BytesMut;

use super::inline::{InlineError, InlineReader, Limits, Payload};
use super::stream::Body;
use super::{Incoming, elsewhere};
use crate::assets::ingest::{Ingest, Ingested};
use crate::assets::members::Members;
use crate::error::ApiError;
use crate::http::extract::other_tenant;

/// Strings other than the payload, and all that is not the payload together.
const LIMITS: Limits = Limits { text_bytes: 16 << 10, frame_bytes: 64 << 10 };

pub(super) async fn take(mut incoming: Incoming<'_>, mut body: Body) -> Result<Ingested, ApiError> {
    no_members_in_query(&incoming)?;
    let most = incoming.app.settings.limits.max_json_bytes.0;
    if incoming.start.at_most.is_some_and(|length| length > most) {
        return Err(ApiError::too_large(most));
    }
    // Four characters of base64 are three bytes.
    incoming.start.at_most = incoming.start.at_most.map(|length| length / 4 * 3 + 3);
    incoming.store(async |ingest| read(&incoming, &mut body, most, ingest).await).await
}

async fn read(incoming: &Incoming<'_>, body: &mut Body, most: u64, ingest: &mut Ingest) -> Result<Members, ApiError> {
    let mut reader = InlineReader::new(incoming.start.principal.tenant.as_str(), LIMITS);
    let (mut read, mut sink) = (0u64, BytesMut::new());
    while let Some(chunk) = body.next().await? {
        read += chunk.len() as u64;
        if read > most {
            return Err(ApiError::too_large(most));
        }
        reader.push(&chunk, &mut sink).map_err(|error| refusal(incoming, error))?;
        if !sink.is_empty() {
            ingest.write(sink.split().freeze()).await?;
        }
    }
    let inline = reader.finish().map_err(|error| refusal(incoming, error))?;
    let mut raw = inline.members;
    match (inline.payload, &raw.url) {
        (Payload::Missing, Some(url)) => {
            let found = elsewhere::take(incoming, url, ingest).await?;
            raw.mime_type = raw.mime_type.or(found);
        }
        (Payload::Missing, None) => return Err(ApiError::validation("base64: is needed")),
        _ => {}
    }
    if raw.mime_type.is_none() {
        raw.mime_type = inline.data_url_type;
    }
    Incoming::check(raw)
}

/// An inline body says everything itself: a member in the query would be overlooked.
fn no_members_in_query(incoming: &Incoming<'_>) -> Result<(), ApiError> {
    crate::http::extract::query(incoming.request, &[]).map(drop)
}

fn refusal(incoming: &Incoming<'_>, error: InlineError) -> ApiError {
    match error {
        InlineError::ForeignTenant => other_tenant(incoming.request, &incoming.start.principal),
        InlineError::InvalidBase64(bad) => {
            ApiError::validation(format!("base64: character {} does not belong there", bad.offset))
                .reason("invalid_base64")
                .with("offset", bad.offset)
        }
        other => ApiError::validation(other.to_string()),
    }
}
