//! Whether a tenant's chain is whole: no row changed, dropped or moved, and, for whoever kept a checkpoint, none cut off.
//!
//! A chain can tell of every change but one: that its end was cut off leaves a shorter chain that holds. Only a checkpoint that was
//! kept elsewhere tells of that.

use mediakeep_storage::audit::AuditRow;
use mediakeep_storage::{Digest, StorageError, TenantId};
use serde::{Deserialize, Serialize};

use crate::app::App;

/// Rows are read in pages of this size.
const PAGE: usize = 1_000;

/// A chain, as far as it was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The last row's number; 0 before the first.
    pub seq: u64,
    /// The last row's hash; before the first, [`AuditRow::GENESIS`].
    pub hash: Digest,
}

/// Where a chain is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{tenant} {seq}: {fault}")]
pub struct Broken {
    /// Whose chain.
    pub tenant: TenantId,
    /// At which row.
    pub seq: u64,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It says something else than when it was sealed.
    #[error("the row was changed")]
    Changed,
    /// It is not there, and later ones are.
    #[error("the row is missing")]
    Missing,
    /// In its place stands another.
    #[error("another row stands in its place")]
    Moved,
    /// It is whole, and does not follow the one before it.
    #[error("the row does not follow the one before it")]
    Unchained,
    /// It does not decode.
    #[error("the row does not read")]
    Unreadable,
    /// It and all behind it were there when the checkpoint was made.
    #[error("the log was cut off: the checkpoint knows rows from here on")]
    Cut,
    /// The checkpoint has another hash for it.
    #[error("the checkpoint has another row here")]
    Rewritten,
}

/// What a chain looked like at the end of the walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Walked {
    /// It is whole up to here.
    Whole(Place),
    /// It is not.
    Broken(Broken),
}

impl Place {
    /// Before the first row.
    pub const START: Self = Self { seq: 0, hash: AuditRow::GENESIS };

    /// The place of the row, if it stands right behind this one.
    fn follow(self, tenant: &TenantId, row: &AuditRow) -> Result<Self, Fault> {
        let next = self.seq + 1;
        if row.seq > next {
            return Err(Fault::Missing);
        }
        if row.seq < next {
            return Err(Fault::Moved);
        }
        if !row.holds(tenant) {
            return Err(Fault::Changed);
        }
        if row.previous != self.hash {
            return Err(Fault::Unchained);
        }
        Ok(Self { seq: row.seq, hash: row.hash })
    }
}

/// Follows the tenant's chain from its first row to its last. `kept` is what the auditor knows of it.
pub async fn walk(app: &App, tenant: &TenantId, kept: Option<Place>) -> Result<Walked, StorageError> {
    let broken = |seq, fault| Ok(Walked::Broken(Broken { tenant: tenant.clone(), seq, fault }));
    let mut place = Place::START;
    loop {
        if kept.is_some_and(|kept| kept.seq == place.seq && kept.hash != place.hash) {
            return broken(place.seq, Fault::Rewritten);
        }
        let rows = match app.index.audit_rows(tenant, place.seq, PAGE).await {
            Err(StorageError::Corrupt { .. }) => match app.index.audit_rows(tenant, place.seq, 1).await {
                // One by one, lest a page hide which of its rows it is.
                Err(StorageError::Corrupt { .. }) => return broken(place.seq + 1, Fault::Unreadable),
                rows => rows?,
            },
            rows => rows?,
        };
        if rows.is_empty() {
            break;
        }
        for row in rows {
            place = match place.follow(tenant, &row) {
                Ok(place) => place,
                Err(fault) => return broken(place.seq + 1, fault),
            };
            if kept.is_some_and(|kept| kept.seq == place.seq && kept.hash != place.hash) {
                return broken(place.seq, Fault::Rewritten);
            }
        }
    }
    match kept {
        Some(kept) if kept.seq > place.seq => broken(place.seq + 1, Fault::Cut),
        _ => Ok(Walked::Whole(place)),
    }
}

#[cfg(test)]
mod tests {
    use mediakeep_storage::audit::AuditKind;
    use mediakeep_storage::{AuditEvent, Timestamp};

    use super::*;

    fn tenant() -> TenantId {
        TenantId::parse("acme").expect("a tenant")
    }

    fn rows() -> Vec<AuditRow> {
        let mut place = Place::START;
        let mut rows = Vec::new();
        for seq in 1..=4 {
            let event = AuditEvent::new(AuditKind::Read, format!("key-{seq}"), Timestamp::UNIX_EPOCH);
            let row = AuditRow::seal(&tenant(), seq, event, place.hash);
            place = Place { seq, hash: row.hash };
            rows.push(row);
        }
        rows
    }

    /// Where the walk ends, and why if it ends early.
    fn followed(rows: &[AuditRow]) -> (u64, Option<Fault>) {
        let mut place = Place::START;
        for row in rows {
            place = match place.follow(&tenant(), row) {
                Ok(place) => place,
                Err(fault) => return (place.seq + 1, Some(fault)),
            };
        }
        (place.seq, None)
    }

    #[test]
    fn a_chain_breaks_where_a_row_was_changed_dropped_or_moved() {
        assert_eq!(followed(&rows()), (4, None));
        let changed = |change: fn(&mut Vec<AuditRow>)| {
            let mut rows = rows();
            change(&mut rows);
            followed(&rows)
        };

        assert_eq!(changed(|rows| rows[1].event.principal = "x".into()), (2, Some(Fault::Changed)));
        assert_eq!(changed(|rows| drop(rows.remove(1))), (2, Some(Fault::Missing)));
        assert_eq!(changed(|rows| drop(rows.remove(0))), (1, Some(Fault::Missing)));
        assert_eq!(changed(|rows| rows.swap(1, 2)), (2, Some(Fault::Missing)));
        assert_eq!(changed(|rows| rows[2] = rows[0].clone()), (3, Some(Fault::Moved)));
        // Whoever can write the index can seal a row anew: the next one tells.
        let resealed = changed(|rows| {
            let event = AuditEvent::new(AuditKind::Read, "x", Timestamp::UNIX_EPOCH);
            rows[1] = AuditRow::seal(&tenant(), 2, event, rows[0].hash);
        });
        assert_eq!(resealed, (3, Some(Fault::Unchained)));
    }
}
