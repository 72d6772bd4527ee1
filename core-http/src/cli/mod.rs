//! The CLI service: deploys built sites, returns the status of deployments, and streams the logs of workers and sites.

mod config;
mod deploy;
mod deployment;
mod fair_slots;
mod limiter;
mod logs;
mod media;
mod multipart;
mod request;
mod spool;

use std::sync::Arc;

pub use core_domain::cli::SiteLimits;
use core_domain::kernel::SuiteService;
use core_domain::port::{Infrastructure, SiteArchives};

pub use self::config::CliConfig;
use self::deploy::DeployService;
pub use self::limiter::UploadLimits;
use crate::kernel::{App, Endpoint, Service, ServiceError, with_tag};

/// Builds the service. It responds to the documented paths, and to `/platforms/{platformId}/..`, which remain after a
/// gateway has removed `/api/v1/cli`.
///
/// # Errors
/// [`ServiceError`] if the endpoint table is inconsistent.
pub fn service(
    app: Arc<App>,
    archives: Arc<dyn SiteArchives>,
    infrastructure: Arc<dyn Infrastructure>,
    config: CliConfig,
) -> Result<Service, ServiceError> {
    Service::builder(
        SuiteService::Cli.as_str(),
        app,
        endpoints(archives, infrastructure, config),
    )
    .mount("/api/v1", "")
    .purpose(
        "The CLI service deploys built sites to a platform, reports the status of their \
             deployments, and streams the logs of its workers and sites.",
    )
    .tag(
        "Deployments",
        "Upload of built sites, and the status of their deployments.",
    )
    .tag(
        "Logs",
        "The logs of workers and sites: console lines and requests.",
    )
    .build()
}

/// Returns the endpoint table of the CLI service.
#[must_use]
pub fn endpoints(
    archives: Arc<dyn SiteArchives>,
    infrastructure: Arc<dyn Infrastructure>,
    config: CliConfig,
) -> Vec<Endpoint> {
    let logs = with_tag("Logs", logs::rows(Arc::clone(&infrastructure)));
    let parts = [
        deploy::rows(DeployService::new(archives, infrastructure, config)),
        deployment::rows(),
    ];
    let mut rows = with_tag("Deployments", parts.into_iter().flatten().collect());
    rows.extend(logs);
    rows
}
