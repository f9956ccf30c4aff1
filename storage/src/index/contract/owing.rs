//! What transitions owe the store, and how it is paid.

use super::Subject;
use super::stage::{MANY, Owner, closed, day, event, hold_id, new_asset, put, run_id, stored};
use crate::audit::AuditKind;
use crate::ids::{AssetId, Digest, TenantId};
use crate::index::{Amendment, NewDurable, Placed, RunErasure};
use crate::record::{HoldOn, Owed, ReferenceRecord};
use crate::retention::RunUpdate;

impl Owner {
    async fn owed(&self) -> Vec<Owed> {
        let all = self.index.owed(None, MANY).await.expect("a list");
        all.into_iter().filter(|(tenant, _)| *tenant == self.tenant).map(|(_, owed)| owed).collect()
    }

    async fn pay(&self, owed: &[Owed]) {
        let names: Vec<(TenantId, Digest)> = owed.iter().map(|owed| (self.tenant.clone(), owed.name())).collect();
        self.index.paid(names).await.expect("a note");
    }

    /// Finds that this is owed and nothing else, and pays it.
    async fn settle_up(&self, right: &[Owed]) {
        let sorted = |owed: &[Owed]| {
            let mut names: Vec<String> = owed.iter().map(|owed| format!("{owed:?}")).collect();
            names.sort();
            names
        };
        let owed = self.owed().await;
        assert_eq!(sorted(&owed), sorted(right));
        self.pay(&owed).await;
        assert_eq!(self.owed().await, []);
    }
}

fn of(id: AssetId, revision: u64) -> Owed {
    Owed::Asset { id, revision }
}

pub(super) async fn a_change_of_an_asset_owes_its_record(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, "bytes", day(0)).await.record.id;
    let other = owner.upload(None, "other bytes", day(0)).await.record.id;
    owner.settle_up(&[]).await;

    let words = Amendment { name: Some(Some("a".into())), ..Amendment::default() };
    index.amend(&owner.tenant, id, words, event(AuditKind::Amend, day(0))).await.expect("an amendment");
    let durable = NewDurable { kid: "k2".into(), issued_at: 7 };
    let audit = event(AuditKind::Revoke, day(0));
    index.raise_generation(&owner.tenant, id, durable.clone(), audit.clone()).await.expect("a generation");
    index.resign(&owner.tenant, id, durable.clone(), audit.clone()).await.expect("another key");
    owner.settle_up(&[of(id, 2), of(id, 3), of(id, 4)]).await;
    index.raise_generations(&owner.tenant, &[id, other], durable, audit).await.expect("two generations");
    owner.settle_up(&[of(id, 5), of(other, 2)]).await;
    owner.delete(id, day(0)).await;
    owner.settle_up(&[of(id, 6)]).await;
    owner.delete(id, day(0)).await;
    owner.settle_up(&[]).await;
    owner.erase(id, day(0)).await;
    owner.settle_up(&[of(id, 7)]).await;
    assert_eq!(owner.sweep(day(1)).await.expired, [other]);
    owner.settle_up(&[of(other, 3)]).await;
    let mut dropped = owner.sweep(day(200)).await.dropped;
    dropped.sort();
    assert_eq!(dropped.len(), 2);
    owner.settle_up(&[Owed::Dropped { id }, Owed::Dropped { id: other }]).await;

    let id = owner.upload(Some("run-1"), "quoted", day(200)).await.record.id;
    assert_eq!(owner.sweep(day(300)).await.expired, [id]);
    owner.settle_up(&[of(id, 2)]).await;
    assert_eq!(owner.sweep(day(600)).await.dropped, [id]);
    owner.settle_up(&[Owed::Dropped { id }, Owed::Unquoted { run: run_id("run-1"), id }]).await;
}

pub(super) async fn a_change_of_a_run_owes_its_record_and_what_it_quotes(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let (one, two) = (owner.upload(Some("run-1"), "one", day(0)).await, owner.upload(None, "two", day(0)).await);
    let (one, two) = (one.record.id, two.record.id);
    let run = |name: &str, revision| Owed::Run { id: run_id(name), revision };
    let quotes = |name: &str, assets: &[AssetId]| Owed::References(ReferenceRecord::new(&run_id(name), assets, day(0)));

    owner.update(put("run-1"), day(0)).await.expect("a registration");
    owner.settle_up(&[run("run-1", 2)]).await;
    owner.refer("run-1", &[two, one, two], day(0)).await;
    owner.settle_up(&[run("run-1", 2), quotes("run-1", &[one, two])]).await;
    owner.fork("child", "run-1", day(0)).await.expect("a fork");
    owner.settle_up(&[run("child", 1), quotes("child", &[one, two])]).await;
    owner.fork("child", "run-1", day(0)).await.expect("the same again");
    owner.settle_up(&[run("child", 2)]).await;
    owner.try_refer("nobody", &[AssetId::generate(day(0))], day(0)).await;
    owner.fork("child", "unknown", day(0)).await.expect_err("no such parent");
    owner.settle_up(&[]).await;
    let RunErasure::Done(record) = owner.erase_run("run-1", day(0)).await else { unreachable!("it is there") };
    owner.settle_up(&[Owed::run(&record)]).await;
    owner.update(RunUpdate { log_retention_seconds: Some(9), ..closed(put("child")) }, day(0)).await.expect("an end");
    owner.settle_up(&[run("child", 3)]).await;
}

pub(super) async fn holds_are_numbered_in_the_order_of_their_transitions(index: Subject) {
    let (owner, stranger) = (Owner::of(&index, "acme"), Owner::of(&index, "globex"));
    let id = owner.upload(Some("run-1"), "bytes", day(0)).await.record.id;
    let (on, run) = (HoldOn::Asset(id), HoldOn::Run(run_id("run-1")));
    let number = async |owner: &Owner, on: &HoldOn| match owner.place(on, "audit", day(0)).await {
        Placed::Done(hold) => hold.number,
        other => unreachable!("it is there: {other:?}"),
    };
    let debt = |on: &HoldOn, number| Owed::Hold { on: on.clone(), id: hold_id("audit"), number };

    assert_eq!(number(&owner, &on).await, 1);
    assert_eq!(number(&owner, &on).await, 2, "its new reason is newer");
    assert_eq!(number(&owner, &run).await, 3);
    let audit = event(AuditKind::Lift, day(0));
    let lifted = index.lift(&owner.tenant, &on, &hold_id("audit"), &owner.terms, audit).await.expect("an answer");
    assert_eq!(lifted, Some(4));
    assert_eq!(number(&owner, &on).await, 5, "a name that comes again is newer than its lifting");
    owner.settle_up(&[debt(&on, 1), debt(&on, 2), debt(&run, 3), debt(&on, 4), debt(&on, 5)]).await;
    assert!(!owner.lift(&on, "unknown", day(0)).await);
    assert_eq!(owner.place(&HoldOn::Run(run_id("nobody")), "audit", day(0)).await, Placed::Unknown);
    owner.settle_up(&[]).await;
    let foreign = stranger.upload(None, "bytes", day(0)).await.record.id;
    assert_eq!(number(&stranger, &HoldOn::Asset(foreign)).await, 1);
}

pub(super) async fn an_epoch_owes_its_number(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for epoch in [1, 2] {
        index.raise_epoch(&owner.tenant, event(AuditKind::Revoke, day(0))).await.expect("an epoch");
        owner.settle_up(&[Owed::Epoch(epoch)]).await;
    }
}

pub(super) async fn a_publication_owes_a_record_that_names_another_blob(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let own = owner.announce(day(0)).await;
    let named = |recorded, blob| {
        let asset = new_asset(&owner.tenant, None, "bytes", blob, day(0));
        crate::index::NewAsset { recorded: Some(recorded), ..asset }
    };
    let first = stored(owner.publish(named(own, own), day(0)).await).record;
    let copy = owner.announce(day(0)).await;
    stored(owner.publish(named(own, copy), day(0)).await);
    owner.settle_up(&[]).await;

    let late = owner.announce(day(0)).await;
    let shared = stored(owner.publish(named(late, late), day(0)).await).record;
    assert_eq!(shared.blob, first.blob);
    owner.settle_up(&[of(shared.id, 1)]).await;
}

pub(super) async fn what_is_owed_is_paid_one_by_one(index: Subject) {
    let (owner, stranger) = (Owner::of(&index, "acme"), Owner::of(&index, "globex"));
    let mut ids = Vec::new();
    for n in 0..5 {
        let of = if n == 4 { &stranger } else { &owner };
        let id = of.upload(None, &format!("bytes {n}"), day(0)).await.record.id;
        of.delete(id, day(0)).await;
        ids.push(id);
    }
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let page = index.owed(after.clone(), 2).await.expect("a page");
        assert!(page.len() <= 2);
        let Some((tenant, last)) = page.last() else { break };
        after = Some((tenant.clone(), last.name()));
        pages.extend(page);
    }
    assert_eq!(pages, index.owed(None, MANY).await.expect("a list"));
    assert_eq!(pages.len(), 5);
    assert_eq!(pages[4], (stranger.tenant.clone(), of(ids[4], 2)), "tenant after tenant");

    stranger.pay(&[of(ids[0], 2)]).await;
    owner.pay(&[of(ids[0], 1), of(AssetId::generate(day(0)), 2)]).await;
    assert_eq!(index.owed(None, MANY).await.expect("a list").len(), 5, "what is not owed is passed over");
    owner.pay(&[of(ids[0], 2), of(ids[0], 2)]).await;
    owner.pay(&[]).await;
    assert_eq!(owner.owed().await.len(), 3);
    owner.erase(ids[1], day(0)).await;
    owner.pay(&[of(ids[1], 2)]).await;
    assert!(owner.owed().await.contains(&of(ids[1], 3)), "who pays for one change pays for none that came after it");
}
