//! Idempotency keys.

use super::Subject;
use super::stage::{MANY, Owner, claim, day, event, just_before, settled, sha256, stored};
use crate::audit::AuditKind;
use crate::index::{Claimed, Published};
use crate::record::Claim;

async fn take(owner: &Owner, claim: &Claim, at: jiff::Timestamp) -> Claimed {
    owner.index.claim(&owner.tenant, claim.clone(), at).await.expect("an answer to a claim")
}

pub(super) async fn a_key_has_one_holder_at_a_time(index: Subject) {
    let owner = Owner::of(&index, "acme");

    assert_eq!(take(&owner, &claim("key", 1, day(0)), day(0)).await, Claimed::Yours);
    assert_eq!(take(&owner, &claim("key", 2, day(0)), day(0)).await, Claimed::InFlight);
    assert_eq!(take(&owner, &claim("key", 1, day(0)), day(0)).await, Claimed::Yours);
    assert_eq!(take(&owner, &claim("another", 2, day(0)), day(0)).await, Claimed::Yours);
}

pub(super) async fn a_claim_that_lapsed_is_as_if_it_had_never_been(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let first = claim("key", 1, day(0));
    take(&owner, &first, day(0)).await;

    let last_moment = just_before(first.lapses_at);
    assert_eq!(take(&owner, &claim("key", 2, last_moment), last_moment).await, Claimed::InFlight);
    assert_eq!(take(&owner, &claim("key", 2, first.lapses_at), first.lapses_at).await, Claimed::Yours);
}

pub(super) async fn only_its_holder_renews_or_releases_a_claim(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let (mine, theirs) = (claim("key", 1, day(0)), claim("key", 2, day(0)));
    take(&owner, &mine, day(0)).await;
    let renew = async |claim: &Claim| index.renew_claim(&owner.tenant, claim).await.expect("an answer");
    let release = async |claim: &Claim| index.release_claim(&owner.tenant, claim).await.expect("an answer");

    assert!(!renew(&theirs).await);
    release(&theirs).await;
    assert_eq!(take(&owner, &theirs, day(0)).await, Claimed::InFlight);

    assert!(renew(&claim("key", 1, day(1))).await);
    assert!(renew(&mine).await, "an older request for time takes none away");
    assert_eq!(take(&owner, &claim("key", 2, day(1)), day(1)).await, Claimed::InFlight);

    release(&mine).await;
    assert!(!renew(&mine).await);
    assert_eq!(take(&owner, &claim("key", 2, day(1)), day(1)).await, Claimed::Yours);
}

pub(super) async fn a_finished_request_leaves_its_answer(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let held = claim("key", 1, day(0));
    take(&owner, &held, day(0)).await;
    let mut asset = owner.staged(None, "bytes", day(0)).await;
    asset.settled = Some(settled(&held, day(0)));
    let made = stored(owner.publish(asset, day(0)).await).record.id;
    let answer = Claimed::Settled { asset: made, fingerprint: sha256("the request") };

    assert_eq!(take(&owner, &claim("key", 2, day(0)), day(0)).await, answer);
    assert!(!index.renew_claim(&owner.tenant, &held).await.expect("an answer"), "it holds nothing any more");
    index.release_claim(&owner.tenant, &held).await.expect("an answer");
    assert_eq!(take(&owner, &held, just_before(day(1))).await, answer, "an answer is nobody's to give up");

    assert_eq!(take(&owner, &claim("key", 2, day(1)), day(1)).await, Claimed::Yours);
}

pub(super) async fn a_lost_claim_publishes_nothing(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let lost = claim("key", 1, day(0));
    take(&owner, &claim("key", 2, day(0)), day(0)).await;
    let mut asset = owner.staged(Some("run-1"), "bytes", day(0)).await;
    asset.settled = Some(settled(&lost, day(0)));

    assert_eq!(owner.publish(asset.clone(), day(0)).await, Published::ClaimLost);

    assert_eq!(owner.find(asset.record.id).await, None);
    assert_eq!(owner.shareable("bytes").await, None);
    assert_eq!(owner.log().await, vec![]);
    // The upload is still announced, so it can be tried again.
    asset.settled = None;
    stored(owner.publish(asset, day(0)).await);
}

pub(super) async fn a_lapsed_claim_publishes_nothing(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let lapsed = claim("key", 1, day(0));
    take(&owner, &lapsed, day(0)).await;
    let mut asset = owner.staged(None, "bytes", day(0)).await;
    asset.record.blob = crate::ids::BlobKey::generate();
    asset.settled = Some(settled(&lapsed, day(0)));

    let published = owner.publish(asset, lapsed.lapses_at).await;
    assert_eq!(published, Published::ClaimLost, "which is looked at before the upload, lost too");
}

pub(super) async fn a_key_of_one_tenant_is_nothing_to_another(index: Subject) {
    let (acme, other) = (Owner::of(&index, "acme"), Owner::of(&index, "acm"));
    take(&acme, &claim("ekey", 1, day(0)), day(0)).await;

    assert_eq!(take(&other, &claim("eekey", 2, day(0)), day(0)).await, Claimed::Yours);
    assert_eq!(take(&other, &claim("ekey", 2, day(0)), day(0)).await, Claimed::Yours);
}

pub(super) async fn tidying_drops_what_is_past_and_nothing_else(index: Subject) {
    let owner = Owner::of(&index, "acme");
    take(&owner, &claim("lapses", 1, day(0)), day(0)).await;
    take(&owner, &claim("stays", 1, day(2)), day(0)).await;
    for (url, keep_until) in [("past", day(1)), ("not past", day(2))] {
        let audit = event(AuditKind::Revoke, day(0)).url(url);
        index.revoke_url(&owner.tenant, url, keep_until, audit).await.expect("a revocation");
    }

    assert_eq!(index.tidy(1, day(1)).await.expect("a count"), 1);
    assert_eq!(index.tidy(MANY, day(1)).await.expect("a count"), 1);
    assert_eq!(index.tidy(MANY, day(1)).await.expect("a count"), 0);

    assert!(!index.is_revoked(&owner.tenant, "past").await.expect("an answer"));
    assert!(index.is_revoked(&owner.tenant, "not past").await.expect("an answer"));
    assert_eq!(take(&owner, &claim("stays", 2, day(1)), day(1)).await, Claimed::InFlight);
}
