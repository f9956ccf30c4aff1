//! The audit log, and what is past its time.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::draft::Draft;
use super::keys::{Key, Parts, Space};
use super::packed::Row;
use super::rows::{HeadRow, WaitingRow};
use super::shared::Core;
use super::urls;
use crate::audit::{AuditEvent, AuditRow};
use crate::error::StorageError;
use crate::ids::TenantId;

impl Draft {
    /// Writes the event, to be given its place in the tenant's chain later: a chain head in every transition would be a row that all
    /// of a tenant's transitions write.
    pub(super) fn audit(&mut self, tenant: &TenantId, event: AuditEvent) {
        let number = self.number_event();
        // Most are sealed before they go into the tree, and then never do.
        self.put_new(Key::waiting(number), &WaitingRow { tenant: tenant.clone(), event });
    }
}

/// Gives waiting events their places, in the order in which they were written.
pub(super) fn seal(draft: &mut Draft, limit: usize) -> Result<usize, StorageError> {
    let waiting = draft.rows().scan(&Key::space(Space::Waiting)).take(limit);
    let waiting: Vec<(u64, WaitingRow)> = waiting
        .map(|row| {
            let (key, raw) = row?;
            Ok((Parts::of(&key).number()?, WaitingRow::read("audit event", &raw)?))
        })
        .collect::<Result<_, StorageError>>()?;
    let sealed = waiting.len();
    let mut heads: BTreeMap<TenantId, HeadRow> = BTreeMap::new();
    for (number, WaitingRow { tenant, event }) in waiting {
        let head = match heads.get(&tenant) {
            Some(head) => head.clone(),
            None => head(draft, &tenant)?,
        };
        let row = AuditRow::seal(&tenant, head.seq + 1, event, head.hash);
        draft.delete(Key::waiting(number));
        draft.put(Key::event(&tenant, row.seq), &row);
        heads.insert(tenant, HeadRow { seq: row.seq, hash: row.hash });
    }
    for (tenant, head) in heads {
        draft.put(Key::of(Space::Heads, &tenant), &head);
    }
    Ok(sealed)
}

fn head(draft: &Draft, tenant: &TenantId) -> Result<HeadRow, StorageError> {
    let head = draft.rows().read("audit head", &Key::of(Space::Heads, tenant))?;
    Ok(head.unwrap_or(HeadRow { seq: 0, hash: AuditRow::GENESIS }))
}

/// Sealed rows behind `since`, oldest first.
pub(super) fn audit_rows(
    core: &Core,
    tenant: &TenantId,
    since: u64,
    limit: usize,
) -> Result<Vec<AuditRow>, StorageError> {
    let since = Key::event(tenant, since);
    let rows = core.rows().scan_after(&Key::of(Space::Events, tenant), Some(&since));
    rows.take(limit).map(|row| AuditRow::read("audit row", &row?.1)).collect()
}

/// Drops claims, answers, delivery URLs and revocations whose time is past.
pub(super) fn tidy(draft: &mut Draft, limit: usize, now: Timestamp) -> Result<usize, StorageError> {
    let due = draft.rows().scan_until(&Key::space(Space::Tidy), &Key::behind_time(Space::Tidy, now));
    let due: Vec<_> = due.take(limit).collect::<Result<_, _>>()?;
    for (entry, _) in &due {
        let row = Parts::of(entry).tidy()?;
        if row.is_in(Space::Urls) {
            urls::forget(draft, row)?;
        } else {
            draft.delete(row);
        }
        draft.delete(Key::read(entry));
    }
    Ok(due.len())
}
