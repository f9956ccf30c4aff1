//! What may happen, and how often.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::super::stage::days;
use crate::record::RunStatus;
use crate::retention::Terms;

/// One story, told by chance.
#[derive(Debug, Clone)]
pub(super) struct Sequence {
    pub(super) terms: Terms,
    pub(super) steps: Vec<Step>,
}

/// One thing, and how long after the last it happens; a clock may step back.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) after_hours: i64,
    pub(super) act: Act,
}

/// Something that happens. Numbers pick from what there is, as often around as need be.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Announce {
        tenant: usize,
    },
    Alive {
        upload: usize,
    },
    Withdraw {
        upload: usize,
    },
    /// Reserves for an upload, which it begins or which is there or was, under a quota.
    Reserve {
        upload: usize,
        bytes: u64,
        most_bytes: Option<u64>,
        most_assets: Option<u64>,
        begin: bool,
    },
    Upload {
        tenant: usize,
        run: Option<usize>,
        bytes: usize,
        ask_days: Option<i64>,
        claim: Option<(usize, u8)>,
    },
    /// Publishes an upload that was announced earlier, and may be published or doomed by now.
    Publish {
        upload: usize,
        run: Option<usize>,
        bytes: usize,
    },
    Claim {
        tenant: usize,
        name: usize,
        holder: u8,
    },
    Renew {
        tenant: usize,
        name: usize,
        holder: u8,
    },
    Release {
        tenant: usize,
        name: usize,
        holder: u8,
    },
    Amend {
        asset: usize,
        expected: Option<u64>,
    },
    Raise {
        asset: usize,
    },
    Resign {
        asset: usize,
    },
    Revoke {
        tenant: usize,
        url: usize,
        keep_days: i64,
    },
    /// Mints a URL of that name, or once more.
    Mint {
        asset: usize,
        url: usize,
        label: Option<usize>,
        uses: Option<u64>,
        live_days: i64,
    },
    TakeUse {
        tenant: usize,
        url: usize,
    },
    RevokeUrls {
        tenant: usize,
    },
    RaiseAll {
        asset: usize,
        epoch: bool,
    },
    Run {
        tenant: usize,
        run: usize,
        end: End,
        status: Option<RunStatus>,
    },
    /// Makes the run a fork of another one, or of itself.
    Fork {
        tenant: usize,
        run: usize,
        parent: usize,
    },
    Refer {
        tenant: usize,
        run: usize,
        assets: Vec<usize>,
        unknown: bool,
    },
    /// Puts an artifact of that name, or once more.
    Artifact {
        tenant: usize,
        run: usize,
        name: usize,
        assets: Vec<usize>,
        unknown: bool,
    },
    Hold {
        on: On,
        name: usize,
    },
    Lift {
        on: On,
        name: usize,
    },
    /// Settles one look, which may be a part of a run.
    Settle {
        limit: usize,
    },
    Sweep {
        limit: usize,
    },
    ExpireIfDue {
        asset: usize,
    },
    Delete {
        asset: usize,
    },
    Erase {
        asset: usize,
    },
    EraseRun {
        tenant: usize,
        run: usize,
    },
    Doom {
        silent_hours: i64,
    },
    DoomOne {
        asset: usize,
    },
    Forget {
        blob: usize,
    },
    Tidy {
        limit: usize,
    },
    Seal {
        limit: usize,
    },
    Grow {
        days: i64,
    },
    Reopen,
}

/// What a hold is on.
#[derive(Debug, Clone, Copy)]
pub(super) enum On {
    Asset { asset: usize },
    Run { tenant: usize, run: usize },
}

/// What an update says of the run's end.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Unsaid,
    InDays(i64),
    SecondsOfDays(i64),
    Never,
}

pub(super) fn sequences() -> impl Strategy<Value = Sequence> {
    (terms(), vec(step(), 1..50)).prop_map(|(terms, steps)| Sequence { terms, steps })
}

/// A tombstone's term is never shorter than the grace: else a run's walk, which waits for the grace, would come upon it late.
fn terms() -> impl Strategy<Value = Terms> {
    (1..12i64, 0..4i64, 0..3i64, 0..3i64, 0..12i64).prop_map(|(log, unreferenced, grace, bytes, record)| Terms {
        default_run_log: days(log),
        unreferenced: days(unreferenced),
        grace: days(grace),
        tombstone_bytes: days(bytes),
        tombstone_record: days(grace + record),
    })
}

fn step() -> impl Strategy<Value = Step> {
    let after_hours = prop_oneof![4 => Just(0), 6 => 0..30i64, 1 => 48..400i64, 1 => -30..0i64];
    (after_hours, act()).prop_map(|(after_hours, act)| Step { after_hours, act })
}

const ANY: std::ops::Range<usize> = 0..64;

fn act() -> impl Strategy<Value = Act> {
    let run = || option::weighted(0.7, 0..3usize);
    let end = prop_oneof![
        2 => Just(End::Unsaid),
        4 => (-3..12i64).prop_map(End::InDays),
        2 => (0..6i64).prop_map(End::SecondsOfDays),
        1 => Just(End::Never),
    ];
    let status = prop_oneof![
        3 => Just(None),
        4 => Just(Some(RunStatus::Closed)),
        2 => Just(Some(RunStatus::Open)),
    ];
    let on = || {
        prop_oneof![
            ANY.prop_map(|asset| On::Asset { asset }),
            (0..2usize, 0..3usize).prop_map(|(tenant, run)| On::Run { tenant, run }),
        ]
    };
    prop_oneof![
        2 => (0..2usize).prop_map(|tenant| Act::Announce { tenant }),
        1 => ANY.prop_map(|upload| Act::Alive { upload }),
        1 => ANY.prop_map(|upload| Act::Withdraw { upload }),
        6 => (ANY, 0..40u64, option::of(0..120u64), option::of(0..12u64), any::<bool>())
            .prop_map(|(upload, bytes, most_bytes, most_assets, begin)| Act::Reserve { upload, bytes, most_bytes, most_assets, begin }),
        12 => (0..2usize, run(), 0..4usize, option::weighted(0.2, -2..12i64), option::weighted(0.2, (0..2usize, 0..2u8)))
            .prop_map(|(tenant, run, bytes, ask_days, claim)| Act::Upload { tenant, run, bytes, ask_days, claim }),
        2 => (ANY, run(), 0..4usize).prop_map(|(upload, run, bytes)| Act::Publish { upload, run, bytes }),
        3 => (0..2usize, 0..2usize, 0..2u8).prop_map(|(tenant, name, holder)| Act::Claim { tenant, name, holder }),
        1 => (0..2usize, 0..2usize, 0..2u8).prop_map(|(tenant, name, holder)| Act::Renew { tenant, name, holder }),
        1 => (0..2usize, 0..2usize, 0..2u8).prop_map(|(tenant, name, holder)| Act::Release { tenant, name, holder }),
        1 => (ANY, option::of(0..3u64)).prop_map(|(asset, expected)| Act::Amend { asset, expected }),
        1 => ANY.prop_map(|asset| Act::Raise { asset }),
        1 => ANY.prop_map(|asset| Act::Resign { asset }),
        1 => (0..2usize, 0..3usize, -1..6i64).prop_map(|(tenant, url, keep_days)| Act::Revoke { tenant, url, keep_days }),
        4 => (ANY, 0..3usize, option::of(0..3usize), option::of(0..3u64), 0..6i64)
            .prop_map(|(asset, url, label, uses, live_days)| Act::Mint { asset, url, label, uses, live_days }),
        3 => (0..2usize, 0..3usize).prop_map(|(tenant, url)| Act::TakeUse { tenant, url }),
        1 => (0..2usize).prop_map(|tenant| Act::RevokeUrls { tenant }),
        1 => (ANY, any::<bool>()).prop_map(|(asset, epoch)| Act::RaiseAll { asset, epoch }),
        8 => (0..2usize, 0..3usize, end, status)
            .prop_map(|(tenant, run, end, status)| Act::Run { tenant, run, end, status }),
        8 => (0..2usize, 0..3usize, vec(ANY, 0..4), proptest::bool::weighted(0.1))
            .prop_map(|(tenant, run, assets, unknown)| Act::Refer { tenant, run, assets, unknown }),
        4 => (0..2usize, 0..3usize, 0..2usize, vec(ANY, 0..3), proptest::bool::weighted(0.1))
            .prop_map(|(tenant, run, name, assets, unknown)| Act::Artifact { tenant, run, name, assets, unknown }),
        3 => (0..2usize, 0..3usize, 0..3usize).prop_map(|(tenant, run, parent)| Act::Fork { tenant, run, parent }),
        4 => (on(), 0..2usize).prop_map(|(on, name)| Act::Hold { on, name }),
        4 => (on(), 0..2usize).prop_map(|(on, name)| Act::Lift { on, name }),
        6 => (1..3usize).prop_map(|limit| Act::Settle { limit }),
        5 => (1..5usize).prop_map(|limit| Act::Sweep { limit }),
        2 => ANY.prop_map(|asset| Act::ExpireIfDue { asset }),
        3 => ANY.prop_map(|asset| Act::Delete { asset }),
        3 => ANY.prop_map(|asset| Act::Erase { asset }),
        1 => (0..2usize, 0..3usize).prop_map(|(tenant, run)| Act::EraseRun { tenant, run }),
        3 => (-1..80i64).prop_map(|silent_hours| Act::Doom { silent_hours }),
        1 => ANY.prop_map(|asset| Act::DoomOne { asset }),
        2 => ANY.prop_map(|blob| Act::Forget { blob }),
        1 => (0..3usize).prop_map(|limit| Act::Tidy { limit }),
        1 => (0..9usize).prop_map(|limit| Act::Seal { limit }),
        1 => (1..4i64).prop_map(|days| Act::Grow { days }),
        2 => Just(Act::Reopen),
    ]
}
