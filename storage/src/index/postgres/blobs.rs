//! Blobs: who holds them, when they go, and how they are taken out of reach before their bytes are touched.
//!
//! Whoever changes a blob's row has locked it before, and changes the blob's entry in the table by time with it: an entry is never
//! locked, so nobody can hold one and wait for the other.

use jiff::Timestamp;

pub(super) use self::ends::{doom, doom_one, forget, hurry, let_go, release, touch};
use super::failed::Worked;
use super::rows::{asset_id, blob_key, counted, digest, number, tenant, up};
use super::sql::{self, Sql};
use super::tx::Tx;
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, Digest, TenantId};
use crate::index::BlobRow;
use crate::index::codec::corrupt;
use crate::record::{AssetRecord, Doomed, UploadIntent};

mod ends;

/// A blob, from the announcement of its upload until its bytes are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    tenant: TenantId,
    key: BlobKey,
    state: State,
    bytes: Option<u64>,
    sha256: Option<Digest>,
    /// The asset that the upload was to become, as long as it has not.
    asset: Option<AssetId>,
}

/// Where a blob is in its life; times as in columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Announced { alive_at: i64 },
    Held { holders: u64 },
    Condemned { remove_at: i64 },
    Discarded { remove_at: i64 },
    Doomed,
}

pub(super) type BlobColumns = (String, Vec<u8>, i16, Option<i64>, i64, Option<i64>, Option<Vec<u8>>, Option<Vec<u8>>);

impl Blob {
    fn read(row: BlobColumns) -> Result<Self, StorageError> {
        let (owner, key, state, since, holders, bytes, sha256, asset) = row;
        let state = match (state, since) {
            (0, Some(alive_at)) => State::Announced { alive_at },
            (1, _) => State::Held { holders: counted(holders) },
            (2, Some(remove_at)) => State::Condemned { remove_at },
            (3, Some(remove_at)) => State::Discarded { remove_at },
            (4, _) => State::Doomed,
            other => return Err(corrupt(format!("blob: no state is {other:?}"))),
        };
        Ok(Self {
            tenant: tenant(&owner)?,
            key: blob_key(&key)?,
            state,
            bytes: bytes.map(counted),
            sha256: sha256.map(|raw| digest(&raw)).transpose()?,
            asset: asset.map(|raw| asset_id(&raw)).transpose()?,
        })
    }

    fn announced(&self) -> bool {
        matches!(self.state, State::Announced { .. })
    }

    fn is_condemned(&self) -> bool {
        matches!(self.state, State::Condemned { .. })
    }

    fn columns(&self) -> (i16, Option<i64>, i64) {
        match self.state {
            State::Announced { alive_at } => (0, Some(alive_at), 0),
            State::Held { holders } => (1, None, number(holders)),
            State::Condemned { remove_at } => (2, Some(remove_at), 0),
            State::Discarded { remove_at } => (3, Some(remove_at), 0),
            State::Doomed => (4, None, 0),
        }
    }

    fn name(&self) -> (TenantId, BlobKey) {
        (self.tenant.clone(), self.key)
    }

    fn doomed(self) -> Doomed {
        Doomed { tenant: self.tenant, blob: self.key, asset: self.asset }
    }
}

/// Announces the upload, or moves the time at which it last showed life.
pub(super) async fn begin(tx: &mut Tx, owner: &TenantId, intent: &UploadIntent) -> Worked<()> {
    let alive_at = up(intent.alive_at);
    let asset = intent.asset.map(AssetId::to_bytes);
    let query = sql::BLOB_NEW.run().bind(owner.as_str()).bind(intent.blob.to_bytes()).bind(alive_at);
    let made = query.bind(asset.as_ref().map(|id| id.as_slice())).execute(tx.on()).await?;
    if made.rows_affected() == 1 {
        return Ok(());
    }
    match lock(tx, owner, intent.blob).await? {
        Some(before @ Blob { state: State::Announced { alive_at: earlier }, .. }) => {
            let state = State::Announced { alive_at: alive_at.max(earlier) };
            let after = Blob { state, asset: before.asset.or(intent.asset), ..before.clone() };
            put(tx, vec![(before, after)]).await
        }
        // Published, or timed out and doomed: the announcement is over, and `publish` says so.
        _ => Ok(()),
    }
}

/// Whether the upload is announced, and stays so until the transition is over; `None` if the blob has no row.
pub(super) async fn is_announced(tx: &mut Tx, owner: &TenantId, key: BlobKey) -> Worked<Option<bool>> {
    Ok(lock(tx, owner, key).await?.map(|blob| blob.announced()))
}

/// Withdraws the announcement.
pub(super) async fn end(tx: &mut Tx, owner: &TenantId, key: BlobKey) -> Worked<()> {
    match lock(tx, owner, key).await? {
        Some(blob) if blob.announced() => drop_row(tx, &blob).await,
        _ => Ok(()),
    }
}

/// Where the bytes of a new asset are, now that it holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holding {
    /// In the blob that was uploaded for it.
    Own,
    /// In a blob that was there already.
    Shared(BlobKey),
    /// Nowhere: the upload's announcement is over.
    Lost,
}

/// Ends the upload of the record's blob: the asset holds it, or an equal one that is there, and then this one is discarded.
pub(super) async fn hold(tx: &mut Tx, record: &AssetRecord, discard_at: Timestamp) -> Worked<Holding> {
    let owner = &record.tenant;
    let Some(own) = lock(tx, owner, record.blob).await?.filter(Blob::announced) else {
        return Ok(Holding::Lost);
    };
    let query = sql::DIGEST_NEW.run().bind(owner.as_str()).bind(record.sha256.0).bind(record.blob.to_bytes());
    let first = query.execute(tx.on()).await?.rows_affected() == 1;
    let taken = Blob { bytes: Some(record.bytes), asset: None, ..own.clone() };
    if first {
        let held = Blob { state: State::Held { holders: 1 }, sha256: Some(record.sha256), ..taken };
        put(tx, vec![(own, held)]).await?;
        return Ok(Holding::Own);
    }
    let query = sql::DIGEST_BLOB.rows().bind(owner.as_str()).bind(record.sha256.0);
    let (shared,): (Vec<u8>,) = query.fetch_one(tx.on()).await?;
    let shared = existing(tx, owner, blob_key(&shared)?).await?;
    let holders = match shared.state {
        State::Held { holders } => holders + 1,
        State::Condemned { .. } => 1,
        other => return Err(corrupt(format!("blob: {} is to be shared and is {other:?}", shared.key)).into()),
    };
    let key = shared.key;
    let held = Blob { state: State::Held { holders }, ..shared.clone() };
    let discarded = Blob { state: State::Discarded { remove_at: up(discard_at) }, sha256: None, ..taken };
    put(tx, vec![(shared, held), (own, discarded)]).await?;
    Ok(Holding::Shared(key))
}

/// An upload in parts holds the announced blob as one of them; says whether it was announced.
pub(super) async fn hold_part(tx: &mut Tx, owner: &TenantId, key: BlobKey, bytes: u64) -> Worked<bool> {
    let Some(announced) = lock(tx, owner, key).await?.filter(Blob::announced) else {
        return Ok(false);
    };
    // Without a digest: nothing shares it.
    let held = Blob { state: State::Held { holders: 1 }, bytes: Some(bytes), asset: None, ..announced.clone() };
    put(tx, vec![(announced, held)]).await?;
    Ok(true)
}

/// A live asset holds its blob, which is there.
pub(super) async fn restore_live(tx: &mut Tx, record: &AssetRecord) -> Worked<()> {
    let (owner, key) = (&record.tenant, record.blob);
    sql::BLOB_HELD.run().bind(owner.as_str()).bind(key.to_bytes()).execute(tx.on()).await?;
    let before = existing(tx, owner, key).await?;
    let holders = match before.state {
        State::Held { holders } => holders + 1,
        _ => 1,
    };
    let (bytes, sha256) = (Some(record.bytes), Some(record.sha256));
    let held = Blob { state: State::Held { holders }, bytes, sha256, asset: None, ..before.clone() };
    put(tx, vec![(before, held)]).await?;
    let query = sql::DIGEST_PUT.run().bind(owner.as_str()).bind(record.sha256.0).bind(key.to_bytes());
    query.execute(tx.on()).await?;
    Ok(())
}

/// What was in a blob of which only a dead asset is known goes at its time, unless another asset holds it.
pub(super) async fn restore_dead(tx: &mut Tx, record: &AssetRecord, remove_at: Timestamp) -> Worked<()> {
    let (owner, key, remove_at) = (&record.tenant, record.blob, up(remove_at));
    let sha256 = (record.sha256 != Digest::ERASED).then_some(record.sha256);
    let made = sql::BLOB_HELD.run().bind(owner.as_str()).bind(key.to_bytes()).execute(tx.on()).await?;
    let before = existing(tx, owner, key).await?;
    let after = match before.state {
        _ if made.rows_affected() == 1 => {
            Blob { state: State::Condemned { remove_at }, bytes: Some(record.bytes), sha256, ..before.clone() }
        }
        State::Condemned { remove_at: other } if sha256.is_some() => {
            Blob { state: State::Condemned { remove_at: other.max(remove_at) }, sha256, ..before.clone() }
        }
        _ => return Ok(()),
    };
    put(tx, vec![(before, after)]).await?;
    if let Some(sha256) = sha256 {
        let query = sql::DIGEST_NEW.run().bind(owner.as_str()).bind(sha256.0).bind(key.to_bytes());
        query.execute(tx.on()).await?;
    }
    Ok(())
}

/// A blob's row as a list has it.
pub(super) fn listed(row: BlobColumns) -> Result<BlobRow, StorageError> {
    let Blob { tenant, key, state, bytes, .. } = Blob::read(row)?;
    let holders = match state {
        State::Held { holders } => holders,
        _ => 0,
    };
    let doomed = matches!(state, State::Doomed | State::Discarded { .. });
    Ok(BlobRow { tenant, blob: key, bytes, holders, doomed })
}

async fn lock(tx: &mut Tx, owner: &TenantId, key: BlobKey) -> Worked<Option<Blob>> {
    let row = sql::BLOB_LOCK.rows().bind(owner.as_str()).bind(key.to_bytes()).fetch_optional(tx.on()).await?;
    Ok(row.map(Blob::read).transpose()?)
}

async fn existing(tx: &mut Tx, owner: &TenantId, key: BlobKey) -> Worked<Blob> {
    let blob = lock(tx, owner, key).await?;
    Ok(blob.ok_or_else(|| corrupt(format!("blob: {key} is named by a row and has none")))?)
}

/// Writes locked blobs as they are from now on, and moves their entries in the tables by time.
async fn put(tx: &mut Tx, changed: Vec<(Blob, Blob)>) -> Worked<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let (mut tenants, mut keys, mut states, mut since) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut holders, mut bytes, mut digests, mut assets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut entries = Queued::default();
    for (before, after) in &changed {
        let (state, at, held) = after.columns();
        tenants.push(after.tenant.to_string());
        keys.push(after.key.to_bytes().to_vec());
        states.push(state);
        since.push(at);
        holders.push(held);
        bytes.push(after.bytes.map(number));
        digests.push(after.sha256.map(|sha256| sha256.0.to_vec()));
        assets.push(after.asset.map(|id| id.to_bytes().to_vec()));
        if before.state != after.state {
            if before.announced() && !after.announced() {
                entries.end(before)
            } else {
                entries.take_out(before)
            }
            entries.put_in(after);
        }
    }
    let query = sql::BLOBS_PUT.run().bind(tenants).bind(keys).bind(states).bind(since);
    query.bind(holders).bind(bytes).bind(digests).bind(assets).execute(tx.on()).await?;
    entries.write(tx).await
}

async fn drop_row(tx: &mut Tx, blob: &Blob) -> Worked<()> {
    sql::BLOB_DROP.run().bind(blob.tenant.as_str()).bind(blob.key.to_bytes()).execute(tx.on()).await?;
    let mut entries = Queued::default();
    if blob.announced() {
        entries.end(blob)
    } else {
        entries.take_out(blob)
    }
    entries.write(tx).await
}

/// Entries in the tables by time that go and come.
#[derive(Debug, Default)]
struct Queued {
    /// Uploads that are over, and whose reservations go with their entries.
    uploads_end: Entries,
    uploads_out: Entries,
    uploads_in: Entries,
    condemned_out: Entries,
    condemned_in: Entries,
    doomed_out: Entries,
    doomed_in: Entries,
}

#[derive(Debug, Default)]
struct Entries {
    at: Vec<i64>,
    tenant: Vec<String>,
    blob: Vec<Vec<u8>>,
}

impl Queued {
    fn end(&mut self, blob: &Blob) {
        if let State::Announced { alive_at } = blob.state {
            self.uploads_end.push(alive_at, blob);
        }
    }

    fn take_out(&mut self, blob: &Blob) {
        match blob.state {
            State::Announced { alive_at } => self.uploads_out.push(alive_at, blob),
            State::Condemned { remove_at } | State::Discarded { remove_at } => {
                self.condemned_out.push(remove_at, blob);
            }
            State::Doomed => self.doomed_out.push(0, blob),
            State::Held { .. } => {}
        }
    }

    fn put_in(&mut self, blob: &Blob) {
        match blob.state {
            State::Announced { alive_at } => self.uploads_in.push(alive_at, blob),
            State::Condemned { remove_at } | State::Discarded { remove_at } => self.condemned_in.push(remove_at, blob),
            State::Doomed => self.doomed_in.push(0, blob),
            State::Held { .. } => {}
        }
    }

    async fn write(self, tx: &mut Tx) -> Worked<()> {
        self.uploads_end.send(sql::UPLOADS_END, tx).await?;
        self.uploads_out.send(sql::UPLOADS_OUT, tx).await?;
        self.uploads_in.send(sql::UPLOADS_IN, tx).await?;
        self.condemned_out.send(sql::CONDEMNED_OUT, tx).await?;
        self.condemned_in.send(sql::CONDEMNED_IN, tx).await?;
        self.doomed_out.send(sql::DOOMED_OUT, tx).await?;
        self.doomed_in.send(sql::DOOMED_IN, tx).await
    }
}

impl Entries {
    fn push(&mut self, at: i64, blob: &Blob) {
        self.at.push(at);
        self.tenant.push(blob.tenant.to_string());
        self.blob.push(blob.key.to_bytes().to_vec());
    }

    async fn send(self, sql: Sql, tx: &mut Tx) -> Worked<()> {
        if !self.at.is_empty() {
            sql.run().bind(self.at).bind(self.tenant).bind(self.blob).execute(tx.on()).await?;
        }
        Ok(())
    }
}
