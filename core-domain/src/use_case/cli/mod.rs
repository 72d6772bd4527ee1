//! The command line's service: deploying a built site.

mod deploy;
mod deploy_input;
mod deploy_job;
mod deploy_steps;
mod uploads;

pub use deploy::{Deploy, Deployed, deploy, ensure_ready_to_deploy, find_created, get};
pub use deploy_input::blob_key;
pub use deploy_job::register_kinds;
pub use uploads::orphaned_uploads;
