//! Assets: how they are read, and what changes of them while they live.

use jiff::Timestamp;

use super::PostgresIndex;
use super::failed::Worked;
use super::looks::Moves;
use super::rows::{AssetRow, Keeping, KeptRow, asset_id, asset_record, is_erased, kept, limited, up};
use super::sql;
use super::tx::{Tx, read};
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId};
use crate::index::codec::{corrupt, encode};
use crate::index::{Amended, Amendment, AssetQuery, LookAt, NewDurable};
use crate::record::{AssetRecord, AssetView, DurableUrl, Owed};
use crate::retention::{self, Protector, Terms};

/// The asset's row.
pub(super) async fn find(
    index: &PostgresIndex,
    tenant: &TenantId,
    id: AssetId,
) -> Result<Option<AssetRecord>, StorageError> {
    let row: Option<(Vec<u8>,)> = read!(index, on => async {
        Ok(sql::ASSET_READ.rows().bind(tenant.as_str()).bind(id.to_bytes()).fetch_optional(on).await?)
    })?;
    row.map(|(record,)| asset_record(&record)).transpose()
}

/// These assets and what keeps each, in the order of their names.
pub(super) async fn views(
    index: &PostgresIndex,
    tenant: &TenantId,
    ids: &[AssetId],
) -> Result<Vec<KeptRow>, StorageError> {
    let ids: Vec<_> = ids.iter().map(|id| id.to_bytes().to_vec()).collect();
    read!(index, on => async { Ok(sql::VIEWS.rows().bind(tenant.as_str()).bind(&ids).fetch_all(on).await?) })
}

/// The asset and what keeps it.
pub(super) async fn view_of(
    index: &PostgresIndex,
    tenant: &TenantId,
    id: AssetId,
    terms: &Terms,
) -> Result<Option<AssetView>, StorageError> {
    let row = views(index, tenant, &[id]).await?.pop();
    row.map(|row| kept(row).map(|(record, keeping)| keeping.view(record, terms))).transpose()
}

/// What keeps an asset whose row is locked.
pub(super) async fn keeping(tx: &mut Tx, tenant: &TenantId, id: AssetId) -> Worked<Keeping> {
    let query = sql::VIEWS.rows().bind(tenant.as_str()).bind(vec![id.to_bytes().to_vec()]);
    let row: Option<KeptRow> = query.fetch_optional(tx.on()).await?;
    let row = row.ok_or_else(|| corrupt(format!("asset: {id} is locked and has no row")))?;
    Ok(kept(row)?.1)
}

/// What still protects the asset.
pub(super) async fn protectors(
    index: &PostgresIndex,
    tenant: &TenantId,
    id: AssetId,
    limit: usize,
    terms: &Terms,
    now: Timestamp,
) -> Result<Vec<Protector>, StorageError> {
    let Some(row) = views(index, tenant, &[id]).await?.pop() else {
        return Ok(Vec::new());
    };
    let (_, keeping) = kept(row)?;
    Ok(retention::protectors(keeping.own(), keeping.holds.clone(), &keeping.staked(), limit, terms, now))
}

/// The assets with the same bytes.
pub(super) async fn same_bytes(
    index: &PostgresIndex,
    tenant: &TenantId,
    id: AssetId,
    after: Option<AssetId>,
    limit: usize,
) -> Result<Vec<AssetId>, StorageError> {
    let Some(record) = find(index, tenant, id).await?.filter(|record| !is_erased(record)) else {
        return Ok(Vec::new());
    };
    let after = after.map_or(Vec::new(), |id| id.to_bytes().to_vec());
    let rows: Vec<(Vec<u8>,)> = read!(index, on => async {
        let list = sql::SAME_BYTES.rows().bind(tenant.as_str()).bind(record.sha256.0).bind(&after);
        Ok(list.bind(id.to_bytes()).bind(limited(limit)).fetch_all(on).await?)
    })?;
    rows.iter().map(|(id,)| asset_id(id)).collect()
}

/// One page of the tenant's assets, or of one run's.
pub(super) async fn page(
    index: &PostgresIndex,
    tenant: &TenantId,
    query: &AssetQuery,
    terms: &Terms,
) -> Result<Vec<AssetView>, StorageError> {
    // Before every name there is.
    let after = query.after.map_or(Vec::new(), |id| id.to_bytes().to_vec());
    let list = if query.run.is_some() { sql::PAGE_OF_RUN } else { sql::PAGE };
    let rows: Vec<KeptRow> = read!(index, on => async {
        let list = list
            .rows()
            .bind(tenant.as_str())
            .bind(&after)
            .bind(query.kind.as_ref().map(String::as_bytes))
            .bind(query.mime_type.as_ref().map(String::as_bytes))
            .bind(query.state.as_ref().map(String::as_bytes))
            .bind(limited(query.limit));
        let list = match &query.run {
            Some(run) => list.bind(run.as_str()),
            None => list,
        };
        Ok(list.fetch_all(on).await?)
    })?;
    rows.into_iter().map(|row| kept(row).map(|(record, keeping)| keeping.view(record, terms))).collect()
}

/// Assets across tenants, in the order of tenants and names.
pub(super) async fn list(
    index: &PostgresIndex,
    after: Option<(TenantId, AssetId)>,
    limit: usize,
) -> Result<Vec<AssetRecord>, StorageError> {
    let (tenant, id) = after.map_or_else(Default::default, |(tenant, id)| (tenant.to_string(), id.to_bytes().to_vec()));
    let rows: Vec<(Vec<u8>,)> = read!(index, on => async {
        Ok(sql::ASSET_LIST.rows().bind(&tenant).bind(&id).bind(limited(limit)).fetch_all(on).await?)
    })?;
    rows.iter().map(|(record,)| asset_record(record)).collect()
}

/// The asset's row, locked.
pub(super) async fn lock(tx: &mut Tx, tenant: &TenantId, id: AssetId) -> Worked<Option<AssetRow>> {
    let row = sql::ASSET_LOCK.rows().bind(tenant.as_str()).bind(id.to_bytes()).fetch_optional(tx.on()).await?;
    Ok(row.map(AssetRow::read).transpose()?)
}

/// Writes assets of one tenant, each with its look moved to that time.
pub(super) async fn put(tx: &mut Tx, tenant: &TenantId, changed: &[(AssetRow, Option<i64>)]) -> Worked<()> {
    let (mut ids, mut states, mut looks, mut records) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut claims, mut held) = (Vec::new(), Vec::new());
    let mut moves = Moves::default();
    for (AssetRow { record, look: from, holds, claim }, look) in changed {
        ids.push(record.id.to_bytes().to_vec());
        states.push(record.state.name());
        looks.push(*look);
        records.push(encode(record));
        claims.push(claim.clone());
        held.push(*holds);
        moves.add(tenant, &LookAt::Asset(record.id), *from, *look);
    }
    if ids.is_empty() {
        return Ok(());
    }
    let query = sql::ASSETS_PUT.run().bind(tenant.as_str()).bind(ids).bind(states).bind(looks).bind(records);
    query.bind(claims).bind(held).execute(tx.on()).await?;
    moves.write(tx).await
}

/// Moves looks of one tenant's assets: each from where it is to where it is to be.
pub(super) async fn put_looks(
    tx: &mut Tx,
    tenant: &TenantId,
    moved: &[(AssetId, Option<i64>, Option<i64>)],
) -> Worked<()> {
    let (mut ids, mut looks) = (Vec::new(), Vec::new());
    let mut moves = Moves::default();
    for (id, from, to) in moved.iter().filter(|(_, from, to)| from != to) {
        ids.push(id.to_bytes().to_vec());
        looks.push(*to);
        moves.add(tenant, &LookAt::Asset(*id), *from, *to);
    }
    if ids.is_empty() {
        return Ok(());
    }
    sql::ASSETS_LOOK.run().bind(tenant.as_str()).bind(ids).bind(looks).execute(tx.on()).await?;
    moves.write(tx).await
}

/// Changes the asset's words.
pub(super) async fn amend(
    tx: &mut Tx,
    tenant: &TenantId,
    id: AssetId,
    change: &Amendment,
    audit: &AuditEvent,
) -> Worked<Amended> {
    let Some(mut row) = lock(tx, tenant, id).await? else {
        return Ok(Amended::Unknown);
    };
    if !row.record.is_live() {
        return Ok(Amended::Dead(row.record));
    }
    if change.expected.is_some_and(|revision| revision != row.record.revision) {
        return Ok(Amended::Stale);
    }
    row.record.labels = change.apply(&row.record.labels);
    changed(tx, row, audit).await.map(Amended::Changed)
}

/// Gives the asset another durable URL: the next generation's, or the same one's by another key.
pub(super) async fn change_durable(
    tx: &mut Tx,
    tenant: &TenantId,
    id: AssetId,
    new: &NewDurable,
    generations: u32,
    audit: &AuditEvent,
) -> Worked<Option<AssetRecord>> {
    let Some(mut row) = lock(tx, tenant, id).await? else {
        return Ok(None);
    };
    let generation = row.record.durable.generation.saturating_add(generations);
    row.record.durable = DurableUrl { kid: new.kid.clone(), issued_at: new.issued_at, generation };
    changed(tx, row, audit).await.map(Some)
}

/// Writes a row whose record has changed, and says so in the log.
async fn changed(tx: &mut Tx, mut row: AssetRow, audit: &AuditEvent) -> Worked<AssetRecord> {
    row.record.revision += 1;
    let (record, look) = (row.record.clone(), row.look);
    put(tx, &record.tenant, &[(row, look)]).await?;
    tx.owe(&record.tenant, Owed::asset(&record));
    tx.audit(&record.tenant, audit.clone());
    Ok(record)
}

/// Notes that the URL was revoked, for as long as the longest wish.
pub(super) async fn revoke_url(
    tx: &mut Tx,
    tenant: &TenantId,
    url_id: &str,
    keep_until: Timestamp,
    audit: &AuditEvent,
) -> Worked<()> {
    tx.audit(tenant, audit.clone());
    note_revoked(tx, tenant, url_id, keep_until).await
}

/// The same, without its event.
pub(super) async fn note_revoked(tx: &mut Tx, tenant: &TenantId, url_id: &str, keep_until: Timestamp) -> Worked<()> {
    let query = sql::REVOKE.run().bind(tenant.as_str()).bind(url_id.as_bytes()).bind(up(keep_until));
    query.execute(tx.on()).await?;
    Ok(())
}

/// Whether the URL was revoked.
pub(super) async fn is_revoked(index: &PostgresIndex, tenant: &TenantId, url_id: &str) -> Result<bool, StorageError> {
    let (there,): (i64,) = read!(index, on => async {
        Ok(sql::REVOKED.rows().bind(tenant.as_str()).bind(url_id.as_bytes()).fetch_one(on).await?)
    })?;
    Ok(there > 0)
}
