//! The catalogue of infrastructure resources. Entering and deleting entries here makes and removes nothing at the
//! provider; jobs do that.

mod create;
mod delete;
mod observed;
mod read;
mod rules;
mod update;

pub use create::create;
pub use delete::delete;
pub(super) use delete::soft_delete;
pub(super) use observed::{Maker, record_loss, record_setting, upsert_observed};
pub use read::{get, list, list_of_entity, look_up};
pub(super) use rules::{name_conflict, not_deleted};
pub use update::update;
