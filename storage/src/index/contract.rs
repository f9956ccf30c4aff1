//! The suite that every [`AssetIndex`](super::AssetIndex) passes.
//!
//! [`run_all`] tells the stories that the contract promises, each to an index of its own; [`random`] applies sequences of random
//! transitions to an index and to the model, and finds them equal at each step. A backend runs both from its tests:
//!
//! ```text
//! #[tokio::test(flavor = "multi_thread")]
//! async fn it_keeps_the_contract() {
//!     contract::run_all(|| async { fresh_index().await }).await;
//! }
//! ```
//!
//! A story asks only what the contract says. It does not say which looks there are, only that settling what is due ends what is past
//! and nothing else; nor in which order one sweep ends things.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::AssetIndex;

mod artifacts;
mod assets;
mod audit;
mod blobs;
mod claims;
mod ending;
mod erasing;
mod forks;
mod holds;
mod ingest;
mod keeping_races;
mod owing;
mod races;
pub mod random;
mod restoring;
mod resumable;
mod runs;
mod stage;
mod tombstones;
mod urls;
mod usage;

/// An index that is told a story.
pub type Subject = Arc<dyn AssetIndex>;

/// How a story is told: by its name first.
macro_rules! tell {
    ($make:ident; $($room:ident: $($story:ident),+;)+) => {$($(
        eprintln!("{}: {}", stringify!($room), stringify!($story).replace('_', " "));
        let index = Box::pin($make()).await;
        apart(|| $room::$story(index)).await;
    )+)+};
}

/// Makes a future in a frame of its own: a hundred of them in one would be more than a thread's stack.
fn apart<Fut: Future>(make: impl FnOnce() -> Fut) -> Pin<Box<Fut>> {
    Box::pin(make())
}

/// Tells every story to an index of its own, which `make` makes: new and empty each time.
///
/// # Panics
///
/// When a promise is broken; the name of the story is printed before it begins.
pub async fn run_all<F, Fut>(mut make: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Subject>,
{
    tell! {
        make;
        claims:
            a_key_has_one_holder_at_a_time,
            a_claim_that_lapsed_is_as_if_it_had_never_been,
            only_its_holder_renews_or_releases_a_claim,
            a_finished_request_leaves_its_answer,
            a_lost_claim_publishes_nothing,
            a_lapsed_claim_publishes_nothing,
            a_key_of_one_tenant_is_nothing_to_another,
            tidying_drops_what_is_past_and_nothing_else;
        ingest:
            what_is_published_is_visible,
            an_upload_that_was_not_announced_is_lost,
            a_withdrawn_upload_is_lost,
            the_second_publication_of_one_upload_is_lost,
            equal_bytes_of_a_tenant_share_a_blob,
            equal_bytes_of_two_tenants_share_nothing;
        assets:
            nobody_finds_the_asset_of_another_tenant,
            pages_give_each_asset_once_and_in_order,
            a_page_has_what_was_asked_for,
            words_change_only_from_the_revision_that_was_seen,
            words_of_the_dead_do_not_change,
            a_new_generation_counts_from_the_old_one,
            another_key_signs_the_same_generation,
            a_revoked_url_stays_revoked_until_its_time,
            the_newest_references_come_first;
        urls:
            a_minted_url_has_a_row_and_an_event,
            a_label_finds_its_own_urls,
            uses_are_taken_until_there_are_none,
            what_is_revoked_is_what_opened_until_now,
            the_row_of_a_url_goes_at_its_time_with_all_that_it_has,
            several_generations_are_raised_at_once,
            an_epoch_raises_all_that_a_tenant_has_or_will;
        runs:
            a_run_that_nobody_registered_is_kept_from_its_last_reference,
            a_registered_run_without_an_end_keeps_its_assets,
            a_run_that_is_opened_again_keeps_its_assets_until_it_is_closed_again,
            a_refused_update_changes_nothing,
            a_run_counts_what_it_references,
            runs_are_listed_by_name,
            all_assets_are_referenced_or_none,
            a_reference_that_is_there_stays_one;
        artifacts:
            an_artifact_is_what_was_put_last,
            an_artifact_that_names_nothing_keeps_its_run,
            what_an_artifact_may_not_name_makes_nothing,
            an_asset_is_named_as_long_as_an_artifact_names_it,
            artifacts_end_with_their_run,
            artifacts_of_an_endless_run_stay,
            an_erased_run_has_no_artifacts,
            artifacts_are_settled_in_pages,
            a_fork_takes_up_no_artifact;
        ending:
            an_unreferenced_upload_ends_after_its_term,
            a_sender_may_ask_for_more,
            an_asset_lives_to_the_last_moment_of_its_floor,
            an_extended_run_keeps_its_assets,
            a_default_end_gives_way_to_an_earlier_one,
            the_longest_run_keeps_a_shared_asset,
            what_an_ended_run_takes_up_ends_too,
            what_is_published_into_an_ended_run_ends_too,
            an_open_run_lets_go_when_it_closes,
            a_wish_outlives_the_run,
            a_wish_holds_when_a_default_end_gives_way,
            an_end_that_moves_during_a_sweep_counts,
            longer_terms_hold_from_now_on,
            a_large_run_is_settled_in_pages,
            a_request_may_expire_what_is_past,
            an_owner_deletes_what_nothing_protects,
            what_still_protects_an_asset_is_named_with_its_end,
            deleting_what_has_ended_brings_the_end_of_its_bytes_forward,
            what_is_due_is_counted_once;
        forks:
            a_fork_takes_up_what_its_parent_references_then,
            what_a_fork_took_up_ends_with_it,
            what_an_ended_fork_took_up_ends_with_its_parent,
            a_fork_of_a_fork_has_it_all,
            the_same_parent_again_changes_nothing,
            a_fork_that_may_not_be_makes_nothing;
        holds:
            a_hold_keeps_an_asset_until_the_last_is_lifted,
            a_lifted_hold_leaves_the_floor_as_it_was,
            a_hold_on_a_run_keeps_all_that_it_references_or_will,
            a_hold_that_comes_during_a_sweep_counts,
            the_same_hold_again_has_its_new_reason,
            holds_are_listed_by_name_each_on_its_own_thing,
            a_view_names_no_more_holds_than_it_says,
            nobody_deletes_or_erases_what_is_held,
            a_hold_on_a_dead_asset_keeps_what_is_left,
            a_hold_on_a_run_keeps_the_bytes_of_its_dead,
            bytes_that_were_gone_before_the_hold_stay_gone,
            a_hold_keeps_the_tombstones_of_a_run,
            an_open_run_that_was_held_keeps_its_assets,
            nothing_is_held_that_is_not_there;
        erasing:
            of_an_erased_asset_only_name_type_and_size_are_left,
            erased_bytes_are_out_of_reach_at_once,
            an_erased_asset_keeps_neither_its_floor_nor_its_answer,
            an_answer_that_another_request_left_since_stays,
            bytes_that_another_asset_holds_stay,
            bytes_that_a_hold_keeps_for_a_dead_asset_stay,
            an_expired_asset_is_erased_too,
            an_erased_run_takes_its_assets_with_it,
            an_erased_run_is_settled_by_its_look,
            a_request_may_erase_what_its_run_left,
            an_asset_goes_with_the_last_of_its_erased_runs,
            an_erased_run_takes_nothing_more,
            what_a_fork_took_up_outlives_the_erased_parent,
            an_erased_tombstone_goes_in_its_time,
            a_preview_is_what_a_sweep_would_take;
        tombstones:
            a_tombstone_outlasts_the_last_run_that_mentions_it,
            a_tombstone_that_no_run_mentions_counts_from_its_death,
            an_open_run_keeps_its_tombstones,
            a_tombstone_counts_from_the_run_that_takes_it_up,
            a_tombstone_goes_sooner_when_its_run_does,
            a_dropped_row_leaves_no_references,
            a_reference_to_the_dead_revives_nothing;
        blobs:
            the_last_holder_condemns_the_blob,
            a_condemned_blob_is_rescued_by_the_same_bytes,
            a_doomed_blob_is_out_of_reach,
            deleted_bytes_go_at_once,
            a_copy_goes_at_its_time_or_when_it_is_forgotten,
            a_silent_upload_is_doomed_and_a_living_one_is_not,
            an_upload_that_comes_to_nothing_says_what_it_was_to_become,
            one_blob_is_doomed_if_its_time_has_come,
            a_doomed_blob_is_named_until_it_is_forgotten,
            nothing_that_is_held_is_forgotten,
            every_blob_is_listed_once_and_in_order;
        owing:
            a_change_of_an_asset_owes_its_record,
            a_change_of_a_run_owes_its_record_and_what_it_quotes,
            holds_are_numbered_in_the_order_of_their_transitions,
            an_epoch_owes_its_number,
            a_publication_owes_a_record_that_names_another_blob,
            what_is_owed_is_paid_one_by_one;
        restoring:
            an_index_made_anew_is_as_the_old_one,
            what_is_restored_twice_is_there_once,
            an_artifact_of_an_erased_run_is_not_restored,
            erased_bytes_that_are_found_again_go;
        usage:
            what_is_reserved_becomes_what_is_used,
            equal_bytes_count_as_often_as_they_are_there,
            what_ends_counts_no_more,
            what_has_ended_before_is_not_taken_off_again,
            nothing_is_reserved_beyond_the_quota,
            a_reservation_grows_as_far_as_the_quota_goes,
            a_reservation_ends_with_its_upload,
            a_quota_below_the_use_takes_nothing_away,
            what_is_over_reserves_nothing,
            one_tenants_use_is_not_anothers,
            an_index_made_anew_counts_what_it_has;
        audit:
            each_transition_leaves_its_event,
            each_tenant_has_a_chain_of_its_own,
            sealing_goes_on_where_it_stopped,
            an_asset_ends_with_an_event;
        resumable:
            parts_are_appended_one_behind_the_other,
            a_part_is_no_upload_that_fell_silent,
            one_writes_at_a_time,
            what_is_reserved_for_parts_becomes_what_is_used,
            an_upload_is_finished_once,
            a_finished_upload_names_its_asset_until_its_time,
            an_expired_upload_gives_back_what_it_has,
            an_upload_that_is_given_up_is_cleared_in_steps,
            a_length_is_said_once,
            pieces_end_with_what_is_joined_of_them,
            a_tenant_has_so_many_in_parts_at_most,
            nobody_finds_the_parts_of_another_tenant;
    }
    run_races(async || {
        let index = make().await;
        [index.clone(), index]
    })
    .await;
}

/// Tells the stories of calls that meet each other to two replicas, which share what is new and empty each time.
///
/// # Panics
///
/// When a promise is broken; the name of the story is printed before it begins.
pub async fn run_races(mut make: impl AsyncFnMut() -> [Subject; 2]) {
    tell! {
        make;
        races:
            what_one_replica_did_the_other_sees,
            two_publications_of_equal_bytes_share_one_blob,
            hundreds_of_publications_of_equal_bytes_at_once_all_come_through,
            a_publication_never_holds_a_doomed_blob,
            a_publication_into_a_run_that_is_swept_ends_once_and_whole,
            one_replica_at_a_time_has_the_turn_to_remove_bytes,
            a_claim_has_one_winner,
            two_sweeps_end_each_asset_once,
            a_reference_and_an_end_are_of_one_mind,
            a_longer_run_and_an_end_are_of_one_mind,
            references_by_many_runs_are_all_counted,
            two_sealers_make_one_chain,
            a_call_that_nobody_waits_for_is_whole;
        keeping_races:
            a_fork_keeps_whatever_its_parent_had_left,
            two_runs_do_not_become_forks_of_each_other,
            nothing_ends_after_a_hold_was_placed,
            bytes_that_were_there_when_a_hold_was_placed_stay,
            a_publication_of_erased_bytes_has_its_own,
            nothing_stays_in_an_erased_run;
        artifacts:
            an_artifact_and_an_erasure_are_of_one_mind;
        urls:
            as_many_take_a_use_as_there_are,
            no_use_is_taken_after_a_revocation;
        usage:
            no_more_is_published_than_the_quota_leaves,
            what_many_publish_and_end_is_all_counted;
        resumable:
            of_two_writers_one_has_the_lease;
    }
}

/// Terms that a backend's own tests may ask by.
pub fn terms() -> crate::retention::Terms {
    stage::terms()
}

/// An asset that was shared, referenced, expired and forgotten, with all that it brought with it: a backend may look at what is left.
pub async fn an_asset_comes_and_goes(index: Subject) {
    tombstones::an_asset_comes_and_goes(index).await;
}

/// Two assets of tenant `acme` and run `run-1` that have the same bytes: a backend may look at how they are written.
pub async fn two_assets_of_equal_bytes(index: Subject) -> [crate::AssetId; 2] {
    let owner = stage::Owner::of(&index, "acme");
    let at = stage::day(0);
    [owner.upload(Some("run-1"), "bytes", at).await.record.id, owner.upload(Some("run-1"), "bytes", at).await.record.id]
}

/// The run `run-1` of tenant `acme` with an end, and so many assets: a backend may count what it costs to extend it.
pub async fn a_run_of(index: Subject, assets: usize) {
    let owner = stage::Owner::of(&index, "acme");
    owner.run_until("run-1", stage::day(5), stage::day(0)).await;
    let all: Vec<usize> = (0..assets).collect();
    for some in all.chunks(100) {
        let uploads = some.iter().map(async |n| {
            owner.upload(Some("run-1"), &format!("bytes {n}"), stage::day(0)).await;
        });
        futures_util::future::join_all(uploads).await;
    }
}

/// Extends that run.
pub async fn that_run_is_extended(index: Subject) {
    stage::Owner::of(&index, "acme").run_until("run-1", stage::day(9), stage::day(4)).await;
}
