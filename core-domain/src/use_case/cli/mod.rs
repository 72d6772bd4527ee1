//! The use cases of the CLI service: deploying a built site, the secrets of a platform, and the logs of its workers and
//! sites.

mod deploy;
mod deploy_job;
mod events;
mod logs;
mod plan;
mod redeploy;
pub mod secret;
mod site_job;
mod uploads;

pub use deploy::{
    Deploy, DeployOutcome, deploy, ensure_ready_to_deploy, ensure_room_for_site, find_created,
    site_project,
};
pub use deploy_job::register_kinds;
pub use events::{DeploymentEvent, DeploymentFeed, DeploymentFeedPage, open_deployment_feed};
pub use logs::{LogFeed, LogTail, PlatformLogQuery, open_log};
pub use plan::{create_plan, ensure_room_for_plan, find_plan, remove_expired_plans};
pub use redeploy::{promote, roll_back};
pub use uploads::{blob_key, manifest_key, orphaned_uploads, plan_key};
