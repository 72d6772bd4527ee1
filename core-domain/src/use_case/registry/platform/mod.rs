//! Platforms: creating, finding and changing them, and their life.

mod create;
mod purge;
mod read;
mod record;
mod suspension;
mod transition;
mod update;

pub use create::create;
pub(super) use purge::{Covered, finish_deprovision};
pub use read::{get, lifecycle, list};
pub(super) use record::insert_platform;
pub use suspension::set_suspension;
pub(super) use transition::delete_undone;
pub use transition::{cancel, delete, hard_delete, restore, suspend};
pub use update::update;
