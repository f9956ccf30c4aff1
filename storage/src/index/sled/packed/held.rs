//! Assets, blobs, runs and sums.

use super::{Pack, Packed, Unpack};
use crate::ids::{AssetId, BlobKey, Digest};
use crate::index::sled::rows::{AssetRow, BlobEntry, BlobState, RunRow, Sum};
use crate::record::{AssetRecord, AssetState, DurableUrl, Labels, Origin, RunRecord, RunStatus};
use crate::retention::RunEnd;

impl Packed for AssetRow {
    fn pack(&self, out: &mut Pack<'_>) {
        let Self { record, look, claim, holds } = self;
        pack_asset(record, out);
        out.option(*look, Pack::time);
        out.option(claim.as_deref(), Pack::text);
        out.number((*holds).into());
    }

    fn unpack(raw: &mut Unpack<'_>) -> Option<Self> {
        Some(Self {
            record: unpack_asset(raw)?,
            look: raw.option(Unpack::time)?,
            claim: raw.option(Unpack::string)?,
            holds: raw.number_as()?,
        })
    }
}

fn pack_asset(record: &AssetRecord, out: &mut Pack<'_>) {
    out.bytes(&record.id.to_bytes());
    out.text(record.tenant.as_str());
    out.option(record.run.as_ref(), |out, run| out.text(run.as_str()));
    out.text(&record.kind);
    out.text(&record.mime_type);
    pack_declared(record, out);
    out.number(record.bytes);
    out.bytes(&record.sha256.0);
    out.bytes(&record.blob.to_bytes());
    out.json(&record.facts);
    for label in [&record.labels.name, &record.labels.alt, &record.labels.title] {
        out.option(label.as_deref(), Pack::text);
    }
    for part in [&record.origin.node_id, &record.origin.envelope_id, &record.origin.correlation_id] {
        out.option(part.as_deref(), Pack::text);
    }
    out.text(&record.origin.source);
    out.time(record.created_at);
    out.option(record.asked_until, Pack::time);
    out.text(&record.durable.kid);
    out.signed(record.durable.issued_at);
    out.number(record.durable.generation.into());
    pack_state(&record.state, out);
    out.number(record.revision);
}

fn unpack_asset(raw: &mut Unpack<'_>) -> Option<AssetRecord> {
    let id = AssetId::from_bytes(raw.bytes()?);
    let (tenant, run) = (raw.name()?, raw.option(Unpack::name)?);
    let (kind, mime_type) = (raw.string()?, raw.string()?);
    Some(AssetRecord {
        id,
        tenant,
        run,
        kind,
        declared_mime_type: unpack_declared(&mime_type, raw)?,
        mime_type,
        bytes: raw.number()?,
        sha256: Digest(raw.bytes()?),
        blob: BlobKey::from_bytes(raw.bytes()?),
        facts: raw.json()?,
        labels: Labels {
            name: raw.option(Unpack::string)?,
            alt: raw.option(Unpack::string)?,
            title: raw.option(Unpack::string)?,
        },
        origin: Origin {
            node_id: raw.option(Unpack::string)?,
            envelope_id: raw.option(Unpack::string)?,
            correlation_id: raw.option(Unpack::string)?,
            source: raw.string()?,
        },
        created_at: raw.time()?,
        asked_until: raw.option(Unpack::time)?,
        durable: DurableUrl { kid: raw.string()?, issued_at: raw.signed()?, generation: raw.number_as()? },
        state: unpack_state(raw)?,
        revision: raw.number()?,
    })
}

/// Most senders say what it is.
fn pack_declared(record: &AssetRecord, out: &mut Pack<'_>) {
    match &record.declared_mime_type {
        None => out.byte(0),
        Some(declared) if *declared == record.mime_type => out.byte(1),
        Some(declared) => {
            out.byte(2);
            out.text(declared);
        }
    }
}

fn unpack_declared(mime_type: &str, raw: &mut Unpack<'_>) -> Option<Option<String>> {
    match raw.byte()? {
        0 => Some(None),
        1 => Some(Some(mime_type.to_owned())),
        2 => raw.string().map(Some),
        _ => None,
    }
}

fn pack_state(state: &AssetState, out: &mut Pack<'_>) {
    match state {
        AssetState::Live => out.byte(0),
        AssetState::Expired { at } => {
            out.byte(1);
            out.time(*at);
        }
        AssetState::Erased { at, same_bytes, bytes_removed } => {
            out.byte(2);
            out.time(*at);
            out.number(same_bytes.len() as u64);
            same_bytes.iter().for_each(|id| out.bytes(&id.to_bytes()));
            out.byte((*bytes_removed).into());
        }
    }
}

fn unpack_state(raw: &mut Unpack<'_>) -> Option<AssetState> {
    match raw.byte()? {
        0 => Some(AssetState::Live),
        1 => Some(AssetState::Expired { at: raw.time()? }),
        2 => {
            let (at, same) = (raw.time()?, raw.number()?);
            let same_bytes = (0..same).map(|_| raw.bytes().map(AssetId::from_bytes)).collect::<Option<_>>()?;
            Some(AssetState::Erased { at, same_bytes, bytes_removed: raw.byte()? == 1 })
        }
        _ => None,
    }
}

impl Packed for BlobEntry {
    fn pack(&self, out: &mut Pack<'_>) {
        match self.state {
            BlobState::Announced { alive_at, reserved } => {
                out.byte(0);
                out.time(alive_at);
                out.option(reserved, Pack::number);
            }
            BlobState::Held { holders } => {
                out.byte(1);
                out.number(holders);
            }
            BlobState::Condemned { remove_at } => {
                out.byte(2);
                out.time(remove_at);
            }
            BlobState::Discarded { remove_at } => {
                out.byte(3);
                out.time(remove_at);
            }
            BlobState::Doomed => out.byte(4),
        }
        out.option(self.bytes, Pack::number);
        out.option(self.sha256, |out, sha256| out.bytes(&sha256.0));
        out.option(self.asset, |out, id| out.bytes(&id.to_bytes()));
    }

    fn unpack(raw: &mut Unpack<'_>) -> Option<Self> {
        let state = match raw.byte()? {
            0 => BlobState::Announced { alive_at: raw.time()?, reserved: raw.option(Unpack::number)? },
            1 => BlobState::Held { holders: raw.number()? },
            2 => BlobState::Condemned { remove_at: raw.time()? },
            3 => BlobState::Discarded { remove_at: raw.time()? },
            4 => BlobState::Doomed,
            _ => return None,
        };
        Some(Self {
            state,
            bytes: raw.option(Unpack::number)?,
            sha256: raw.option(|raw| raw.bytes().map(Digest))?,
            asset: raw.option(|raw| raw.bytes().map(AssetId::from_bytes))?,
        })
    }
}

impl Packed for RunRow {
    fn pack(&self, out: &mut Pack<'_>) {
        let Self { record, look, walked, holds } = self;
        out.text(record.id.as_str());
        out.byte(record.registered.into());
        out.byte(match record.status {
            RunStatus::Open => 0,
            RunStatus::Closed => 1,
        });
        match record.end {
            RunEnd::Open => out.byte(0),
            RunEnd::Forever => out.byte(1),
            RunEnd::At(at) => {
                out.byte(2);
                out.time(at);
            }
            RunEnd::Default(at) => {
                out.byte(3);
                out.time(at);
            }
        }
        out.option(record.retention_after_close, Pack::signed);
        out.option(record.fork_of.as_ref(), |out, run| out.text(run.as_str()));
        out.option(record.workflow_id.as_deref(), Pack::text);
        out.time(record.created_at);
        out.option(record.erased_at, Pack::time);
        out.number(record.revision);
        out.option(*look, Pack::time);
        out.option(*walked, |out, id| out.bytes(&id.to_bytes()));
        out.number((*holds).into());
    }

    fn unpack(raw: &mut Unpack<'_>) -> Option<Self> {
        let id = raw.name()?;
        let registered = raw.byte()? == 1;
        let status = match raw.byte()? {
            0 => RunStatus::Open,
            1 => RunStatus::Closed,
            _ => return None,
        };
        let end = match raw.byte()? {
            0 => RunEnd::Open,
            1 => RunEnd::Forever,
            2 => RunEnd::At(raw.time()?),
            3 => RunEnd::Default(raw.time()?),
            _ => return None,
        };
        let record = RunRecord {
            id,
            registered,
            status,
            end,
            retention_after_close: raw.option(Unpack::signed)?,
            fork_of: raw.option(Unpack::name)?,
            workflow_id: raw.option(Unpack::string)?,
            created_at: raw.time()?,
            erased_at: raw.option(Unpack::time)?,
            revision: raw.number()?,
        };
        Some(Self {
            record,
            look: raw.option(Unpack::time)?,
            walked: raw.option(|raw| raw.bytes().map(AssetId::from_bytes))?,
            holds: raw.number_as()?,
        })
    }
}

impl Packed for Sum {
    fn pack(&self, out: &mut Pack<'_>) {
        let Self { bytes, assets, reserved_bytes, reserved_assets } = *self;
        [bytes, assets, reserved_bytes, reserved_assets].into_iter().for_each(|number| out.number(number));
    }

    fn unpack(raw: &mut Unpack<'_>) -> Option<Self> {
        Some(Self {
            bytes: raw.number()?,
            assets: raw.number()?,
            reserved_bytes: raw.number()?,
            reserved_assets: raw.number()?,
        })
    }
}
