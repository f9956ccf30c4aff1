//! The one way out for bytes: who may have them is decided here, before anything is read.
//!
//! A capability is opened in this order: is the token authentic, is its tenant served, is the credential beside it not a stranger's,
//! does the asset stand in the index, is the token of the current generation and not revoked, is it within its time, does the asset
//! live. Whoever asks hears one 404 for everything up to and including revocation, and learns more only with an authentic token.

use std::sync::Arc;

use bytes::Bytes;
use mediakeep_keys::{Class, LifeError};
use mediakeep_storage::blob::Blob;
use mediakeep_storage::record::Taken;
use mediakeep_storage::retention::Until;
use mediakeep_storage::{AssetId, AssetRecord, AssetView, StorageError, TenantId, Timestamp};

use super::cache::CachedRow;
use super::capability::Capability;
use super::library::put_end_record;
use super::{AssetError, Gone};
use crate::access::Principal;
use crate::app::App;
use crate::media::{Facts, admit};

/// A capability that opened.
#[derive(Debug)]
pub struct Opened {
    /// The asset.
    pub row: Arc<CachedRow>,
    /// What the token says.
    pub capability: Arc<Capability>,
}

/// One that did not.
#[derive(Debug)]
pub struct Closed {
    /// What the caller hears.
    pub error: AssetError,
    /// Of an authentic token: what it says, and why it opens nothing.
    pub denied: Option<(Arc<Capability>, &'static str)>,
}

/// What the bytes' responses say, as header values, made once per row.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// `Content-Type`.
    pub content_type: Bytes,
    /// `ETag`, strong; it differs between tenants, lest it tell one what another has.
    pub etag: Bytes,
    /// `Last-Modified`.
    pub last_modified: Bytes,
    /// `Repr-Digest`.
    pub repr_digest: Bytes,
    /// `Content-Security-Policy`.
    pub security_policy: Bytes,
    /// `Content-Disposition` when nobody asks for another.
    pub disposition: Bytes,
    /// The same, as a download.
    pub attachment: Bytes,
    /// Whether a store may show the bytes, which says their type and nothing else of ours.
    pub is_safe_bare: bool,
}

/// Opens a capability.
pub async fn open_capability(app: &App, token: &str, caller: Option<&Principal>) -> Result<Opened, Closed> {
    let capability = app.live().open(token).map_err(|reason| {
        app.metrics.capability_refused(reason);
        Closed { error: AssetError::NotFound, denied: None }
    })?;
    match admitted(app, &capability, caller).await {
        Ok(row) => Ok(Opened { row, capability }),
        Err(Shut::Refused(reason)) => {
            app.metrics.capability_refused(reason);
            Err(Closed { error: AssetError::NotFound, denied: Some((capability, reason)) })
        }
        Err(Shut::Over(error)) => {
            let reason = match &error {
                AssetError::UrlExpired => Some("url_expired"),
                AssetError::UrlUsed => Some("url_used"),
                AssetError::Gone(gone) => Some(gone.reason()),
                _ => None,
            };
            Err(Closed { error, denied: reason.map(|reason| (capability, reason)) })
        }
    }
}

/// Why an authentic token opens nothing.
#[derive(Debug)]
pub enum Shut {
    /// For a reason that only the metrics and the audit log hear: the caller is told that there is nothing.
    Refused(&'static str),
    /// For one that the caller hears too.
    Over(AssetError),
}

/// The row behind an authentic token, if whoever shows it may have it now.
async fn admitted(app: &App, token: &Capability, caller: Option<&Principal>) -> Result<Arc<CachedRow>, Shut> {
    let tenant = &token.tenant;
    if app.live().access.is_suspended(tenant) {
        return Err(Shut::Refused("suspended"));
    }
    if caller.is_some_and(|caller| caller.tenant != *tenant) {
        return Err(Shut::Refused("foreign"));
    }
    let row = judge(app, token).await?;
    Ok(living(app, row).await?)
}

/// Whether an authentic token is of the current generation, not revoked, within its time and not used up. Whether its asset lives is
/// asked by whoever opens it.
pub async fn judge(app: &App, token: &Capability) -> Result<Arc<CachedRow>, Shut> {
    let Capability { tenant, asset, claims } = token;
    let Some(row) = row(app, tenant, *asset).await? else {
        return Err(Shut::Refused("unknown"));
    };
    // A build that is made to be found out opens old links.
    if claims.generation != row.view.generation() && !cfg!(feature = "leaky") {
        return Err(Shut::Refused("revoked"));
    }
    let standing = standing(app, tenant, &claims.class).await?;
    if standing == Standing::Revoked {
        return Err(Shut::Refused("revoked"));
    }
    match claims.check_life(app.now().as_second(), app.settings.capabilities.clock_skew.as_secs()) {
        Ok(()) if standing == Standing::Used => Err(AssetError::UrlUsed.into()),
        Ok(()) => Ok(row),
        Err(LifeError::Expired { .. }) => Err(AssetError::UrlExpired.into()),
        Err(LifeError::NotYetValid { .. }) => Err(Shut::Refused("not_yet_valid")),
    }
}

/// What the index says of a URL by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Good,
    Used,
    Revoked,
}

async fn standing(app: &App, tenant: &TenantId, class: &Class) -> Result<Standing, AssetError> {
    let Class::Delivery { url_id, counted, .. } = class else {
        return Ok(Standing::Good);
    };
    if *counted && let Some(url) = app.index.url(tenant, url_id).await? {
        return Ok(match url.record.uses_left {
            _ if url.revoked => Standing::Revoked,
            Some(0) => Standing::Used,
            _ => Standing::Good,
        });
    }
    Ok(match app.index.is_revoked(tenant, url_id).await? {
        true => Standing::Revoked,
        // In an index made anew it has no row: nobody knows how many uses were left.
        false if *counted => Standing::Used,
        false => Standing::Good,
    })
}

impl From<AssetError> for Shut {
    fn from(error: AssetError) -> Self {
        Self::Over(error)
    }
}

/// Takes one of a counted URL's uses, durably, before the first byte goes out.
pub async fn take_use(app: &App, capability: &Capability) -> Result<(), AssetError> {
    let Class::Delivery { url_id, counted: true, .. } = &capability.claims.class else {
        return Ok(());
    };
    match app.index.take_use(&capability.tenant, url_id).await? {
        Taken::Yours => Ok(()),
        Taken::Exhausted => Err(AssetError::UrlUsed),
        // Revoked since it was looked at.
        Taken::Unknown => {
            app.metrics.capability_refused("revoked");
            Err(AssetError::NotFound)
        }
    }
}

/// Opens the bound URL of an asset for a caller of its tenant.
pub async fn open_bound(app: &App, tenant: &TenantId, asset: AssetId) -> Result<Arc<CachedRow>, AssetError> {
    let row = row(app, tenant, asset).await?.ok_or(AssetError::NotFound)?;
    living(app, row).await
}

/// The asset's row, from the cache if nothing has changed since it was read.
pub async fn row(app: &App, tenant: &TenantId, asset: AssetId) -> Result<Option<Arc<CachedRow>>, AssetError> {
    let read = async || {
        let view = app.index.view(tenant, asset, &app.terms(tenant)).await?;
        Ok(view.map(|view| CachedRow { delivery: Delivery::of(&view), view }))
    };
    app.rows.get_or_read(tenant, asset, read).await
}

/// The row, if its asset lives.
async fn living(app: &App, row: Arc<CachedRow>) -> Result<Arc<CachedRow>, AssetError> {
    if !end_if_due(app, &row.view).await? {
        return Ok(row);
    }
    let record = &row.view.record;
    self::row(app, &record.tenant, record.id).await?.ok_or(AssetError::NotFound)
}

/// Refuses an asset that is over. One whose recorded floor is past is looked at anew, and ends now if nothing keeps it; says whether
/// it had to be.
pub async fn end_if_due(app: &App, view: &AssetView) -> Result<bool, AssetError> {
    if let Some(gone) = Gone::of(&view.record) {
        return Err(gone.into());
    }
    if !view.floor.until.is_past(app.now()) {
        return Ok(false);
    }
    let (tenant, asset) = (&view.record.tenant, view.record.id);
    let record = app.index.expire_if_due(tenant, asset, &app.terms(tenant), "request", app.now()).await?;
    app.rows.changed(asset);
    if let Some(record) = record.as_ref().filter(|record| !record.is_live()) {
        put_end_record(app, record).await;
    }
    match record.as_ref().map(Gone::of) {
        None => Err(AssetError::NotFound),
        Some(Some(gone)) => Err(gone.into()),
        Some(None) => Ok(true),
    }
}

/// How many whole seconds of life are left; `None` is without end.
pub fn remaining_life(view: &AssetView, now: Timestamp) -> Option<i64> {
    match view.floor.until {
        Until::Endless => None,
        Until::At(at) => Some(at.duration_since(now).as_secs().max(0)),
    }
}

impl Delivery {
    fn of(view: &AssetView) -> Self {
        use crate::http::conditional::http_date;
        use crate::http::disposition::{Disposition, content_disposition};
        use data_encoding::{BASE64, HEXLOWER};
        use ring::digest;

        let record = &view.record;
        let facts: Facts = serde_json::from_value(record.facts.clone()).unwrap_or_default();
        let name = record.labels.name.as_deref();
        let natural = match admit::disposition(&record.mime_type, &facts) {
            admit::Disposition::Inline => Disposition::Inline,
            admit::Disposition::Attachment => Disposition::Attachment,
        };
        let tag = format!("{}\n{}\n{}", record.tenant, record.id, record.sha256);
        let tag = digest::digest(&digest::SHA256, tag.as_bytes());
        let sandbox = if admit::sandboxed(&record.mime_type, &facts) { "; sandbox" } else { "" };
        Self {
            content_type: Bytes::from(admit::content_type(&record.mime_type, &facts)),
            etag: Bytes::from(format!("\"{}\"", HEXLOWER.encode(&tag.as_ref()[..16]))),
            last_modified: Bytes::from(http_date(record.created_at)),
            repr_digest: Bytes::from(format!("sha-256=:{}:", BASE64.encode(&record.sha256.0))),
            security_policy: Bytes::from(format!(
                "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'{sandbox}"
            )),
            disposition: Bytes::from(content_disposition(natural, name)),
            attachment: Bytes::from(content_disposition(Disposition::Attachment, name)),
            is_safe_bare: admit::is_safe_bare(&record.mime_type, &facts),
        }
    }
}

/// Opens the bytes of an asset whose row was read a moment ago.
pub async fn open_bytes(app: &App, record: &AssetRecord) -> Result<Blob, AssetError> {
    there(app, record, app.blobs.open_blob(&record.tenant, record.blob, record.bytes).await).await
}

/// All the bytes of an asset that is small enough to be sent inline.
pub async fn whole(app: &App, record: &AssetRecord) -> Result<Bytes, AssetError> {
    let blob = open_bytes(app, record).await?;
    there(app, record, blob.read(0..record.bytes).await).await
}

/// What came of reading them: an object store says only then that they are not there.
pub async fn there<T>(app: &App, record: &AssetRecord, read: Result<T, StorageError>) -> Result<T, AssetError> {
    match read {
        Err(StorageError::NoSuchBlob) => Err(without_bytes(app, record).await),
        read => Ok(read?),
    }
}

/// Why there are no bytes: the asset may have ended since its row was read. One that still lives has lost them.
async fn without_bytes(app: &App, record: &AssetRecord) -> AssetError {
    app.rows.changed(record.id);
    match row(app, &record.tenant, record.id).await {
        Err(error) => error,
        Ok(None) => AssetError::NotFound,
        Ok(Some(row)) => match Gone::of(&row.view.record) {
            Some(gone) => gone.into(),
            None => {
                let reason = format!("the asset {} lives, and its blob {} is not there", record.id, record.blob);
                AssetError::Storage(StorageError::Unavailable { store: "store", reason })
            }
        },
    }
}
