//! Custom domains. A job looks their DNS records up until all are there.

mod create;
mod delete;
mod job;
mod read;
mod rules;
mod update;

pub use create::create;
pub use delete::delete;
pub(super) use delete::delete_on;
pub(super) use job::{find_verified_by, follow_job, record_check};
pub use read::{get, list, list_unverified};
pub use update::update;
