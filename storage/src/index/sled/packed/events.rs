//! The audit log: what waits for its place, and what has it.

use super::{Pack, Packed, Unpack};
use crate::audit::{AuditEvent, AuditKind, AuditRow};
use crate::ids::{AssetId, Digest};
use crate::index::sled::rows::WaitingRow;

/// Each at the place of its number.
const KINDS: [AuditKind; 15] = [
    AuditKind::Ingest,
    AuditKind::Amend,
    AuditKind::Mint,
    AuditKind::Revoke,
    AuditKind::Read,
    AuditKind::Denied,
    AuditKind::Refer,
    AuditKind::Artifact,
    AuditKind::Hold,
    AuditKind::Lift,
    AuditKind::Floor,
    AuditKind::Expire,
    AuditKind::Erase,
    AuditKind::Key,
    AuditKind::Check,
];

impl Packed for WaitingRow {
    fn pack(&self, out: &mut Pack<'_>) {
        out.text(self.tenant.as_str());
        pack_event(&self.event, out);
    }

    fn unpack(raw: &mut Unpack<'_>) -> Option<Self> {
        Some(Self { tenant: raw.name()?, event: unpack_event(raw)? })
    }
}

impl Packed for AuditRow {
    fn pack(&self, out: &mut Pack<'_>) {
        out.number(self.seq);
        pack_event(&self.event, out);
        out.bytes(&self.previous.0);
        out.bytes(&self.hash.0);
    }

    fn unpack(raw: &mut Unpack<'_>) -> Option<Self> {
        Some(Self {
            seq: raw.number()?,
            event: unpack_event(raw)?,
            previous: Digest(raw.bytes()?),
            hash: Digest(raw.bytes()?),
        })
    }
}

fn pack_event(event: &AuditEvent, out: &mut Pack<'_>) {
    let AuditEvent { at, kind, principal, asset_id, run_id, url_id, details } = event;
    out.time(*at);
    out.byte(number_of(*kind));
    out.text(principal);
    out.option(*asset_id, |out, id| out.bytes(&id.to_bytes()));
    out.option(run_id.as_ref(), |out, run| out.text(run.as_str()));
    out.option(url_id.as_deref(), Pack::text);
    out.option(details.as_ref(), Pack::json);
}

fn unpack_event(raw: &mut Unpack<'_>) -> Option<AuditEvent> {
    Some(AuditEvent {
        at: raw.time()?,
        kind: *KINDS.get(usize::from(raw.byte()?))?,
        principal: raw.string()?,
        asset_id: raw.option(|raw| raw.bytes().map(AssetId::from_bytes))?,
        run_id: raw.option(Unpack::name)?,
        url_id: raw.option(Unpack::string)?,
        details: raw.option(Unpack::json)?,
    })
}

/// A new kind gets the next number; none is ever given again.
fn number_of(kind: AuditKind) -> u8 {
    match kind {
        AuditKind::Ingest => 0,
        AuditKind::Amend => 1,
        AuditKind::Mint => 2,
        AuditKind::Revoke => 3,
        AuditKind::Read => 4,
        AuditKind::Denied => 5,
        AuditKind::Refer => 6,
        AuditKind::Artifact => 7,
        AuditKind::Hold => 8,
        AuditKind::Lift => 9,
        AuditKind::Floor => 10,
        AuditKind::Expire => 11,
        AuditKind::Erase => 12,
        AuditKind::Key => 13,
        AuditKind::Check => 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_as_what_it_was_written() {
        for (place, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(usize::from(number_of(kind)), place, "{kind:?}");
        }
    }
}
