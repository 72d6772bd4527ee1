//! The command line's service: deploying a built site.

mod deploy;
mod deploy_input;
mod deploy_job;
mod deploy_steps;
mod site_room;
mod uploads;

pub use deploy::{
    Deploy, Deployed, deploy, ensure_ready_to_deploy, ensure_room_for_site, find_created, get,
    site_project,
};
pub use deploy_input::blob_key;
pub use deploy_job::register_kinds;
pub use uploads::orphaned_uploads;
