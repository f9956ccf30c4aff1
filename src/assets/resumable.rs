//! Uploads in parts: begun, gone on with wherever they broke off, and made an asset at the end.
//!
//! What it promises:
//!
//! - Bytes that an offset was told for are kept, until they are an asset's or the upload ends: neither a broken connection nor a crash
//!   takes them back. What came before a connection broke is kept too, unless it was sent with a digest that only the whole can show.
//! - One writes at a time, over all replicas. A writer that died keeps others out for a minute at most.
//! - The last byte makes the asset, through the one way in ([`super::ingest::Ingest`]): whoever uploads in parts gets the same sniffing, digest, quota,
//!   recovery record, audit row and answers as everybody else. Publication and end of the upload are one transition, so no crash and no
//!   retry makes two assets of one upload. Until it has happened, whoever asks for the complete upload has it happen.
//! - What is announced is reserved of the tenant's quota until the asset takes its place, or the upload ends.
//! - An upload that nobody goes on with ends, and a sweep takes its bytes; what was made of a finished one stays.
//!
//! Each part lies in a blob of its own under the tenant's prefix, named by a row before its bytes are written; they are read once at the
//! end, because a hash cannot be taken up where another process left it. So the end of a large upload takes as long as reading it.
//!
//! Deliberately absent: appending to an object in a store (few can), bytes that are visible before the end, any second pipeline,
//! and a hand-over between two writers that both think they are the one: the second waits or hears 423.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;
use mediakeep_storage::record::UploadIntent;
use mediakeep_storage::resumable::{Joining, KeptFor, Lease, Leased, Opened, Purpose, Resumable, ResumableState};
use mediakeep_storage::retention::after;
use mediakeep_storage::{AssetId, BlobKey, StorageError, TenantId, Timestamp, UploadId};
use tokio::task::JoinHandle;
use tracing::warn;

use super::AssetError;
use crate::access::Principal;
use crate::app::App;

mod clearing;
mod joining;
mod said;
mod unheard;
mod writer;

pub use clearing::sweep;
pub use said::{Said, Wish, must_read};
pub use unheard::Unheard;
pub use writer::Writer;

/// So many uploads in parts a tenant may have in progress: each is a row and a reservation.
pub const MOST: u64 = 1_000;

/// So many pieces one upload may be joined of.
pub const MOST_PIECES: usize = 1_000;

/// A lease that is not renewed lapses after this time.
const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// So often it is renewed.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// Why an upload in parts does not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Somebody else writes.
    #[error("another request writes this upload")]
    Locked,
    /// It goes on somewhere else.
    #[error("the upload goes on at {offset}")]
    Offset {
        /// There.
        offset: u64,
    },
    /// The digest that came with the bytes is not theirs.
    #[error("the checksum is not that of the bytes")]
    Checksum,
    /// It cannot have the length that was said.
    #[error("another length")]
    Length,
    /// It is joined of others, and takes no bytes.
    #[error("joined of others")]
    Joined,
    /// Of several uploads these are not pieces.
    #[error("no pieces at {positions:?}")]
    NotAPiece {
        /// Where.
        positions: Vec<usize>,
    },
    /// Of several pieces these are not finished.
    #[error("unfinished at {positions:?}")]
    Unfinished {
        /// Where.
        positions: Vec<usize>,
    },
}

/// Begins an upload.
pub async fn create(app: &App, principal: &Principal, wish: Wish) -> Result<Resumable, AssetError> {
    let (tenant, now) = (&principal.tenant, app.now());
    if wish.purpose != Purpose::Piece {
        wish.said.check(app, tenant, now).await?;
    }
    let length = match &wish.purpose {
        Purpose::Joined(pieces) => Some(length_of(app, tenant, pieces).await?),
        _ => wish.length,
    };
    let limit = app.settings.limits.max_upload_bytes.0;
    if length.is_some_and(|length| length > limit) {
        return Err(AssetError::TooLarge { limit });
    }
    if length == Some(0) && wish.purpose != Purpose::Piece {
        return Err(AssetError::Empty);
    }
    let least = app.settings.store.min_free.0;
    app.room.promise(length.unwrap_or(0), app.blobs.free_space(), least).ok_or_else(full)?;
    let KeptFor { expires_at, look_at } = kept(app, now);
    let upload = Resumable {
        id: UploadId::generate(),
        length,
        offset: 0,
        purpose: wish.purpose,
        said: wish.said.to_json(),
        created_at: now,
        expires_at,
        look_at,
        lease: None,
        state: ResumableState::Open,
    };
    // The pieces have their bytes reserved, until they are the asset's.
    let bytes = if upload.pieces().is_empty() { length.unwrap_or(0) } else { 0 };
    match app.index.begin_resumable(tenant, upload.clone(), bytes, MOST, app.quota(tenant)).await? {
        Opened::Done => Ok(upload),
        Opened::TooMany => Err(AssetError::Busy),
        Opened::OverQuota => {
            app.metrics.over_quota();
            Err(AssetError::OverQuota)
        }
    }
}

/// How many bytes the pieces have together, if each is one, and whole.
async fn length_of(app: &App, tenant: &TenantId, pieces: &[UploadId]) -> Result<u64, AssetError> {
    let (mut unknown, mut others, mut unfinished, mut length) = (Vec::new(), Vec::new(), Vec::new(), 0_u64);
    for (position, id) in pieces.iter().enumerate() {
        match find(app, tenant, *id).await? {
            None => unknown.push(position),
            Some(piece) if piece.purpose != Purpose::Piece => others.push(position),
            Some(piece) if !piece.is_complete() => unfinished.push(position),
            Some(piece) => length = length.saturating_add(piece.offset),
        }
    }
    if !unknown.is_empty() {
        return Err(AssetError::Unknown { positions: unknown });
    }
    if !others.is_empty() {
        return Err(Refusal::NotAPiece { positions: others }.into());
    }
    if !unfinished.is_empty() {
        return Err(Refusal::Unfinished { positions: unfinished }.into());
    }
    Ok(length)
}

/// The upload, as long as it has not expired.
pub async fn find(app: &App, tenant: &TenantId, id: UploadId) -> Result<Option<Resumable>, AssetError> {
    let found = app.index.resumable(tenant, id).await?;
    Ok(found.filter(|upload| upload.expires_at > app.now()))
}

/// The upload, and the right to write it.
#[derive(Debug)]
pub struct Held {
    app: Arc<App>,
    tenant: TenantId,
    /// As it is.
    pub upload: Resumable,
    lease: Option<Live>,
}

/// A lease that lives: renewed until it is dropped.
#[derive(Debug)]
struct Live {
    joining: Joining,
    /// The blob that is being written.
    writing: Arc<Mutex<Option<BlobKey>>>,
    heartbeat: JoinHandle<()>,
}

impl Held {
    /// Takes the lease.
    pub async fn take(app: &Arc<App>, tenant: &TenantId, id: UploadId) -> Result<Self, AssetError> {
        // One that has expired is not there, also before a sweep has seen it.
        find(app, tenant, id).await?.ok_or(AssetError::NotFound)?;
        let now = app.now();
        let lease = Lease { holder: BlobKey::generate().to_bytes(), until: after(now, LEASE) };
        let leased = app.index.lease_resumable(tenant, id, lease, now);
        match leased.await? {
            Leased::Yours(upload) => {
                let joining = Joining { upload: id, holder: lease.holder };
                let live = Live::new(app.clone(), tenant.clone(), joining);
                Ok(Self { app: app.clone(), tenant: tenant.clone(), upload: *upload, lease: Some(live) })
            }
            Leased::Taken => Err(Refusal::Locked.into()),
            Leased::Unknown => Err(AssetError::NotFound),
        }
    }

    /// Whether its last byte is there, and nothing was made of it yet.
    pub fn is_to_be_joined(&self) -> bool {
        self.upload.is_complete() && self.upload.purpose != Purpose::Piece
    }

    /// Makes the asset, in a task of its own: whoever asked may go away.
    pub async fn join(self, principal: &Principal) -> Result<AssetId, AssetError> {
        let principal = principal.clone();
        let task = tokio::spawn(async move { joining::join(self, principal).await });
        task.await.map_err(|error| AssetError::Internal(format!("joining stopped: {error}")))?
    }

    /// Ends the upload; what was made of it stays.
    pub async fn end(mut self) -> Result<(), AssetError> {
        let joining = self.joining()?;
        if !self.app.index.end_resumable(&self.tenant, joining, self.app.now()).await? {
            return Err(Refusal::Locked.into());
        }
        self.lease = None;
        clearing::clear(&self.app, &self.tenant, self.upload.id).await;
        Ok(())
    }

    /// Gives the lease back before anything else is asked.
    pub async fn release(mut self) {
        if let Some(live) = self.lease.take() {
            live.release(&self.app, &self.tenant).await;
        }
    }

    fn joining(&self) -> Result<Joining, AssetError> {
        let live = self.lease.as_ref().ok_or_else(|| AssetError::Internal("the lease is gone".to_owned()))?;
        Ok(live.joining.clone())
    }

    /// Says which blob is being written, so that it is kept alive too.
    fn is_writing(&self, blob: Option<BlobKey>) {
        if let Some(live) = &self.lease {
            *live.writing.lock().unwrap_or_else(PoisonError::into_inner) = blob;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let (Some(live), Ok(runtime)) = (self.lease.take(), tokio::runtime::Handle::try_current()) {
            let (app, tenant) = (self.app.clone(), self.tenant.clone());
            runtime.spawn(async move { live.release(&app, &tenant).await });
        }
    }
}

impl Live {
    fn new(app: Arc<App>, tenant: TenantId, joining: Joining) -> Self {
        let writing = Arc::new(Mutex::new(None));
        let heartbeat = tokio::spawn(beat(app, tenant, joining.clone(), writing.clone()));
        Self { joining, writing, heartbeat }
    }

    async fn release(mut self, app: &App, tenant: &TenantId) {
        // A beat that is under way would take the lease again.
        self.heartbeat.abort();
        let _ = (&mut self.heartbeat).await;
        let Joining { upload, holder } = self.joining.clone();
        if let Err(error) = app.index.release_resumable(tenant, upload, holder).await {
            warn!(error = %error, "the lease of upload {upload} was not given back; it lapses by itself");
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.heartbeat.abort();
    }
}

async fn beat(app: Arc<App>, tenant: TenantId, joining: Joining, writing: Arc<Mutex<Option<BlobKey>>>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let now = app.now();
        let lease = Lease { holder: joining.holder, until: after(now, LEASE) };
        let _ = app.index.lease_resumable(&tenant, joining.upload, lease, now).await;
        let blob = *writing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(blob) = blob {
            let _ = app.index.begin_upload(&tenant, UploadIntent { blob, alive_at: now, asset: None }).await;
        }
    }
}

/// How long an upload is kept whose last byte came at `now`.
fn kept(app: &App, now: Timestamp) -> KeptFor {
    let expires_at = after(now, app.settings.uploads.expire.0);
    KeptFor { expires_at, look_at: expires_at.max(after(now, app.settings.retention.orphan_grace.0)) }
}

fn full() -> AssetError {
    AssetError::Storage(StorageError::Full { store: "store" })
}
