//! Custom domains. A job looks their DNS records up until all are there, and has them served.

mod add;
mod create;
mod delete;
mod hostname_id;
mod job;
mod read;
mod rules;
mod update;

pub use add::add;
pub(super) use add::resume;
pub use create::create;
pub use delete::delete;
pub(super) use delete::{delete_on, may_be_served};
pub(super) use hostname_id::{forget_hostname, record_hostname};
pub(super) use job::{follow_job, record_check, record_earlier_proof, record_proof, record_served};
pub use read::{get, list, list_unverified};
pub use update::update;
