//! The bytes themselves; the members stand in the query.

use super::Incoming;
use super::stream::Body;
use crate::assets::ingest::{Ingest, Ingested};
use crate::assets::members::RawMembers;
use crate::error::ApiError;
use crate::http::extract;

const MEMBERS: [&str; 11] = [
    "mimeType",
    "name",
    "alt",
    "title",
    "nodeId",
    "envelopeId",
    "correlationId",
    "source",
    "sha256",
    "retainUntil",
    "delivery",
];

pub(super) async fn take(mut incoming: Incoming<'_>, mut body: Body) -> Result<Ingested, ApiError> {
    let mut raw = RawMembers::default();
    for (name, value) in MEMBERS.iter().zip(extract::query(incoming.request, &MEMBERS)?) {
        if let (Some(slot), Some(value)) = (raw.slot(name), value) {
            *slot = Some(value);
        }
    }
    raw.mime_type.get_or_insert_with(|| incoming.content_type.clone());
    // The members are all there: what is wrong with them is said before a byte is taken.
    let members = Incoming::check(raw)?;
    incoming.start.announced = incoming.start.at_most;
    let read = async |ingest: &mut Ingest| {
        ingest.keepable(&members)?;
        while let Some(chunk) = body.next().await? {
            ingest.write(chunk).await?;
        }
        Ok(members)
    };
    incoming.store(read).await
}
