//! The CLI service: deploys built sites, manages the features and secrets of a platform, and streams the logs of its
//! workers and sites.

mod config;
mod deploy;
mod deployment;
mod fair_slots;
mod feature;
mod limiter;
mod logs;
mod media;
mod multipart;
mod plan;
mod request;
mod secret;
mod spool;

use std::sync::Arc;

pub use core_domain::cli::SiteLimits;
use core_domain::kernel::SuiteService;
use core_domain::port::{Infrastructure, SiteArchives};

pub use self::config::CliConfig;
use self::deploy::DeployService;
pub use self::limiter::UploadLimits;
use self::plan::PlanService;
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
        "The CLI service deploys built sites to a platform, manages its features and secrets, and \
             streams the logs of its workers and sites. It is the backend of the command-line \
             client `core-cli`.",
    )
    .tag(
        "Deployments",
        "Upload of built sites, the status of their deployments, rollbacks and promotions.",
    )
    .tag("Features", "Features of the platform in production.")
    .tag("Secrets", "Secrets of the platform's worker and site.")
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
    let deployments = [
        deploy::rows(DeployService::new(
            archives,
            Arc::clone(&infrastructure),
            config,
        )),
        plan::rows(PlanService::new(Arc::clone(&infrastructure), config)),
        deployment::rows(),
    ];
    let deployments = deployments.into_iter().flatten().collect();
    let parts = [
        with_tag("Deployments", deployments),
        with_tag("Features", feature::rows()),
        with_tag("Secrets", secret::rows(&infrastructure)),
        with_tag("Logs", logs::rows(infrastructure)),
    ];
    parts.into_iter().flatten().collect()
}
