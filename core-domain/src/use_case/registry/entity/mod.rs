//! Entities: creating, finding and changing them, one or a whole tree.

mod create;
mod delete;
mod read;
mod tree;
mod update;

pub use create::create;
pub(super) use create::default_tenant;
pub use delete::delete;
pub use read::{ancestors, descendants, get, list};
pub(super) use tree::{descendants_of, ensure_no_children, ensure_not_suspended, not_deleted};
pub use update::update;
