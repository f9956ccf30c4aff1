//! The audit log, and what is past its time.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::PostgresIndex;
use super::failed::Worked;
use super::rows::{counted, digest, down, limited, number, tenant};
use super::sql::{self, Sql};
use super::tx::{Tx, read};
use crate::audit::{AuditEvent, AuditRow};
use crate::error::StorageError;
use crate::ids::{Digest, TenantId};
use crate::index::codec::{decode, encode};

/// Gives waiting events their places, in the order in which they were written. One replica does so at a time.
///
/// The row that is locked first makes the turns, so this needs nothing of serializability; and reading the end of the queue of events
/// under it would lock that end against every transition that writes one.
pub(super) async fn seal(tx: &mut Tx, limit: usize) -> Worked<usize> {
    sql::SEAL_TURN.run().execute(tx.on()).await?;
    let waiting: Vec<(i64, String, Vec<u8>)> = sql::SEAL_WAITING.rows().bind(limited(limit)).fetch_all(tx.on()).await?;
    if waiting.is_empty() {
        return Ok(0);
    }
    let mut heads = heads(tx, waiting.iter().map(|(_, owner, _)| owner.clone()).collect()).await?;
    let (mut numbers, mut owners, mut places, mut records) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (waited, owner, event) in waiting {
        let event: AuditEvent = decode("audit event", &event)?;
        let id: TenantId = tenant(&owner)?;
        let head = heads.entry(owner.clone()).or_insert((0, AuditRow::GENESIS));
        let row = AuditRow::seal(&id, head.0 + 1, event, head.1);
        *head = (row.seq, row.hash);
        numbers.push(waited);
        owners.push(owner);
        places.push(number(row.seq));
        records.push(encode(&row));
    }
    let sealed = numbers.len();
    sql::SEAL_ROWS.run().bind(owners).bind(places).bind(records).execute(tx.on()).await?;
    put_heads(tx, heads).await?;
    sql::SEAL_DONE.run().bind(numbers).execute(tx.on()).await?;
    Ok(sealed)
}

/// The last sealed row of each tenant that has one.
async fn heads(tx: &mut Tx, owners: Vec<String>) -> Worked<BTreeMap<String, (u64, Digest)>> {
    let rows: Vec<(String, i64, Vec<u8>)> = sql::SEAL_HEADS.rows().bind(owners).fetch_all(tx.on()).await?;
    rows.into_iter().map(|(owner, seq, hash)| Ok((owner, (counted(seq), digest(&hash)?)))).collect()
}

async fn put_heads(tx: &mut Tx, heads: BTreeMap<String, (u64, Digest)>) -> Worked<()> {
    let (mut owners, mut places, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
    for (owner, (seq, hash)) in heads {
        owners.push(owner);
        places.push(number(seq));
        hashes.push(hash.0.to_vec());
    }
    sql::SEAL_HEADS_PUT.run().bind(owners).bind(places).bind(hashes).execute(tx.on()).await?;
    Ok(())
}

/// Sealed rows behind `since`, oldest first.
pub(super) async fn audit_rows(
    index: &PostgresIndex,
    owner: &TenantId,
    since: u64,
    limit: usize,
) -> Result<Vec<AuditRow>, StorageError> {
    let rows: Vec<(Vec<u8>,)> = read!(index, on => async {
        let list = sql::AUDIT_ROWS.rows().bind(owner.as_str()).bind(number(since)).bind(limited(limit));
        Ok(list.fetch_all(on).await?)
    })?;
    rows.iter().map(|(record,)| decode("audit row", record)).collect()
}

/// Drops claims, answers, delivery URLs and revocations whose time is past, and moves the entries of those whose time has moved.
pub(super) async fn tidy(tx: &mut Tx, limit: usize, now: Timestamp) -> Worked<usize> {
    let now = down(now);
    let mut dropped = 0;
    while dropped < limit {
        let query = sql::TIDY_DUE.rows().bind(now).bind(limited(limit - dropped));
        let due: Vec<(i64, i16, String, Vec<u8>)> = query.fetch_all(tx.on()).await?;
        if due.is_empty() {
            break;
        }
        for (kind, drops, moves) in [
            (0, sql::CLAIMS_DROP, sql::CLAIMS_LATER),
            (1, sql::REVOKED_DROP, sql::REVOKED_LATER),
            (2, sql::URLS_DROP, sql::URLS_LATER),
        ] {
            let names =
                due.iter().filter(|(_, of, ..)| *of == kind).map(|(.., owner, name)| (owner.clone(), name.clone()));
            dropped += tidy_names(tx, names.unzip(), drops, moves, now).await?;
        }
        let (mut at, mut kinds, mut owners, mut names) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (time, kind, owner, name) in due {
            at.push(time);
            kinds.push(kind);
            owners.push(owner);
            names.push(name);
        }
        sql::TIDY_DROP.run().bind(at).bind(kinds).bind(owners).bind(names).execute(tx.on()).await?;
    }
    Ok(dropped)
}

async fn tidy_names(
    tx: &mut Tx,
    (owners, names): (Vec<String>, Vec<Vec<u8>>),
    drops: Sql,
    moves: Sql,
    now: i64,
) -> Worked<usize> {
    if owners.is_empty() {
        return Ok(0);
    }
    let dropped = drops.run().bind(&owners).bind(&names).bind(now).execute(tx.on()).await?.rows_affected();
    moves.run().bind(&owners).bind(&names).execute(tx.on()).await?;
    Ok(usize::try_from(dropped).unwrap_or(usize::MAX))
}
