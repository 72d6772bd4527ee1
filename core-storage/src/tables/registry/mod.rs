//! The tables of the registry. The files have the names of its use case modules.

mod build;
mod config;
mod deployment;
mod dns;
mod domain;
mod entity;
mod feature;
mod onboarding;
mod platform;
mod resource;
mod secret;
mod workspace_stack;

use crate::IndexPredicate;
use crate::filter::Filter;

const NOT_DELETED: IndexPredicate = IndexPredicate::IsNull("deleted_at");

fn not_deleted() -> Filter {
    Filter::IsNull("deleted_at")
}

/// Returns a filter that hides deleted rows, unless `deleted` is true.
fn hide_deleted(deleted: bool) -> Option<Filter> {
    (!deleted).then(not_deleted)
}
