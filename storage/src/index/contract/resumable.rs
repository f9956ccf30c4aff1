//! Uploads in parts.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::Subject;
use super::races::{Replicas, all};
use super::stage::{MANY, Owner, day, just_before, new_asset};
use crate::ids::{AssetId, BlobKey, UploadId};
use crate::index::Published;
use crate::quota::{Quota, Reserved, Usage};
use crate::resumable::{Cleared, Joining, KeptFor, Lease, Leased, Opened, Part, Purpose, Resumable, ResumableState};

/// Whoever is called by this number.
fn holder(n: u8) -> [u8; 16] {
    [n; 16]
}

fn kept(at: Timestamp) -> KeptFor {
    KeptFor { expires_at: at, look_at: at }
}

fn minutes_after(at: Timestamp, minutes: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_mins(minutes)).expect("a time in range")
}

fn joining(upload: UploadId, by: u8) -> Joining {
    Joining { upload, holder: holder(by) }
}

/// An upload that is not there yet: it expires on day 1.
fn upload(length: Option<u64>, purpose: Purpose) -> Resumable {
    Resumable {
        id: UploadId::generate(),
        length,
        offset: 0,
        purpose,
        said: json!({"metadata": "name eA=="}),
        created_at: day(0),
        expires_at: day(1),
        look_at: day(1),
        lease: None,
        state: ResumableState::Open,
    }
}

impl Owner {
    async fn begin_in_parts(&self, upload: &Resumable, quota: Quota) -> Opened {
        let bytes = upload.length.unwrap_or(0);
        let opened = self.index.begin_resumable(&self.tenant, upload.clone(), bytes, MANY as u64, quota).await;
        opened.expect("an answer to a beginning")
    }

    /// An upload of that length, leased by the first holder for a minute of day 0.
    async fn in_parts(&self, length: u64, purpose: Purpose) -> UploadId {
        let upload = upload(Some(length), purpose);
        assert_eq!(self.begin_in_parts(&upload, Quota::NONE).await, Opened::Done);
        assert!(matches!(self.lease(upload.id, 1, day(0)).await, Leased::Yours(_)));
        upload.id
    }

    async fn lease(&self, id: UploadId, by: u8, at: Timestamp) -> Leased {
        let lease = Lease { holder: holder(by), until: minutes_after(at, 1) };
        self.index.lease_resumable(&self.tenant, id, lease, at).await.expect("an answer to a lease")
    }

    async fn row(&self, id: UploadId) -> Option<Resumable> {
        self.index.resumable(&self.tenant, id).await.expect("an upload, or none")
    }

    async fn append(&self, upload: Joining, offset: u64, bytes: u64) -> Option<BlobKey> {
        let blob = self.announce(day(0)).await;
        let part = Part { offset, bytes, blob };
        let appended = self.index.append_resumable(&self.tenant, upload, part, kept(day(2))).await;
        appended.expect("an answer to a part").map(|_| blob)
    }

    async fn publish_in_parts(&self, upload: Joining, bytes: &str) -> (AssetId, Published) {
        let asset = self.staged(Some("run-1"), bytes, day(0)).await;
        let id = asset.record.id;
        let published = self.index.publish_resumable(&self.tenant, asset, upload, &self.terms, day(0)).await;
        (id, published.expect("an answer to a publication"))
    }

    async fn clear(&self, id: UploadId, limit: usize, at: Timestamp) -> Cleared {
        self.index.clear_resumable(&self.tenant, id, limit, at).await.expect("an answer to a look")
    }

    async fn use_of(&self) -> Usage {
        let usage = self.index.usage(&self.tenant).await.expect("a sum");
        let counted = self.index.counted_usage(&self.tenant).await.expect("a count");
        assert_eq!((counted.kept, counted.counted), (usage, usage));
        usage
    }

    async fn due_in_parts(&self, at: Timestamp) -> Vec<UploadId> {
        let due = self.index.due_resumables(at, MANY).await.expect("what is due");
        due.into_iter().map(|(_, id)| id).collect()
    }
}

pub(super) async fn parts_are_appended_one_behind_the_other(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.in_parts(10, Purpose::Asset).await;
    let writer = joining(id, 1);

    let first = owner.append(writer.clone(), 0, 4).await.expect("the first part");
    assert_eq!(owner.append(writer.clone(), 0, 4).await, None, "that place is taken");
    assert_eq!(owner.append(writer.clone(), 5, 4).await, None, "a gap");
    assert_eq!(owner.append(writer.clone(), 4, 7).await, None, "longer than it is to be");
    let second = owner.append(writer, 4, 6).await.expect("the rest");

    let row = owner.row(id).await.expect("the upload");
    assert_eq!((row.offset, row.length, row.expires_at, row.is_complete()), (10, Some(10), day(2), true));
    let parts = index.resumable_parts(&owner.tenant, id, 0, MANY).await.expect("parts");
    let [one, two] = [(0, 4, first), (4, 6, second)].map(|(offset, bytes, blob)| Part { offset, bytes, blob });
    assert_eq!(parts, vec![one, two]);
    assert_eq!(index.resumable_parts(&owner.tenant, id, 1, MANY).await.expect("parts"), vec![two]);
    assert_eq!(owner.blob(first).await.map(|row| (row.bytes, row.holders, row.doomed)), Some((Some(4), 1, false)));
}

pub(super) async fn a_part_is_no_upload_that_fell_silent(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.in_parts(10, Purpose::Asset).await;
    let part = owner.append(joining(id, 1), 0, 4).await.expect("a part");

    let doomed = index.doom(day(9), MANY, day(9)).await.expect("what is doomed");

    assert!(!doomed.iter().any(|one| one.blob == part), "{doomed:?}");
    let blob = owner.announce(day(0)).await;
    index.end_upload(&owner.tenant, blob).await.expect("a withdrawal");
    let stray = Part { offset: 4, bytes: 2, blob };
    let lost = index.append_resumable(&owner.tenant, joining(id, 1), stray, kept(day(2))).await.expect("an answer");
    assert_eq!(lost, None, "its bytes may be gone");
}

pub(super) async fn one_writes_at_a_time(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.in_parts(10, Purpose::Asset).await;

    assert_eq!(owner.lease(id, 2, day(0)).await, Leased::Taken);
    assert_eq!(owner.append(joining(id, 2), 0, 4).await, None);
    index.release_resumable(&owner.tenant, id, holder(2)).await.expect("an answer");
    assert_eq!(owner.lease(id, 2, day(0)).await, Leased::Taken, "only who has a lease gives it back");

    assert!(matches!(owner.lease(id, 1, minutes_after(day(0), 1)).await, Leased::Yours(_)), "renewed");
    assert_eq!(owner.lease(id, 2, minutes_after(day(0), 1)).await, Leased::Taken);
    assert!(matches!(owner.lease(id, 2, minutes_after(day(0), 2)).await, Leased::Yours(_)), "it lapsed");
    assert_eq!(owner.append(joining(id, 1), 0, 4).await, None, "who lost it writes no more");
    index.release_resumable(&owner.tenant, id, holder(2)).await.expect("an answer");
    assert!(matches!(owner.lease(id, 3, minutes_after(day(0), 2)).await, Leased::Yours(_)), "given back");
    assert_eq!(owner.lease(UploadId::generate(), 1, day(0)).await, Leased::Unknown);
}

pub(super) async fn what_is_reserved_for_parts_becomes_what_is_used(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let quota = Quota { bytes: Some(10), assets: Some(1) };
    let (first, second) = (upload(Some(10), Purpose::Asset), upload(None, Purpose::Asset));
    assert_eq!(owner.begin_in_parts(&first, quota).await, Opened::Done);
    assert_eq!(owner.begin_in_parts(&second, quota).await, Opened::OverQuota);
    assert_eq!(owner.row(second.id).await, None);
    let reserved = Usage { reserved_bytes: 10, reserved_assets: 1, ..Usage::default() };
    assert_eq!(owner.use_of().await, reserved);
    owner.lease(first.id, 1, day(0)).await;
    owner.append(joining(first.id, 1), 0, 10).await.expect("its bytes");

    let (asset, published) = owner.publish_in_parts(joining(first.id, 1), "ten bytes!").await;

    assert!(matches!(published, Published::Stored(_)), "{published:?}");
    assert_eq!(owner.use_of().await, Usage { bytes: 10, assets: 1, ..Usage::default() });
    assert_eq!(owner.row(first.id).await.and_then(|row| row.asset()), Some(asset));
}

pub(super) async fn an_upload_is_finished_once(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.in_parts(10, Purpose::Asset).await;
    let (early, refused) = owner.publish_in_parts(joining(id, 1), "ten bytes!").await;
    assert_eq!((refused, owner.find(early).await), (Published::UploadLost, None), "its bytes are not there");
    owner.append(joining(id, 1), 0, 10).await.expect("its bytes");
    let (stranger, refused) = owner.publish_in_parts(joining(id, 2), "ten bytes!").await;
    assert_eq!((refused, owner.find(stranger).await), (Published::UploadLost, None), "who has no lease");

    let (asset, _) = owner.publish_in_parts(joining(id, 1), "ten bytes!").await;
    owner.lease(id, 3, day(0)).await;
    let (again, refused) = owner.publish_in_parts(joining(id, 3), "ten bytes!").await;

    assert_eq!((refused, owner.find(again).await), (Published::UploadLost, None));
    assert!(!index.finish_resumable(&owner.tenant, joining(id, 3), again, day(0)).await.expect("an answer"));
    assert_eq!(owner.row(id).await.and_then(|row| row.asset()), Some(asset));
    assert_eq!(owner.append(joining(id, 3), 10, 1).await, None);
}

pub(super) async fn a_finished_upload_names_its_asset_until_its_time(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.in_parts(10, Purpose::Asset).await;
    let part = owner.append(joining(id, 1), 0, 10).await.expect("its bytes");
    let asset = owner.upload(None, "ten bytes!", day(0)).await.record.id;
    assert!(index.finish_resumable(&owner.tenant, joining(id, 1), asset, day(0)).await.expect("an answer"));
    assert_eq!(owner.due_in_parts(day(0)).await, vec![id], "its parts are looked for");

    let cleared = owner.clear(id, MANY, day(0)).await;

    assert_eq!(cleared, Cleared { condemned: vec![part], more: false, expired: false });
    assert!(index.doom_one(&owner.tenant, part, day(0)).await.expect("an answer"), "nothing keeps its bytes");
    assert_eq!(owner.due_in_parts(just_before(day(2))).await, vec![]);
    assert_eq!(owner.row(id).await.and_then(|row| row.asset()), Some(asset));
    owner.clear(id, MANY, day(2)).await;
    assert_eq!((owner.row(id).await, owner.due_in_parts(day(9)).await), (None, vec![]));
    assert!(owner.find(asset).await.is_some());
}

pub(super) async fn an_expired_upload_gives_back_what_it_has(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.in_parts(10, Purpose::Asset).await;
    let part = owner.append(joining(id, 1), 0, 4).await.expect("a part");
    assert_eq!(owner.due_in_parts(just_before(day(2))).await, vec![], "each part puts its end off");
    assert_eq!(owner.clear(id, MANY, just_before(day(2))).await, Cleared::default());
    owner.lease(id, 2, just_before(day(2))).await;
    assert_eq!(owner.clear(id, MANY, day(2)).await, Cleared::default(), "somebody writes");
    let later = minutes_after(day(2), 1);
    assert_eq!(owner.due_in_parts(later).await, vec![id]);

    let cleared = owner.clear(id, MANY, later).await;

    assert_eq!(cleared, Cleared { condemned: vec![part], more: false, expired: true });
    assert_eq!((owner.row(id).await, owner.use_of().await), (None, Usage::default()));
    assert_eq!(owner.due_in_parts(day(9)).await, vec![]);
}

pub(super) async fn an_upload_that_is_given_up_is_cleared_in_steps(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let id = owner.in_parts(10, Purpose::Asset).await;
    for offset in [0, 1, 2] {
        owner.append(joining(id, 1), offset, 1).await.expect("a part");
    }
    assert!(!index.end_resumable(&owner.tenant, joining(id, 2), day(0)).await.expect("an answer"), "who has no lease");

    assert!(index.end_resumable(&owner.tenant, joining(id, 1), day(0)).await.expect("an answer"));

    assert_eq!((owner.row(id).await, owner.use_of().await), (None, Usage::default()));
    assert_eq!(owner.lease(id, 3, day(0)).await, Leased::Unknown);
    let step = owner.clear(id, 2, day(0)).await;
    assert_eq!((step.condemned.len(), step.more, step.expired), (2, true, false));
    let step = owner.clear(id, 2, day(0)).await;
    assert_eq!((step.condemned.len(), step.more), (1, false));
    assert_eq!(owner.due_in_parts(day(9)).await, vec![]);
}

pub(super) async fn a_length_is_said_once(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let upload = upload(None, Purpose::Asset);
    owner.begin_in_parts(&upload, Quota::NONE).await;
    owner.lease(upload.id, 1, day(0)).await;
    let extend = async |bytes, length, quota| {
        let asked = index.extend_resumable(&owner.tenant, joining(upload.id, 1), bytes, length, quota).await;
        asked.expect("an answer to a wish")
    };
    owner.append(joining(upload.id, 1), 0, 4).await.expect("a part");

    assert_eq!(extend(3, Some(3), Quota::NONE).await, Reserved::UploadLost, "it has more already");
    let quota = Quota { bytes: Some(9), assets: None };
    assert_eq!(extend(10, Some(10), quota).await, Reserved::OverQuota);
    assert_eq!(owner.row(upload.id).await.and_then(|row| row.length), None);
    assert_eq!(extend(9, Some(9), quota).await, Reserved::Done);
    assert_eq!(extend(9, Some(8), Quota::NONE).await, Reserved::UploadLost, "another length");
    assert_eq!(extend(9, Some(9), Quota::NONE).await, Reserved::Done);

    assert_eq!(owner.row(upload.id).await.and_then(|row| row.length), Some(9));
    assert_eq!(owner.use_of().await.reserved_bytes, 9);
}

pub(super) async fn pieces_end_with_what_is_joined_of_them(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let (one, two) = (owner.in_parts(4, Purpose::Piece).await, owner.in_parts(6, Purpose::Piece).await);
    let joined = upload(Some(10), Purpose::Joined(vec![one, two]));
    let opened = index.begin_resumable(&owner.tenant, joined.clone(), 0, MANY as u64, Quota::NONE).await;
    assert_eq!(opened.expect("an answer"), Opened::Done);
    owner.lease(joined.id, 1, day(0)).await;
    owner.append(joining(one, 1), 0, 4).await.expect("its bytes");
    let (early, refused) = owner.publish_in_parts(joining(joined.id, 1), "ten bytes!").await;
    assert_eq!((refused, owner.find(early).await), (Published::UploadLost, None), "a piece is not whole");
    owner.append(joining(two, 1), 0, 6).await.expect("its bytes");
    assert_eq!(owner.append(joining(joined.id, 1), 0, 1).await, None, "it has no bytes of its own");

    let (asset, _) = owner.publish_in_parts(joining(joined.id, 1), "ten bytes!").await;

    assert_eq!(owner.row(joined.id).await.map(|row| (row.offset, row.asset())), Some((10, Some(asset))));
    assert_eq!((owner.row(one).await, owner.row(two).await), (None, None));
    assert_eq!(owner.use_of().await, Usage { bytes: 10, assets: 1, ..Usage::default() });
    let (alone, refused) = owner.publish_in_parts(joining(one, 1), "ten bytes!").await;
    assert_eq!((refused, owner.find(alone).await), (Published::UploadLost, None), "no asset is made of a piece");
}

pub(super) async fn a_tenant_has_so_many_in_parts_at_most(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let open = async |most| {
        let new = upload(Some(1), Purpose::Asset);
        index.begin_resumable(&owner.tenant, new, 1, most, Quota::NONE).await.expect("an answer")
    };
    assert_eq!((open(2).await, open(2).await), (Opened::Done, Opened::Done));
    assert_eq!(open(2).await, Opened::TooMany);
    assert_eq!(open(3).await, Opened::Done);
}

pub(super) async fn nobody_finds_the_parts_of_another_tenant(index: Subject) {
    let (owner, other) = (Owner::of(&index, "acme"), Owner::of(&index, "acme2"));
    let id = owner.in_parts(10, Purpose::Asset).await;
    owner.append(joining(id, 1), 0, 10).await.expect("its bytes");

    assert_eq!((other.row(id).await, other.lease(id, 1, day(9)).await), (None, Leased::Unknown));
    assert_eq!(index.resumable_parts(&other.tenant, id, 0, MANY).await.expect("parts"), vec![]);
    assert_eq!(other.append(joining(id, 1), 10, 1).await, None);
    assert!(!index.end_resumable(&other.tenant, joining(id, 1), day(0)).await.expect("an answer"));
    let asset = new_asset(&other.tenant, None, "ten bytes!", other.announce(day(0)).await, day(0));
    let published = index.publish_resumable(&other.tenant, asset, joining(id, 1), &other.terms, day(0)).await;
    assert_eq!(published.expect("an answer"), Published::UploadLost);
    assert_eq!(other.clear(id, MANY, day(9)).await, Cleared::default());
    assert_eq!(owner.row(id).await.map(|row| row.offset), Some(10));
}

pub(super) async fn of_two_writers_one_has_the_lease(replicas: Replicas) {
    let owner = Owner::of(&replicas[0], "acme");
    for _ in 0..10 {
        let upload = upload(Some(10), Purpose::Asset);
        owner.begin_in_parts(&upload, Quota::NONE).await;
        let asking = (0..8_u8).map(|n| {
            let asker = Owner::of(&replicas[usize::from(n % 2)], "acme");
            tokio::spawn(async move { asker.lease(upload.id, n, day(0)).await })
        });
        let won = all(asking.collect::<Vec<_>>()).await.into_iter().filter(|leased| matches!(leased, Leased::Yours(_)));
        assert_eq!(won.count(), 1);
    }
}
