//! Provisioning: queueing jobs, looking at them, and the suspension of a platform as other services set it.

mod create;
mod jobs;
mod shape;

use std::sync::Arc;

use core_domain::kernel::Code;
use http::StatusCode;

use crate::kernel::{Access, App, Endpoint, Service, ServiceError, get, post};
use crate::platform_status;

/// The service: documented paths, and the same without `/api/v1/provision`.
///
/// # Errors
/// When the table of endpoints contradicts itself.
pub fn service(app: Arc<App>) -> Result<Service, ServiceError> {
    Service::builder("provisioning", app, endpoints())
        .mount("/api/v1/provision", "")
        .build()
}

/// The table of provisioning.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let parts = [create_endpoints(), look_endpoints()];
    parts.into_iter().flatten().collect()
}

fn create_endpoints() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/platform", "provisionPlatform")
            .summary("Queues the job that gives a platform its infrastructure in an environment.")
            .success(&[StatusCode::ACCEPTED])
            .refuses(&[Code::InvalidState])
            .writes(create::platform),
        post("/api/v1/provision/onboard", "provisionOnboarding")
            .summary("Queues the job that makes an organization with its platform and infrastructure.")
            .success(&[StatusCode::ACCEPTED])
            .refuses(&[Code::SlugTaken])
            .writes(create::onboard),
        post(
            "/api/v1/provision/platform/deprovision",
            "deprovisionPlatform",
        )
        .summary("Queues the job that removes a platform's infrastructure in an environment, before its other jobs.")
        .success(&[StatusCode::ACCEPTED])
        .refuses(&[Code::InvalidState])
        .writes(create::deprovision),
    ]
}

fn look_endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/provision/jobs", "listJobs")
            .summary("Lists jobs, newest first.")
            .access(Access::Signed)
            .reads(jobs::list),
        get("/api/v1/provision/jobs/{jobId}", "getJob")
            .summary("Shows a job with its steps; with `wait` once it has ended.")
            .access(Access::Signed)
            .plain(jobs::show),
        post("/internal/platform-status", "setProvisioningPlatformStatus")
            .summary("Suspends a platform, or lifts the suspension: callers are refused and its jobs held.")
            .access(Access::Service)
            .success(&[StatusCode::OK])
            .writes(platform_status::set),
    ]
}
