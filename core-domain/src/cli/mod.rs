//! The rules of the CLI service: the allowed content and the maximum size of an uploaded site, the plan of an upload, and
//! the lines of logs.

mod deploy_plan;
mod log;
mod manifest;
mod site;

pub use deploy_plan::{DeployPlan, DeployPlanQuery};
pub use log::{
    LogContent, LogId, LogLevel, LogLine, MAX_LOG_PATH_BYTES, MAX_LOG_TAIL, MAX_LOG_TEXT_BYTES,
};
pub use manifest::{PlannedFile, SiteManifest};
pub use site::{SiteBuilder, SiteError, SiteFile, SiteLimits};
