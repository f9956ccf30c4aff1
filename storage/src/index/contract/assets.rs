//! Reading assets, and what changes of them while they live.

use super::Subject;
use super::stage::{MANY, Owner, day, event, run_id};
use crate::audit::{AuditEvent, AuditKind};
use crate::ids::AssetId;
use crate::index::{Amended, Amendment, AssetQuery, Deleted, NewDurable};
use crate::record::{AssetRecord, AssetView, DurableUrl, Labels};

fn all() -> AssetQuery {
    AssetQuery { limit: MANY, ..AssetQuery::default() }
}

async fn page(owner: &Owner, query: AssetQuery) -> Vec<AssetId> {
    let views = owner.index.page(&owner.tenant, &query, &owner.terms).await.expect("a page");
    views.into_iter().map(|view| view.record.id).collect()
}

fn changed(answer: Amended) -> AssetRecord {
    match answer {
        Amended::Changed(record) => Some(record),
        _ => None,
    }
    .expect("the words change")
}

fn amended() -> AuditEvent {
    event(AuditKind::Amend, day(0))
}

pub(super) async fn nobody_finds_the_asset_of_another_tenant(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;

    for stranger in ["acm", "acme2", "Acme"].map(|name| Owner::of(&index, name)) {
        let tenant = &stranger.tenant;
        assert_eq!(stranger.find(id).await, None);
        assert_eq!(index.view(tenant, id, &stranger.terms).await.expect("an answer"), None);
        assert_eq!(page(&stranger, all()).await, vec![]);
        assert_eq!(page(&stranger, AssetQuery { run: Some(run_id("run-1")), ..all() }).await, vec![]);
        assert_eq!(stranger.delete(id, day(0)).await, Deleted::Unknown);
        let answer = index.amend(tenant, id, Amendment::default(), amended()).await;
        assert_eq!(answer.expect("an answer"), Amended::Unknown);
        assert_eq!(index.run(tenant, &run_id("run-1")).await.expect("an answer"), None);
        assert_eq!(stranger.log().await, vec![]);
    }
}

pub(super) async fn pages_give_each_asset_once_and_in_order(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let mut made = Vec::new();
    for hour in 0..7 {
        let at = day(0).checked_add(jiff::SignedDuration::from_hours(hour)).expect("a time in range");
        let view = owner.upload(None, &format!("bytes {hour}"), at).await;
        Owner::of(&index, "other").upload(None, "bytes", at).await;
        made.push(view.record.id);
    }

    let mut seen = Vec::new();
    loop {
        let query = AssetQuery { after: seen.last().copied(), limit: 3, ..AssetQuery::default() };
        let next = page(&owner, query).await;
        if next.is_empty() {
            break;
        }
        assert!(next.len() <= 3);
        seen.extend(next);
        // What is made while somebody pages comes behind what they have seen.
        owner.upload(None, "late", day(1)).await;
    }

    assert_eq!(seen[..7], made);
    let mut once = seen.clone();
    once.dedup();
    assert_eq!(seen, once);
}

pub(super) async fn a_page_has_what_was_asked_for(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let text = owner.upload(Some("run-1"), "text", day(0)).await.record.id;
    let mut asset = owner.staged(Some("run-2"), "image", day(1)).await;
    asset.record.kind = "image".into();
    asset.record.mime_type = "image/png".into();
    let image = asset.record.id;
    owner.publish(asset, day(1)).await;
    let dead = owner.upload(None, "dead", day(2)).await.record.id;
    owner.delete(dead, day(2)).await;
    owner.refer("run-2", &[text, dead], day(2)).await;

    for (query, right) in [
        (all(), vec![text, image, dead]),
        (AssetQuery { kind: Some("image".into()), ..all() }, vec![image]),
        (AssetQuery { mime_type: Some("text/plain".into()), ..all() }, vec![text, dead]),
        (AssetQuery { state: Some("live".into()), ..all() }, vec![text, image]),
        (AssetQuery { state: Some("expired".into()), ..all() }, vec![dead]),
        (AssetQuery { state: Some("erased".into()), ..all() }, vec![]),
        (AssetQuery { run: Some(run_id("run-1")), ..all() }, vec![text]),
        (AssetQuery { run: Some(run_id("run-2")), ..all() }, vec![text, image, dead]),
        (AssetQuery { run: Some(run_id("run")), ..all() }, vec![]),
        (
            AssetQuery { run: Some(run_id("run-2")), state: Some("live".into()), after: Some(text), ..all() },
            vec![image],
        ),
        (AssetQuery { limit: 2, ..all() }, vec![text, image]),
        (AssetQuery { after: Some(dead), ..all() }, vec![]),
    ] {
        assert_eq!(page(&owner, query.clone()).await, right, "{query:?}");
    }
}

pub(super) async fn words_change_only_from_the_revision_that_was_seen(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    let amend = async |change| index.amend(&owner.tenant, id, change, amended()).await.expect("an answer");
    let named = |name: &str| Some(Some(name.to_owned()));

    let change = Amendment { name: named("a"), alt: named("b"), expected: Some(1), ..Amendment::default() };
    let record = changed(amend(change.clone()).await);
    assert_eq!(record.revision, 2);
    assert_eq!(record.labels, Labels { name: Some("a".into()), alt: Some("b".into()), title: None });

    assert_eq!(amend(change).await, Amended::Stale);
    assert_eq!(owner.find(id).await, Some(record));

    let record = changed(amend(Amendment { alt: Some(None), ..Amendment::default() }).await);
    assert_eq!(record.labels, Labels { name: Some("a".into()), alt: None, title: None });
    let events = owner.log().await.into_iter().filter(|row| row.event.kind == AuditKind::Amend).count();
    assert_eq!(events, 2, "what changed nothing has no event");
}

pub(super) async fn words_of_the_dead_do_not_change(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    owner.delete(id, day(0)).await;
    let dead = owner.find(id).await.expect("its tombstone");

    let change = Amendment { name: Some(Some("a".into())), expected: Some(7), ..Amendment::default() };
    let answer = index.amend(&owner.tenant, id, change, amended()).await.expect("an answer");
    assert_eq!(answer, Amended::Dead(dead));
}

pub(super) async fn a_new_generation_counts_from_the_old_one(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    let raise = async |id| {
        let durable = NewDurable { kid: "k2".into(), issued_at: 7 };
        index.raise_generation(&owner.tenant, id, durable, event(AuditKind::Revoke, day(0))).await.expect("an answer")
    };

    raise(id).await;
    let record = raise(id).await.expect("the asset has a row");

    assert_eq!((record.durable.generation, record.durable.issued_at, record.revision), (2, 7, 3));
    assert_eq!(record.durable.kid, "k2");
    assert_eq!(owner.find(id).await, Some(record));
    assert_eq!(raise(AssetId::generate(day(0))).await, None);
}

pub(super) async fn another_key_signs_the_same_generation(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let before = owner.upload(None, "bytes", day(0)).await.record;
    let resign = async |id| {
        let durable = NewDurable { kid: "k2".into(), issued_at: 7 };
        index.resign(&owner.tenant, id, durable, event(AuditKind::Key, day(0))).await.expect("an answer")
    };

    let record = resign(before.id).await.expect("the asset has a row");

    let durable = DurableUrl { kid: "k2".into(), issued_at: 7, ..before.durable.clone() };
    assert_eq!(record, AssetRecord { durable, revision: 2, ..before });
    assert_eq!(owner.find(record.id).await, Some(record));
    assert_eq!(owner.log().await.last().map(|row| row.event.kind), Some(AuditKind::Key));
    assert_eq!(resign(AssetId::generate(day(0))).await, None);
}

pub(super) async fn a_revoked_url_stays_revoked_until_its_time(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let stranger = Owner::of(&index, "acm");
    let revoke = async |until| {
        let audit = event(AuditKind::Revoke, day(0)).url("url");
        index.revoke_url(&owner.tenant, "url", until, audit).await.expect("a revocation");
    };

    revoke(day(3)).await;
    revoke(day(1)).await;

    assert_eq!(index.tidy(MANY, day(2)).await.expect("a count"), 0, "the longer of the two holds");
    assert!(index.is_revoked(&owner.tenant, "url").await.expect("an answer"));
    assert!(!index.is_revoked(&owner.tenant, "ur").await.expect("an answer"));
    assert!(!index.is_revoked(&stranger.tenant, "eurl").await.expect("an answer"));
    assert_eq!(index.tidy(MANY, day(3)).await.expect("a count"), 1);
}

pub(super) async fn the_newest_references_come_first(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(Some("run-000"), "bytes", day(0)).await.record.id;
    let runs = AssetView::REFERENCES + 5;
    for n in 1..runs {
        // All of one instant, and the last by a clock that stepped back.
        let at = if n + 1 == runs { day(-1) } else { day(0) };
        owner.refer(&format!("run-{n:03}"), &[id], at).await;
    }

    let view = owner.view(id).await;

    assert_eq!(view.reference_count, runs as u64);
    let newest: Vec<_> = (5..runs).rev().map(|n| run_id(&format!("run-{n:03}"))).collect();
    assert_eq!(view.references, newest);
}
