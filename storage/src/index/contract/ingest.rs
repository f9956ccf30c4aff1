//! Publication.

use super::Subject;
use super::stage::{Owner, day, new_asset, run_id, stored};
use crate::ids::BlobKey;
use crate::index::Published;
use crate::retention::{FloorSource, Until};

pub(super) async fn what_is_published_is_visible(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let asset = owner.staged(Some("run-1"), "bytes", day(0)).await;

    let published = owner.publish(asset.clone(), day(0)).await;

    let view = owner.view(asset.record.id).await;
    assert_eq!(published, Published::Stored(view.clone()));
    assert_eq!(view.record, asset.record);
    assert_eq!((view.references, view.reference_count), (vec![run_id("run-1")], 1));
    assert_eq!((view.floor.until, view.floor.source), (Until::At(day(30)), FloorSource::Default));
    assert_eq!(owner.shareable("bytes").await, Some(asset.record.blob));
    let blob = owner.blob(asset.record.blob).await.expect("the blob has a row");
    assert_eq!((blob.bytes, blob.holders, blob.doomed), (Some(5), 1, false));
}

pub(super) async fn an_upload_that_was_not_announced_is_lost(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let asset = new_asset(&owner.tenant, Some("run-1"), "bytes", BlobKey::generate(), day(0));

    assert_eq!(owner.publish(asset.clone(), day(0)).await, Published::UploadLost);

    assert_eq!(owner.find(asset.record.id).await, None);
    assert_eq!(index.run(&owner.tenant, &run_id("run-1")).await.expect("a run, or none"), None);
    assert_eq!(owner.log().await, vec![]);
}

pub(super) async fn a_withdrawn_upload_is_lost(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let asset = owner.staged(None, "bytes", day(0)).await;
    index.end_upload(&owner.tenant, asset.record.blob).await.expect("a withdrawal");

    assert_eq!(owner.publish(asset, day(0)).await, Published::UploadLost);
    assert_eq!(owner.blobs().await, vec![]);
}

pub(super) async fn the_second_publication_of_one_upload_is_lost(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let first = owner.staged(None, "bytes", day(0)).await;
    let second = new_asset(&owner.tenant, None, "bytes", first.record.blob, day(0));
    let first = stored(owner.publish(first, day(0)).await);

    assert_eq!(owner.publish(second, day(0)).await, Published::UploadLost);
    // Nor does announcing it anew, or withdrawing it, touch what is held.
    owner.alive(first.record.blob, day(1)).await;
    index.end_upload(&owner.tenant, first.record.blob).await.expect("an answer");
    assert_eq!(owner.blob(first.record.blob).await.map(|row| row.holders), Some(1));
}

pub(super) async fn equal_bytes_of_a_tenant_share_a_blob(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let first = owner.upload(None, "bytes", day(0)).await.record;
    let second = owner.staged(Some("run-1"), "bytes", day(0)).await;
    let copy = second.record.blob;

    let published = owner.publish(second.clone(), day(0)).await;

    let view = owner.view(second.record.id).await;
    assert_eq!(published, Published::Shared(view.clone()));
    assert_eq!(view.record.blob, first.blob);
    assert_eq!(owner.blob(first.blob).await.map(|row| row.holders), Some(2));
    assert!(owner.blob(copy).await.expect("the copy has a row until it is gone").doomed);
}

pub(super) async fn equal_bytes_of_two_tenants_share_nothing(index: Subject) {
    let (acme, other) = (Owner::of(&index, "acme"), Owner::of(&index, "acme2"));
    let first = acme.upload(None, "bytes", day(0)).await.record;

    assert_eq!(other.shareable("bytes").await, None);
    let second = other.staged(None, "bytes", day(0)).await;
    let published = other.publish(second.clone(), day(0)).await;

    assert_eq!(published, Published::Stored(other.view(second.record.id).await));
    assert_ne!(first.blob, second.record.blob);
}
