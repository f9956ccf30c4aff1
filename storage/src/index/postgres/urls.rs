//! Delivery URLs, and what revokes them.

use jiff::Timestamp;

use super::PostgresIndex;
use super::assets::put;
use super::failed::Worked;
use super::rows::{AssetColumns, AssetRow, counted, epoch_of, limited, number, up};
use super::sql;
use super::tx::{Tx, read};
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, TenantId};
use crate::index::NewDurable;
use crate::index::codec::{corrupt, decode, encode};
use crate::record::{AssetRecord, DurableUrl, MintedUrl, Owed, Taken, UrlRecord, UrlView};

/// A URL as its statements read it: name, uses, record, whether it was revoked.
type UrlColumns = (Vec<u8>, Option<i64>, Vec<u8>, bool);

fn view((name, uses, record, revoked): UrlColumns) -> Result<UrlView, StorageError> {
    let url_id = String::from_utf8(name).map_err(|_| corrupt("URL: its name is not text".into()))?;
    let record = UrlRecord { uses_left: uses.map(counted), ..decode("URL", &record)? };
    Ok(UrlView { url_id, record, revoked })
}

/// Notes URLs that are about to be handed out.
pub(super) async fn mint(tx: &mut Tx, tenant: &TenantId, urls: &[MintedUrl], events: &[AuditEvent]) -> Worked<()> {
    let (mut names, mut labels, mut until) = (Vec::new(), Vec::new(), Vec::new());
    let (mut uses, mut records) = (Vec::new(), Vec::new());
    for MintedUrl { url_id, record } in urls {
        names.push(url_id.as_bytes());
        labels.push(record.label.as_ref().map(|label| label.as_bytes().to_vec()));
        until.push(up(record.keep_until));
        uses.push(record.uses_left.map(number));
        records.push(encode(record));
    }
    if !names.is_empty() {
        let query = sql::URLS_NEW.run().bind(tenant.as_str()).bind(names).bind(labels).bind(until);
        query.bind(uses).bind(records).execute(tx.on()).await?;
    }
    events.iter().for_each(|event| tx.audit(tenant, event.clone()));
    Ok(())
}

/// The delivery URL of that name.
pub(super) async fn find(
    index: &PostgresIndex,
    tenant: &TenantId,
    url_id: &str,
) -> Result<Option<UrlView>, StorageError> {
    let row: Option<UrlColumns> = read!(index, on => async {
        let query = sql::URLS_READ.rows().bind(tenant.as_str()).bind(vec![url_id.as_bytes().to_vec()]);
        Ok(query.fetch_optional(on).await?)
    })?;
    row.map(view).transpose()
}

/// The delivery URLs with this label.
pub(super) async fn labelled(
    index: &PostgresIndex,
    tenant: &TenantId,
    label: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<UrlView>, StorageError> {
    let after = after.unwrap_or_default();
    let rows: Vec<UrlColumns> = read!(index, on => async {
        let query = sql::URLS_LABEL.rows().bind(tenant.as_str()).bind(label.as_bytes()).bind(after.as_bytes());
        Ok(query.bind(limited(limit)).fetch_all(on).await?)
    })?;
    rows.into_iter().map(view).collect()
}

/// Takes one use of a counted URL.
///
/// One statement decides, and it looks at the row anew once it has the row's lock: it needs nothing of serializability, under which
/// most of those who want the last uses at the same time would only be refused and come again.
pub(super) async fn take_use(tx: &mut Tx, tenant: &TenantId, url_id: &str) -> Worked<Taken> {
    let query = sql::USE_TAKE.run().bind(tenant.as_str()).bind(url_id.as_bytes());
    if query.execute(tx.on()).await?.rows_affected() == 1 {
        return Ok(Taken::Yours);
    }
    let url = views(tx, tenant, &[url_id.to_owned()]).await?.pop();
    Ok(match url {
        Some(url) if !url.revoked && url.record.uses_left.is_some() => Taken::Exhausted,
        _ => Taken::Unknown,
    })
}

async fn views(tx: &mut Tx, tenant: &TenantId, url_ids: &[String]) -> Worked<Vec<UrlView>> {
    let names: Vec<_> = url_ids.iter().map(|url_id| url_id.as_bytes().to_vec()).collect();
    let rows: Vec<UrlColumns> = sql::URLS_READ.rows().bind(tenant.as_str()).bind(names).fetch_all(tx.on()).await?;
    Ok(rows.into_iter().map(view).collect::<Result<_, _>>()?)
}

/// Revokes those of the URLs that open.
pub(super) async fn revoke(
    tx: &mut Tx,
    tenant: &TenantId,
    url_ids: &[String],
    audit: &AuditEvent,
    now: Timestamp,
) -> Worked<Vec<MintedUrl>> {
    let mut open = views(tx, tenant, url_ids).await?;
    open.retain(|url| url.opens(now));
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<_> = open.iter().map(|url| url.url_id.as_bytes().to_vec()).collect();
    let until: Vec<_> = open.iter().map(|url| up(url.record.keep_until)).collect();
    sql::URLS_REVOKE.run().bind(tenant.as_str()).bind(names).bind(until).execute(tx.on()).await?;
    for url in &open {
        tx.audit(tenant, audit.clone().asset(url.record.asset).url(&*url.url_id));
    }
    Ok(open.into_iter().map(|UrlView { url_id, record, .. }| MintedUrl { url_id, record }).collect())
}

/// Gives several assets the next generation.
pub(super) async fn raise_generations(
    tx: &mut Tx,
    tenant: &TenantId,
    ids: &[AssetId],
    new: &NewDurable,
    audit: &AuditEvent,
) -> Worked<Vec<AssetRecord>> {
    let ids: Vec<_> = ids.iter().map(|id| id.to_bytes().to_vec()).collect();
    let rows: Vec<AssetColumns> = sql::ASSETS_LOCK.rows().bind(tenant.as_str()).bind(ids).fetch_all(tx.on()).await?;
    let (mut changed, mut raised) = (Vec::new(), Vec::new());
    for row in rows {
        let mut row = AssetRow::read(row)?;
        let generation = row.record.durable.generation.saturating_add(1);
        row.record.durable = DurableUrl { kid: new.kid.clone(), issued_at: new.issued_at, generation };
        row.record.revision += 1;
        tx.audit(tenant, audit.clone().asset(row.record.id));
        tx.owe(tenant, Owed::asset(&row.record));
        raised.push(row.record.clone());
        let look = row.look;
        changed.push((row, look));
    }
    put(tx, tenant, &changed).await?;
    Ok(raised)
}

/// Raises the generation of everything that the tenant has.
pub(super) async fn raise_epoch(tx: &mut Tx, tenant: &TenantId, audit: &AuditEvent) -> Worked<u32> {
    let (epoch,): (i64,) = sql::EPOCH_RAISE.rows().bind(tenant.as_str()).fetch_one(tx.on()).await?;
    tx.audit(tenant, audit.clone());
    tx.owe(tenant, Owed::Epoch(epoch_of(epoch)));
    Ok(epoch_of(epoch))
}

/// The same, of an index that is made anew.
pub(super) async fn restore_epoch(tx: &mut Tx, tenant: &TenantId, epoch: u32) -> Worked<()> {
    sql::EPOCH_RESTORE.run().bind(tenant.as_str()).bind(i64::from(epoch)).execute(tx.on()).await?;
    Ok(())
}

/// So many names are read at a time for a count.
const NAMES: usize = 10_000;

/// How many assets the tenant has, counted page by page: of a whole table the planner would rather read all.
pub(super) async fn count_assets(index: &PostgresIndex, tenant: &TenantId) -> Result<u64, StorageError> {
    let (mut count, mut after) = (0, Vec::new());
    loop {
        let names: Vec<(Vec<u8>,)> = read!(index, on => async {
            let query = sql::ASSETS_NAMES.rows().bind(tenant.as_str()).bind(&after).bind(limited(NAMES));
            Ok(query.fetch_all(on).await?)
        })?;
        count += names.len() as u64;
        match names.into_iter().next_back() {
            Some((last,)) => after = last,
            None => return Ok::<u64, StorageError>(count),
        }
    }
}
