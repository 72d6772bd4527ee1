//! The use cases of the CLI service: deploying a built site, and reading the logs of workers and sites.

mod deploy;
mod deploy_job;
mod logs;
mod uploads;

pub use deploy::{
    Deploy, DeployOutcome, deploy, ensure_ready_to_deploy, ensure_room_for_site, find_created, get,
    site_project,
};
pub use deploy_job::register_kinds;
pub use logs::{LogFeed, LogTail, PlatformLogQuery, open_log};
pub use uploads::{blob_key, orphaned_uploads};
