//! What the columns hold, and how it is read.
//!
//! A time is a number of microseconds since 1970. What is kept until then is rounded up and `now` is rounded down, so that nothing
//! ends because of a column before its record says so. The end of a run takes part in every decision as its column has it ([`grid`]),
//! also where the record is at hand: two that differed by less than a microsecond could each leave an asset to the other.

use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{AssetId, BadName, BlobKey, Digest, RunId, TenantId};
use crate::index::codec::{corrupt, decode};
use crate::record::{AssetRecord, AssetView, RunRecord};
use crate::retention::{RunEnd, Terms, floor};

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

fn named<T>(name: Result<T, BadName>) -> Result<T, StorageError> {
    name.map_err(|bad| corrupt(format!("name: {bad}")))
}

/// An asset, and when it is looked at.
#[derive(Debug, Clone)]
pub(super) struct AssetRow {
    pub(super) record: AssetRecord,
    pub(super) look: Option<i64>,
}

impl AssetRow {
    pub(super) fn read((record, look): (Vec<u8>, Option<i64>)) -> Result<Self, StorageError> {
        Ok(Self { record: asset_record(&record)?, look })
    }
}

/// A run, and when it is looked at.
#[derive(Debug, Clone)]
pub(super) struct RunRow {
    pub(super) record: RunRecord,
    pub(super) look: Option<i64>,
    /// The last asset that the present look has seen; none if it has not begun.
    pub(super) walked: Option<AssetId>,
}

/// A run as its statements read it: record, look, walked.
pub(super) type RunColumns = (Vec<u8>, Option<i64>, Option<Vec<u8>>);

impl RunRow {
    pub(super) fn read((record, look, walked): RunColumns) -> Result<Self, StorageError> {
        let walked = walked.map(|raw| asset_id(&raw)).transpose()?;
        Ok(Self { record: decode("run", &record)?, look, walked })
    }

    /// Whether every asset of the run, also one that it references only now, will yet be looked at for the run's sake.
    pub(super) fn will_look_at_all(&self) -> bool {
        self.look.is_some() && self.walked.is_none()
    }

    pub(super) fn end(&self) -> RunEnd {
        grid(self.record.end)
    }
}

pub(super) fn asset_record(raw: &[u8]) -> Result<AssetRecord, StorageError> {
    decode("asset", raw)
}

/// What keeps an asset, as `sql::VIEWS` and the pages have it: its runs, newest reference first.
pub(super) type KeptRow = (Vec<u8>, Option<Vec<String>>, Option<Vec<Option<i64>>>, Option<Vec<bool>>);

/// The asset, and the runs that reference it, newest first.
pub(super) fn kept(row: KeptRow) -> Result<(AssetRecord, Vec<(RunId, RunEnd)>), StorageError> {
    let (record, runs, ends, defaults) = row;
    let (runs, ends, defaults) = (runs.unwrap_or_default(), ends.unwrap_or_default(), defaults.unwrap_or_default());
    let ends = ends.into_iter().zip(defaults).map(|(at, default)| run_end(at, default));
    let runs = runs.iter().zip(ends).map(|(run, end)| Ok((run_id(run)?, end))).collect::<Result<_, StorageError>>()?;
    Ok((asset_record(&record)?, runs))
}

/// The asset with its floor and references.
pub(super) fn view(record: AssetRecord, runs: Vec<(RunId, RunEnd)>, terms: &Terms) -> AssetView {
    let floor = floor(record.created_at, record.asked_until, runs.iter().map(|(_, end)| *end), terms);
    let reference_count = runs.len() as u64;
    let references = runs.into_iter().take(AssetView::REFERENCES).map(|(run, _)| run).collect();
    AssetView { record, floor, references, reference_count }
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
