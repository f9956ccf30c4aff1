//! Delivery URLs: their rows, their uses, and what revokes them.

use futures_util::future::join_all;
use jiff::Timestamp;

use super::Subject;
use super::races::{ROUNDS, Replicas, all, owners};
use super::stage::{MANY, Owner, day, event};
use crate::audit::AuditKind;
use crate::ids::AssetId;
use crate::index::NewDurable;
use crate::record::{MintedUrl, Taken, UrlRecord, UrlView};

/// A URL that ends on day 1 and is kept until day 2.
pub(super) fn url(url_id: &str, asset: AssetId, label: Option<&str>, uses_left: Option<u64>) -> MintedUrl {
    let label = label.map(str::to_owned);
    let record = UrlRecord { asset, generation: 0, expires_at: day(1), keep_until: day(2), label, uses_left };
    MintedUrl { url_id: url_id.into(), record }
}

async fn mint(owner: &Owner, urls: &[MintedUrl]) {
    let events = urls.iter().map(|url| event(AuditKind::Mint, day(0)).url(&*url.url_id)).collect();
    owner.index.mint(&owner.tenant, urls.to_vec(), events).await.expect("rows");
}

async fn find(owner: &Owner, url_id: &str) -> Option<UrlView> {
    owner.index.url(&owner.tenant, url_id).await.expect("a URL, or none")
}

async fn labelled(owner: &Owner, label: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    let found = owner.index.urls_with(&owner.tenant, label, after, limit).await.expect("URLs");
    found.into_iter().map(|url| url.url_id).collect()
}

async fn take(owner: &Owner, url_id: &str) -> Taken {
    owner.index.take_use(&owner.tenant, url_id).await.expect("an answer")
}

async fn revoke(owner: &Owner, url_ids: &[&str], now: Timestamp) -> Vec<String> {
    let url_ids: Vec<String> = url_ids.iter().map(|url_id| (*url_id).to_owned()).collect();
    let audit = event(AuditKind::Revoke, day(0));
    let revoked = owner.index.revoke_urls(&owner.tenant, &url_ids, audit, now).await.expect("a revocation");
    revoked.into_iter().map(|url| url.url_id).collect()
}

async fn raise(owner: &Owner, ids: &[AssetId]) -> Vec<AssetId> {
    let durable = NewDurable { kid: "k2".into(), issued_at: 7 };
    let audit = event(AuditKind::Revoke, day(0));
    let raised = owner.index.raise_generations(&owner.tenant, ids, durable, audit).await.expect("an answer");
    raised.into_iter().map(|record| record.id).collect()
}

pub(super) async fn a_minted_url_has_a_row_and_an_event(index: Subject) {
    let (owner, stranger) = (Owner::of(&index, "acme"), Owner::of(&index, "acm"));
    let asset = owner.upload(None, "bytes", day(0)).await.record.id;
    let minted = url("url", asset, Some("press"), Some(3));

    mint(&owner, &[minted.clone(), url("plain", asset, None, None)]).await;
    mint(&owner, &[url("url", asset, None, Some(9))]).await;

    let MintedUrl { url_id, record } = minted;
    assert_eq!(find(&owner, "url").await, Some(UrlView { url_id, record, revoked: false }), "and the first row stays");
    assert!(find(&owner, "plain").await.is_some());
    assert_eq!(
        (find(&owner, "ur").await, find(&stranger, "eurl").await, find(&stranger, "url").await),
        (None, None, None)
    );
    let log = owner.log().await;
    let events = log.iter().filter(|row| row.event.kind == AuditKind::Mint);
    assert_eq!(events.filter_map(|row| row.event.url_id.as_deref()).collect::<Vec<_>>(), ["url", "plain", "url"]);
}

pub(super) async fn a_label_finds_its_own_urls(index: Subject) {
    let (owner, stranger) = (Owner::of(&index, "acme"), Owner::of(&index, "acm"));
    let asset = AssetId::generate(day(0));
    // "a" with the URL "bc" and "ab" with the URL "c" are not the same, and a label may hold anything.
    let urls = [("bc", "a"), ("bd", "a"), ("be", "a"), ("c", "ab"), ("nul", "a\0"), ("none", "")];
    mint(&owner, &urls.map(|(url_id, label)| url(url_id, asset, Some(label), None))).await;
    mint(&owner, &[url("other", asset, None, None)]).await;
    mint(&stranger, &[url("bc", asset, Some("ea"), None)]).await;

    assert_eq!(labelled(&owner, "a", None, MANY).await, ["bc", "bd", "be"]);
    assert_eq!(labelled(&owner, "a", None, 2).await, ["bc", "bd"]);
    assert_eq!(labelled(&owner, "a", Some("bd"), 2).await, ["be"]);
    assert_eq!(labelled(&owner, "ab", None, MANY).await, ["c"]);
    assert_eq!(labelled(&owner, "a\0", None, MANY).await, ["nul"]);
    assert_eq!(labelled(&owner, "", None, MANY).await, ["none"]);
    assert_eq!(labelled(&stranger, "a", None, MANY).await, Vec::<String>::new());
}

pub(super) async fn uses_are_taken_until_there_are_none(index: Subject) {
    let (owner, stranger) = (Owner::of(&index, "acme"), Owner::of(&index, "acm"));
    let asset = AssetId::generate(day(0));
    let urls =
        [url("two", asset, None, Some(2)), url("plain", asset, None, None), url("revoked", asset, None, Some(2))];
    mint(&owner, &urls).await;
    revoke(&owner, &["revoked"], day(0)).await;

    for url_id in ["plain", "revoked", "nobody's"] {
        assert_eq!(take(&owner, url_id).await, Taken::Unknown, "{url_id}");
    }
    assert_eq!(take(&stranger, "two").await, Taken::Unknown);
    assert_eq!(take(&owner, "two").await, Taken::Yours);
    assert_eq!(find(&owner, "two").await.and_then(|url| url.record.uses_left), Some(1));
    assert_eq!(take(&owner, "two").await, Taken::Yours);
    for _ in 0..2 {
        assert_eq!(take(&owner, "two").await, Taken::Exhausted);
    }
    assert!(find(&owner, "two").await.is_some_and(|url| !url.opens(day(0))));
}

pub(super) async fn what_is_revoked_is_what_opened_until_now(index: Subject) {
    let (owner, stranger) = (Owner::of(&index, "acme"), Owner::of(&index, "acm"));
    let asset = AssetId::generate(day(0));
    let names = ["one", "two", "three"];
    mint(&owner, &names.map(|url_id| url(url_id, asset, None, None))).await;
    mint(&owner, &[url("used", asset, None, Some(1))]).await;
    take(&owner, "used").await;

    assert_eq!(revoke(&stranger, &names, day(0)).await, Vec::<String>::new());
    assert_eq!(revoke(&owner, &["two", "one", "two", "used", "nobody's"], day(0)).await, ["one", "two"]);
    assert_eq!(revoke(&owner, &["two", "one"], day(0)).await, Vec::<String>::new());
    assert_eq!(revoke(&owner, &["three"], day(1)).await, Vec::<String>::new(), "it had ended by itself");

    assert!(index.is_revoked(&owner.tenant, "one").await.expect("an answer"));
    assert!(!index.is_revoked(&owner.tenant, "three").await.expect("an answer"));
    assert_eq!(find(&owner, "two").await.map(|url| url.revoked), Some(true));
    let log = owner.log().await;
    let events = log.iter().filter(|row| row.event.kind == AuditKind::Revoke);
    assert_eq!(events.filter_map(|row| row.event.url_id.as_deref()).collect::<Vec<_>>(), ["one", "two"]);
}

pub(super) async fn the_row_of_a_url_goes_at_its_time_with_all_that_it_has(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let asset = AssetId::generate(day(0));
    mint(&owner, &[url("past", asset, Some("label"), Some(1))]).await;
    let mut later = url("later", asset, Some("label"), None);
    later.record.keep_until = day(3);
    mint(&owner, &[later]).await;
    revoke(&owner, &["past"], day(0)).await;

    assert_eq!(index.tidy(MANY, day(1)).await.expect("a count"), 0);
    assert_eq!(index.tidy(MANY, day(2)).await.expect("a count"), 2, "the URL and its revocation");

    assert_eq!(find(&owner, "past").await, None);
    assert_eq!(take(&owner, "past").await, Taken::Unknown);
    assert_eq!(labelled(&owner, "label", None, MANY).await, ["later"]);
    assert_eq!(index.tidy(MANY, day(3)).await.expect("a count"), 1);
    assert_eq!(labelled(&owner, "label", None, MANY).await, Vec::<String>::new());
}

pub(super) async fn several_generations_are_raised_at_once(index: Subject) {
    let (owner, stranger) = (Owner::of(&index, "acme"), Owner::of(&index, "acm"));
    let mut ids = Vec::new();
    for bytes in ["some", "more", "dead"] {
        ids.push(owner.upload(None, bytes, day(0)).await.record.id);
    }
    owner.delete(ids[2], day(0)).await;
    ids.sort();
    let mut named = vec![AssetId::generate(day(0)), stranger.upload(None, "some", day(0)).await.record.id, ids[0]];
    named.extend(&ids);

    assert_eq!(raise(&owner, &named).await, ids);
    assert_eq!(raise(&owner, &ids[..1]).await, ids[..1]);

    assert_eq!(owner.view(ids[0]).await.generation(), 2);
    let record = owner.view(ids[1]).await.record;
    assert_eq!((record.durable.generation, record.durable.issued_at, record.revision > 1), (1, 7, true));
    let log = owner.log().await;
    assert_eq!(log.iter().filter(|row| row.event.kind == AuditKind::Revoke).count(), 4);
    assert_eq!(raise(&owner, &[]).await, []);
}

pub(super) async fn an_epoch_raises_all_that_a_tenant_has_or_will(index: Subject) {
    let (owner, stranger) = (Owner::of(&index, "acme"), Owner::of(&index, "acm"));
    let before = owner.upload(Some("run-1"), "before", day(0)).await;
    let foreign = stranger.upload(None, "foreign", day(0)).await;
    assert_eq!((before.generation(), before.epoch), (0, 0));

    for epoch in [1, 2] {
        let audit = event(AuditKind::Revoke, day(0));
        assert_eq!(index.raise_epoch(&owner.tenant, audit).await.expect("an epoch"), epoch);
    }
    raise(&owner, &[before.record.id]).await;
    let after = owner.upload(Some("run-1"), "after", day(0)).await;

    assert_eq!(owner.view(before.record.id).await.generation(), 3);
    assert_eq!((after.generation(), owner.view(after.record.id).await), (2, after));
    assert_eq!(stranger.view(foreign.record.id).await.generation(), 0);
    let counts = [&owner, &stranger].map(|owner| owner.index.count_assets(&owner.tenant));
    let counts: Vec<u64> = join_all(counts).await.into_iter().map(|count| count.expect("a count")).collect();
    assert_eq!(counts, [2, 1]);
}

pub(super) async fn as_many_take_a_use_as_there_are(replicas: Replicas) {
    let owners = owners(&replicas);
    let asset = AssetId::generate(day(0));
    for round in 0..ROUNDS {
        let (url_id, uses) = (format!("url {round}"), 1 + round.unsigned_abs() % 5);
        mint(&owners[0], &[url(&url_id, asset, None, Some(uses))]).await;
        let mut running = Vec::new();
        for owner in owners.iter().cycle().take(8) {
            let (owner, url_id) = (owner.clone(), url_id.clone());
            running.push(tokio::spawn(async move { take(&owner, &url_id).await }));
        }

        let taken = all(running).await;

        assert_eq!(taken.iter().filter(|taken| **taken == Taken::Yours).count() as u64, uses);
        assert_eq!(taken.iter().filter(|taken| **taken == Taken::Exhausted).count() as u64, 8 - uses);
    }
}

pub(super) async fn no_use_is_taken_after_a_revocation(replicas: Replicas) {
    let [one, other] = owners(&replicas);
    let asset = AssetId::generate(day(0));
    for round in 0..ROUNDS {
        let url_id = format!("url {round}");
        // More than anybody takes until it is revoked.
        mint(&one, &[url(&url_id, asset, None, Some(1 << 40))]).await;
        let taking = {
            let (one, url_id) = (one.clone(), url_id.clone());
            tokio::spawn(async move {
                while take(&one, &url_id).await == Taken::Yours {}
                take(&one, &url_id).await
            })
        };
        assert_eq!(revoke(&other, &[&url_id], day(0)).await.len(), 1);

        assert_eq!(take(&other, &url_id).await, Taken::Unknown);
        assert_ne!(taking.await.expect("a call returns"), Taken::Yours);
    }
}
