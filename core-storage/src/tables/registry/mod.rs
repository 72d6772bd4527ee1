//! Tables of the registry.

mod catalogue;
mod features;
mod platforms;
mod releases;
mod workspaces;

use crate::IndexPredicate;
use crate::filter::Filter;

const NOT_DELETED: IndexPredicate = IndexPredicate::IsNull("deleted_at");

fn not_deleted() -> Filter {
    Filter::IsNull("deleted_at")
}

/// Hides deleted rows unless `deleted` asks for them too.
fn hide_deleted(deleted: bool) -> Option<Filter> {
    (!deleted).then(not_deleted)
}
