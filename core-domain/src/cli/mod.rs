//! The rules of the CLI service: the allowed content and the maximum size of an uploaded site, and the plan of an upload.

mod deploy_plan;
mod manifest;
mod site;

pub use deploy_plan::{DeployPlan, DeployPlanQuery};
pub use manifest::{PartialSite, PlannedFile, SiteManifest};
pub use site::{SiteBuilder, SiteError, SiteFile, SiteLimits};
