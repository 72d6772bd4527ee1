//! The command line's service: deploying a built site.

mod deploy;
mod deploy_job;
mod deploy_steps;
mod uploads;

pub use deploy::{Deploy, Deployed, blob_key, deploy, find_deployment, ready_to_deploy};
pub use deploy_job::kinds;
pub use uploads::uploads_nobody_needs;
