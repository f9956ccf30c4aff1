//! What the store is owed, and the numbers of holds.

use super::PostgresIndex;
use super::failed::Worked;
use super::rows::{counted, limited, number, tenant};
use super::sql;
use super::tx::{Tx, read};
use crate::error::StorageError;
use crate::ids::{Digest, TenantId};
use crate::index::codec::{decode, encode};
use crate::record::Owed;

/// Writes what the transition owes, with everything else at its end.
pub(super) async fn write(tx: &mut Tx, owed: Vec<(TenantId, Owed)>) -> Worked<()> {
    let (mut owners, mut names, mut records) = (Vec::new(), Vec::new(), Vec::new());
    for (owner, owed) in owed {
        owners.push(owner.to_string());
        names.push(owed.name().0.to_vec());
        records.push(encode(&owed));
    }
    sql::OWED_NEW.run().bind(owners).bind(names).bind(records).execute(tx.on()).await?;
    Ok(())
}

/// What is owed, from behind `after`.
pub(super) async fn list(
    index: &PostgresIndex,
    after: Option<(TenantId, Digest)>,
    limit: usize,
) -> Result<Vec<(TenantId, Owed)>, StorageError> {
    let (owner, name) = after.map_or_else(Default::default, |(owner, name)| (owner.to_string(), name.0.to_vec()));
    let rows: Vec<(String, Vec<u8>)> = read!(index, on => async {
        Ok(sql::OWED_LIST.rows().bind(&owner).bind(&name).bind(limited(limit)).fetch_all(on).await?)
    })?;
    rows.into_iter().map(|(owner, record)| Ok((tenant(&owner)?, decode("what is owed", &record)?))).collect()
}

/// Forgets what is paid.
pub(super) async fn paid(tx: &mut Tx, written: &[(TenantId, Digest)]) -> Worked<()> {
    // In one order, so that two that pay for the same things wait for each other and not in a circle.
    let mut written = written.to_vec();
    written.sort_unstable_by(|one, other| (&one.0, one.1.0).cmp(&(&other.0, other.1.0)));
    let (owners, names): (Vec<_>, Vec<_>) =
        written.into_iter().map(|(owner, name)| (owner.to_string(), name.0.to_vec())).unzip();
    sql::OWED_PAID.run().bind(owners).bind(names).execute(tx.on()).await?;
    Ok(())
}

/// The next number of the tenant's holds.
pub(super) async fn next_hold(tx: &mut Tx, tenant: &TenantId) -> Worked<u64> {
    let (next,): (i64,) = sql::HOLD_NEXT.rows().bind(tenant.as_str()).fetch_one(tx.on()).await?;
    Ok(counted(next))
}

/// No number up to this one is given again.
pub(super) async fn raise_hold_number(tx: &mut Tx, tenant: &TenantId, least: u64) -> Worked<()> {
    sql::HOLD_NUMBER_RAISE.run().bind(tenant.as_str()).bind(number(least)).execute(tx.on()).await?;
    Ok(())
}
