//! The life of a blob.

use jiff::Timestamp;

use super::Subject;
use super::stage::{MANY, Owner, day, just_before, stored};
use crate::ids::{AssetId, BlobKey};
use crate::index::Published;
use crate::record::{Doomed, UploadIntent};

pub(super) async fn the_last_holder_condemns_the_blob(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let first = owner.upload(None, "bytes", day(0)).await.record;
    let last = owner.upload_asking(None, "bytes", day(4), day(0)).await.record;
    owner.remove_doomed(day(1)).await;

    owner.sweep(day(1)).await;
    assert!(!owner.lives(first.id).await);
    assert_eq!(owner.doom(day(100)).await, vec![], "one still holds it");
    owner.sweep(day(4)).await;

    assert!(!owner.lives(last.id).await);
    assert_eq!(owner.doom(just_before(day(6))).await, vec![], "two days for somebody to take it up");
    assert_eq!(owner.remove_doomed(day(6)).await, vec![first.blob]);
    assert_eq!(owner.blobs().await, vec![]);
}

pub(super) async fn a_condemned_blob_is_rescued_by_the_same_bytes(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let first = owner.upload(None, "bytes", day(0)).await.record;
    owner.sweep(day(1)).await;
    assert_eq!(owner.shareable("bytes").await, Some(first.blob));

    let second = owner.staged(None, "bytes", day(2)).await;
    let copy = second.record.blob;
    let published = owner.publish(second, day(2)).await;

    assert!(matches!(published, Published::Shared(_)), "{published:?}");
    assert_eq!(stored(published).record.blob, first.blob);
    assert_eq!(owner.remove_doomed(just_before(day(10))).await, vec![copy]);
    assert_eq!(owner.blob(first.blob).await.map(|row| (row.holders, row.doomed)), Some((1, false)));
    assert!(!owner.lives(first.id).await, "the bytes are taken up, not the asset");
}

pub(super) async fn a_doomed_blob_is_out_of_reach(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let first = owner.upload(None, "bytes", day(0)).await.record;
    owner.sweep(day(1)).await;
    let doomed = owner.doom(day(3)).await;
    assert_eq!(doomed, vec![Doomed { tenant: owner.tenant.clone(), blob: first.blob, asset: None }]);

    assert_eq!(owner.shareable("bytes").await, None);
    let second = owner.staged(None, "bytes", day(3)).await;
    let published = owner.publish(second.clone(), day(3)).await;

    assert_eq!(published, Published::Stored(owner.view(second.record.id).await));
    index.forget(&doomed[0]).await.expect("a doomed blob is forgotten");
    assert_eq!(owner.shareable("bytes").await, Some(second.record.blob), "the new one is not the old one's to forget");
}

pub(super) async fn deleted_bytes_go_at_once(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let record = owner.upload(None, "bytes", day(0)).await.record;
    owner.delete(record.id, day(0)).await;

    assert_eq!(owner.remove_doomed(day(0)).await, vec![record.blob]);
}

pub(super) async fn a_copy_goes_at_its_time_or_when_it_is_forgotten(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let held = owner.upload(None, "bytes", day(0)).await.record.blob;
    let left = owner.staged(None, "bytes", day(0)).await;
    let removed = owner.staged(None, "bytes", day(0)).await;
    for copy in [&left, &removed] {
        stored(owner.publish(copy.clone(), day(0)).await);
    }

    let forgotten = Doomed { tenant: owner.tenant.clone(), blob: removed.record.blob, asset: None };
    index.forget(&forgotten).await.expect("a copy is forgotten");

    assert_eq!(owner.doom(just_before(day(1))).await, vec![]);
    assert_eq!(owner.remove_doomed(day(1)).await, vec![left.record.blob]);
    assert_eq!(owner.blobs().await.into_iter().map(|row| row.blob).collect::<Vec<_>>(), vec![held]);
}

pub(super) async fn a_silent_upload_is_doomed_and_a_living_one_is_not(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let silent = owner.announce(day(0)).await;
    let living = owner.announce(day(0)).await;
    owner.alive(living, day(2)).await;
    owner.alive(living, day(1)).await;
    let asset = super::stage::new_asset(&owner.tenant, None, "bytes", silent, day(2));

    let doomed = index.doom(day(2), MANY, day(2)).await.expect("the doomed");

    assert_eq!(doomed.into_iter().map(|one| one.blob).collect::<Vec<_>>(), vec![silent]);
    // Too late to show life, or to publish.
    owner.alive(silent, day(2)).await;
    assert_eq!(owner.publish(asset, day(2)).await, Published::UploadLost);
    index.end_upload(&owner.tenant, silent).await.expect("an answer");
    assert!(owner.blob(silent).await.expect("it is named until it is forgotten").doomed);
    assert_eq!(owner.blob(living).await.map(|row| (row.bytes, row.doomed)), Some((None, false)));
}

pub(super) async fn an_upload_that_comes_to_nothing_says_what_it_was_to_become(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let begin = async |blob, asset, at| {
        let intent = UploadIntent { blob, alive_at: at, asset };
        index.begin_upload(&owner.tenant, intent).await.expect("an announcement");
    };
    let (silent, becomes) = (BlobKey::generate(), BlobKey::generate());
    let names = [AssetId::generate(day(0)), AssetId::generate(day(0))];
    begin(silent, Some(names[0]), day(0)).await;
    begin(silent, None, day(1)).await;
    begin(becomes, Some(names[1]), day(0)).await;
    let asset = super::stage::new_asset(&owner.tenant, None, "bytes", becomes, day(1));
    let made = stored(owner.publish(asset, day(1)).await).record;
    owner.delete(made.id, day(1)).await;

    let mut doomed = index.doom(day(2), MANY, day(2)).await.expect("the doomed");
    doomed.sort_by_key(|one| one.blob == becomes);
    let told = |doomed: &[Doomed]| doomed.iter().map(|one| (one.blob, one.asset)).collect::<Vec<_>>();
    assert_eq!(told(&doomed), [(silent, Some(names[0])), (becomes, None)]);

    index.forget(&doomed[1]).await.expect("a doomed blob is forgotten");
    let again = index.doom(day(2), MANY, day(2)).await.expect("the doomed");
    assert_eq!(told(&again), [(silent, Some(names[0]))], "and says so until it is forgotten");
}

pub(super) async fn one_blob_is_doomed_if_its_time_has_come(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let doom_one = async |blob, now| index.doom_one(&owner.tenant, blob, now).await.expect("an answer");
    let [held, condemned, deleted] = ["held", "condemned", "deleted"].map(|bytes| owner.upload(None, bytes, day(0)));
    let (held, condemned, deleted) = (held.await.record, condemned.await.record, deleted.await.record);
    let uploading = owner.announce(day(0)).await;
    index.expire_if_due(&owner.tenant, condemned.id, &owner.terms, "host", day(1)).await.expect("an end");
    owner.delete(deleted.id, day(1)).await;

    for blob in [held.blob, condemned.blob, uploading, BlobKey::generate()] {
        assert!(!doom_one(blob, day(1)).await);
    }
    let stranger = Owner::of(&index, "globex").tenant;
    assert!(!index.doom_one(&stranger, deleted.blob, day(1)).await.expect("an answer"));
    assert_eq!(owner.shareable("deleted").await, Some(deleted.blob));

    assert!(doom_one(deleted.blob, day(1)).await);
    assert!(doom_one(deleted.blob, day(1)).await, "and so it stays");
    assert_eq!(owner.shareable("deleted").await, None);
    assert_eq!(owner.remove_doomed(day(1)).await, vec![deleted.blob]);
    assert!(!doom_one(deleted.blob, day(1)).await, "there is no such blob any more");
}

pub(super) async fn a_doomed_blob_is_named_until_it_is_forgotten(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for n in 0..3 {
        let id = owner.upload(None, &format!("bytes {n}"), day(0)).await.record.id;
        owner.delete(id, day(0)).await;
    }

    let doom = async |limit| index.doom(Timestamp::MIN, limit, day(0)).await.expect("the doomed");
    assert_eq!(doom(2).await.len(), 2);
    let mut all = doom(MANY).await;
    assert_eq!(all.len(), 3, "what was taken now, and what was taken then");
    let forgotten = all.pop().expect("there are three");
    index.forget(&forgotten).await.expect("a doomed blob is forgotten");
    index.forget(&forgotten).await.expect("twice is once");

    let by_name = |doomed: &Doomed| doomed.blob;
    let mut left = doom(MANY).await;
    left.sort_by_key(by_name);
    all.sort_by_key(by_name);
    assert_eq!(left, all);
}

pub(super) async fn nothing_that_is_held_is_forgotten(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let held = owner.upload(None, "bytes", day(0)).await.record.blob;
    let uploading = owner.announce(day(0)).await;
    let condemned = owner.upload(None, "more bytes", day(-5)).await.record.blob;
    owner.sweep(day(-4)).await;

    for blob in [held, uploading, condemned] {
        let doomed = Doomed { tenant: owner.tenant.clone(), blob, asset: None };
        index.forget(&doomed).await.expect("an answer");
        assert!(owner.blob(blob).await.is_some());
    }
}

pub(super) async fn every_blob_is_listed_once_and_in_order(index: Subject) {
    let mut right = Vec::new();
    for name in ["b", "a", "a-1"] {
        let owner = Owner::of(&index, name);
        right.push((owner.tenant.clone(), owner.announce(day(0)).await));
        right.push((owner.tenant.clone(), owner.upload(None, "bytes", day(0)).await.record.blob));
    }
    right.sort();

    let mut seen = Vec::new();
    loop {
        let rows = index.blobs(seen.last().cloned(), 2).await.expect("a list");
        if rows.is_empty() {
            break;
        }
        seen.extend(rows.into_iter().map(|row| (row.tenant, row.blob)));
    }
    assert_eq!(seen, right);

    let assets = index.assets(None, 2).await.expect("a list");
    let after = assets.last().map(|record| (record.tenant.clone(), record.id));
    assert_eq!(assets.len() + index.assets(after, 2).await.expect("a list").len(), 3);
}
