//! Entities: creating, finding and changing them, one or a whole tree.

mod create;
mod delete;
mod read;
mod tree;
mod update;

pub use create::create;
pub(super) use create::default_tenant;
pub use delete::delete;
pub(super) use delete::deletion;
pub use read::{ancestors, descendants, get, list};
pub(super) use tree::{ensure_not_suspended, not_deleted};
pub use update::update;
