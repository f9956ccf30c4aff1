//! One upload: the claim on its key, and its publication.

use jiff::Timestamp;

use super::blobs::{self, Holding};
use super::failed::Worked;
use super::rows::{AssetRow, Keeping, RunRow, asset_id, digest, down, epoch_of, number, up};
use super::runs::touch;
use super::tx::Tx;
use super::{holds, sql};
use crate::error::StorageError;
use crate::ids::{AssetId, Digest, TenantId};
use crate::index::codec::{corrupt, encode};
use crate::index::{Claimed, NewAsset, Published};
use crate::record::{AssetRecord, AssetView, Claim, HoldOn, Owed, Settled};
use crate::retention::{FloorSource, Terms};

/// Makes the asset visible, with everything that belongs to it.
///
/// Locked in this order: the claim, the run, the upload, the blob that is shared.
pub(super) async fn publish(
    tx: &mut Tx,
    tenant: &TenantId,
    new: &NewAsset,
    terms: &Terms,
    now: Timestamp,
) -> Worked<Published> {
    let claim = match &new.settled {
        Some(settled) => Some((held(tx, tenant, &settled.claim, now).await?, settled)),
        None => None,
    };
    let mut record = AssetRecord { tenant: tenant.clone(), ..new.record.clone() };
    let run = match &record.run {
        Some(run) => Some(touch(tx, tenant, run, terms, now).await?),
        None => None,
    };
    if run.as_ref().is_some_and(RunRow::is_erased) {
        return Ok(Published::RunErased);
    }
    let claim = match claim {
        Some((Some(row), settled)) => Some((row, settled)),
        Some((None, _)) => {
            tx.undo();
            return Ok(Published::ClaimLost);
        }
        None => None,
    };
    let holding = blobs::hold(tx, &record, new.discard_at).await?;
    match holding {
        Holding::Own => {}
        Holding::Shared(blob) => record.blob = blob,
        Holding::Lost => {
            tx.undo();
            return Ok(Published::UploadLost);
        }
    }
    if let Some((row, settled)) = claim {
        settle_claim(tx, tenant, row, settled, record.id).await?;
    }
    if new.recorded.is_some_and(|blob| blob != record.blob) {
        tx.owe(tenant, Owed::asset(&record));
    }

    let claim = new.settled.as_ref().map(|settled| settled.claim.name.as_bytes().to_vec());
    let view = insert_live(tx, record, claim, run.as_ref(), terms, now).await?;
    tx.audit(tenant, new.audit.clone().url(view.url_id()));
    Ok(match holding {
        Holding::Shared(_) => Published::Shared(view),
        _ => Published::Stored(view),
    })
}

/// Writes a live asset that was not there, seen at its floor by the run that references it, or by a look of its own.
pub(super) async fn insert_live(
    tx: &mut Tx,
    record: AssetRecord,
    claim: Option<Vec<u8>>,
    run: Option<&RunRow>,
    terms: &Terms,
    now: Timestamp,
) -> Worked<AssetView> {
    let mut keeping = new_keeping(tx, &record, run).await?;
    let floor = keeping.floor(terms);
    // A run's look sees the asset when the run ends; the end of any other term, or one that is past, is the asset's own to wait for.
    let run_ends_it = matches!(floor.source, FloorSource::Run | FloorSource::Default);
    let seen = run_ends_it && run.is_some_and(RunRow::will_look_at_all) && !floor.until.is_past(now);
    let look = floor.until.instant().filter(|_| !seen).map(up);
    let row = AssetRow { record, look, holds: 0, claim };
    keeping.epoch = insert(tx, &row).await?;
    Ok(keeping.view(row.record, terms))
}

/// What keeps an asset that is about to be made: the run that references it.
pub(super) async fn new_keeping(tx: &mut Tx, record: &AssetRecord, run: Option<&RunRow>) -> Worked<Keeping> {
    let names = match run.filter(|row| row.holds > 0) {
        Some(row) => holds::names(tx, &record.tenant, &HoldOn::Run(row.record.id.clone())).await?,
        None => Vec::new(),
    };
    Ok(Keeping::of_new(record, run.map(|row| (row.record.id.clone(), row.stake())), names))
}

/// The asset, its look, and its run's reference, which is its first. Says the epoch that its URLs are of.
pub(super) async fn insert(tx: &mut Tx, row: &AssetRow) -> Worked<u32> {
    let record = &row.record;
    let sha256 = (record.sha256 != Digest::ERASED).then_some(record.sha256.0);
    let (epoch,): (i64,) = sql::ASSET_NEW
        .rows()
        .bind(record.tenant.as_str())
        .bind(record.id.to_bytes())
        .bind(record.state.name())
        .bind(record.kind.as_bytes())
        .bind(record.mime_type.as_bytes())
        .bind(number(record.bytes))
        .bind(row.look)
        .bind(encode(record))
        .bind(record.run.as_ref().map(|run| run.as_str()))
        .bind(record.blob.to_bytes())
        .bind(sha256.as_ref().map(|hash| hash.as_slice()))
        .bind(row.claim.as_deref())
        .fetch_one(tx.on())
        .await?;
    Ok(epoch_of(epoch))
}

/// An idempotency key, and who has it.
#[derive(Debug)]
struct ClaimRow {
    holder: Vec<u8>,
    until: i64,
    answer: Option<(AssetId, Digest)>,
}

type ClaimColumns = (Vec<u8>, i64, Option<Vec<u8>>, Option<Vec<u8>>);

impl ClaimRow {
    fn read((holder, until, asset, fingerprint): ClaimColumns) -> Result<Self, StorageError> {
        let answer = match (asset, fingerprint) {
            (Some(asset), Some(fingerprint)) => Some((asset_id(&asset)?, digest(&fingerprint)?)),
            (None, None) => None,
            _ => return Err(corrupt("claim: half an answer".into())),
        };
        Ok(Self { holder, until, answer })
    }

    fn is_held_by(&self, claim: &Claim) -> bool {
        self.answer.is_none() && self.holder == claim.holder
    }
}

/// Takes the key, unless another request has it.
pub(super) async fn claim(tx: &mut Tx, tenant: &TenantId, claim: &Claim, now: Timestamp) -> Worked<Claimed> {
    let query = sql::CLAIM_NEW.rows().bind(tenant.as_str()).bind(claim.name.as_bytes()).bind(claim.holder);
    let (made,): (i64,) = query.bind(up(claim.lapses_at)).fetch_one(tx.on()).await?;
    if made == 1 {
        return Ok(Claimed::Yours);
    }
    let Some(before) = lock(tx, tenant, &claim.name).await? else {
        return Err(corrupt("claim: it is there and has no row".into()).into());
    };
    if before.until > down(now) {
        match before.answer {
            Some((asset, fingerprint)) => return Ok(Claimed::Settled { asset, fingerprint }),
            None if before.holder != claim.holder => return Ok(Claimed::InFlight),
            None => {}
        }
    }
    let row = ClaimRow { holder: claim.holder.to_vec(), until: up(claim.lapses_at), answer: None };
    put(tx, tenant, &claim.name, &before, &row).await?;
    Ok(Claimed::Yours)
}

/// Holds the claim for longer, if the request still holds it.
pub(super) async fn renew(tx: &mut Tx, tenant: &TenantId, claim: &Claim) -> Worked<bool> {
    let Some(before) = lock(tx, tenant, &claim.name).await?.filter(|row| row.is_held_by(claim)) else {
        return Ok(false);
    };
    if up(claim.lapses_at) > before.until {
        let later = ClaimRow { holder: before.holder.clone(), until: up(claim.lapses_at), answer: None };
        put(tx, tenant, &claim.name, &before, &later).await?;
    }
    Ok(true)
}

/// Gives the claim up, if the request still holds it; an answer stays. The entry of its time is left for `tidy` to find empty.
pub(super) async fn release(tx: &mut Tx, tenant: &TenantId, claim: &Claim) -> Worked<()> {
    let query = sql::CLAIM_RELEASE.run().bind(tenant.as_str()).bind(claim.name.as_bytes()).bind(claim.holder);
    query.execute(tx.on()).await?;
    Ok(())
}

/// Drops the answers under these keys, each if the asset beside it is what its request made. It does not wait for a key that another
/// call is busy with: locks of keys come before those of assets.
pub(super) async fn drop_answers(tx: &mut Tx, tenant: &TenantId, made: Vec<(Vec<u8>, AssetId)>) -> Worked<()> {
    if made.is_empty() {
        return Ok(());
    }
    let (names, assets): (Vec<_>, Vec<_>) = made.into_iter().map(|(name, id)| (name, id.to_bytes().to_vec())).unzip();
    let query = sql::CLAIMS_ANSWERS.rows().bind(tenant.as_str()).bind(names).bind(assets);
    let rows: Vec<(Vec<u8>,)> = query.fetch_all(tx.on()).await?;
    if !rows.is_empty() {
        let names: Vec<_> = rows.into_iter().map(|(name,)| name).collect();
        sql::CLAIMS_FORGET.run().bind(tenant.as_str()).bind(names).execute(tx.on()).await?;
    }
    Ok(())
}

/// The claim's row, if this request holds it at `now`.
async fn held(tx: &mut Tx, tenant: &TenantId, claim: &Claim, now: Timestamp) -> Worked<Option<ClaimRow>> {
    let row = lock(tx, tenant, &claim.name).await?;
    Ok(row.filter(|row| row.is_held_by(claim) && row.until > down(now)))
}

async fn settle_claim(
    tx: &mut Tx,
    tenant: &TenantId,
    before: ClaimRow,
    settled: &Settled,
    asset: AssetId,
) -> Worked<()> {
    let answer = Some((asset, settled.fingerprint));
    let row = ClaimRow { holder: before.holder.clone(), until: up(settled.keep_until), answer };
    put(tx, tenant, &settled.claim.name, &before, &row).await
}

async fn lock(tx: &mut Tx, tenant: &TenantId, name: &str) -> Worked<Option<ClaimRow>> {
    let row = sql::CLAIM_LOCK.rows().bind(tenant.as_str()).bind(name.as_bytes()).fetch_optional(tx.on()).await?;
    Ok(row.map(ClaimRow::read).transpose()?)
}

/// Writes the claim. Its entry by time stays when the time moves to later, and `tidy` moves it when it comes: one row less that every
/// publication with a key writes.
async fn put(tx: &mut Tx, tenant: &TenantId, name: &str, before: &ClaimRow, row: &ClaimRow) -> Worked<()> {
    if row.until < before.until {
        let query = sql::TIDY_NEW.run().bind(row.until).bind(tenant.as_str()).bind(name.as_bytes());
        query.execute(tx.on()).await?;
    }
    let (asset, fingerprint) = row.answer.map(|(asset, fingerprint)| (asset.to_bytes(), fingerprint.0)).unzip();
    sql::CLAIM_PUT
        .run()
        .bind(tenant.as_str())
        .bind(name.as_bytes())
        .bind(&row.holder)
        .bind(row.until)
        .bind(asset.as_ref().map(|id| id.as_slice()))
        .bind(fingerprint.as_ref().map(|hash| hash.as_slice()))
        .execute(tx.on())
        .await?;
    Ok(())
}
