//! The blob surface of the public conformance suite (RFC 0019), on the ordinary store of the one tenant that it is for.
//!
//! An object is an asset of no run: it has the same way in and out, the same audit and the same end as any other, and expires with
//! `retention.unreferenced`. Where it lies stands in its origin, which nothing changes later: `envelopeId` marks namespace and bucket,
//! `nodeId` is the key, `correlationId` the content type as it was sent. A namespace is a name inside the tenant, never a tenant.
//!
//! Putting a key again publishes the new asset before it ends the old one, so a reader finds one of them; of two put at once the later
//! counts. Deliberately absent: an index of keys. A look-up walks the tenant's living assets, and that tenant keeps nothing else for long.

use std::sync::Arc;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use mediakeep_keys::Class;
use mediakeep_storage::index::AssetQuery;
use mediakeep_storage::{AssetId, AssetRecord, AssetView, TenantId, Timestamp};
use ring::digest;

use crate::access::Principal;
use crate::app::App;
use crate::assets::fetch::Shut;
use crate::assets::ingest::{Ingest, Start};
use crate::assets::members::Members;
use crate::assets::urls::{self, Wish};
use crate::assets::{AssetError, fetch, library};

/// A bucket of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(String);

/// An object to be put.
#[derive(Debug)]
pub struct NewObject {
    /// Its key.
    pub key: String,
    /// Its content type, as it was sent.
    pub content_type: Option<String>,
    /// All of it.
    pub bytes: Bytes,
    /// What else is said of it.
    pub members: Members,
}

/// A link to an object that works for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presigned {
    /// The capability. Never logged.
    pub token: String,
    /// From when on it is past.
    pub expires_at: Timestamp,
}

/// Why a link leads to no object.
#[derive(Debug)]
pub enum NoObject {
    /// It is past its time.
    Expired,
    /// It is no link of this tenant's, or its object is gone.
    Unknown,
    /// Something failed.
    Failed(AssetError),
}

/// What begins the mark of every place.
const MARK: &str = "seam:blob:";

impl Place {
    /// The bucket of that name, in the namespace of that name.
    pub fn new(namespace: &str, bucket: &str) -> Self {
        // With its length before it, no name can run over into the other.
        let text = format!("{}:{namespace}{bucket}", namespace.len());
        let hash = digest::digest(&digest::SHA256, text.as_bytes());
        Self(format!("{MARK}{}", HEXLOWER.encode(&hash.as_ref()[..16])))
    }

    /// The place that an asset lies in, if it is an object at all.
    fn of(record: &AssetRecord) -> Option<Self> {
        record.origin.envelope_id.as_ref().filter(|mark| mark.starts_with(MARK)).map(|mark| Self(mark.clone()))
    }
}

/// The key of an object.
pub fn key(view: &AssetView) -> &str {
    view.record.origin.node_id.as_deref().unwrap_or_default()
}

/// The content type of an object, as it was sent; of one that came without, what its bytes are.
pub fn content_type(view: &AssetView) -> &str {
    view.record.origin.correlation_id.as_deref().unwrap_or(&view.record.mime_type)
}

/// Stores bytes that are all there as an asset of no run.
pub async fn store(
    app: &Arc<App>,
    caller: &Principal,
    bytes: Bytes,
    members: Members,
) -> Result<AssetView, AssetError> {
    let length = Some(bytes.len() as u64);
    let start = Start {
        principal: caller.clone(),
        run: None,
        from: None,
        idempotency_key: None,
        announced: length,
        at_most: length,
    };
    let mut ingest = Ingest::begin(app, start).await?;
    if let Err(refusal) = ingest.write(bytes).await {
        ingest.abandon().await;
        return Err(refusal);
    }
    Ok(ingest.finish(members).await?.view)
}

/// Puts an object where its key says, instead of what is there.
pub async fn put(
    app: &Arc<App>,
    caller: &Principal,
    place: &Place,
    object: NewObject,
) -> Result<AssetView, AssetError> {
    let NewObject { key, content_type, bytes, mut members } = object;
    let before = objects(app, &caller.tenant, place, |own| own == key).await?;
    members.origin.envelope_id = Some(place.0.clone());
    members.origin.node_id = Some(key);
    members.origin.correlation_id = content_type;
    let view = store(app, caller, bytes, members).await?;
    end(app, caller, &before).await?;
    Ok(view)
}

/// The object of that key.
pub async fn get(app: &App, tenant: &TenantId, place: &Place, key: &str) -> Result<Option<AssetView>, AssetError> {
    let found = objects(app, tenant, place, |own| own == key).await?;
    Ok(found.into_iter().max_by_key(age))
}

/// Ends the object of that key, and says whether there was one.
pub async fn delete(app: &App, caller: &Principal, place: &Place, key: &str) -> Result<bool, AssetError> {
    let found = objects(app, &caller.tenant, place, |own| own == key).await?;
    end(app, caller, &found).await?;
    Ok(!found.is_empty())
}

/// The objects whose keys begin so, in the order of their keys.
pub async fn list(app: &App, tenant: &TenantId, place: &Place, prefix: &str) -> Result<Vec<AssetView>, AssetError> {
    let mut found = objects(app, tenant, place, |own| own.starts_with(prefix)).await?;
    found.sort_by(|one, other| key(one).cmp(key(other)).then(age(other).cmp(&age(one))));
    found.dedup_by(|later, kept| key(later) == key(kept));
    Ok(found)
}

/// A link to the object of that key, made and revoked like any other delivery URL.
pub async fn presign(
    app: &App,
    caller: &Principal,
    place: &Place,
    key: &str,
    seconds: i64,
) -> Result<Option<Presigned>, AssetError> {
    let Some(view) = get(app, &caller.tenant, place, key).await? else {
        return Ok(None);
    };
    let wish = Wish::Delivery { seconds, disposition: None, label: None, max_uses: None };
    let minted = urls::mint(app, caller, &[Some(view.record.id)], wish).await?;
    let minted = minted.into_iter().next().ok_or(AssetError::NotFound)?;
    let token = minted.url.rsplit('/').next().unwrap_or_default().to_owned();
    Ok(minted.expires_at.map(|expires_at| Presigned { token, expires_at }))
}

/// The asset that now is the object to which the link was made: it leads to the key, so what was put there since is what it finds.
pub async fn open(app: &App, tenant: &TenantId, token: &str) -> Result<AssetId, NoObject> {
    let capability = app.live().open(token).map_err(|_| NoObject::Unknown)?;
    if capability.tenant != *tenant || capability.claims.class == Class::Durable {
        return Err(NoObject::Unknown);
    }
    let row = fetch::judge(app, &capability).await.map_err(|shut| match shut {
        Shut::Over(AssetError::UrlExpired) => NoObject::Expired,
        Shut::Over(AssetError::Storage(error)) => NoObject::Failed(error.into()),
        Shut::Over(_) | Shut::Refused(_) => NoObject::Unknown,
    })?;
    let record = &row.view.record;
    let (Some(place), Some(key)) = (Place::of(record), &record.origin.node_id) else {
        return Err(NoObject::Unknown);
    };
    let object = get(app, tenant, &place, key).await.map_err(NoObject::Failed)?;
    object.map(|view| view.record.id).ok_or(NoObject::Unknown)
}

/// What counts of two objects of one key: the later.
fn age(view: &AssetView) -> (Timestamp, AssetId) {
    (view.record.created_at, view.record.id)
}

/// The living assets that are objects of the place, with a key that will do.
async fn objects(
    app: &App,
    tenant: &TenantId,
    place: &Place,
    will_do: impl Fn(&str) -> bool,
) -> Result<Vec<AssetView>, AssetError> {
    let (mut found, mut after, now) = (Vec::new(), None, app.now());
    loop {
        let state = Some("live".to_owned());
        let query = AssetQuery { state, after, limit: library::MAX_PAGE, ..AssetQuery::default() };
        let (views, more) = library::page(app, tenant, query).await?;
        after = views.last().map(|view| view.record.id);
        let here = |view: &AssetView| Place::of(&view.record).as_ref() == Some(place) && will_do(key(view));
        found.extend(views.into_iter().filter(|view| here(view) && !view.floor.until.is_past(now)));
        if !more {
            return Ok(found);
        }
    }
}

async fn end(app: &App, caller: &Principal, objects: &[AssetView]) -> Result<(), AssetError> {
    for view in objects {
        match library::delete(app, caller, view.record.id).await {
            // Somebody else was faster.
            Ok(()) | Err(AssetError::NotFound | AssetError::Gone(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_places_are_one() {
        let places = [("a", "b"), ("ab", ""), ("", "ab"), ("a", "B"), ("1:a", "b"), ("", "")];
        for (place, (namespace, bucket)) in places.iter().enumerate() {
            for (namespace_2, bucket_2) in &places[place + 1..] {
                assert_ne!(Place::new(namespace, bucket), Place::new(namespace_2, bucket_2));
            }
        }
        assert_eq!(Place::new("a", "b"), Place::new("a", "b"));
    }
}
