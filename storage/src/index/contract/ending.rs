//! What keeps an asset, and when it ends.

use jiff::SignedDuration;

use super::Subject;
use super::stage::{MANY, Owner, Swept, closed, day, days, just_before, put, terms};
use crate::audit::AuditKind;
use crate::index::Deleted;
use crate::record::{AssetState, HoldOn};
use crate::retention::{ProtectedBy, RunUpdate, Terms, Until};

/// Nothing ends a moment before that time, and just these end at it.
async fn ends(owner: &Owner, at: jiff::Timestamp, mut right: Vec<crate::ids::AssetId>) {
    assert_eq!(owner.sweep(just_before(at)).await.expired, vec![], "too soon");
    let due = owner.index.count_due(MANY, &owner.terms, at).await.expect("a count");
    assert_eq!(due, right.len(), "what is due is what ends");
    right.sort();
    assert_eq!(owner.sweep(at).await.expired, right);
}

pub(super) async fn an_unreferenced_upload_ends_after_its_term(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;

    ends(&owner, day(1), vec![id]).await;

    let dead = owner.find(id).await.expect("its tombstone");
    assert_eq!((dead.state, dead.revision), (AssetState::Expired { at: day(1) }, 2));
    assert_eq!(owner.sweep(day(1)).await, Swept::default(), "it ends once");
}

pub(super) async fn a_sender_may_ask_for_more(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let more = owner.upload_asking(None, "more", day(9), day(0)).await.record.id;
    let less = owner.upload_asking(None, "less", just_before(day(1)), day(0)).await.record.id;

    ends(&owner, day(1), vec![less]).await;
    ends(&owner, day(9), vec![more]).await;
}

pub(super) async fn an_asset_lives_to_the_last_moment_of_its_floor(index: Subject) {
    let grace = Terms { grace: days(3), ..terms() };
    let owner = Owner::of(&index, "acme").with_terms(grace);
    owner.run_until("run-1", day(5), day(0)).await;
    let kept = owner.upload(Some("run-1"), "kept", day(0)).await.record.id;
    let alone = owner.upload(None, "alone", day(0)).await.record.id;

    ends(&owner, day(4), vec![alone]).await;
    ends(&owner, day(8), vec![kept]).await;
}

pub(super) async fn an_extended_run_keeps_its_assets(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    let ids = [
        owner.upload(Some("run-1"), "one", day(0)).await.record.id,
        owner.upload(Some("run-1"), "two", day(0)).await.record.id,
    ];

    owner.run_until("run-1", day(9), day(4)).await;
    assert_eq!(owner.sweep(day(5)).await, Swept::default());
    // Also when the first end is past and nobody has swept yet.
    owner.run_until("run-1", day(12), day(10)).await;

    ends(&owner, day(12), ids.to_vec()).await;
}

pub(super) async fn a_default_end_gives_way_to_an_earlier_one(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;

    owner.run_until("run-1", day(3), day(1)).await;

    ends(&owner, day(3), vec![id]).await;
}

pub(super) async fn the_longest_run_keeps_a_shared_asset(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("short", day(3), day(0)).await;
    owner.run_until("long", day(7), day(0)).await;
    let shared = owner.upload(Some("long"), "shared", day(0)).await.record.id;
    let alone = owner.upload(Some("short"), "alone", day(0)).await.record.id;
    owner.refer("short", &[shared], day(0)).await;

    ends(&owner, day(3), vec![alone]).await;
    ends(&owner, day(7), vec![shared]).await;
}

pub(super) async fn what_an_ended_run_takes_up_ends_too(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("ended", day(2), day(0)).await;
    let asked = owner.upload_asking(None, "asked", day(9), day(0)).await.record.id;
    let early = owner.upload(None, "early", just_before(day(2))).await.record.id;
    let late = owner.upload(None, "late", just_before(day(2))).await.record.id;
    owner.refer("ended", &[early], day(2)).await;
    owner.sweep(day(2)).await;
    assert!(!owner.lives(early).await, "it waited for no term of its own any more");

    // The walk is over: nothing of the run's will look at these.
    owner.refer("ended", &[late, asked], day(2)).await;
    assert_eq!(owner.sweep(day(2)).await.expired, vec![late]);
    // Nor at this, though by its caller's clock, which is behind the sweep's, the run is yet to end.
    let behind = owner.upload(None, "behind", just_before(day(2))).await.record.id;
    owner.refer("ended", &[behind], day(1)).await;
    assert_eq!(owner.sweep(day(2)).await.expired, vec![behind]);
    ends(&owner, day(9), vec![asked]).await;
}

pub(super) async fn what_is_published_into_an_ended_run_ends_too(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("ended", day(2), day(0)).await;
    owner.sweep(day(2)).await;

    let id = owner.upload(Some("ended"), "bytes", day(3)).await.record.id;
    // By a clock that is behind the sweep's.
    let behind = owner.upload(Some("ended"), "more bytes", day(1)).await.record.id;

    let mut both = vec![id, behind];
    both.sort();
    assert_eq!(owner.sweep(day(3)).await.expired, both);
}

pub(super) async fn an_open_run_lets_go_when_it_closes(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.update(put("run-1"), day(0)).await.expect("a new run");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    owner.refer("run-1", &[id], day(0)).await;
    assert_eq!(owner.sweep(day(50)).await, Swept::default(), "past the term of an unreferenced upload");

    let closing = RunUpdate { log_retention_seconds: Some(7 * 86_400), ..closed(put("run-1")) };
    owner.update(closing, day(50)).await.expect("a first end");

    ends(&owner, day(57), vec![id]).await;
}

pub(super) async fn a_wish_outlives_the_run(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    let id = owner.upload_asking(Some("run-1"), "bytes", day(8), day(0)).await.record.id;

    assert_eq!(owner.sweep(day(5)).await, Swept::default());
    ends(&owner, day(8), vec![id]).await;
}

pub(super) async fn a_wish_holds_when_a_default_end_gives_way(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload_asking(Some("run-1"), "bytes", day(8), day(0)).await.record.id;
    let early = owner.upload_asking(Some("run-1"), "more bytes", day(2), day(0)).await.record.id;

    owner.run_until("run-1", day(3), day(1)).await;

    ends(&owner, day(3), vec![early]).await;
    ends(&owner, day(8), vec![id]).await;
}

pub(super) async fn an_end_that_moves_during_a_sweep_counts(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(owner.upload(Some("run-1"), &format!("bytes {n}"), day(0)).await.record.id);
    }
    let look = index.due(day(5), 1).await.expect("what is due").pop().expect("the run, or one of its assets");
    let first = index.settle(&look, 1, &owner.terms, "sweep", day(5)).await.expect("a settlement");
    assert_eq!(first.expired.len(), 1);

    owner.run_until("run-1", day(9), day(5)).await;

    let again = index.settle(&look, 9, &owner.terms, "sweep", day(5)).await.expect("a settlement");
    assert_eq!(again.expired, vec![], "a look that was read before the end moved");
    ids.retain(|id| *id != first.expired[0].id);
    ends(&owner, day(9), ids).await;
}

pub(super) async fn longer_terms_hold_from_now_on(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    let kept = owner.upload(Some("run-1"), "kept", day(0)).await.record.id;
    let alone = owner.upload(None, "alone", day(0)).await.record.id;
    let asked = owner.upload_asking(Some("run-1"), "asked", day(6), day(0)).await.record.id;

    let owner = owner.with_terms(Terms { grace: days(2), unreferenced: days(3), ..terms() });

    ends(&owner, day(5), vec![alone]).await;
    ends(&owner, day(7), vec![kept]).await;
    ends(&owner, day(8), vec![asked]).await;
}

pub(super) async fn a_large_run_is_settled_in_pages(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    owner.run_until("run-2", day(6), day(0)).await;
    let mut ids = Vec::new();
    for n in 0..10 {
        ids.push(owner.upload(Some("run-1"), &format!("bytes {n}"), day(0)).await.record.id);
    }
    ids.sort();
    owner.refer("run-2", &ids[4..6], day(0)).await;

    let mut expired = owner.sweep_by(3, day(5)).await.expired;

    expired.sort();
    assert_eq!(expired, [&ids[..4], &ids[6..]].concat());
    let events = owner.log().await.into_iter().filter(|row| row.event.kind == AuditKind::Expire).count();
    assert_eq!(events, 8);
    assert_eq!(owner.sweep_by(1, day(6)).await.expired.len(), 2);
}

pub(super) async fn a_request_may_expire_what_is_past(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    let look = async |at| {
        let looked = index.expire_if_due(&owner.tenant, id, &owner.terms, "host", at).await;
        looked.expect("an answer").expect("the asset has a row")
    };

    assert!(look(just_before(day(1))).await.is_live());
    let dead = look(day(1)).await;
    assert_eq!((dead.state.clone(), dead.revision), (AssetState::Expired { at: day(1) }, 2));
    assert_eq!(look(day(2)).await, dead);
    assert_eq!(owner.sweep(day(2)).await.expired, vec![]);
    let unknown = crate::ids::AssetId::generate(day(0));
    let answer = index.expire_if_due(&owner.tenant, unknown, &owner.terms, "host", day(1)).await;
    assert_eq!(answer.expect("an answer"), None);
}

pub(super) async fn an_owner_deletes_what_nothing_protects(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    let free = owner.upload(None, "free", day(0)).await.record.id;
    let kept = owner.upload(Some("run-1"), "kept", day(0)).await.record.id;

    let Deleted::Gone(dead) = owner.delete(free, day(0)).await else { unreachable!("nothing protects it") };
    assert_eq!((dead.state.clone(), dead.revision), (AssetState::Expired { at: day(0) }, 2));
    assert_eq!(owner.delete(free, day(1)).await, Deleted::WasGone(dead));

    assert_eq!(owner.delete(kept, just_before(day(5))).await, Deleted::Protected(owner.view(kept).await));
    assert!(owner.lives(kept).await);
    assert!(matches!(owner.delete(kept, day(5)).await, Deleted::Gone(_)));
    assert_eq!(owner.delete(crate::ids::AssetId::generate(day(0)), day(5)).await, Deleted::Unknown);
    let erased = owner.log().await.into_iter().filter(|row| row.event.kind == AuditKind::Erase).count();
    assert_eq!(erased, 2, "what ended nothing has no event");
}

pub(super) async fn what_still_protects_an_asset_is_named_with_its_end(index: Subject) {
    let owner = Owner::of(&index, "acme").with_terms(Terms { grace: days(1), ..terms() });
    owner.update(put("open"), day(0)).await.expect("a new run");
    owner.run_until("short", day(2), day(0)).await;
    owner.run_until("long", day(9), day(0)).await;
    let kept = owner.upload_asking(Some("open"), "kept", day(4), day(0)).await.record.id;
    owner.refer("short", &[kept], day(0)).await;
    owner.refer("long", &[kept], day(0)).await;
    let named = async |limit, now| {
        let named = index.protectors(&owner.tenant, kept, limit, &owner.terms, now).await.expect("a list");
        let name = |by| match by {
            ProtectedBy::Hold(hold) => hold.to_string(),
            ProtectedBy::Run(run) => run.to_string(),
            ProtectedBy::Ask(at) => at.to_string(),
            ProtectedBy::Grace(grace) => grace.to_string(),
        };
        named.into_iter().map(|one| (name(one.by), one.until)).collect::<Vec<_>>()
    };
    let [long, short] = [("long", 9), ("short", 2)].map(|(run, end)| (run.to_owned(), Until::At(day(end))));
    let (open, ask) = (("open".to_owned(), Until::Endless), (day(4).to_string(), Until::At(day(4))));

    let all = [long.clone(), short.clone(), open.clone(), ask.clone()];
    assert_eq!(named(MANY, just_before(day(2))).await, all, "what has no end needs no grace");
    assert_eq!(named(2, just_before(day(2))).await, [long.clone(), ask.clone()]);
    assert_eq!(named(MANY, day(3)).await, [long.clone(), open.clone(), ask]);
    assert_eq!(named(MANY, day(9)).await, [open]);
    owner.run_until("open", day(5), day(3)).await;
    let grace = (days(1).to_string(), Until::At(day(10)));
    assert_eq!(named(MANY, day(5)).await, [long, grace.clone()]);
    assert_eq!(named(MANY, day(9)).await, [grace]);
    assert_eq!(named(MANY, day(10)).await, []);
    let hold = ("audit".to_owned(), Until::Endless);
    owner.hold(&HoldOn::Asset(kept), "audit", day(10)).await;
    assert_eq!(named(MANY, day(10)).await, [hold]);
    let stranger = Owner::of(&index, "globex").tenant;
    let nothing = index.protectors(&stranger, kept, MANY, &owner.terms, day(0)).await;
    assert_eq!(nothing.expect("a list"), []);
}

pub(super) async fn deleting_what_has_ended_brings_the_end_of_its_bytes_forward(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let dead = owner.upload(None, "bytes", day(0)).await.record;
    owner.sweep(day(1)).await;
    assert_eq!(owner.doom(day(1)).await, vec![], "they wait for somebody to take them up");

    assert!(matches!(owner.delete(dead.id, day(1)).await, Deleted::WasGone(_)));

    assert_eq!(owner.remove_doomed(day(1)).await, vec![dead.blob]);
    let again = owner.upload(None, "held", day(2)).await.record;
    owner.sweep(day(3)).await;
    let taken_up = owner.upload(None, "held", day(3)).await.record;
    assert!(matches!(owner.delete(again.id, day(3)).await, Deleted::WasGone(_)));
    assert_eq!(taken_up.blob, again.blob);
    assert_eq!(owner.doom(day(3)).await, vec![], "another asset holds them");
}

pub(super) async fn what_is_due_is_counted_once(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let two_runs = owner.upload(Some("run-1"), "two runs", day(0)).await.record.id;
    owner.refer("run-2", &[two_runs], day(0)).await;
    owner.upload(Some("run-2"), "one run", day(0)).await;
    Owner::of(&index, "other").upload(None, "another tenant's", day(0)).await;
    let count = async |limit, at| index.count_due(limit, &owner.terms, at).await.expect("a count");

    assert_eq!(count(MANY, just_before(day(1))).await, 0);
    assert_eq!(count(MANY, day(1)).await, 1);
    assert_eq!(count(MANY, just_before(day(30))).await, 1);
    assert_eq!(count(MANY, day(30)).await, 3);
    assert_eq!(count(2, day(30)).await, 2);
    assert_eq!(owner.sweep(day(30).checked_add(SignedDuration::ZERO).expect("a time")).await.expired.len(), 3);
    assert_eq!(count(MANY, day(30)).await, 0);
}
