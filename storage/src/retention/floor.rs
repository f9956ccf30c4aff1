//! What keeps an asset, how long, and what comes next.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{RunEnd, Terms, Until, after};
use crate::ids::{HoldId, RunId};
use crate::record::{AssetRecord, AssetState, RunRecord};

/// How long an asset is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// It is live until then; grace included.
    pub until: Until,
    /// Because of this.
    pub source: FloorSource,
    /// Inside this time not even its owner may delete it; grace included. `None`: nothing protects it.
    pub protected: Option<Until>,
}

/// What a floor comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FloorSource {
    /// A run's explicit end.
    Run,
    /// A run of which nobody said how long its log is kept.
    Default,
    /// The sender's own wish.
    Ask,
    /// A hold.
    Hold,
    /// Nothing references it yet.
    Unreferenced,
}

/// What an asset brings with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own {
    /// When it was stored.
    pub created_at: Timestamp,
    /// How long its sender asked for it to be kept.
    pub asked_until: Option<Timestamp>,
    /// Whether a hold of its own is on it.
    pub held: bool,
}

impl Own {
    /// Of this asset.
    pub fn of(record: &AssetRecord, held: bool) -> Self {
        Self { created_at: record.created_at, asked_until: record.asked_until, held }
    }
}

/// What one run does for the assets that it references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stake {
    /// When its log ends.
    pub end: RunEnd,
    /// Whether a hold is on it.
    pub held: bool,
    /// Since when it is erased.
    pub erased_at: Option<Timestamp>,
}

impl Stake {
    /// Of this run.
    pub fn of(run: &RunRecord, held: bool) -> Self {
        Self { end: run.end, held, erased_at: run.erased_at }
    }

    /// When its log ends: not while it is held.
    pub fn until(self) -> Until {
        if self.held { Until::Endless } else { self.end.until() }
    }

    /// Until when it keeps what it references: grace included, of which an erased run has none.
    pub fn keeps(self, terms: &Terms) -> Until {
        match self.erased_at {
            Some(at) => Until::At(at),
            None => self.until().plus(terms.grace),
        }
    }
}

/// The floor of an asset: the latest of everything that keeps it.
///
/// Without a run that references it, it is kept for `terms.unreferenced` from its creation, but nothing stops its owner from
/// deleting it sooner. An erased run keeps nothing; an asset that only erased runs reference is past its floor, whatever else was
/// wished for it.
pub fn floor(own: Own, stakes: &[Stake], terms: &Terms) -> Floor {
    if own.held || stakes.iter().any(|stake| stake.held) {
        return Floor { until: Until::Endless, source: FloorSource::Hold, protected: Some(Until::Endless) };
    }
    if let Some(at) = erased_with_its_runs(own.held, stakes) {
        return Floor { until: Until::At(at), source: FloorSource::Run, protected: None };
    }
    let ask = own.asked_until.map(|at| (Until::At(at).plus(terms.grace), FloorSource::Ask));
    let runs = stakes.iter().filter(|stake| stake.erased_at.is_none());
    let runs = runs.map(|stake| (stake.keeps(terms), stake.end.source()));
    let protected = runs.chain(ask).max_by_key(|(until, _)| *until);
    let unreferenced = stakes.is_empty().then(|| {
        let until = Until::At(after(own.created_at, terms.unreferenced)).plus(terms.grace);
        (until, FloorSource::Unreferenced)
    });
    let (until, source) = protected
        .into_iter()
        .chain(unreferenced)
        .max_by_key(|(until, _)| *until)
        .expect("an asset without a run has the unreferenced term, and one with an unerased run has that run's");
    Floor { until, source, protected: protected.map(|(until, _)| until) }
}

/// Since when an asset is to be erased with its runs: all that reference it are erased, and no hold is on it.
pub fn erased_with_its_runs(held: bool, stakes: &[Stake]) -> Option<Timestamp> {
    if held {
        return None;
    }
    // An Option is less than any Some: one run that is not erased makes it `None`.
    let least = stakes.iter().map(|stake| stake.erased_at).min().flatten();
    least.and_then(|_| stakes.iter().filter_map(|stake| stake.erased_at).max())
}

/// What comes next in the life of an asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It expires at its floor.
    Expire(Until),
    /// It is erased, as all of its runs are.
    Erase(Until),
    /// Its tombstone is dropped.
    Drop(Until),
}

impl Next {
    /// When that comes.
    pub fn until(self) -> Until {
        match self {
            Self::Expire(until) | Self::Erase(until) | Self::Drop(until) => until,
        }
    }
}

/// What comes next, and when: the one rule by which every sweep goes.
pub fn next(state: &AssetState, own: Own, stakes: &[Stake], terms: &Terms) -> Next {
    let died_at = match state {
        AssetState::Erased { at, .. } => *at,
        AssetState::Live | AssetState::Expired { .. } if erased_with_its_runs(own.held, stakes).is_some() => {
            return Next::Erase(floor(own, stakes, terms).until);
        }
        AssetState::Live => return Next::Expire(floor(own, stakes, terms).until),
        AssetState::Expired { at } => *at,
    };
    Next::Drop(if own.held { Until::Endless } else { tombstone(died_at, stakes, terms) })
}

/// Until when the row of a dead asset stays, so that whoever reads the log of a run learns what became of it: the term counts from the
/// end of the last run that references it, or from its death if none does. A hold keeps it too.
fn tombstone(died_at: Timestamp, stakes: &[Stake], terms: &Terms) -> Until {
    let last = stakes.iter().map(|stake| stake.until()).max();
    last.unwrap_or(Until::At(died_at)).plus(terms.tombstone_record)
}

/// Something that protects an asset, and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protector {
    /// What it is.
    pub by: ProtectedBy,
    /// Until when it does.
    pub until: Until,
}

/// What protects an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtectedBy {
    /// A hold on it, or on a run that references it.
    Hold(HoldId),
    /// A run that references it.
    Run(RunId),
    /// Its sender's wish to keep it until then.
    Ask(Timestamp),
    /// So much longer than the last of them.
    Grace(SignedDuration),
}

/// What still protects an asset at `now`: holds first, then runs as they are given, the sender's wish, and the grace, which reaches
/// furthest unless something has no end; at most `limit`, of which the last two always find room.
pub fn protectors(
    own: Own,
    holds: impl IntoIterator<Item = HoldId>,
    runs: &[(RunId, Stake)],
    limit: usize,
    terms: &Terms,
    now: Timestamp,
) -> Vec<Protector> {
    let stakes: Vec<Stake> = runs.iter().map(|(_, stake)| *stake).collect();
    let still = |by, until: Until| (!until.is_past(now)).then_some(Protector { by, until });
    let ask = own.asked_until.and_then(|at| still(ProtectedBy::Ask(at), Until::At(at)));
    let reach = floor(own, &stakes, terms).protected.filter(|until| until.instant().is_some());
    let grace = reach.filter(|_| !terms.grace.is_zero());
    let grace = grace.and_then(|until| still(ProtectedBy::Grace(terms.grace), until));
    // All runs erased: nothing protects it, not even a wish.
    let ask = ask.filter(|_| erased_with_its_runs(own.held, &stakes).is_none());
    let room = limit.saturating_sub(usize::from(ask.is_some()) + usize::from(grace.is_some()));
    let holds = holds.into_iter().filter_map(|hold| still(ProtectedBy::Hold(hold), Until::Endless));
    let runs = runs.iter().filter(|(_, stake)| stake.erased_at.is_none());
    let runs = runs.filter_map(|(run, stake)| still(ProtectedBy::Run(run.clone()), stake.end.until()));
    holds.chain(runs).take(room).chain(ask).chain(grace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(n: i64) -> Timestamp {
        Timestamp::from_second(n * 86_400).expect("a time in range")
    }

    /// A day of grace.
    fn terms() -> Terms {
        Terms {
            default_run_log: SignedDuration::from_hours(30 * 24),
            unreferenced: SignedDuration::from_hours(24),
            grace: SignedDuration::from_hours(24),
            tombstone_bytes: SignedDuration::from_hours(24),
            tombstone_record: SignedDuration::from_hours(90 * 24),
        }
    }

    fn own(ask: Option<i64>) -> Own {
        Own { created_at: day(0), asked_until: ask.map(day), held: false }
    }

    fn ends(end: RunEnd) -> Stake {
        Stake { end, held: false, erased_at: None }
    }

    fn erased(on: i64) -> Stake {
        Stake { end: RunEnd::At(day(on)), held: false, erased_at: Some(day(on)) }
    }

    #[test]
    fn the_latest_of_all_keeps_an_asset() {
        use FloorSource::{Ask, Default, Hold, Run, Unreferenced};
        let at = |n| Until::At(day(n));
        let held = |stake| Stake { held: true, ..stake };
        for (name, own, stakes, right) in [
            ("nothing", own(None), vec![], (at(2), Unreferenced, None)),
            ("a wish", own(Some(9)), vec![], (at(10), Ask, Some(at(10)))),
            ("a short wish", own(Some(0)), vec![], (at(2), Unreferenced, Some(at(1)))),
            (
                "two runs",
                own(Some(3)),
                vec![ends(RunEnd::At(day(4))), ends(RunEnd::Default(day(8)))],
                (at(9), Default, Some(at(9))),
            ),
            (
                "an open run",
                own(Some(3)),
                vec![ends(RunEnd::Open), ends(RunEnd::At(day(4)))],
                (Until::Endless, Run, Some(Until::Endless)),
            ),
            ("a hold", Own { held: true, ..own(None) }, vec![], (Until::Endless, Hold, Some(Until::Endless))),
            (
                "a hold on a run",
                own(None),
                vec![held(ends(RunEnd::At(day(4))))],
                (Until::Endless, Hold, Some(Until::Endless)),
            ),
            ("an erased run", own(Some(9)), vec![erased(3), erased(4)], (at(4), Run, None)),
            (
                "an erased run and another",
                own(None),
                vec![erased(7), ends(RunEnd::At(day(4)))],
                (at(5), Run, Some(at(5))),
            ),
            (
                "an erased run and a hold",
                Own { held: true, ..own(None) },
                vec![erased(3)],
                (Until::Endless, Hold, Some(Until::Endless)),
            ),
        ] {
            let floor = floor(own, &stakes, &terms());
            assert_eq!((floor.until, floor.source, floor.protected), right, "{name}");
        }
    }

    #[test]
    fn what_comes_next_is_decided_by_state_runs_and_holds() {
        let at = |n| Until::At(day(n));
        let (live, expired) = (AssetState::Live, AssetState::Expired { at: day(2) });
        let gone = AssetState::Erased { at: day(2), same_bytes: vec![], bytes_removed: true };
        let held = Own { held: true, ..own(None) };
        let run = ends(RunEnd::At(day(4)));
        for (name, state, own, stakes, right) in [
            ("live", &live, own(None), vec![run], Next::Expire(at(5))),
            ("live and held", &live, held, vec![run], Next::Expire(Until::Endless)),
            ("live, its runs erased", &live, own(None), vec![erased(3)], Next::Erase(at(3))),
            ("live and held, its runs erased", &live, held, vec![erased(3)], Next::Expire(Until::Endless)),
            ("live, one run erased", &live, own(None), vec![erased(3), run], Next::Expire(at(5))),
            ("expired", &expired, own(None), vec![], Next::Drop(at(92))),
            ("expired, with a run", &expired, own(None), vec![run], Next::Drop(at(94))),
            ("expired, its runs erased", &expired, own(None), vec![erased(3)], Next::Erase(at(3))),
            ("expired and held", &expired, held, vec![erased(3)], Next::Drop(Until::Endless)),
            ("erased", &gone, own(None), vec![erased(3)], Next::Drop(at(93))),
        ] {
            assert_eq!(next(state, own, &stakes, &terms()), right, "{name}");
        }
    }

    #[test]
    fn a_tombstone_counts_from_the_last_run_or_from_the_death() {
        let stays = |stakes: &[Stake]| tombstone(day(3), stakes, &terms());

        assert_eq!(stays(&[]), Until::At(day(93)));
        assert_eq!(stays(&[ends(RunEnd::At(day(1))), ends(RunEnd::Default(day(2)))]), Until::At(day(92)));
        assert_eq!(stays(&[ends(RunEnd::At(day(9))), ends(RunEnd::Open)]), Until::Endless);
        assert_eq!(stays(&[Stake { held: true, ..ends(RunEnd::At(day(9))) }]), Until::Endless);
    }

    #[test]
    fn what_protects_an_asset_is_named_with_its_own_end_and_the_grace_behind_it() {
        let run = |name| RunId::parse(name).expect("a run");
        let hold = HoldId::parse("audit").expect("a hold");
        let runs = [
            (run("long"), ends(RunEnd::At(day(9)))),
            (run("short"), ends(RunEnd::At(day(2)))),
            (run("gone"), erased(1)),
        ];
        let named = |holds: &[HoldId], limit, now| {
            let own = Own { held: !holds.is_empty(), ..own(Some(4)) };
            protectors(own, holds.to_vec(), &runs, limit, &terms(), day(now))
        };
        let at = |by, n| Protector { by, until: Until::At(day(n)) };
        let long = at(ProtectedBy::Run(run("long")), 9);
        let short = at(ProtectedBy::Run(run("short")), 2);
        let ask = at(ProtectedBy::Ask(day(4)), 4);
        let grace = at(ProtectedBy::Grace(terms().grace), 10);
        let held = Protector { by: ProtectedBy::Hold(hold.clone()), until: Until::Endless };

        assert_eq!(named(&[], 9, 1), [long.clone(), short, ask.clone(), grace.clone()]);
        assert_eq!(named(&[], 3, 1), [long.clone(), ask.clone(), grace.clone()]);
        assert_eq!(named(&[], 9, 9), [grace], "the run has ended, and only the grace still protects");
        assert_eq!(named(&[], 9, 10), []);
        assert_eq!(named(&[hold], 2, 3), [held, ask]);
    }
}
