//! The provisioning service: queues jobs, reads them, lets operators control them, and sets the suspension of a
//! platform for other services.

mod auth_worker;
mod custom_domain;
mod dlq;
mod events;
mod feature;
mod hold;
mod job;
mod operate;
mod provision;
mod queued;
mod stack;

use std::sync::Arc;

use crate::kernel::{App, Endpoint, Service, ServiceError, with_tag};
use crate::platform_status;
use core_domain::kernel::SuiteService;

/// Builds the service. It responds to the documented paths, and to the same paths without `/api/v1/provision`.
///
/// # Errors
/// [`ServiceError`] if the endpoint table is inconsistent.
pub fn service(app: Arc<App>) -> Result<Service, ServiceError> {
    Service::builder(SuiteService::Provisioning.as_str(), app, endpoints())
        .mount("/api/v1/provision", "")
        .purpose(
            "Provisioning creates, changes and removes the infrastructure of platforms. An \
             operation queues a job and returns its id; `GET /api/v1/provision/jobs/{jobId}` \
             reports its progress.",
        )
        .tag("Provisioning", "Operations that queue a job.")
        .tag(
            "Jobs",
            "Queued, running and ended jobs, and their control by operators.",
        )
        .tag(
            "Dead-letter queue",
            "Failed jobs that operators can run again.",
        )
        .tag("Holds", "Holds, which keep jobs from being started.")
        .tag("Suspension", "Suspension of platforms by other services.")
        .build()
}

/// Returns the endpoint table of the provisioning service.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let suspension = platform_status::row("setProvisioningPlatformStatus");
    let parts = [
        with_tag("Provisioning", provision::rows()),
        with_tag("Provisioning", custom_domain::rows()),
        with_tag("Provisioning", auth_worker::rows()),
        with_tag("Provisioning", feature::rows()),
        with_tag("Provisioning", stack::rows()),
        with_tag("Jobs", job::rows()),
        with_tag("Jobs", events::rows()),
        with_tag("Jobs", operate::rows()),
        with_tag("Dead-letter queue", dlq::rows()),
        with_tag("Holds", hold::rows()),
        with_tag("Suspension", vec![suspension]),
    ];
    parts.into_iter().flatten().collect()
}
