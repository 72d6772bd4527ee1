//! The catalogue of infrastructure resources. Entering and deleting entries here makes and removes nothing at the
//! provider; jobs do that.

mod create;
mod delete;
mod names;
mod observed;
mod read;
mod rules;
mod update;

pub use create::create;
pub use delete::delete;
pub(super) use delete::{deletable, delete_for, soft_delete};
pub(super) use names::insert_for_job;
pub(super) use observed::{Maker, record_loss, record_removal, record_setting, upsert_observed};
pub use read::{get, list, list_of_entity, look_up};
pub(super) use rules::not_deleted;
pub use update::update;
