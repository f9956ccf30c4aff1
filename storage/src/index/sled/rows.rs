//! The rows themselves, and how they are read.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::draft::Rows;
use super::keys::{Key, Parts, Space};
use super::packed::Row;
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::{AssetId, BlobKey, Digest, HoldId, RunId, TenantId};
use crate::index::codec::corrupt;
use crate::record::{AssetRecord, AssetState, AssetView, Hold, HoldOn, RunRecord};
use crate::retention::{Floor, Next, Own, Stake, Terms, floor, next};

/// An asset, and when it is looked at.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(super) struct AssetRow {
    pub(super) record: AssetRecord,
    /// Its entry in the queue of looks.
    pub(super) look: Option<Timestamp>,
    /// The idempotency key of the request that made it, which goes when the asset is erased.
    #[serde(default)]
    pub(super) claim: Option<String>,
    /// How many holds of its own are on it.
    #[serde(default)]
    pub(super) holds: u32,
}

impl AssetRow {
    pub(super) fn own(&self) -> Own {
        Own::of(&self.record, self.holds > 0)
    }

    pub(super) fn is_erased(&self) -> bool {
        matches!(self.record.state, AssetState::Erased { .. })
    }
}

/// A run, and when it is looked at.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(super) struct RunRow {
    pub(super) record: RunRecord,
    /// Its entry in the queue of looks.
    pub(super) look: Option<Timestamp>,
    /// The last asset that the present look has seen; none if it has not begun.
    pub(super) walked: Option<AssetId>,
    /// How many holds are on it. While there are any it has no look.
    #[serde(default)]
    pub(super) holds: u32,
}

impl RunRow {
    pub(super) fn stake(&self) -> Stake {
        Stake::of(&self.record, self.holds > 0)
    }

    pub(super) fn is_erased(&self) -> bool {
        self.record.erased_at.is_some()
    }

    /// Whether every asset of the run, also one that it references only now, will yet be looked at for the run's sake.
    pub(super) fn will_look_at_all(&self) -> bool {
        self.look.is_some() && self.walked.is_none()
    }
}

/// A blob, from the announcement of its upload until its bytes are gone.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(super) struct BlobEntry {
    pub(super) state: BlobState,
    /// How many bytes it has, once that is known.
    pub(super) bytes: Option<u64>,
    /// What they are, if an asset holds them or did.
    pub(super) sha256: Option<Digest>,
    /// The asset that the upload was to become, as long as it has not.
    #[serde(default)]
    pub(super) asset: Option<AssetId>,
}

impl BlobEntry {
    pub(super) fn is_announced(&self) -> bool {
        matches!(self.state, BlobState::Announced { .. })
    }

    /// How many bytes are reserved for its upload, while that goes on.
    pub(super) fn reserved(&self) -> Option<u64> {
        match self.state {
            BlobState::Announced { reserved, .. } => reserved,
            _ => None,
        }
    }
}

/// Where a blob is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum BlobState {
    /// Its upload goes on, with so many bytes reserved for it, if any were.
    Announced {
        alive_at: Timestamp,
        #[serde(default)]
        reserved: Option<u64>,
    },
    /// Live assets hold it.
    Held { holders: u64 },
    /// Nothing holds it; until it is doomed the same bytes may take it up again.
    Condemned { remove_at: Timestamp },
    /// A copy of bytes that were there already; nothing will ever hold it.
    Discarded { remove_at: Timestamp },
    /// Its bytes are being removed, or are gone.
    Doomed,
}

/// An idempotency key, and who has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ClaimRow {
    pub(super) holder: [u8; 16],
    pub(super) state: ClaimState,
}

/// How far a claim's request is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum ClaimState {
    Held { lapses_at: Timestamp },
    Settled { asset: AssetId, fingerprint: Digest, keep_until: Timestamp },
}

impl ClaimRow {
    /// From when on it is as if it had never been.
    pub(super) fn until(&self) -> Timestamp {
        match self.state {
            ClaimState::Held { lapses_at } => lapses_at,
            ClaimState::Settled { keep_until, .. } => keep_until,
        }
    }
}

/// A revoked URL.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RevokedRow {
    pub(super) keep_until: Timestamp,
}

/// An audit event that waits for its place.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(super) struct WaitingRow {
    pub(super) tenant: TenantId,
    pub(super) event: AuditEvent,
}

/// The last sealed row of a tenant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct HeadRow {
    pub(super) seq: u64,
    pub(super) hash: Digest,
}

/// What a tenant's live assets come to, and what is reserved for its uploads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(Serialize))]
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) assets: u64,
    #[serde(default)]
    pub(super) reserved_bytes: u64,
    #[serde(default)]
    pub(super) reserved_assets: u64,
}

/// What keeps an asset: what it brings with it, and the runs that reference it, newest first.
#[derive(Debug)]
pub(super) struct Keeping {
    own: Own,
    pub(super) stakes: Vec<Stake>,
    /// The newest references, at most [`AssetView::REFERENCES`].
    references: Vec<RunId>,
    /// At most [`AssetView::HOLDS`].
    pub(super) holds: Vec<HoldId>,
    epoch: u32,
    /// Whether one of the runs has a look that will see the asset at its floor or sooner.
    pub(super) seen_by_run: bool,
}

impl Keeping {
    pub(super) fn floor(&self, terms: &Terms) -> Floor {
        floor(self.own, &self.stakes, terms)
    }

    pub(super) fn next(&self, state: &AssetState, terms: &Terms) -> Next {
        next(state, self.own, &self.stakes, terms)
    }

    pub(super) fn is_held(&self) -> bool {
        !self.holds.is_empty()
    }

    pub(super) fn view(self, record: AssetRecord, terms: &Terms) -> AssetView {
        let (floor, reference_count) = (self.floor(terms), self.stakes.len() as u64);
        let Self { references, holds, epoch, .. } = self;
        AssetView { record, floor, references, reference_count, epoch, holds }
    }
}

impl<'a> Rows<'a> {
    pub(super) fn read<T: Row>(self, what: &str, key: &Key) -> Result<Option<T>, StorageError> {
        self.get(key)?.map(|raw| T::read(what, &raw)).transpose()
    }

    pub(super) fn asset(self, tenant: &TenantId, id: AssetId) -> Result<Option<AssetRow>, StorageError> {
        self.read("asset", &Key::asset(tenant, id))
    }

    pub(super) fn run(self, tenant: &TenantId, id: &RunId) -> Result<Option<RunRow>, StorageError> {
        self.read("run", &Key::run(tenant, id))
    }

    /// How often all of the tenant's URLs were revoked at once.
    pub(super) fn epoch(self, tenant: &TenantId) -> Result<u32, StorageError> {
        Ok(self.read("epoch", &Key::of(Space::Epochs, tenant))?.unwrap_or(0))
    }

    pub(super) fn blob(self, tenant: &TenantId, blob: BlobKey) -> Result<Option<BlobEntry>, StorageError> {
        self.read("blob", &Key::blob(tenant, blob))
    }

    pub(super) fn claim(self, tenant: &TenantId, name: &str) -> Result<Option<ClaimRow>, StorageError> {
        self.read("claim", &Key::named(Space::Claims, tenant, name))
    }

    /// The blob that can be shared for these bytes.
    pub(super) fn shareable(self, tenant: &TenantId, sha256: &Digest) -> Result<Option<BlobKey>, StorageError> {
        let Some(raw) = self.get(&Key::digest(tenant, sha256))? else {
            return Ok(None);
        };
        let blob = raw.as_ref().try_into().map_err(|_| corrupt("digest: not a blob key".into()))?;
        Ok(Some(BlobKey::from_bytes(blob)))
    }

    /// The place of the asset's reference by the run, if there is one.
    pub(super) fn place(self, tenant: &TenantId, run: &RunId, asset: AssetId) -> Result<Option<u64>, StorageError> {
        let Some(raw) = self.get(&Key::run_asset(tenant, run, asset))? else {
            return Ok(None);
        };
        let place = raw.as_ref().try_into().map_err(|_| corrupt("reference: not a place".into()))?;
        Ok(Some(u64::from_be_bytes(place)))
    }

    /// The runs that reference the asset, newest first, each with its place.
    pub(super) fn runs_of(
        self,
        tenant: &TenantId,
        asset: AssetId,
    ) -> impl Iterator<Item = Result<(u64, RunId), StorageError>> + use<'a> {
        let prefix = Key::runs_of(tenant, asset);
        let length = prefix.as_bytes().len();
        self.scan(&prefix).map(move |row| {
            let (key, _) = row?;
            // What is behind the prefix reads as the parts of a key do, which begin behind a space of one byte.
            let mut parts = Parts::of(&key[length - 1..]);
            Ok((!parts.number()?, parts.name()?))
        })
    }

    /// The assets that the run references, in the order of their names, from behind `after`.
    pub(super) fn assets_of(
        self,
        tenant: &TenantId,
        run: &RunId,
        after: Option<AssetId>,
    ) -> impl Iterator<Item = Result<AssetId, StorageError>> + use<'a> {
        let prefix = Key::assets_of(tenant, run);
        let length = prefix.as_bytes().len();
        let after = after.map(|asset| Key::run_asset(tenant, run, asset));
        self.scan_after(&prefix, after.as_ref()).map(move |row| Parts::of(&row?.0[length - 1..]).asset())
    }

    /// What keeps the asset: a look at each run that references it.
    pub(super) fn keeping(self, row: &AssetRow) -> Result<Keeping, StorageError> {
        let (tenant, id) = (&row.record.tenant, row.record.id);
        let mut keeping = self.keeping_itself(row)?;
        for reference in self.runs_of(tenant, id) {
            let (_, id) = reference?;
            let run = self.referencing(tenant, &id)?;
            self.add_to(&mut keeping, tenant, &run)?;
        }
        Ok(keeping)
    }

    /// What keeps an asset that only this run references, or none.
    pub(super) fn keeping_of_new(self, row: &AssetRow, run: Option<&RunRow>) -> Result<Keeping, StorageError> {
        let mut keeping = self.keeping_itself(row)?;
        if let Some(run) = run {
            self.add_to(&mut keeping, &row.record.tenant, run)?;
        }
        Ok(keeping)
    }

    fn keeping_itself(self, row: &AssetRow) -> Result<Keeping, StorageError> {
        let (tenant, id) = (&row.record.tenant, row.record.id);
        let mut keeping = Keeping {
            own: row.own(),
            stakes: Vec::new(),
            references: Vec::new(),
            holds: Vec::new(),
            epoch: self.epoch(tenant)?,
            seen_by_run: false,
        };
        if row.holds > 0 {
            self.name_holds(tenant, &HoldOn::Asset(id), &mut keeping.holds)?;
        }
        Ok(keeping)
    }

    fn add_to(self, keeping: &mut Keeping, tenant: &TenantId, run: &RunRow) -> Result<(), StorageError> {
        let id = &run.record.id;
        keeping.seen_by_run |= run.will_look_at_all();
        keeping.stakes.push(run.stake());
        if run.holds > 0 {
            self.name_holds(tenant, &HoldOn::Run(id.clone()), &mut keeping.holds)?;
        }
        if keeping.references.len() < AssetView::REFERENCES {
            keeping.references.push(id.clone());
        }
        Ok(())
    }

    /// Adds the names of these holds that are not there, as long as there is room.
    fn name_holds(self, tenant: &TenantId, on: &HoldOn, named: &mut Vec<HoldId>) -> Result<(), StorageError> {
        for hold in self.holds(tenant, on, None) {
            if named.len() >= AssetView::HOLDS {
                break;
            }
            let id = hold?.id;
            if !named.contains(&id) {
                named.push(id);
            }
        }
        Ok(())
    }

    /// The holds on the asset or run itself, in the order of their names, from behind `after`.
    pub(super) fn holds(
        self,
        tenant: &TenantId,
        on: &HoldOn,
        after: Option<&HoldId>,
    ) -> impl Iterator<Item = Result<Hold, StorageError>> + use<'a> {
        let after = after.map(|id| Key::hold(tenant, on, id));
        self.scan_after(&Key::holds_on(tenant, on), after.as_ref()).map(|row| Hold::read("hold", &row?.1))
    }

    /// Whether a hold is on the asset, or on a run that references it.
    pub(super) fn is_held(self, row: &AssetRow) -> Result<bool, StorageError> {
        if row.holds > 0 {
            return Ok(true);
        }
        for reference in self.runs_of(&row.record.tenant, row.record.id) {
            if self.referencing(&row.record.tenant, &reference?.1)?.holds > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The assets that have these bytes or had them, and were not erased, in the order of their names, from behind `after`.
    pub(super) fn same(
        self,
        tenant: &TenantId,
        sha256: &Digest,
        after: Option<AssetId>,
    ) -> impl Iterator<Item = Result<AssetId, StorageError>> + use<'a> {
        let prefix = Key::same_as(tenant, sha256);
        let length = prefix.as_bytes().len();
        let after = after.map(|asset| Key::same(tenant, sha256, asset));
        self.scan_after(&prefix, after.as_ref()).map(move |row| Parts::of(&row?.0[length - 1..]).asset())
    }

    /// A run that a reference names.
    pub(super) fn referencing(self, tenant: &TenantId, id: &RunId) -> Result<RunRow, StorageError> {
        self.run(tenant, id)?.ok_or_else(|| corrupt(format!("run: {id} is referenced and has no row")))
    }
}
