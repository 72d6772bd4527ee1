//! The conformance suite: cases that every engine must pass.
//!
//! Open the engine with [`TABLES`] and call [`run`]. For a durable engine also call [`restart`] with a function that
//! opens it. The cases share a store; each case uses rows of a different owner.

mod appends;
mod batches;
mod commit_numbers;
mod fixture;
mod isolation;
mod joins;
mod keyset;
mod lost_replies;
mod page_bytes;
mod queries;
mod races;
mod records;
mod restart;
mod rows;
mod staging;
mod trees;
mod uniques;
mod uuids;

use std::pin::Pin;
use std::sync::Arc;

use core_domain::port::Store;

use crate::row_store::RowStore;

pub use fixture::{ITEMS, TABLES, item};
pub use restart::restart;

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One requirement that every engine must meet.
#[derive(Clone, Copy)]
pub struct Case {
    /// The requirement as a claim.
    pub name: &'static str,
    run: fn(Arc<dyn RowStore>) -> Running,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Case {
    /// Runs the case on the engine.
    ///
    /// # Panics
    /// If the engine does not meet the requirement.
    pub async fn run(&self, store: Arc<dyn RowStore>) {
        (self.run)(store).await;
    }
}

macro_rules! cases {
    ($($module:ident::$case:ident),+ $(,)?) => {
        /// Returns all cases.
        #[must_use]
        pub fn cases() -> Vec<Case> {
            vec![$(Case {
                name: concat!(stringify!($module), "::", stringify!($case)),
                run: |store| Box::pin($module::$case(store)),
            }),+]
        }
    };
}
cases! {
    rows::every_value_round_trips,
    rows::an_update_changes_only_matching_rows,
    rows::sums_are_grouped_and_ordered,
    rows::a_value_of_another_type_is_refused,
    rows::a_read_unit_cannot_write,
    rows::an_error_aborts_the_unit,
    rows::an_append_only_row_cannot_be_changed_or_deleted,
    rows::only_archived_rows_of_an_append_only_table_can_be_removed,
    queries::filters_match_the_same_rows_as_in_memory,
    queries::null_is_neither_equal_nor_unequal,
    queries::text_is_ordered_by_its_bytes,
    keyset::pages_repeat_and_skip_no_row_under_concurrent_inserts,
    keyset::pages_of_mixed_directions_are_in_order,
    uniques::a_conflict_names_its_index_and_leaves_the_unit_active,
    uniques::a_partial_index_covers_only_matching_rows,
    uniques::an_update_to_a_taken_value_is_a_conflict,
    batches::many_rows_are_inserted_as_one,
    batches::a_conflict_among_many_inserts_none_and_leaves_the_unit_active,
    batches::many_rows_are_replaced_as_one,
    batches::a_row_can_take_over_a_unique_key_from_another_row_of_the_batch,
    batches::a_batch_with_a_changed_row_or_a_taken_unique_key_must_be_retried,
    appends::later_calls_of_the_unit_see_appended_rows,
    appends::appended_rows_are_committed_with_their_unit,
    appends::an_appended_row_with_a_conflict_aborts_its_unit,
    appends::rows_with_taken_keys_are_skipped_and_the_others_named,
    races::a_guarded_update_has_one_winner,
    races::a_quota_holds_under_write_skew,
    races::a_quota_holds_under_the_lock_of_a_row,
    races::workers_claim_each_row_once,
    races::concurrent_inserts_of_one_value_have_one_winner,
    races::colliding_bulk_updates_lose_none,
    isolation::a_dropped_unit_is_rolled_back,
    isolation::a_rolled_back_unit_changes_nothing,
    isolation::a_read_unit_sees_one_committed_snapshot,
    isolation::a_long_reader_keeps_its_snapshot_while_a_thousand_units_commit,
    lost_replies::a_unit_whose_reply_is_lost_is_applied_completely_or_not_at_all,
    commit_numbers::equal_commit_numbers_mean_equal_rows,
    commit_numbers::a_change_changes_the_commit_numbers_of_the_affected_platforms,
    joins::each_row_is_returned_with_its_joined_rows,
    trees::walks_go_both_directions_in_order,
    trees::a_cycle_ends_the_walk,
    uuids::ids_compare_with_any_text,
    uuids::a_key_that_is_no_uuid_has_no_row,
    uuids::a_text_that_is_no_uuid_is_refused_as_an_id,
    uuids::rows_with_ids_are_changed_in_batches_and_walked,
}

/// Runs all cases, one after the other.
///
/// # Panics
/// If the engine fails a case. The name of each case is printed before it runs.
#[expect(
    clippy::print_stdout,
    reason = "shown by the test runner for a failed case"
)]
pub async fn run(store: Arc<dyn RowStore>) {
    for case in cases() {
        println!("case {}", case.name);
        case.run(store.clone()).await;
    }
}

/// Tests the repositories on an empty store.
///
/// # Panics
/// If the store violates the contract of [`core_domain::port::Repository`].
pub async fn records(store: Arc<dyn Store>) {
    records::run(&store).await;
    staging::run(&store).await;
    page_bytes::run(&store).await;
}
