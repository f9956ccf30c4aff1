//! What a tenant uses, and what its quota leaves.

use tokio::task::spawn;

use super::Subject;
use super::races::{ROUNDS, Replicas, all, owners};
use super::stage::{MANY, Owner, day, new_asset, stored};
use crate::ids::BlobKey;
use crate::index::Restored;
use crate::quota::{Counted, Quota, Reserved, Usage};
use crate::record::UploadIntent;

const TEN_BYTES: &str = "ten bytes!";

fn used(bytes: u64, assets: u64) -> Usage {
    Usage { bytes, assets, ..Usage::default() }
}

fn bytes(most: u64) -> Quota {
    Quota { bytes: Some(most), assets: None }
}

fn assets(most: u64) -> Quota {
    Quota { bytes: None, assets: Some(most) }
}

impl Owner {
    /// What it uses, which is what a count comes to.
    async fn usage(&self) -> Usage {
        let usage = self.index.usage(&self.tenant).await.expect("a sum");
        let counted = self.index.counted_usage(&self.tenant).await.expect("a count");
        assert_eq!(counted, Counted { kept: usage, counted: usage });
        usage
    }

    async fn begin(&self, blob: BlobKey, bytes: u64, quota: Quota) -> Reserved {
        let intent = UploadIntent { blob, alive_at: day(0), asset: None };
        self.index.begin_reserved(&self.tenant, intent, bytes, quota).await.expect("an answer to a reservation")
    }

    async fn reserve(&self, blob: BlobKey, bytes: u64, quota: Quota) -> Reserved {
        self.index.reserve(&self.tenant, blob, bytes, quota).await.expect("an answer to a reservation")
    }

    /// Uploads the bytes under a quota, if it leaves so much.
    async fn upload_under(&self, quota: Quota, bytes: &str) -> Reserved {
        let blob = BlobKey::generate();
        let reserved = self.begin(blob, bytes.len() as u64, quota).await;
        if reserved == Reserved::Done {
            stored(self.publish(new_asset(&self.tenant, None, bytes, blob, day(0)), day(0)).await);
        }
        reserved
    }
}

pub(super) async fn what_is_reserved_becomes_what_is_used(index: Subject) {
    let owner = Owner::of(&index, "acme");
    assert_eq!(owner.usage().await, Usage::default());
    let blob = BlobKey::generate();

    assert_eq!(owner.begin(blob, 12, Quota::NONE).await, Reserved::Done);
    assert_eq!(owner.usage().await, Usage { reserved_bytes: 12, reserved_assets: 1, ..Usage::default() });
    assert_eq!(owner.blob(blob).await.map(|row| row.bytes), Some(None), "it is announced");

    stored(owner.publish(new_asset(&owner.tenant, Some("run-1"), TEN_BYTES, blob, day(0)), day(0)).await);
    assert_eq!(owner.usage().await, used(10, 1));
}

pub(super) async fn equal_bytes_count_as_often_as_they_are_there(index: Subject) {
    let owner = Owner::of(&index, "acme");
    for n in 1..=3 {
        assert_eq!(owner.upload_under(bytes(30), TEN_BYTES).await, Reserved::Done);
        assert_eq!(owner.usage().await, used(10 * n, n));
    }
    assert_eq!(owner.upload_under(bytes(30), TEN_BYTES).await, Reserved::OverQuota, "though it would share a blob");
}

pub(super) async fn what_ends_counts_no_more(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let deleted = owner.upload(None, "a", day(0)).await.record.id;
    let erased = owner.upload(None, "bb", day(0)).await.record.id;
    owner.upload(Some("run-1"), "cccc", day(0)).await;
    owner.upload(Some("run-1"), "cccc", day(0)).await;
    let asked = owner.upload(None, "dddddddd", day(0)).await.record.id;
    owner.upload(Some("run-2"), "sixteen bytes ok", day(0)).await;
    assert_eq!(owner.usage().await, used(35, 6));

    owner.delete(deleted, day(0)).await;
    assert_eq!(owner.usage().await, used(34, 5));
    owner.erase(erased, day(0)).await;
    assert_eq!(owner.usage().await, used(32, 4));
    owner.erase_run("run-1", day(0)).await;
    owner.sweep(day(0)).await;
    assert_eq!(owner.usage().await, used(24, 2));
    owner.index.expire_if_due(&owner.tenant, asked, &owner.terms, "host", day(1)).await.expect("an answer");
    assert_eq!(owner.usage().await, used(16, 1));
    owner.sweep(day(30)).await;
    assert_eq!(owner.usage().await, Usage::default());
    index.tidy(MANY, day(30)).await.expect("an answer");
    assert_eq!(owner.usage().await, Usage::default());
}

pub(super) async fn what_has_ended_before_is_not_taken_off_again(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let kept = owner.upload(Some("run-1"), "kept", day(0)).await.record;
    let id = owner.upload(None, TEN_BYTES, day(0)).await.record.id;
    for _ in 0..2 {
        owner.delete(id, day(0)).await;
        assert_eq!(owner.usage().await, used(kept.bytes, 1));
    }
    owner.erase(id, day(0)).await;
    owner.sweep(day(29)).await;
    assert_eq!(owner.usage().await, used(kept.bytes, 1));
}

pub(super) async fn nothing_is_reserved_beyond_the_quota(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.upload(None, TEN_BYTES, day(0)).await;
    let [first, second] = [BlobKey::generate(), BlobKey::generate()];

    assert_eq!(owner.begin(first, 21, bytes(30)).await, Reserved::OverQuota);
    assert_eq!(owner.begin(first, 0, assets(1)).await, Reserved::OverQuota);
    assert_eq!(owner.blob(first).await, None, "nothing is announced");
    assert_eq!(owner.begin(first, 20, bytes(30)).await, Reserved::Done);
    assert_eq!(owner.begin(second, 1, bytes(30)).await, Reserved::OverQuota);
    assert_eq!(owner.begin(second, 0, assets(2)).await, Reserved::OverQuota);
    assert_eq!(owner.usage().await, Usage { reserved_bytes: 20, reserved_assets: 1, ..used(10, 1) });
    assert_eq!(owner.begin(second, 1, Quota { bytes: Some(31), assets: Some(3) }).await, Reserved::Done);
}

pub(super) async fn a_reservation_grows_as_far_as_the_quota_goes(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let blob = BlobKey::generate();
    owner.begin(blob, 10, bytes(30)).await;

    assert_eq!(owner.reserve(blob, 30, bytes(30)).await, Reserved::Done);
    assert_eq!(owner.reserve(blob, 31, bytes(30)).await, Reserved::OverQuota);
    assert_eq!(owner.reserve(blob, 5, bytes(1)).await, Reserved::Done, "what it has it keeps");
    // A sign of life alone changes nothing of it.
    owner.alive(blob, day(1)).await;
    assert_eq!(owner.usage().await, Usage { reserved_bytes: 30, reserved_assets: 1, ..Usage::default() });
    let unreserved = owner.announce(day(0)).await;
    assert_eq!(owner.reserve(unreserved, 1, bytes(30)).await, Reserved::OverQuota);
    assert_eq!(owner.reserve(unreserved, 1, bytes(31)).await, Reserved::Done);
}

pub(super) async fn a_reservation_ends_with_its_upload(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let [withdrawn, silent, alive] = [BlobKey::generate(), BlobKey::generate(), BlobKey::generate()];
    for blob in [withdrawn, silent, alive] {
        owner.begin(blob, 10, bytes(30)).await;
    }
    owner.alive(alive, day(2)).await;

    index.end_upload(&owner.tenant, withdrawn).await.expect("a withdrawal");
    assert_eq!(owner.usage().await, Usage { reserved_bytes: 20, reserved_assets: 2, ..Usage::default() });
    // A process that was killed says nothing any more.
    index.doom(day(1), MANY, day(2)).await.expect("the doomed");
    assert_eq!(owner.usage().await, Usage { reserved_bytes: 10, reserved_assets: 1, ..Usage::default() });
    // Announced once more, it has nothing of what it had.
    owner.alive(withdrawn, day(2)).await;
    assert_eq!(owner.usage().await, Usage { reserved_bytes: 10, reserved_assets: 1, ..Usage::default() });
    assert_eq!(owner.upload_under(bytes(30), TEN_BYTES).await, Reserved::Done);
    assert_eq!(owner.upload_under(bytes(30), "eleven byte").await, Reserved::OverQuota);
}

pub(super) async fn a_quota_below_the_use_takes_nothing_away(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.upload(None, TEN_BYTES, day(0)).await.record.id;
    let blob = BlobKey::generate();
    owner.begin(blob, 10, Quota::NONE).await;

    assert_eq!(owner.upload_under(bytes(5), "").await, Reserved::OverQuota);
    assert_eq!(owner.upload_under(assets(1), "").await, Reserved::OverQuota);
    assert_eq!(owner.reserve(blob, 10, bytes(5)).await, Reserved::Done);
    stored(owner.publish(new_asset(&owner.tenant, None, TEN_BYTES, blob, day(0)), day(0)).await);
    assert!(owner.lives(id).await);
    assert_eq!(owner.usage().await, used(20, 2));
}

pub(super) async fn what_is_over_reserves_nothing(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let published = owner.upload(None, TEN_BYTES, day(0)).await.record.blob;
    for quota in [Quota::NONE, bytes(1)] {
        assert_eq!(owner.reserve(published, 5, quota).await, Reserved::UploadLost);
        assert_eq!(owner.begin(published, 5, quota).await, Reserved::UploadLost);
        assert_eq!(owner.reserve(BlobKey::generate(), 5, quota).await, Reserved::UploadLost);
    }
    assert_eq!(owner.usage().await, used(10, 1));
}

pub(super) async fn one_tenants_use_is_not_anothers(index: Subject) {
    let (acme, other) = (Owner::of(&index, "acme"), Owner::of(&index, "acme2"));
    acme.upload(None, TEN_BYTES, day(0)).await;
    acme.begin(BlobKey::generate(), 10, bytes(20)).await;

    assert_eq!(other.usage().await, Usage::default());
    assert_eq!(other.upload_under(Quota { bytes: Some(10), assets: Some(1) }, TEN_BYTES).await, Reserved::Done);
    assert_eq!((acme.usage().await.bytes, other.usage().await), (10, used(10, 1)));
}

pub(super) async fn an_index_made_anew_counts_what_it_has(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let live = owner.staged(Some("run-1"), TEN_BYTES, day(0)).await.record;
    let shared = owner.staged(Some("run-1"), TEN_BYTES, day(0)).await.record;
    let dead = owner.upload(None, "dead", day(0)).await.record.id;
    owner.delete(dead, day(0)).await;
    let dead = owner.find(dead).await.expect("a tombstone");
    let anew = Owner::of(&index, "anew");
    let restored = |record: &crate::AssetRecord| Restored::Asset { record: Box::new(record.clone()), has_bytes: true };
    let kept = vec![restored(&live), restored(&shared), restored(&dead)];

    for _ in 0..2 {
        index.restore(&anew.tenant, kept.clone(), &anew.terms, day(0)).await.expect("it is written");
        assert_eq!(anew.usage().await, used(20, 2), "what is restored twice counts once");
    }
    anew.delete(live.id, day(40)).await;
    anew.sweep(day(40)).await;
    assert_eq!(anew.usage().await, Usage::default());
}

pub(super) async fn no_more_is_published_than_the_quota_leaves(replicas: Replicas) {
    let owners = owners(&replicas);
    for round in 0..ROUNDS as u64 {
        // Room for three more of them, by bytes in one round and by number in the next.
        let already = 3 * round;
        let quota = match round % 2 {
            0 => bytes(10 * already + 39),
            _ => assets(already + 3),
        };
        let running = owners.iter().cycle().take(8).cloned().map(|owner| {
            spawn(async move {
                let bytes = format!("ten {round:02} {:03}", BlobKey::generate().to_bytes()[0]);
                owner.upload_under(quota, &bytes).await
            })
        });

        let answers = all(running.collect()).await;

        assert_eq!(answers.iter().filter(|answer| **answer == Reserved::Done).count(), 3, "round {round}: {answers:?}");
        let now = owners[1].usage().await;
        assert_eq!(now, used(10 * (already + 3), already + 3), "round {round}");
    }
}

pub(super) async fn what_many_publish_and_end_is_all_counted(replicas: Replicas) {
    let owners = owners(&replicas);
    let running = owners.iter().cycle().take(6).cloned().enumerate().map(|(n, owner)| {
        spawn(async move {
            for round in 0..ROUNDS {
                let id = owner.upload(None, &format!("ten {n} {round:03} "), day(0)).await.record.id;
                match round % 4 {
                    0 => drop(owner.delete(id, day(0)).await),
                    1 => drop(owner.erase(id, day(0)).await),
                    2 => drop(owner.index.tidy(MANY, day(0)).await.expect("an answer")),
                    _ => drop(owner.upload_under(bytes(1 << 20), TEN_BYTES).await),
                }
            }
        })
    });
    all(running.collect()).await;

    // Of each twenty, ten have ended and five are beside others.
    assert_eq!(owners[0].usage().await, used(6 * 15 * 10, 6 * 15));
    owners[1].sweep(day(1)).await;
    assert_eq!(owners[0].usage().await, Usage::default());
}
