//! What the columns hold, and how it is read.
//!
//! A time is a number of microseconds since 1970. What is kept until then is rounded up and `now` is rounded down, so that nothing
//! ends because of a column before its record says so. The end of a run takes part in every decision as its column has it ([`grid`]),
//! also where the record is at hand: two that differed by less than a microsecond could each leave an asset to the other. Since when a
//! run is erased is rounded down: whoever has it erased settles it at the same instant.

use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{AssetId, BadName, BlobKey, Digest, HoldId, RunId, TenantId};
use crate::index::codec::{corrupt, decode};
use crate::record::{AssetRecord, AssetState, AssetView, RunRecord};
use crate::retention::{Floor, Next, Own, RunEnd, Stake, Terms, floor, next};

/// The time as a column, or the next that a column can hold.
pub(super) fn up(at: Timestamp) -> i64 {
    let nanoseconds = at.as_nanosecond();
    narrow(nanoseconds.div_euclid(1_000) + i128::from(nanoseconds.rem_euclid(1_000) > 0))
}

/// The time as a column, or the last before it that a column can hold.
pub(super) fn down(at: Timestamp) -> i64 {
    narrow(at.as_nanosecond().div_euclid(1_000))
}

fn narrow(microseconds: i128) -> i64 {
    i64::try_from(microseconds).expect("every timestamp is within 300,000 years of 1970")
}

/// The time of a column.
pub(super) fn time(microseconds: i64) -> Timestamp {
    let last = if microseconds > 0 { Timestamp::MAX } else { Timestamp::MIN };
    Timestamp::from_microsecond(microseconds).unwrap_or(last)
}

/// The end as its columns have it.
pub(super) fn grid(end: RunEnd) -> RunEnd {
    match end {
        RunEnd::At(at) => RunEnd::At(time(up(at))),
        RunEnd::Default(at) => RunEnd::Default(time(up(at))),
        endless => endless,
    }
}

/// The end that these columns have; which kind of endless it is, only the record says, and no decision asks.
pub(super) fn run_end(at: Option<i64>, default: bool) -> RunEnd {
    match at.map(time) {
        None => RunEnd::Open,
        Some(at) if default => RunEnd::Default(at),
        Some(at) => RunEnd::At(at),
    }
}

/// The columns of an end.
pub(super) fn end_columns(end: RunEnd) -> (Option<i64>, bool) {
    (end.until().instant().map(up), matches!(end, RunEnd::Default(_)))
}

/// A number as a column; none that is real is larger than one holds.
pub(super) fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The number of a column.
pub(super) fn counted(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// So many rows at most.
pub(super) fn limited(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn bytes16(what: &str, raw: &[u8]) -> Result<[u8; 16], StorageError> {
    raw.try_into().map_err(|_| corrupt(format!("{what}: not sixteen bytes")))
}

pub(super) fn asset_id(raw: &[u8]) -> Result<AssetId, StorageError> {
    bytes16("asset", raw).map(AssetId::from_bytes)
}

pub(super) fn blob_key(raw: &[u8]) -> Result<BlobKey, StorageError> {
    bytes16("blob", raw).map(BlobKey::from_bytes)
}

pub(super) fn digest(raw: &[u8]) -> Result<Digest, StorageError> {
    raw.try_into().map(Digest).map_err(|_| corrupt("digest: not 32 bytes".into()))
}

pub(super) fn tenant(raw: &str) -> Result<TenantId, StorageError> {
    named(TenantId::parse(raw))
}

pub(super) fn run_id(raw: &str) -> Result<RunId, StorageError> {
    named(RunId::parse(raw))
}

pub(super) fn hold_id(raw: &str) -> Result<HoldId, StorageError> {
    named(HoldId::parse(raw))
}

fn named<T>(name: Result<T, BadName>) -> Result<T, StorageError> {
    name.map_err(|bad| corrupt(format!("name: {bad}")))
}

/// An asset, and when it is looked at.
#[derive(Debug, Clone)]
pub(super) struct AssetRow {
    pub(super) record: AssetRecord,
    pub(super) look: Option<i64>,
    /// How many holds of its own are on it.
    pub(super) holds: i64,
    /// The idempotency key of the request that made it, which goes when the asset is erased.
    pub(super) claim: Option<Vec<u8>>,
}

/// An asset as its statements read it: record, look, holds, claim.
pub(super) type AssetColumns = (Vec<u8>, Option<i64>, i64, Option<Vec<u8>>);

impl AssetRow {
    pub(super) fn read((record, look, holds, claim): AssetColumns) -> Result<Self, StorageError> {
        Ok(Self { record: asset_record(&record)?, look, holds, claim })
    }

    pub(super) fn own(&self) -> Own {
        Own::of(&self.record, self.holds > 0)
    }

    pub(super) fn is_erased(&self) -> bool {
        is_erased(&self.record)
    }
}

pub(super) fn is_erased(record: &AssetRecord) -> bool {
    matches!(record.state, AssetState::Erased { .. })
}

/// A run, and when it is looked at.
#[derive(Debug, Clone)]
pub(super) struct RunRow {
    pub(super) record: RunRecord,
    pub(super) look: Option<i64>,
    /// The last asset that the present look has seen; none if it has not begun.
    pub(super) walked: Option<AssetId>,
    /// How many holds are on it. While there are any it has no look.
    pub(super) holds: i64,
}

/// A run as its statements read it: record, look, walked, holds.
pub(super) type RunColumns = (Vec<u8>, Option<i64>, Option<Vec<u8>>, i64);

impl RunRow {
    pub(super) fn read((record, look, walked, holds): RunColumns) -> Result<Self, StorageError> {
        let walked = walked.map(|raw| asset_id(&raw)).transpose()?;
        Ok(Self { record: decode("run", &record)?, look, walked, holds })
    }

    /// Whether every asset of the run, also one that it references only now, will yet be looked at for the run's sake.
    pub(super) fn will_look_at_all(&self) -> bool {
        self.look.is_some() && self.walked.is_none()
    }

    pub(super) fn is_erased(&self) -> bool {
        self.record.erased_at.is_some()
    }

    pub(super) fn stake(&self) -> Stake {
        stake(&self.record, self.holds > 0)
    }
}

/// What the run does for its assets, by the times that its columns have.
pub(super) fn stake(run: &RunRecord, held: bool) -> Stake {
    Stake { end: grid(run.end), held, erased_at: run.erased_at.map(|at| time(down(at))) }
}

pub(super) fn asset_record(raw: &[u8]) -> Result<AssetRecord, StorageError> {
    decode("asset", raw)
}

/// What keeps an asset, as `sql::VIEWS` and the pages have it: the record, how many holds are on it, its runs with their ends and
/// whether those are defaults, since when they are erased and whether they are held, newest reference first; the names of its own
/// holds, and of those of its runs; how often all of its tenant's URLs were revoked.
pub(super) type KeptRow = (
    Vec<u8>,
    i64,
    Option<Vec<String>>,
    Option<Vec<Option<i64>>>,
    Option<Vec<bool>>,
    Option<Vec<Option<i64>>>,
    Option<Vec<bool>>,
    Option<Vec<String>>,
    Option<Vec<String>>,
    i64,
);

/// What keeps an asset: what it brings with it, the runs that reference it, newest first, and holds.
#[derive(Debug, Clone)]
pub(super) struct Keeping {
    own: Own,
    runs: Vec<RunId>,
    stakes: Vec<Stake>,
    /// At most [`AssetView::HOLDS`].
    pub(super) holds: Vec<HoldId>,
    /// How often all of the tenant's URLs were revoked at once.
    pub(super) epoch: u32,
}

impl Keeping {
    /// Of a new asset: its run, and the names of the holds on that. The epoch is known once it is written.
    pub(super) fn of_new(record: &AssetRecord, run: Option<(RunId, Stake)>, holds: Vec<HoldId>) -> Self {
        let (runs, stakes) = run.into_iter().unzip();
        Self { own: Own::of(record, false), runs, stakes, holds, epoch: 0 }
    }

    pub(super) fn is_held(&self) -> bool {
        !self.holds.is_empty()
    }

    pub(super) fn own(&self) -> Own {
        self.own
    }

    pub(super) fn into_runs(self) -> (Vec<RunId>, Vec<Stake>) {
        (self.runs, self.stakes)
    }

    /// Each run with what it does for the asset.
    pub(super) fn staked(&self) -> Vec<(RunId, Stake)> {
        self.runs.iter().cloned().zip(self.stakes.iter().copied()).collect()
    }

    pub(super) fn floor(&self, terms: &Terms) -> Floor {
        floor(self.own, &self.stakes, terms)
    }

    pub(super) fn next(&self, state: &AssetState, terms: &Terms) -> Next {
        next(state, self.own, &self.stakes, terms)
    }

    /// The asset with its floor, references and holds.
    pub(super) fn view(self, record: AssetRecord, terms: &Terms) -> AssetView {
        let floor = self.floor(terms);
        let reference_count = self.runs.len() as u64;
        let references = self.runs.into_iter().take(AssetView::REFERENCES).collect();
        AssetView { record, floor, references, reference_count, epoch: self.epoch, holds: self.holds }
    }
}

/// The asset and what keeps it.
pub(super) fn kept(row: KeptRow) -> Result<(AssetRecord, Keeping), StorageError> {
    let (record, own_holds, runs, ends, defaults, erased, held, own_names, run_names, epoch) = row;
    let record = asset_record(&record)?;
    let ends = ends.unwrap_or_default().into_iter().zip(defaults.unwrap_or_default());
    let more = erased.unwrap_or_default().into_iter().zip(held.unwrap_or_default());
    let stakes = ends.zip(more).map(|((at, default), (erased_at, held))| read_stake(at, default, erased_at, held));
    let mut keeping = Keeping {
        own: Own::of(&record, own_holds > 0),
        runs: runs.unwrap_or_default().iter().map(|run| run_id(run)).collect::<Result<_, _>>()?,
        stakes: stakes.collect(),
        holds: Vec::new(),
        epoch: epoch_of(epoch),
    };
    for name in own_names.unwrap_or_default().into_iter().chain(run_names.unwrap_or_default()) {
        let name = hold_id(&name)?;
        if keeping.holds.len() < AssetView::HOLDS && !keeping.holds.contains(&name) {
            keeping.holds.push(name);
        }
    }
    Ok((record, keeping))
}

/// The epoch of a column.
pub(super) fn epoch_of(epoch: i64) -> u32 {
    u32::try_from(epoch).unwrap_or(u32::MAX)
}

/// What a run does for its assets, as columns.
pub(super) fn read_stake(at: Option<i64>, default: bool, erased_at: Option<i64>, held: bool) -> Stake {
    Stake { end: run_end(at, default), held, erased_at: erased_at.map(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_never_ends_anything_early() {
        for nanosecond in [0, 1, 999, 1_000, -1, -999, -1_000, 1_800_000_000_000_000_001] {
            let at = Timestamp::from_nanosecond(nanosecond).expect("a time in range");
            assert!(time(up(at)) >= at && time(down(at)) <= at, "{at}");
            assert!(up(at) - down(at) <= 1);
        }
        assert_eq!((time(up(Timestamp::MAX)), time(down(Timestamp::MIN))), (Timestamp::MAX, Timestamp::MIN));
    }

    #[test]
    fn a_time_of_whole_microseconds_is_kept_as_it_is() {
        let at = Timestamp::from_microsecond(1_800_000_000_123_456).expect("a time in range");
        assert_eq!((time(up(at)), time(down(at))), (at, at));
    }
}
